//! What follows each type byte: one table, and the dialect that picks from it.

use std::collections::HashMap;
use std::fmt;

use super::packed::PackedForm;

/// Bytes of the magic and version at the start of a dump.
pub const HEADER_LEN: usize = 9;

/// Who defined the meaning of the type and opcode bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// `REDIS` magic.
    Redis,
    /// `VALKEY` magic (Valkey 9.0 and later).
    Valkey,
}

/// Family and RDB version of a file, from its first nine bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// Whose bytes they are.
    pub family: Family,
    /// The digits after the magic.
    pub version: u16,
}

impl Dialect {
    /// Newest versions whose whole content is known.
    pub const NEWEST_REDIS: u16 = 15;
    /// See [`Self::NEWEST_REDIS`].
    pub const NEWEST_VALKEY: u16 = 81;

    /// Reads the nine bytes of magic and version; `None` where they are no dump's.
    pub fn parse(header: &[u8; HEADER_LEN]) -> Option<Self> {
        let (family, digits) = match header {
            [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (Family::Redis, &digits[..]),
            [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (Family::Valkey, &digits[..]),
            _ => return None,
        };
        let version = digits.iter().try_fold(0u16, |v, d| d.is_ascii_digit().then(|| v * 10 + u16::from(d - b'0')))?;
        (version > 0).then_some(Self { family, version })
    }

    /// The nine bytes.
    pub fn header(&self) -> [u8; HEADER_LEN] {
        let text = match self.family {
            Family::Redis => format!("REDIS{:04}", self.version % 10_000),
            Family::Valkey => format!("VALKEY{:03}", self.version % 1000),
        };
        text.as_bytes().try_into().unwrap_or(*b"REDIS0000")
    }

    /// True where a checksum follows the end mark.
    pub fn has_checksum(&self) -> bool {
        self.version >= 5
    }

    /// True where the version is newer than those whose content is known.
    pub fn is_newer_than_known(&self) -> bool {
        self.version
            > match self.family {
                Family::Redis => Self::NEWEST_REDIS,
                Family::Valkey => Self::NEWEST_VALKEY,
            }
    }
}

/// What is to be known of a dump before its records can be walked from anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    dialect: Dialect,
    /// By type byte.
    types: Box<[Option<RecordType>]>,
    /// Number of fields of each hash template, by its id (Redis 8.10).
    pub templates: HashMap<u64, u64>,
}

impl Format {
    /// A format without templates.
    pub fn new(dialect: Dialect) -> Self {
        let types = (0..=u8::MAX).map(|byte| RecordType::of(byte, dialect)).collect();
        Self { dialect, types, templates: HashMap::new() }
    }

    /// Family and version.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The meaning of a type byte; `None` where it has none.
    #[inline]
    pub fn record_type(&self, byte: u8) -> Option<&RecordType> {
        self.types.get(usize::from(byte))?.as_ref()
    }
}

/// Type of a key, as the `TYPE` command names it; a module's type has its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyType {
    /// String.
    String,
    /// List.
    List,
    /// Set.
    Set,
    /// Sorted set.
    Zset,
    /// Hash.
    Hash,
    /// Stream.
    Stream,
    /// Array of Redis 8.8.
    Array,
    /// A type that only some servers have, by the name that they give it.
    Other(&'static str),
    /// A module's own type.
    Module(ModuleId),
}

impl KeyType {
    /// `core` or `module`.
    pub fn kind(&self) -> &'static str {
        if matches!(self, Self::Module(_)) { "module" } else { "core" }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::List => f.write_str("list"),
            Self::Set => f.write_str("set"),
            Self::Zset => f.write_str("zset"),
            Self::Hash => f.write_str("hash"),
            Self::Stream => f.write_str("stream"),
            Self::Array => f.write_str("array"),
            Self::Other(name) => f.write_str(name),
            Self::Module(id) => id.fmt(f),
        }
    }
}

/// Id of a module's type: nine characters of six bits, then ten bits of encoding version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u64);

impl ModuleId {
    /// Redis 8's vector sets, the one module type whose element count is known.
    pub const VECTORSET: &'static str = "vectorset";

    /// The nine characters of the type name.
    pub fn name(self) -> [u8; 9] {
        const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        std::array::from_fn(|k| CHARACTERS[(self.0 >> (58 - 6 * k) & 63) as usize])
    }

    /// Encoding version of the module's data.
    pub fn version(self) -> u16 {
        (self.0 & 1023) as u16
    }

    /// True for a vector set.
    pub fn is_vectorset(self) -> bool {
        self.name() == *b"vectorset"
    }
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The character set is ASCII.
        f.write_str(std::str::from_utf8(&self.name()).unwrap_or_default())
    }
}

/// What one element of a counted sequence is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// List element or set member.
    Single,
    /// Hash field and value.
    Pair,
    /// Sorted-set member and score as text.
    TextScore,
    /// Sorted-set member and score as eight bytes.
    BinaryScore,
    /// Hash expiry (relative to a minimum in front of the count, or absolute), field, value.
    ExpiryPair {
        /// An eight-byte minimum expiry stands in front of the count and expiries are relative to it.
        relative: bool,
    },
    /// Hash field, value, absolute expiry in eight bytes.
    PairExpiry,
    /// Hash field, value, and the text of an expiry in seconds after Dragonfly's epoch (-1: none).
    PairTextExpiry,
    /// Set member and the text of an expiry as before.
    SingleTextExpiry,
}

