//! What the values of strings are said to be: formats, schema versions, what does not parse, how well they compress.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/writer.rs"]
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::{Row, Run, TempDump, fixtures, rdbscope, read_csv, run, string, truth::Truth};
use tempfile::TempDir;
use writer::{DumpWriter, Magic};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A dump of strings in database 0.
fn strings<'s>(keys: impl IntoIterator<Item = (String, &'s [u8])>) -> TempDump {
    let mut body = vec![0xfe, 0];
    for (key, value) in keys {
        body.push(0);
        body.extend(string(key.as_bytes()));
        body.extend(string(value));
    }
    TempDump::new(&support::dump(b"REDIS0010", &body))
}

fn formats(dump: &Path, arguments: &[&str]) -> Vec<Row> {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("report");
    let run = Run::of(rdbscope().arg("report").arg(dump).args(["--values", "-o"]).arg(&to).args(arguments)).ok();
    assert!(run.text().starts_with(&*support::name(dump)) || arguments.contains(&"--match"));
    read_csv(&fs::read(to.join("value_formats.csv")).unwrap()).1
}

fn cells(rows: &[Row]) -> Vec<String> {
    const COLUMNS: [&str; 8] =
        ["class", "format", "schema_version", "strings", "sampled_values", "share", "not_parsed", "average_bytes"];
    rows.iter().map(|row| COLUMNS.map(|name| &*row[name]).join(" ")).collect()
}

#[test]
fn formats_and_schema_versions_of_a_class() {
    let long = [b"{\"v\":2,\"list\":[", &b"12345,".repeat(100)[..], b"0]}"].concat();
    let values: [(&str, &[u8]); 9] = [
        ("profile:1", b"{\"v\":1,\"name\":\"alice\"}"),
        ("profile:2", b"{\"v\":1,\"name\":\"carol\"}"),
        ("profile:3", &long),
        ("profile:4", b"{\"v\":1,\"name\":"),
        ("profile:5", b"{\"v\":\"alice@example.com\"}"),
        ("views:1", b"17"),
        ("views:2", b"-170"),
        ("views:3", b"none"),
        ("php:1", b"a:1:{i:0;s:2:\"hi\";}"),
    ];
    let dump = strings(values.map(|(key, value)| (key.to_string(), value)));
    let rows = formats(&dump.path(), &[]);
    // Lengths: 22, 22, 15 + 600 + 3, 14, 25; 2, 4, 4; 19. Classes by memory; format and version by values.
    assert_eq!(
        cells(&rows),
        [
            "profile:<digits> json 1 5 2 0.400000 0 22",
            "profile:<digits> json  5 1 0.200000 1 14",
            "profile:<digits> json 2 5 1 0.200000 0 618",
            "profile:<digits> json other 5 1 0.200000 0 25",
            "views:<digits> integer  3 2 0.666667 0 3",
            "views:<digits> text  3 1 0.333333 0 4",
            "php:<digits> php-serialized  1 1 1.000000 0 19",
        ]
    );
    let packed = zstd::bulk::compress(&long, 1).unwrap().len();
    assert_eq!(rows[2]["compress_ratio"], format!("{:.6}", 618.0 / packed as f64));
    assert!(packed < 100);
    // Only keys that are asked for are looked at.
    assert_eq!(formats(&dump.path(), &["--match", "views:*"]).len(), 2);
}

#[test]
fn more_versions_than_there_can_be_are_data() {
    let value = |n: u32| format!("{{\"v\":{n}}}");
    let values: Vec<String> = (0..40).map(value).collect();
    let keys = |most: usize| values[..most].iter().enumerate().map(|(n, value)| (format!("c:{n}"), value.as_bytes()));
    let versions = |dump: &TempDump| support::column(&formats(&dump.path(), &[]), "schema_version").join(" ");
    assert_eq!(versions(&strings(keys(16))), "0 1 10 11 12 13 14 15 2 3 4 5 6 7 8 9");
    assert_eq!(versions(&strings(keys(17))), "other");
}

