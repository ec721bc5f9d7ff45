//! The type of one segment of a key: literal words stay, what looks like an identifier becomes a typed placeholder.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::key_text;

/// Longest word that stays literal, in bytes; longer runs of letters are tokens.
const LONGEST_WORD: usize = 64;

/// Most joined parts of a segment that are typed one by one; a segment of more is a slug.
const MOST_PARTS: usize = 8;

/// Fewest characters of a run of hexadecimal digits that is taken for a token.
pub const SHORTEST_HEX: usize = 8;

/// Fewest characters of a mix of lower case, upper case and digits that is taken for a random token.
const SHORTEST_TOKEN: usize = 16;

/// Shape of a segment that is no text.
pub const BINARY: &[u8] = b"<*>";

/// Kinds of bytes; which of them a segment holds decides what it can be.
pub mod kind {
    /// `0` to `9`.
    pub const DIGIT: u8 = 1;
    /// `a` to `f`.
    pub const LOWER_HEX: u8 = 2;
    /// `g` to `z`.
    pub const LOWER: u8 = 4;
    /// `A` to `F`.
    pub const UPPER_HEX: u8 = 8;
    /// `G` to `Z`.
    pub const UPPER: u8 = 16;
    /// Printable ASCII that is neither letter nor digit: it joins.
    pub const JOINER: u8 = 32;
    /// Control bytes, and all above ASCII.
    pub const OTHER: u8 = 64;
    /// What a separator is besides; set in tables of whoever has separators.
    pub const SEPARATOR: u8 = 128;

    /// Any letter.
    pub const LETTERS: u8 = LOWER_HEX | LOWER | UPPER_HEX | UPPER;

    /// The kind of each byte.
    pub static OF: [u8; 256] = table();

    const fn table() -> [u8; 256] {
        let mut table = [OTHER; 256];
        let mut byte = 0x20;
        while byte < 0x7f {
            table[byte] = match byte as u8 {
                b'0'..=b'9' => DIGIT,
                b'a'..=b'f' => LOWER_HEX,
                b'g'..=b'z' => LOWER,
                b'A'..=b'F' => UPPER_HEX,
                b'G'..=b'Z' => UPPER,
                _ => JOINER,
            };
            byte += 1;
        }
        table
    }

    /// The kinds of bytes that `text` holds.
    #[inline]
    pub fn all(text: &[u8]) -> u8 {
        text.iter().fold(0, |kinds, &byte| kinds | OF[byte as usize])
    }
}

/// Appends the shape of `segment`, which holds `kinds` of bytes, to `out`; true where it holds literal letters, which makes it one of the values
/// that are counted.
#[inline]
pub fn shape(segment: &[u8], kinds: u8, out: &mut Vec<u8>) -> bool {
    if segment.is_empty() {
        return true;
    }
    // Most tokens: nothing else is made of these alone.
    if kinds == kind::DIGIT | kind::LOWER_HEX && segment.len() >= SHORTEST_HEX {
        placeholder("hex", out);
        return false;
    }
    // Letters and digits alone are one run; only long ones can be anything that a part of a segment cannot.
    if kinds & !(kind::LETTERS | kind::DIGIT) != 0 || (segment.len() >= SHORTEST_TOKEN && kinds != kind::DIGIT) {
        return mixed(segment, kinds, out);
    }
    let typed = run(segment, kinds);
    match typed {
        Some(name) => placeholder(name, out),
        None => out.extend_from_slice(segment),
    }
    typed.is_none()
}

#[inline(never)]
fn mixed(segment: &[u8], kinds: u8, out: &mut Vec<u8>) -> bool {
    if kinds & kind::OTHER != 0 && !std::str::from_utf8(segment).is_ok_and(|text| !text.chars().any(char::is_control)) {
        out.extend_from_slice(BINARY);
        return false;
    }
    // The braces of a hash tag stay; separators inside it have split it already.
    let inner = segment.strip_prefix(b"{").unwrap_or(segment);
    let core = inner.strip_suffix(b"}").unwrap_or(inner);
    if let Some(name) = whole(core, kinds) {
        out.extend_from_slice(&segment[..segment.len() - inner.len()]);
        placeholder(name, out);
        out.extend_from_slice(&inner[core.len()..]);
        return false;
    }
    let start = out.len();
    match joined(segment, out) {
        Some(literal) => literal,
        None => {
            out.truncate(start);
            placeholder("slug", out);
            false
        }
    }
}

