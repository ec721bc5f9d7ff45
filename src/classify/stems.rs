//! What tells the class of most keys in few instructions: a short key is looked at sixteen bytes at a time, and each segment becomes a number.

use hashbrown::HashMap;
use wide::u8x16;

use super::segment::SHORTEST_HEX;
use super::shape::{MOST_SEGMENTS, Separators};

/// Longest key that is looked at, in bytes: one bit for each, and one for its end.
const MOST_BYTES: usize = 63;

/// Most bytes of text in a stem, so that separator and code fit beside them; longer segments may also be tokens.
const MOST_TEXT: usize = 14;

/// Bytes at once.
const LANES: usize = 16;

/// A short word, a short name in front of a number, or a kind of identifier, each with the separator in front. Segments of one stem have the same
/// part in a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stem {
    head: u64,
    tail: u64,
}

/// Codes of stems without text, and the bit that a name has which a number follows; otherwise the code is the length of the text.
const NUMBER: u8 = 0x40;
const HEX: u8 = 0x41;
const NUMBER_FOLLOWS: u8 = 0x80;

/// Set where the brace of a hash tag closes behind it.
const CLOSES: u8 = 0x20;

/// What texts have the same stem as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like<'t> {
    /// No other.
    Itself,
    /// Decimal digits between the same bytes.
    Digits {
        /// In front of the digits.
        before: &'t [u8],
        /// Behind them.
        behind: &'t [u8],
    },
    /// At least [`SHORTEST_HEX`] hexadecimal digits, their letters small, with a letter and a decimal digit among them, in front of the same
    /// bytes.
    Hex {
        /// Behind the digits.
        behind: &'t [u8],
    },
}

impl Stem {
    /// What texts have this stem, which is that of `text`.
    pub fn like<'t>(self, text: &'t [u8]) -> Like<'t> {
        let code = (self.tail >> 56) as u8;
        let name = if code & NUMBER_FOLLOWS != 0 { usize::from(code & !(NUMBER_FOLLOWS | CLOSES)) } else { 0 };
        let before = text.get(..name).unwrap_or(text);
        let behind = if code & CLOSES != 0 { b"}" } else { &b""[..] };
        match code & !CLOSES {
            HEX => Like::Hex { behind },
            code if code == NUMBER || code & NUMBER_FOLLOWS != 0 => Like::Digits { before, behind },
            _ => Like::Itself,
        }
    }

    /// True where a segment `text` would have this stem behind the same separator.
    pub fn is_of(self, text: &[u8], separators: &Separators) -> bool {
        let separator = 0xff << 48;
        let stem = Marks::of(text, separators).and_then(|marks| marks.stem(0, marks.ends));
        stem.is_some_and(|stem| (stem.head, stem.tail) == (self.head, self.tail & !separator))
    }
}

/// A short key of printable ASCII, with a bit for each byte of a kind.
#[derive(Debug)]
pub struct Marks<'k> {
    key: &'k [u8],
    /// Its last eight bytes, the last on top; zeros in front where it is shorter.
    last: u64,
    /// Separators, and the end of the key.
    ends: u64,
    digits: u64,
    letters: u64,
    /// Of the letters, those up to f.
    hex: u64,
    lower: u64,
}

