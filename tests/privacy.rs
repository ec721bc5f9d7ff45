//! Personal data in names: masked in reports, exact in `keys` unless asked otherwise, and hashed so that joins still work.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use rdbscope::privacy::{Names, Sensitive, find};
use serde_json::Value;
use support::truth::Truth;
use support::{Report, Run, TempDump, dump, fixtures, rdbscope, run, string};
use tempfile::TempDir;

fn contracts() -> PathBuf {
    fixtures().join("truth/redis-7.4.1-contracts.rdb")
}

/// The phone numbers in names of keys, by the server's own list.
fn numbers() -> Vec<String> {
    let numbers: Vec<String> = Truth::beside(&contracts())
        .lines
        .iter()
        .filter_map(|line| String::from_utf8(line.key.clone()).ok()?.strip_prefix("ark:verify:login:").map(str::to_string))
        .filter(|number| number.bytes().filter(u8::is_ascii_digit).count() >= 11)
        .collect();
    assert_eq!(numbers.len(), 201);
    numbers
}

/// Everything that a report writes, as text.
fn everything(report: &Report) -> String {
    let files = report.files.values().map(|file| String::from_utf8(file.clone()).unwrap()).collect::<Vec<_>>();
    [&files.join("\n"), report.run.text(), &report.run.stderr].concat()
}

#[test]
fn no_report_shows_a_whole_phone_number() {
    let dump = contracts();
    // Every key that can be listed is: large lists, and a filter that leaves little else.
    let of = |more: &[&str]| {
        let lists = [dump.to_str().unwrap(), "--top", "5000", "--permanent-limit", "5000"];
        let report = Report::of(lists.iter().chain(more));
        assert_eq!(report.run.code, 0);
        everything(&report)
    };
    for filter in [&[][..], &["--match", "ark:verify:*"]] {
        let masked = of(filter);
        let whole: Vec<String> = numbers().into_iter().filter(|number| masked.contains(number.trim_start_matches('+'))).collect();
        assert_eq!(whole, [""; 0]);
        // They are there all the same: the first 3 characters and the last 2.
        assert!(masked.contains("ark:verify:login:138***02") && masked.contains("ark:verify:login:+86***01"));
    }
    let shown = of(&["--show-sensitive", "--match", "ark:verify:*"]);
    let hidden: Vec<String> = numbers().into_iter().filter(|number| !shown.contains(number)).collect();
    assert_eq!(hidden, [""; 0]);
    assert!(!shown.contains("***"));
}

#[test]
fn a_filter_that_names_a_number_is_masked_as_well() {
    let number = numbers().remove(1);
    let report = Report::of([contracts().to_str().unwrap(), "--match", &format!("ark:verify:login:{number}")]);
    assert_eq!(report.total("keys"), 1);
    let all = everything(&report);
    assert!(!all.contains(&number), "{all}");
}

#[test]
fn keys_are_exact() {
    let keys = run(["keys", contracts().to_str().unwrap()]).ok();
    let hidden: Vec<String> = numbers().into_iter().filter(|number| !keys.text().contains(number)).collect();
    assert_eq!(hidden, [""; 0]);
    assert!(keys.stderr.contains("names are exact, personal data in them included"), "{}", keys.stderr);
}

fn rows(run: &Run) -> Vec<Value> {
    run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn b64(row: &Value) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(row["key_b64"].as_str().unwrap()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_mask_covers_every_form_of_a_name() {
    let keys = run(["keys", contracts().to_str().unwrap(), "--mask", "--format", "jsonl"]).ok();
    assert!(keys.stderr.contains("what looks like personal data in names is masked"), "{}", keys.stderr);
    let rows = rows(&keys);
    assert_eq!(rows.len(), 3257);
    let masked: Vec<&Value> = rows.iter().filter(|row| row["key"].as_str().unwrap().contains("***")).collect();
    assert_eq!(masked.len(), 203 - 1, "201 numbers, and one in a misspelt class");
    for number in numbers() {
        let number = number.trim_start_matches('+').to_string();
        assert!(!keys.text().contains(&number), "{number}");
        assert!(rows.iter().all(|row| !b64(row).contains(&number)), "{number}");
    }
    // A word that is personal data stays in the shape, which therefore is masked too.
    let address = "s:bob.smith@example.com.x@y:a";
    let token = "t:ghp_abcdefghijklmnopqrst";
    let body = [address, token].map(|key| [&[0][..], &string(key.as_bytes()), &string(b"v")].concat()).concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &[&[0xfe, 0][..], &body].concat()));
    let masked = dump.keys_json(&["--mask", "--columns", "key,shape,key_b64"]);
    for row in &masked {
        for text in [row["key"].as_str().unwrap(), row["shape"].as_str().unwrap(), &b64(row)] {
            assert!(!text.contains("bob.smith@example") && !text.contains("abcdefghijklm"), "{row}");
        }
    }
}

