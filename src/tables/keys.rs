//! The table of keys: one row for each, made while the dump is walked.

use super::{Cell, Column, Unit};
use crate::measure::Fact;
use crate::rdb::KeyType;

/// A column of the key table: what it is called, and how a fact fills it.
#[derive(Clone, Copy)]
pub struct KeyColumn {
    /// Name and unit.
    pub column: Column,
    /// Part of the output unless columns are named.
    pub default: bool,
    /// Filled only where packed values are opened.
    pub deep: bool,
    /// Fills the cell; `shape` is the key's shape.
    pub cell: for<'a> fn(&Fact<'a>, shape: &'a [u8]) -> Cell<'a>,
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
    column!("db", Count, |f, _| f.db.into()),
    column!("key", Text, |f, _| Cell::key(f.key)),
    column!("type", Text, |f, _| Cell::text(type_name(f.key_type))),
    column!("encoding", Text, |f, _| Cell::text(f.encoding.name())),
    column!("elements", Count, |f, _| f.elements.into()),
    column!("payload_bytes", Bytes, true, true, |f, _| f.payload_bytes.into()),
    column!("serialized_bytes", Bytes, |f, _| f.serialized_bytes.into()),
    column!("memory_bytes", Bytes, |f, _| f.memory_bytes.into()),
    column!("expires_at_ms", UnixMs, |f, _| f.expires_at_ms.into()),
    column!("ttl_seconds", Seconds, |f, _| f.lifetime.ttl_seconds().into()),
    column!("slot", Count, |f, _| u64::from(f.slot).into()),
    column!("class", Text, |_, _| Cell::Empty),
    column!("shape", Text, |_, shape| Cell::text(String::from_utf8_lossy(shape))),
    column!("idle_seconds", Seconds, |f, _| f.idle_seconds.into()),
    column!("freq", Count, |f, _| f.freq.map(u64::from).into()),
    column!("key_b64", Text, false, false, |f, _| Cell::text(base64(f.key))),
    column!("largest_element_bytes", Bytes, false, true, |f, _| f.largest_element_bytes.into()),
];

/// The columns of the CSV that redis-rdb-tools writes, in its order.
pub const RDBTOOLS_COLUMNS: &[KeyColumn] = &[
    column!("database", Count, |f, _| f.db.into()),
    column!("type", Text, |f, _| match f.key_type {
        KeyType::Zset => Cell::text("sortedset"),
        other => Cell::text(type_name(other)),
    }),
    column!("key", Text, |f, _| Cell::key(f.key)),
    column!("size_in_bytes", Bytes, |f, _| f.memory_bytes.into()),
    column!("encoding", Text, |f, _| Cell::text(f.encoding.name())),
    column!("num_elements", Count, |f, _| f.elements.or(f.payload_bytes).into()),
    column!("len_largest_element", Bytes, true, true, |f, _| f.largest_element_bytes.into()),
    column!("expiry", Text, |f, _| f.expires_at_ms.map_or(Cell::Empty, |at| Cell::text(utc(at)))),
];

/// The column of that name.
pub fn key_column(name: &str) -> Option<&'static KeyColumn> {
    KEY_COLUMNS.iter().find(|column| column.column.name == name)
}

fn type_name(key_type: KeyType) -> std::borrow::Cow<'static, str> {
    match key_type {
        KeyType::String => "string".into(),
        KeyType::List => "list".into(),
        KeyType::Set => "set".into(),
        KeyType::Zset => "zset".into(),
        KeyType::Hash => "hash".into(),
        KeyType::Stream => "stream".into(),
        KeyType::Module(id) => id.to_string().into(),
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// RFC 3339 in UTC with milliseconds, where a calendar year can be given; else the number.
fn utc(unix_ms: i64) -> String {
    crate::time::rfc3339_millis(unix_ms).unwrap_or_else(|| unix_ms.to_string())
}
