//! `rdbscope verify`.

use std::fmt::Write as _;

use rdbscope::analyse::Options;
use rdbscope::scan::ScanOptions;
use rdbscope::verify::{self, Verdict};

use super::{Exit, explain_end, open, print};
use crate::cli::{Global, VerifyArgs};
use crate::progress::Progress;
use crate::terminal::plural;

pub fn run(global: &Global, args: &VerifyArgs) -> Exit {
    let default = ScanOptions::default();
    let piece_bytes = global.piece_bytes.unwrap_or(default.piece_bytes);
    let scan = ScanOptions { piece_bytes, checksum: !args.no_checksum };
    let (dumps, mut exit) = open(global, &args.dumps, &Options::default());
    for dump in &dumps {
        let progress = Progress::new(dump.input.bytes().len() as u64, global.quiet);
        let verdict = verify::verify(dump, scan, |advance| progress.advance(advance));
        drop(progress);
        if !verdict.is_ok() {
            exit = exit.max(Exit::Input);
        }
        explain_end(global, dump, &verdict.end);
        exit = exit.max(print(lines(&dump.name(), &verdict).as_bytes()));
    }
    exit
}

/// One line for a sound dump, one for each fault of another.
fn lines(name: &str, verdict: &Verdict) -> String {
    let keys = plural(verdict.keys, "key", "keys");
    let checksum = verdict.end.checksum.name();
    if verdict.is_ok() {
        return format!("{name}: ok, {keys}, checksum {checksum}\n");
    }
    let mut text = String::new();
    // Writing to a String does not fail.
    for fault in verdict.first.iter().chain(&verdict.end.fault) {
        let _ = writeln!(text, "{name}: {fault}");
    }
    let faults = plural(verdict.faults + u64::from(verdict.end.fault.is_some()), "fault", "faults");
    let _ = writeln!(text, "{name}: {faults}, {keys} read, checksum {checksum}");
    text
}
