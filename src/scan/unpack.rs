//! Records that Dragonfly compresses by the blob, or cuts into chunks.

use std::collections::BTreeMap;
use std::io::Read;

use super::pieces::Unpacked;
use crate::error::{Error, ErrorKind, Result};
use crate::rdb::{BlobCodec, Format, Sink, Step, Str, Walker};

/// Most bytes of a decompressed blob, and the logarithm of that; Dragonfly compresses at most 1 MiB at a time.
const MOST_BLOB_BYTES: u64 = 1 << MOST_BLOB_BITS;
const MOST_BLOB_BITS: u32 = 23;

/// Bytes in front of the payload of a chunk: opcode, id, length.
const CHUNK_HEADER: u64 = 9;

/// Most looks at a growing record that has not reached the size for one: each costs as much as the record is long.
const MOST_EARLY_LOOKS: u32 = 64;

/// Size of a growing record at which it is first looked at whether it is complete.
const FIRST_LOOK: usize = 4096;

/// The records of a compressed blob.
pub(super) fn decompress(codec: BlobCodec, packed: Str<'_>) -> Result<Vec<u8>> {
    let fault = |why| Error::new(0, "blob of records", ErrorKind::Invalid(why));
    let mut scratch = Vec::new();
    let packed = packed.text(&mut scratch, MOST_BLOB_BYTES)?;
    let mut records = Vec::new();
    let read = match codec {
        BlobCodec::Zstd => zstd::Decoder::with_buffer(packed).and_then(|mut decoder| {
            decoder.window_log_max(MOST_BLOB_BITS)?;
            take(&mut decoder, &mut records)
        }),
        BlobCodec::Lz4 => take(&mut lz4_flex::frame::FrameDecoder::new(packed), &mut records),
    };
    match read {
        Ok(true) => Ok(records),
        Ok(false) => Err(Error::new(0, "blob of records", ErrorKind::TooLarge { declared: u64::MAX, limit: MOST_BLOB_BYTES })),
        Err(_) => Err(fault("it cannot be decompressed")),
    }
}

/// Reads all there is; false where that is too much.
fn take(reader: &mut dyn Read, out: &mut Vec<u8>) -> std::io::Result<bool> {
    let n = reader.take(MOST_BLOB_BYTES + 1).read_to_end(out)?;
    Ok(n as u64 <= MOST_BLOB_BYTES)
}

/// Puts the chunks of records together again. Nothing marks the last chunk of a record: it is complete when it can be walked.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    growing: BTreeMap<u32, Growing>,
}

#[derive(Debug, Default)]
struct Growing {
    bytes: Vec<u8>,
    /// Database of the first chunk, and the one that was selected at the last.
    db: u64,
    last_db: u64,
    headers: u64,
    /// Size at which the bytes are looked at next; doubled each time, so that looking costs no more than the bytes do.
    next_look: usize,
    /// Looks before that size was reached.
    early_looks: u32,
}

impl Growing {
    /// Hands out the records that are complete.
    fn look(&mut self, offset: u64, format: &Format, out: &mut Vec<Unpacked>) -> Result<()> {
        let whole = whole_records(&self.bytes, self.db, format).map_err(|fault| fault.inside_blob(offset))?;
        if whole > 0 {
            let rest = self.bytes.split_off(whole);
            let records = std::mem::replace(&mut self.bytes, rest);
            out.push(Unpacked { records, db: self.db, unreported: std::mem::take(&mut self.headers) });
            self.early_looks = 0;
        }
        self.next_look = if self.bytes.len() < FIRST_LOOK { 0 } else { self.bytes.len() * 2 };
        Ok(())
    }
}

impl Assembler {
    /// Adds a chunk, and hands out records that are complete with it. Large ones may come later, at the latest when all chunks were added.
    pub(super) fn add(
        &mut self,
        id: u32,
        chunk: &[u8],
        offset: u64,
        db: u64,
        format: &Format,
        out: &mut Vec<Unpacked>,
    ) -> Result<()> {
        let growing = self.growing.entry(id).or_default();
        // The id may be used again by now, for a record of another database.
        if !growing.bytes.is_empty() && growing.last_db != db && growing.early_looks < MOST_EARLY_LOOKS {
            growing.early_looks += 1;
            growing.look(offset, format, out)?;
        }
        if growing.bytes.is_empty() {
            *growing = Growing { db, ..Growing::default() };
        }
        growing.last_db = db;
        growing.bytes.extend_from_slice(chunk);
        growing.headers += CHUNK_HEADER;
        if growing.bytes.len() < growing.next_look { Ok(()) } else { growing.look(offset, format, out) }
    }

    /// Hands out what is complete and was not looked at; no record may be left that is not.
    pub(super) fn finish(&mut self, offset: u64, format: &Format, out: &mut Vec<Unpacked>) -> Result<()> {
        let mut finished = Ok(());
        for growing in self.growing.values_mut() {
            let looked = growing.look(offset, format, out);
            let missing = || Error::new(offset, "chunk of a record", ErrorKind::Invalid("the last chunk of a record is missing"));
            finished = finished.and(looked).and(if growing.bytes.is_empty() { Ok(()) } else { Err(missing()) });
        }
        finished
    }
}

/// Length of the whole records that `bytes` begin with.
fn whole_records(bytes: &[u8], db: u64, format: &Format) -> Result<usize> {
    struct Skim;
    impl Sink for Skim {
        const SKIM: bool = true;
    }
    let mut walker = Walker::new(bytes, 0, format, db);
    let mut whole = 0;
    while !walker.at_end() {
        match walker.step(&mut Skim) {
            Ok(Step::Record) => whole = walker.offset() as usize,
            Ok(Step::Frame | Step::Packed | Step::End) => {
                return Err(Error::new(0, "chunk of a record", ErrorKind::Invalid("it begins with no record")));
            }
            Err(fault) if fault.is_truncation() => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(whole)
}
