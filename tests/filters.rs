//! Filters, alone and together, against counts worked out from what servers said of the dumps.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use support::truth::{Truth, TruthLine};
use support::{Report, Row, TempDump, column, dump, fixtures, number, read_csv, run, string, sum};

/// 3,257 keys, none of them expired when the dump was made or loaded.
fn contracts() -> Truth {
    let truth = Truth::beside(&fixtures().join("truth/redis-7.4.1-contracts.rdb"));
    assert_eq!((truth.lines.len(), truth.meta.expired_on_load.len()), (3257, 0));
    truth
}

/// Keys of three databases, some of them expired.
fn zoo() -> Truth {
    Truth::beside(&fixtures().join("truth/redis-7.0.15-zoo.rdb"))
}

/// What `keys` and `report` make of a dump under the same filter.
struct Filtered {
    keys: Vec<Row>,
    stderr: String,
    report: Report,
}

impl Filtered {
    fn of(dump: &std::path::Path, flags: &[&str]) -> Self {
        let dump = dump.to_str().unwrap();
        let keys = run(["keys", dump].iter().chain(flags)).ok();
        let report = Report::of([dump].iter().chain(flags));
        assert_eq!(report.run.code, 0, "{}", report.run.stderr);
        Self { keys: read_csv(&keys.stdout).1, stderr: keys.stderr, report }
    }

    fn names(&self) -> BTreeSet<(u64, Vec<u8>)> {
        let place = |row: &Row| (number(row, "db"), rdbscope::key_text::unescape(&row["key"]).unwrap());
        self.keys.iter().map(place).collect()
    }

    /// The same keys in every table, and `of` keys in the dump.
    #[track_caller]
    fn adds_up(&self, matched: usize, of: usize, flags: &[&str]) {
        let total = |name: &str| self.report.total(name);
        assert_eq!((self.keys.len(), total("keys")), (matched, matched as u64), "{flags:?}");
        assert_eq!(total("permanent_keys") + total("volatile_keys") + total("expired_keys"), total("keys"), "{flags:?}");
        for table in ["types", "databases", "classes", "slots"] {
            let rows = self.report.table(table);
            for name in ["keys", "memory_bytes", "serialized_bytes", "elements", "permanent_keys", "expired_keys"] {
                assert_eq!(sum(&rows, name), total(name), "{flags:?}: {name} of {table}");
            }
        }
        for table in ["ttl_histogram", "size_histogram"] {
            assert_eq!(sum(&self.report.table(table), "memory_bytes"), total("memory_bytes"), "{flags:?}: {table}");
        }
        assert_eq!(sum(&self.report.table("ttl_histogram"), "keys"), total("keys"), "{flags:?}");
        assert_eq!(sum(&self.report.table("permanent_classes"), "keys"), total("permanent_keys"), "{flags:?}");
        assert_eq!(sum(&self.keys, "serialized_bytes"), total("serialized_bytes"), "{flags:?}");
        // The first line of the report says what was asked for, and how many keys it was.
        let first = self.report.run.text().lines().next().unwrap();
        assert!(first.starts_with(&format!("Filtered: {} of {} keys matched --", matched, of)), "{first}");
        for flag in flags.iter().filter(|flag| flag.starts_with("--") && **flag != "--as-of") {
            assert!(first.contains(flag), "{first}: {flag}");
        }
        assert!(self.stderr.contains(&format!("rdbscope: {matched} of {of} keys matched; ")), "{}", self.stderr);
    }
}

/// Holds a filter against what is true of each key by its server.
#[track_caller]
fn check(truth: &Truth, flags: &[&str], is: impl Fn(&TruthLine) -> bool) -> usize {
    let found = Filtered::of(&truth.dump, flags);
    let expected: BTreeSet<_> = truth.lines.iter().filter(|line| is(line)).map(TruthLine::place).collect();
    assert_eq!(found.names(), expected, "{flags:?}");
    found.adds_up(expected.len(), truth.lines.len(), flags);
    assert_ne!(expected.len(), truth.lines.len(), "{flags:?} asks for nothing");
    expected.len()
}

#[test]
fn by_type() {
    let truth = contracts();
    check(&truth, &["--type", "hash"], |key| key.key_type == "hash");
    check(&truth, &["--type", "zset,set"], |key| ["zset", "set"].contains(&&*key.key_type));
    check(&truth, &["--type", "list", "--type", "set"], |key| ["list", "set"].contains(&&*key.key_type));
}

