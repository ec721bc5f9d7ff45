//! Walks one value by its layout.

use std::collections::HashMap;

use super::cursor::{Cursor, Str};
use super::packed::{Entry, PackedForm};
use super::sink::{Role, Sink};
use super::types::{KeyType, Layout, RecordType, Sequence};
use super::{rare, stream};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the longest header of a packed form.
const PACKED_HEAD: usize = 10;

/// Containers of a quicklist node, as `quicklist.h` numbers them.
const CONTAINER_PLAIN: u64 = 1;
const CONTAINER_PACKED: u64 = 2;

/// Longest packed value that is decompressed whole: the growth limit of listpacks in the server.
const MAX_PACKED_BYTES: u64 = 1 << 30;

/// Passes the value and returns its number of elements, where it has one.
#[inline]
pub(super) fn walk<S: Sink>(
    cursor: &mut Cursor<'_>,
    record_type: &RecordType,
    templates: &HashMap<u64, u64>,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<u64>> {
    match record_type.layout {
        Layout::Plain => {
            sink.text(Role::Value, cursor.str("string value")?);
            Ok(None)
        }
        Layout::Sequence(sequence) => walk_sequence(cursor, sequence, record_type.key_type, sink).map(Some),
        Layout::Packed { form, per_element, min_expiry } => {
            // Redis compares it with the entries and can do without it.
            if min_expiry {
                cursor.array::<8>("earliest field expiry")?;
            }
            let offset = cursor.offset();
            let blob = cursor.str("packed value")?;
            let roles = packed_roles(record_type.key_type, per_element);
            Ok(packed(offset, blob, form, roles, scratch, sink).map(|entries| entries / per_element))
        }
        Layout::Nodes { form, containers } => walk_nodes(cursor, form, containers, scratch, sink),
        Layout::Stream(layout) => stream::walk(cursor, layout, scratch, sink),
        Layout::Module => walk_module(cursor, record_type.key_type),
        Layout::Template(_) | Layout::Array | Layout::PathHash | Layout::Cron | Layout::RateLimiter | Layout::Sketch(_) => {
            rare::walk(cursor, record_type.layout, templates, scratch, sink)
        }
    }
}

#[inline]
fn walk_sequence<S: Sink>(cursor: &mut Cursor<'_>, sequence: Sequence, key_type: KeyType, sink: &mut S) -> Result<u64> {
    let min_expiry = match sequence {
        Sequence::ExpiryPair { relative: true } => i64::from_le_bytes(cursor.array("earliest field expiry")?),
        _ => 0,
    };
    let least = match sequence {
        Sequence::Single => 1,
        Sequence::Pair | Sequence::TextScore => 2,
        Sequence::ExpiryPair { .. } => 3,
        Sequence::BinaryScore => 9,
        Sequence::PairExpiry => 10,
        Sequence::PairTextExpiry => 3,
        Sequence::SingleTextExpiry => 2,
    };
    let n = cursor.count(least, "number of elements")?;
    if S::SKIM {
        let strings = match sequence {
            Sequence::Single => Some((n, "element")),
            Sequence::Pair => Some((n.saturating_mul(2), "hash field")),
            _ => None,
        };
        if let Some((strings, reading)) = strings {
            return cursor.skip_strs(strings, reading).map(|()| n);
        }
    }
    sink.elements(n);
    match sequence {
        Sequence::Single => {
            let role = if key_type == KeyType::List { Role::Element } else { Role::Member };
            for _ in 0..n {
                sink.text(role, cursor.str("element")?);
            }
        }
        Sequence::Pair => {
            for _ in 0..n {
                sink.text(Role::Field, cursor.str("hash field")?);
                sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
            }
        }
        Sequence::TextScore => {
            for _ in 0..n {
                sink.text(Role::Member, cursor.str("sorted-set member")?);
                sink.score(text_score(cursor)?);
            }
        }
        Sequence::BinaryScore => {
            for _ in 0..n {
                sink.text(Role::Member, cursor.str("sorted-set member")?);
                sink.score(f64::from_le_bytes(cursor.array("score")?));
            }
        }
        Sequence::ExpiryPair { relative } => {
            for _ in 0..n {
                let ttl = cursor.len("expiry of a hash field")? as i64;
                let at_ms = if relative { min_expiry.saturating_add(ttl).saturating_sub(1) } else { ttl };
                sink.field_expiry((ttl != 0).then_some(at_ms));
                sink.text(Role::Field, cursor.str("hash field")?);
                sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
            }
        }
        Sequence::PairExpiry => {
            for _ in 0..n {
                sink.text(Role::Field, cursor.str("hash field")?);
                sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
                let at_ms = i64::from_le_bytes(cursor.array("expiry of a hash field")?);
                sink.field_expiry((at_ms != -1).then_some(at_ms));
            }
        }
        Sequence::PairTextExpiry => {
            for _ in 0..n {
                sink.text(Role::Field, cursor.str("hash field")?);
                sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
                sink.field_expiry(rare::text_expiry(cursor)?);
            }
        }
        Sequence::SingleTextExpiry => {
            for _ in 0..n {
                sink.text(Role::Member, cursor.str("set member")?);
                sink.field_expiry(rare::text_expiry(cursor)?);
            }
        }
    }
    Ok(n)
}

/// A score as text, which RDB 1 to 7 wrote: 253 is not a number, 254 and 255 are the infinities, else so many digits follow.
fn text_score(cursor: &mut Cursor<'_>) -> Result<f64> {
    match cursor.u8("score")? {
        253 => Ok(f64::NAN),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        n => {
            let at = cursor.offset();
            let digits = cursor.take(u64::from(n), "score")?;
            std::str::from_utf8(digits)
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .ok_or_else(|| Error::new(at, "score", ErrorKind::Invalid("no number")))
        }
    }
}

/// Roles of the entries of a packed value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roles {
    /// So many entries at its beginning have none.
    pub lead: u64,
    /// Those of the others, in turn; `None` for an entry that is no payload.
    pub turns: &'static [Option<Role>],
}

