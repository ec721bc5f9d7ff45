//! Finds record boundaries and runs the walker on all cores. The result never depends on how a dump was cut.
//!
//! One skim over the bytes finds where records end and cuts the dump into pieces; the skim runs beside the workers, a batch of pieces
//! ahead of them, so that memory stays bounded however large the dump.

mod checksum;
mod head;

pub use head::Head;

use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::error::{Error, ErrorKind, Result};
use crate::rdb::{Dialect, Frame, HEADER_LEN, Sink, Step, Walker};

/// Bytes of a piece, unless told otherwise.
pub const PIECE_BYTES: u64 = 1 << 20;

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// A piece ends at the first record boundary after so many bytes.
    pub piece_bytes: u64,
    /// Compute the checksum.
    pub checksum: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { piece_bytes: PIECE_BYTES, checksum: true }
    }
}

/// A run of whole records.
#[derive(Debug, Clone)]
pub struct Piece<'a> {
    bytes: &'a [u8],
    offset: u64,
    dialect: Dialect,
    db: u64,
    /// How many of the bytes the checksum covers: all but itself, behind the end mark.
    checksummed: usize,
}

impl Piece<'_> {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// True for a piece without bytes, which no scan hands out.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Walks all records of the piece.
    ///
    /// # Errors
    /// None for a piece that a scan handed out: its boundaries were found by the same walk.
    pub fn walk<S: Sink>(&self, sink: &mut S) -> Result<()> {
        let mut walker = Walker::resume(self.bytes, self.offset, self.dialect, self.db);
        while !walker.at_end() {
            walker.step(sink)?;
        }
        Ok(())
    }
}

/// How a scan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanEnd {
    /// The fault that ended it, unless the end mark did.
    pub fault: Option<Error>,
    /// Bytes of the dump that were read: all of it, or up to the last whole record.
    pub bytes: u64,
    /// What became of the checksum.
    pub checksum: ChecksumState,
}

/// What became of the checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumState {
    /// Equal to the computed one.
    Ok,
    /// Not equal to the computed one.
    Mismatch,
    /// The server wrote zero: it was told not to compute one.
    Disabled,
    /// The version of the format has none.
    Absent,
    /// Not compared: the user said so, or the end was not reached.
    NotChecked,
}

impl ChecksumState {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::Disabled => "disabled",
            Self::Absent => "absent",
            Self::NotChecked => "not checked",
        }
    }
}

/// Walks the dump `bytes`, whose head was read, in pieces on the threads of the current rayon pool.
///
/// `work` gets one of the `workers`, which are reused (and made with `new_worker` where all are busy), and a piece. What it returns goes to
/// `collect` in file order. `collect` may end the scan; it is told how many bytes each result stands for.
pub fn scan<W, R>(
    bytes: &[u8],
    head: &Head,
    options: ScanOptions,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Piece<'_>) -> R + Sync,
    mut collect: impl FnMut(R, u64) -> ControlFlow<()> + Send,
) -> ScanEnd
where
    W: Send,
    R: Send,
{
    let mut pieces = Pieces::new(bytes, head.dialect, options.piece_bytes);
    let batch_pieces = 4 * rayon::current_num_threads();
    let run = |piece: &Piece<'_>| {
        let taken = lock(workers).pop();
        let mut worker = taken.unwrap_or_else(&new_worker);
        // The checksum first: it brings the bytes into the cache.
        let crc = if options.checksum { checksum::crc64(&piece.bytes[..piece.checksummed]) } else { 0 };
        let result = work(&mut worker, piece);
        lock(workers).push(worker);
        Done { result, crc, checksummed: piece.checksummed as u64, len: piece.len() }
    };
    let mut crc = checksum::crc64(&bytes[..HEADER_LEN.min(bytes.len())]);
    let mut batch = pieces.take_batch(batch_pieces);
    let mut done: Vec<Done<R>> = Vec::new();
    let mut stopped = false;
    let mut collected = HEADER_LEN as u64;
    while !(stopped || batch.is_empty() && done.is_empty()) {
        let mut collect_done = |done: Vec<_>| {
            for Done { result, crc: next, checksummed, len } in done {
                crc = checksum::join(crc, next, checksummed);
                collected += len;
                if collect(result, len).is_break() {
                    return true;
                }
            }
            false
        };
        let now = std::mem::take(&mut batch);
        let ready = std::mem::take(&mut done);
        let (stop, (next, results)) = rayon::join(
            || collect_done(ready),
            || rayon::join(|| pieces.take_batch(batch_pieces), || now.par_iter().map(run).collect::<Vec<_>>()),
        );
        (stopped, batch, done) = (stop, next, results);
    }
    pieces.end(collected, options.checksum.then_some(crc))
}