#[test]
fn by_name() {
    let truth = contracts();
    let starts = |key: &TruthLine, text: &str| key.key.starts_with(text.as_bytes());
    check(&truth, &["--match", "cart:*"], |key| starts(key, "cart:"));
    check(&truth, &["--match", "cart:*", "--match", "order:*"], |key| starts(key, "cart:") || starts(key, "order:"));
    check(&truth, &["--match", "queue:????"], |_| false);
    check(&truth, &["--match", "queue:?????"], |key| key.key == b"queue:email");
    check(&truth, &["--match", "order:{shop-7}:[0-2]"], |key| {
        [&b"order:{shop-7}:0"[..], b"order:{shop-7}:1", b"order:{shop-7}:2"].contains(&&*key.key)
    });
    check(&truth, &["--regex", "profile"], |key| key.key.windows(7).any(|part| part == b"profile"));
    check(&truth, &["--regex", "^TMP_[0-9a-f]+$"], |key| {
        key.key.strip_prefix(b"TMP_").is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit))
    });
    check(&truth, &["--exclude", "prod:*"], |key| !starts(key, "prod:"));
    check(&truth, &["--exclude", "prod:*", "--exclude", "order:*"], |key| !starts(key, "prod:") && !starts(key, "order:"));
}

#[test]
fn by_lifetime() {
    let truth = contracts();
    // By the walk of the meta file, 1,971 of 3,257 have an expiry.
    assert_eq!(check(&truth, &["--permanent"], |key| key.expire_at_ms.is_none()), 1286);
    assert_eq!(check(&truth, &["--volatile"], |key| key.expire_at_ms.is_some()), 1971);
    check(&truth, &["--expired"], |_| false);
    for flags in [["--permanent", "--volatile"], ["--volatile", "--expired"]] {
        run(["keys", truth.dump.to_str().unwrap(), flags[0], flags[1]]).ended_with(2);
    }
}

/// Some keys had expired when the server loaded the dump, and at that moment.
#[test]
fn by_lifetime_at_a_moment() {
    let truth = zoo();
    let expiries: Vec<i64> = truth.lines.iter().filter_map(|line| line.expire_at_ms).collect();
    // Whatever the server loaded was still to expire.
    let moment = expiries.iter().min().unwrap() / 1000 - 1;
    let moment = moment.to_string();
    let of = |flag: &str| {
        let flags = [flag, "--as-of", &moment];
        (Filtered::of(&truth.dump, &flags), flags.map(str::to_string))
    };
    let all = truth.lines.len() + truth.meta.expired_on_load.len();
    assert_eq!(all as u64, truth.meta.keys_in_file.values().sum::<u64>());
    let (expired, flags) = of("--expired");
    assert_eq!(expired.names(), truth.meta.expired_on_load);
    expired.adds_up(truth.meta.expired_on_load.len(), all, &flags.each_ref().map(String::as_str));
    let (volatile, flags) = of("--volatile");
    volatile.adds_up(expiries.len(), all, &flags.each_ref().map(String::as_str));
    let (permanent, flags) = of("--permanent");
    permanent.adds_up(truth.lines.len() - expiries.len(), all, &flags.each_ref().map(String::as_str));
}

#[test]
fn by_database() {
    let truth = zoo();
    let in_file = |db: u64| truth.meta.keys_in_file[&db] as usize;
    let all = truth.meta.keys_in_file.values().sum::<u64>() as usize;
    for (flags, expected) in [
        (vec!["--db", "9"], in_file(9)),
        (vec!["--db", "1,9"], in_file(1) + in_file(9)),
        (vec!["--db", "1", "--db", "0"], in_file(1) + in_file(0)),
        (vec!["--db", "5"], 0),
    ] {
        Filtered::of(&truth.dump, &flags).adds_up(expected, all, &flags);
    }
}

#[test]
fn by_class() {
    let truth = contracts();
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let profile = |key: &TruthLine| {
        let parts: Vec<&[u8]> = key.key.split(|b| *b == b':').collect();
        parts.len() == 5
            && parts[0] == b"prod"
            && parts[1].strip_prefix(b"shop-").is_some_and(digits)
            && (parts[2], parts[3]) == (b"user", b"profile")
            && digits(parts[4])
    };
    // By its discovered name, and by the name that a contract gives it.
    let found = check(&truth, &["--class", "prod:shop-<digits>:user:profile:<digits>"], profile);
    assert_eq!(found, 500);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contracts.toml");
    std::fs::write(&file, "[[class]]\nname = \"profiles\"\npattern = \"prod:shop-<digits>:user:profile:<digits>\"\n").unwrap();
    let by_contract = ["--class", "profiles", "-c", file.to_str().unwrap()];
    assert_eq!(check(&truth, &by_contract, profile), 500);
    // A key of a registered class is not in the discovered one of the same shape, and the other way round.
    let gone = ["--class", "prod:shop-<digits>:user:profile:<digits>", "-c", file.to_str().unwrap()];
    assert_eq!(check(&truth, &gone, |_| false), 0);
    assert_eq!(check(&truth, &["--class", "profiles"], |_| false), 0);
    let queue = |key: &TruthLine| key.key == b"queue:sms" || key.key == b"queue:email";
    assert_eq!(check(&truth, &["--class", "queue:sms", "--class", "queue:email"], queue), 2);
}

