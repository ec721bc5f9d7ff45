//! Binary formats that announce themselves by nothing: a value is one of them where all of it can be read so.

/// Containers within containers that are followed.
const MOST_NESTED: usize = 1024;

/// Whether a value is one map or array of MessagePack that is not empty, as serialisers write objects: keys of maps are strings or integers,
/// strings are UTF-8.
pub fn is_message_pack(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(0x81..=0x8f | 0x91..=0x9f | 0xdc..=0xdf)) && one_message(bytes).is_some_and(<[u8]>::is_empty)
}

/// A container that is open.
struct Container {
    /// Items still to come.
    left: u64,
    /// Keys and values take turns.
    is_map: bool,
}

/// What follows the first item; `None` where that passes the end or is none.
fn one_message(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    let mut open: Vec<Container> = Vec::new();
    loop {
        let is_key = open.last().is_some_and(|container| container.is_map && container.left.is_multiple_of(2));
        let (&tag, behind) = rest.split_first()?;
        let low = u64::from(tag & 0x0f);
        let counted = |width: usize| {
            let count = behind.get(..width)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
            Some((count, &behind[width..]))
        };
        let fixed = |n: u64| (n, behind);
        if is_key && !matches!(tag, 0x00..=0x7f | 0xa0..=0xbf | 0xcc..=0xcf | 0xd0..=0xd3 | 0xd9..=0xdb | 0xe0..=0xff) {
            return None;
        }
        let (len, behind) = match tag {
            0x80..=0x8f | 0xde | 0xdf | 0x90..=0x9f | 0xdc | 0xdd => {
                let (items, behind) = match tag {
                    0x80..=0x9f => fixed(low),
                    0xdc | 0xde => counted(2)?,
                    _ => counted(4)?,
                };
                let is_map = matches!(tag, 0x80..=0x8f | 0xde | 0xdf);
                if open.len() >= MOST_NESTED {
                    return None;
                }
                // Counts are of 32 bits at most.
                open.push(Container { left: items * if is_map { 2 } else { 1 }, is_map });
                (None, behind)
            }
            0xa0..=0xbf => (Some(u64::from(tag & 0x1f)), behind),
            0xc4 | 0xd9 => counted(1).map(|(len, behind)| (Some(len), behind))?,
            0xc5 | 0xda => counted(2).map(|(len, behind)| (Some(len), behind))?,
            0xc6 | 0xdb => counted(4).map(|(len, behind)| (Some(len), behind))?,
            // One byte says what kind of extension it is.
            0xc7 => counted(1).map(|(len, behind)| (Some(len + 1), behind))?,
            0xc8 => counted(2).map(|(len, behind)| (Some(len + 1), behind))?,
            0xc9 => counted(4).map(|(len, behind)| (Some(len + 1), behind))?,
            0xd4..=0xd8 => (Some((1 << (tag - 0xd4)) + 1), behind),
            0xcc | 0xd0 => (Some(1), behind),
            0xcd | 0xd1 => (Some(2), behind),
            0xca | 0xce | 0xd2 => (Some(4), behind),
            0xcb | 0xcf | 0xd3 => (Some(8), behind),
            0xc1 => return None,
            _ => (Some(0), behind),
        };
        rest = behind;
        if let Some(len) = len {
            let (text, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            if matches!(tag, 0xa0..=0xbf | 0xd9..=0xdb) && std::str::from_utf8(text).is_err() {
                return None;
            }
            rest = behind;
            take_one(&mut open);
        }
        while open.last().is_some_and(|container| container.left == 0) {
            open.pop();
            take_one(&mut open);
        }
        if open.is_empty() {
            return Some(rest);
        }
    }
}

/// An item of the innermost container has passed.
fn take_one(open: &mut [Container]) {
    if let Some(container) = open.last_mut() {
        container.left = container.left.saturating_sub(1);
    }
}

/// The first field of a message is seldom beyond.
const MOST_FIRST_FIELD: u64 = 16;

/// Fields by which a message grows at once are seldom more.
const MOST_STEP: u64 = 16;

/// Whether a value is a sequence of fields as serialisers of Protocol Buffers write them: in the order of their numbers, each number of no more
/// bytes than it needs, no groups. Two fields at least, or one of bytes.
pub fn is_protobuf_like(bytes: &[u8]) -> bool {
    fields(bytes).is_some_and(|(fields, has_bytes)| fields > 1 || has_bytes)
}

/// How many fields there are, and whether any is of bytes that are not empty; `None` where something else is there.
fn fields(bytes: &[u8]) -> Option<(u64, bool)> {
    let mut rest = bytes;
    let (mut count, mut has_bytes, mut last) = (0, false, 0);
    while !rest.is_empty() {
        let (key, behind) = varint(rest)?;
        let number = key >> 3;
        let most = if count == 0 { MOST_FIRST_FIELD } else { last + MOST_STEP };
        if number == 0 || number < last || number > most {
            return None;
        }
        rest = match key & 7 {
            0 => varint(behind)?.1,
            1 => behind.get(8..)?,
            2 => {
                let (len, behind) = varint(behind)?;
                has_bytes |= len > 0;
                behind.get(usize::try_from(len).ok()?..)?
            }
            5 => behind.get(4..)?,
            _ => return None,
        };
        (count, last) = (count + 1, number);
    }
    Some((count, has_bytes))
}

/// Seven bits a byte, the lowest first; `None` where it is longer than it need be.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (digits, rest) = bytes.split_at(len);
    if len > 1 && digits.last() == Some(&0) {
        return None;
    }
    Some((digits.iter().rev().fold(0, |n, byte| n << 7 | u64::from(byte & 0x7f)), rest))
}

