//! Looks beyond a fault for records that follow one another to the end mark, or to the next fault.
//!
//! Nothing marks where a record begins, so one is taken for found only where a chain of records follows that pass every test that can be
//! thought of (see `strict`), each to its last element. What a chain begins with may yet be no record: a part of a value that looks like
//! one, or a key without the expiry in front of it. Nor can what is in front of a fault be relied on: a length that is damaged may give parts of
//! a value for records. Both are left out.

mod strict;

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use crate::analyse::{self, Advance, Dump, Options, Outcome};
use crate::census::Census;
use crate::error::Error;
use crate::rdb::{Dialect, UNKNOWN_DB, Walker};
use crate::scan::guess::{self, Beginnings};
use crate::scan::{self, Piece, ScanEnd, ScanOptions, Stretch};
use strict::{Last, Strict};

/// Records at the beginning of a chain that are left out, and in front of a further fault. With one, 68 keys of 20 million that were
/// recovered in 110,000 broken dumps were not in the original; with two, 8; with four, none (`examples/recovery.rs`).
const LEFT_OUT: usize = 4;

/// Most stretches that are looked for in one dump: more faults than that are no accident.
const MOST_STRETCHES: usize = 10_000;

/// Bytes that a chain is followed at first; four times as many each time that it goes on.
const FIRST_WINDOW: u64 = 64 << 10;

/// Most strings that are looked at in the search, for each byte behind the fault, and beside that.
const MOST_COST: (u64, u64) = (16, 64 << 20);

/// Cost of a try.
const COST_OF_TRY: u64 = 16;

/// Bytes that follow the end mark of a dump that was captured from a replication stream.
const STREAM_MARK: usize = 40;

/// What became of the bytes behind the first fault of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// What was recovered, in file order.
    pub stretches: Vec<Stretch>,
    /// What was not, in file order.
    pub skipped: Vec<Range<u64>>,
    /// Where the search would begin, in a stream: what has passed is gone, and a file is needed.
    pub needs_file: Option<u64>,
    /// The search was broken off: there was too much that looks like records.
    pub gave_up: bool,
}

impl Recovery {
    /// Keys that were recovered.
    pub fn keys(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.keys).sum()
    }

    /// Bytes that were skipped.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped.iter().map(|range| range.end - range.start).sum()
    }
}

/// Searches the records behind the fault that ended the scan of a dump, and hands each stretch to `found` in file order. Nothing is searched where
/// all records were read: behind a checksum that does not match, say.
pub fn search(dump: &Dump, end: &ScanEnd, options: ScanOptions, mut found: impl FnMut(&Stretch)) -> Recovery {
    let mut recovery = Recovery::default();
    if end.fault.is_none() || end.is_whole {
        return recovery;
    }
    let Some(bytes) = dump.input.whole() else {
        recovery.needs_file = Some(end.stored_bytes);
        return recovery;
    };
    let len = bytes.len() as u64;
    let mut search = Search {
        bytes,
        dump,
        options: ScanOptions { checksum: false, ..options },
        beginnings: Beginnings::new(&dump.head.format),
        at: end.stored_bytes.saturating_add(1),
        budget: (len.saturating_sub(end.stored_bytes)).saturating_mul(MOST_COST.0).saturating_add(MOST_COST.1),
    };
    let mut reached = end.stored_bytes;
    while let Some(stretch) = search.next() {
        found(&stretch);
        recovery.skipped.push(reached..stretch.bytes.start);
        // Commands may follow the end mark.
        reached = if stretch.fault.is_none() { len } else { stretch.bytes.end };
        recovery.stretches.push(stretch);
        if recovery.stretches.len() >= MOST_STRETCHES {
            search.budget = 0;
            break;
        }
    }
    if reached < len {
        recovery.skipped.push(reached..len);
        recovery.gave_up = search.budget == 0;
    }
    recovery
}

/// What was recovered of all dumps.
#[derive(Debug)]
pub struct Recovered {
    /// The keys, which are in no other census.
    pub census: Census,
    /// What became of the bytes behind the first fault, of each dump; empty where there is none.
    pub recoveries: Vec<Recovery>,
}

/// Searches what is behind the faults of `dumps`, and adds the keys that are found to a census of their own; `progress` is told of each piece that
/// was passed.
pub fn census(dumps: &[Dump], outcomes: &[Outcome], options: &Options, progress: impl Fn(Advance) + Sync) -> Recovered {
    let mut whole = analyse::empty_census(options);
    let mut of_dump = |(input, (dump, outcome)): (u32, (&Dump, &Outcome))| {
        search(dump, &outcome.end, options.scan, |stretch| {
            analyse::add_keys(&mut whole, (input, dump), Some(stretch), options, &progress);
        })
    };
    let recoveries = (1..).zip(dumps.iter().zip(outcomes)).map(&mut of_dump).collect();
    whole.settle();
    Recovered { census: whole, recoveries }
}

