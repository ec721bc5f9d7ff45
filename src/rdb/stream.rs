//! Walks a stream's record: listpacks by id, counters, consumer groups.

use super::cursor::{Cursor, Str};
use super::packed::{Entry, ListpackEntries, PackedForm};
use super::sink::{Role, Sink, StreamCounters, StreamPart};
use super::types::StreamLayout;
use super::value::{self, Roles};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a stream id: milliseconds and sequence, big endian.
const ID_BYTES: u64 = 16;

/// Flags of an entry, as `t_stream.c` numbers them.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// Bytes of the shortest entry in a node: flags, two parts of its id and a count, two bytes each.
const LEAST_ENTRY_BYTES: u64 = 8;

/// Longest listpack of a node that is decompressed: far above what `stream-node-max-bytes` lets a server write.
const MAX_NODE_BYTES: u64 = 1 << 30;

/// Passes the stream and returns its number of live entries; none where it says more than its nodes can hold.
pub(super) fn walk<S: Sink>(
    cursor: &mut Cursor<'_>,
    layout: StreamLayout,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<u64>> {
    let begin = cursor.offset();
    // Entries that the nodes count; unknown where they were not opened.
    let mut counted = Some(0u64);
    let mut node_bytes = 0u64;
    for _ in 0..cursor.count(ID_BYTES + 2, "number of stream nodes")? {
        let at = cursor.offset();
        let id = cursor.str("id of a stream node")?;
        let Some(id) = raw_id(id) else {
            return Err(Error::new(at, "id of a stream node", ErrorKind::Invalid("not 16 bytes long")));
        };
        sink.stream(StreamPart::Node(id));
        let offset = cursor.offset();
        let listpack = cursor.str("listpack of a stream node")?;
        node_bytes = node_bytes.saturating_add(listpack.len());
        let live = if sink.opens(listpack.len()) {
            node_entries(offset, listpack, scratch, sink)
        } else {
            value::packed(offset, listpack, PackedForm::Listpack, Roles::of(&[None]), scratch, sink);
            None
        };
        counted = counted.zip(live).map(|(sum, live)| sum.saturating_add(live));
    }
    let length = cursor.len("length of a stream")?;
    let last_id = id(cursor, "last id of a stream")?;
    let mut counters = StreamCounters { length, last_id, ..StreamCounters::default() };
    if layout >= StreamLayout::V2 {
        id(cursor, "first id of a stream")?;
        counters.max_deleted_id = Some(id(cursor, "largest deleted id of a stream")?);
        counters.entries_added = Some(cursor.len("entries added to a stream")?);
    }
    let is_possible = length <= node_bytes / LEAST_ENTRY_BYTES;
    if !is_possible || counted.is_some_and(|counted| counted != length) {
        let why = "its length and the entries of its nodes disagree";
        sink.value_fault(Error::new(begin, "stream", ErrorKind::Invalid(why)));
    }
    sink.stream(StreamPart::Counters(counters));
    for _ in 0..cursor.count(5, "number of consumer groups")? {
        group(cursor, layout, sink)?;
    }
    if layout >= StreamLayout::V4 {
        producers(cursor)?;
    }
    Ok(is_possible.then_some(length))
}

fn raw_id(id: Str<'_>) -> Option<&[u8; 16]> {
    match id {
        Str::Raw(bytes) => bytes.try_into().ok(),
        _ => None,
    }
}

fn id(cursor: &mut Cursor<'_>, reading: &'static str) -> Result<(u64, u64)> {
    Ok((cursor.len(reading)?, cursor.len(reading)?))
}

fn group<S: Sink>(cursor: &mut Cursor<'_>, layout: StreamLayout, sink: &mut S) -> Result<()> {
    let begin = cursor.offset();
    let name = cursor.str("name of a consumer group")?;
    id(cursor, "last id of a consumer group")?;
    if layout >= StreamLayout::V2 {
        cursor.len("entries read by a consumer group")?;
    }
    let pending = cursor.count(ID_BYTES + 9, "number of pending entries")?;
    sink.stream(StreamPart::Group { name, pending });
    for _ in 0..pending {
        let id = cursor.array::<16>("id of a pending entry")?;
        sink.stream(StreamPart::GroupPending(&id));
        cursor.array::<8>("delivery time of a pending entry")?;
        cursor.len("delivery count of a pending entry")?;
    }
    let mut owned = 0u64;
    for _ in 0..cursor.count(10, "number of consumers")? {
        let name = cursor.str("name of a consumer")?;
        cursor.array::<8>("seen time of a consumer")?;
        if layout >= StreamLayout::V3 {
            cursor.array::<8>("active time of a consumer")?;
        }
        let pending = cursor.count(ID_BYTES, "pending entries of a consumer")?;
        sink.stream(StreamPart::Consumer { name, pending });
        owned = owned.saturating_add(pending);
        for _ in 0..pending {
            let id = cursor.array::<16>("id of a pending entry")?;
            sink.stream(StreamPart::ConsumerPending(&id));
        }
    }
    if layout >= StreamLayout::V5 {
        let handed_back = cursor.count(ID_BYTES, "entries handed back")?;
        cursor.take(handed_back * ID_BYTES, "entries handed back")?;
        sink.stream(StreamPart::HandedBack(handed_back));
        owned = owned.saturating_add(handed_back);
    }
    // A server loads it all the same.
    if owned != pending && sink.is_strict() {
        let why = "its pending entries and those of its consumers disagree";
        sink.value_fault(Error::new(begin, "consumer group", ErrorKind::Invalid(why)));
    }
    Ok(())
}

/// Producers whose entries are told apart, each with the ids of its own that it has used.
fn producers(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.len("duration of idempotent production")?;
    cursor.len("size of idempotent production")?;
    for _ in 0..cursor.count(2, "number of producers")? {
        cursor.str("id of a producer")?;
        for _ in 0..cursor.count(3, "ids of a producer")? {
            cursor.str("id of a produced entry")?;
            id(cursor, "stream id of a produced entry")?;
        }
    }
    cursor.len("produced ids added")?;
    cursor.len("produced ids that were duplicates")?;
    Ok(())
}

/// Reports the fields and values of every live entry of a node, and returns how many live entries it has.
#[inline(never)]
fn node_entries<S: Sink>(offset: u64, listpack: Str<'_>, scratch: &mut Vec<u8>, sink: &mut S) -> Option<u64> {
    let fault = |why| Error::new(offset, "stream node", ErrorKind::Invalid(why));
    let bytes = match listpack.text(scratch, MAX_NODE_BYTES) {
        Ok(bytes) => bytes,
        Err(fault) => {
            sink.value_fault(fault);
            return None;
        }
    };
    let counted = PackedForm::Listpack.count(bytes, bytes.len() as u64);
    match PackedForm::Listpack.entries(bytes, |_| ()) {
        Ok(n) if counted.is_ok_and(|counted| counted.is_some_and(|counted| counted != n)) => {
            sink.value_fault(fault("its header counts other entries than it has"));
            return None;
        }
        Ok(n) => sink.packed(PackedForm::Listpack, listpack.len(), n),
        Err(wrong) => {
            sink.value_fault(fault(wrong.why));
            return None;
        }
    }
    // Entries are read a second time rather than kept: there may be very many in few compressed bytes.
    let mut node = Node { rest: ListpackEntries::new(bytes) };
    let read = node.master().and_then(|master| node.items(&master, sink));
    match read {
        Some(live) if node.rest.at_end() => Some(live),
        _ => {
            sink.value_fault(fault("its entries do not add up"));
            None
        }
    }
}

/// The entries of a node's listpack that were not read yet.
struct Node<'e> {
    rest: ListpackEntries<'e>,
}

