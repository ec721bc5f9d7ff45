//! A stream in windows gives what the whole dump gives, also where it is damaged: records, faults, checksums, what follows.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;
#[path = "support/writer.rs"]
mod writer;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use rdbscope::analyse::{self, Dump, Options};
use rdbscope::input::{Input, MOST_WINDOW_BYTES, Rest, StreamWindows, Whole, Window, Windows};
use rdbscope::rdb::{Frame, RecordHead, RecordTail, Sink};
use rdbscope::scan::{self, Head, ScanEnd, ScanOptions};
use rdbscope::{Error, ErrorKind};
use writer::Random;

/// What is seen of a dump, in file order.
#[derive(Default)]
struct Seen(Vec<(u64, u64, Vec<u8>, u64)>);

impl Sink for Seen {
    fn frame(&mut self, _frame: Frame<'_>, bytes: u64) {
        self.0.push((0, u64::MAX, Vec::new(), bytes));
    }

    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        self.0.push((head.offset, head.db, head.key.to_vec(), tail.serialized_bytes));
    }
}

type Read = (Vec<(u64, u64, Vec<u8>, u64)>, ScanEnd);

fn read(windows: &mut dyn Windows, bytes: &[u8], piece_bytes: u64) -> Read {
    let head = Head::read(bytes).unwrap();
    let mut all = Vec::new();
    let work = |(): &mut (), piece: &scan::Piece<'_>| {
        let mut seen = Seen::default();
        let _ = piece.walk(&mut seen);
        seen.0
    };
    let mut collect = |seen: Vec<(u64, u64, Vec<u8>, u64)>, _: u64| {
        all.extend(seen);
        ControlFlow::Continue(())
    };
    let options = ScanOptions { piece_bytes, ..ScanOptions::default() };
    let mut end = scan::scan_windows(windows, &head, options, &Mutex::new(Vec::new()), || (), work, &mut collect);
    // What a window grew to depends on windows.
    end.window_grown_to = None;
    (all, end)
}

fn is_refused(fault: &Error) -> bool {
    fault.to_string().contains("streams are read in windows of at most")
}

#[track_caller]
fn same(bytes: &[u8], window: usize, piece_bytes: u64, what: &str) {
    if Head::read(bytes).is_err() {
        return;
    }
    let whole = read(&mut Whole::new(bytes), bytes, 1 << 20);
    let stream = || StreamWindows::new(Box::new(Cursor::new(bytes.to_vec())), window);
    let mut windowed = read(&mut stream(), bytes, piece_bytes);
    if windowed.1.fault.as_ref().is_some_and(is_refused) {
        // What no window may hold is not read on to the end of the stream, where it would have turned out to be missing.
        match whole.1.fault.as_ref().map(|fault| &fault.detail().kind) {
            Some(ErrorKind::Truncated { needed, .. }) => assert!(*needed > MOST_WINDOW_BYTES - 100_000, "{what}: {needed}"),
            Some(ErrorKind::Zeros { .. }) => {}
            fault => panic!("{what}: {fault:?}"),
        }
        windowed.1.fault.clone_from(&whole.1.fault);
    }
    assert_eq!(windowed.1, whole.1, "{what}, windows of {window}");
    assert!(windowed.0 == whole.0, "{what}, windows of {window}: {} and {}", windowed.0.len(), whole.0.len());
}

/// One to three changes: bytes, bits, cuts, runs, insertions.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.between(1, 3) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(5) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at.max(9)),
            3 => {
                let end = bytes.len().min(at + random.below(40) as usize);
                bytes[at..end].fill(if random.percent(50) { 0 } else { 0xff });
            }
            _ => {
                let n = random.below(20) as usize;
                let more = random.bytes(n);
                bytes.splice(at..at, more);
            }
        }
    }
}

fn small_dumps() -> Vec<(String, Vec<u8>)> {
    let all = support::all_dumps().into_iter().map(|path| (support::name(&path), std::fs::read(path).unwrap()));
    all.filter(|(_, bytes)| bytes.len() < 40_000).collect()
}

#[test]
fn every_size_of_a_window() {
    for (name, bytes) in small_dumps().into_iter().filter(|(_, bytes)| bytes.len() < 3000) {
        for window in 64..200 {
            same(&bytes, window, 1 + window as u64 * 3, &name);
        }
    }
}

/// Windows that may grow to a thousand bytes.
struct Limited(StreamWindows);