impl<'k> Marks<'k> {
    /// The marks of `key`; `None` where its shape has to be taken: it is too long, has runs of separators, or bytes that do not print.
    #[inline]
    pub fn of(key: &'k [u8], separators: &Separators) -> Option<Self> {
        if key.len() > MOST_BYTES {
            return None;
        }
        let last = match key.last_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => key.iter().fold(0, |last, &byte| last >> 8 | u64::from(byte) << 56),
        };
        let mut marks = Self { key, last, ends: 0, digits: 0, letters: 0, hex: 0, lower: 0 };
        let mut printable = 0;
        let splat = u8x16::splat;
        let mut look = |bytes: u8x16, at: usize| {
            let mark = |is: u8x16| u64::from(is.to_bitmask()) << (at & 63);
            let from = |first: u8| bytes - splat(first);
            let letter = (bytes | splat(0x20)) - splat(b'a');
            for &separator in separators.bytes() {
                marks.ends |= mark(bytes.simd_eq(splat(separator)));
            }
            marks.digits |= mark(from(b'0').simd_le(splat(9)));
            marks.letters |= mark(letter.simd_le(splat(25)));
            marks.hex |= mark(letter.simd_le(splat(5)));
            marks.lower |= mark(from(b'a').simd_le(splat(25)));
            printable |= mark(from(b' ').simd_le(splat(b'~' - b' ')));
        };
        // A copy with zeros behind it would be simpler, and would have to wait until what was written piece by piece can be read as one.
        let (chunks, rest) = key.as_chunks::<LANES>();
        for (at, chunk) in (0..).step_by(LANES).zip(chunks) {
            look(u8x16::new(*chunk), at);
        }
        if let (false, Some(chunk)) = (rest.is_empty(), key.last_chunk::<LANES>()) {
            // Some bytes are looked at again.
            look(u8x16::new(*chunk), key.len() - LANES);
        } else if !rest.is_empty() {
            let (low, high) = (eight_bytes(key, last, 0), eight_bytes(key, last, 8));
            look(u8x16::new((u128::from(high) << 64 | u128::from(low)).to_le_bytes()), 0);
        }
        let runs = marks.ends & (marks.ends << 1);
        let end = 1 << key.len();
        marks.ends = marks.ends & (end - 1) | end;
        let segments = marks.ends.count_ones() as usize;
        (printable == end - 1 && runs == 0 && segments <= MOST_SEGMENTS).then_some(marks)
    }

    /// Steps from `at` on with the stem and the text of each segment, without stem for one that needs a closer look, until a step leads nowhere.
    #[inline(always)]
    pub fn follow<T>(&self, mut at: T, mut step: impl FnMut(T, Option<Stem>, &'k [u8]) -> Option<T>) -> Option<T> {
        let (mut start, mut ends) = (0, self.ends);
        while ends != 0 {
            let len = ends.trailing_zeros();
            let text = self.key.get(start..start + len as usize).unwrap_or_default();
            at = step(at, self.stem(start, ends), text)?;
            ends = ends.checked_shr(len + 1).unwrap_or(0);
            start += len as usize + 1;
        }
        Some(at)
    }

    /// True where the key is segments of small letters, digits, dashes, underscores and full stops with separators between them, two at least,
    /// none empty, and no run of digits and dashes as long as `run`.
    #[inline]
    pub fn is_plain(&self, run: u32) -> bool {
        let end = 1u64 << (self.key.len() & 63);
        let mut others = (end - 1) & !(self.digits | self.lower | self.ends);
        let mut parts = self.digits;
        while others != 0 {
            match self.key.get(others.trailing_zeros() as usize) {
                Some(b'-') => parts |= others & others.wrapping_neg(),
                Some(b'_' | b'.') => {}
                _ => return false,
            }
            others &= others - 1;
        }
        let empty = self.ends & 1 != 0 || self.ends & end >> 1 != 0;
        self.ends != end && !empty && !has_run(parts, run)
    }

    /// The stem of the segment from `start` on; the first of `ends`, counted from there, is its own.
    #[inline(always)]
    fn stem(&self, start: usize, ends: u64) -> Option<Stem> {
        let whole = ends.trailing_zeros() as usize;
        let closes = whole > 0 && self.key.get(start + whole - 1) == Some(&b'}');
        let (len, flag) = if closes { (whole - 1, CLOSES) } else { (whole, 0) };
        let all = ones(len);
        let of = |marks: u64| (marks >> (start & 63)) & all;
        let (digits, letters) = (of(self.digits), of(self.letters));
        if digits | letters == all {
            if digits == all && len > 0 {
                return is_plain_number(len).then(|| self.identifier(start, NUMBER | flag));
            }
            if len >= SHORTEST_HEX && digits | of(self.hex) == all {
                let is_hex = digits != 0 && letters & !of(self.lower) == 0;
                return is_hex.then(|| self.identifier(start, HEX | flag));
            }
            let is_word = digits == 0 || (digits & ones(top(letters)) == 0 && len - top(letters) <= 2);
            return (is_word && len <= MOST_TEXT).then(|| self.text(start, len, flag));
        }
        if len > MOST_TEXT {
            return None;
        }
        if digits == 0 {
            // A shape that is no more than this has a name of its own.
            return (self.key.get(start) != Some(&b'(')).then(|| self.text(start, len, flag));
        }
        let name = top(all & !digits);
        let is_name = digits & ones(name) == 0 && letters != 0 && top(letters) < name && is_plain_number(len - name);
        is_name.then(|| self.text(start, name, NUMBER_FOLLOWS | flag))
    }

    #[inline]
    fn identifier(&self, start: usize, code: u8) -> Stem {
        Stem { head: 0, tail: self.label(start, code) }
    }

    /// The stem with the `len` bytes from `start` on.
    #[inline]
    fn text(&self, start: usize, len: usize, flag: u8) -> Stem {
        let eight = |at| eight_bytes(self.key, self.last, at);
        let head = eight(start) & ones(8 * len);
        let more = if len > 8 { eight(start + 8) & ones(8 * (len - 8)) } else { 0 };
        Stem { head, tail: more | self.label(start, len as u8 | flag) }
    }

    /// Code and separator, above six bytes of text.
    #[inline]
    fn label(&self, start: usize, code: u8) -> u64 {
        let separator = if start == 0 { 0 } else { self.key[start - 1] };
        u64::from(code) << 56 | u64::from(separator) << 48
    }
}

