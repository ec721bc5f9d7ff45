//! Bytes that a loaded key takes in the server's memory, as `MEMORY USAGE key SAMPLES 0` counts them.

use super::allocator::Allocator;
use super::costs::{Costs, Line, UNIT};
use super::encoding::{Encoding, LoadedKey};
use super::packing;
use super::table::{self, Table, ValkeyTable};
use super::tally::{Scale, Tallies, Tally, Windows};
use crate::rdb::{KeyType, Layout, Sequence};

/// The memory of a key; `None` where there is no model.
pub(super) fn of(key: &LoadedKey<'_>, encoding: Encoding, tallies: &mut Tallies, scale: &Scale<'_>) -> Option<u64> {
    let Tallies { sums: tally, stream, windows } = tallies;
    let tally = &*tally;
    let key_type = key.record_type.key_type;
    match (key_type, encoding) {
        (KeyType::Module(_) | KeyType::Array | KeyType::Other(_), _) => return None,
        (_, Encoding::TemplateListpack | Encoding::TemplateArray) => return None,
        (KeyType::String, _) => return Some(string(key, encoding, tally, scale)),
        _ => {}
    }
    let costs = &scale.costs;
    let line = costs.line;
    let whole = object(key.key_len, key.has_expiry, scale);
    // Where the name is not in the object's block it is added behind all: that decides how a mean is rounded.
    let object = if line < Line::Redis82 || line == Line::Valkey80 { costs.object.min(whole) } else { whole };
    let sum = match (key_type, encoding) {
        (KeyType::List, Encoding::Listpack) => object.saturating_add(costs.block(tally.list.largest)),
        (KeyType::List, _) => quicklist(object, key, tally, scale),
        (KeyType::Stream, _) => object.saturating_add(stream.settle(costs)),
        (_, Encoding::Hashtable) => {
            let table = hash_table(key, tally, scale).saturating_add(expiry_index(tally, windows, scale));
            let entries = tally.table_cost.saturating_add(surplus(tally, key.elements, scale));
            sampled(object.saturating_add(table), entries, key.elements, scale)
        }
        (_, Encoding::Skiplist) => skiplist(object, key, tally, scale),
        _ => return Some(compact(key, encoding, tally, scale)),
    };
    Some(sum.saturating_add(whole - object))
}

/// What a key takes beside the figure of `MEMORY USAGE`, which counts entries of tables, and in old servers packed values, by a fixed size or
/// by what was asked for; negative where it counts more than there is.
pub(super) fn uncounted(key: &LoadedKey<'_>, encoding: Encoding, tally: &Tally, scale: &Scale<'_>) -> i64 {
    let Costs { line, allocator, .. } = scale.costs;
    if line >= Line::Redis84 {
        return 0;
    }
    let (n, entry) = (key.elements, allocator.usable(24));
    let (taken, counted) = match encoding {
        // Members alone in their bucket have no entry since 7.2.
        Encoding::Hashtable if key.record_type.key_type == KeyType::Set && line >= Line::Redis72 => (table::chained(n), 24),
        Encoding::Hashtable => (entry.saturating_mul(n), 24),
        Encoding::Skiplist if line >= Line::Redis82Early => (entry.saturating_mul(n), 16),
        Encoding::Skiplist => (entry.saturating_mul(n), 24),
        Encoding::Ziplist | Encoding::Listpack | Encoding::Intset if line < Line::Redis70 => {
            let value = if encoding == Encoding::Intset { intset(key, tally) } else { tally.packed_value(scale) };
            return allocator.usable(value).saturating_sub(value).cast_signed();
        }
        _ => return 0,
    };
    taken.cast_signed().saturating_sub(n.saturating_mul(counted).cast_signed())
}

/// The memory of a hash, set or sorted set in one packed value.
pub(super) fn compact(key: &LoadedKey<'_>, encoding: Encoding, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    let (own, value) = match encoding {
        Encoding::Intset => (0, intset(key, tally)),
        Encoding::ListpackEx => {
            let own = match costs.line {
                Line::Redis82Early | Line::Redis82 => costs.allocator.usable(24),
                line if line >= Line::Redis84 => 24,
                _ => costs.allocator.usable(32),
            };
            (own, tally.packed_value(scale))
        }
        _ => (0, tally.packed_value(scale)),
    };
    object(key.key_len, key.has_expiry, scale).saturating_add(own).saturating_add(costs.block(value))
}

