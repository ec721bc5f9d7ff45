//! The study of recovery: dumps are broken in ways that are known, and what is recovered is held against what was there.

#![allow(dead_code, reason = "the test and the long run use a part of it each")]

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Mutex;

use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::input::Input;
use rdbscope::measure::Fact;
use rdbscope::rdb::UNKNOWN_DB;
use rdbscope::recover;
use rdbscope::scan::ChecksumState;

use crate::writer::Random;

/// How a dump is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It ends early.
    Cut,
    /// Up to 4 KiB of it are zeros.
    Zeros,
    /// A byte of the length of a key or value is another.
    Length,
    /// The type of a key is another.
    Type,
}

pub const KINDS: [Kind; 4] = [Kind::Cut, Kind::Zeros, Kind::Length, Kind::Type];

/// What is said of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub db: u64,
    pub key: Vec<u8>,
    pub key_type: String,
    pub elements: Option<u64>,
    pub expires_at_ms: Option<i64>,
    pub end: u64,
}

/// Rows by the offset of their records.
pub type Rows = BTreeMap<u64, Row>;

/// A sound dump.
pub struct Original {
    pub name: String,
    pub bytes: Vec<u8>,
    pub rows: Rows,
    starts: Vec<u64>,
}

#[derive(Default)]
struct Collector(Vec<(u64, Row)>);

impl PieceSink for Collector {
    fn fact(&mut self, fact: &Fact<'_>) {
        let row = Row {
            db: fact.db,
            key: fact.key.to_vec(),
            key_type: fact.key_type.to_string(),
            elements: fact.elements,
            expires_at_ms: fact.expires_at_ms,
            end: fact.offset + fact.serialized_bytes,
        };
        self.0.push((fact.offset, row));
    }
}

fn dump(bytes: &[u8]) -> Dump {
    let input = Input::in_memory(Path::new("dump.rdb"), bytes.to_vec()).expect("no envelope");
    Dump::new(input, &Options::default()).expect("the head is sound")
}

fn walk(dump: &Dump) -> (Rows, analyse::Outcome) {
    let mut rows = Rows::new();
    let outcome = analyse::walk_dump(
        dump,
        &Options::default(),
        &Mutex::new(Vec::new()),
        Collector::default,
        |worker| std::mem::take(&mut worker.0),
        |piece, _| {
            rows.extend(piece);
            ControlFlow::Continue(())
        },
    );
    (rows, outcome)
}

impl Original {
    pub fn new(name: String, bytes: Vec<u8>) -> Self {
        let (rows, outcome) = walk(&dump(&bytes));
        assert_eq!(outcome.end.fault, None, "{name} is sound");
        let starts = rows.keys().copied().collect();
        Self { name, bytes, rows, starts }
    }

    /// The dump broken in some way, at so many places at once, and the bytes that are not as they were.
    pub fn broken(&self, kind: Kind, places: usize, random: &mut Random) -> (Vec<u8>, Vec<Range<u64>>) {
        let mut bytes = self.bytes.clone();
        let damage = (0..places).map(|_| self.break_once(kind, &mut bytes, random)).collect();
        (bytes, damage)
    }

    fn break_once(&self, kind: Kind, bytes: &mut Vec<u8>, random: &mut Random) -> Range<u64> {
        let first = self.starts[0];
        let len = self.bytes.len();
        let some = first + random.below(len as u64 - first);
        let start = *random.pick(&self.starts) as usize;
        let type_at = start + prefix_len(&self.bytes[start..]);
        let key = type_at + 1;
        let at = match kind {
            Kind::Cut => {
                bytes.truncate(some as usize);
                return some..len as u64;
            }
            Kind::Zeros => {
                let end = len.min(some as usize + (1 << random.between(3, 12)));
                bytes[some as usize..end].fill(0);
                return some..end as u64;
            }
            Kind::Type => type_at,
            Kind::Length if random.percent(50) => key,
            Kind::Length => key + string_len(&self.bytes[key..]),
        };
        let other = 1 + random.below(255) as u8;
        bytes[at] = bytes[at].wrapping_add(other);
        at as u64..at as u64 + 1
    }
}

/// Bytes of the attributes in front of a type byte.
fn prefix_len(record: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += match record[at] {
            252 => 9,
            253 => 5,
            249 => 2,
            248 => 1 + string_head(&record[at + 1..]).0,
            _ => return at,
        };
    }
}

