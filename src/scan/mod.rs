//! Finds record boundaries and runs the walker on all cores. The result never depends on how a dump was cut.
//!
//! One skim over the bytes finds where records end and cuts the dump into pieces; the skim runs beside the workers, a batch of pieces
//! ahead of them, so that memory stays bounded however large the dump.

mod checksum;
mod head;
mod pieces;
mod unpack;

pub use head::Head;

use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::rdb::{Format, HEADER_LEN, Sink, Step, Walker};
use pieces::Pieces;

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
    /// The bytes of the file that it stands for, and how many of them the checksum covers: all but itself, behind the end mark.
    raw: &'a [u8],
    checksummed: usize,
    records: Records<'a>,
    /// Offset of the first record, for messages.
    offset: u64,
    format: &'a Format,
    db: u64,
    /// Bytes of the uncompressed dump that are in no record of the piece and that its walk does not report.
    unreported: u64,
}

#[derive(Debug, Clone)]
enum Records<'a> {
    /// As they are in the file.
    Mapped(&'a [u8]),
    /// As they were before they were compressed or cut up.
    Unpacked(Vec<u8>),
}

impl Piece<'_> {
    /// Bytes of the file that it stands for.
    pub fn stored_len(&self) -> u64 {
        self.raw.len() as u64
    }

    /// Bytes that it takes in the uncompressed dump, and of these the ones that belong to no record and that its walk does not report.
    pub fn plain_len(&self) -> (u64, u64) {
        (self.records().len() as u64 + self.unreported, self.unreported)
    }

    /// Walks all records of the piece.
    ///
    /// # Errors
    /// None for a piece that a scan handed out: its boundaries were found by the same walk.
    pub fn walk<S: Sink>(&self, sink: &mut S) -> Result<()> {
        let mut walker = Walker::new(self.records(), self.offset, self.format, self.db);
        while !walker.at_end() {
            walker.step(sink)?;
        }
        Ok(())
    }

    fn records(&self) -> &[u8] {
        match &self.records {
            Records::Mapped(bytes) => bytes,
            Records::Unpacked(bytes) => bytes,
        }
    }
}

/// How a scan ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanEnd {
    /// The fault that ended it, unless the end mark did.
    pub fault: Option<Error>,
    /// Bytes of the file that were read: all of the dump, or up to the last whole record.
    pub stored_bytes: u64,
    /// Bytes of the uncompressed dump that these are.
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
    let mut pieces = Pieces::new(bytes, &head.format, options.piece_bytes);
    let batch_pieces = 4 * rayon::current_num_threads();
    let run = |piece: &Piece<'_>| {
        let taken = lock(workers).pop();
        let mut worker = taken.unwrap_or_else(&new_worker);
        // The checksum first: it brings the bytes into the cache.
        let crc = if options.checksum { checksum::crc64(&piece.raw[..piece.checksummed]) } else { 0 };
        let result = work(&mut worker, piece);
        lock(workers).push(worker);
        Done { result, crc, checksummed: piece.checksummed as u64, stored: piece.stored_len(), plain: piece.plain_len().0 }
    };
    let mut crc = checksum::crc64(&bytes[..HEADER_LEN.min(bytes.len())]);
    let mut batch = pieces.take_batch(batch_pieces);
    let mut done: Vec<Done<R>> = Vec::new();
    let mut stopped = false;
    let (mut stored_bytes, mut plain_bytes) = (HEADER_LEN as u64, HEADER_LEN as u64);
    while !(stopped || batch.is_empty() && done.is_empty()) {
        let mut collect_done = |done: Vec<_>| {
            for Done { result, crc: next, checksummed, stored, plain } in done {
                crc = checksum::join(crc, next, checksummed);
                stored_bytes += stored;
                plain_bytes += plain;
                if collect(result, stored).is_break() {
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
    pieces.end(stored_bytes, plain_bytes, options.checksum.then_some(crc))
}

/// Walks a whole dump on one thread, without cutting it and without looking at its checksum; blobs and chunks are reported as they are.
///
/// # Errors
/// Bytes that are no dump, and the first byte that cannot be read.
pub fn walk<S: Sink>(bytes: &[u8], sink: &mut S) -> Result<()> {
    let head = Head::read(bytes)?;
    let mut walker = Walker::new(bytes.get(HEADER_LEN..).unwrap_or_default(), HEADER_LEN as u64, &head.format, 0);
    while walker.step(sink)? != Step::End {}
    Ok(())
}

/// What is left of a piece once it was worked on.
struct Done<R> {
    result: R,
    crc: u64,
    checksummed: u64,
    stored: u64,
    plain: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A worker that panicked leaves its data behind unharmed: it was taken out of the pool.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
