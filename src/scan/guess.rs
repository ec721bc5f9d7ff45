//! Guesses record boundaries in the middle of a dump, where nothing marks them.
//!
//! A guess is never trusted: what is walked from it counts only once the records in front of it were found to end there. A wrong
//! one costs time.

use std::ops::Range;

use crate::rdb::{Format, RecordHead, Sink, Step, Walker};

/// So many records in a row are no accident.
pub(crate) const RECORDS: usize = 24;

/// Nor are a few that together are so long, or two that are longer still.
const LONG: [(usize, u64); 2] = [(4, 256 << 10), (2, 1 << 20)];

/// Bytes in which a first record may begin: inside one that is longer there is nothing to guess.
const MOST_TRIED: usize = 128 << 10;

/// Bytes that the records may reach.
const MOST_BYTES: usize = 16 << 20;

/// Bytes that all tries together may pass.
const MOST_PASSED: u64 = 8 << 20;

/// A record boundary behind byte `from` of a dump, and not far from it; `bytes` are those from byte `base` on.
pub(super) fn boundary(bytes: &[u8], base: u64, from: u64, format: &Format) -> Option<u64> {
    let start = usize::try_from(from.checked_sub(base)?).ok()?;
    let near = bytes.get(start..bytes.len().min(start.saturating_add(MOST_BYTES)))?;
    let mut passed = 0;
    for at in Beginnings::new(format).within(near, 0..near.len().min(MOST_TRIED)) {
        let offset = from + at as u64;
        let mut walker = Walker::new(&near[at..], offset, format, 0);
        // The boundary in the middle: a walk that began inside a record, behind its expiry say, has met the true boundaries by then.
        if let Some(chain) = chain(&mut walker, &mut Probe::default(), |probe| probe.is_doubtful) {
            return Some(chain.ends[chain.records / 2]);
        }
        passed += walker.offset() - offset;
        if passed > MOST_PASSED {
            break;
        }
    }
    None
}

/// Bytes that records of a format begin with.
#[derive(Debug)]
pub(crate) struct Beginnings {
    types: [bool; 256],
    begins: [bool; 256],
}

impl Beginnings {
    pub(crate) fn new(format: &Format) -> Self {
        let types: [bool; 256] = std::array::from_fn(|byte| Walker::is_type(byte as u8, format));
        let begins = std::array::from_fn(|byte| types[byte] || Walker::prefix_len(byte as u8).is_some());
        Self { types, begins }
    }

    /// Where in a range of `bytes` a record with a plain key may begin.
    pub(crate) fn within(&self, bytes: &[u8], range: Range<usize>) -> impl Iterator<Item = usize> {
        let may_begin = move |at: &usize| self.begins[usize::from(bytes[*at])] && has_plain_key(&bytes[*at..], &self.types);
        range.filter(may_begin)
    }
}

/// Whether a record with the usual prefixes may begin here, and a key of printable characters in it. Others there are too, and a walk from
/// each byte that could begin one would cost too much among random bytes.
#[inline]
fn has_plain_key(bytes: &[u8], types: &[bool; 256]) -> bool {
    const LOOKED_AT: usize = 6;
    let mut rest = bytes;
    while let Some(prefix) = rest.first().and_then(|first| Walker::prefix_len(*first)) {
        match rest.get(prefix..) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    let (len, key) = match rest {
        [kind, len @ 1..0x40, key @ ..] if types[usize::from(*kind)] => (usize::from(*len), key),
        [kind, 0x40..0x80, _, key @ ..] if types[usize::from(*kind)] => (LOOKED_AT, key),
        _ => return false,
    };
    key.get(..len.min(LOOKED_AT)).is_some_and(|key| key.iter().all(|byte| matches!(byte, b' '..=b'~')))
}

/// Records that follow one another.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Where each of them ends.
    pub ends: [u64; RECORDS],
    /// How many there are.
    pub records: usize,
}

/// Walks as long as records follow one another that the sink does not doubt, until so many, or so long ones, are no accident.
pub(crate) fn chain<S: Sink>(walker: &mut Walker<'_>, sink: &mut S, is_doubtful: impl Fn(&S) -> bool) -> Option<Chain> {
    let start = walker.offset();
    let mut ends = [0; RECORDS];
    let mut records = 0;
    while records < RECORDS {
        match walker.step(sink) {
            Ok(Step::Record) if !is_doubtful(sink) => {
                ends[records] = walker.offset();
                records += 1;
            }
            Ok(Step::Frame) if !is_doubtful(sink) => {}
            Ok(Step::End) if records >= LONG[0].0 => break,
            _ => return None,
        }
        let passed = walker.offset() - start;
        if LONG.iter().any(|(least, bytes)| records >= *least && passed >= *bytes) {
            break;
        }
    }
    Some(Chain { ends, records })
}

/// Skims, and doubts what looks like records without being any: runs of zeros are strings without name and content.
#[derive(Default)]
struct Probe {
    is_doubtful: bool,
}

impl Sink for Probe {
    const SKIM: bool = true;

    fn begin(&mut self, head: &RecordHead<'_>) {
        self.is_doubtful |= head.key.is_empty();
    }
}
