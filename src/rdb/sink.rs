//! What a walk reports, and to whom: a sink is chosen at compile time and pays only for what it looks at.

use super::cursor::Str;
use super::packed::{Entry, PackedForm};
use super::types::{ModuleId, RecordType};
use crate::error::Error;

/// What a string inside a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The value of a string key.
    Value,
    /// An element of a list.
    Element,
    /// A member of a set or sorted set.
    Member,
    /// A field name of a hash or stream entry.
    Field,
    /// The value of a field.
    FieldValue,
    /// The score of a member, in a packed value.
    Score,
    /// The expiry of a field, in a packed value.
    Expiry,
}

/// A key's record up to its value.
#[derive(Debug, Clone, Copy)]
pub struct RecordHead<'a> {
    /// Offset of the first byte, prefix opcodes included.
    pub offset: u64,
    /// Database number.
    pub db: u64,
    /// Absolute expiry in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// Seconds since the last access, where the server evicted by LRU.
    pub idle_seconds: Option<u64>,
    /// Access counter 0 to 255, where the server evicted by LFU.
    pub freq: Option<u8>,
    /// Type byte and layout; of a module with the id as key type.
    pub record_type: RecordType,
    /// Bytes of the key.
    pub key: &'a [u8],
}

/// What is known when a record has been passed.
#[derive(Debug, Clone, Copy)]
pub struct RecordTail {
    /// Bytes that the record takes in the dump.
    pub serialized_bytes: u64,
    /// Members, fields or entries; `None` for strings, for modules whose format is their own, and where a value is damaged inside.
    pub elements: Option<u64>,
}

/// Something between records.
#[derive(Debug, Clone, Copy)]
pub enum Frame<'a> {
    /// A name and value about the file.
    Aux {
        /// Name.
        name: Str<'a>,
        /// Value.
        value: Str<'a>,
    },
    /// Keys of this database follow.
    SelectDb(u64),
    /// How many keys the database had when the save began.
    ResizeDb {
        /// All keys.
        keys: u64,
        /// Those with an expiry.
        expires: u64,
    },
    /// Keys of this slot follow.
    SlotInfo {
        /// Slot.
        slot: u64,
        /// Keys in it.
        keys: u64,
        /// Those with an expiry.
        expires: u64,
    },
    /// A slot migration was under way (Valkey).
    SlotImport,
    /// A hash template (Redis 8.10).
    HashTemplate {
        /// Its id.
        id: u64,
        /// How many fields it names.
        fields: u64,
    },
    /// A blob of records, compressed (Dragonfly).
    Blob {
        /// How.
        codec: BlobCodec,
        /// The compressed bytes.
        packed: Str<'a>,
    },
    /// A piece of a record that is cut into several (Dragonfly).
    Chunk {
        /// Pieces of the same id belong together.
        id: u32,
        /// The piece.
        bytes: &'a [u8],
    },
    /// Something that concerns no key: journal entries, indices (Dragonfly).
    Other,
    /// A function library.
    Function {
        /// Source, the first line naming engine and library; of 7.0 release candidates the code alone.
        code: Str<'a>,
    },
    /// Data of a module that belongs to no key.
    ModuleAux(ModuleId),
    /// End of the dump.
    End {
        /// The stored checksum; `None` where the version has none. Zero means that the server did not compute one.
        checksum: Option<u64>,
    },
}

/// How a blob of records is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobCodec {
    /// One zstd frame.
    Zstd,
    /// One LZ4 frame.
    Lz4,
}

/// A part of a stream's record.
#[derive(Debug, Clone, Copy)]
pub enum StreamPart<'a> {
    /// A node begins: its id, 16 bytes. Its listpack is reported as a packed value.
    Node(&'a [u8; 16]),
    /// Counters behind the nodes.
    Counters(StreamCounters),
    /// A consumer group begins.
    Group {
        /// Its name.
        name: Str<'a>,
        /// Entries that were delivered and not yet acknowledged.
        pending: u64,
    },
    /// Id of a pending entry of the group.
    GroupPending(&'a [u8; 16]),
    /// A consumer of the group begins.
    Consumer {
        /// Its name.
        name: Str<'a>,
        /// Its share of the pending entries.
        pending: u64,
    },
    /// Id of a pending entry of the consumer.
    ConsumerPending(&'a [u8; 16]),
    /// Pending entries of the group that no consumer has (Redis 8.8).
    HandedBack(u64),
}

/// Counters of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Entries.
    pub length: u64,
    /// Milliseconds and sequence of the last id.
    pub last_id: (u64, u64),
    /// The largest id that was deleted; Redis 7.0 and later.
    pub max_deleted_id: Option<(u64, u64)>,
    /// Entries ever added; Redis 7.0 and later.
    pub entries_added: Option<u64>,
}

/// Receives what a [`Walker`](super::Walker) passes. All methods do nothing unless overridden.
pub trait Sink {
    /// Only the ends of records are wanted: packed values are not even opened for their counts.
    const SKIM: bool = false;

    /// Something between records, `bytes` long in the dump.
    fn frame(&mut self, _frame: Frame<'_>, _bytes: u64) {}

    /// A record begins; its value follows.
    fn begin(&mut self, _head: &RecordHead<'_>) {}

    /// The value has so many elements, as strings of their own; they follow.
    fn elements(&mut self, _n: u64) {}

    /// A string of the value, in file order. Of a hash: field, then value.
    fn text(&mut self, _role: Role, _text: Str<'_>) {}

    /// The score of the member just reported.
    fn score(&mut self, _score: f64) {}

    /// The expiry of the field of which the name comes next (or came last), in Unix milliseconds.
    fn field_expiry(&mut self, _at_ms: Option<i64>) {}

    /// A packed value or node: its form, its plain length, and how many entries its header or a walk counted. It comes before the entries
    /// where the header knows how many there are, else after them.
    fn packed(&mut self, _form: PackedForm, _len: u64, _entries: u64) {}

    /// Whether a packed value of `len` plain bytes is opened, so that its entries are reported.
    fn opens(&self, _len: u64) -> bool {
        false
    }

    /// Whether a packed value of `len` plain bytes is opened whose header counts `entries`; unless overridden, its length decides.
    fn opens_entries(&self, len: u64, _entries: u64) -> bool {
        self.opens(len)
    }

    /// An entry of a packed value that is opened, as it is stored and whatever its role; what the role makes of it comes next.
    fn stored(&mut self, _entry: Entry<'_>) {}

    /// Whether faults that no server minds are reported too.
    fn is_strict(&self) -> bool {
        false
    }

    /// An entry of the packed value just reported, where that was opened (or had to be, for its count).
    fn entry(&mut self, _role: Role, _entry: Entry<'_>) {}

    /// A part of a stream.
    fn stream(&mut self, _part: StreamPart<'_>) {}

    /// A fault inside a value whose end is known all the same.
    fn value_fault(&mut self, _fault: Error) {}

    /// The record ends.
    fn end(&mut self, _head: &RecordHead<'_>, _tail: &RecordTail) {}
}
