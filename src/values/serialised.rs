//! Objects as Java, Python and PHP serialise them. Each says `None` for what does not begin so, else whether it is well-formed.

/// Python's pickle, protocols 2 to 5: opcodes with their arguments, the last of them STOP (`pickletools`). Two bytes prove little: a broken one
/// must go on with a frame, or with the opcode of an empty container, a mark, a global or a text.
pub fn pickle(bytes: &[u8]) -> Option<bool> {
    let announced = match bytes {
        [0x80, 2 | 3, next, ..] => b"}])(cX".contains(next),
        [0x80, 4 | 5, next, ..] => *next == 0x95,
        _ => false,
    };
    let whole = matches!(bytes, [0x80, 2..=5, ..]) && ends_with_stop(bytes) == Some(true);
    (announced || whole).then_some(whole)
}

/// Follows opcodes; `None` where one passes the end or is unknown.
fn ends_with_stop(bytes: &[u8]) -> Option<bool> {
    let mut rest = bytes;
    loop {
        let (&opcode, behind) = rest.split_first()?;
        let skip = |n: u64| behind.get(usize::try_from(n).ok()?..);
        let counted = |width: usize| {
            let len = behind.get(..width)?.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
            skip(len.checked_add(width as u64)?)
        };
        rest = match opcode {
            b'.' => return Some(behind.is_empty()),
            b'('
            | b'0'
            | b'1'
            | b'2'
            | b'N'
            | b'Q'
            | b'R'
            | b'a'
            | b'b'
            | b'd'
            | b'}'
            | b'e'
            | b'l'
            | b']'
            | b'o'
            | b's'
            | b't'
            | b')'
            | b'u'
            | 0x81
            | 0x85..=0x89
            | 0x8f..=0x94
            | 0x97
            | 0x98 => behind,
            b'K' | b'h' | b'q' | 0x80 | 0x82 => skip(1)?,
            b'M' | 0x83 => skip(2)?,
            b'J' | b'j' | b'r' | 0x84 => skip(4)?,
            b'G' | 0x95 => skip(8)?,
            b'U' | b'C' | 0x8a | 0x8c => counted(1)?,
            b'T' | b'B' | b'X' | 0x8b => counted(4)?,
            0x8d | 0x8e | 0x96 => counted(8)?,
            b'F' | b'I' | b'L' | b'P' | b'S' | b'V' | b'g' | b'p' => behind_line(behind)?,
            b'c' | b'i' => behind_line(behind_line(behind)?)?,
            _ => return None,
        };
    }
}

/// What follows the end of a line.
fn behind_line(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(memchr::memchr(b'\n', bytes)? + 1..)
}

/// Java's object serialisation: magic, version 5, then contents, of which the first tag alone is looked at.
pub fn java(bytes: &[u8]) -> Option<bool> {
    let contents = bytes.strip_prefix(b"\xac\xed\x00\x05")?;
    Some(contents.first().is_some_and(|tag| (0x70..=0x7e).contains(tag)))
}

/// Arrays within arrays that are followed.
const MOST_NESTED: usize = 1024;

/// What PHP's `serialize` writes. An array, object or string says so by its first bytes; of other values only a whole one does.
pub fn php(bytes: &[u8]) -> Option<bool> {
    let (kind, rest) = bytes.split_first()?;
    let (_, behind) = number(rest.strip_prefix(b":")?).filter(|_| b"aOsCE".contains(kind)).unzip();
    let announced = match (kind, behind) {
        (b'a', Some(behind)) => behind.starts_with(b":{"),
        (b'O' | b's' | b'C' | b'E', Some(behind)) => behind.starts_with(b":\""),
        _ => false,
    };
    let whole = is_php(bytes).unwrap_or(false);
    (announced || whole).then_some(whole)
}

/// Whether a value, and nothing else, stands there; `None` where it passes the end or is no value.
fn is_php(bytes: &[u8]) -> Option<bool> {
    let mut rest = bytes;
    // Keys and values still to come, of each array or object that is open; keys and values take turns.
    let mut open: Vec<u64> = Vec::new();
    loop {
        let is_key = open.last().is_some_and(|left| left % 2 == 0);
        let (&kind, behind) = rest.split_first()?;
        if is_key && !matches!(kind, b'i' | b's') {
            return None;
        }
        let argument = behind.strip_prefix(b":");
        let entries = match kind {
            b'N' => {
                rest = behind.strip_prefix(b";")?;
                None
            }
            b'i' | b'b' | b'd' | b'r' | b'R' => {
                let argument = argument?;
                let end = memchr::memchr(b';', argument)?;
                let text = std::str::from_utf8(&argument[..end]).ok()?;
                let is_fine = match kind {
                    b'b' => matches!(text, "0" | "1"),
                    b'd' => matches!(text, "INF" | "-INF" | "NAN") || text.parse::<f64>().is_ok(),
                    b'i' => text.parse::<i64>().is_ok(),
                    _ => text.parse::<u64>().is_ok(),
                };
                rest = argument.get(end + 1..).filter(|_| is_fine)?;
                None
            }
            b's' | b'E' => {
                rest = quoted(argument?)?.strip_prefix(b";")?;
                None
            }
            b'C' => {
                let (len, behind) = number(quoted(argument?)?.strip_prefix(b":")?)?;
                rest = behind.strip_prefix(b":{")?.get(usize::try_from(len).ok()?..)?.strip_prefix(b"}")?;
                None
            }
            b'a' | b'O' => {
                let count = if kind == b'O' { quoted(argument?)?.strip_prefix(b":")? } else { argument? };
                let (entries, behind) = number(count)?;
                rest = behind.strip_prefix(b":{")?;
                Some(entries)
            }
            _ => return None,
        };
        match entries {
            Some(entries) if open.len() < MOST_NESTED => open.push(entries.checked_mul(2)?),
            Some(_) => return None,
            None => take_one(&mut open),
        }
        while open.last() == Some(&0) {
            rest = rest.strip_prefix(b"}")?;
            open.pop();
            take_one(&mut open);
        }
        if open.is_empty() {
            return Some(rest.is_empty());
        }
    }
}

