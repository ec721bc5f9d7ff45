//! Cuts a dump at record boundaries by skimming it.

use std::cell::Cell;
use std::collections::VecDeque;

use super::unpack::{Assembler, decompress};
use super::{Piece, Records, guess};
use crate::error::{Error, ErrorKind, Result};
use crate::input::Passed;
use crate::rdb::{Format, Frame, HEADER_LEN, Sink, Step, Walker};

/// Bytes of a piece that is cut by skimming, at most.
const SKIMMED_BYTES: u64 = 1 << 20;

/// Bytes of unpacked records at which a batch of pieces ends.
const MOST_UNPACKED_BYTES: usize = 8 << 20;

/// What is carried from one window of a dump to the next.
#[derive(Debug)]
pub(super) struct Carried {
    /// Offset of the next byte that is in no piece yet; a boundary.
    pub offset: u64,
    /// The database there.
    db: u64,
    chunks: Assembler,
    has_unpacked: bool,
}

impl Carried {
    /// A record boundary: its offset and the database there.
    pub(super) fn at((offset, db): (u64, u64)) -> Self {
        Self { offset, db, ..Self::default() }
    }
}

impl Default for Carried {
    /// The first record of a dump.
    fn default() -> Self {
        Self { offset: HEADER_LEN as u64, db: 0, chunks: Assembler::default(), has_unpacked: false }
    }
}

/// How the pieces of a window ended.
#[derive(Debug)]
pub(super) enum Reached {
    /// Not yet.
    Middle,
    /// The window ends inside a record, or where it cannot be told whether the record ends: so many bytes from the boundary on
    /// are needed at least, if the record itself is right about that.
    Short { needed: u64 },
    /// A fault.
    Fault(Error),
    /// The end mark.
    End { checksum: Option<u64> },
}

/// A window of a dump, by offsets in the dump.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    /// Offset of its first byte.
    pub base: u64,
    /// Nothing follows it.
    pub is_last: bool,
    pub format: &'a Format,
    pub passed: Passed<'a>,
}

impl<'a> View<'a> {
    /// Offset behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The bytes from `offset` on.
    fn from(&self, offset: u64) -> &'a [u8] {
        offset.checked_sub(self.base).and_then(|at| self.bytes.get(usize::try_from(at).ok()?..)).unwrap_or_default()
    }

    /// The bytes from one offset to another.
    fn between(&self, start: u64, end: u64) -> Option<&'a [u8]> {
        self.from(start).get(..usize::try_from(end.checked_sub(start)?).ok()?)
    }

    /// Lets go of the bytes from one offset to another.
    pub(super) fn release(&self, start: u64, end: u64) {
        if let Some(bytes) = self.between(start, end) {
            self.passed.release(bytes);
        }
    }

    /// A record boundary near byte `at`, guessed. Where the window goes on, not at its end or in front of an AUX field: that may
    /// belong to the record in front of it.
    pub(super) fn guess(&self, at: u64) -> Option<u64> {
        let boundary = guess::boundary(self.bytes, self.base, at, self.format)?;
        (self.is_last || !self.may_go_on(boundary)).then_some(boundary)
    }

    /// True where the record that ends at `offset` may have more behind it than the window shows.
    fn may_go_on(&self, offset: u64) -> bool {
        let rest = self.from(offset);
        // Of a record of zeros, those behind it tell whether it is one.
        let are_few_zeros = rest.len() < Walker::ZEROS_BEHIND && rest.iter().all(|byte| *byte == 0);
        are_few_zeros || rest.first().is_none_or(|byte| Walker::may_belong_to_record(*byte))
    }
}

/// The pieces of a window of a dump, in file order.
pub(super) struct Pieces<'a> {
    view: View<'a>,
    walker: Walker<'a>,
    /// The last boundary that the walker has passed, and the database there.
    boundary: (u64, u64),
    piece_bytes: u64,
    reached: Reached,
    /// Cut, and not yet handed out.
    ready: VecDeque<Piece<'a>>,
    chunks: Assembler,
    has_unpacked: bool,
}

/// A run of records that stood compressed, or in chunks, in the file.
pub(super) struct Unpacked {
    /// The records.
    pub records: Vec<u8>,
    /// Database of the first.
    pub db: u64,
    /// Bytes of the uncompressed dump that belong to none of them.
    pub unreported: u64,
}

impl<'a> Pieces<'a> {
    /// The pieces of a window, from where the window before it ended.
    pub(super) fn new(view: View<'a>, piece_bytes: u64, carried: Carried) -> Self {
        let Carried { offset, db, chunks, has_unpacked } = carried;
        Self {
            view,
            walker: Walker::new(view.from(offset), offset, view.format, db),
            boundary: (offset, db),
            piece_bytes: piece_bytes.clamp(1, SKIMMED_BYTES),
            reached: Reached::Middle,
            ready: VecDeque::new(),
            chunks,
            has_unpacked,
        }
    }