/// The memory of a permanent packed hash whose entries take so many bytes.
pub(super) fn packed_hash(key_len: u64, entry_bytes: u64, scale: &Scale<'_>) -> u64 {
    let value = packing::frame(scale.has_listpacks()).saturating_add(entry_bytes);
    object(key_len, false, scale).saturating_add(scale.costs.block(value))
}

/// That part of a key's memory which depends on the length of its name: of a string all where it may share a block with its name, else the
/// object.
#[inline]
pub(super) fn with_name_of(key: &LoadedKey<'_>, encoding: Encoding, tally: &Tally, scale: &Scale<'_>) -> u64 {
    match key.record_type.key_type {
        KeyType::String if scale.names_move_values() => string(key, encoding, tally, scale),
        _ => object(key.key_len, key.has_expiry, scale),
    }
}

/// What the server makes of a base and the sizes of all of so many elements: it multiplies their mean again, in floating point, and cuts
/// off what is behind the point, so that now and then a byte is lost.
fn sampled(base: u64, sizes: u64, elements: u64, scale: &Scale<'_>) -> u64 {
    // From 8.4 on the server keeps account instead.
    if scale.costs.line.is_redis_from(Line::Redis84) || elements == 0 {
        return base.saturating_add(sizes);
    }
    let elements = elements as f64;
    (base as f64 + sizes as f64 / elements * elements) as u64
}

/// The key's name, the entry that holds it, and the object, without the value.
fn object(name: u64, has_expiry: bool, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    match costs.line {
        Line::Redis82Early => costs.object,
        Line::Valkey80 => costs.object + costs.allocator.usable(costs.inner_request(name).saturating_add(17)),
        line if line >= Line::Valkey81 => {
            // Without its name in 8.1, unless all is one block.
            if line == Line::Valkey81 { costs.object } else { costs.allocator.usable(with_name(name, has_expiry, scale)) }
        }
        Line::Redis84 => {
            let request = with_name(name, has_expiry, scale);
            // What the allocator left over takes the expiry that may come.
            let slack = costs.allocator.usable(request) - request;
            let has_slot = has_expiry || name >= 128;
            if slack >= 8 && !has_slot { request + 8 } else { request }
        }
        line if line >= Line::Redis82 => costs.allocator.usable(with_name(name, has_expiry, scale)),
        _ => {
            let own = if costs.key_by_argument && name <= 44 { name + 4 } else { costs.text(name) };
            own.saturating_add(24 + costs.object + costs.slot_links)
        }
    }
}

/// Bytes that an object with the key's name in it asks for: of Redis 8.2 and Valkey 8.1 on.
fn with_name(name: u64, has_expiry: bool, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    // Long names get room for an expiry at once; from 8.6 on it stands in front and comes when it must.
    let room = has_expiry || (name >= 128 && !costs.line.is_redis_from(Line::Redis86));
    let expiry = if room { 8 } else { 0 };
    costs.inner_request(name).saturating_add(16 + 1 + expiry)
}

fn string(key: &LoadedKey<'_>, encoding: Encoding, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    let line = costs.line;
    let len = tally.payload;
    let object = || object(key.key_len, key.has_expiry, scale);
    let with_name = || with_name(key.key_len, key.has_expiry, scale);
    if encoding != Encoding::Embstr {
        let value = if encoding == Encoding::Int { 0 } else { costs.text(len) };
        return object().saturating_add(value);
    }
    let usable = |request| costs.allocator.usable(request);
    // Object, header of three bytes, text, terminator.
    let block = 16 + 3 + len + 1;
    match line {
        Line::Redis82Early => usable(with_name().saturating_add(4 + len)),
        // The value takes the place of the pointer, and is not shorter than that.
        line if line >= Line::Valkey90 => {
            let expiry = if key.has_expiry { 8 } else { 0 };
            usable(costs.inner_request(key.key_len).saturating_add(8 + expiry + 1 + (4 + len).max(8)))
        }
        line if line == Line::Valkey81 || line.is_redis_from(Line::Redis82) => usable(with_name().saturating_add(4 + len)),
        line if line >= Line::Redis70 => object().saturating_add(usable(block)) - 16,
        _ => object().saturating_add(len + 2),
    }
}

