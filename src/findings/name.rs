//! Rules of names: one look at the bytes of a key decides which of them need a second.

use crate::classify::{Marks, Separators, Shape};
use crate::privacy::{self, Sensitive};

const SPACE: u8 = 1;
const CONTROL: u8 = 2;
const QUOTE: u8 = 4;
const UPPER: u8 = 8;
const HIGH: u8 = 16;
const BRACE: u8 = 32;
const SIGN: u8 = 64;
const SEPARATOR: u8 = 128;

/// Digits that the shortest personal number has which no sign begins.
const FEWEST_DIGITS: u32 = 11;

/// Letters of the longest abbreviation.
const ABBREVIATION: usize = 2;

/// What bytes are, by the separators in force.
#[derive(Debug, Clone)]
pub struct Bytes([u8; 256]);

impl Bytes {
    /// With these bytes separating segments.
    pub fn new(separators: &Separators) -> Self {
        let mut kinds = [0; 256];
        for (byte, kind) in (0..=255u8).zip(&mut kinds) {
            *kind = match byte {
                b' ' => SPACE,
                0..0x20 | 0x7f => CONTROL,
                b'"' | b'\'' => QUOTE,
                b'A'..=b'Z' => UPPER,
                0x80.. => HIGH,
                b'{' | b'}' => BRACE,
                b'@' | b'%' | b'+' => SIGN,
                _ => 0,
            };
            if separators.has(byte) {
                *kind |= SEPARATOR;
            }
        }
        Self(kinds)
    }
}

/// True for most names: short ones of words, numbers and separators that break no rule but perhaps that of their length.
#[inline]
pub fn is_plain(key: &[u8], separators: &Separators) -> bool {
    // Not moved: its parts were just written one by one.
    let marks = Marks::of(key, separators);
    marks.as_ref().is_some_and(|marks| marks.is_plain(FEWEST_DIGITS))
}

/// A name of a key that was looked at.
#[derive(Debug, Clone, Copy)]
pub struct Name<'k> {
    /// Its bytes.
    pub key: &'k [u8],
    kinds: u8,
    digits: u32,
    empty_segment: bool,
}

impl<'k> Name<'k> {
    /// Looks at every byte.
    #[inline]
    pub fn new(key: &'k [u8], bytes: &Bytes) -> Self {
        let (mut kinds, mut digits, mut empty_segment) = (0, 0u32, false);
        // In front of the first segment is what ends a segment.
        let mut before = SEPARATOR;
        for &byte in key {
            let kind = bytes.0[usize::from(byte)];
            kinds |= kind;
            digits += u32::from(byte.is_ascii_digit());
            empty_segment |= kind & before & SEPARATOR != 0;
            before = kind;
        }
        Self { key, kinds, digits, empty_segment: empty_segment || before & SEPARATOR != 0 }
    }

    fn has(&self, kind: u8) -> bool {
        self.kinds & kind != 0
    }
}

/// `name-space`.
pub fn space(name: &Name<'_>) -> bool {
    name.has(SPACE)
}

/// `name-control`.
pub fn control(name: &Name<'_>) -> bool {
    name.has(CONTROL)
}

/// `name-quote`.
pub fn quote(name: &Name<'_>) -> bool {
    name.has(QUOTE)
}

/// `name-uppercase`: in a word, not in an identifier, which shapes leave out.
pub fn uppercase(name: &Name<'_>, separators: &Separators, shape: &mut Shape) -> bool {
    if !name.has(UPPER) {
        return false;
    }
    shape.take(name.key, separators);
    let mut inside = false;
    shape.text().iter().any(|&byte| {
        inside = (inside || byte == b'<') && byte != b'>';
        !inside && byte.is_ascii_uppercase()
    })
}

/// `name-non-ascii`.
pub fn non_ascii(name: &Name<'_>) -> bool {
    name.has(HIGH)
}

/// `name-too-long`.
pub fn too_long(key: &[u8], limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| key.len() as u64 > limit)
}

/// `segment-empty`: two separators in a row, or one at an end.
pub fn empty_segment(name: &Name<'_>) -> bool {
    name.empty_segment
}

/// `name-no-namespace`.
pub fn no_namespace(name: &Name<'_>) -> bool {
    !name.has(SEPARATOR)
}

/// `personal-data`: the first kind in the name. A token is no data of a person.
pub fn personal_data(name: &Name<'_>) -> Option<Sensitive> {
    let may_be =
        name.has(SIGN) || name.digits >= FEWEST_DIGITS && privacy::longest_run_of_digits(name.key) >= FEWEST_DIGITS as usize;
    if !may_be {
        return None;
    }
    privacy::find(name.key).into_iter().map(|(_, kind)| kind).find(|kind| *kind != Sensitive::Token)
}

/// `braces-unbalanced`.
pub fn unbalanced_braces(name: &Name<'_>) -> bool {
    if !name.has(BRACE) {
        return false;
    }
    let mut open = 0usize;
    let closed = name.key.iter().all(|byte| match byte {
        b'{' => {
            open += 1;
            true
        }
        b'}' => {
            let opened = open > 0;
            open = open.saturating_sub(1);
            opened
        }
        _ => true,
    });
    !closed || open > 0
}

/// True where the name may have a hash tag.
pub fn may_be_tagged(name: &Name<'_>) -> bool {
    name.has(BRACE)
}