impl Roles {
    /// Roles from the first entry on.
    pub(super) const fn of(turns: &'static [Option<Role>]) -> Self {
        Self { lead: 0, turns }
    }
}

fn packed_roles(key_type: KeyType, per_element: u64) -> Roles {
    Roles::of(match (key_type, per_element) {
        (KeyType::Hash, 3) => &[Some(Role::Field), Some(Role::FieldValue), Some(Role::Expiry)],
        (KeyType::Hash, _) => &[Some(Role::Field), Some(Role::FieldValue)],
        (KeyType::Zset, _) => &[Some(Role::Member), Some(Role::Score)],
        (KeyType::List, _) => &[Some(Role::Element)],
        _ => &[Some(Role::Member)],
    })
}

/// Looks at a packed value as far as the sink wants; a fault inside it is reported and leaves the count unknown.
#[inline]
pub(super) fn packed<S: Sink>(
    offset: u64,
    blob: Str<'_>,
    form: PackedForm,
    roles: Roles,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Option<u64> {
    if S::SKIM {
        return Some(0);
    }
    let mut head = [0; PACKED_HEAD];
    let filled = blob.head(&mut head);
    match form.count(&head[..filled], blob.len()) {
        // What a server makes of a zipmap depends on its longest value, and field expiries stand among the entries: only a look inside
        // can tell.
        Ok(Some(entries)) if form != PackedForm::Zipmap && roles.turns.len() < 3 && !sink.opens_entries(blob.len(), entries) => {
            sink.packed(form, blob.len(), entries);
            Some(entries)
        }
        Ok(known) => packed_entries(offset, blob, form, roles, known, scratch, sink),
        Err(fault) => {
            sink.value_fault(Error::new(offset, "packed value", ErrorKind::Invalid(fault.why)));
            None
        }
    }
}

#[inline(never)]
fn packed_entries<S: Sink>(
    offset: u64,
    blob: Str<'_>,
    form: PackedForm,
    roles: Roles,
    known: Option<u64>,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Option<u64> {
    let bytes = match blob.text(scratch, MAX_PACKED_BYTES) {
        Ok(bytes) => bytes,
        Err(fault) => {
            sink.value_fault(fault);
            return None;
        }
    };
    if let Some(entries) = known {
        sink.packed(form, blob.len(), entries);
    }
    let Roles { mut lead, turns } = roles;
    let mut turn = 0;
    let mut wrong = None;
    let walked = form.entries(bytes, |entry: Entry<'_>| {
        sink.stored(entry);
        if lead > 0 {
            lead -= 1;
            return;
        }
        match (turns[turn], entry) {
            (Some(Role::Score), Entry::Int(score)) => sink.score(score as f64),
            (Some(Role::Score), Entry::Bytes(text)) => match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                Some(score) => sink.score(score),
                None => wrong = Some("a score is no number"),
            },
            (Some(Role::Expiry), Entry::Int(at_ms)) => sink.field_expiry((at_ms != 0).then_some(at_ms)),
            (Some(Role::Expiry), Entry::Bytes(_)) => wrong = Some("an expiry is no number"),
            (Some(role), entry) => sink.entry(role, entry),
            (None, _) => {}
        }
        turn = (turn + 1) % turns.len();
    });
    match walked {
        Ok(_) if wrong.is_some() => {
            sink.value_fault(Error::new(offset, "packed value", ErrorKind::Invalid(wrong.unwrap_or_default())));
            None
        }
        Ok(_) if turn != 0 => {
            let why = "it ends in the middle of an element";
            sink.value_fault(Error::new(offset, "packed value", ErrorKind::Invalid(why)));
            None
        }
        Ok(entries) if known.is_none() => {
            sink.packed(form, blob.len(), entries);
            Some(entries)
        }
        Ok(entries) if known == Some(entries) => Some(entries),
        Ok(_) => {
            sink.value_fault(Error::new(
                offset,
                "packed value",
                ErrorKind::Invalid("its header counts other entries than it has"),
            ));
            known
        }
        Err(fault) => {
            sink.value_fault(Error::new(offset, "packed value", ErrorKind::Invalid(fault.why)));
            None
        }
    }
}

