//! `contract discover`: a draft that can be read, that takes every key, and that a baseline accepts.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rdbscope::contract::{Contracts, Ttl};
use support::truth::Truth;
use support::{Run, all_dumps, column, fixtures, rdbscope, read_csv, run};
use tempfile::TempDir;

fn discover(dump: &Path, to: &Path) -> Run {
    run([Path::new("-q"), Path::new("contract"), Path::new("discover"), dump, Path::new("-o"), to])
}

fn check(dump: &Path, contracts: &Path, arguments: &[&str]) -> Run {
    Run::of(rdbscope().arg("-q").arg("check").arg(dump).arg("-c").arg(contracts).args(arguments))
}

#[test]
fn a_draft_of_any_dump_takes_every_key_and_breaks_only_what_is_to_be_agreed() {
    let folder = TempDir::new().unwrap();
    let (draft, known) = (folder.path().join("c.toml"), folder.path().join("known.json"));
    for dump in all_dumps() {
        discover(&dump, &draft).ok();
        run([Path::new("contract"), Path::new("validate"), &draft]).ok();
        let run = check(&dump, &draft, &["--format", "csv"]);
        let (_, rows) = read_csv(&run.stdout);
        let kinds: BTreeSet<&str> = column(&rows, "kind").into_iter().collect();
        let expected = BTreeSet::from(["contract", "lifetime", "name", "personal-data", "version"]);
        assert!(kinds.is_subset(&expected), "{dump:?}: {kinds:?}");
        let of_contract: BTreeSet<&str> = rows.iter().filter(|row| row["kind"] == "contract").map(|row| &*row["rule"]).collect();
        assert_eq!(of_contract, BTreeSet::from(["contract-todo"]), "{dump:?}");
        check(&dump, &draft, &["--write-baseline", known.to_str().unwrap()]).ok();
        check(&dump, &draft, &["--baseline", known.to_str().unwrap(), "--fail-on", "note"]).ok();
    }
}

#[test]
fn what_a_draft_says_of_known_data() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let folder = TempDir::new().unwrap();
    let draft = folder.path().join("c.toml");
    discover(&dump, &draft).ok();
    let text = fs::read_to_string(&draft).unwrap();
    assert!(text.contains("\nenv = [\"prod\", \"staging\"]\nshop = \"shop-<digits>\"\n"), "{}", &text[..600]);
    assert!(text.contains("\n[limits]\ndatabases = [0]\n"));
    // Every line that tells of a breach is a comment, and no phone number is in it.
    assert!(text.contains("\n# ttl-lost: 47 of 501 keys never expire, 9.4 %\n"));
    assert!(text.contains("\n# personal-data: 201 of 201 keys: phone number\n"));
    assert!(text.contains("\n# e.g. ark:verify:login:+86***01\n"), "the smallest key, masked");
    assert!(!text.contains("13800000002"));
    let contracts = Contracts::parse(&text).unwrap();
    let class = |name: &str| contracts.classes.iter().find(|class| class.name == name).unwrap();
    let max = |name: &str| match class(name).ttl {
        Some(Ttl::Range { min: None, max: Some(max) }) => max.as_secs(),
        other => panic!("{name}: {other:?}"),
    };
    // The longest times left are 150.7 s, 2099 s and 3660 s by the clock of the dump; the next figures are 3, 45 and 90 minutes.
    assert_eq!([max("user-profile"), max("session-sess"), max("rate-user")], [180, 2700, 5400]);
    assert_eq!((class("order").ttl, class("order").budget.unwrap().keys), (Some(Ttl::Permanent), Some(400)));
    assert_eq!(class("user-profile").types, ["string", "hash"]);
    assert_eq!(class("cart-items").pattern, "cart:{<shop>:<digits>}:items");
    assert_eq!(class("rest").pattern, "<**>");
    assert!(contracts.classes.iter().all(|class| class.owner.as_deref() == Some("TODO")));
    // Comments count what the server has.
    let truth = Truth::beside(&dump);
    let mut keys: BTreeMap<usize, u64> = BTreeMap::new();
    for line in &truth.lines {
        *keys.entry(contracts.class_of(&line.key).unwrap()).or_default() += 1;
    }
    for (at, class) in contracts.classes.iter().enumerate().filter(|(_, class)| class.name != "rest") {
        let entry = text.split("[[class]]").nth(at + 1).unwrap();
        let n = keys[&at];
        let plural = if n == 1 { "1 key".to_string() } else { format!("{n} keys") };
        assert!(entry.contains(&format!("\n# {plural}, ")), "{}: {n} in {entry}", class.name);
    }
}

#[test]
fn the_same_draft_however_the_dump_is_cut() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let text = |arguments: &[&str]| Run::of(rdbscope().args(["contract", "discover"]).arg(&dump).args(arguments)).ok().stdout;
    let whole = text(&["--threads", "1"]);
    assert!(text(&["--threads", "3"]) == whole && text(&["--piece-bytes", "3000"]) == whole);
}

#[test]
fn mistakes_of_the_command_line() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    let with = run([Path::new("contract"), Path::new("discover"), &dump, Path::new("-c"), &example]).ended_with(2);
    assert!(with.stderr.contains("leave out --contracts"));
    run([Path::new("contract"), Path::new("discover"), &dump, Path::new("-o"), &dump]).ended_with(4);
    run(["contract", "discover", "no-such.rdb"]).ended_with(3);
}
