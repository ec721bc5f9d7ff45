//! Memory figures against what servers answered, key by key, and their sum against `used_memory`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

#[path = "support/accuracy.rs"]
#[allow(dead_code)]
mod accuracy;

use accuracy::{Accuracy, misses};
use support::{Report, fixtures};

fn every_dump() -> Vec<Accuracy> {
    let all = accuracy::all(&fixtures().join("truth"));
    assert!(all.len() >= 25, "fixtures are missing");
    all
}

#[test]
fn every_key_of_every_fixture() {
    let mut failures = Vec::new();
    for dump in every_dump() {
        failures.extend(misses(&dump.keys, 0.0).into_iter().map(|miss| format!("{}: {miss}", dump.name)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn keys_and_tables_add_up_to_used_memory() {
    for dump in every_dump() {
        // Module values are in the server's figure and not in ours.
        let Some(used) = dump.used.filter(|_| !dump.name.contains("modules") && !dump.name.contains("vectors")) else { continue };
        let mut args = vec![dump.path.to_str().unwrap()];
        if dump.options.server.allocator.is_some() {
            args.extend(["--allocator", "libc"]);
        }
        if dump.options.server.cluster == Some(true) {
            args.push("--cluster");
        }
        let report = Report::of(&args);
        let ours = report.total("memory_bytes") - report.total("expired_memory_bytes") + report.total("overhead_bytes");
        let allowed = (used / 100).max(256 << 10);
        assert!(ours.abs_diff(used) <= allowed, "{}: keys and tables take {ours}, the server {used}", dump.name);
    }
}
