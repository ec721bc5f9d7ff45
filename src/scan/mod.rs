//! Finds record boundaries and runs the walker on all cores. The result never depends on how a dump was cut.
//!
//! A dump has no index. Boundaries are guessed, all pieces between them are walked at once, and each guess is proven: the records
//! of the piece in front must end exactly there, and in the database that was taken for granted. What was walked from a wrong
//! guess is thrown away, and a skim over the bytes, which passes records without looking into them, cuts that part anew. So it
//! also cuts whatever holds records that are compressed or in chunks, the part with a fault in it, and the one with the end mark.

mod checksum;
mod damage;
pub(crate) mod guess;
mod head;
mod pieces;
mod queue;
mod stretch;
mod unpack;

pub use head::Head;
pub use stretch::Stretch;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::error::{Error, ErrorKind, Result};
use crate::input::{Fault, Rest, WINDOW_BYTES, Whole, Windows};
use crate::rdb::{Format, HEADER_LEN, Sink, Step, Walker};
use damage::{Suspicion, zeros_behind};
use pieces::{Carried, Pieces, Reached, View};
use queue::{Message, Next, Queue, Task};

pub(crate) use checksum::crc64;

/// Bytes of a piece, unless told otherwise.
pub const PIECE_BYTES: u64 = 8 << 20;

/// Bytes of a piece of a small dump.
const LEAST_BYTES: u64 = 1 << 20;

/// Pieces that are walked ahead: the work is spread well, and what comes of it needs little memory.
const AHEAD: usize = 32;

/// Pieces of a small dump for each thread.
const SHARE: u64 = 4;

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// About so many bytes are a piece.
    pub piece_bytes: u64,
    /// A stream is scanned in windows of so many bytes.
    pub window_bytes: usize,
    /// Compute the checksum.
    pub checksum: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { piece_bytes: PIECE_BYTES, window_bytes: WINDOW_BYTES, checksum: true }
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
    /// The database behind its last record, once it was walked from end to end and nothing but records and what stands between
    /// them was found.
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

    /// Bytes that it takes in the uncompressed dump, and of these the ones that belong to no record and that its walk does not
    /// report.
    pub fn plain_len(&self) -> (u64, u64) {
        (self.records().len() as u64 + self.unreported, self.unreported)
    }

    /// Walks all records of the piece.
    ///
    /// # Errors
    /// A record that does not end in the piece, or that cannot be read. A scan throws away what comes of such a piece: its
    /// boundaries were guessed, and wrong.
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
    /// CRC64 of the bytes that were read but the stored one, where it was wanted.
    pub computed: Option<u64>,
    /// The end mark was reached.
    pub is_whole: bool,
    /// What follows the end of the dump, where that was reached.
    pub rest: Rest,
    /// Bytes to which a window had to grow for one record.
    pub window_grown_to: Option<u64>,
}

/// Takes what comes of a scan.
pub trait Collect<R>: Send {
    /// What came of a piece that stands for so many bytes, in file order; may end the scan.
    fn piece(&mut self, result: R, bytes: u64) -> ControlFlow<()>;

    /// A window was scanned, and everything that came of it was collected: its bytes, which go now, and the offset of the first
    /// of them.
    fn window(&mut self, _bytes: &[u8], _base: u64) {}
}

