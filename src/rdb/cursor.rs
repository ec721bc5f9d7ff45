//! Reads forward through one slice: all bounds checks of the parser are here.

use crate::error::{Error, ErrorKind, Result};
use crate::rdb::lzf;

/// A position in a slice of the dump that remembers where in the file it is.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
}

/// A string as the dump stores it, not copied and not decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Str<'a> {
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// An integer in binary; the string is its decimal text.
    Int(i32),
    /// LZF-compressed bytes.
    Lzf {
        /// The compressed bytes.
        packed: &'a [u8],
        /// Length of the string, as its header says (not proven).
        plain_len: u64,
        /// Offset of `packed` in the dump.
        offset: u64,
    },
}

/// More bytes than any file has.
pub(super) const MOST_BYTES: u64 = 1 << 48;

/// Longest decimal text of an `i64`.
pub const INT_TEXT: usize = 20;

impl<'a> Str<'a> {
    /// Logical length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match *self {
            Self::Raw(bytes) => bytes.len() as u64,
            Self::Int(value) => decimal_len(i64::from(value)),
            Self::Lzf { plain_len, .. } => plain_len,
        }
    }

    /// True for the empty string.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An LZF string whose header promises more than its bytes can hold: 88 bytes for each compressed one.
    pub fn cannot_expand(&self) -> Option<Error> {
        match *self {
            Self::Lzf { packed, plain_len, offset } if plain_len > lzf::most_plain(packed.len()) => Some(Error::new(
                offset,
                "LZF string",
                ErrorKind::TooLarge { declared: plain_len, limit: lzf::most_plain(packed.len()) },
            )),
            _ => None,
        }
    }

    /// The whole string; integers and compressed bytes are written into `scratch`.
    ///
    /// # Errors
    /// A compressed string that does not decompress to exactly its declared length, or declares more than `limit` bytes.
    #[inline]
    pub fn text<'b>(&self, scratch: &'b mut Vec<u8>, limit: u64) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        match *self {
            Self::Raw(bytes) => Ok(bytes),
            _ => self.written_text(scratch, limit),
        }
    }

    /// The text of a string that does not stand in the dump as it is.
    fn written_text<'b>(&self, scratch: &'b mut Vec<u8>, limit: u64) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        match *self {
            Self::Raw(bytes) => Ok(bytes),
            Self::Int(value) => {
                scratch.clear();
                scratch.extend_from_slice(value.to_string().as_bytes());
                Ok(scratch)
            }
            Self::Lzf { packed, plain_len, offset } => {
                if plain_len > limit {
                    let kind = ErrorKind::TooLarge { declared: plain_len, limit };
                    return Err(Error::new(offset, "LZF string", kind));
                }
                if let Some(fault) = self.cannot_expand() {
                    return Err(fault);
                }
                lzf::decompress(packed, plain_len as usize, scratch)
                    .map_err(|why| Error::new(offset, "LZF string", ErrorKind::Invalid(why)))?;
                Ok(scratch)
            }
        }
    }

    /// The first bytes of the string, at most `N`: enough for the header of a packed value, at the price of that header.
    pub(crate) fn head<const N: usize>(&self, out: &mut [u8; N]) -> usize {
        match *self {
            Self::Raw(bytes) => {
                let n = bytes.len().min(N);
                out[..n].copy_from_slice(&bytes[..n]);
                n
            }
            Self::Int(_) => 0,
            Self::Lzf { packed, plain_len, .. } => {
                let want = N.min(usize::try_from(plain_len).unwrap_or(N));
                lzf::decompress_head(packed, &mut out[..want])
            }
        }
    }
}

