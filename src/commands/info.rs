//! `rdbscope info`.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Mutex;

use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::input::Capture;
use rdbscope::key_text;
use rdbscope::measure::Fact;
use rdbscope::time;

use super::{Exit, explain, open, print, scan_options};
use crate::cli::{Global, InfoArgs};
use crate::progress::Progress;
use crate::terminal::{bytes_text, count_text};

pub fn run(global: &Global, args: &InfoArgs) -> Exit {
    let options = Options { scan: scan_options(global, false), ..Options::default() };
    let (dumps, mut exit) = open(global, std::slice::from_ref(&args.dump), &options);
    for (at, dump) in dumps.iter().enumerate() {
        // Of several in a folder or an archive.
        let mut text = if at > 0 { "\n".into() } else { String::new() };
        head(dump, &mut text);
        exit = exit.max(if args.full { full(global, dump, &options, &mut text) } else { tail(dump, &mut text) });
        exit = exit.max(print(text.as_bytes()));
    }
    exit
}

/// One line of the answer.
macro_rules! line {
    ($text:expr, $name:literal, $($value:tt)*) => {{
        // Writing to a String does not fail.
        let _ = write!($text, "{:<17}", $name);
        let _ = writeln!($text, $($value)*);
    }};
}

fn head(dump: &Dump, text: &mut String) {
    let head = &dump.head;
    line!(text, "file", "{}", dump.input.full_name());
    match dump.input.whole() {
        Some(bytes) => line!(text, "size", "{}", bytes_text(bytes.len() as u64)),
        None if dump.input.is_once() => line!(text, "size", "not known before it was read"),
        None => line!(text, "size", "{} as it is stored", bytes_text(dump.input.stored_bytes())),
    }
    line!(text, "format", "{}", String::from_utf8_lossy(&head.dialect().header()));
    let version =
        head.server_version().map_or_else(|| "version not recorded".into(), |v| key_text::escape(v.as_bytes()).into_owned());
    line!(text, "server", "{} {version}; measured as {}", head.product(), dump.model.server);
    match dump.model.snapshot {
        Some(snapshot) => {
            let at = time::rfc3339(snapshot.at_ms).unwrap_or_else(|| snapshot.at_ms.to_string());
            line!(text, "snapshot time", "{at} ({})", snapshot.source.name());
        }
        None => line!(text, "snapshot time", "unknown: the dump has no ctime, and {}", dump.input.undated_because()),
    }
    if let Some(bytes) = head.aux_number("used-mem").and_then(|n| u64::try_from(n).ok()) {
        line!(text, "used memory", "{} when the save began", bytes_text(bytes));
    }
    for (name, value) in &head.aux {
        line!(text, "aux", "{} = {}", key_text::escape(name), key_text::escape(value));
    }
    line!(text, "functions", "{} libraries before the first key", head.functions);
    for id in &head.module_aux {
        line!(text, "module data", "{id}, version {}", id.version());
    }
    if let Some((keys, expires)) = head.first_database {
        let keys = count_text(keys);
        line!(
            text,
            "first database",
            "{keys} keys, {} with an expiry, as the server counted when the save began",
            count_text(expires)
        );
    }
}

/// Without a walk: the last nine bytes are the end mark and the checksum, where nothing follows them.
fn tail(dump: &Dump, text: &mut String) -> Exit {
    let Some(bytes) = dump.input.whole() else {
        line!(text, "end", "not read: it is known once all was decoded; --full does that");
        return Exit::Done;
    };
    // The mark of a replication stream is no part of the dump.
    let bytes = match dump.input.capture() {
        Some(Capture::Mark(mark)) => bytes.strip_suffix(&mark).unwrap_or(bytes),
        _ => bytes,
    };
    // Commands follow the dump in an append-only file, whose end then says nothing.
    let is_aof = dump.head.aux("aof-preamble") == Some("1");
    let mut exit = Exit::Done;
    if dump.head.dialect().has_checksum() {
        match bytes.last_chunk::<9>() {
            Some([0xff, checksum @ ..]) => match u64::from_le_bytes(*checksum) {
                0 => line!(text, "end", "end mark in its place; no checksum (rdbchecksum no)"),
                stored => line!(text, "end", "end mark in its place; checksum {stored:016x}, not verified"),
            },
            _ if is_aof => line!(text, "end", "commands of an append-only file follow the dump"),
            _ => {
                exit = Exit::Input;
                line!(text, "end", "no end mark in the last 9 bytes: the file is truncated, or something follows the dump");
            }
        }
    } else {
        match bytes.last() {
            Some(0xff) => line!(text, "end", "end mark in its place; this version has no checksum"),
            _ => {
                exit = Exit::Input;
                line!(text, "end", "no end mark: the file is truncated, or something follows the dump");
            }
        }
    }
    let rest = (bytes.len() as u64).saturating_sub(dump.head.end);
    line!(text, "not read", "{} of keys and values; --full walks them", bytes_text(rest));
    exit
}

fn full(global: &Global, dump: &Dump, options: &Options, text: &mut String) -> Exit {
    let progress = Progress::new(dump.input.progress_bytes(), global.quiet);
    let workers = Mutex::new(Vec::new());
    let outcome = analyse::walk_dump(
        dump,
        options,
        &workers,
        || Nothing,
        |_| (),
        |(), advance| {
            progress.advance(advance);
            ControlFlow::Continue(())
        },
    );
    drop(progress);
    line!(text, "keys", "{}", count_text(outcome.passed.keys));
    line!(text, "records", "{}", bytes_text(outcome.passed.serialized_bytes));
    line!(text, "framing", "{}", bytes_text(outcome.passed.framing_bytes));
    line!(text, "uncompressed", "{}", bytes_text(outcome.end.bytes));
    line!(text, "checksum", "{}", outcome.end.checksum.name());
    line!(text, "after the end", "{}", bytes_text(outcome.trailing_bytes));
    explain(global, dump, &outcome, None)
}

/// Facts are only counted, which every walk does.
struct Nothing;

impl PieceSink for Nothing {
    fn fact(&mut self, _fact: &Fact<'_>) {}
}
