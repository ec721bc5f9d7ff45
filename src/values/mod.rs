//! What the values of strings are: their format, the schema version they carry, whether they parse, how well they compress.
//!
//! A few hundred values of each class are looked at, those whose keys have the smallest hashes, and nothing of them is kept but a
//! [`Verdict`]: a format, sums, and a version where it is a short number.

mod compressed;
mod json;
mod rows;
mod sample;
mod serialised;
mod tagged;

use std::fmt;

use zstd::bulk::Compressor;

use crate::rdb::Str;

pub use rows::{ValueRow, rows};
pub use sample::{Part, Sample, Sampled, key_hash};

/// Longest value that is looked at, in bytes.
pub const MOST_VALUE_BYTES: u64 = 16 << 20;

/// So many bytes of a value are compressed, from its beginning.
const MOST_COMPRESSED_BYTES: usize = 64 << 10;

/// The level that servers and clients use who must be fast.
const LEVEL: i32 = 1;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// No bytes.
    Empty,
    /// A decimal integer of 64 bits, as `INCR` takes it.
    Integer,
    /// An object, array or string of JSON (RFC 8259).
    Json,
    /// Python's pickle, protocol 2 and later.
    Pickle,
    /// Java's object serialisation.
    Java,
    /// What `serialize` of PHP writes.
    Php,
    /// gzip (RFC 1952).
    Gzip,
    /// zlib (RFC 1950).
    Zlib,
    /// A zstd frame (RFC 8878).
    Zstd,
    /// An LZ4 frame.
    Lz4,
    /// Snappy's framing format.
    Snappy,
    /// Readable UTF-8 of no other format.
    Text,
    /// A map or array of MessagePack.
    MessagePack,
    /// A sequence of fields that Protocol Buffers could have written; nothing proves that they did.
    Protobuf,
    /// Anything else.
    Binary,
    /// A value that was not looked at.
    Unread,
}

impl Format {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Integer => "integer",
            Self::Json => "json",
            Self::Pickle => "python-pickle",
            Self::Java => "java-serialized",
            Self::Php => "php-serialized",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Text => "text",
            Self::MessagePack => "msgpack",
            Self::Protobuf => "protobuf-like",
            Self::Binary => "binary",
            Self::Unread => "(unread)",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is kept of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its format.
    pub format: Format,
    /// It begins as that format does, and is well-formed to its end.
    pub is_parsed: bool,
    /// The schema version that it carries, a short number; [`OTHER_VERSION`] for anything else in its place.
    pub schema_version: Option<Box<str>>,
    /// Its length.
    pub bytes: u64,
    /// How many bytes of it were compressed, from its beginning.
    pub plain_bytes: u64,
    /// What they took then.
    pub compressed_bytes: u64,
}

/// What a schema version is called that is no short number.
pub const OTHER_VERSION: &str = "other";

/// Looks at one value after another.
pub struct Judge {
    compressor: Option<Compressor<'static>>,
    text: Vec<u8>,
    compressed: Vec<u8>,
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}

impl Default for Judge {
    fn default() -> Self {
        Self { compressor: Compressor::new(LEVEL).ok(), text: Vec::new(), compressed: Vec::new() }
    }
}

impl Judge {
    /// The verdict on a value; of one that is longer than [`MOST_VALUE_BYTES`] or does not decompress, its length alone.
    pub fn judge(&mut self, value: Str<'_>) -> Verdict {
        let mut text = std::mem::take(&mut self.text);
        let verdict = match value.len() {
            0..=MOST_VALUE_BYTES => value.text(&mut text, MOST_VALUE_BYTES).ok().map(|bytes| self.judge_bytes(bytes)),
            _ => None,
        };
        self.text = text;
        verdict.unwrap_or_else(|| Verdict { bytes: value.len(), ..Verdict::unread() })
    }

    fn judge_bytes(&mut self, bytes: &[u8]) -> Verdict {
        let (format, is_parsed) = format(bytes);
        let schema_version = (format == Format::Json && is_parsed).then(|| json::schema_version(bytes)).flatten();
        let plain = &bytes[..bytes.len().min(MOST_COMPRESSED_BYTES)];
        let compressed_bytes = self.compressed_len(plain).unwrap_or(plain.len()) as u64;
        let (bytes, plain_bytes) = (bytes.len() as u64, plain.len() as u64);
        Verdict { format, is_parsed, schema_version, bytes, plain_bytes, compressed_bytes }
    }

    fn compressed_len(&mut self, plain: &[u8]) -> Option<usize> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
        self.compressor.as_mut()?.compress_to_buffer(plain, &mut self.compressed).ok()
    }
}

impl Verdict {
    /// Of a value that could not be looked at.
    pub fn unread() -> Self {
        Self { format: Format::Unread, is_parsed: true, schema_version: None, bytes: 0, plain_bytes: 0, compressed_bytes: 0 }
    }
}