fn placeholder(name: &str, out: &mut Vec<u8>) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// Types that a run of digits can have: those whose text is a date by the calendar, a Chinese mobile number, or any number.
fn digits(run: &[u8]) -> &'static str {
    match run.len() {
        8 if is_compact_date(run) => "date",
        10 if is_compact_date(&run[..8]) && number(&run[8..]) < 24 => "hour",
        11 if run[0] == b'1' && run[1] >= b'3' => "phone",
        _ => "digits",
    }
}

/// Types that only a whole segment can have.
fn whole(core: &[u8], kinds: u8) -> Option<&'static str> {
    let (&first, rest) = core.split_first()?;
    let has = |byte| core.contains(&byte);
    if kinds & (kind::LETTERS | kind::OTHER) == 0 && rest.iter().all(u8::is_ascii_digit) {
        match first {
            b'+' if (8..=15).contains(&rest.len()) => return Some("phone"),
            b'-' if !rest.is_empty() => return Some("int"),
            _ => {}
        }
    }
    if kinds & kind::JOINER != 0 {
        if has(b'@') && is_email(core) {
            return Some("email");
        }
        if kinds & (kind::LOWER | kind::UPPER | kind::OTHER) == 0 && (has(b'.') || has(b':')) && is_ip(core) {
            return Some("ip");
        }
        if kinds & (kind::LETTERS | kind::OTHER) == 0 && is_version(core) {
            return Some("version");
        }
    }
    if is_ulid(core) {
        return Some("ulid");
    }
    is_random_token_of(core, kinds).then_some("base64url")
}

fn is_ip(text: &[u8]) -> bool {
    let parsed = std::str::from_utf8(text).ok();
    parsed.is_some_and(|text| text.parse::<Ipv4Addr>().is_ok() || (text.len() > 4 && text.parse::<Ipv6Addr>().is_ok()))
}

/// Three short numbers, such as 1.22.3.
fn is_version(text: &[u8]) -> bool {
    let mut parts = text.split(|&b| b == b'.');
    parts.by_ref().take(3).filter(|part| is_short_number(part)).count() == 3 && parts.next().is_none()
}

/// 26 characters of Crockford's base 32, upper case, the first at most 7 so that it fits 128 bits.
fn is_ulid(text: &[u8]) -> bool {
    text.len() == 26 && text[0] <= b'7' && text.iter().all(|&b| is_crockford(b))
}

/// Types the parts between joining characters and keeps those characters; `None` where there are too many parts.
fn joined(segment: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let mut literal = false;
    let mut parts = 0;
    let mut rest = segment;
    while let Some(&first) = rest.first() {
        if !is_alphanumeric(first) {
            joiner(first, out);
            rest = &rest[1..];
            continue;
        }
        parts += 1;
        if parts > MOST_PARTS {
            return None;
        }
        if let Some((name, len)) = structured(rest) {
            placeholder(name, out);
            rest = &rest[len..];
            continue;
        }
        let (len, kinds) = alphanumeric_run(rest);
        let (part, after) = rest.split_at(len);
        match run(part, kinds) {
            Some(name) => placeholder(name, out),
            None => {
                literal = true;
                out.extend_from_slice(part);
            }
        }
        rest = after;
    }
    Some(literal)
}

/// A joining character as key text; the brackets of placeholders are escaped so that a shape reads back as one thing only.
fn joiner(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'<' => out.extend_from_slice(b"\\x3c"),
        b'>' => out.extend_from_slice(b"\\x3e"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x20..0x7f => out.push(byte),
        _ => out.extend_from_slice(key_text::escape(&[byte]).as_bytes()),
    }
}

/// The type of a run of letters and digits; `None` where it is a word.
#[inline]
fn run(part: &[u8], kinds: u8) -> Option<&'static str> {
    if kinds == kind::DIGIT {
        return Some(digits(part));
    }
    if is_hex(part, kinds) {
        return Some("hex");
    }
    (!is_word_of(part, kinds)).then_some("slug")
}

