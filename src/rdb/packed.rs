//! Values that one string holds: listpack, ziplist, intset, zipmap.

/// Which packed form a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackedForm {
    /// Redis 7.0 and later; also stream nodes.
    Listpack,
    /// Redis 2.2 to 6.2.
    Ziplist,
    /// Sets of integers.
    Intset,
    /// Hashes of Redis 2.4 and older.
    Zipmap,
}

/// One entry of a packed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A string.
    Bytes(&'a [u8]),
    /// An integer; as a string it is its decimal text.
    Int(i64),
}

impl Entry<'_> {
    /// Logical length in bytes.
    pub fn len(&self) -> u64 {
        match *self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Int(value) => super::cursor::decimal_len(value),
        }
    }

    /// True for the empty string.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A fault inside a packed value: at which byte of it, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Offset in the plain bytes of the value.
    pub at: u64,
    /// Why.
    pub why: &'static str,
}

/// The count field of a listpack or ziplist that means "walk it".
const UNKNOWN_COUNT: u16 = u16::MAX;

impl PackedForm {
    /// Entries by the header alone; `None` where the header does not know.
    ///
    /// `head` is the first bytes of the value (10 are enough), `len` the length of all of it.
    ///
    /// # Errors
    /// A header that contradicts `len`.
    pub fn count(self, head: &[u8], len: u64) -> Result<Option<u64>, Fault> {
        let fault = |at, why| Err(Fault { at, why });
        let word = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let half = |at: usize| head.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
        match self {
            Self::Listpack => {
                let (Some(total), Some(count)) = (word(0), half(4)) else { return fault(0, "shorter than a listpack header") };
                if u64::from(total) != len {
                    return fault(0, "listpack header and length disagree");
                }
                known(count, len, 7, 4)
            }
            Self::Ziplist => {
                let (Some(total), Some(count)) = (word(0), half(8)) else { return fault(0, "shorter than a ziplist header") };
                if u64::from(total) != len {
                    return fault(0, "ziplist header and length disagree");
                }
                known(count, len, 11, 8)
            }
            Self::Intset => {
                let (Some(width), Some(count)) = (word(0), word(4)) else { return fault(0, "shorter than an intset header") };
                if !matches!(width, 2 | 4 | 8) {
                    return fault(0, "intset width is not 2, 4 or 8");
                }
                if len != 8 + u64::from(width) * u64::from(count) {
                    return fault(4, "intset count and length disagree");
                }
                Ok(Some(u64::from(count)))
            }
            Self::Zipmap => match head.first() {
                None => fault(0, "shorter than a zipmap header"),
                Some(&count) if count < 254 => Ok(Some(u64::from(count) * 2)),
                Some(_) => Ok(None),
            },
        }
    }

    /// Calls `each` for every entry of `blob` in order and returns how many there were.
    ///
    /// # Errors
    /// The first entry that breaks the form; those before it were handed out.
    pub fn entries<'a>(self, blob: &'a [u8], mut each: impl FnMut(Entry<'a>)) -> Result<u64, Fault> {
        let head = blob.get(..10).unwrap_or(blob);
        self.count(head, blob.len() as u64)?;
        match self {
            Self::Listpack => walk(blob, 6, listpack_entry, &mut each),
            Self::Ziplist => walk(blob, 10, ziplist_entry, &mut each),
            Self::Intset => Ok(intset_entries(blob, &mut each)),
            Self::Zipmap => zipmap_entries(blob, &mut each),
        }
    }
}

fn known(count: u16, len: u64, frame: u64, at: u64) -> Result<Option<u64>, Fault> {
    if count == UNKNOWN_COUNT {
        return Ok(None);
    }
    // The shortest entry of either form is two bytes.
    if u64::from(count) > len.saturating_sub(frame) / 2 {
        return Err(Fault { at, why: "more entries declared than the bytes can hold" });
    }
    Ok(Some(u64::from(count)))
}

