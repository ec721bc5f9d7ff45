//! The one walker: opcodes, prefixes and keys, record after record.

use super::cursor::{Cursor, Str};
use super::foreign;
use super::sink::{BlobCodec, Frame, RecordHead, RecordTail, Sink};
use super::types::{Dialect, Family, Format, HEADER_LEN, KeyType, ModuleId, RecordType};
use super::value;
use crate::error::{Error, ErrorKind, Result};

/// Opcodes as `rdb.h` of Redis and Valkey numbers them.
mod opcode {
    /// Dragonfly: 200 to 224.
    pub const FULLSYNC_END: u8 = 200;
    pub const BLOB_ZSTD: u8 = 201;
    pub const BLOB_LZ4: u8 = 202;
    pub const BLOB_END: u8 = 203;
    pub const JOURNAL_BLOB: u8 = 210;
    pub const JOURNAL_OFFSET: u8 = 211;
    pub const DF_MASK: u8 = 220;
    pub const VECTOR_INDEX: u8 = 222;
    pub const SHARD_DOC_INDEX: u8 = 223;
    pub const TAGGED_CHUNK: u8 = 224;
    /// Redis 8.10.
    pub const HASH_TEMPLATE: u8 = 242;
    /// Redis 8.6.
    pub const KEY_META: u8 = 243;
    /// Valkey 9.0.
    pub const SLOT_IMPORT: u8 = 243;
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION: u8 = 245;
    pub const FUNCTION_PRE_GA: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQ: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZEDB: u8 = 251;
    pub const EXPIRETIME_MS: u8 = 252;
    pub const EXPIRETIME: u8 = 253;
    pub const SELECTDB: u8 = 254;
    pub const EOF: u8 = 255;
}

/// Longest key that is decompressed, in bytes. A server takes keys of up to 512 MiB; one that is this long and compressed is a
/// trap.
pub const MAX_KEY_BYTES: u64 = 16 << 20;

/// Stands for the database of records in front of which the number of theirs is lost. All ones are no number that a server writes.
pub const UNKNOWN_DB: u64 = u64::MAX;

/// Bytes of the name of a slot import.
const SLOT_IMPORT_NAME: u64 = 40;

/// Largest id of a hash template.
const MOST_TEMPLATES: u64 = 1 << 21;

/// What a step passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something between records.
    Frame,
    /// A key.
    Record,
    /// Records that have to be unpacked first: a blob, or a chunk of one.
    Packed,
    /// The end mark and checksum.
    End,
}

/// Walks the records of one dump, or of a piece of one.
#[derive(Debug)]
pub struct Walker<'a> {
    cursor: Cursor<'a>,
    format: &'a Format,
    db: u64,
    key_scratch: Vec<u8>,
    value_scratch: Vec<u8>,
}

/// Reads magic and version from the first bytes of a dump.
///
/// # Errors
/// Bytes that do not begin as a dump does, each kind with a message of its own.
pub fn header(bytes: &[u8]) -> Result<Dialect> {
    let not = |why| Err(Error::new(0, "the header", ErrorKind::NotADump(why)));
    let known = [&b"REDIS"[..], b"VALKEY"].iter().any(|magic| bytes.starts_with(&magic[..magic.len().min(bytes.len())]));
    if bytes.is_empty() {
        return not("the file is empty");
    }
    if bytes.len() < HEADER_LEN && known {
        return not("the file ends inside the nine bytes of the header; it was cut short: copy it again");
    }
    if let Some(why) = other_format(bytes) {
        return not(why);
    }
    match bytes.first_chunk::<HEADER_LEN>().and_then(Dialect::parse) {
        Some(dialect) => Ok(dialect),
        None if known => not("the header begins as a dump's but no version number follows; the file is damaged"),
        None => not(foreign::name(bytes).unwrap_or("no dump: it begins with neither REDIS nor VALKEY")),
    }
}

/// Attributes that stand in front of a key.
#[derive(Debug, Default)]
struct Prefix {
    bytes: u64,
    expires_at_ms: Option<i64>,
    idle_seconds: Option<u64>,
    freq: Option<u8>,
}

