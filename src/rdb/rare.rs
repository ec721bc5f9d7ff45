//! Values that only some servers write: templates, arrays, path hashes, cron jobs, Dragonfly's probabilistic types.

use std::collections::HashMap;

use super::cursor::{Cursor, MOST_BYTES, Str};
use super::packed::PackedForm;
use super::sink::{Role, Sink};
use super::types::{DRAGONFLY_EPOCH, Layout, Sketch, TemplateLayout};
use super::value::{self, Roles};
use crate::error::{Error, ErrorKind, Result};

/// Passes the value and returns its number of elements, where it has one.
#[inline(never)]
pub(super) fn walk<S: Sink>(
    cursor: &mut Cursor<'_>,
    layout: Layout,
    templates: &HashMap<u64, u64>,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<u64>> {
    match layout {
        Layout::Template(layout) => template(cursor, layout, templates, scratch, sink),
        Layout::Array => array(cursor, sink).map(Some),
        Layout::PathHash => path_hash(cursor, sink).map(Some),
        Layout::Cron => cron(cursor).map(|()| None),
        Layout::RateLimiter => cursor.len("time of a rate limiter").map(|_| None),
        Layout::Sketch(kind) => sketch(cursor, kind).map(|()| None),
        // The caller hands out no other.
        _ => Ok(None),
    }
}

/// The text of an expiry in seconds after Dragonfly's epoch, as Unix milliseconds.
pub(super) fn text_expiry(cursor: &mut Cursor<'_>) -> Result<Option<i64>> {
    let at = cursor.offset();
    let text = cursor.str("expiry of a member")?;
    let mut scratch = Vec::new();
    let seconds = match text {
        Str::Int(seconds) => Some(i64::from(seconds)),
        _ => text.text(&mut scratch, 32).ok().and_then(|text| std::str::from_utf8(text).ok()?.parse::<i64>().ok()),
    };
    match seconds {
        Some(-1) => Ok(None),
        Some(seconds) => Ok(Some(seconds.saturating_add(DRAGONFLY_EPOCH).saturating_mul(1000))),
        None => Err(Error::new(at, "expiry of a member", ErrorKind::Invalid("no number"))),
    }
}

fn template<S: Sink>(
    cursor: &mut Cursor<'_>,
    layout: TemplateLayout,
    templates: &HashMap<u64, u64>,
    scratch: &mut Vec<u8>,
    sink: &mut S,
) -> Result<Option<u64>> {
    match layout {
        TemplateLayout::Packed => {
            let names = template_names(cursor, scratch, sink)?;
            let values = template_values(cursor, scratch, sink)?;
            Ok(names.or(values))
        }
        TemplateLayout::PackedRef => template_values(cursor, scratch, sink),
        TemplateLayout::Array => {
            let at = cursor.offset();
            let names = template_names(cursor, scratch, sink)?;
            // Without the number of names nothing tells where the values end.
            let Some(fields) = names else {
                return Err(Error::new(at, "names of a hash template", ErrorKind::Invalid("their number cannot be told")));
            };
            template_texts(cursor, fields, sink)
        }
        TemplateLayout::ArrayRef => {
            let at = cursor.offset();
            let id = cursor.len("id of a hash template")?;
            let Some(&fields) = templates.get(&id) else {
                return Err(Error::new(at, "id of a hash template", ErrorKind::Invalid("no template of that id is in the file")));
            };
            template_texts(cursor, fields, sink)
        }
    }
}

fn template_texts<S: Sink>(cursor: &mut Cursor<'_>, fields: u64, sink: &mut S) -> Result<Option<u64>> {
    for _ in 0..fields {
        sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
    }
    Ok(Some(fields))
}

/// Field names in the record: a listpack, or so many strings.
fn template_names<S: Sink>(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, sink: &mut S) -> Result<Option<u64>> {
    let at = cursor.offset();
    match cursor.len("form of the names of a hash template")? {
        0 => {
            let offset = cursor.offset();
            let names = cursor.str("names of a hash template")?;
            // A walk that looks at nothing still needs to know how many values follow.
            let mut head = [0; 10];
            let filled = names.head(&mut head);
            let counted = PackedForm::Listpack.count(&head[..filled], names.len()).ok().flatten();
            Ok(value::packed(offset, names, PackedForm::Listpack, Roles::of(&[Some(Role::Field)]), scratch, sink)
                .filter(|n| *n > 0)
                .or(counted))
        }
        1 => {
            let n = cursor.count(1, "number of names of a hash template")?;
            for _ in 0..n {
                sink.text(Role::Field, cursor.str("name of a hash template")?);
            }
            Ok(Some(n))
        }
        _ => Err(Error::new(at, "form of the names of a hash template", ErrorKind::Invalid("neither 0 nor 1"))),
    }
}

fn template_values<S: Sink>(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, sink: &mut S) -> Result<Option<u64>> {
    let offset = cursor.offset();
    let values = cursor.str("values of a hash template")?;
    // The first entry is the id of the template.
    let roles = Roles { lead: 1, turns: &[Some(Role::FieldValue)] };
    let entries = value::packed(offset, values, PackedForm::Listpack, roles, scratch, sink);
    Ok(entries.map(|entries| entries.saturating_sub(1)))
}

fn array<S: Sink>(cursor: &mut Cursor<'_>, sink: &mut S) -> Result<u64> {
    let n = cursor.count(3, "number of array elements")?;
    if cursor.len("insert flag of an array")? != 0 {
        cursor.len("insert index of an array")?;
    }
    for _ in 0..n {
        cursor.len("index of an array element")?;
        let at = cursor.offset();
        match cursor.len("tag of an array element")? {
            0 | 3 => sink.text(Role::Element, cursor.str("array element")?),
            1 | 2 => {
                cursor.array::<8>("array element")?;
            }
            _ => return Err(Error::new(at, "tag of an array element", ErrorKind::Invalid("no such tag"))),
        }
    }
    Ok(n)
}

/// Elements are the fields of all paths.
fn path_hash<S: Sink>(cursor: &mut Cursor<'_>, sink: &mut S) -> Result<u64> {
    let mut elements = 0u64;
    // A path without fields is written by no server, and passed all the same.
    for _ in 0..cursor.count(2, "number of paths")? {
        cursor.str("path")?;
        let fields = cursor.count(2, "number of fields of a path")?;
        elements = elements.saturating_add(fields);
        for _ in 0..fields {
            sink.text(Role::Field, cursor.str("hash field")?);
            sink.text(Role::FieldValue, cursor.str("value of a hash field")?);
        }
    }
    Ok(elements)
}

fn cron(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.str("script of a cron job")?;
    cursor.array::<8>("start of a cron job")?;
    cursor.array::<8>("interval of a cron job")?;
    for reading in ["key of a cron job", "argument of a cron job"] {
        for _ in 0..cursor.count(1, reading)? {
            cursor.str(reading)?;
        }
    }
    Ok(())
}

fn sketch(cursor: &mut Cursor<'_>, kind: Sketch) -> Result<()> {
    match kind {
        Sketch::Bloom | Sketch::BloomChunks => {
            cursor.len("options of a Bloom filter")?;
            cursor.array::<16>("growth and error rate of a Bloom filter")?;
            for _ in 0..3 {
                cursor.len("size of a Bloom filter")?;
            }
            for _ in 0..cursor.count(2, "number of filters")? {
                cursor.len("hash functions of a filter")?;
                if kind == Sketch::Bloom {
                    cursor.str("bits of a filter")?;
                } else {
                    chunks(cursor)?;
                }
            }
        }
        Sketch::CountMin => {
            let at = cursor.offset();
            let (width, depth) = (cursor.len("width of a sketch")?, cursor.len("depth of a sketch")?);
            cursor.len("total of a sketch")?;
            let bytes = width.checked_mul(depth).and_then(|cells| cells.checked_mul(8));
            let Some(bytes) = bytes else {
                let kind = ErrorKind::TooLarge { declared: u64::MAX, limit: MOST_BYTES };
                return Err(Error::new(at, "size of a sketch", kind));
            };
            cursor.take(bytes, "cells of a sketch")?;
        }
        Sketch::TopK => {
            for _ in 0..4 {
                cursor.len("size of a top-k list")?;
            }
            cursor.array::<8>("decay of a top-k list")?;
            for _ in 0..cursor.count(2, "items of a top-k list")? {
                cursor.str("item of a top-k list")?;
                cursor.len("count of an item")?;
            }
            let bytes = cursor.len("cells of a top-k list")?;
            cursor.take(bytes, "cells of a top-k list")?;
        }
        Sketch::Cuckoo => {
            for _ in 0..6 {
                cursor.len("size of a cuckoo filter")?;
            }
            for _ in 0..cursor.count(1, "number of filters")? {
                chunks(cursor)?;
            }
        }
    }
    Ok(())
}

/// A total of bytes, then chunks until it is reached.
fn chunks(cursor: &mut Cursor<'_>) -> Result<()> {
    let at = cursor.offset();
    let mut left = cursor.len("bytes of a filter")?;
    while left > 0 {
        let n = cursor.len("length of a chunk")?;
        left = left
            .checked_sub(n)
            .filter(|_| n > 0)
            .ok_or_else(|| Error::new(at, "chunk of a filter", ErrorKind::Invalid("chunks and total disagree")))?;
        cursor.take(n, "chunk of a filter")?;
    }
    Ok(())
}
