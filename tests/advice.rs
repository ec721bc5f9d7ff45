//! What `advice.csv` says could be saved: worked out by hand, and held against the memory of every key under the limits that it names.
//! `tests/live_advice.rs` follows the advice on servers.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/writer.rs"]
mod writer;

use std::fs;

use support::{Report, Row, fixtures, number, read_csv, run};
use writer::{DumpWriter, Magic};

fn of_kind(report: &Report, kind: &str) -> Vec<Row> {
    report.table("advice").into_iter().filter(|row| row["advice"] == kind).collect()
}

/// Advice of one kind for a class: `from`, `to`, keys, memory, saved.
fn advice<'r>(rows: &'r [Row], class: &str) -> (&'r str, &'r str, u64, u64, u64) {
    let row = rows.iter().find(|row| row["class"] == class).unwrap_or_else(|| panic!("{class} in {rows:#?}"));
    (&row["from"], &row["to"], number(row, "keys"), number(row, "memory_bytes"), number(row, "saved_bytes"))
}

/// Redis 7.0 with its own jemalloc, whose blocks are of 8, 16, 24, 32, 40, 48, 56, 64, 80 bytes. A name takes a block of its length + 2, an
/// entry 24, an object 16; a short text 16 + 4 + its length with the object; an integer nothing more.
#[test]
fn strings_that_one_hash_could_hold_and_names_that_could_be_shorter() {
    let mut dump = DumpWriter::in_memory(Magic::Redis(10));
    dump.aux("redis-ver", "7.0.15").aux("ctime", "1700000000").select_db(0);
    for n in 0..10 {
        // 13 + 2 is 16; with "anna", 24: 16 + 24 + 24 = 64.
        dump.key(&format!("client:{n}:name")).string("anna");
        // 12 + 2 is 16; an integer: 16 + 24 + 16 = 56.
        dump.key(&format!("client:{n}:age")).string("41");
        // Neither what expires nor what is long belongs into a packed hash.
        dump.key(&format!("client:{n}:otp")).expires_at_ms(1_800_000_000_000).string("1234");
        dump.key(&format!("client:{n}:bio")).string("x".repeat(65));
        // A single string of its entity is left alone.
        dump.key(&format!("client:{}:name", 10 + n)).string("anna");
        // Gone once the dump is loaded.
        dump.key(&format!("client:{n}:old")).expires_at_ms(1_600_000_000_000).string("anna");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.rdb");
    fs::write(&path, dump.into_bytes()).unwrap();
    let report = Report::of([path.to_str().unwrap()]);
    // The hash: name of 8 + 2 in 16, 24, 16; a listpack of 7 + (4 + 2) + (4 + 2) + (3 + 2) + (1 + 1) = 26 bytes in 32: 88.
    let hashes = of_kind(&report, "one hash per entity");
    assert_eq!(
        advice(&hashes, "client:<digits>"),
        ("string for each field", "hash for each entity", 20, 10 * 120, 10 * (120 - 88))
    );
    assert_eq!((hashes.len(), &*hashes[0]["sampled_one_in"]), (1, "1"));
    let prefixes = of_kind(&report, "shorter prefix");
    // c:0:name is 8 + 2 bytes in 16, and saves nothing; c:0:age is 7 + 2 in 16, likewise; the others have as many letters.
    for (class, keys) in [("name", "20"), ("age", "10"), ("otp", "10"), ("bio", "10")] {
        let row = prefixes.iter().find(|row| row["class"] == format!("client:<digits>:{class}")).unwrap();
        assert_eq!((&*row["from"], &*row["to"], &*row["saved_bytes"], &*row["keys"]), ("", "", "0", keys), "{class}");
        let single: usize = (0..10).map(|n| format!("client:{}:name", 10 + n).len()).sum();
        let expected = 10 * format!("client:0:{class}").len() + if class == "name" { single } else { 0 };
        assert_eq!(number(row, "name_bytes"), expected as u64);
    }
    assert!(prefixes.iter().all(|row| row["class"] != "client:<digits>:old"), "{prefixes:#?}");
}

#[test]
fn names_that_could_be_shorter() {
    let mut dump = DumpWriter::in_memory(Magic::Redis(10));
    dump.aux("redis-ver", "7.0.15").aux("ctime", "1700000000").select_db(0);
    for n in 0..10 {
        // 27 + 2 is 32, and a:p:v3:1000 is 11 + 2 in 16: whatever the value.
        dump.key(&format!("application:profile:v3:{}", 1000 + n)).string("x".repeat(n * 100));
        dump.key(&format!("application:queue:{{{}}}", 1000 + n)).list(["a", "b"].iter());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.rdb");
    fs::write(&path, dump.into_bytes()).unwrap();
    let rows = of_kind(&Report::of([path.to_str().unwrap()]), "shorter prefix");
    let (from, to, keys, _, saved) = advice(&rows, "application:profile:v3:<digits>");
    assert_eq!((from, to, keys, saved), ("application:profile:v3:", "a:p:v3:", 10, 10 * (32 - 16)));
    // 24 + 2 is 32; a:q:{1000} is 10 + 2 in 16.
    let (from, to, keys, _, saved) = advice(&rows, "application:queue:{<digits>}");
    assert_eq!((from, to, keys, saved), ("application:queue:", "a:q:", 10, 10 * (32 - 16)));
}

/// What a raised limit saves is the difference of what all keys take under the limit as it is and as it would be.
#[test]
fn raised_limits_save_what_keys_take_less_under_them() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("redis.conf");
    let mut followed = 0;
    for name in
        ["redis-5.0.14-zoo", "redis-6.2.5-zoo", "redis-7.0.15-zoo", "redis-7.4.1-zoo", "redis-8.2.3-zoo", "valkey-9.1.2-zoo"]
    {
        let path = fixtures().join(format!("truth/{name}.rdb"));
        let path = path.to_str().unwrap();
        let keys = |config: &str| {
            fs::write(&conf, config).unwrap();
            let output = run(["keys", path, "--server-config", conf.to_str().unwrap()]).ok();
            read_csv(&output.stdout).1
        };
        let before = keys("");
        for row in of_kind(&Report::of([path]), "raise limit").iter().filter(|row| row["class"] == "(all)") {
            let after = keys(&row["to"]);
            let moved =
                before.iter().zip(&after).filter(|(b, a)| b["encoding"] != a["encoding"] && !b["ttl_seconds"].starts_with('-'));
            let moved: Vec<_> = moved.collect();
            let sum = |of: &dyn Fn(&(&Row, &Row)) -> u64| moved.iter().map(of).sum::<u64>();
            let (now, then) = (sum(&|(b, _)| number(b, "memory_bytes")), sum(&|(_, a)| number(a, "memory_bytes")));
            let said = (number(row, "keys"), number(row, "memory_bytes"), number(row, "saved_bytes"));
            assert_eq!(said, (moved.len() as u64, now, now - then), "{name}: {row:?}");
            followed += 1;
        }
    }
    assert!(followed >= 30, "{followed}");
}