impl<R, F: FnMut(R, u64) -> ControlFlow<()> + Send> Collect<R> for F {
    fn piece(&mut self, result: R, bytes: u64) -> ControlFlow<()> {
        self(result, bytes)
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

/// Walks the dump `bytes`, whose head was read; see [`scan_windows`].
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
    scan_windows(&mut Whole::new(bytes), head, options, workers, new_worker, work, &mut collect)
}

/// Walks a dump, whose head was read, in pieces on the threads of the current rayon pool, window after window.
///
/// `work` gets one of the `workers`, which are reused (and made with `new_worker` where all are busy), and a piece. What it returns
/// goes to `collect` in file order, unless the boundaries of the piece were guessed wrong: then it is dropped, so that a worker must
/// keep nothing of a piece that it has returned from. `collect` may end the scan; it is told how many bytes each result stands for.
///
/// A record that ends beyond its window is left to the next; a window that holds no whole record grows, at most twofold at a
/// time, and never before the bytes are there: a length is not believed. One that would take more than a window may hold ends the scan.
pub fn scan_windows<W, R>(
    windows: &mut dyn Windows,
    head: &Head,
    options: ScanOptions,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Piece<'_>) -> R + Sync,
    collect: &mut impl Collect<R>,
) -> ScanEnd
where
    W: Send,
    R: Send,
{
    scan_from(windows, head, Carried::default(), options, workers, new_worker, work, collect)
}

/// Does what [`scan`] does from a record boundary on: `from` is its offset and the database there. A checksum covers what precedes it,
/// too.
#[expect(clippy::too_many_arguments, reason = "those of a scan, and where it begins")]
pub(crate) fn scan_stretch<W, R>(
    bytes: &[u8],
    head: &Head,
    from: (u64, u64),
    options: ScanOptions,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Piece<'_>) -> R + Sync,
    collect: &mut impl Collect<R>,
) -> ScanEnd
where
    W: Send,
    R: Send,
{
    scan_from(&mut Whole::new(bytes), head, Carried::at(from), options, workers, new_worker, work, collect)
}

#[expect(clippy::too_many_arguments, reason = "those of a scan, and where it begins")]
fn scan_from<W, R>(
    windows: &mut dyn Windows,
    head: &Head,
    mut carried: Carried,
    options: ScanOptions,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Piece<'_>) -> R + Sync,
    collect: &mut impl Collect<R>,
) -> ScanEnd
where
    W: Send,
    R: Send,
{
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
    let start = carried.offset;
    let mut sums = Sums { crc: 0, stored_bytes: start, plain_bytes: start };
    let (mut base, mut passed, mut wanted) = (0, 0, HEADER_LEN);
    let (most, is_decoded) = (windows.most_bytes(), windows.is_decoded());
    loop {
        let window = windows.next(passed, wanted);
        let bytes = window.bytes;
        if base == 0 && options.checksum {
            sums.crc = checksum::crc64(&bytes[..usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len())]);
        }
        let before = carried.offset;
        let view = View { bytes, base, is_last: window.is_last, format: &head.format, passed: window.passed };
        let mut pieces = Pieces::new(view, options.piece_bytes, carried);
        let left = bytes.len() - usize::try_from(before - base).unwrap_or(usize::MAX).min(bytes.len());
        let stopped = scan_window(&mut pieces, left, options, &run, &mut |done| sums.collect(done, collect));
        collect.window(bytes, base);
        let reached;
        (carried, reached) = pieces.leave();
        passed = usize::try_from(carried.offset - base).unwrap_or(usize::MAX);
        let ended = |fault, checksum| ScanEnd {
            fault,
            stored_bytes: sums.stored_bytes,
            bytes: sums.plain_bytes,
            checksum,
            computed: options.checksum.then_some(sums.crc),
            is_whole: false,
            rest: Rest::default(),
            window_grown_to: None,
        };
        let mut scan_end = match reached {
            _ if stopped => ended(None, ChecksumState::NotChecked),
            Reached::Short { needed } if needed > most => {
                let why = format!(
                    "it takes {needed} bytes or more, by what it says, and streams are read in windows of at most {most}: decompress the dump into a \
                     file and give that, which has no such limit, and shows whether the length is damaged"
                );
                ended(Some(Error::new(carried.offset, "a record", ErrorKind::Source(why))), ChecksumState::NotChecked)
            }
            Reached::Short { needed } => {
                let left = bytes.len().saturating_sub(passed);
                let needed = usize::try_from(needed).unwrap_or(usize::MAX);
                wanted = if carried.offset > before { 0 } else { needed.clamp(left + 1, left.saturating_mul(2).max(left + 1)) };
                wanted = wanted.min(usize::try_from(most).unwrap_or(usize::MAX));
                base = carried.offset;
                continue;
            }
            Reached::Middle => ended(None, ChecksumState::NotChecked),
            Reached::Fault(fault) => {
                // Bytes that ended where they were not to end tell less than why they did.
                let source = window.fault.filter(|_| fault.is_truncation());
                let fault = match source {
                    Some(Fault { reading, why }) => Error::new(view.end(), reading, ErrorKind::Source(why)),
                    None => {
                        let (suspicion, is_last, len) = (Suspicion::of(fault, view), view.is_last, bytes.len());
                        let more = suspicion.is_open() && !is_last;
                        let (behind, to_end) = if more { zeros_behind(windows, len) } else { (0, is_last) };
                        suspicion.settle(behind, to_end).in_decoded(is_decoded)
                    }
                };
                ended(Some(fault), ChecksumState::NotChecked)
            }
            Reached::End { checksum } => {
                let rest = windows.rest(passed);
                let (fault, checksum) = match (checksum, options.checksum.then_some(sums.crc)) {
                    (None, _) => (None, ChecksumState::Absent),
                    (Some(0), _) => (None, ChecksumState::Disabled),
                    (Some(_), None) => (None, ChecksumState::NotChecked),
                    (Some(stored), Some(computed)) if stored == computed => (None, ChecksumState::Ok),
                    (Some(stored), Some(computed)) => {
                        let at = sums.stored_bytes.saturating_sub(8);
                        (Some(Error::new(at, "checksum", ErrorKind::Checksum { stored, computed })), ChecksumState::Mismatch)
                    }
                };
                // What was decoded behind the end tells of the file, not of the dump.
                let behind = || {
                    let Fault { reading, why } = rest.fault.clone()?;
                    Some(Error::new(sums.stored_bytes + rest.bytes, reading, ErrorKind::Source(why)))
                };
                let fault = fault.or_else(behind);
                ScanEnd { is_whole: true, rest, ..ended(fault, checksum) }
            }
        };
        scan_end.window_grown_to = windows.grown_to();
        return scan_end;
    }
}