/// The format of a value, and whether it is well-formed to its end. What announces itself by its first bytes comes first; what could be anything,
/// last.
pub fn format(bytes: &[u8]) -> (Format, bool) {
    if bytes.is_empty() {
        return (Format::Empty, true);
    }
    if is_integer(bytes) {
        return (Format::Integer, true);
    }
    let announced = compressed::format(bytes)
        .or_else(|| Some((Format::Java, serialised::java(bytes)?)))
        .or_else(|| Some((Format::Pickle, serialised::pickle(bytes)?)))
        .or_else(|| Some((Format::Php, serialised::php(bytes)?)));
    if let Some(found) = announced {
        return found;
    }
    let is_text = is_text(bytes);
    if let Some(parsed) = json::parsed(bytes, is_text) {
        return (Format::Json, parsed);
    }
    let last: [(Format, bool); 3] = [
        (Format::Text, is_text),
        (Format::MessagePack, !is_text && tagged::is_message_pack(bytes)),
        (Format::Protobuf, !is_text && tagged::is_protobuf_like(bytes)),
    ];
    (last.iter().find(|(_, is)| *is).map_or(Format::Binary, |(format, _)| *format), true)
}

/// The decimal text of an `i64`, without a sign or zeros that it does not need.
fn is_integer(bytes: &[u8]) -> bool {
    let number = std::str::from_utf8(bytes.get(..21).unwrap_or(bytes)).ok().and_then(|text| text.parse::<i64>().ok());
    number.is_some_and(|number| itoa::Buffer::new().format(number).as_bytes() == bytes)
}

/// UTF-8 without control characters other than line ends and tabs.
fn is_text(bytes: &[u8]) -> bool {
    let is_readable = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_readable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], format: Format) {
        assert_eq!(super::format(bytes), (format, true), "{}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn plain_values() {
        check(b"", Format::Empty);
        for number in ["0", "-1", "1796042566", "9223372036854775807", "-9223372036854775808"] {
            check(number.as_bytes(), Format::Integer);
        }
        // What INCR refuses is a text: signs, zeros in front, a fraction, a bit too much.
        for text in ["007", "+1", "-0", "1.5", "9223372036854775808", "1e3", "12 ", "true", "null"] {
            check(text.as_bytes(), Format::Text);
        }
        check(b"The quick brown fox jumps over the lazy dog.\r\n\tAgain.", Format::Text);
        check("商店".as_bytes(), Format::Text);
        check(b"\xc9\xcc\xb5\xea", Format::Binary);
        check(b"with a zero\0", Format::Binary);
        check(b"\n hello, which begins as a field of 32 bytes does", Format::Text);
    }

    #[test]
    fn a_verdict_has_figures_and_no_value() {
        let mut judge = Judge::default();
        let text = [b"{\"v\":3,\"pad\":\"", &[b'a'; 100_000][..], b"\"}"].concat();
        let verdict = judge.judge(Str::Raw(&text));
        assert_eq!((verdict.format, verdict.schema_version.as_deref()), (Format::Json, Some("3")));
        assert_eq!((verdict.bytes, verdict.plain_bytes), (100_016, 65_536));
        assert!((20..200).contains(&verdict.compressed_bytes), "{}", verdict.compressed_bytes);
        assert_eq!(judge.judge(Str::Int(-12)).format, Format::Integer);
        assert_eq!(judge.judge(Str::Int(-12)).bytes, 3);
        // What is compressed in the dump is looked at as it is after the load: 'a' and a reference to 9 more of it.
        let lzf = Str::Lzf { packed: &[0, b'a', 0xe0, 0, 0], plain_len: 10, offset: 0 };
        assert_eq!((judge.judge(lzf).format, judge.judge(lzf).bytes), (Format::Text, 10));
        let broken = Str::Lzf { packed: &[0xff, 0, 0], plain_len: 264, offset: 0 };
        assert_eq!(judge.judge(broken), Verdict { bytes: 264, ..Verdict::unread() });
        let long = Str::Lzf { packed: &[0; 1000], plain_len: 1 << 40, offset: 0 };
        assert_eq!(judge.judge(long).format, Format::Unread);
    }

    #[test]
    fn random_bytes_are_binary() {
        // SplitMix64, in lengths from 8 to 71 bytes.
        let mut state = 2026u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        };
        const DRAWN: usize = 200_000;
        let mut others = std::collections::BTreeMap::<(Format, bool), usize>::new();
        for n in 0..DRAWN {
            let bytes: Vec<u8> = (0..8 + n % 64).map(|_| (next() >> 56) as u8).collect();
            let found = format(&bytes);
            if found.0 != Format::Binary {
                *others.entry(found).or_default() += 1;
            }
        }
        // Fields, maps and readable bytes by chance: docs/reports.md says that these are fewer than one in a thousand.
        assert!(others.values().sum::<usize>() < DRAWN / 1000, "{others:?}");
        let by_chance = |format: &Format| matches!(format, Format::Protobuf | Format::MessagePack | Format::Text);
        assert!(others.iter().all(|((format, _), n)| by_chance(format) || *n < 5), "{others:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_a_format(bytes: Vec<u8>, head in 0usize..12, tail: Vec<u8>) {
            const HEADS: [&[u8]; 12] = [
                b"", b"{\"v\":", b"[", b"\x80\x04", b"\xac\xed\x00\x05", b"a:1:{", b"O:1:\"", b"\x1f\x8b\x08", b"\x78\x9c",
                b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xff\x06\x00\x00sNaPpY",
            ];
            let bytes = [HEADS[head], &bytes, &tail].concat();
            let verdict = Judge::default().judge(Str::Raw(&bytes));
            proptest::prop_assert_eq!(verdict.bytes, bytes.len() as u64);
        }
    }
}