#[cfg(test)]
mod tests {
    use super::super::{Format, format};

    #[test]
    fn message_pack() {
        // {"compact": true, "schema": 0}, as its site shows it; [1, -1, 1.5, nil, "é", bin, ext, [{}]].
        let map = b"\x82\xa7compact\xc3\xa6schema\x00";
        let array = b"\x98\x01\xff\xcb\x3f\xf8\0\0\0\0\0\0\xc0\xa2\xc3\xa9\xc4\x01\xff\xd4\x05x\x91\x80";
        for whole in [&map[..], array] {
            assert_eq!(format(whole), (Format::MessagePack, true));
            assert_ne!(format(&whole[..whole.len() - 1]).0, Format::MessagePack);
            assert_ne!(format(&[whole, b"\0"].concat()).0, Format::MessagePack);
        }
        // A map of 16 bits, an array of 32; a timestamp as extension; a key that is an array, a string that is no text.
        assert_eq!(format(b"\xde\x00\x01\xcd\x01\x00\xdd\x00\x00\x00\x01\xd6\xff\x00\x00\x00\x00").0, Format::MessagePack);
        assert_eq!(format(b"\x81\x91\x01\x02").0, Format::Binary);
        assert_eq!(format(b"\x91\xa2\xff\xfe").0, Format::Binary);
        assert_eq!(format(b"\xdd\xff\xff\xff\xff\x01").0, Format::Binary);
        assert_eq!(format(&[vec![0x91; 1000], vec![0xc0]].concat()).0, Format::MessagePack);
        assert_eq!(format(&[vec![0x91; 1_000_000], vec![0xc0]].concat()).0, Format::Binary);
    }

    #[test]
    fn protocol_buffers() {
        // The examples of the encoding guide: field 1 = 150 stands alone, which proves too little; field 2 = "testing"; a message in field 3.
        assert_eq!(format(b"\x08\x96\x01").0, Format::Binary);
        assert_eq!(format(b"\x12\x07testing"), (Format::Protobuf, true));
        assert_eq!(format(b"\x1a\x03\x08\x96\x01"), (Format::Protobuf, true));
        // Fields 1 and 2 as numbers, 3 as double, 4 repeated, 5 as float.
        let all = b"\x08\x05\x10\x07\x19\0\0\0\0\0\0\xf8\x3f\x22\x01a\x22\x01b\x2d\0\0\xc0\x3f";
        assert_eq!(format(all), (Format::Protobuf, true));
        assert_eq!(format(&all[..all.len() - 1]).0, Format::Binary);
        // Out of order, a group, field 0, a number that is too long, one that does not end.
        for other in
            [&b"\x10\x07\x08\x05"[..], b"\x0b\x0c\x08\x05", b"\x00\x01\x08\x05", b"\x08\x85\x00\x10\x07", b"\x08\x05\x10\x87"]
        {
            assert_eq!(format(other).0, Format::Binary, "{other:?}");
        }
    }
}
