//! The encoding that `OBJECT ENCODING` answers once a server has loaded a value.
//!
//! A dump does not say: the loading server applies its own limits. These are the defaults of each version, and the conversions of
//! its loader (`rdbLoadObject` in `rdb.c`).

use std::fmt;

use super::allocator::Allocator;
use super::config::{LoadConfig, PackedLimits};
use super::server::Server;
use super::tally::Tally;
use crate::rdb::packed::PackedForm;
use crate::rdb::{Family, KeyType, Layout, RecordType, Sequence, TemplateLayout};

/// In-memory form of a value, as the server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// A plain string, or a module's own form.
    Raw,
    /// A string held as an integer.
    Int,
    /// A string in the same block as its object.
    Embstr,
    /// Packed, Redis 7.0 and later.
    Listpack,
    /// Packed with field expiries, Redis 7.4 and later.
    ListpackEx,
    /// Packed values of a hash whose field names stand in a template, Redis 8.10.
    TemplateListpack,
    /// Values of a hash whose field names stand in a template, Redis 8.10.
    TemplateArray,
    /// Packed, Redis 2.2 to 6.2.
    Ziplist,
    /// Packed hash of Redis 2.4 and older.
    Zipmap,
    /// Sorted array of integers.
    Intset,
    /// Hash table.
    Hashtable,
    /// Skip list and hash table.
    Skiplist,
    /// Linked list of packed nodes, Redis 3.2 and later.
    Quicklist,
    /// Linked list of strings, before Redis 3.2.
    Linkedlist,
    /// Radix tree of listpacks.
    Stream,
}

impl Encoding {
    /// The name that `OBJECT ENCODING` answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Int => "int",
            Self::Embstr => "embstr",
            Self::Listpack => "listpack",
            Self::ListpackEx => "listpackex",
            Self::TemplateListpack => "template-listpack",
            Self::TemplateArray => "template-array",
            Self::Ziplist => "ziplist",
            Self::Zipmap => "zipmap",
            Self::Intset => "intset",
            Self::Hashtable => "hashtable",
            Self::Skiplist => "skiplist",
            Self::Quicklist => "quicklist",
            Self::Linkedlist => "linkedlist",
            Self::Stream => "stream",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a key beside its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadedKey<'r> {
    pub record_type: &'r RecordType,
    pub elements: u64,
    /// Length and expiry matter where the key can share a block with a short string.
    pub key_len: u64,
    pub has_expiry: bool,
}

/// The encoding after the load; in one corner it depends on the allocator.
pub(super) fn after_load(
    server: Server,
    config: &LoadConfig,
    allocator: Option<Allocator>,
    key: &LoadedKey<'_>,
    tally: &Tally,
) -> Encoding {
    let LoadedKey { record_type, elements, key_len, has_expiry } = *key;
    let packed = |limits: PackedLimits, packed: Encoding, else_: Encoding| {
        if elements <= limits.entries && tally.longest <= limits.value { packed } else { else_ }
    };
    let has_listpacks = server.is_redis_from(7, 0);
    let compact = if has_listpacks { Encoding::Listpack } else { Encoding::Ziplist };
    match record_type.key_type {
        KeyType::String => string(server, key_len, has_expiry, allocator, tally),
        KeyType::Module(_) | KeyType::Array | KeyType::Other(_) => Encoding::Raw,
        KeyType::Stream => Encoding::Stream,
        KeyType::List => list(server, config, record_type, elements, tally),
        KeyType::Set => match record_type.layout {
            Layout::Packed { form: PackedForm::Intset, .. } if elements <= config.intset_entries => Encoding::Intset,
            Layout::Packed { form: PackedForm::Intset, .. } => Encoding::Hashtable,
            Layout::Packed { .. } if elements <= config.set.entries => Encoding::Listpack,
            Layout::Packed { .. } => Encoding::Hashtable,
            _ if tally.all_integers && elements <= config.intset_entries => Encoding::Intset,
            // Above this limit the loader begins with a table.
            _ if server.is_redis_from(7, 2) && elements <= config.intset_entries => {
                packed(config.set, Encoding::Listpack, Encoding::Hashtable)
            }
            _ => Encoding::Hashtable,
        },
        KeyType::Zset => match record_type.layout {
            // The length of members in a packed value is not looked at.
            Layout::Packed { .. } if elements <= config.zset.entries => compact,
            Layout::Packed { .. } => Encoding::Skiplist,
            _ => packed(config.zset, compact, Encoding::Skiplist),
        },
        KeyType::Hash => match record_type.layout {
            Layout::Packed { form: PackedForm::Zipmap, .. } if !server.is_redis_from(2, 6) => Encoding::Zipmap,
            Layout::Packed { form: PackedForm::Zipmap, .. } => packed(config.hash, compact, Encoding::Hashtable),
            Layout::Packed { per_element: 3, .. } if elements <= config.hash.entries => Encoding::ListpackEx,
            Layout::Packed { .. } if elements <= config.hash.entries => compact,
            Layout::Packed { .. } => Encoding::Hashtable,
            Layout::Sequence(Sequence::ExpiryPair { .. }) => packed(config.hash, Encoding::ListpackEx, Encoding::Hashtable),
            Layout::Sequence(Sequence::PairExpiry | Sequence::PairTextExpiry) => Encoding::Hashtable,
            Layout::Template(TemplateLayout::Packed | TemplateLayout::PackedRef) => Encoding::TemplateListpack,
            Layout::Template(_) => Encoding::TemplateArray,
            _ if !server.is_redis_from(2, 6) => packed(config.hash, Encoding::Zipmap, Encoding::Hashtable),
            _ => packed(config.hash, compact, Encoding::Hashtable),
        },
    }
}