impl<'a> Walker<'a> {
    /// Zeros behind an empty string without a name that make it one of several, and so no record.
    pub(crate) const ZEROS_BEHIND: usize = 4;

    /// Walks from a record boundary at byte `offset` of the dump, in database `db`.
    pub fn new(bytes: &'a [u8], offset: u64, format: &'a Format, db: u64) -> Self {
        Self { cursor: Cursor::new(bytes, offset), format, db, key_scratch: Vec::new(), value_scratch: Vec::new() }
    }

    /// True for the type byte of a record of such a dump.
    pub fn is_type(byte: u8, format: &Format) -> bool {
        format.record_type(byte).is_some()
    }

    /// True for a byte that may begin something behind a value that still belongs to its record.
    pub fn may_belong_to_record(byte: u8) -> bool {
        byte == opcode::AUX
    }

    /// Bytes of an attribute in front of a record that begins with `byte`, where they are always so many.
    pub fn prefix_len(byte: u8) -> Option<usize> {
        match byte {
            opcode::EXPIRETIME_MS => Some(9),
            opcode::EXPIRETIME => Some(5),
            opcode::FREQ => Some(2),
            _ => None,
        }
    }

    /// Bytes that modules have attached to a key, in front of its type byte; `None` where they cannot be read.
    pub(crate) fn metadata_len(bytes: &[u8], format: &Format) -> Option<usize> {
        let mut walker = Walker::new(bytes, 0, format, 0);
        if walker.cursor.peek() == Some(opcode::KEY_META) && walker.is_redis(13, u16::MAX) {
            walker.cursor.u8("type or opcode").ok()?;
            key_metadata(&mut walker.cursor).ok()?;
        }
        usize::try_from(walker.cursor.offset()).ok()
    }

    /// Database of the records that follow.
    pub fn db(&self) -> u64 {
        self.db
    }

    /// Goes on in another database: records that were unpacked elsewhere have selected it.
    pub fn set_db(&mut self, db: u64) {
        self.db = db;
    }

    /// Offset of the next byte; after each step that is a boundary.
    pub fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// True at the end of the bytes, which is the end of a piece and an error in a whole dump.
    pub fn at_end(&self) -> bool {
        self.cursor.remaining() == 0
    }

    /// Passes one record, or one thing between records, and reports it.
    ///
    /// # Errors
    /// The first byte that cannot be read. The walker then stands somewhere inside the record.
    pub fn step<S: Sink>(&mut self, sink: &mut S) -> Result<Step> {
        let start = self.cursor.offset();
        let mut prefix = Prefix::default();
        loop {
            let at = self.cursor.offset();
            let byte = self.cursor.u8("type or opcode")?;
            match byte {
                opcode::EXPIRETIME_MS => {
                    prefix.expires_at_ms = Some(i64::from_le_bytes(self.cursor.array("expiry in milliseconds")?));
                }
                opcode::EXPIRETIME => {
                    let seconds = i32::from_le_bytes(self.cursor.array("expiry in seconds")?);
                    prefix.expires_at_ms = Some(i64::from(seconds) * 1000);
                }
                opcode::IDLE => prefix.idle_seconds = Some(self.cursor.len("idle time")?),
                opcode::FREQ => prefix.freq = Some(self.cursor.u8("access frequency")?),
                opcode::KEY_META if self.is_redis(13, u16::MAX) => key_metadata(&mut self.cursor)?,
                opcode::DF_MASK if self.is_redis(9, 9) => {
                    // Bit 1: flags of the memcache protocol follow.
                    if u32::from_le_bytes(self.cursor.array("flags of a key")?) & 2 != 0 {
                        self.cursor.array::<4>("memcache flags of a key")?;
                    }
                }
                opcode::AUX => {
                    let name = self.cursor.str("name of an AUX field")?;
                    let value = self.cursor.str("value of an AUX field")?;
                    // KeyDB writes this one in front of the key that it belongs to.
                    if prefix.bytes == 0 && name != Str::Raw(b"mvcc-tstamp") {
                        sink.frame(Frame::Aux { name, value }, self.cursor.offset() - at);
                        return Ok(Step::Frame);
                    }
                }
                _ => {
                    if let Some(record_type) = self.format.record_type(byte) {
                        self.record(start, &prefix, record_type, sink)?;
                        return Ok(Step::Record);
                    }
                    let frame = self.frame(byte, at)?;
                    let mut bytes = self.cursor.offset() - at;
                    match frame {
                        // Attributes without a key belong to none.
                        Frame::End { .. } => bytes += prefix.bytes,
                        // Records that are unpacked elsewhere could not have them.
                        Frame::Blob { .. } | Frame::Chunk { .. } if prefix.bytes > 0 => {
                            let why = "attributes in front of what is no key";
                            return Err(Error::new(at, "type or opcode", ErrorKind::Invalid(why)));
                        }
                        _ => {}
                    }
                    sink.frame(frame, bytes);
                    match frame {
                        Frame::End { .. } => return Ok(Step::End),
                        Frame::Blob { .. } | Frame::Chunk { .. } => return Ok(Step::Packed),
                        // Attributes outlast whatever stands between them and their key, as they do in the server's loader.
                        _ if prefix.bytes > 0 => continue,
                        _ => return Ok(Step::Frame),
                    }
                }
            }
            prefix.bytes += self.cursor.offset() - at;
        }
    }