/// Types whose text holds joining characters, at the start of `text` and up to the end of a part.
fn structured(text: &[u8]) -> Option<(&'static str, usize)> {
    type Form = (&'static str, usize, fn(&[u8]) -> bool);
    const FORMS: [Form; 5] =
        [("uuid", 36, is_uuid), ("hour", 13, is_hour), ("date", 10, is_date), ("week", 8, is_week), ("month", 7, is_month)];
    const SHORTEST: usize = 7;
    if text.len() < SHORTEST || !text[0].is_ascii_hexdigit() {
        return None;
    }
    FORMS.into_iter().find_map(|(name, len, is)| {
        let ends = text.get(len).is_none_or(|&next| !is_alphanumeric(next));
        (ends && text.get(..len).is_some_and(is)).then_some((name, len))
    })
}

/// A word: see [`is_word_of`].
pub fn is_word(part: &[u8]) -> bool {
    let kinds = kind::all(part);
    is_word_of(part, kinds) && !is_hex(part, kinds)
}

/// A token of mixed case and digits: see [`is_random_token_of`].
pub fn is_random_token(text: &[u8]) -> bool {
    is_random_token_of(text, kind::all(text))
}

/// Letters, also of other alphabets, alone or directly followed by one or two digits.
#[inline]
fn is_word_of(part: &[u8], kinds: u8) -> bool {
    let digits = if kinds & kind::DIGIT == 0 { 0 } else { part.iter().rev().take_while(|b| b.is_ascii_digit()).count() };
    let letters = part.len() - digits;
    (1..=LONGEST_WORD).contains(&letters)
        && digits <= 2
        && (kinds & kind::DIGIT == 0 || !part[..letters].iter().any(u8::is_ascii_digit))
        && (kinds & kind::OTHER == 0 || is_plain_text(part))
}

fn is_plain_text(part: &[u8]) -> bool {
    matches!(key_text::escape(part), std::borrow::Cow::Owned(text) if text.as_bytes() == part)
}

/// Length of the run of letters and digits that `text` begins with, and the kinds of its bytes.
#[inline]
fn alphanumeric_run(text: &[u8]) -> (usize, u8) {
    let mut kinds = 0;
    for (at, &byte) in text.iter().enumerate() {
        if !is_alphanumeric(byte) {
            return (at, kinds);
        }
        kinds |= kind::OF[usize::from(byte)];
    }
    (text.len(), kinds)
}

#[inline]
fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Hexadecimal digits of one case, long enough for a token. No word of that length has only the letters a to f.
#[inline]
fn is_hex(part: &[u8], kinds: u8) -> bool {
    part.len() >= SHORTEST_HEX && (kinds & !(kind::DIGIT | kind::LOWER_HEX) == 0 || kinds & !(kind::DIGIT | kind::UPPER_HEX) == 0)
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, b)| if matches!(at, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

/// `2026-08-19`, or with other joining characters in both places.
fn is_date(text: &[u8]) -> bool {
    let [y0, y1, y2, y3, a, m0, m1, b, d0, d1] = *text else { return false };
    a == b && matches!(a, b'-' | b'_' | b'.') && is_compact_date(&[y0, y1, y2, y3, m0, m1, d0, d1])
}

fn is_hour(text: &[u8]) -> bool {
    is_date(&text[..10]) && matches!(text[10], b'T' | b't' | b'-' | b'_') && is_number_below(&text[11..], 24)
}

fn is_week(text: &[u8]) -> bool {
    is_year(&text[..4]) && text[4] == b'-' && matches!(text[5], b'W' | b'w') && is_number_below(&text[6..], 54)
}

fn is_month(text: &[u8]) -> bool {
    is_year(&text[..4]) && text[4] == b'-' && is_number_below(&text[5..], 13) && number(&text[5..]) > 0
}

fn is_compact_date(text: &[u8]) -> bool {
    is_year(&text[..4])
        && is_number_below(&text[4..6], 13)
        && is_number_below(&text[6..8], 32)
        && number(&text[4..6]) > 0
        && number(&text[6..8]) > 0
}

fn is_year(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit) && (1970..2100).contains(&number(text))
}

fn is_number_below(text: &[u8], limit: u32) -> bool {
    text.iter().all(u8::is_ascii_digit) && number(text) < limit
}

/// Value of at most nine digits.
fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n, d| n * 10 + u32::from(d.wrapping_sub(b'0')))
}

fn is_short_number(text: &[u8]) -> bool {
    (1..=3).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// Crockford's base 32, upper case.
fn is_crockford(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'H' | b'J' | b'K' | b'M' | b'N' | b'P'..=b'T' | b'V'..=b'Z')
}

