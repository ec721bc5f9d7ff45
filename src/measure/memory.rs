//! Bytes that a loaded key takes in the server's memory.
//!
//! An estimate by the allocations of Redis 7.0 with its own jemalloc, for every server: within a few percent for most keys, more for
//! streams with consumer groups. Module values are not modelled.

use super::encoding::Encoding;
use super::tally::Tally;
use crate::rdb::KeyType;

/// Object header, dictionary entry, dictionary.
const OBJECT: u64 = 16;
const DICT_ENTRY: u64 = 24;
const DICT: u64 = 56;

/// Bytes that jemalloc hands out for `n`: steps of 8 up to 64, then four classes for each doubling.
fn size_class(n: u64) -> u64 {
    if n <= 64 {
        return n.max(1).next_multiple_of(8);
    }
    let step = 1 << ((n - 1).ilog2() - 2);
    n.checked_next_multiple_of(step).unwrap_or(n)
}

/// A string object of the server (`sds`) of `len` bytes: header, text, terminator.
fn sds(len: u64) -> u64 {
    let header = match len {
        1..=31 => 1,
        0 | 32..=255 => 3,
        256..=65_535 => 5,
        _ => 9,
    };
    size_class(len.saturating_add(header + 1))
}

/// The estimate; `None` where there is no model.
pub(super) fn estimate(key_type: KeyType, encoding: Encoding, key_len: u64, elements: u64, tally: &Tally) -> Option<u64> {
    let mean = |parts: u64| tally.payload.checked_div(parts).unwrap_or(0);
    let table = || DICT + 8 * elements.max(4).checked_next_power_of_two().unwrap_or(elements);
    let value = match (key_type, encoding) {
        (KeyType::Module(_) | KeyType::Array | KeyType::Other(_), _) => return None,
        (_, Encoding::TemplateListpack | Encoding::TemplateArray) => return None,
        (_, Encoding::Int) => 0,
        (_, Encoding::Embstr) => size_class(OBJECT + 3 + tally.payload + 1) - OBJECT,
        (_, Encoding::Raw) => sds(tally.payload),
        (KeyType::Hash, Encoding::Hashtable) => table() + elements.saturating_mul(DICT_ENTRY + 2 * sds(mean(tally.texts))),
        (_, Encoding::Hashtable) => table() + elements.saturating_mul(DICT_ENTRY + sds(mean(tally.texts))),
        (_, Encoding::Skiplist) => 48 + 640 + table() + elements.saturating_mul(DICT_ENTRY + 46 + sds(mean(tally.texts))),
        (_, Encoding::Quicklist | Encoding::Linkedlist) => 40 + tally.list_nodes * 40 + tally.packed_bytes + tally.payload,
        _ => size_class(tally.packed_bytes + tally.payload),
    };
    Some(OBJECT + DICT_ENTRY + sds(key_len) + value)
}