    #[inline]
    fn record<S: Sink>(&mut self, offset: u64, prefix: &Prefix, record_type: &RecordType, sink: &mut S) -> Result<()> {
        // The type byte was taken.
        let body = self.cursor.offset() - 1;
        let key = self.cursor.str("key")?.text(&mut self.key_scratch, MAX_KEY_BYTES)?;
        // Two empty strings without a name, one behind the other, are in no database: whoever wrote zeros here was no server.
        if key.is_empty() && record_type.byte == 0 && self.cursor.begins_with(&[0; Self::ZEROS_BEHIND]) {
            return Err(Error::new(body, "type or opcode", ErrorKind::Zeros { bytes: 6, to_end: false }));
        }
        let mut record_type = *record_type;
        if let KeyType::Module(_) = record_type.key_type {
            let id = self.cursor.len("module id").map_err(|fault| fault.in_key(key))?;
            record_type.key_type = KeyType::Module(ModuleId(id));
        }
        let head = RecordHead {
            offset,
            db: self.db,
            expires_at_ms: prefix.expires_at_ms,
            idle_seconds: prefix.idle_seconds,
            freq: prefix.freq,
            record_type,
            key,
        };
        sink.begin(&head);
        let elements = value::walk(&mut self.cursor, &record_type, &self.format.templates, &mut self.value_scratch, sink)
            .map_err(|fault| fault.in_key(key))?;
        while self.cursor.peek() == Some(opcode::AUX) && take_member_expiry(&mut self.cursor, sink) {}
        let serialized_bytes = prefix.bytes + (self.cursor.offset() - body);
        sink.end(&head, &RecordTail { serialized_bytes, elements });
        Ok(())
    }

    /// True for a Redis file of a version in the range.
    fn is_redis(&self, first: u16, last: u16) -> bool {
        let Dialect { family, version } = self.format.dialect();
        family == Family::Redis && (first..=last).contains(&version)
    }