/// Bytes that follow an entry of a listpack so that it can be read backwards, for `size` bytes of encoding and data.
pub fn backlen_bytes(size: u64) -> u64 {
    match size {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// One entry and the bytes after it, or why there is none.
type Taken<'a> = Result<(Entry<'a>, &'a [u8]), &'static str>;

fn walk<'a>(
    blob: &'a [u8],
    header: usize,
    entry: fn(&'a [u8]) -> Taken<'a>,
    each: &mut impl FnMut(Entry<'a>),
) -> Result<u64, Fault> {
    let mut rest = blob.get(header..).unwrap_or_default();
    let mut n = 0;
    loop {
        let at = (blob.len() - rest.len()) as u64;
        match rest {
            [0xff] => return Ok(n),
            [] => return Err(Fault { at, why: "end mark missing" }),
            [0xff, ..] => return Err(Fault { at, why: "bytes after the end mark" }),
            _ => {
                let (found, after) = entry(rest).map_err(|why| Fault { at, why })?;
                each(found);
                n += 1;
                rest = after;
            }
        }
    }
}

const SHORT: &str = "entry passes the end";

fn listpack_entry(bytes: &[u8]) -> Taken<'_> {
    let (&first, rest) = bytes.split_first().ok_or(SHORT)?;
    let string = |len: usize, rest: &'_ [u8]| -> Option<usize> { rest.get(..len).map(<[u8]>::len) };
    let (entry, size) = match first {
        0x00..=0x7f => (Entry::Int(i64::from(first)), 1),
        0x80..=0xbf => {
            let len = string(usize::from(first & 0x3f), rest).ok_or(SHORT)?;
            (Entry::Bytes(&rest[..len]), 1 + len)
        }
        0xc0..=0xdf => {
            let low = *rest.first().ok_or(SHORT)?;
            let value = i64::from(first & 0x1f) << 8 | i64::from(low);
            (Entry::Int(if value >= 4096 { value - 8192 } else { value }), 2)
        }
        0xe0..=0xef => {
            let (&low, data) = rest.split_first().ok_or(SHORT)?;
            let len = string(usize::from(first & 0x0f) << 8 | usize::from(low), data).ok_or(SHORT)?;
            (Entry::Bytes(&data[..len]), 2 + len)
        }
        0xf0 => {
            let (len, data) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
            let len = string(u32::from_le_bytes(*len) as usize, data).ok_or(SHORT)?;
            (Entry::Bytes(&data[..len]), 5 + len)
        }
        0xf1 => (Entry::Int(little_endian::<2>(rest)?), 3),
        0xf2 => (Entry::Int(little_endian::<3>(rest)?), 4),
        0xf3 => (Entry::Int(little_endian::<4>(rest)?), 5),
        0xf4 => (Entry::Int(little_endian::<8>(rest)?), 9),
        _ => return Err("no listpack encoding"),
    };
    let after = bytes.get(size + backlen_bytes(size as u64) as usize..).ok_or(SHORT)?;
    Ok((entry, after))
}

/// The entries of a listpack, one by one; a copy begins again where it was taken.
#[derive(Debug, Clone)]
pub(super) struct ListpackEntries<'a> {
    rest: &'a [u8],
}

impl<'a> ListpackEntries<'a> {
    /// Begins behind the header of a listpack whose header was checked.
    pub(super) fn new(blob: &'a [u8]) -> Self {
        Self { rest: blob.get(6..).unwrap_or_default() }
    }

    /// True at the end mark.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.rest, [] | [0xff, ..])
    }
}

impl<'a> Iterator for ListpackEntries<'a> {
    type Item = Entry<'a>;

    /// The next entry; none at the end, and none where there is no entry to be read.
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.at_end() {
            return None;
        }
        let (entry, rest) = listpack_entry(self.rest).ok()?;
        self.rest = rest;
        Some(entry)
    }
}