impl Windows for Limited {
    fn next(&mut self, passed: usize, wanted: usize) -> Window<'_> {
        assert!(wanted <= 1000, "{wanted} bytes wanted");
        self.0.next(passed, wanted)
    }

    fn rest(&mut self, passed: usize) -> Rest {
        self.0.rest(passed)
    }

    fn most_bytes(&self) -> u64 {
        1000
    }
}

/// A collection tells of its elements one by one, and is refused when it comes to the limit; what stands before it is read.
#[test]
fn a_record_that_grows_beyond_the_limit() {
    for (elements, is_too_large) in [(20, false), (40, true), (4000, true)] {
        let element = support::string(&[b'x'; 30]);
        let list = [&[1, 1, b'l', 0x80][..], &(elements as u32).to_be_bytes(), &element.repeat(elements)].concat();
        let bytes = support::dump(b"REDIS0010", &[&[0xfe, 0, 0, 1, b'a', 1, b'v'][..], &list, &[0, 1, b'z', 1, b'v']].concat());
        let mut windows = Limited(StreamWindows::new(Box::new(Cursor::new(bytes.clone())), 200));
        let (seen, end) = read(&mut windows, &bytes, 1000);
        let keys = seen.iter().filter(|(_, db, ..)| *db != u64::MAX).count();
        assert_eq!((keys, end.fault.as_ref().is_some_and(is_refused)), (if is_too_large { 1 } else { 3 }, is_too_large));
        assert_eq!(end.stored_bytes, if is_too_large { 16 } else { bytes.len() as u64 });
    }
}

/// What a declared length says of the bytes that are left does not depend on how many of them are in the window.
#[test]
fn absurd_counts() {
    for bits in [20u32, 40, 47, 48, 60, 63] {
        let record = [&[1, 1, b'l', 0x81][..], &(1u64 << bits).to_be_bytes(), &[1, b'x'].repeat(300)].concat();
        let bytes = support::dump(b"REDIS0010", &[&[0xfe, 0, 0, 1, b'a', 1, b'v'][..], &record].concat());
        for window in [64, 100, 500, 5000] {
            same(&bytes, window, 1000, &format!("2^{bits} elements"));
        }
    }
}

#[test]
fn damaged_dumps() {
    let dumps = small_dumps();
    assert!(dumps.len() > 10);
    let mut random = Random::new(7);
    for round in 0..4000 {
        let (name, bytes) = &dumps[random.below(dumps.len() as u64) as usize];
        let mut bytes = bytes.clone();
        damage(&mut bytes, &mut random);
        let most = if random.percent(50) { 200 } else { 20_000 };
        let window = 64 + random.below(most) as usize;
        same(&bytes, window, 1 + random.below(5000), &format!("round {round}, {name}"));
    }
}

/// Whatever becomes of what a dump is stored in: an end in time, and never more keys than there were.
#[test]
fn damaged_forms() {
    let bytes = std::fs::read(support::fixtures().join("truth/redis-7.0.15-lfu.rdb")).unwrap();
    let whole = read(&mut Whole::new(&bytes), &bytes, 1 << 20).0.len();
    let members: [(&str, u64, &[u8]); 2] = [("nodes.conf", 5, b"none"), ("dump.rdb", 7, &bytes)];
    let forms = [
        ("gzip", stored::gzip(&bytes)),
        ("zstd", stored::zstd(&bytes)),
        ("lz4", stored::lz4(&bytes)),
        ("bzip2", stored::bzip2(&bytes)),
        ("xz", stored::xz(&bytes)),
        ("envelope", stored::envelope(&bytes)),
        ("tar", stored::tar(&members)),
        ("tar.zst", stored::zstd(&stored::tar(&members))),
        ("capture", [&b"$EOF:0123456789abcdef0123456789abcdef01234567\r\n"[..], &bytes].concat()),
    ];
    let options = Options::default();
    let mut random = Random::new(11);
    let mut opened = 0;
    for round in 0..300 {
        for (form, sound) in &forms {
            let mut damaged = sound.clone();
            damage(&mut damaged, &mut random);
            let Ok(input) = Input::in_memory(Path::new("damaged"), damaged) else { continue };
            let Ok(dump) = Dump::new(input, &options) else { continue };
            opened += 1;
            let (_, outcomes) = analyse::census(&[dump], &options, |_| ());
            assert!(outcomes[0].passed.keys as usize <= whole, "round {round}, {form}");
        }
    }
    assert!(opened > 1000, "{opened} could be opened");
}
