//! The encoding that `OBJECT ENCODING` answers once a server has loaded a value.
//!
//! A dump does not say: the loading server applies its own limits. These are the defaults of each version, and the conversions of
//! its loader (`rdbLoadObject` in `rdb.c`).

use std::fmt;

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

/// Limits up to which a collection stays packed: elements, and bytes of the longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedLimits {
    /// Most elements.
    pub entries: u64,
    /// Longest element in bytes.
    pub value: u64,
}

/// Configuration that decides encodings at load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadConfig {
    /// `hash-max-listpack-entries` and `-value` (`ziplist`, `zipmap` before).
    pub hash: PackedLimits,
    /// `zset-max-listpack-entries` and `-value`.
    pub zset: PackedLimits,
    /// `set-max-listpack-entries` and `-value`; Redis 7.2 and later.
    pub set: PackedLimits,
    /// `list-max-ziplist-entries` and `-value`; before Redis 3.2.
    pub list: PackedLimits,
    /// `set-max-intset-entries`.
    pub intset_entries: u64,
    /// Bytes of a list node; `list-max-listpack-size` -2.
    pub list_node_bytes: u64,
}

impl LoadConfig {
    /// What every version from 2.4 to 9.1 is compiled with (`config.c`; for Redis 2.2 the 64 entries of `redis.h`).
    pub const DEFAULT: Self = Self {
        hash: PackedLimits { entries: 512, value: 64 },
        zset: PackedLimits { entries: 128, value: 64 },
        set: PackedLimits { entries: 128, value: 64 },
        list: PackedLimits { entries: 512, value: 64 },
        intset_entries: 512,
        list_node_bytes: 8192,
    };
}

/// The encoding after the load.
///
/// `key_len` and `has_expiry` matter since the key can share a block with a short string.
pub fn after_load(
    server: Server,
    config: &LoadConfig,
    record_type: &RecordType,
    elements: u64,
    key_len: u64,
    has_expiry: bool,
    tally: &Tally,
) -> Encoding {
    let packed = |limits: PackedLimits, packed: Encoding, else_: Encoding| {
        if elements <= limits.entries && tally.longest <= limits.value { packed } else { else_ }
    };
    let has_listpacks = server.is_redis_from(7, 0);
    let compact = if has_listpacks { Encoding::Listpack } else { Encoding::Ziplist };
    match record_type.key_type {
        KeyType::String => string(server, key_len, has_expiry, tally),
        KeyType::Module(_) | KeyType::Array | KeyType::Other(_) => Encoding::Raw,
        KeyType::Stream => Encoding::Stream,
        KeyType::List => list(server, config, record_type, elements, tally),
        KeyType::Set => match record_type.layout {
            Layout::Packed { form: PackedForm::Intset, .. } if elements <= config.intset_entries => Encoding::Intset,
            Layout::Packed { form: PackedForm::Intset, .. } => Encoding::Hashtable,
            Layout::Packed { .. } if elements <= config.set.entries => Encoding::Listpack,
            Layout::Packed { .. } => Encoding::Hashtable,
            _ if tally.all_integers && elements <= config.intset_entries => Encoding::Intset,
            _ if server.is_redis_from(7, 2) => packed(config.set, Encoding::Listpack, Encoding::Hashtable),
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
    let one_node = tally.list_nodes == 1 && tally.list_plain_nodes == 0 && tally.list_largest_node <= config.list_node_bytes;
    if server.is_redis_from(7, 2) && one_node { Encoding::Listpack } else { Encoding::Quicklist }
}

fn string(server: Server, key_len: u64, has_expiry: bool, tally: &Tally) -> Encoding {
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
        // An expiry that is set after the load finds its place in what the allocator left over, or the block is made anew. A value
        // shorter than the pointer it replaces does not make the block smaller. Checked with 9.1.2 on libc, which for keys of 108 to
        // 111 bytes now and then leaves over more, so that an almost empty value stays embedded.
        Family::Valkey if server.is_valkey_from(9, 1) => {
            let value_len = if has_expiry { value_len.max(4) } else { value_len };
            valkey_embeds(128, 8, key_len, false, value_len)
        }
        Family::Valkey if server.is_valkey_from(8, 1) => value_len <= 44 && valkey_embeds(64, 16, key_len, has_expiry, value_len),
        Family::Valkey => value_len <= 44,
    };
    if embedded { Encoding::Embstr } else { Encoding::Raw }
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
            let tally = Tally { payload: value_len, ..Tally::default() };
            string(Server::valkey(9, 1, 2), key_len, has_expiry, &tally)
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
