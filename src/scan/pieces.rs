//! Cuts a dump at record boundaries by skimming it.

use std::cell::Cell;
use std::collections::VecDeque;

use super::damage;
use super::unpack::{Assembler, decompress};
use super::{ChecksumState, Piece, Records, ScanEnd};
use crate::error::{Error, ErrorKind, Result};
use crate::rdb::{Format, Frame, Sink, Step, Walker};

/// Bytes of a piece that is cut by skimming, at most.
const SKIMMED_BYTES: u64 = 1 << 20;

/// Bytes of unpacked records at which a batch of pieces ends.
const MOST_UNPACKED_BYTES: usize = 8 << 20;

/// The pieces of a dump, in file order.
pub(super) struct Pieces<'a> {
    bytes: &'a [u8],
    walker: Walker<'a>,
    format: &'a Format,
    piece_bytes: u64,
    reached: Reached,
    /// Cut, and not yet handed out.
    ready: VecDeque<Piece<'a>>,
    chunks: Assembler,
    has_unpacked: bool,
}

enum Reached {
    Middle,
    Fault(Error),
    End { checksum: Option<u64> },
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
    /// Begins at a record boundary: its offset and the database there.
    pub(super) fn new(bytes: &'a [u8], (offset, db): (u64, u64), format: &'a Format, piece_bytes: u64) -> Self {
        let records = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        Self {
            bytes,
            walker: Walker::new(records, offset, format, db),
            format,
            piece_bytes: piece_bytes.clamp(1, SKIMMED_BYTES),
            reached: Reached::Middle,
            ready: VecDeque::new(),
            chunks: Assembler::default(),
            has_unpacked: false,
        }
    }

    /// A piece that ends where a boundary is guessed.
    pub(super) fn guessed(&self, start: u64, end: u64) -> Option<Piece<'a>> {
        let raw = self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        Some(Piece {
            raw,
            checksummed: raw.len(),
            records: Records::Mapped(raw),
            offset: start,
            format: self.format,
            db: self.walker.db(),
            unreported: 0,
            walked: Cell::default(),
            sum: Cell::default(),
        })
    }

    /// Goes on behind a guessed piece that was walked, if all of this is proven: it begins at the next byte, in the database there, and
    /// its records end where it does.
    pub(super) fn accept(&mut self, piece: &Piece<'a>) -> bool {
        let Some(db) = piece.walked.get() else { return false };
        let proven = self.ready.is_empty() && (piece.offset, piece.db) == (self.walker.offset(), self.walker.db());
        if proven {
            let end = piece.offset + piece.stored_len();
            let rest = usize::try_from(end).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
            self.walker = Walker::new(rest, end, self.format, db);
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

    /// The pieces up to `goal`, or beyond it where a record ends there: so many, or fewer where what they were unpacked to takes much
    /// memory.
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
        let (start, db) = (self.walker.offset(), self.walker.db());
        let mut end = start;
        let mut special = None;
        while matches!(self.reached, Reached::Middle) && end - start < self.piece_bytes && special.is_none() {
            let mut sink = Cutter::default();
            match self.walker.step(&mut sink) {
                Ok(Step::End) => self.reached = Reached::End { checksum: sink.checksum },
                Ok(Step::Frame | Step::Record | Step::Packed) => {}
                Err(fault) => {
                    self.reached = Reached::Fault(damage::diagnose(fault, self.bytes));
                    break;
                }
            }
            match sink.special {
                // What has to be unpacked is a piece of its own.
                Some(found) => special = Some(found),
                None => end = self.walker.offset(),
            }
        }
        if end > start {
            let bytes = &self.bytes[start as usize..end as usize];
            let trailer = if matches!(self.reached, Reached::End { checksum: Some(_) }) { 8 } else { 0 };
            self.ready.push_back(Piece {
                raw: bytes,
                checksummed: bytes.len().saturating_sub(trailer),
                records: Records::Mapped(bytes),
                offset: start,
                format: self.format,
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
        if !matches!(self.reached, Reached::Middle) {
            let mut unpacked = Vec::new();
            let finished = self.chunks.finish(end, self.format, &mut unpacked);
            self.hand_out(unpacked, &[], end);
            if let (Reached::End { .. }, Err(fault)) = (&self.reached, finished) {
                self.reached = Reached::Fault(fault);
            }
        }
    }

    /// Makes pieces of a blob or chunk that stands from `start` to where the walker is.
    fn unpack(&mut self, special: Special, start: u64) -> Result<()> {
        self.has_unpacked = true;
        let raw = &self.bytes[start as usize..self.walker.offset() as usize];
        let mut unpacked = Vec::new();
        match special {
            Special::Chunk { id, bytes } => self.chunks.add(id, &bytes, start, self.walker.db(), self.format, &mut unpacked)?,
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
                format: self.format,
                db,
                unreported,
                walked: Cell::default(),
                sum: Cell::default(),
            });
        }
    }

    /// Cuts the records of a decompressed blob around chunks in it, and returns the database that follows.
    fn cut_blob(&mut self, records: &[u8], start: u64, out: &mut Vec<Unpacked>) -> Result<u64> {
        let mut walker = Walker::new(records, 0, self.format, self.walker.db());
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
                    self.chunks.add(id, &bytes, start, walker.db(), self.format, out)?;
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

    /// Holds the computed checksum of all pieces, where there is one, against the stored one.
    pub(super) fn end(self, stored_bytes: u64, bytes: u64, computed: Option<u64>) -> ScanEnd {
        let ended = |fault, checksum| ScanEnd { fault, stored_bytes, bytes, checksum };
        match (self.reached, computed) {
            (Reached::Middle, _) => ended(None, ChecksumState::NotChecked),
            (Reached::Fault(fault), _) => ended(Some(fault), ChecksumState::NotChecked),
            (Reached::End { checksum: None }, _) => ended(None, ChecksumState::Absent),
            (Reached::End { checksum: Some(0) }, _) => ended(None, ChecksumState::Disabled),
            (Reached::End { .. }, None) => ended(None, ChecksumState::NotChecked),
            (Reached::End { checksum: Some(stored) }, Some(computed)) if stored == computed => ended(None, ChecksumState::Ok),
            (Reached::End { checksum: Some(stored) }, Some(computed)) => {
                let kind = ErrorKind::Checksum { stored, computed };
                ended(Some(Error::new(stored_bytes.saturating_sub(8), "checksum", kind)), ChecksumState::Mismatch)
            }
        }
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