#[test]
fn the_sample_is_of_the_smallest_hashes_however_the_dump_is_read() {
    const VALUES: [&[u8]; 4] = [b"{\"v\":3}", b"12", b"some text", b"\x00\x01\x02"];
    const FORMATS: [&str; 4] = ["json", "integer", "text", "binary"];
    let keys: Vec<String> = (0..3000).map(|n| format!("user:{n}")).collect();
    let dump = strings(keys.iter().enumerate().map(|(n, key)| (key.clone(), VALUES[n * n % 7 % 4])));
    // By sorting all of them.
    let mut hashes: Vec<(u64, usize)> =
        keys.iter().enumerate().map(|(n, key)| (xxh3_64_with_seed(key.as_bytes(), 0), n)).collect();
    hashes.sort_unstable();
    let mut expected = BTreeMap::<&str, u64>::new();
    hashes[..256].iter().for_each(|(_, n)| *expected.entry(FORMATS[n * n % 7 % 4]).or_default() += 1);
    let whole = formats(&dump.path(), &["--threads", "1"]);
    let found: BTreeMap<&str, u64> = whole.iter().map(|row| (&*row["format"], support::number(row, "sampled_values"))).collect();
    assert_eq!(found, expected);
    assert!(whole.iter().all(|row| row["strings"] == "3000"));
    for arguments in [&["--threads", "4"][..], &["--piece-bytes", "1000"], &["--threads", "2", "--piece-bytes", "300"]] {
        assert_eq!(formats(&dump.path(), arguments), whole, "{arguments:?}");
    }
    // Compressed, it is read in windows, each of which goes before the next one comes.
    let folder = TempDir::new().unwrap();
    let packed = folder.path().join("packed");
    fs::write(&packed, zstd::bulk::compress(&fs::read(dump.path()).unwrap(), 1).unwrap()).unwrap();
    assert_eq!(formats(&packed, &["--window-bytes", "4096"]), whole);
    assert_eq!(formats(&packed, &[]), whole);
}

#[test]
fn values_that_the_dump_compresses_or_writes_as_integers() {
    let mut w = DumpWriter::in_memory(Magic::Redis(9));
    w.select_db(0).compress(true);
    let long = format!("{{\"v\":1,\"pad\":\"{}\"}}", "a".repeat(50));
    w.key("a:1").string(&long);
    w.key("b:1").string(b"12345");
    w.key("c:1").list([b"a list has no value of its own"]);
    let dump = TempDump::new(&w.into_bytes());
    assert!(!fs::read(dump.path()).unwrap().windows(30).any(|window| *window == [b'a'; 30]));
    let rows = formats(&dump.path(), &[]);
    assert_eq!(cells(&rows), ["a:<digits> json 1 1 1 1.000000 0 66", "b:<digits> integer  1 1 1.000000 0 5"]);
}

#[test]
fn values_that_cannot_be_looked_at_are_counted() {
    // Dragonfly compresses records together: opcode 201 and a zstd frame. Of them the names are known, and no value stands in the dump.
    let record = |key: &str| [&[0][..], &string(key.as_bytes()), &string(b"12")].concat();
    let blob = zstd::bulk::compress(&[&[0xfe, 0][..], &record("a:1"), &record("a:2")].concat(), 1).unwrap();
    let body = [&b"\xfa\x06df-ver\x05v1.30\xfe\x00"[..], &record("a:3"), &[201], &string(&blob)].concat();
    let dump = TempDump::new(&support::dump(b"REDIS0009", &body));
    let rows = formats(&dump.path(), &["--no-checksum"]);
    assert_eq!(cells(&rows), ["a:<digits> (unread)  3 2 0.666667 0 0", "a:<digits> integer  3 1 0.333333 0 2"]);
    assert_eq!(rows[0]["compress_ratio"], "");
}

#[test]
fn every_string_of_the_fixtures_has_a_format() {
    for dump in support::dumps_in("truth") {
        let truth = Truth::beside(&dump);
        let strings = truth.lines.iter().filter(|line| line.key_type == "string").count() as u64;
        let rows = formats(&dump, &[]);
        let by_class: BTreeMap<&str, u64> = rows.iter().map(|row| (&*row["class"], support::number(row, "strings"))).collect();
        // What had expired when the server loaded the dump was not asked for; it may have been strings.
        let expired = truth.meta.expired_on_load.len() as u64;
        assert!((strings..=strings + expired).contains(&by_class.values().sum::<u64>()), "{dump:?}");
        for (class, strings) in by_class {
            let sampled: u64 =
                rows.iter().filter(|row| row["class"] == class).map(|row| support::number(row, "sampled_values")).sum();
            assert_eq!(sampled, strings.min(256), "{dump:?} {class}");
        }
        assert!(rows.iter().all(|row| row["format"] != "(unread)"), "{dump:?}");
    }
}

#[test]
fn no_value_is_ever_shown_and_none_is_read_unasked() {
    let secret = b"{\"v\":\"tulip-orchard\",\"version\":\"tulip-orchard\",\"tulip-orchard\":[\"tulip-orchard\"]}";
    let dump = strings((0..30).map(|n| (format!("s:{n}"), &secret[..])));
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("out");
    let written = |arguments: &[&str]| -> BTreeMap<String, String> {
        let done = Run::of(rdbscope().arg(arguments[0]).arg(dump.path()).args(&arguments[1..]).arg(&to));
        assert!(done.code <= 1, "{}", done.stderr);
        let files = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path());
        let mut all: BTreeMap<String, String> =
            files.map(|path| (support::name(&path), fs::read_to_string(&path).unwrap())).collect();
        all.insert("stdout".into(), done.text().into());
        all.insert("stderr".into(), done.stderr);
        all
    };
    for arguments in
        [&["report", "--values", "--show-sensitive", "-o"][..], &["check", "--show-sensitive", "--force", "--tables"]]
    {
        let all = written(arguments);
        assert!(all["value_formats.csv"].contains("s:<digits>,json,other,30,30,1.000000,0,"), "{all:?}");
        assert!(all.iter().all(|(_, text)| !text.contains("tulip")), "{all:?}");
    }
    // An earlier report had it.
    assert!(!written(&["report", "--force", "-o"]).contains_key("value_formats.csv"));
    assert_eq!(run(["report", "x.rdb", "--values"]).code, 2, "there must be a folder to write to");
}