fn is_email(text: &[u8]) -> bool {
    let Some(at) = text.iter().position(|&b| b == b'@') else { return false };
    let (local, domain) = (&text[..at], &text[at + 1..]);
    let local_ok = !local.is_empty() && local.iter().all(|b| is_alphanumeric(*b) || b".-_+%".contains(b));
    let labels =
        domain.split(|&b| b == b'.').filter(|label| !label.is_empty() && label.iter().all(|b| is_alphanumeric(*b) || *b == b'-'));
    local_ok && domain.iter().filter(|&&b| b == b'.').count() + 1 == labels.count() && domain.contains(&b'.')
}

/// Lower case, upper case and digits of base64url, changing often enough to be no name in camel case.
fn is_random_token_of(text: &[u8], kinds: u8) -> bool {
    const LOWER: u8 = kind::LOWER | kind::LOWER_HEX;
    const UPPER: u8 = kind::UPPER | kind::UPPER_HEX;
    if text.len() < SHORTEST_TOKEN || [LOWER, UPPER, kind::DIGIT].iter().any(|class| kinds & class == 0) {
        return false;
    }
    let class = |byte: u8| match kind::OF[usize::from(byte)] {
        kinds if kinds & LOWER != 0 => LOWER,
        kinds if kinds & UPPER != 0 => UPPER,
        kinds => kinds,
    };
    let in_alphabet = text.iter().all(|&b| class(b) & (kind::JOINER | kind::OTHER) == 0 || matches!(b, b'-' | b'_'));
    in_alphabet && text.windows(2).filter(|w| class(w[0]) != class(w[1])).count() * 3 > text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(segment: &str, expected: &str, literal: bool) {
        let mut out = Vec::new();
        let is_literal = shape(segment.as_bytes(), kind::all(segment.as_bytes()), &mut out);
        assert_eq!((std::str::from_utf8(&out), is_literal), (Ok(expected), literal), "{segment}");
    }

    #[test]
    fn words_stay() {
        for word in
            ["user", "oauth2", "s3", "v2", "v01", "not-a-phone", "User_Profile", "商店", "{cart}", "a.b.c", "User Profile"]
        {
            check(word, word, true);
        }
    }

    #[test]
    fn letters_joined_to_identifiers_keep_the_letters() {
        check("shop-7", "shop-<digits>", true);
        check("{shop-7", "{shop-<digits>", true);
        check("1001}", "<digits>}", false);
        check("sess_003d999cd33a", "sess_<hex>", true);
        check("TMP_00578fa3", "TMP_<hex>", true);
        check("log.2026-08-19", "log.<date>", true);
        check("prod-shop-7-user-profile-1011", "prod-shop-<digits>-user-profile-<digits>", true);
        check("shop 7", "shop <digits>", true);
    }

    #[test]
    fn identifiers_become_placeholders() {
        for (segment, expected) in [
            ("12345", "<digits>"),
            ("-5", "<int>"),
            ("2026-08-19", "<date>"),
            ("20260819", "<date>"),
            ("2026-08-19T17", "<hour>"),
            ("2026-W34", "<week>"),
            ("2026-08", "<month>"),
            ("13800000002", "<phone>"),
            ("+8613800000001", "<phone>"),
            ("550e8400-e29b-41d4-a716-446655440000", "<uuid>"),
            ("{550e8400-e29b-41d4-a716-446655440000}", "{<uuid>}"),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "<ulid>"),
            ("deadbeef", "<hex>"),
            ("a100", "<slug>"),
            ("10.0.0.1", "<ip>"),
            ("fe80::1", "<ip>"),
            ("1.22.3", "<version>"),
            ("bob.smith@example.com", "<email>"),
            ("aB3dE6gH9jK2mN5pQ8", "<base64url>"),
            ("12-34", "<digits>-<digits>"),
            ("1-2-3-4-5-6-7-8-9", "<slug>"),
            ("a\u{1}b", "<*>"),
        ] {
            check(segment, expected, false);
        }
    }

    #[test]
    fn brackets_in_a_key_are_no_placeholder() {
        check("<digits>", "\\x3cdigits\\x3e", true);
        check("a\\b", "a\\\\b", true);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_a_shape(segment: Vec<u8>) {
            let mut out = Vec::new();
            shape(&segment, kind::all(&segment), &mut out);
            proptest::prop_assert!(std::str::from_utf8(&out).is_ok());
        }
    }
}