    #[inline(never)]
    fn frame(&mut self, byte: u8, at: u64) -> Result<Frame<'a>> {
        let (is_dragonfly, has_templates) = (self.is_redis(9, 9), self.is_redis(15, u16::MAX));
        let dialect = self.format.dialect();
        let cursor = &mut self.cursor;
        match (byte, dialect.family) {
            (opcode::SELECTDB, _) => {
                self.db = cursor.len("database number")?;
                Ok(Frame::SelectDb(self.db))
            }
            (opcode::RESIZEDB, _) => {
                Ok(Frame::ResizeDb { keys: cursor.len("size of a database")?, expires: cursor.len("keys with an expiry")? })
            }
            (opcode::SLOT_INFO, _) => Ok(Frame::SlotInfo {
                slot: cursor.len("slot number")?,
                keys: cursor.len("keys of a slot")?,
                expires: cursor.len("keys with an expiry of a slot")?,
            }),
            (opcode::SLOT_IMPORT, Family::Valkey) => {
                if cursor.str("job name of a slot import")?.len() != SLOT_IMPORT_NAME {
                    return Err(Error::new(at, "job name of a slot import", ErrorKind::Invalid("not 40 bytes long")));
                }
                for _ in 0..cursor.count(2, "slot ranges of an import")? {
                    cursor.len("first slot of an import")?;
                    cursor.len("last slot of an import")?;
                }
                Ok(Frame::SlotImport)
            }
            (opcode::HASH_TEMPLATE, _) if has_templates => {
                let id = cursor.len("id of a hash template")?;
                let fields = cursor.count(1, "fields of a hash template")?;
                if id > MOST_TEMPLATES {
                    let kind = ErrorKind::TooLarge { declared: id, limit: MOST_TEMPLATES };
                    return Err(Error::new(at, "id of a hash template", kind));
                }
                for _ in 0..fields {
                    cursor.str("field of a hash template")?;
                }
                Ok(Frame::HashTemplate { id, fields })
            }
            (opcode::FULLSYNC_END..=opcode::TAGGED_CHUNK, _) if is_dragonfly => dragonfly_frame(cursor, byte, at),
            (opcode::FUNCTION, _) => Ok(Frame::Function { code: cursor.str("function library")? }),
            (opcode::FUNCTION_PRE_GA, _) => {
                cursor.str("name of a function library")?;
                cursor.str("engine of a function library")?;
                if cursor.len("description flag of a function library")? != 0 {
                    cursor.str("description of a function library")?;
                }
                Ok(Frame::Function { code: cursor.str("function library")? })
            }
            (opcode::MODULE_AUX, _) => {
                let id = ModuleId(cursor.len("module id")?);
                cursor.len("opcode of module data")?;
                cursor.len("moment of module data")?;
                value::module_stream(cursor)?;
                Ok(Frame::ModuleAux(id))
            }
            (opcode::EOF, _) => {
                let checksum = if dialect.has_checksum() {
                    Some(u64::from_le_bytes(cursor.array("checksum after the end mark")?))
                } else {
                    None
                };
                Ok(Frame::End { checksum })
            }
            (6, _) => {
                let why = "a module value of a 4.0 release candidate, which nothing can skip";
                Err(Error::new(at, "type or opcode", ErrorKind::Invalid(why)))
            }
            _ => Err(Error::new(at, "type or opcode", ErrorKind::UnknownByte { byte, header: dialect.header() })),
        }
    }
}

/// KeyDB writes the expiries of members behind the value that they belong to, as pairs of AUX fields: the member, then the
/// moment.
#[cold]
fn take_member_expiry<S: Sink>(cursor: &mut Cursor<'_>, sink: &mut S) -> bool {
    let mut ahead = cursor.clone();
    let taken = ahead.u8("opcode").and_then(|_| Ok((ahead.str("name of an AUX field")?, ahead.str("value of an AUX field")?)));
    // Whatever is wrong here is found, and reported, as the next thing between records.
    let Ok((Str::Raw(name), value)) = taken else { return false };
    if name == b"keydb-subexpire-when" {
        let mut scratch = Vec::new();
        let at_ms = value.text(&mut scratch, 32).ok().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        sink.field_expiry(at_ms);
    } else if name != b"keydb-subexpire-key" {
        return false;
    }
    *cursor = ahead;
    true
}

/// Passes what modules have attached to a key: classes, each with a specification of four bytes and a self-describing stream.
fn key_metadata(cursor: &mut Cursor<'_>) -> Result<()> {
    let at = cursor.offset();
    let classes = cursor.len("number of metadata classes")?;
    if !(1..=7).contains(&classes) {
        return Err(Error::new(at, "number of metadata classes", ErrorKind::Invalid("not 1 to 7")));
    }
    for _ in 0..classes {
        cursor.array::<4>("specification of a metadata class")?;
        value::module_stream(cursor)?;
    }
    Ok(())
}