/// Length of the decimal text of `value`.
pub(crate) fn decimal_len(value: i64) -> u64 {
    let magnitude = value.unsigned_abs();
    u64::from(value < 0) + u64::from(magnitude.checked_ilog10().unwrap_or(0)) + 1
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `bytes`, which is byte `base` of the dump.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Offset in the dump of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Bytes not yet read.
    #[inline]
    pub fn remaining(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// The next byte, not taken.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// True where the next bytes are these.
    pub(crate) fn begins_with(&self, bytes: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(bytes)
    }

    /// Takes `n` bytes.
    #[inline]
    pub fn take(&mut self, n: u64, reading: &'static str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(n).ok().and_then(|n| rest.get(..n)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.short(n, reading)),
        }
    }

    /// Takes `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self, reading: &'static str) -> Result<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => Err(self.short(N as u64, reading)),
        }
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self, reading: &'static str) -> Result<u8> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(self.short(1, reading)),
        }
    }

    /// Takes a length: 6, 14, 32 or 64 bits.
    #[inline]
    pub fn len(&mut self, reading: &'static str) -> Result<u64> {
        let first = self.u8(reading)?;
        if first < 0x40 { Ok(u64::from(first)) } else { self.long_len(first, reading) }
    }

    fn long_len(&mut self, first: u8, reading: &'static str) -> Result<u64> {
        match first {
            0x40..=0x7f => Ok(u64::from(first & 0x3f) << 8 | u64::from(self.u8(reading)?)),
            0x80 => Ok(u64::from(u32::from_be_bytes(self.array(reading)?))),
            0x81 => Ok(u64::from_be_bytes(self.array(reading)?)),
            _ => Err(Error::new(self.offset() - 1, reading, ErrorKind::BadLength(first))),
        }
    }

    /// Takes the number of elements that follow, each at least `least` bytes long.
    #[inline]
    pub fn count(&mut self, least: u64, reading: &'static str) -> Result<u64> {
        let n = self.len(reading)?;
        match n.checked_mul(least) {
            Some(bytes) if bytes <= self.remaining() => Ok(n),
            // A count that no file can hold is no truncation.
            Some(bytes) if bytes < MOST_BYTES => Err(self.short(bytes, reading)),
            _ => {
                // Not what is left: of a stream that is not known.
                let kind = ErrorKind::TooLarge { declared: n, limit: MOST_BYTES / least.max(1) };
                Err(Error::new(self.offset(), reading, kind))
            }
        }
    }

    /// Takes a string in any of its forms.
    #[inline]
    pub fn str(&mut self, reading: &'static str) -> Result<Str<'a>> {
        let first = self.u8(reading)?;
        if first < 0x40 {
            return Ok(Str::Raw(self.take(u64::from(first), reading)?));
        }
        self.long_str(first, reading)
    }

    /// Passes `n` strings.
    #[inline]
    pub fn skip_strs(&mut self, n: u64, reading: &'static str) -> Result<()> {
        for _ in 0..n {
            // A short one, which nearly all are, that ends in front of the last byte.
            match self.bytes.get(self.at) {
                Some(&len) if len < 0x40 && self.at + usize::from(len) + 1 < self.bytes.len() => self.at += usize::from(len) + 1,
                _ => {
                    self.str(reading)?;
                }
            }
        }
        Ok(())
    }

    fn long_str(&mut self, first: u8, reading: &'static str) -> Result<Str<'a>> {
        match first {
            0xc0 => Ok(Str::Int(i32::from(self.u8(reading)? as i8))),
            0xc1 => Ok(Str::Int(i32::from(i16::from_le_bytes(self.array(reading)?)))),
            0xc2 => Ok(Str::Int(i32::from_le_bytes(self.array(reading)?))),
            0xc3 => {
                let packed_len = self.len(reading)?;
                let plain_len = self.len(reading)?;
                let offset = self.offset();
                // Servers compress no longer ones: `lzf_compress` takes an `unsigned int`.
                let limit = u64::from(u32::MAX);
                if plain_len > limit {
                    return Err(Error::new(offset, reading, ErrorKind::TooLarge { declared: plain_len, limit }));
                }
                let packed = self.take(packed_len, reading)?;
                Ok(Str::Lzf { packed, plain_len, offset })
            }
            _ => {
                let n = self.long_len(first, reading)?;
                Ok(Str::Raw(self.take(n, reading)?))
            }
        }
    }

    #[cold]
    fn short(&self, needed: u64, reading: &'static str) -> Error {
        Error::new(self.offset(), reading, ErrorKind::Truncated { needed, available: self.remaining() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_form() {
        let bytes = [
            0x3f, // 6 bits: 63
            0x7f, 0xff, // 14 bits: 16383
            0x80, 0x00, 0x01, 0x00, 0x00, // 32 bits, big endian: 65536
            0x81, 0, 0, 0, 1, 0, 0, 0, 0,    // 64 bits, big endian: 2^32
            0x82, // no length
        ];
        let mut cursor = Cursor::new(&bytes, 100);
        let lens: Vec<_> = (0..4).map(|_| cursor.len("length").expect("a length")).collect();
        assert_eq!(lens, [63, 16383, 65536, 1 << 32]);
        let fault = cursor.len("length").expect_err("0x82 is no length");
        assert_eq!(fault.detail().offset, 117);
        assert_eq!(fault.detail().kind, ErrorKind::BadLength(0x82));
    }

    #[test]
    fn every_string_form() {
        let bytes = [
            0x02, b'h', b'i', // plain
            0xc0, 0xff, // 8 bits: -1
            0xc1, 0xc7, 0xcf, // 16 bits, little endian: -12345
            0xc2, 0xff, 0xff, 0xff, 0x7f, // 32 bits, little endian
            0xc3, 0x02, 0x01, 0x00, b'x', // LZF: 2 bytes hold 1: a literal run of one
            0xc4, // no string
        ];
        let mut cursor = Cursor::new(&bytes, 0);
        let mut scratch = Vec::new();
        let texts: Vec<Vec<u8>> =
            (0..5).map(|_| cursor.str("string").and_then(|s| Ok(s.text(&mut scratch, 64)?.to_vec())).expect("text")).collect();
        assert_eq!(texts, [b"hi".to_vec(), b"-1".to_vec(), b"-12345".to_vec(), b"2147483647".to_vec(), b"x".to_vec()]);
        assert_eq!(cursor.str("string").expect_err("0xc4 is no string").detail().offset, 18);
    }

    #[test]
    fn decimal_lengths() {
        for value in [0, 9, 10, -1, -10, 99_999, i64::MAX, i64::MIN] {
            assert_eq!(decimal_len(value), value.to_string().len() as u64, "{value}");
        }
    }

    #[test]
    fn a_count_is_held_against_the_bytes_left() {
        let absurd = [0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let fault = Cursor::new(&absurd, 0).count(2, "fields").expect_err("2^64 - 1 fields");
        assert!(matches!(fault.detail().kind, ErrorKind::TooLarge { .. }));
        assert!(Cursor::new(&[3, 0, 0], 0).count(1, "members").expect_err("one byte is missing").is_truncation());
    }
}