fn ziplist_entry(bytes: &[u8]) -> Taken<'_> {
    let (&first, rest) = bytes.split_first().ok_or(SHORT)?;
    let rest = if first == 0xfe { rest.get(4..).ok_or(SHORT)? } else { rest };
    let (&encoding, rest) = rest.split_first().ok_or(SHORT)?;
    let integer = |value, width: usize| Ok((Entry::Int(value), &rest[width..]));
    let string = |len: usize, data: &'_ [u8]| -> Option<usize> { data.get(..len).map(<[u8]>::len) };
    match encoding {
        0x00..=0x3f => {
            let len = string(usize::from(encoding), rest).ok_or(SHORT)?;
            Ok((Entry::Bytes(&rest[..len]), &rest[len..]))
        }
        0x40..=0x7f => {
            let (&low, data) = rest.split_first().ok_or(SHORT)?;
            let len = string(usize::from(encoding & 0x3f) << 8 | usize::from(low), data).ok_or(SHORT)?;
            Ok((Entry::Bytes(&data[..len]), &data[len..]))
        }
        0x80..=0xbf => {
            let (len, data) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
            let len = string(u32::from_be_bytes(*len) as usize, data).ok_or(SHORT)?;
            Ok((Entry::Bytes(&data[..len]), &data[len..]))
        }
        0xc0 => integer(little_endian::<2>(rest)?, 2),
        0xd0 => integer(little_endian::<4>(rest)?, 4),
        0xe0 => integer(little_endian::<8>(rest)?, 8),
        0xf0 => integer(little_endian::<3>(rest)?, 3),
        0xfe => integer(little_endian::<1>(rest)?, 1),
        0xf1..=0xfd => integer(i64::from(encoding & 0x0f) - 1, 0),
        _ => Err("no ziplist encoding"),
    }
}

/// A signed little-endian integer of `N` bytes.
fn little_endian<const N: usize>(bytes: &[u8]) -> Result<i64, &'static str> {
    let taken = bytes.first_chunk::<N>().ok_or(SHORT)?;
    let mut wide = [0; 8];
    wide[8 - N..].copy_from_slice(taken);
    Ok(i64::from_le_bytes(wide) >> (64 - 8 * N))
}

fn intset_entries<'a>(blob: &'a [u8], each: &mut impl FnMut(Entry<'a>)) -> u64 {
    // The header was checked: the width is one of the three and divides what follows.
    let width = usize::from(blob[0]);
    let members = blob[8..].chunks_exact(width);
    let n = members.len() as u64;
    for member in members {
        let value = match width {
            2 => little_endian::<2>(member),
            4 => little_endian::<4>(member),
            _ => little_endian::<8>(member),
        };
        each(Entry::Int(value.unwrap_or_default()));
    }
    n
}

fn zipmap_entries<'a>(blob: &'a [u8], each: &mut impl FnMut(Entry<'a>)) -> Result<u64, Fault> {
    let mut rest = blob.get(1..).unwrap_or_default();
    let mut n = 0;
    loop {
        let fault = |rest: &[u8], why| Fault { at: (blob.len() - rest.len()) as u64, why };
        match rest {
            [0xff] => return Ok(n),
            [] => return Err(fault(rest, "end mark missing")),
            [0xff, ..] => return Err(fault(rest, "bytes after the end mark")),
            _ => {}
        }
        let (key, after) = zipmap_item(rest, 0).ok_or_else(|| fault(rest, SHORT))?;
        let (value, after) = zipmap_item(after, 1).ok_or_else(|| fault(after, SHORT))?;
        each(Entry::Bytes(key));
        each(Entry::Bytes(value));
        n += 2;
        rest = after;
    }
}