struct Redacted {
    run: Run,
}

fn redact(dump: &std::path::Path, secret: &[u8]) -> Redacted {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, secret).unwrap();
    let run = Run::of(rdbscope().arg("keys").arg(dump).args(["--format", "jsonl", "--redact"]).arg(&file));
    Redacted { run }
}

impl Redacted {
    fn names(&self) -> Vec<String> {
        rows(&self.run).iter().map(|row| row["key"].as_str().unwrap().to_string()).collect()
    }
}

const SECRET: &[u8] = b"sixteen bytes at least";

#[test]
fn redaction_keeps_joins_and_hides_identifiers() {
    let keys = [
        "user:1001:profile",
        "cart:{shop-7:1001}:items",
        "user:1002:profile",
        "user:1001",
        "sms:13800000002",
        "u:bob@example.com",
    ];
    let body = keys.map(|key| [&[0][..], &string(key.as_bytes()), &string(b"v")].concat()).concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &[&[0xfe, 0][..], &body].concat()));
    let first = redact(&dump.path(), SECRET);
    assert_eq!(first.run.code, 0, "{}", first.run.stderr);
    assert!(first.run.stderr.contains("identifiers in names are hashed; words stay"), "{}", first.run.stderr);
    let names = first.names();
    let id = names[3].strip_prefix("user:").unwrap();
    assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    assert_eq!(names[0], format!("user:{id}:profile"));
    assert!(names[1].starts_with("cart:{shop-") && names[1].ends_with(&format!(":{id}}}:items")), "{}", names[1]);
    assert!(names[2].starts_with("user:") && names[2] != names[0]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), keys.len());
    for part in ["1001", "1002", "13800000002", "bob", "example"] {
        assert!(!first.run.text().contains(part), "{part}");
        assert!(rows(&first.run).iter().all(|row| !b64(row).contains(part)), "{part}");
    }
    // Deterministic, and another secret gives other hashes.
    assert_eq!(redact(&dump.path(), SECRET).run.stdout, first.run.stdout);
    // An editor's newline is no part of the secret.
    assert_eq!(redact(&dump.path(), &[SECRET, b"\n"].concat()).run.stdout, first.run.stdout);
    let other = redact(&dump.path(), b"another secret, as long").names();
    assert!(names.iter().zip(&other).all(|(a, b)| a != b), "{other:?}");
}

#[test]
fn every_number_of_a_real_dump_is_hidden() {
    let found = redact(&contracts(), SECRET);
    assert_eq!(found.names().len(), 3257);
    for number in numbers() {
        assert!(!found.run.text().contains(number.trim_start_matches('+')), "{number}");
    }
    // Equal keys of two dumps stay equal.
    let unique: BTreeSet<String> = found.names().into_iter().collect();
    assert_eq!(unique.len(), 3257);
}