/// Bytes of a length, and the number in it.
fn string_head(bytes: &[u8]) -> (usize, usize) {
    match bytes[0] {
        0..0x40 => (1, usize::from(bytes[0])),
        0x40..0x80 => (2, usize::from(bytes[0] & 0x3f) << 8 | usize::from(bytes[1])),
        0x80 => (5, u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes")) as usize),
        _ => (9, u64::from_be_bytes(bytes[1..9].try_into().expect("eight bytes")) as usize),
    }
}

/// Bytes of a whole string.
fn string_len(bytes: &[u8]) -> usize {
    match bytes[0] {
        0xc0 => 2,
        0xc1 => 3,
        0xc2 => 5,
        0xc3 => {
            let (first, packed) = string_head(&bytes[1..]);
            let (second, _) = string_head(&bytes[1 + first..]);
            1 + first + second + packed
        }
        _ => {
            let (head, len) = string_head(bytes);
            head + len
        }
    }
}

/// What came of faults of one kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Faults that broke the structure.
    pub faults: u64,
    /// Faults that left it as it was, and that the checksum reported; and those of dumps without one.
    pub by_checksum: u64,
    pub unnoticed: u64,
    /// Keys whose records are as they were.
    pub intact: u64,
    /// Of these, those that were read up to the fault, and those that were recovered behind it.
    pub kept: u64,
    pub recovered: u64,
    /// Keys up to the fault of which something is not as it was.
    pub kept_wrong: u64,
    /// Recovered keys whose own bytes another of the faults has changed, so that they still are as a server writes them. Nothing can tell.
    pub changed: u64,
    /// Other recovered keys of which type, elements, expiry or database are not those of the original, or that are not in it.
    pub wrong: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.faults += other.faults;
        self.by_checksum += other.by_checksum;
        self.unnoticed += other.unnoticed;
        self.intact += other.intact;
        self.kept += other.kept;
        self.recovered += other.recovered;
        self.kept_wrong += other.kept_wrong;
        self.changed += other.changed;
        self.wrong += other.wrong;
    }
}

/// Breaks a dump at some places, and tells what came of it; `wrong` is told of every recovered row that is not in the original.
pub fn try_once(
    original: &Original,
    (kind, places): (Kind, usize),
    random: &mut Random,
    mut wrong: impl FnMut(u64, &Row) + Send,
) -> Tally {
    let (bytes, damage) = original.broken(kind, places, random);
    let mut tally = Tally::default();
    let dump = dump(&bytes);
    let (before, outcome) = walk(&dump);
    if outcome.end.is_whole {
        match outcome.end.checksum {
            ChecksumState::Mismatch => tally.by_checksum = 1,
            ChecksumState::Disabled | ChecksumState::Absent => tally.unnoticed = 1,
            state => assert_eq!(bytes, original.bytes, "{}: checksum {state:?}, and bytes are others", original.name),
        }
        return tally;
    }
    tally.faults = 1;
    let intact = |(at, row): &(&u64, &Row)| {
        row.end <= bytes.len() as u64 && damage.iter().all(|damage| row.end <= damage.start || **at >= damage.end)
    };
    tally.intact = original.rows.iter().filter(intact).count() as u64;
    for (at, row) in &before {
        if original.rows.get(at) == Some(row) { tally.kept += 1 } else { tally.kept_wrong += 1 }
    }
    let mut stretches = Vec::new();
    let recovery = recover::search(&dump, &outcome.end, Options::default().scan, |stretch| stretches.push(stretch.clone()));
    assert_eq!(recovery.stretches, stretches);
    assert!(!recovery.gave_up, "{}: the search was given up", original.name);
    let mut rows = 0;
    for stretch in &stretches {
        let passed = analyse::walk_stretch(
            &dump,
            stretch,
            &Options::default(),
            &Mutex::new(Vec::new()),
            Collector::default,
            |worker| std::mem::take(&mut worker.0),
            |piece, _| {
                for (at, row) in piece {
                    rows += 1;
                    let as_it_was = original.rows.get(&at).is_some_and(|was| {
                        let db = if row.db == UNKNOWN_DB { UNKNOWN_DB } else { was.db };
                        row == (Row { db, ..was.clone() })
                    });
                    let is_changed = damage.iter().any(|damage| damage.start < row.end && at < damage.end);
                    if as_it_was {
                        tally.recovered += 1;
                    } else if is_changed {
                        tally.changed += 1;
                    } else {
                        tally.wrong += 1;
                        wrong(at, &row);
                    }
                }
                ControlFlow::Continue(())
            },
        );
        assert_eq!(passed.keys, stretch.keys, "{}: the search and the walk count other keys", original.name);
    }
    assert_eq!(rows, recovery.keys());
    tally
}