/// `name-abbreviated`: a shape of several segments with words in them, none of which is longer than two letters.
pub fn abbreviated(shape: &str, separators: &Separators) -> bool {
    let mut outside = String::new();
    let mut inside = false;
    for c in shape.chars() {
        inside = (inside || c == '<') && c != '>';
        outside.push(if inside || c == '>' { ' ' } else { c });
    }
    let mut words = outside.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().any(char::is_alphabetic)).peekable();
    let several = shape.bytes().any(|byte| separators.has(byte));
    several && words.peek().is_some() && words.all(|word| word.chars().count() <= ABBREVIATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_rule_takes() {
        let separators = Separators::default();
        let bytes = Bytes::new(&separators);
        let mut shape = Shape::default();
        let mut of = |key: &str| {
            let name = Name::new(key.as_bytes(), &bytes);
            let found = [
                (space(&name), "space"),
                (control(&name), "control"),
                (quote(&name), "quote"),
                (uppercase(&name, &separators, &mut shape), "uppercase"),
                (non_ascii(&name), "non-ascii"),
                (empty_segment(&name), "empty"),
                (no_namespace(&name), "no-namespace"),
                (personal_data(&name).is_some(), "personal"),
                (unbalanced_braces(&name), "braces"),
                (too_long(key.as_bytes(), Some(30)), "long"),
            ];
            let broken = found.into_iter().filter_map(|(broken, rule)| broken.then_some(rule)).collect::<Vec<_>>().join(" ");
            let plain = is_plain(key.as_bytes(), &separators);
            assert!(!plain || broken.is_empty() || broken == "long", "{key} is not plain: {broken}");
            broken
        };
        assert_eq!(of("prod:shop-7:user:profile:1001"), "");
        assert_eq!(of("prod:shop 7:user:3"), "space");
        assert_eq!(of("a:b\n"), "control");
        assert_eq!(of("a:'b'"), "quote");
        assert_eq!(of("a:\"b\""), "quote");
        assert_eq!(of("Cart:{shop-7:1001}:items"), "uppercase");
        assert_eq!(of("s:userProfile:1"), "uppercase");
        // Identifiers have their own case: an hour, a week, a ULID, a UUID.
        assert_eq!(of("r:2026-08-19T17"), "");
        assert_eq!(of("r:2026-W34"), "");
        assert_eq!(of("o:01ARZ3NDEKTSV4RRFFQ69G5FAV"), "");
        assert_eq!(of("o:550E8400-E29B-41D4-A716-446655440000"), "long");
        assert_eq!(of("prod:商店-7:x"), "non-ascii");
        assert_eq!(of("a::b"), "empty");
        assert_eq!(of(":a:b"), "empty");
        assert_eq!(of("a:b:"), "empty");
        assert_eq!(of(""), "empty no-namespace");
        assert_eq!(of("foo"), "no-namespace");
        assert_eq!(of("v:13800000002"), "personal");
        assert_eq!(of("v:bob@example.com"), "personal");
        assert_eq!(of("v:+4479460958"), "personal");
        assert_eq!(of("v:12 34-567:+44 794 609-58"), "space personal");
        assert_eq!(of("v:138-0000-0002"), "personal");
        assert_eq!(of("v:11010519491231002X"), "personal");
        assert_eq!(of("v:12345678:90123456"), "");
        assert_eq!(of("t:aB3dE6gH9jK2mN5pQ8rS1tU4"), "");
        assert_eq!(of("order:{shop-7:78"), "braces");
        assert_eq!(of("order:}shop-7{:78"), "braces");
        assert_eq!(of("order:{{a}:1}"), "");
        assert_eq!(of("order:{a}"), "");
        assert_eq!(of(&format!("a:{}", "b".repeat(28))), "");
        assert_eq!(of(&format!("a:{}", "b".repeat(29))), "long");
    }

    proptest::proptest! {
        #[test]
        fn a_plain_name_breaks_no_rule(key in "[a-zA-C0-9:@%+{} _.'\u{e9}\\-]{0,4}([0-9-]{0,8}|[a-z:]{0,9}){0,5}[a-z0-9:-]{0,3}") {
            let separators = Separators::default();
            let name = Name::new(key.as_bytes(), &Bytes::new(&separators));
            let mut shape = Shape::default();
            let breaks = space(&name) || control(&name) || quote(&name) || uppercase(&name, &separators, &mut shape)
                || non_ascii(&name) || empty_segment(&name) || no_namespace(&name) || unbalanced_braces(&name)
                || may_be_tagged(&name) || personal_data(&name).is_some();
            proptest::prop_assert!(!(breaks && is_plain(key.as_bytes(), &separators)), "{}", key);
        }
    }

    #[test]
    fn plain_names() {
        let plain = |key: &str| is_plain(key.as_bytes(), &Separators::default());
        assert!(plain("prod:shop-7:user:profile:1234567") && plain("a:b_c.d:1234567890") && plain("a:b"));
        for key in ["a", "", ":a", "a:", "a::b", "A:b", "a:{b}", "a:12345678901", "a:123-456-7890", "a b:c", "a:b@c.de"] {
            assert!(!plain(key), "{key}");
        }
    }

    #[test]
    fn abbreviations() {
        let is = |shape: &str| abbreviated(shape, &Separators::default());
        assert!(is("u:p:<digits>") && is("u:<slug>") && is("c:{u<digits>}"));
        assert!(!is("user:p:<digits>") && !is("u") && !is("<digits>:<uuid>"));
    }
}