#[test]
fn a_secret_that_can_be_guessed_is_refused() {
    for secret in [&b""[..], b"short", b"fifteen bytes..", b"fifteen bytes..\n\n\n"] {
        let refused = redact(&contracts(), secret).run.ended_with(2);
        assert!(refused.stderr.contains("a secret needs 16 bytes or more"), "{}", refused.stderr);
        assert_eq!(refused.text(), "");
    }
    let missing = run(["keys", contracts().to_str().unwrap(), "--redact", "/nonexistent/secret"]).ended_with(2);
    assert_eq!(missing.text(), "");
    let both = run(["keys", contracts().to_str().unwrap(), "--mask", "--redact", "x"]).ended_with(2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[track_caller]
fn is(text: &str, expected: Option<Sensitive>) {
    let key = format!("a:{text}:b");
    let found = find(key.as_bytes());
    let kinds: Vec<_> = found.iter().map(|(range, kind)| (&key[range.clone()], *kind)).collect();
    assert_eq!(kinds, expected.map(|kind| (text, kind)).into_iter().collect::<Vec<_>>(), "{text}");
}

/// Luhn, by hand: from the right every second digit is doubled (less 9 above 9), and the sum is a multiple of 10.
#[test]
fn numbers_of_cards() {
    // 4: 8, then 1 2 1 2 … : eight doubled ones are 8 + 7 * 2 = 22, eight plain ones 8 * 1 = 8: 30.
    is("4111111111111111", Some(Sensitive::Card));
    is("4111111111111112", None);
    // 5500 0000 0000 0004: doubled 5 is 1, plain 5 is 5, plain 4 is 4: 10.
    is("5500000000000004", Some(Sensitive::Card));
    is("5500-0000-0000-0004", Some(Sensitive::Card));
    is("5500000000000005", None);
    // 340000000000009, fifteen digits: plain 3, doubled 4 is 8, plain 9: 20.
    is("340000000000009", Some(Sensitive::Card));
    is("340000000000008", None);
    // 6200000000000005: doubled 6 is 3, plain 2, plain 5: 10. UnionPay has up to nineteen digits.
    is("6200000000000005", Some(Sensitive::Card));
    // Nineteen: plain 6, doubled 2 is 4: 10 with nothing more.
    is("6200000000000000000", Some(Sensitive::Card));
    is("6200000000000000001", None);
    // 3000000000000004 passes Luhn (plain from the left is doubled: 6, and 4: 10), yet nobody issues it.
    is("3000000000000004", None);
}

/// GB 11643, by hand: weights 7 9 10 5 8 4 2 1 6 3 7 9 10 5 8 4 2, the sum modulo 11 picks from `10X98765432`.
#[test]
fn identity_numbers() {
    // 11010519491231002: 7+9+0+5+0+20+2+9+24+27+7+18+30+5+0+0+4 = 167, and 167 modulo 11 is 2: X.
    is("11010519491231002X", Some(Sensitive::Identity));
    is("11010519491231002x", Some(Sensitive::Identity));
    is("110105194912310021", None);
    // 11010119900101001: 7+9+0+5+0+4+2+9+54+0+0+9+0+5+0+0+2 = 106, and 106 modulo 11 is 7: 5.
    is("110101199001010015", Some(Sensitive::Identity));
    is("110101199001010016", None);
    // Month 13: 7+9+0+5+0+4+2+9+54+0+7+27+0+5+0+0+2 = 131, and 131 modulo 11 is 10: 2. The check digit is right, the date is none.
    is("110101199013010012", None);
}

#[test]
fn other_personal_data() {
    is("13800000002", Some(Sensitive::Phone));
    is("8613800000002", Some(Sensitive::Phone));
    is("+8613800000002", Some(Sensitive::Phone));
    is("+14155550100", Some(Sensitive::Phone));
    is("138-0000-0002", Some(Sensitive::Phone));
    is("12800000002", None);
    is("1380000000", None);
    is("bob.smith@example.com", Some(Sensitive::Email));
    is("bob@localhost", None);
    is("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123", Some(Sensitive::Token));
    is("ghp_abcdefghijklmnop1234", Some(Sensitive::Token));
    is("1796043305722", None);
    is("550e8400-e29b-41d4-a716-446655440000", None);
    is("d41d8cd98f00b204e9800998ecf8427e", None);
}

#[test]
fn a_short_part_is_masked_whole() {
    // Three characters in front and two behind would be all of it.
    let names = Names::Masked;
    assert_eq!(names.of(b"u:a@b.cc"), &b"u:a@b***cc"[..]);
    assert_eq!(names.of(b"u:13800000002"), &b"u:138***02"[..]);
}