/// Seconds between the Unix epoch and the one that Dragonfly counts member expiries from: 2023-02-01, 00:00 UTC.
pub const DRAGONFLY_EPOCH: i64 = 1_675_209_600;

/// Layout of a value after the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One string, which is the value.
    Plain,
    /// A count, then so many elements.
    Sequence(Sequence),
    /// One string that holds all elements, `per_element` entries each.
    Packed {
        /// Its form.
        form: PackedForm,
        /// Entries for one element.
        per_element: u64,
        /// An eight-byte minimum expiry stands in front.
        min_expiry: bool,
    },
    /// A count of nodes, each a packed value, or (`containers`) a container number and then one element or a packed value.
    Nodes {
        /// Form of a packed node.
        form: PackedForm,
        /// A container number precedes each node.
        containers: bool,
    },
    /// Listpacks with ids, then counters and consumer groups.
    Stream(StreamLayout),
    /// A module id and a self-describing stream.
    Module,
    /// A count, then indices with tagged values (Redis 8.8).
    Array,
    /// A hash whose field names stand elsewhere (Redis 8.10).
    Template(TemplateLayout),
    /// Paths, each with fields (Valkey 9.2).
    PathHash,
    /// A script, two numbers, keys and arguments (KeyDB).
    Cron,
    /// One number (Redis 8.8 and 8.10, in no release build).
    RateLimiter,
    /// A probabilistic type of Dragonfly.
    Sketch(Sketch),
}

/// Where the field names and values of a hash with a template stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateLayout {
    /// Names and a listpack of values in the record.
    Packed,
    /// A listpack of values; names in the table.
    PackedRef,
    /// Names and values in the record.
    Array,
    /// Values; names, and so their number, in the table.
    ArrayRef,
}

/// Dragonfly's probabilistic types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sketch {
    /// Bloom filter in whole filters.
    Bloom,
    /// Bloom filter in chunks.
    BloomChunks,
    /// Count-min sketch.
    CountMin,
    /// Top-k list.
    TopK,
    /// Cuckoo filter.
    Cuckoo,
}

/// Which parts a stream's record has; later layouts add to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamLayout {
    /// Type 15, Redis 5.0.
    V1,
    /// Type 19, Redis 7.0: first id, largest deleted id, entries added, entries read.
    V2,
    /// Type 21, Redis 7.2: active time of consumers.
    V3,
    /// Type 26, Redis 8.6: producers whose entries are told apart.
    V4,
    /// Type 27, Redis 8.8: entries that were handed back.
    V5,
}

/// A type byte: what the key is, and how its value lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordType {
    /// The byte.
    pub byte: u8,
    /// Type of the key; of a module the id follows in the record.
    pub key_type: KeyType,
    /// How the value lies in the file.
    pub layout: Layout,
}

const MODULE: KeyType = KeyType::Module(ModuleId(0));

const fn entry(byte: u8, key_type: KeyType, layout: Layout) -> Option<RecordType> {
    Some(RecordType { byte, key_type, layout })
}

const fn packed(byte: u8, key_type: KeyType, form: PackedForm, per_element: u64) -> Option<RecordType> {
    entry(byte, key_type, Layout::Packed { form, per_element, min_expiry: false })
}

const fn sequence(byte: u8, key_type: KeyType, sequence: Sequence) -> Option<RecordType> {
    entry(byte, key_type, Layout::Sequence(sequence))
}

impl RecordType {
    /// The meaning of a type byte in a dialect; `None` where it has none. [`Format::record_type`] has it at hand.
    pub fn of(byte: u8, dialect: Dialect) -> Option<Self> {
        use KeyType::{Hash, List, Set, Stream, String, Zset};
        use PackedForm::{Intset, Listpack, Ziplist, Zipmap};
        match byte {
            0 => entry(byte, String, Layout::Plain),
            1 => sequence(byte, List, Sequence::Single),
            2 => sequence(byte, Set, Sequence::Single),
            3 => sequence(byte, Zset, Sequence::TextScore),
            4 => sequence(byte, Hash, Sequence::Pair),
            5 => sequence(byte, Zset, Sequence::BinaryScore),
            7 => entry(byte, MODULE, Layout::Module),
            9 => packed(byte, Hash, Zipmap, 2),
            10 => packed(byte, List, Ziplist, 1),
            11 => packed(byte, Set, Intset, 1),
            12 => packed(byte, Zset, Ziplist, 2),
            13 => packed(byte, Hash, Ziplist, 2),
            14 => entry(byte, List, Layout::Nodes { form: Ziplist, containers: false }),
            15 => entry(byte, Stream, Layout::Stream(StreamLayout::V1)),
            16 => packed(byte, Hash, Listpack, 2),
            17 => packed(byte, Zset, Listpack, 2),
            18 => entry(byte, List, Layout::Nodes { form: Listpack, containers: true }),
            19 => entry(byte, Stream, Layout::Stream(StreamLayout::V2)),
            // In the version that Dragonfly writes it is the text of a JSON value, and no other server of that version has it.
            20 if dialect == (Dialect { family: Family::Redis, version: 9 }) => {
                entry(byte, KeyType::Other("ReJSON-RL"), Layout::Plain)
            }
            20 => packed(byte, Set, Listpack, 1),
            21 => entry(byte, Stream, Layout::Stream(StreamLayout::V3)),
            _ => match dialect.family {
                Family::Redis => Self::of_redis(byte, dialect.version),
                Family::Valkey => Self::of_valkey(byte, dialect.version),
            },
        }
    }