/// A word of letters alone for a number.
fn word(n: usize) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'g')).collect()
}

/// 65 words in one place are one `<*>`, and keys are asked for by that name.
#[test]
fn by_a_class_whose_words_have_collapsed() {
    let mut body = vec![0xfe, 0];
    let keys: Vec<String> =
        (0..65).map(|n| format!("user:{}:cart", word(n))).chain((0..9).map(|n| format!("user:{}:wish", word(n)))).collect();
    for key in keys.iter().map(String::as_str).chain(["user:1:cart", "other:g:cart"]) {
        body.extend([&[0][..], &string(key.as_bytes()), &string(b"v")].concat());
    }
    let dump = TempDump::new(&dump(b"REDIS0010", &body));
    let classes = dump.report(&[]).table("classes");
    let mut names = column(&classes, "class");
    names.sort_unstable();
    assert_eq!(names, ["other:g:cart", "user:<*>:cart", "user:<*>:wish", "user:<digits>:cart"]);
    for (class, expected) in
        [("user:<*>:cart", 65), ("user:<*>:wish", 9), ("user:<digits>:cart", 1), ("user:<*>", 0), ("<*>:g:cart", 2)]
    {
        let flags = ["--class", class];
        Filtered::of(&dump.path(), &flags).adds_up(expected, 76, &flags);
    }
}

#[test]
fn by_memory_at_the_boundary() {
    let truth = contracts();
    let all = Filtered::of(&truth.dump, &[]).keys;
    let mut sizes: Vec<u64> = all.iter().map(|row| number(row, "memory_bytes")).collect();
    sizes.sort_unstable();
    let middle = sizes[sizes.len() / 2];
    for least in [middle, middle + 1, sizes[sizes.len() - 1], sizes[sizes.len() - 1] + 1] {
        let expected = sizes.iter().filter(|size| **size >= least).count();
        let flags = ["--min-memory", &least.to_string()];
        Filtered::of(&truth.dump, &flags).adds_up(expected, 3257, &flags);
    }
    let kilobyte = sizes.iter().filter(|size| **size >= 1024).count();
    Filtered::of(&truth.dump, &["--min-memory", "1KB"]).adds_up(kilobyte, 3257, &["--min-memory"]);
    let bad = run(["keys", truth.dump.to_str().unwrap(), "--min-memory", "1XB"]).ended_with(2);
    assert!(bad.stderr.contains("'1XB' is no size: write 512"), "{}", bad.stderr);
}

#[test]
fn all_that_are_given_must_hold() {
    let truth = contracts();
    let cart = |key: &TruthLine| key.key.starts_with(b"cart:{");
    let flags = ["--db", "0", "--type", "hash,set", "--match", "cart:{*", "--exclude", "*:items", "--volatile"];
    let found = check(&truth, &flags, |key| cart(key) && key.key.ends_with(b":coupon") && key.expire_at_ms.is_some());
    assert!(found > 50, "{found}");
    check(&truth, &["--type", "string", "--regex", ":[0-9]+$", "--permanent"], |key| {
        let number = key.key.rsplit(|b| *b == b':').next().unwrap();
        let ends = number.len() < key.key.len() && !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        ends && key.key_type == "string" && key.expire_at_ms.is_none()
    });
    check(&truth, &["--db", "1", "--permanent"], |_| false);
}

#[test]
fn a_filter_that_matches_nothing_leaves_headers() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let found = Filtered::of(&dump, &["--match", "nothing:*"]);
    found.adds_up(0, 3257, &["--match", "nothing:*"]);
    assert_eq!(found.report.run.text().lines().next(), Some("Filtered: 0 of 3257 keys matched --match nothing:*"));
    let whole = Report::of([&dump]);
    for (name, file) in found.report.files.iter().filter(|(name, _)| *name != "manifest.json") {
        let (header, rows) = read_csv(file);
        assert_eq!(header, read_csv(&whole.files[name]).0, "{name}");
        let rows_without_keys = match name.as_str() {
            "inputs.csv" => 1,
            "slot_skew.csv" => 2,
            "summary.csv" => rows.len(),
            _ => 0,
        };
        assert_eq!(rows.len(), rows_without_keys, "{name}");
    }
}

#[test]
fn names_that_cannot_be_compiled_are_refused() {
    let dump: PathBuf = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let refused = run(["report", dump.to_str().unwrap(), "--regex", "("]).ended_with(2);
    assert!(refused.stderr.contains("'(' is no regular expression"), "{}", refused.stderr);
    assert_eq!(refused.text(), "");
}