/// What is left of a piece once it was worked on.
struct Done<R> {
    result: R,
    crc: u64,
    checksummed: u64,
    len: u64,
}

/// Cuts a dump at record boundaries by skimming it.
struct Pieces<'a> {
    bytes: &'a [u8],
    walker: Walker<'a>,
    piece_bytes: u64,
    reached: Reached,
}

enum Reached {
    Middle,
    Fault(Error),
    End { checksum: Option<u64> },
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], dialect: Dialect, piece_bytes: u64) -> Self {
        let records = bytes.get(HEADER_LEN..).unwrap_or_default();
        let walker = Walker::resume(records, HEADER_LEN as u64, dialect, 0);
        Self { bytes, walker, piece_bytes: piece_bytes.max(1), reached: Reached::Middle }
    }

    fn take_batch(&mut self, most: usize) -> Vec<Piece<'a>> {
        std::iter::from_fn(|| self.next()).take(most).collect()
    }

    fn next(&mut self) -> Option<Piece<'a>> {
        let (start, db) = (self.walker.offset(), self.walker.db());
        let mut end = start;
        while matches!(self.reached, Reached::Middle) && end - start < self.piece_bytes {
            let mut sink = EndMark(None);
            match self.walker.step(&mut sink) {
                Ok(Step::End) => self.reached = Reached::End { checksum: sink.0 },
                Ok(Step::Frame | Step::Record) => {}
                Err(fault) => {
                    self.reached = Reached::Fault(fault);
                    break;
                }
            }
            end = self.walker.offset();
        }
        let trailer = if matches!(self.reached, Reached::End { checksum: Some(_) }) { 8 } else { 0 };
        let bytes = &self.bytes[start as usize..end as usize];
        let checksummed = bytes.len().saturating_sub(trailer);
        (end > start).then(|| Piece { bytes, offset: start, dialect: self.walker.dialect(), db, checksummed })
    }

    /// Holds the computed checksum of all pieces, where there is one, against the stored one.
    fn end(self, bytes: u64, computed: Option<u64>) -> ScanEnd {
        let ended = |fault, checksum| ScanEnd { fault, bytes, checksum };
        match (self.reached, computed) {
            (Reached::Middle, _) => ended(None, ChecksumState::NotChecked),
            (Reached::Fault(fault), _) => ended(Some(fault), ChecksumState::NotChecked),
            (Reached::End { checksum: None }, _) => ended(None, ChecksumState::Absent),
            (Reached::End { checksum: Some(0) }, _) => ended(None, ChecksumState::Disabled),
            (Reached::End { .. }, None) => ended(None, ChecksumState::NotChecked),
            (Reached::End { checksum: Some(stored) }, Some(computed)) if stored == computed => ended(None, ChecksumState::Ok),
            (Reached::End { checksum: Some(stored) }, Some(computed)) => {
                let kind = ErrorKind::Checksum { stored, computed };
                ended(Some(Error::new(bytes.saturating_sub(8), "checksum", kind)), ChecksumState::Mismatch)
            }
        }
    }
}

/// Skims, and keeps the checksum behind the end mark.
struct EndMark(Option<u64>);

impl Sink for EndMark {
    const SKIM: bool = true;

    fn frame(&mut self, frame: Frame<'_>, _bytes: u64) {
        if let Frame::End { checksum } = frame {
            self.0 = checksum;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A worker that panicked leaves its data behind unharmed: it was taken out of the pool.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
