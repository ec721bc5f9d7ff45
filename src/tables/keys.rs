//! The table of keys: one row for each, made while the dump is walked.

use super::{Cell, Column, Unit};
use crate::measure::Fact;
use crate::rdb::{KeyType, UNKNOWN_DB};

/// What a row of the key table is made of.
#[derive(Debug, Clone, Copy)]
pub struct KeySource<'a> {
    /// The key's facts.
    pub fact: &'a Fact<'a>,
    /// Its name as it appears, which may be masked.
    pub name: &'a [u8],
    /// Its class, where a contract names it.
    pub class: Option<&'a str>,
    /// Its shape.
    pub shape: &'a str,
    /// It was found behind a fault.
    pub recovered: bool,
}

/// A column of the key table: what it is called, and how a fact fills it.
#[derive(Clone, Copy)]
pub struct KeyColumn {
    /// Name and unit.
    pub column: Column,
    /// Part of the output unless columns are named.
    pub default: bool,
    /// Filled only where packed values are opened.
    pub deep: bool,
    /// Fills the cell.
    pub cell: for<'a> fn(KeySource<'a>) -> Cell<'a>,
}

impl std::fmt::Debug for KeyColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.column.name)
    }
}

macro_rules! column {
    ($name:literal, $unit:ident, $cell:expr) => {
        column!($name, $unit, true, false, $cell)
    };
    ($name:literal, $unit:ident, $default:literal, $deep:literal, $cell:expr) => {
        KeyColumn { column: Column { name: $name, unit: Unit::$unit }, default: $default, deep: $deep, cell: $cell }
    };
}

/// All columns; those that are there by default come first, in their order.
pub const KEY_COLUMNS: &[KeyColumn] = &[
    column!("db", Count, |s| db(s.fact.db)),
    column!("key", Text, |s| Cell::key(s.name)),
    column!("type", Text, |s| Cell::text(type_name(s.fact.key_type))),
    column!("encoding", Text, |s| Cell::text(s.fact.encoding.name())),
    column!("elements", Count, |s| s.fact.elements.into()),
    column!("payload_bytes", Bytes, true, true, |s| s.fact.payload_bytes.into()),
    column!("serialized_bytes", Bytes, |s| s.fact.serialized_bytes.into()),
    column!("memory_bytes", Bytes, |s| s.fact.memory_bytes.into()),
    column!("expires_at_ms", UnixMs, |s| s.fact.expires_at_ms.into()),
    column!("ttl_seconds", Seconds, |s| s.fact.lifetime.ttl_seconds().into()),
    column!("slot", Count, |s| u64::from(s.fact.slot).into()),
    column!("class", Text, |s| s.class.map_or(Cell::Empty, Cell::text)),
    column!("shape", Text, |s| Cell::text(s.shape)),
    column!("idle_seconds", Seconds, |s| s.fact.idle_seconds.into()),
    column!("freq", Count, |s| s.fact.freq.map(u64::from).into()),
    column!("key_b64", Text, false, false, |s| Cell::text(base64(s.name))),
    column!("largest_element_bytes", Bytes, false, true, |s| s.fact.largest_element_bytes.into()),
    column!("hfe_fields", Count, false, false, |s| s.fact.field_expiry.map(|e| e.fields).into()),
    column!("hfe_min_expire_ms", UnixMs, false, false, |s| s.fact.field_expiry.map(|e| e.min_ms).into()),
    column!("hfe_max_expire_ms", UnixMs, false, false, |s| s.fact.field_expiry.map(|e| e.max_ms).into()),
    column!("hfe_expired_fields", Count, false, false, |s| s.fact.field_expiry.map(|e| e.expired).into()),
    column!("stream_groups", Count, false, false, |s| s.fact.stream.map(|s| s.groups).into()),
    column!("stream_consumers", Count, false, false, |s| s.fact.stream.map(|s| s.consumers).into()),
    column!("stream_pending", Count, false, false, |s| s.fact.stream.map(|s| s.pending).into()),
    column!("stream_last_id", Text, false, false, |s| s.fact.stream.map_or(Cell::Empty, |s| stream_id(s.counters.last_id))),
    column!("recovered", Flag, false, false, |s| Cell::Flag(s.recovered)),
];

/// The columns of the CSV that redis-rdb-tools writes, in its order.
pub const RDBTOOLS_COLUMNS: &[KeyColumn] = &[
    column!("database", Count, |s| db(s.fact.db)),
    column!("type", Text, |s| match s.fact.key_type {
        KeyType::Zset => Cell::text("sortedset"),
        other => Cell::text(type_name(other)),
    }),
    column!("key", Text, |s| Cell::key(s.name)),
    column!("size_in_bytes", Bytes, |s| s.fact.memory_bytes.into()),
    column!("encoding", Text, |s| Cell::text(s.fact.encoding.name())),
    column!("num_elements", Count, |s| s.fact.elements.or(s.fact.payload_bytes).into()),
    column!("len_largest_element", Bytes, true, true, |s| s.fact.largest_element_bytes.into()),
    column!("expiry", Text, |s| s.fact.expires_at_ms.and_then(crate::time::isoformat).map_or(Cell::Empty, Cell::text)),
];

/// The column of that name.
pub fn key_column(name: &str) -> Option<&'static KeyColumn> {
    KEY_COLUMNS.iter().find(|column| column.column.name == name)
}

/// A database; of a recovered key, in front of which none was selected, a question mark.
fn db(db: u64) -> Cell<'static> {
    if db == UNKNOWN_DB { Cell::text("?") } else { db.into() }
}

fn type_name(key_type: KeyType) -> std::borrow::Cow<'static, str> {
    match key_type {
        KeyType::String => "string".into(),
        KeyType::List => "list".into(),
        KeyType::Set => "set".into(),
        KeyType::Zset => "zset".into(),
        KeyType::Hash => "hash".into(),
        KeyType::Stream => "stream".into(),
        KeyType::Array => "array".into(),
        KeyType::Other(name) => name.into(),
        KeyType::Module(id) => id.to_string().into(),
    }
}

/// Milliseconds and sequence, as the server writes an id.
pub(super) fn stream_id((ms, seq): (u64, u64)) -> Cell<'static> {
    Cell::text(format!("{ms}-{seq}"))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
