//! `contract lint`: names against contracts without any dump.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Run, rdbscope};

fn lint(arguments: &[&str]) -> Run {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    Run::of(rdbscope().args(["contract", "lint", "-c"]).arg(example).args(arguments))
}

/// What is said of one name.
fn of(name: &str) -> (i32, Value) {
    let run = lint(&["--format", "json", name]);
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1);
    (run.code, all[0].clone())
}

fn rules(linted: &Value) -> String {
    let names: Vec<&str> = linted["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    names.join(" ")
}

#[test]
fn a_name_that_keeps_its_contract() {
    let (code, linted) = of("cart:{shop-7:1001}:items");
    assert_eq!(code, 0);
    assert_eq!((&linted["class"], &linted["owner"]), (&json!("cart-items"), &json!("cart-team")));
    assert_eq!(linted["findings"], json!([]));
    // The slot that the server gave for the key, see the truth of the fixtures; that of "shop-7:1001".
    assert_eq!((&linted["slot"], &linted["tag"]), (&json!(1831), &json!("shop-7:1001")));
    assert_eq!(
        linted["segments"],
        json!([
            { "segment": "cart", "value": "cart" },
            { "segment": "{<tenant>", "value": "{shop-7" },
            { "segment": "<user>}", "value": "1001}" },
            { "segment": "items", "value": "items" },
        ])
    );
}

#[test]
fn what_names_break() {
    for (name, code, expected) in [
        ("prod:shop-7:user:profile:1001", 0, ""),
        ("prod:shop-7:user:profile:", 1, "segment-empty segment-missing class-unregistered"),
        ("qa:shop-7:user:profile:1001", 1, "segment-unknown class-unregistered"),
        ("prod:user:profile:1001", 1, "segment-missing class-unregistered"),
        ("ark:verify:login:13800000002", 1, "personal-data"),
        ("cache:v1:user:7", 1, "version-old"),
        ("cache:v2:user:7", 0, ""),
        ("cache:v0:user:7", 1, "version-old class-unregistered"),
        ("order:shop-7:77", 1, "tag-differs class-unregistered"),
        ("order:{shop-7:78", 1, "braces-unbalanced segment-unknown class-unregistered"),
        ("Cart:{shop-7:1001}:items", 1, "name-uppercase class-unregistered"),
        ("x:y:1", 1, "class-unregistered name-abbreviated"),
        ("foo", 1, "name-no-namespace class-unregistered"),
    ] {
        let (found, linted) = of(name);
        assert_eq!((found, &*rules(&linted)), (code, expected), "{name}");
    }
}

#[test]
fn the_gate_is_set_by_severity() {
    assert_eq!(lint(&["--fail-on", "error", "foo"]).code, 0);
    assert_eq!(lint(&["--fail-on", "never", "ark:verify:login:13800000002"]).code, 0);
    assert_eq!(lint(&["--fail-on", "error", "ark:verify:login:13800000002"]).code, 1);
}

/// Runs `lint` with names on standard input.
fn piped(arguments: &[&str], input: &[u8]) -> (i32, String) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    let mut command = rdbscope();
    command.args(["contract", "lint", "-c"]).arg(example).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn names_from_standard_input() {
    let user = "prod:shop-7:user:profile:7: user-profile, <env> = prod, <tenant> = shop-7, <user> = 7, slot ";
    let (code, text) = piped(&[], b"prod:shop-7:user:profile:7\r\nprod:shop-7:user:profile:8");
    assert_eq!((code, text.lines().count()), (0, 2));
    assert!(text.starts_with(user), "{text}");
    let (code, text) = piped(&["-0"], b"prod:shop-7:user:profile:7\0a\nb\0");
    assert_eq!((code, text.starts_with(user)), (1, true));
    assert!(text.contains("\na\\nb: no class, slot ") && text.contains("\n  warning name-control: "), "{text}");
    assert_eq!(piped(&[], b""), (0, String::new()));
    assert_eq!(piped(&["--format", "json"], b""), (0, "[]\n".into()));
}
