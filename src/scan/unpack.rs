//! Records that Dragonfly compresses by the blob, or cuts into chunks.

use std::collections::HashMap;
use std::io::Read;

use super::pieces::Unpacked;
use crate::error::{Error, ErrorKind, Result};
use crate::rdb::{BlobCodec, Format, Sink, Step, Str, Walker};

/// Most bytes of a decompressed blob; Dragonfly compresses at most 1 MiB at a time.
const MOST_BLOB_BYTES: u64 = 64 << 20;

/// Bytes in front of the payload of a chunk: opcode, id, length.
const CHUNK_HEADER: u64 = 9;

/// Size of a growing record at which it is first looked at whether it is complete.
const FIRST_LOOK: usize = 4096;

/// The records of a compressed blob.
pub(super) fn decompress(codec: BlobCodec, packed: Str<'_>) -> Result<Vec<u8>> {
    let fault = |why| Error::new(0, "blob of records", ErrorKind::Invalid(why));
    let mut scratch = Vec::new();
    let packed = packed.text(&mut scratch, MOST_BLOB_BYTES)?;
    let mut records = Vec::new();
    let read = match codec {
        BlobCodec::Zstd => zstd::Decoder::with_buffer(packed).and_then(|mut decoder| take(&mut decoder, &mut records)),
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
    growing: HashMap<u32, Growing>,
}

#[derive(Debug, Default)]
struct Growing {
    bytes: Vec<u8>,
    db: u64,
    headers: u64,
    /// Size at which the bytes are looked at next; doubled each time, so that looking costs no more than the bytes do.
    next_look: usize,
}

impl Assembler {
    /// Adds a chunk, and hands out the records that are complete with it.
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
        if growing.bytes.is_empty() {
            *growing = Growing { db, ..Growing::default() };
        }
        growing.bytes.extend_from_slice(chunk);
        growing.headers += CHUNK_HEADER;
        if growing.bytes.len() < growing.next_look {
            return Ok(());
        }
        let whole = whole_records(&growing.bytes, growing.db, format).map_err(|fault| fault.inside_blob(offset))?;
        if whole > 0 {
            let rest = growing.bytes.split_off(whole);
            let records = std::mem::replace(&mut growing.bytes, rest);
            out.push(Unpacked { records, db: growing.db, unreported: std::mem::take(&mut growing.headers) });
        }
        growing.next_look = if growing.bytes.len() < FIRST_LOOK { 0 } else { growing.bytes.len() * 2 };
        Ok(())
    }

    /// True to its name: at the end no record may be left incomplete.
    pub(super) fn finish(&self, offset: u64) -> Result<()> {
        match self.growing.values().find(|growing| !growing.bytes.is_empty()) {
            None => Ok(()),
            Some(_) => Err(Error::new(offset, "chunk of a record", ErrorKind::Invalid("the last chunk of a record is missing"))),
        }
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
            Ok(Step::Frame | Step::End) => {
                return Err(Error::new(0, "chunk of a record", ErrorKind::Invalid("it begins with no record")));
            }
            Err(fault) if fault.is_truncation() => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok(whole)
}