/// A key or value of the innermost array has passed.
fn take_one(open: &mut [u64]) {
    if let Some(left) = open.last_mut() {
        *left = left.saturating_sub(1);
    }
}

/// What follows `5:"hello"`.
fn quoted(bytes: &[u8]) -> Option<&[u8]> {
    let (len, behind) = number(bytes)?;
    behind.strip_prefix(b":\"")?.get(usize::try_from(len).ok()?..)?.strip_prefix(b"\"")
}

/// A decimal number and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((number, &bytes[digits..]))
}

#[cfg(test)]
mod tests {
    use super::super::{Format, format};

    #[test]
    fn pickles() {
        // pickle.dumps({"a": 1}) under protocols 2 and 4.
        let two = b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.";
        let four = b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.";
        for whole in [&two[..], four] {
            assert_eq!(format(whole), (Format::Pickle, true));
            assert_eq!(format(&whole[..whole.len() - 1]), (Format::Pickle, false));
            assert_eq!(format(&[whole, b"."].concat()), (Format::Pickle, false));
        }
        // A global, by two lines: pickle.dumps(len, 2).
        assert_eq!(format(b"\x80\x02c__builtin__\nlen\nq\x00."), (Format::Pickle, true));
        assert_eq!(format(b"\x80\x02]\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."), (Format::Pickle, false));
        assert_eq!(format(b"\x80\x04K\x01."), (Format::Pickle, true));
        assert_eq!(format(b"\x80\x04K\x01").0, Format::Binary);
        assert_eq!(format(b"\x80\x01x.").0, Format::Binary);
    }

    #[test]
    fn java_objects() {
        // new ObjectOutputStream(..).writeObject("hi"): TC_STRING, two bytes.
        assert_eq!(format(b"\xac\xed\x00\x05t\x00\x02hi"), (Format::Java, true));
        assert_eq!(format(b"\xac\xed\x00\x05"), (Format::Java, false));
        assert_eq!(format(b"\xac\xed\x00\x05\x01"), (Format::Java, false));
        assert_eq!(format(b"\xac\xed\x00\x04t\x00\x02hi").0, Format::Binary);
    }

    #[test]
    fn php_values() {
        for whole in [
            "a:0:{}",
            "a:2:{i:0;s:1:\"x\";s:1:\"k\";a:1:{i:-7;N;}}",
            "O:8:\"stdClass\":1:{s:1:\"a\";d:0.5;}",
            "O:1:\"A\":1:{s:4:\"\0A\0p\";b:1;}",
            "C:11:\"ArrayObject\":3:{x:i}",
            "E:11:\"Suit:Hearts\";",
            "s:4:\"a\";b\";",
            "i:5;",
            "b:0;",
            "d:-INF;",
            "d:1.0E+25;",
            "a:1:{i:0;R:1;}",
        ] {
            assert_eq!(format(whole.as_bytes()), (Format::Php, true), "{whole}");
        }
        for broken in [
            "a:1:{}",
            "a:1:{N;N;}",
            "a:1:{i:0;i:1;",
            "a:99999999999999999999:{",
            "a:9223372036854775808:{i:0;",
            "O:8:\"stdClass\":1:{}",
            "s:9:\"short\";",
            "s:5:\"hello\";x",
        ] {
            let announced = broken != "a:99999999999999999999:{";
            let expected = if announced { (Format::Php, false) } else { (Format::Text, true) };
            assert_eq!(format(broken.as_bytes()), expected, "{broken}");
        }
        for text in ["N", "i:x;", "b:2;", "a: a word", "s:x", "d:;", "user:7"] {
            assert_eq!(format(text.as_bytes()), (Format::Text, true), "{text}");
        }
        let deep = |n: usize| [b"a:1:{i:0;".repeat(n), b"N;".to_vec(), b"}".repeat(n)].concat();
        assert_eq!((format(&deep(1000)), format(&deep(100_000))), ((Format::Php, true), (Format::Php, false)));
    }
}