fn list(server: Server, config: &LoadConfig, record_type: &RecordType, elements: u64, tally: &Tally) -> Encoding {
    if !server.is_redis_from(3, 2) {
        let short = match record_type.layout {
            Layout::Packed { .. } => true,
            _ => tally.longest <= config.list.value,
        };
        return if short && elements <= config.list.entries { Encoding::Ziplist } else { Encoding::Linkedlist };
    }
    // A list of one packed node that is small enough is that node alone.
    let nodes = &tally.list;
    let small = match config.list_node() {
        (Some(most), _) => nodes.largest <= most,
        (None, most) => elements <= most,
    };
    // Of a list that Redis 2 and 3.0 packed the loader makes a quicklist and leaves it at that.
    let is_packed = matches!(record_type.layout, Layout::Packed { .. });
    let one_node = nodes.count == 1 && nodes.plain == 0 && small && !is_packed;
    if server.is_redis_from(7, 2) && one_node { Encoding::Listpack } else { Encoding::Quicklist }
}

fn string(server: Server, key_len: u64, has_expiry: bool, allocator: Option<Allocator>, tally: &Tally) -> Encoding {
    let value_len = tally.payload;
    if tally.all_integers {
        return Encoding::Int;
    }
    let embedded = match server.family {
        Family::Redis if server.is_redis_from(8, 2) => {
            let expiry = if has_expiry && !server.is_redis_from(8, 6) { 8 } else { 0 };
            value_len <= 44 && 16 + key_len + 3 + expiry + 4 + value_len <= 64
        }
        Family::Redis if server.is_redis_from(3, 2) => value_len <= 44,
        Family::Redis if server.is_redis_from(3, 0) => value_len <= 39,
        Family::Redis => false,
        Family::Valkey if server.is_valkey_from(9, 1) => valkey_9_1_embeds(key_len, has_expiry, value_len, allocator),
        Family::Valkey if server.is_valkey_from(8, 1) => value_len <= 44 && valkey_embeds(64, 16, key_len, has_expiry, value_len),
        Family::Valkey => value_len <= 44,
    };
    if embedded { Encoding::Embstr } else { Encoding::Raw }
}

/// Whether key and value share the object's block in Valkey 9.1.
///
/// An expiry that is set after the load finds its place in what the allocator left over, or the block is made anew. A value shorter than
/// the pointer it replaces does not make the block smaller. Checked with 9.1.2 on libc, which for keys of 108 to 111 bytes now and then
/// leaves over more, so that an almost empty value stays embedded, and on jemalloc, which leaves nothing over in a block of 121 to 128
/// bytes. Without a word on the allocator that of the builds at hand counts, which is libc.
fn valkey_9_1_embeds(key_len: u64, has_expiry: bool, value_len: u64, allocator: Option<Allocator>) -> bool {
    let embeds = |most, value_len| valkey_embeds(most, 8, key_len, false, value_len);
    let by_block = embeds(128, value_len.max(4));
    match allocator {
        _ if !has_expiry => embeds(128, value_len),
        None | Some(Allocator::Libc) => by_block,
        Some(_) => embeds(128, value_len) && (embeds(120, value_len) || !by_block),
    }
}

/// Whether key and value share the object's block in Valkey, `most` bytes at most, of which `object` are the object's.
fn valkey_embeds(most: u64, object: u64, key_len: u64, has_expiry: bool, value_len: u64) -> bool {
    let header = match key_len {
        0..=31 => 1,
        32..=252 => 3,
        _ => 5,
    };
    let expiry = if has_expiry { 8 } else { 0 };
    value_len <= 255 && object + expiry + 1 + header + key_len + 1 + 4 + value_len <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_valkey_9_1_with_and_without_expiry() {
        let encoding = |key_len, value_len, has_expiry| {
            let mut tally = Tally::default();
            tally.payload = value_len;
            string(Server::valkey(9, 1, 2), key_len, has_expiry, None, &tally)
        };
        // The longest value that 9.1.2 embeds beside a key, without and with expiry.
        for (key_len, without, with) in [
            (31, Some(82), Some(82)),
            (32, Some(79), Some(79)),
            (107, Some(4), Some(4)),
            (108, Some(3), None),
            (111, Some(0), None),
            (112, None, None),
        ] {
            for (longest, has_expiry) in [(without, false), (with, true)] {
                for value_len in 0..100 {
                    let embedded = longest.is_some_and(|longest| value_len <= longest);
                    let expected = if embedded { Encoding::Embstr } else { Encoding::Raw };
                    assert_eq!(
                        encoding(key_len, value_len, has_expiry),
                        expected,
                        "key {key_len}, value {value_len}, expiry {has_expiry}"
                    );
                }
            }
        }
    }
}
