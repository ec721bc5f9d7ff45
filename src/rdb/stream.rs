//! Walks a stream's record: listpacks by id, counters, consumer groups.

use super::cursor::{Cursor, Str};
use super::sink::Sink;
use super::types::StreamLayout;
use super::value;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a stream id: milliseconds and sequence, big endian.
const ID_BYTES: u64 = 16;

/// Passes the stream and returns its number of live entries.
pub(super) fn walk<S: Sink>(cursor: &mut Cursor<'_>, layout: StreamLayout, sink: &mut S) -> Result<u64> {
    for _ in 0..cursor.count(ID_BYTES + 2, "number of stream nodes")? {
        let at = cursor.offset();
        let id = cursor.str("id of a stream node")?;
        if !matches!(id, Str::Raw(id) if id.len() as u64 == ID_BYTES) {
            return Err(Error::new(at, "id of a stream node", ErrorKind::Invalid("not 16 bytes long")));
        }
        let offset = cursor.offset();
        let listpack = cursor.str("listpack of a stream node")?;
        value::stream_listpack(offset, listpack, sink);
    }
    let length = cursor.len("length of a stream")?;
    id(cursor, "last id of a stream")?;
    if layout >= StreamLayout::V2 {
        id(cursor, "first id of a stream")?;
        id(cursor, "largest deleted id of a stream")?;
        cursor.len("entries added to a stream")?;
    }
    for _ in 0..cursor.count(5, "number of consumer groups")? {
        group(cursor, layout)?;
    }
    Ok(length)
}

fn id(cursor: &mut Cursor<'_>, reading: &'static str) -> Result<(u64, u64)> {
    Ok((cursor.len(reading)?, cursor.len(reading)?))
}

fn group(cursor: &mut Cursor<'_>, layout: StreamLayout) -> Result<()> {
    cursor.str("name of a consumer group")?;
    id(cursor, "last id of a consumer group")?;
    if layout >= StreamLayout::V2 {
        cursor.len("entries read by a consumer group")?;
    }
    for _ in 0..cursor.count(ID_BYTES + 9, "number of pending entries")? {
        cursor.take(ID_BYTES, "id of a pending entry")?;
        cursor.array::<8>("delivery time of a pending entry")?;
        cursor.len("delivery count of a pending entry")?;
    }
    for _ in 0..cursor.count(10, "number of consumers")? {
        cursor.str("name of a consumer")?;
        cursor.array::<8>("seen time of a consumer")?;
        if layout >= StreamLayout::V3 {
            cursor.array::<8>("active time of a consumer")?;
        }
        let pending = cursor.count(ID_BYTES, "pending entries of a consumer")?;
        cursor.take(pending * ID_BYTES, "pending entries of a consumer")?;
    }
    Ok(())
}