/// Bytes of an intset: as the dump has it, or of the width that the widest member of a record of strings needs.
fn intset(key: &LoadedKey<'_>, tally: &Tally) -> u64 {
    if let Layout::Packed { .. } = key.record_type.layout {
        return tally.packed_bytes;
    }
    let (least, most) = tally.range;
    let width = if i16::try_from(least).is_ok() && i16::try_from(most).is_ok() {
        2
    } else if i32::try_from(least).is_ok() && i32::try_from(most).is_ok() {
        4
    } else {
        8
    };
    key.elements.saturating_mul(width).saturating_add(8)
}

fn quicklist(object: u64, key: &LoadedKey<'_>, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    let own = if costs.line.is_redis_from(Line::Redis84) { costs.allocator.usable(48) } else { 40 };
    let base = object.saturating_add(own);
    // Redis 8.0 takes the mean over elements, those before it over nodes.
    let parts = if scale.server.is_redis_from(8, 0) { key.elements } else { tally.list.count };
    sampled(base, tally.list.cost, parts, scale)
}

/// Struct and buckets of a set's or hash's table.
fn hash_table(key: &LoadedKey<'_>, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let line = scale.costs.line;
    let n = key.elements;
    if line >= Line::Valkey81 {
        let own = if line == Line::Valkey81 { 72 } else { 80 };
        let of_hash = if key.record_type.key_type == KeyType::Hash { 8 } else { 0 };
        return valkey_table(key, tally, scale).saturating_add(own + of_hash);
    }
    // Valkey 8.0 counts the entries of members as they are: only those that share a bucket have any.
    let is_set = key.record_type.key_type == KeyType::Set;
    let entries = if line == Line::Valkey80 && is_set { table::chained(n) } else { 0 };
    buckets(key, tally, scale).saturating_mul(8).saturating_add(dict(scale)).saturating_add(entries)
}

/// Bytes of the buckets of a table of Valkey 8.1 and later.
fn valkey_table(key: &LoadedKey<'_>, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let n = key.elements;
    match key.record_type.layout {
        // It starts packed, until a string is too long for that; then it becomes a table with room for those that came, into which that
        // one is put before room is made for the rest.
        Layout::Sequence(Sequence::Pair) if n <= scale.config.hash.entries => {
            let before = packed_before(tally).min(n);
            let mut table = ValkeyTable::default();
            table.expand(before);
            table.insert(before);
            let rest = n.saturating_sub(before + 1);
            table.insert(n - before - rest);
            table.expand(rest);
            table.insert(rest);
            table.bytes()
        }
        _ => table::valkey_buckets(n),
    }
}

/// Fields of a hash that were packed before one came that is too long for that, or whose value is.
fn packed_before(tally: &Tally) -> u64 {
    tally.short_texts.unwrap_or(0) / 2
}

/// What Valkey 9 keeps of the fields of a hash that expire: nothing for one, a vector for up to 127, then a radix tree of windows of some
/// eight seconds, each with a vector, or above that a table, of its own.
fn expiry_index(tally: &Tally, windows: &Windows, scale: &Scale<'_>) -> u64 {
    /// Nodes of the tree for a window, as measured on 9.1.2 with expiries all over a year.
    const WINDOW: u64 = 60;
    let costs = &scale.costs;
    let vector = |fields: u64| match fields {
        0 | 1 => 0,
        2..=127 => costs.allocator.usable(8 + 8 * fields),
        _ => table::valkey_buckets(fields).saturating_add(80),
    };
    let fields = tally.expiring_fields;
    if costs.line < Line::Valkey90 {
        return 0;
    }
    if fields <= 127 {
        return vector(fields);
    }
    let windows = windows.count().min(fields);
    // Most windows hold as many as the mean, or one more or less.
    windows.saturating_mul(WINDOW.saturating_add(vector((fields + windows / 2) / windows)))
}

/// What glibc hands out on top where fields expire and entries are made anew: a free chunk whose rest would be too small to be one is handed
/// out whole. Means of the hashes that 9.1.2 loaded, in hundredths of a byte for an entry with and without expiry; a single table may be
/// off by some of these 16 bytes.
fn surplus(tally: &Tally, elements: u64, scale: &Scale<'_>) -> u64 {
    if scale.costs.allocator != Allocator::Libc || tally.expiring_fields == 0 {
        return 0;
    }
    let expiring = tally.expiring_fields.min(elements);
    (elements - expiring).saturating_mul(55).saturating_add(expiring.saturating_mul(36)) / 100
}

fn dict(scale: &Scale<'_>) -> u64 {
    if scale.costs.line >= Line::Redis70 { 56 } else { 96 }
}

