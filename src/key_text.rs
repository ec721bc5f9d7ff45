//! Key text: how bytes of a dump appear in every report, reversibly.
//!
//! Printable UTF-8 stays as it is. A backslash is `\\`; newline, carriage return and tab are `\n`, `\r`, `\t`; every byte of
//! an invalid sequence, of a control, format, private-use, unassigned, line- or paragraph-separator character, and of a
//! leading or trailing space is `\xhh` in lower case.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The text of `bytes`.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && is_plain(bytes)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    escape_into(bytes, &mut out);
    Cow::Owned(out)
}

/// Appends the text of `bytes` to `out`.
pub fn escape_into(bytes: &[u8], out: &mut String) {
    let spaced = |at: usize| at == 0 || at + 1 == bytes.len();
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                ' ' if spaced(at) => out.push_str("\\x20"),
                c if is_printable(c) => out.push(c),
                c => hex(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
            }
            at += c.len_utf8();
        }
        hex(chunk.invalid(), out);
        at += chunk.invalid().len();
    }
}

/// The bytes whose text is `text`, or the byte position in `text` that no escaping produces.
pub fn unescape(text: &str) -> Result<Vec<u8>, usize> {
    let raw = text.as_bytes();
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let (value, width) = match raw.get(at + 1) {
            Some(b'\\') => (b'\\', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(b'x') => {
                let digits = raw.get(at + 2..at + 4).ok_or(at)?;
                let digit = |d: u8| match d {
                    b'0'..=b'9' => Some(d - b'0'),
                    b'a'..=b'f' => Some(d - b'a' + 10),
                    _ => None,
                };
                let [high, low] = [digits[0], digits[1]].map(digit);
                (high.ok_or(at)? << 4 | low.ok_or(at)?, 4)
            }
            _ => return Err(at),
        };
        out.push(value);
        at += width;
    }
    // Only what escaping writes is accepted, apart from the CSV rule for a leading formula character.
    let again = escape(&out);
    let canonical = again == text || csv_guarded(&again).is_some_and(|guarded| guarded == text);
    if canonical { Ok(out) } else { Err(0) }
}

/// `text` with its first character escaped where a spreadsheet would take the cell for a formula; `None` where it would not.
pub fn csv_guarded(text: &str) -> Option<String> {
    let first = *text.as_bytes().first()?;
    matches!(first, b'=' | b'+' | b'-' | b'@').then(|| format!("\\x{first:02x}{}", &text[1..]))
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// Plain ASCII that needs no escape: the common case, decided without decoding.
fn is_plain(bytes: &[u8]) -> bool {
    let edge = |byte: Option<&u8>| byte != Some(&b' ');
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'\\')
}

/// Neither control, format, surrogate, private-use, unassigned, nor a line or paragraph separator (Unicode general category).
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    !matches!(c.general_category(), GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator)
        && c.general_category_group() != GeneralCategoryGroup::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(bytes: &[u8], text: &str) {
        assert_eq!(escape(bytes), text);
        assert_eq!(unescape(text).as_deref(), Ok(bytes));
        if let Some(guarded) = csv_guarded(text) {
            assert_eq!(unescape(&guarded).as_deref(), Ok(bytes));
        }
    }

    #[test]
    fn every_single_byte_comes_back() {
        for byte in 0..=255u8 {
            let text = escape(&[byte]).into_owned();
            round_trip(&[byte], &text);
        }
    }

    #[test]
    fn the_design_s_examples() {
        round_trip(b"", "");
        round_trip(b"\\", "\\\\");
        round_trip(b"-1", "-1");
        round_trip(b"=1+1", "=1+1");
        round_trip(" \u{202e}a ".as_bytes(), "\\x20\\xe2\\x80\\xaea\\x20");
        round_trip("\u{feff}".as_bytes(), "\\xef\\xbb\\xbf");
        round_trip("a\u{2028}b".as_bytes(), "a\\xe2\\x80\\xa8b");
        round_trip("商店:1".as_bytes(), "商店:1");
        round_trip(b"a\xffb\x00", "a\\xffb\\x00");
        round_trip(b"a b\tc\r\n", "a b\\tc\\r\\n");
        assert_eq!(csv_guarded("=1+1").as_deref(), Some("\\x3d1+1"));
    }

    #[test]
    fn what_no_escaping_writes_is_refused() {
        for text in ["\\", "\\q", "\\x4", "\\x41", "\\xFF", "\u{202e}", " a", "\\x0a"] {
            assert!(unescape(text).is_err(), "{text:?} was accepted");
        }
    }
}
