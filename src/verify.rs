//! Looks into everything: every element of every value is decoded, and what a server would stumble over is found.

use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::sync::Mutex;

use hashbrown::{DefaultHashBuilder, HashSet};

use crate::analyse::{Advance, Dump};
use crate::error::{Error, ErrorKind};
use crate::rdb::packed::{Entry, PackedForm};
use crate::rdb::{RecordHead, RecordTail, Role, Sink, Str, StreamPart};
use crate::scan::{self, ScanEnd, ScanOptions};

/// Most faults that are kept of one dump, the first ones.
const MOST_FAULTS: usize = 100;

/// Largest collection that is looked through for duplicates, in elements: the set of what was seen stays within some megabytes.
const MOST_DISTINCT: usize = 100_000;

/// Longest string that is decompressed: the server's own limit.
const MAX_STRING_BYTES: u64 = 512 << 20;

/// What was found in a dump.
#[derive(Debug)]
pub struct Verdict {
    /// Keys that were read.
    pub keys: u64,
    /// Faults inside values, or between what values say of themselves: how many.
    pub faults: u64,
    /// The first of them, in file order.
    pub first: Vec<Error>,
    /// How the walk ended; its fault is not among `faults`.
    pub end: ScanEnd,
}

impl Verdict {
    /// True where nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.faults == 0 && self.end.fault.is_none()
    }
}

/// Verifies one dump on the threads of the current rayon pool; `progress` is told of each piece that was passed.
pub fn verify(dump: &Dump, options: ScanOptions, progress: impl Fn(Advance) + Sync) -> Verdict {
    let workers = Mutex::new(Vec::new());
    let (mut keys, mut faults, mut first) = (0, 0, Vec::new());
    let work = |check: &mut Check, piece: &scan::Piece<'_>| {
        if let Err(fault) = piece.walk(check) {
            check.push(fault);
        }
        std::mem::take(&mut check.found)
    };
    let mut told = 0;
    let mut collect = |found: Found, bytes: u64| {
        progress(Advance { bytes: dump.input.advance(bytes, &mut told), keys: found.keys });
        keys += found.keys;
        faults += found.faults;
        first.extend(found.first);
        first.truncate(MOST_FAULTS);
        ControlFlow::Continue(())
    };
    let mut windows = dump.input.windows(options.window_bytes);
    let end = scan::scan_windows(&mut *windows, &dump.head, options, &workers, Check::default, work, &mut collect);
    Verdict { keys, faults, first, end }
}

/// What was found in a piece.
#[derive(Debug, Default)]
struct Found {
    keys: u64,
    faults: u64,
    first: Vec<Error>,
}

/// The sink that looks at everything.
#[derive(Default)]
pub(crate) struct Check {
    found: Found,
    scratch: Vec<u8>,
    key: Vec<u8>,
    offset: u64,
    distinct: Distinct,
    /// Form of the packed value whose entries follow, and the last of its integers.
    form: Option<PackedForm>,
    last_integer: Option<i64>,
    last_node: Option<[u8; 16]>,
}

impl Check {
    /// Faults that were found so far.
    pub(crate) fn faults(&self) -> u64 {
        self.found.faults
    }

    /// The first of them.
    pub(crate) fn into_first(self) -> Option<Error> {
        self.found.first.into_iter().next()
    }

    #[cold]
    fn push(&mut self, fault: Error) {
        self.found.faults += 1;
        if self.found.first.len() < MOST_FAULTS {
            self.found.first.push(fault);
        }
    }

    #[cold]
    fn wrong(&mut self, reading: &'static str, why: &'static str) {
        let fault = Error::new(self.offset, reading, ErrorKind::Invalid(why)).in_key(&self.key);
        self.push(fault);
    }
}

impl Sink for Check {
    fn begin(&mut self, head: &RecordHead<'_>) {
        self.key.clear();
        self.key.extend_from_slice(&head.key[..head.key.len().min(200)]);
        self.offset = head.offset;
        self.distinct.clear();
        self.form = None;
        self.last_node = None;
    }

    fn text(&mut self, role: Role, text: Str<'_>) {
        let is_name = matches!(role, Role::Member | Role::Field);
        if !is_name && !matches!(text, Str::Lzf { .. }) {
            return;
        }
        match text.text(&mut self.scratch, MAX_STRING_BYTES) {
            Ok(bytes) => {
                if is_name && self.distinct.is_twice(bytes) {
                    self.wrong("collection", "the same member or field is there twice");
                }
            }
            Err(fault) => {
                let fault = fault.in_key(&self.key);
                self.push(fault);
            }
        }
    }

    fn score(&mut self, score: f64) {
        if score.is_nan() {
            self.wrong("score", "not a number");
        }
    }

    fn opens(&self, _len: u64) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn packed(&mut self, form: PackedForm, _len: u64, _entries: u64) {
        self.form = Some(form);
        self.last_integer = None;
    }

    fn entry(&mut self, role: Role, entry: Entry<'_>) {
        if let (Some(PackedForm::Intset), Entry::Int(value)) = (self.form, entry) {
            if self.last_integer.is_some_and(|last| last >= value) {
                self.wrong("intset", "its members are not in ascending order");
            }
            self.last_integer = Some(value);
            return;
        }
        // Entries of a stream repeat their fields.
        if !matches!(role, Role::Member | Role::Field) || self.last_node.is_some() {
            return;
        }
        let twice = match entry {
            Entry::Bytes(bytes) => self.distinct.is_twice(bytes),
            Entry::Int(value) => self.distinct.is_twice(value.to_string().as_bytes()),
        };
        if twice {
            self.wrong("collection", "the same member or field is there twice");
        }
    }

    fn stream(&mut self, part: StreamPart<'_>) {
        if let StreamPart::Node(id) = part {
            if self.last_node.is_some_and(|last| last >= *id) {
                self.wrong("stream", "the ids of its nodes are not in ascending order");
            }
            self.last_node = Some(*id);
        }
    }

    fn value_fault(&mut self, fault: Error) {
        let fault = fault.in_key(&self.key);
        self.push(fault);
    }

    fn end(&mut self, _head: &RecordHead<'_>, _tail: &RecordTail) {
        self.found.keys += 1;
    }
}

/// The names that a collection was seen to have, as 128 bits of hash each.
struct Distinct {
    seen: HashSet<u128>,
    hashers: [DefaultHashBuilder; 2],
}

impl Default for Distinct {
    fn default() -> Self {
        // Two seeds of their own: with both, two names that only look alike are not to be expected in any number of dumps.
        Self { seen: HashSet::new(), hashers: [DefaultHashBuilder::default(), DefaultHashBuilder::default()] }
    }
}

impl Distinct {
    fn clear(&mut self) {
        // A set that was once large costs as much to clear as to fill.
        if self.seen.capacity() > 4096 {
            self.seen = HashSet::new();
        } else {
            self.seen.clear();
        }
    }

    #[inline]
    fn is_twice(&mut self, name: &[u8]) -> bool {
        if self.seen.len() >= MOST_DISTINCT {
            return false;
        }
        let [high, low] = [&self.hashers[0], &self.hashers[1]].map(|hasher| hasher.hash_one(name));
        !self.seen.insert(u128::from(high) << 64 | u128::from(low))
    }
}