    fn of_redis(byte: u8, version: u16) -> Option<Self> {
        use KeyType::{Array, Hash, Other, Stream};
        let template = |layout| entry(byte, Hash, Layout::Template(layout));
        let hash = |min_expiry| Layout::Packed { form: PackedForm::Listpack, per_element: 3, min_expiry };
        match (byte, version) {
            (64, ..=9) => entry(byte, Other("cron"), Layout::Cron),
            (30..=37, 9) => Self::of_dragonfly(byte),
            // 22 and 23 are what the release candidates of 7.4 wrote.
            (22, 12..) => sequence(byte, Hash, Sequence::ExpiryPair { relative: false }),
            (23, 12..) => entry(byte, Hash, hash(false)),
            (24, 12..) => sequence(byte, Hash, Sequence::ExpiryPair { relative: true }),
            (25, 12..) => entry(byte, Hash, hash(true)),
            (26, 13..) => entry(byte, Stream, Layout::Stream(StreamLayout::V4)),
            (27, 14..) => entry(byte, Stream, Layout::Stream(StreamLayout::V5)),
            (28, 14..) => entry(byte, Array, Layout::Array),
            // The number moved when hash templates took it. Under 16 and later, what 33 is, is not known.
            (29, 14) | (33, 15) => entry(byte, Other("gcra"), Layout::RateLimiter),
            (29, 15..) => template(TemplateLayout::Packed),
            (30, 15..) => template(TemplateLayout::PackedRef),
            (31, 15..) => template(TemplateLayout::Array),
            (32, 15..) => template(TemplateLayout::ArrayRef),
            _ => None,
        }
    }

    /// Types that Dragonfly adds to version 9, whose header it always writes. Names are those of the modules that it stands in for.
    fn of_dragonfly(byte: u8) -> Option<Self> {
        use KeyType::{Hash, Other, Set};
        match byte {
            30 => entry(byte, Other("ReJSON-RL"), Layout::Plain),
            31 => sequence(byte, Hash, Sequence::PairTextExpiry),
            32 => sequence(byte, Set, Sequence::SingleTextExpiry),
            33 => entry(byte, Other("MBbloom--"), Layout::Sketch(Sketch::Bloom)),
            34 => entry(byte, Other("MBbloom--"), Layout::Sketch(Sketch::BloomChunks)),
            35 => entry(byte, Other("CMSk-TYPE"), Layout::Sketch(Sketch::CountMin)),
            36 => entry(byte, Other("TopK-TYPE"), Layout::Sketch(Sketch::TopK)),
            37 => entry(byte, Other("MBbloomCF"), Layout::Sketch(Sketch::Cuckoo)),
            _ => None,
        }
    }

    fn of_valkey(byte: u8, version: u16) -> Option<Self> {
        match (byte, version) {
            (22, 80..) => sequence(byte, KeyType::Hash, Sequence::PairExpiry),
            (23, 81..) => entry(byte, KeyType::Other("path-hash"), Layout::PathHash),
            _ => None,
        }
    }

    /// True for a layout whose fields or members may have an expiry of their own.
    pub fn has_field_expiry(&self) -> bool {
        match self.layout {
            Layout::Sequence(
                Sequence::ExpiryPair { .. } | Sequence::PairExpiry | Sequence::PairTextExpiry | Sequence::SingleTextExpiry,
            ) => true,
            Layout::Packed { per_element, .. } => per_element == 3,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_and_version() {
        let of = |header: &[u8; 9]| Dialect::parse(header);
        assert_eq!(of(b"REDIS0011"), Some(Dialect { family: Family::Redis, version: 11 }));
        assert_eq!(of(b"VALKEY080"), Some(Dialect { family: Family::Valkey, version: 80 }));
        assert_eq!(of(b"REDIS00x1"), None);
        assert_eq!(of(b"REDIS0000"), None);
        for header in [b"REDIS0011", b"VALKEY080"] {
            assert_eq!(&of(header).expect("a dump").header(), header);
        }
    }

    #[test]
    fn module_name_and_version() {
        // Bytes of a file: 0x4e8a4af9360f1000.
        let id = ModuleId(0x4e8a_4af9_360f_1000);
        assert_eq!(id.to_string(), "TopK-TYPE");
        assert_eq!(id.version(), 0);
    }
}
