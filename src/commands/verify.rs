//! `rdbscope verify`.

use std::fmt::Write as _;

use rdbscope::analyse::Options;
use rdbscope::recover::{self, Recovery};
use rdbscope::verify::{self, Verdict};

use super::{Exit, explain_change, explain_end, explain_recovery, open, print, scan_options};
use crate::cli::{Global, VerifyArgs};
use crate::progress::Progress;
use crate::terminal::{count_text, plural};

pub fn run(global: &Global, args: &VerifyArgs) -> Exit {
    let scan = scan_options(global, args.no_checksum);
    let options = Options { scan, ..Options::default() };
    let (dumps, mut exit) = open(global, &args.dumps, &options);
    for dump in &dumps {
        let progress = Progress::new(dump.input.progress_bytes(), global.quiet);
        let verdict = verify::verify(dump, scan, |advance| progress.advance(advance));
        let recovery = args.recover.then(|| recover::search(dump, &verdict.end, scan, |_| ()));
        drop(progress);
        if !verdict.is_ok() {
            exit = exit.max(Exit::Input);
        }
        exit = exit.max(explain_change(dump));
        explain_end(global, dump, &verdict.end);
        exit = exit.max(print(lines(&dump.name(), &verdict, recovery.as_ref()).as_bytes()));
        recovery.into_iter().for_each(|recovery| explain_recovery(&dump.name(), &recovery));
    }
    exit
}

/// One line for a sound dump, one for each fault of another.
fn lines(name: &str, verdict: &Verdict, recovery: Option<&Recovery>) -> String {
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
    let recovered = recovery.map_or_else(String::new, |recovery| format!(", {} recovered", count_text(recovery.keys())));
    let _ = writeln!(text, "{name}: {faults}, {keys} read{recovered}, checksum {checksum}");
    text
}