struct Search<'d> {
    bytes: &'d [u8],
    dump: &'d Dump,
    options: ScanOptions,
    beginnings: Beginnings,
    /// Where a record may begin next.
    at: u64,
    /// What the rest of the search may cost.
    budget: u64,
}

impl Search<'_> {
    fn dialect(&self) -> Dialect {
        self.dump.head.dialect()
    }

    fn spend(&mut self, cost: u64) {
        self.budget = self.budget.saturating_sub(cost);
    }

    fn next(&mut self) -> Option<Stretch> {
        loop {
            let start = self.chain()?;
            let (stretch, resume) = self.follow(start);
            // What was searched is not searched again, so that the whole takes time in proportion to the file.
            self.at = resume.max(start) + 1;
            if let Some(stretch) = stretch.filter(|stretch| stretch.keys > 0) {
                return Some(stretch);
            }
        }
    }

    /// The next boundary that a chain leads to from somewhere.
    fn chain(&mut self) -> Option<u64> {
        let bytes = self.bytes;
        let mut from = usize::try_from(self.at).ok()?;
        loop {
            let at = self.beginnings.within(bytes, from..bytes.len()).next()?;
            let mut walker = Walker::new(&bytes[at..], at as u64, &self.dump.head.format, UNKNOWN_DB);
            let mut strict = Strict::new(self.dialect(), true);
            let chain = guess::chain(&mut walker, &mut strict, Strict::is_doubtful);
            self.spend(COST_OF_TRY + strict.cost(walker.offset() - at as u64));
            if let Some(chain) = chain.filter(|chain| chain.records > LEFT_OUT) {
                return Some(chain.ends[LEFT_OUT - 1]);
            }
            if self.budget == 0 {
                return None;
            }
            from = at + 1;
        }
    }

    /// Follows records from a boundary to the end mark, or to the first of which something is doubtful; returns what of it can be relied on, and
    /// where to search on.
    fn follow(&mut self, start: u64) -> (Option<Stretch>, u64) {
        let dump = self.dump;
        let len = self.bytes.len() as u64;
        let (mut from, mut window) = (start, FIRST_WINDOW);
        let (mut keys, mut last) = (0, Last::default());
        let fault = loop {
            let limit = len.min(from.saturating_add(window));
            let bytes = &self.bytes[..limit as usize];
            let mut doubt = None;
            let end = scan::scan_stretch(
                bytes,
                &dump.head,
                (from, UNKNOWN_DB),
                self.options,
                &Mutex::new(Vec::new()),
                || (),
                |(), piece| verdict(piece, self.dump.head.dialect()),
                &mut |verdict: Verdict, _| {
                    keys += verdict.keys;
                    last.append(verdict.last);
                    doubt = verdict.doubt;
                    if doubt.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            );
            self.spend(limit - from);
            match (doubt, end.fault) {
                (Some(doubt), _) => break doubt,
                (None, Some(fault)) if limit == len || !(fault.is_truncation() || fault.is_zeros_to_end()) => break fault,
                (None, Some(_)) => {
                    from = end.stored_bytes;
                    window = window.saturating_mul(4);
                }
                (None, None) => {
                    let reached = end.stored_bytes;
                    let rest = &self.bytes[reached as usize..];
                    // The end mark of another dump, inside a value, has more behind it.
                    let is_end = rest.is_empty() || rest.starts_with(b"*") || rest.len() == STREAM_MARK;
                    let stretch = Stretch { bytes: start..reached, keys, fault: None };
                    // Where no more of the dump is behind the mark, a record of the dump around it may begin there.
                    return (is_end.then_some(stretch), reached.saturating_sub(1));
                }
            }
        };
        let Some((end, left_out)) = last.first() else { return (None, start) };
        (Some(Stretch { bytes: start..end, keys: keys - left_out, fault: Some(fault) }), end)
    }
}

/// What the strict tests say of a piece.
struct Verdict {
    keys: u64,
    /// Where the last sound records begin.
    last: Last,
    doubt: Option<Error>,
}

fn verdict(piece: &Piece<'_>, dialect: Dialect) -> Verdict {
    let mut strict = Strict::new(dialect, false);
    // Where its boundaries were guessed wrong it is thrown away.
    let walked = piece.walk(&mut strict);
    let (keys, last) = (strict.records, std::mem::take(&mut strict.last));
    let unpacked = piece.is_unpacked().then(|| Error::new(piece.offset(), "blob of records", UNPACKED));
    Verdict { keys, last, doubt: strict.into_doubt().or(walked.err()).or(unpacked) }
}

/// Records that are compressed together, or in chunks, are not searched.
const UNPACKED: crate::error::ErrorKind =
    crate::error::ErrorKind::Invalid("records that are compressed together are not searched");
