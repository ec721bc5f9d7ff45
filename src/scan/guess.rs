//! Guesses record boundaries in the middle of a dump, where nothing marks them.
//!
//! A guess is never trusted: what is walked from it counts only once the records in front of it were found to end there. A wrong one costs
//! time.

use crate::rdb::{Format, RecordHead, Sink, Step, Walker};

/// So many records in a row are no accident.
const RECORDS: usize = 24;

/// Nor are a few that together are so long.
const FEW_RECORDS: usize = 4;
const FEW_RECORDS_BYTES: u64 = 256 << 10;

/// Bytes that are looked at: in a record that is longer there is nothing to guess.
const MOST_BYTES: usize = 4 << 20;

/// Bytes that all tries together may pass.
const MOST_PASSED: u64 = 8 << 20;

/// A record boundary behind byte `from` of the dump `bytes`, and not far from it.
pub(super) fn boundary(bytes: &[u8], from: u64, format: &Format) -> Option<u64> {
    let start = usize::try_from(from).ok()?;
    let near = bytes.get(start..bytes.len().min(start.saturating_add(MOST_BYTES)))?;
    let begins: [bool; 256] = std::array::from_fn(|byte| Walker::may_begin(byte as u8, format));
    let mut passed = 0;
    for at in (0..near.len()).filter(|&at| begins[usize::from(near[at])]) {
        let offset = from + at as u64;
        let mut walker = Walker::new(&near[at..], offset, format, 0);
        if let Some(guess) = chain(&mut walker) {
            return Some(guess);
        }
        passed += walker.offset() - offset;
        if passed > MOST_PASSED {
            break;
        }
    }
    None
}

/// Walks as long as records follow one another, and returns the boundary in the middle of them: a walk that began inside a record, behind its
/// expiry say, has met the true boundaries by then.
fn chain(walker: &mut Walker<'_>) -> Option<u64> {
    let start = walker.offset();
    let mut ends = [0; RECORDS];
    let mut records = 0;
    let mut probe = Probe::default();
    while records < RECORDS {
        match walker.step(&mut probe) {
            Ok(Step::Record) if !probe.is_doubtful => {
                ends[records] = walker.offset();
                records += 1;
            }
            Ok(Step::Frame) if !probe.is_doubtful => {}
            Ok(Step::End) if records >= FEW_RECORDS => break,
            _ => return None,
        }
        if records >= FEW_RECORDS && walker.offset() - start >= FEW_RECORDS_BYTES {
            break;
        }
    }
    Some(ends[records / 2])
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