/// Sums over the pieces that were collected.
struct Sums {
    crc: u64,
    stored_bytes: u64,
    plain_bytes: u64,
}

impl Sums {
    /// Hands on what came of some pieces; true where that ended the scan.
    fn collect<R>(&mut self, done: Vec<Done<R>>, collect: &mut impl Collect<R>) -> bool {
        for Done { result, crc, checksummed, stored, plain } in done {
            self.crc = checksum::join(self.crc, crc, checksummed);
            self.stored_bytes += stored;
            self.plain_bytes += plain;
            if collect.piece(result, stored).is_break() {
                return true;
            }
        }
        false
    }
}

/// Walks the pieces of one window; true where collecting ended the scan.
///
/// Pieces are walked ahead of those that wait to be proven, so that a record of many elements, which one thread walks alone, keeps no other
/// waiting.
fn scan_window<'a, R: Send>(
    pieces: &mut Pieces<'a>,
    window_bytes: usize,
    options: ScanOptions,
    run: &(impl Fn(&Piece<'a>) -> Done<R> + Sync),
    collect: &mut (impl FnMut(Vec<Done<R>>) -> bool + Send),
) -> bool {
    // Of a small dump, too, every thread is to get some.
    let share = window_bytes as u64 / (SHARE * rayon::current_num_threads() as u64);
    let piece_bytes = options.piece_bytes.min(share.max(LEAST_BYTES)).max(1);
    let view = pieces.view();
    let first = pieces.offset();
    let stopped = rayon::in_place_scope_fifo(|scope| {
        let mut queue = Queue::new(first, piece_bytes, view.end());
        while !pieces.is_done() && !pieces.has_unpacked() {
            while let Some(task) = queue.next(AHEAD, pieces.offset(), |start, end| pieces.guessed(start, end)) {
                let reply = queue.reply();
                scope.spawn_fifo(move |_| match task {
                    Task::Guess { number, at } => reply.send(Message::Guessed { number, boundary: view.guess(at) }),
                    Task::Walk { number, piece } => {
                        let done = run(&piece);
                        reply.send(Message::Walked { number, done, piece });
                    }
                });
            }
            let start = pieces.offset();
            let stopped = match queue.wait() {
                Next::Piece(done, piece) if pieces.accept(&piece) => collect(vec![done]),
                Next::Piece(_, piece) => cut_and_run(pieces, piece.offset + piece.stored_len(), AHEAD, run, collect),
                Next::Answer => continue,
                Next::Lost => true,
                // No boundary was found as far as guesses go.
                Next::Nothing => match queue.at() {
                    Some(at) => cut_and_run(pieces, at, AHEAD, run, collect),
                    None => break,
                },
            };
            if stopped {
                return true;
            }
            view.release(start, pieces.offset());
        }
        false
    });
    stopped || cut_and_run(pieces, u64::MAX, AHEAD, run, collect)
}

/// Skims up to `goal`, beside that works on what was cut before, `most` pieces at a time, and collects what came of that; true
/// where collecting ended the scan.
fn cut_and_run<'a, R: Send>(
    pieces: &mut Pieces<'a>,
    goal: u64,
    most: usize,
    run: &(impl Fn(&Piece<'a>) -> Done<R> + Sync),
    collect: &mut (impl FnMut(Vec<Done<R>>) -> bool + Send),
) -> bool {
    let (mut cut, mut done) = (Vec::new(), Vec::new());
    while !cut.is_empty() || (pieces.offset() < goal && !pieces.is_done()) {
        let now = std::mem::take(&mut cut);
        let ready = std::mem::take(&mut done);
        let walk = || now.into_par_iter().map(|piece| run(&piece)).collect::<Vec<_>>();
        let (stop, (next, results)) = rayon::join(|| collect(ready), || rayon::join(|| pieces.take_up_to(goal, most), walk));
        if stop {
            return true;
        }
        (cut, done) = (next, results);
    }
    collect(done)
}

/// Walks a whole dump on one thread, without cutting it and without looking at its checksum; blobs and chunks are reported as
/// they are.
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