/// Opcodes that only Dragonfly writes.
fn dragonfly_frame<'a>(cursor: &mut Cursor<'a>, byte: u8, at: u64) -> Result<Frame<'a>> {
    match byte {
        opcode::FULLSYNC_END => {
            cursor.array::<8>("end of a full synchronisation")?;
        }
        opcode::BLOB_ZSTD => return Ok(Frame::Blob { codec: BlobCodec::Zstd, packed: cursor.str("blob of records")? }),
        opcode::BLOB_LZ4 => return Ok(Frame::Blob { codec: BlobCodec::Lz4, packed: cursor.str("blob of records")? }),
        opcode::BLOB_END => {}
        opcode::JOURNAL_BLOB => {
            cursor.len("number of journal entries")?;
            cursor.str("journal entries")?;
        }
        opcode::JOURNAL_OFFSET => {
            cursor.array::<8>("journal offset")?;
        }
        opcode::VECTOR_INDEX => {
            cursor.str("name of a vector index")?;
            cursor.len("entry point of a vector index")?;
            for _ in 0..cursor.count(20, "size of a vector index")? {
                cursor.take(12, "entry of a vector index")?;
                let levels = u64::from(u32::from_le_bytes(cursor.array("levels of a vector index")?)) + 1;
                for _ in 0..levels {
                    let links = u64::from(u32::from_le_bytes(cursor.array("links of a vector index")?));
                    cursor.take(links * 4, "links of a vector index")?;
                }
            }
        }
        opcode::SHARD_DOC_INDEX => {
            cursor.len("shard of a document index")?;
            cursor.str("name of a document index")?;
            for _ in 0..cursor.count(2, "size of a document index")? {
                cursor.str("key of a document index")?;
                cursor.len("document id")?;
            }
        }
        opcode::TAGGED_CHUNK => {
            let id = u32::from_le_bytes(cursor.array("id of a chunk")?);
            let len = u32::from_le_bytes(cursor.array("length of a chunk")?);
            if id == 0 || len == 0 {
                return Err(Error::new(at, "chunk of a record", ErrorKind::Invalid("its id or length is 0")));
            }
            return Ok(Frame::Chunk { id, bytes: cursor.take(u64::from(len), "chunk of a record")? });
        }
        _ => {
            let header = Dialect { family: Family::Redis, version: 9 }.header();
            return Err(Error::new(at, "type or opcode", ErrorKind::UnknownByte { byte, header }));
        }
    }
    Ok(Frame::Other)
}

/// Names what a file is that is no dump, by its first bytes.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 13] = [
        (b"\x1f\x8b", "a gzip file: decompress it first"),
        (b"\x28\xb5\x2f\xfd", "a zstd file: decompress it first"),
        (b"\x04\x22\x4d\x18", "an lz4 file: decompress it first"),
        (b"BZh", "a bzip2 file: decompress it first"),
        (b"\xfd7zXZ\x00", "an xz file: decompress it first"),
        (b"PK\x03\x04", "a zip archive: unpack it first"),
        (b"VCS", "a dump in Valkey's compressed envelope: decompress the LZ4 frame after its first 7 bytes"),
        (b"*", "an append-only file without an RDB part: run BGREWRITEAOF with aof-use-rdb-preamble, or take a dump"),
        (b"#TS:", "an append-only file without an RDB part: run BGREWRITEAOF with aof-use-rdb-preamble, or take a dump"),
        (b"$", "a capture of a replication stream: cut off what precedes REDIS"),
        (b"+FULLRESYNC", "a capture of a replication stream: cut off what precedes REDIS"),
        (b"SQLite format 3", "an SQLite database"),
        (b"\x7fELF", "an executable"),
    ];
    if bytes.iter().take(4096).all(|&b| b == 0) {
        return Some(
            "the file begins with zeros; it was only partly copied or its disk lost the data: take another copy of the backup",
        );
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: unpack it first");
    }
    if foreign::is_capture_without_dump(bytes) {
        return Some(
            "a capture of a replication stream that ends before the dump begins: take it again, up to the end of the dump",
        );
    }
    SIGNATURES.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, why)| *why)
}