/// What stands in front of the entries of a node.
struct Master<'e> {
    live: u64,
    deleted: u64,
    /// How many fields entries may share, and where these begin.
    fields: (u64, ListpackEntries<'e>),
}

impl<'e> Node<'e> {
    fn skip(&mut self, n: u64) -> Option<()> {
        for _ in 0..n {
            self.rest.next()?;
        }
        Some(())
    }

    fn number(&mut self) -> Option<i64> {
        match self.rest.next()? {
            Entry::Int(value) => Some(value),
            Entry::Bytes(_) => None,
        }
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    fn master(&mut self) -> Option<Master<'e>> {
        let (live, deleted) = (self.count()?, self.count()?);
        let fields = (self.count()?, self.rest.clone());
        self.skip(fields.0)?;
        (self.number()? == 0).then_some(Master { live, deleted, fields })
    }

    /// Reads all items and returns how many are live.
    fn items<S: Sink>(&mut self, master: &Master<'e>, sink: &mut S) -> Option<u64> {
        let mut live = 0u64;
        let mut deleted = 0u64;
        while !self.rest.at_end() {
            let flags = self.number()?;
            self.skip(2)?; // milliseconds and sequence after the node's id
            let is_deleted = flags & DELETED != 0;
            let mut report = |field, value| {
                if !is_deleted {
                    sink.entry(Role::Field, field);
                    sink.entry(Role::FieldValue, value);
                }
            };
            if flags & SAME_FIELDS != 0 {
                let (n, mut fields) = master.fields.clone();
                for _ in 0..n {
                    report(fields.next()?, self.rest.next()?);
                }
            } else {
                for _ in 0..self.count()? {
                    report(self.rest.next()?, self.rest.next()?);
                }
            }
            self.number()?; // entries of this item, for reading backwards
            if is_deleted { deleted += 1 } else { live += 1 }
        }
        (live == master.live && deleted == master.deleted).then_some(live)
    }
}
