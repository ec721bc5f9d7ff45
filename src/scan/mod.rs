//! Finds record boundaries and runs the walker on all cores. The result never depends on how a dump was cut.
//!
//! A dump has no index. Boundaries are guessed, all pieces between them are walked at once, and each guess is proven: the records of the
//! piece in front must end exactly there, and in the database that was taken for granted. What was walked from a wrong guess is thrown
//! away, and a skim over the bytes, which passes records without looking into them, cuts that part anew. So it also cuts whatever holds
//! records that are compressed or in chunks, the part with a fault in it, and the one with the end mark.

mod checksum;
mod damage;
pub(crate) mod guess;
mod head;
mod pieces;
mod stretch;
mod unpack;

pub use head::Head;
pub use stretch::Stretch;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::rdb::{Format, HEADER_LEN, Sink, Step, Walker};
use pieces::Pieces;

/// Bytes of a piece, unless told otherwise.
pub const PIECE_BYTES: u64 = 8 << 20;

/// Bytes of a piece of a small dump.
const LEAST_BYTES: u64 = 1 << 20;

/// Pieces of a batch, for each thread and at least and at most: the work on a batch is spread well, and what comes of it needs little memory.
const BATCH_PIECES: usize = 4;
const LEAST_PIECES: usize = 16;
const MOST_PIECES: usize = 32;

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// About so many bytes are a piece.
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
#[derive(Debug)]
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
    /// The database behind its last record, once it was walked from end to end and nothing but records and what stands between them was
    /// found.
    walked: Cell<Option<u64>>,
    /// The checksum so far, where one is wanted.
    sum: Cell<Option<checksum::Running>>,
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
    /// A record that does not end in the piece, or that cannot be read. A scan throws away what comes of such a piece: its boundaries were
    /// guessed, and wrong.
    pub fn walk<S: Sink>(&self, sink: &mut S) -> Result<()> {
        let mut walker = Walker::new(self.records(), self.offset, self.format, self.db);
        let mut plain = true;
        let mut sum = self.sum.take();
        while !walker.at_end() {
            if let Some(sum) = &mut sum {
                sum.go_ahead((walker.offset() - self.offset) as usize, self.checksummed());
            }
            plain &= matches!(walker.step(sink)?, Step::Record | Step::Frame);
        }
        self.sum.set(sum);
        self.walked.set(plain.then(|| walker.db()));
        Ok(())
    }

    /// Offset of its first byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// True where its records stood compressed, or in chunks, in the file.
    pub(crate) fn is_unpacked(&self) -> bool {
        matches!(self.records, Records::Unpacked(_))
    }

    /// The bytes that the checksum covers: all but itself, behind the end mark.
    fn checksummed(&self) -> &[u8] {
        &self.raw[..self.checksummed]
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

impl ScanEnd {
    /// True where all records were read: the end mark was reached, whatever the checksum behind it.
    pub fn is_whole(&self) -> bool {
        self.fault.is_none() || self.checksum == ChecksumState::Mismatch
    }
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
/// `collect` in file order, unless the boundaries of the piece were guessed wrong: then it is dropped, so that a worker must keep nothing
/// of a piece that it has returned from. `collect` may end the scan; it is told how many bytes each result stands for.
pub fn scan<W, R>(
    bytes: &[u8],
    head: &Head,
    options: ScanOptions,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Piece<'_>) -> R + Sync,
    collect: impl FnMut(R, u64) -> ControlFlow<()> + Send,
) -> ScanEnd
where
    W: Send,
    R: Send,
{
    scan_from(bytes, head, (HEADER_LEN as u64, 0), options, workers, new_worker, work, collect)
}

/// Does what [`scan`] does from a record boundary on: `from` is its offset and the database there. A checksum covers what precedes it, too.
#[expect(clippy::too_many_arguments, reason = "those of a scan, and where it begins")]
pub(crate) fn scan_from<W, R>(
    bytes: &[u8],
    head: &Head,
    from: (u64, u64),
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
    let start = usize::try_from(from.0).unwrap_or(usize::MAX).min(bytes.len());
    let mut pieces = Pieces::new(bytes, from, &head.format, options.piece_bytes);
    let batch_pieces = (BATCH_PIECES * rayon::current_num_threads()).clamp(LEAST_PIECES, MOST_PIECES);
    // Of a small dump, too, every thread is to get some.
    let share = (bytes.len() - start) as u64 / (BATCH_PIECES * rayon::current_num_threads()) as u64;
    let piece_bytes = options.piece_bytes.min(share.max(LEAST_BYTES)).max(1);
    let run = |piece: &Piece<'_>| {
        let taken = lock(workers).pop();
        let mut worker = taken.unwrap_or_else(&new_worker);
        piece.sum.set(options.checksum.then(checksum::Running::default));
        let result = work(&mut worker, piece);
        lock(workers).push(worker);
        let crc = piece.sum.take().map_or(0, |sum| sum.finish(piece.checksummed()));
        Done {
            result,
            crc,
            checksummed: piece.checksummed().len() as u64,
            stored: piece.stored_len(),
            plain: piece.plain_len().0,
        }
    };
    let mut crc = if options.checksum { checksum::crc64(&bytes[..start]) } else { 0 };
    let mut done: Vec<Done<R>> = Vec::new();
    let (mut stored_bytes, mut plain_bytes) = (from.0, from.0);
    let mut collect_done = |done: Vec<Done<R>>| {
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
    while !pieces.is_done() {
        let (guessed, goal) = guess(&pieces, bytes, head, piece_bytes, batch_pieces);
        let ready = std::mem::take(&mut done);
        let walk = || guessed.into_par_iter().map(|piece| (run(&piece), piece)).collect::<Vec<_>>();
        let (mut stopped, walked) = rayon::join(|| collect_done(ready), walk);
        for (result, piece) in walked {
            if pieces.accept(&piece) {
                done.push(result);
            } else if !stopped {
                let end = piece.offset + piece.stored_len();
                stopped = cut_and_run(&mut pieces, end, batch_pieces, &run, &mut collect_done, &mut done);
            }
        }
        if stopped || cut_and_run(&mut pieces, goal, batch_pieces, &run, &mut collect_done, &mut done) {
            done.clear();
            break;
        }
    }
    collect_done(done);
    pieces.end(stored_bytes, plain_bytes, options.checksum.then_some(crc))
}

/// Skims up to `goal`, beside that works on what was cut before, `most` pieces at a time, and collects what came of that; true where collecting
/// ended the scan.
fn cut_and_run<'a, R: Send>(
    pieces: &mut Pieces<'a>,
    goal: u64,
    most: usize,
    run: &(impl Fn(&Piece<'a>) -> Done<R> + Sync),
    collect: &mut (impl FnMut(Vec<Done<R>>) -> bool + Send),
    done: &mut Vec<Done<R>>,
) -> bool {
    let mut cut = Vec::new();
    while !cut.is_empty() || (pieces.offset() < goal && !pieces.is_done()) {
        let now = std::mem::take(&mut cut);
        let ready = std::mem::take(done);
        let walk = || now.into_par_iter().map(|piece| run(&piece)).collect::<Vec<_>>();
        let (stop, (next, results)) = rayon::join(|| collect(ready), || rayon::join(|| pieces.take_up_to(goal, most), walk));
        if stop {
            return true;
        }
        (cut, *done) = (next, results);
    }
    false
}

/// The next pieces, which end at guessed boundaries, and the offset up to which the dump is to be passed with them.
fn guess<'a>(pieces: &Pieces<'a>, bytes: &'a [u8], head: &Head, piece_bytes: u64, most: usize) -> (Vec<Piece<'a>>, u64) {
    let start = pieces.offset();
    let at = |n: usize| start.saturating_add(piece_bytes.saturating_mul(n as u64));
    // Where the end is near, to the end: what it lacks is found by trying to go on.
    let goal = if at(most) >= bytes.len() as u64 { u64::MAX } else { at(most) };
    if pieces.has_unpacked() {
        return (Vec::new(), goal);
    }
    let nominal: Vec<u64> = (1..=most).map(at).filter(|at| *at < bytes.len() as u64).collect();
    let mut ends: Vec<u64> = nominal.into_par_iter().filter_map(|at| guess::boundary(bytes, at, &head.format)).collect();
    ends.dedup();
    let starts = std::iter::once(start).chain(ends.iter().copied());
    let guessed: Vec<Piece<'a>> = starts.zip(&ends).filter_map(|(start, end)| pieces.guessed(start, *end)).collect();
    // What follows the last boundary is left to the next batch, unless the end of the dump is near.
    let goal = if goal == u64::MAX { goal } else { ends.last().copied().unwrap_or(goal) };
    (guessed, goal)
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
