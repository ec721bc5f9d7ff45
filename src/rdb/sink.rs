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

/// Receives what a [`Walker`](super::Walker) passes. All methods do nothing unless overridden.
pub trait Sink {
    /// Only the ends of records are wanted: packed values are not even opened for their counts.
    const SKIM: bool = false;

    /// Something between records, `bytes` long in the dump.
    fn frame(&mut self, _frame: Frame<'_>, _bytes: u64) {}

    /// A record begins; its value follows.
    fn begin(&mut self, _head: &RecordHead<'_>) {}

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

    /// An entry of the packed value just reported, where that was opened (or had to be, for its count).
    fn entry(&mut self, _role: Role, _entry: Entry<'_>) {}

    /// A fault inside a value whose end is known all the same.
    fn value_fault(&mut self, _fault: Error) {}

    /// The record ends.
    fn end(&mut self, _head: &RecordHead<'_>, _tail: &RecordTail) {}
}