/// Buckets after the load, which sizes some tables before it fills them, and lets others grow.
fn buckets(key: &LoadedKey<'_>, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let line = scale.costs.line;
    let n = key.elements;
    match (key.record_type.key_type, key.record_type.layout) {
        (KeyType::Hash, _) if line == Line::Redis40 => table::grown(n),
        (KeyType::Hash | KeyType::Zset, Layout::Packed { .. }) if line < Line::Redis70 => table::grown(n),
        (KeyType::Zset, Layout::Packed { .. }) if line == Line::Redis70 => table::grown(n),
        (KeyType::Zset, _) if line == Line::Redis40 => table::grown(n),
        (KeyType::Set, Layout::Sequence(_)) if line <= Line::Redis70 && n <= scale.config.intset_entries => {
            // It starts as an intset; the first member that is no integer makes it a table of those before, with room for all.
            let before = tally.leading_integers;
            let mut table = Table::default();
            table.expand(before);
            table.insert(before);
            table.expand(n);
            table.insert(n.saturating_sub(before));
            table.buckets()
        }
        (KeyType::Hash, Layout::Sequence(Sequence::ExpiryPair { .. })) if n > scale.config.hash.entries => table::grown(n),
        (KeyType::Hash, Layout::Sequence(sequence)) if n <= scale.config.hash.entries => {
            // It starts packed, until a string is too long for that; then it becomes a table with room for those that come.
            let before = packed_before(tally);
            let mut table = Table::default();
            if line >= Line::Redis70 {
                table.expand(before);
            }
            table.insert(before);
            let rest = n.saturating_sub(before + 1);
            // With field expiries room is made first, else that one is put in before.
            let first = if matches!(sequence, Sequence::ExpiryPair { .. }) { 0 } else { 1 };
            table.insert(first);
            if rest > 4 {
                table.expand(rest);
            }
            table.insert(rest + 1 - first);
            table.buckets().max(4)
        }
        _ => table::presized(n),
    }
}

fn skiplist(object: u64, key: &LoadedKey<'_>, tally: &Tally, scale: &Scale<'_>) -> u64 {
    let costs = &scale.costs;
    let line = costs.line;
    let n = key.elements;
    // Members are added up in units, since levels are random.
    let members = tally.table_cost.saturating_add(UNIT / 2) / UNIT;
    let members = members.saturating_add(few_members(tally, n, scale));
    let own = 16;
    let (fixed, entry) = match line {
        Line::Redis40 => (own, 24),
        line if line >= Line::Valkey81 => {
            let table = if line == Line::Valkey81 { 72 } else { 80 };
            // Head of the list with all levels.
            let head = if line == Line::Valkey81 { 32 + costs.allocator.usable(536) } else { 528 };
            return object.saturating_add(own + head + table).saturating_add(table::valkey_buckets(n)).saturating_add(members);
        }
        line => {
            let levels = if line == Line::Redis50 { 64 } else { 32 };
            let head = costs.allocator.usable(24 + 16 * levels);
            let list = if line.is_redis_from(Line::Redis84) { costs.allocator.usable(40) } else { 32 };
            let entry = if matches!(line, Line::Redis82Early | Line::Redis82) { 16 } else { 24 };
            (own + list + head + dict(scale), entry)
        }
    };
    let buckets = buckets(key, tally, scale).saturating_mul(8);
    object.saturating_add(fixed).saturating_add(buckets).saturating_add(members).saturating_add(n.saturating_mul(entry))
}

/// Of one or two members the expected size is off by much whenever a level is high. With this on top, a third level in one of them, and a
/// second in the other, is 32 bytes away: more only occurs in one of fifty such keys.
fn few_members(tally: &Tally, n: u64, scale: &Scale<'_>) -> u64 {
    const NEAR: i64 = 32;
    let costs = &scale.costs;
    // What a member on so many levels is above the expectation; below it for the lowest, which must stay as near.
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    let above = |len, level| signed(costs.skiplist_member_at(len, level)) - signed(costs.skiplist_member(len) / UNIT);
    let (longest, other) = (tally.longest, tally.payload.saturating_sub(tally.longest));
    let (high, low) = match (n, tally.opened) {
        (1, 0) => (above(longest, 3), above(longest, 1)),
        (2, 0) => (above(longest, 3) + above(other, 2), above(longest, 1) + above(other, 1)),
        _ => return 0,
    };
    (high - NEAR).min(NEAR + low).max(0).unsigned_abs()
}