    /// The window.
    pub(super) fn view(&self) -> View<'a> {
        self.view
    }

    /// What the next window needs to know, and how this one ended.
    pub(super) fn leave(self) -> (Carried, Reached) {
        let (offset, db) = self.boundary;
        (Carried { offset, db, chunks: self.chunks, has_unpacked: self.has_unpacked }, self.reached)
    }

    /// A piece that ends where a boundary is guessed.
    pub(super) fn guessed(&self, start: u64, end: u64) -> Option<Piece<'a>> {
        let raw = self.view.between(start, end)?;
        Some(Piece {
            raw,
            checksummed: raw.len(),
            records: Records::Mapped(raw),
            offset: start,
            format: self.view.format,
            db: self.walker.db(),
            unreported: 0,
            walked: Cell::default(),
            sum: Cell::default(),
        })
    }

    /// Goes on behind a guessed piece that was walked, if all of this is proven: it begins at the next byte, in the database
    /// there, and its records end where it does.
    pub(super) fn accept(&mut self, piece: &Piece<'a>) -> bool {
        let Some(db) = piece.walked.get() else { return false };
        let proven = self.ready.is_empty() && (piece.offset, piece.db) == (self.walker.offset(), self.walker.db());
        if proven {
            let end = piece.offset + piece.stored_len();
            self.walker = Walker::new(self.view.from(end), end, self.view.format, db);
            self.boundary = (end, db);
        }
        proven
    }

    /// Offset of the next byte that is in no piece yet.
    pub(super) fn offset(&self) -> u64 {
        self.walker.offset()
    }

    /// True where the end mark, or a fault, was met, and all pieces were handed out.
    pub(super) fn is_done(&self) -> bool {
        self.ready.is_empty() && !matches!(self.reached, Reached::Middle)
    }

    /// True once something was met that has to be unpacked: such dumps hold the next one soon.
    pub(super) fn has_unpacked(&self) -> bool {
        self.has_unpacked
    }

    /// The pieces up to `goal`, or beyond it where a record ends there: so many, or fewer where what they were unpacked to takes
    /// much memory.
    pub(super) fn take_up_to(&mut self, goal: u64, most: usize) -> Vec<Piece<'a>> {
        let mut batch = Vec::new();
        let mut unpacked = 0;
        while batch.len() < most && unpacked < MOST_UNPACKED_BYTES && (self.walker.offset() < goal || !self.ready.is_empty()) {
            let Some(piece) = self.next() else { break };
            if let Records::Unpacked(records) = &piece.records {
                unpacked += records.len();
            }
            batch.push(piece);
        }
        batch
    }

    fn next(&mut self) -> Option<Piece<'a>> {
        while self.ready.is_empty() && matches!(self.reached, Reached::Middle) {
            self.cut();
        }
        self.ready.pop_front()
    }

    /// Walks on to where a piece ends.
    fn cut(&mut self) {
        let (start, db) = self.boundary;
        let mut end = start;
        let mut special = None;
        // A record that may go on ends a piece only once what follows it was passed.
        let mut is_open = false;
        while matches!(self.reached, Reached::Middle) && (is_open || end - start < self.piece_bytes) && special.is_none() {
            let before = (self.walker.offset(), self.walker.db());
            let mut sink = Cutter::default();
            let step = match self.walker.step(&mut sink) {
                Ok(step) => step,
                Err(fault) => {
                    self.reached = self.failed(fault);
                    break;
                }
            };
            if is_open {
                (end, self.boundary) = (before.0, before);
            }
            if let Step::End = step {
                self.reached = Reached::End { checksum: sink.checksum };
            }
            match sink.special {
                // What has to be unpacked is a piece of its own.
                Some(found) => special = Some(found),
                None => {
                    let after = (self.walker.offset(), self.walker.db());
                    is_open = !self.view.is_last && step == Step::Record && self.view.may_go_on(after.0);
                    if !is_open {
                        (end, self.boundary) = (after.0, after);
                    }
                }
            }
        }
        if end > start {
            let bytes = self.view.between(start, end).unwrap_or_default();
            let trailer = if matches!(self.reached, Reached::End { checksum: Some(_) }) { 8 } else { 0 };
            self.ready.push_back(Piece {
                raw: bytes,
                checksummed: bytes.len().saturating_sub(trailer),
                records: Records::Mapped(bytes),
                offset: start,
                format: self.view.format,
                db,
                unreported: 0,
                walked: Cell::default(),
                sum: Cell::default(),
            });
        }
        if let Some(special) = special
            && let Err(fault) = self.unpack(special, end)
        {
            self.reached = Reached::Fault(fault);
        }
        if matches!(self.reached, Reached::Fault(_) | Reached::End { .. }) {
            let mut unpacked = Vec::new();
            let finished = self.chunks.finish(end, self.view.format, &mut unpacked);
            self.hand_out(unpacked, &[], end);
            if let (Reached::End { .. }, Err(fault)) = (&self.reached, finished) {
                self.reached = Reached::Fault(fault);
            }
        }
    }

    /// What a step that failed says of the window.
    fn failed(&self, fault: Error) -> Reached {
        match fault.detail().kind {
            ErrorKind::Truncated { needed, .. } if !self.view.is_last => {
                Reached::Short { needed: (fault.detail().offset - self.boundary.0).saturating_add(needed) }
            }
            _ => Reached::Fault(fault),
        }
    }

    /// Makes pieces of a blob or chunk that stands from `start` to where the walker is.
    fn unpack(&mut self, special: Special, start: u64) -> Result<()> {
        self.has_unpacked = true;
        let raw = self.view.between(start, self.walker.offset()).unwrap_or_default();
        let mut unpacked = Vec::new();
        match special {
            Special::Chunk { id, bytes } => {
                self.chunks.add(id, &bytes, start, self.walker.db(), self.view.format, &mut unpacked)?
            }
            Special::Blob(records) => {
                let records = records.map_err(|fault| fault.inside_blob(start))?;
                let db = self.cut_blob(&records, start, &mut unpacked)?;
                self.walker.set_db(db);
            }
        }
        // The bytes of the file belong to the first of the pieces, and to an empty one where there is none yet.
        if unpacked.is_empty() {
            unpacked.push(Unpacked { records: Vec::new(), db: self.walker.db(), unreported: 0 });
        }
        self.hand_out(unpacked, raw, start);
        self.boundary = (self.walker.offset(), self.walker.db());
        Ok(())
    }

    /// Makes pieces of unpacked records; `raw`, the bytes of the file that they come from, belongs to the first.
    fn hand_out(&mut self, unpacked: Vec<Unpacked>, mut raw: &'a [u8], start: u64) {
        for Unpacked { records, db, unreported } in unpacked {
            self.ready.push_back(Piece {
                checksummed: raw.len(),
                raw: std::mem::take(&mut raw),
                records: Records::Unpacked(records),
                offset: start,
                format: self.view.format,
                db,
                unreported,
                walked: Cell::default(),
                sum: Cell::default(),
            });
        }
    }

    /// Cuts the records of a decompressed blob around chunks in it, and returns the database that follows.
    fn cut_blob(&mut self, records: &[u8], start: u64, out: &mut Vec<Unpacked>) -> Result<u64> {
        let mut walker = Walker::new(records, 0, self.view.format, self.walker.db());
        let mut from = 0;
        let mut db = walker.db();
        while !walker.at_end() {
            let at = walker.offset();
            let mut sink = Cutter::default();
            let step = walker.step(&mut sink).map_err(|fault| fault.inside_blob(start))?;
            let why = match (step, sink.special) {
                (Step::Frame | Step::Record | Step::Packed, None) => continue,
                (_, Some(Special::Chunk { id, bytes })) => {
                    if at > from {
                        out.push(Unpacked { records: records[from as usize..at as usize].into(), db, unreported: 0 });
                    }
                    self.chunks.add(id, &bytes, start, walker.db(), self.view.format, out)?;
                    (from, db) = (walker.offset(), walker.db());
                    continue;
                }
                (_, Some(Special::Blob(_))) => "a blob inside a blob",
                (Step::End, None) => "an end mark inside a blob",
            };
            return Err(Error::new(start, "blob of records", ErrorKind::Invalid(why)));
        }
        if walker.offset() > from {
            out.push(Unpacked { records: records[from as usize..].into(), db, unreported: 0 });
        }
        Ok(walker.db())
    }
}

/// Skims, and keeps what the cut depends on.
#[derive(Default)]
struct Cutter {
    checksum: Option<u64>,
    special: Option<Special>,
}

enum Special {
    Blob(Result<Vec<u8>>),
    Chunk { id: u32, bytes: Vec<u8> },
}

impl Sink for Cutter {
    const SKIM: bool = true;

    fn frame(&mut self, frame: Frame<'_>, _bytes: u64) {
        match frame {
            Frame::End { checksum } => self.checksum = checksum,
            Frame::Blob { codec, packed } => self.special = Some(Special::Blob(decompress(codec, packed))),
            Frame::Chunk { id, bytes } => self.special = Some(Special::Chunk { id, bytes: bytes.into() }),
            _ => {}
        }
    }
}
