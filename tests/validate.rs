//! `contract validate`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::path::Path;

use support::run;
use tempfile::TempDir;

#[test]
fn a_file_without_mistakes() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    let run = run([Path::new("contract"), Path::new("validate"), &example]).ok();
    assert!(run.text().ends_with("contracts.toml: ok, 16 classes\n"), "{}", run.text());
    assert_eq!(run.stderr, "");
}

#[test]
fn every_mistake_with_line_column_and_mend() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    let text = "[[class]]\nname = \"a\"\npattern = \"x:<slug>\"\nowners = \"t\"\n[[class]]\nname = \"b\"\npattern = \"x:<base64url>\"\nttl = \"5m\"\n";
    fs::write(&path, text).unwrap();
    let run = run([Path::new("contract"), Path::new("validate"), &path]).ended_with(2);
    assert_eq!(run.text(), "");
    let lines: Vec<&str> = run.stderr.lines().map(|line| line.split_once("c.toml:").unwrap().1).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("4:1: unknown field `owners`") && lines[0].ends_with("did you mean `owner`?"), "{}", lines[0]);
    assert!(lines[1].starts_with("7:11: the pattern of 'b' and that of 'a' in line 3 both take the key 'x:0'"), "{}", lines[1]);
    assert_eq!(lines[2], "8:7: ttl '5m' is neither \"permanent\" nor a range: write ttl = { max = \"5m\" }");
}

#[test]
fn a_file_that_is_not_there() {
    assert!(run(["contract", "validate", "no-such-file.toml"]).ended_with(2).stderr.contains("no-such-file.toml"));
}