#[test]
fn an_old_version_in_values_where_names_have_none() {
    let folder = TempDir::new().unwrap();
    let contracts = folder.path().join("c.toml");
    let check = |dump: &TempDump, class: &str| -> Vec<(String, String, u64, String)> {
        fs::write(&contracts, format!("[rules]\nlifetime = 'off'\n[[class]]\nname = 'c'\n{class}\n")).unwrap();
        let run = Run::of(rdbscope().arg("check").arg(dump.path()).arg("-c").arg(&contracts).args([
            "--format",
            "csv",
            "--fail-on",
            "never",
        ]));
        let (_, rows) = read_csv(run.ok().text().as_bytes());
        let cells = |row: &Row| (row["rule"].clone(), row["place"].clone(), support::number(row, "keys"), row["message"].clone());
        rows.iter().map(cells).collect()
    };
    let old = |place: &str, keys: u64, message: &str| ("version-old".to_string(), place.to_string(), keys, message.to_string());
    let values: [&[u8]; 5] = [b"{\"v\":1}", b"{\"v\":\"1.7\"}", b"{\"v\":2}", b"{\"v\":3}", b"text"];
    let dump = strings((0..10).map(|n| (format!("c:{n}"), values[n % 5])));
    let found = [
        old("v1", 4, "4 of 10 values carry v1, 40.0 %; current is v3"),
        old("v2", 2, "2 of 10 values carry v2, 20.0 %; current is v3"),
    ];
    let class = "pattern = 'c:<digits>'\nversion = 3";
    let mut of_values = check(&dump, class);
    of_values.sort();
    assert_eq!(of_values, found);
    assert_eq!(check(&dump, "pattern = 'c:<digits>'\nversion = 1"), []);
    assert_eq!(check(&dump, "pattern = 'c:<digits>'"), []);
    // A version in names is what counts, where there is one.
    let named = strings((0..10).map(|n| (format!("c:v3:{n}"), values[0])));
    assert_eq!(check(&named, "pattern = 'c:v3:<digits>'\nversion = 3"), []);
    assert_eq!(check(&named, "pattern = 'c:<version>:<digits>'\nversion = 3"), []);

    // Of more than 256 keys, a sample is looked at: those with the smallest hashes, here worked out by sorting.
    let keys: Vec<String> = (0..1000).map(|n| format!("c:{n}")).collect();
    let is_old = |n: usize| n.is_multiple_of(10);
    let large = strings(keys.iter().enumerate().map(|(n, key)| (key.clone(), if is_old(n) { values[0] } else { values[3] })));
    let mut hashes: Vec<(u64, usize)> =
        keys.iter().enumerate().map(|(n, key)| (xxh3_64_with_seed(key.as_bytes(), 0), n)).collect();
    hashes.sort_unstable();
    let sampled = hashes[..256].iter().filter(|(_, n)| is_old(*n)).count() as u64;
    let (all, share) = (sampled * 1000 / 256, sampled as f64 / 2.56);
    let message = format!("{sampled} of a sample of 256 values carry v1, {share:.1} %, so about {all} of 1000; current is v3");
    assert_eq!(check(&large, class), [old("v1", all, &message)]);
}

#[test]
fn check_writes_what_report_writes() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let contracts = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    let contracts = contracts.to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("tables");
    Run::of(rdbscope().arg("check").arg(&dump).args(["-c", contracts, "--fail-on", "never", "--tables"]).arg(&to)).ok();
    let (header, of_check) = read_csv(&fs::read(to.join("value_formats.csv")).unwrap());
    assert_eq!(
        header,
        [
            "class",
            "format",
            "schema_version",
            "strings",
            "sampled_values",
            "share",
            "not_parsed",
            "average_bytes",
            "compress_ratio"
        ]
    );
    let of_report = formats(&dump, &["-c", contracts]);
    // A report sums the smallest classes that no contract names.
    let registered =
        |rows: &[Row]| -> Vec<Row> { rows.iter().filter(|row| !row["class"].contains(['<', ' ', '('])).cloned().collect() };
    let (of_check, of_report) = (registered(&of_check), registered(&of_report));
    let named = |rows: &[Row]| rows.iter().filter(|row| row["class"] == "user-profile").cloned().collect::<Vec<_>>();
    assert_eq!(named(&of_check), named(&of_report));
    assert!(!named(&of_check).is_empty());
}