/// The eight bytes of `key` from `at` on, zeros behind its end, the first lowest; `last` are its last eight.
#[inline]
fn eight_bytes(key: &[u8], last: u64, at: usize) -> u64 {
    match key.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let missing = at + 8 - key.len();
            if missing < 8 { last >> (8 * missing) } else { 0 }
        }
    }
}

/// True for digits of a length at which they are never taken for a date or a phone number.
#[inline]
fn is_plain_number(digits: usize) -> bool {
    !matches!(digits, 0 | 8 | 10 | 11)
}

/// So many low bits.
#[inline]
fn ones(n: usize) -> u64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

/// True where so many bits in a row are set.
#[inline]
fn has_run(bits: u64, len: u32) -> bool {
    let (mut bits, mut reached) = (bits, 1);
    while reached < len {
        let step = reached.min(len - reached);
        bits &= bits.checked_shr(step).unwrap_or(0);
        reached += step;
    }
    bits != 0
}

/// Where the bits end: one above the highest.
#[inline]
fn top(bits: u64) -> usize {
    64 - bits.leading_zeros() as usize
}

/// Places by the stem that leads to each.
#[derive(Debug, Clone)]
pub struct ByStem<T> {
    few: Vec<(Stem, T)>,
    more: HashMap<Stem, T>,
}

/// Stems that are compared one by one.
const FEW: usize = 8;

impl<T> Default for ByStem<T> {
    fn default() -> Self {
        Self { few: Vec::new(), more: HashMap::new() }
    }
}

impl<T: Copy> ByStem<T> {
    /// Where `stem` leads.
    #[inline]
    pub fn get(&self, stem: Stem) -> Option<T> {
        let few = self.few.iter().find(|(known, _)| *known == stem).map(|(_, place)| *place);
        if few.is_some() || self.more.is_empty() { few } else { self.more.get(&stem).copied() }
    }