/// A length-prefixed item of a zipmap; a value (`free` = 1) has a byte between length and data that counts the unused bytes after it.
fn zipmap_item(bytes: &[u8], free: usize) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (len, rest) = match first {
        0..=253 => (usize::from(first), rest),
        254 => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_le_bytes(*len) as usize, rest)
        }
        255 => return None,
    };
    let unused = if free == 1 { usize::from(*rest.first()?) } else { 0 };
    let (item, rest) = rest.get(free..)?.split_at_checked(len)?;
    Some((item, rest.get(unused..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(form: PackedForm, blob: &[u8]) -> Result<Vec<String>, Fault> {
        let mut out = Vec::new();
        form.entries(blob, |entry| {
            out.push(match entry {
                Entry::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Entry::Int(value) => value.to_string(),
            });
        })?;
        Ok(out)
    }

    #[test]
    fn listpack_integers_of_every_width() {
        let mut blob = vec![0, 0, 0, 0, 7, 0];
        blob.extend([0x7f, 1]); // 127
        blob.extend([0xdf, 0xff, 2]); // 13 bits: -1
        blob.extend([0xd0, 0x00, 2]); // 13 bits: -4096
        blob.extend([0xf1, 0xff, 0xef, 3]); // 16 bits: -4097
        blob.extend([0xf2, 0xff, 0x7f, 0xff, 4]); // 24 bits: -32769
        blob.extend([0xf3, 0xff, 0xff, 0x7f, 0xff, 5]); // 32 bits: -8388609
        blob.extend([0xf4, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 9]); // 64 bits: -2147483649
        blob.push(0xff);
        blob[0] = blob.len() as u8;
        let values = all(PackedForm::Listpack, &blob).expect("a listpack");
        assert_eq!(values, ["127", "-1", "-4096", "-4097", "-32769", "-8388609", "-2147483649"]);
        assert_eq!(PackedForm::Listpack.count(&blob[..6], blob.len() as u64), Ok(Some(7)));
    }

    #[test]
    fn ziplist_entries_of_every_encoding() {
        let mut blob = vec![0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        blob.extend([0, 0x02, b'h', b'i']); // string of 2
        blob.extend([4, 0xf1]); // immediate 0
        blob.extend([2, 0xfd]); // immediate 12
        blob.extend([2, 0xfe, 0x80]); // 8 bits: -128
        blob.extend([3, 0xc0, 0x00, 0x80]); // 16 bits: -32768
        blob.extend([4, 0xf0, 0x00, 0x00, 0x80]); // 24 bits: -8388608
        blob.extend([5, 0xd0, 0x00, 0x00, 0x00, 0x80]); // 32 bits
        blob.extend([0xfe, 6, 0, 0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80]); // 64 bits, long form of the previous length
        blob.push(0xff);
        blob[0] = blob.len() as u8;
        let values = all(PackedForm::Ziplist, &blob).expect("a ziplist");
        assert_eq!(values, ["hi", "0", "12", "-128", "-32768", "-8388608", "-2147483648", "-9223372036854775808"]);
    }

    #[test]
    fn zipmap_with_a_long_value_and_unused_bytes() {
        let mut blob = vec![2, 1, b'a', 2, 0, b'v', b'1', 1, b'b', 0xfe, 0x2c, 0x01, 0, 0, 1];
        blob.extend([b'V'; 300]);
        blob.extend([b'?', 0xff]); // one unused byte
        let values = all(PackedForm::Zipmap, &blob).expect("a zipmap");
        assert_eq!(values, ["a".to_string(), "v1".into(), "b".into(), "V".repeat(300)]);
    }

    #[test]
    fn a_count_of_65535_means_walk() {
        let blob = [10, 0, 0, 0, 0xff, 0xff, 0x81, b'a', 2, 0xff];
        assert_eq!(PackedForm::Listpack.count(&blob, 10), Ok(None));
        assert_eq!(all(PackedForm::Listpack, &blob), Ok(vec!["a".to_string()]));
    }

    #[test]
    fn faults_name_the_byte() {
        let passes_end = [10, 0, 0, 0, 1, 0, 0x88, b'a', 2, 0xff];
        assert_eq!(all(PackedForm::Listpack, &passes_end), Err(Fault { at: 6, why: SHORT }));
        let no_end = [9, 0, 0, 0, 1, 0, 0x81, b'a', 2];
        assert_eq!(all(PackedForm::Listpack, &no_end), Err(Fault { at: 9, why: "end mark missing" }));
        assert!(PackedForm::Intset.count(&[3, 0, 0, 0, 1, 0, 0, 0], 11).is_err());
        assert!(PackedForm::Ziplist.count(&[12, 0, 0, 0, 0, 0, 0, 0, 9, 0], 12).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut blob: Vec<u8>, form in 0usize..4) {
            let form = [PackedForm::Listpack, PackedForm::Ziplist, PackedForm::Intset, PackedForm::Zipmap][form];
            if blob.len() >= 4 && form != PackedForm::Intset {
                let total = (blob.len() as u32).to_le_bytes();
                blob[..4].copy_from_slice(&total);
            }
            let _ = all(form, &blob);
        }
    }
}