fn walk_nodes<S: Sink>(
    cursor: &mut Cursor<'_>,
    form: PackedForm,
    containers: bool,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<u64>> {
    let nodes = cursor.count(1, "number of list nodes")?;
    let mut elements = Some(0u64);
    for _ in 0..nodes {
        let at = cursor.offset();
        let container = if containers { cursor.len("container of a list node")? } else { CONTAINER_PACKED };
        let offset = cursor.offset();
        let node = cursor.str("list node")?;
        match container {
            CONTAINER_PACKED => {
                let entries = packed(offset, node, form, Roles::of(&[Some(Role::Element)]), scratch, sink);
                elements = elements.zip(entries).map(|(sum, entries)| sum + entries);
            }
            CONTAINER_PLAIN => {
                sink.text(Role::Element, node);
                elements = elements.map(|sum| sum + 1);
            }
            _ => return Err(Error::new(at, "container of a list node", ErrorKind::Invalid("neither plain nor packed"))),
        }
    }
    Ok(elements)
}

/// Passes a module's value; the second unsigned number of a vector set is its number of elements.
fn walk_module(cursor: &mut Cursor<'_>, key_type: KeyType) -> Result<Option<u64>> {
    let is_vectorset = matches!(key_type, KeyType::Module(id) if id.is_vectorset());
    let second = module_stream(cursor)?;
    Ok(second.filter(|_| is_vectorset))
}

/// Passes the self-describing stream of a module and returns its second unsigned number.
pub(super) fn module_stream(cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
    let mut unsigned = 0u32;
    let mut second = None;
    loop {
        let at = cursor.offset();
        match cursor.len("opcode of a module value")? {
            0 => return Ok(second),
            1 => {
                cursor.len("signed number of a module value")?;
            }
            2 => {
                let value = cursor.len("unsigned number of a module value")?;
                unsigned = unsigned.saturating_add(1);
                if unsigned == 2 {
                    second = Some(value);
                }
            }
            3 => {
                cursor.array::<4>("float of a module value")?;
            }
            4 => {
                cursor.array::<8>("double of a module value")?;
            }
            5 => {
                cursor.str("string of a module value")?;
            }
            _ => return Err(Error::new(at, "opcode of a module value", ErrorKind::Invalid("no such opcode"))),
        }
    }
}