    /// Keeps where `stem` leads.
    pub fn learn(&mut self, stem: Stem, place: T) {
        if self.get(stem).is_some() {
            return;
        }
        if self.few.len() < FEW {
            self.few.push((stem, place));
        } else {
            self.more.insert(stem, place);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.few.clear();
        self.more.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Shape;

    /// Stem and part of each segment of `key`.
    fn of(key: &str) -> Vec<(Option<Stem>, String)> {
        let separators = Separators::new(b":/");
        let Some(marks) = Marks::of(key.as_bytes(), &separators) else { return Vec::new() };
        let mut shape = Shape::default();
        shape.take(key.as_bytes(), &separators);
        let parts = shape.parts().map(|(part, _)| String::from_utf8_lossy(part).into_owned());
        let mut stems = Vec::new();
        marks.follow((), |(), stem, _| {
            stems.push(stem);
            Some(())
        });
        stems.into_iter().zip(parts).collect()
    }

    fn last(key: &str) -> Option<Stem> {
        of(key).pop().expect("a segment").0
    }

    #[test]
    fn segments_of_one_part_have_one_stem() {
        for (one, other) in [
            ("a:shop-7", "cart:shop-81920"),
            ("x:{item_1", "yyy:{item_22"),
            ("a:1", "user:profile:777777777777777777777777777777"),
            ("a:7c061b3817edc63f06a053020", "b:00000000a"),
            ("a:b", "b:b"),
            ("{shop-7:1}", "{a:9876543}"),
            ("order:{shop-7}:0", "order:{shop-81}:0"),
            ("a:{shop-7}", "b:{shop-81}"),
            ("a:{user", "b:{user"),
            ("a:not-a-phone", "b:not-a-phone"),
            ("a:{}", "b:{}"),
            ("123456789:", "a:b:"),
        ] {
            assert_eq!(last(one), last(other));
            assert!(last(one).is_some(), "{one}");
        }
    }

    #[test]
    fn segments_of_other_parts_have_other_stems() {
        let keys = [
            "a:7}",
            "a:shop-7}",
            "a:}",
            "a:b}",
            "a:b",
            "a:b-c",
            "a:b-c}",
            "shop-7",
            "a:shop-7",
            "a/shop-7",
            "a:shop",
            "a:shop_7",
            "a:shoq-7",
            "",
            "a:",
            "7",
            "a:7",
            "a:00000000a",
        ];
        let stems: Vec<Stem> = keys.iter().filter_map(|key| last(key)).collect();
        assert_eq!(stems.len(), keys.len());
        for (at, stem) in stems.iter().enumerate() {
            assert!(!stems[..at].contains(stem), "{}", keys[at]);
        }
    }

    #[test]
    fn what_needs_a_closer_look() {
        for key in [
            "a:12-34",
            "a:shop-20260819",
            "a:x1-7",
            "a:-7",
            "a:1.2.3",
            "a:x-13800000001",
            "a:20260819",
            "a:13800000001",
            "a:a100",
            "a:v100",
            "a:1a",
            "a:DEADBEEF",
            "a:deadbeef",
            "a:DEADBEEF00",
            "a:averyveryverylongword",
            "a:a-b7",
            "(other)",
            "a:{12-7",
            "a:20260819}",
            "a:deadbeef}",
            "a:shopping-cart-7",
        ] {
            assert_eq!(last(key), None, "{key}");
        }
        for key in ["a::b", "caf\u{e9}:1", "a\n:1", &"a:".repeat(17), &"a".repeat(64)] {
            assert!(of(key).is_empty(), "{key}");
        }
    }

    #[test]
    fn runs_of_bits() {
        assert!(has_run(0b0_1110, 3) && !has_run(0b1_1011, 3));
        assert!(has_run(u64::MAX, 64) && !has_run(u64::MAX >> 1, 64) && has_run(u64::MAX << 53, 11));
    }

    #[test]
    fn as_long_as_the_bits_reach() {
        let key = format!("{}{}:7", "a:".repeat(14), "b".repeat(33));
        assert_eq!(key.len(), 63);
        let stems: Vec<bool> = of(&key).iter().map(|(stem, _)| stem.is_some()).collect();
        assert_eq!(stems, [[true; 14].as_slice(), &[false, true]].concat());
        assert_eq!(last(&format!("{}:", "b".repeat(62))), last("b:"));
    }

    proptest::proptest! {
        #[test]
        fn stems_decide_parts(
            keys in proptest::collection::vec("[a-gA-G0-9:@{}._+<>\\\\-]{0,6}[a-g]{0,2}[-:_]{0,1}[0-9]{0,12}[}]{0,1}", 1..40),
        ) {
            let mut parts = std::collections::HashMap::new();
            for (stem, part) in keys.iter().flat_map(|key| of(key)) {
                if let Some(stem) = stem {
                    let known = parts.entry(stem).or_insert_with(|| part.clone());
                    proptest::prop_assert_eq!(&*known, &part);
                }
            }
        }
    }
}
