//! Bytes that entries take in a ziplist or listpack which the server builds while it loads.

use std::io::Write;

use crate::rdb::packed::{Entry, backlen_bytes};

/// Bytes of a listpack without entries: total, count, end mark.
pub(super) const LISTPACK_FRAME: u64 = 7;

/// Bytes of a ziplist without entries: total, tail, count, end mark.
pub(super) const ZIPLIST_FRAME: u64 = 11;

/// What an entry is to a packed form: a string by its length, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A string of so many bytes that is no integer.
    Text(u64),
    /// An integer, or its decimal text, which packed forms store as one.
    Int(i64),
}

impl Item {
    /// An entry of a packed value; its text is looked at again, as the server does.
    pub fn of(entry: &Entry<'_>) -> Self {
        match *entry {
            Entry::Int(value) => Self::Int(value),
            Entry::Bytes(bytes) => integer(bytes).map_or(Self::Text(bytes.len() as u64), Self::Int),
        }
    }
}

/// The number that `bytes` is the canonical decimal text of: what the server keeps as an integer.
#[inline]
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => bytes.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    // Nineteen digits may pass the range.
    let magnitude = digits.iter().try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')))?;
    if bytes.len() == digits.len() { i64::try_from(magnitude).ok() } else { 0i64.checked_sub_unsigned(magnitude) }
}

/// Bytes of a listpack entry, its length for the way back included.
#[inline]
pub(super) fn listpack_entry(item: Item) -> u64 {
    let size = match item {
        Item::Text(len) => len.saturating_add(match len {
            0..=63 => 1,
            64..=4095 => 2,
            _ => 5,
        }),
        Item::Int(0..=127) => 1,
        Item::Int(-4096..=4095) => 2,
        Item::Int(-32_768..=32_767) => 3,
        Item::Int(-8_388_608..=8_388_607) => 4,
        Item::Int(-2_147_483_648..=2_147_483_647) => 5,
        Item::Int(_) => 9,
    };
    size.saturating_add(backlen_bytes(size))
}

/// Bytes of a ziplist entry behind one of `before` bytes.
#[inline]
fn ziplist_entry(item: Item, before: u64) -> u64 {
    let size = match item {
        Item::Text(len) => len.saturating_add(match len {
            0..=63 => 1,
            64..=16_383 => 2,
            _ => 5,
        }),
        Item::Int(0..=12) => 1,
        Item::Int(-128..=127) => 2,
        Item::Int(-32_768..=32_767) => 3,
        Item::Int(-8_388_608..=8_388_607) => 4,
        Item::Int(-2_147_483_648..=2_147_483_647) => 5,
        Item::Int(_) => 9,
    };
    size.saturating_add(if before < 254 { 1 } else { 5 })
}

/// Bytes of an entry behind a short one.
#[inline]
pub(super) fn entry(item: Item, listpack: bool) -> u64 {
    if listpack { listpack_entry(item) } else { ziplist_entry(item, 0) }
}

/// Bytes of a packed value without entries.
#[inline]
pub(super) fn frame(listpack: bool) -> u64 {
    if listpack { LISTPACK_FRAME } else { ZIPLIST_FRAME }
}

/// A packed value under construction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Packing {
    entries: u64,
    bytes: u64,
    last: u64,
}

impl Packing {
    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, item: Item, listpack: bool) {
        self.last = if listpack { listpack_entry(item) } else { ziplist_entry(item, self.last) };
        self.bytes = self.bytes.saturating_add(self.last);
        self.entries += 1;
    }

    /// Entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of the whole.
    pub fn bytes(&self, listpack: bool) -> u64 {
        self.bytes.saturating_add(frame(listpack))
    }
}

/// The score of a sorted set as an entry of its packed form: an integer where it is one, else its text, which until 7.0 has 17 digits and
/// from 7.2 on the fewest that read back to the same number.
pub(super) fn score(score: f64, listpack: bool, shortest: bool) -> Item {
    // Up to 6.2 the server takes doubles up to 2^52 for integers, later ones up to 2^62.
    let most = if listpack { 4_611_686_018_427_387_904.0 } else { 4_503_599_627_370_496.0 };
    if score.fract() == 0.0 && score.abs() <= most && !(score == 0.0 && score.is_sign_negative()) {
        return Item::Int(score as i64);
    }
    if !score.is_finite() || score == 0.0 {
        let sign = u64::from(score.is_sign_negative());
        return Item::Text(sign + if score == 0.0 { 1 } else { 3 });
    }
    let quick = if shortest { None } else { digits_of_seventeen(score.abs()) };
    let Some((digits, exponent)) = quick.or_else(|| written_digits(score.abs(), shortest)) else { return Item::Text(24) };
    let integral = exponent + 1 >= digits;
    let len = if shortest { shortest_len(digits, exponent) } else { general_len(digits, exponent) };
    let plain = if shortest { exponent.abs() < digits + 7 } else { exponent < 17 };
    if integral && plain && score.abs() < 9_223_372_036_854_775_808.0 {
        return Item::Int(score as i64);
    }
    Item::Text(len as u64 + u64::from(score.is_sign_negative()))
}

/// Significant digits, zeros at their end left out, and the decimal exponent: of the fewest that read back to `score`, or of seventeen.
fn written_digits(score: f64, shortest: bool) -> Option<(i64, i64)> {
    let mut text = [0u8; 40];
    let mut rest = &mut text[..];
    // Scientific notation: a digit, perhaps a point and digits, the exponent.
    let written = if shortest { write!(rest, "{score:e}") } else { write!(rest, "{score:.16e}") };
    let left = rest.len();
    written.ok()?;
    let text = &text[..40 - left];
    let mark = text.iter().position(|&b| b == b'e')?;
    let exponent = std::str::from_utf8(&text[mark + 1..]).ok()?.parse().ok()?;
    let digits = text[..mark].iter().rev().skip_while(|&&b| b == b'0').filter(|b| b.is_ascii_digit()).count().max(1);
    Some((digits as i64, exponent))
}

/// The same of seventeen digits without writing them, exactly; `None` for a score outside of 1 to 10^15, as few are.
fn digits_of_seventeen(score: f64) -> Option<(i64, i64)> {
    const MANTISSA: u32 = 52;
    if !(1.0..1e15).contains(&score) {
        return None;
    }
    let exponent = (score as u64).ilog10();
    let bits = score.to_bits();
    // The score is `mantissa` / 2^`shift`.
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let shift = u32::try_from(1023 + u64::from(MANTISSA) - (bits >> MANTISSA)).ok()?;
    // Below 2^53 times 10^16 < 2^54.
    let scaled = u128::from(mantissa) * u128::from(10u64.pow(16 - exponent));
    let (whole, rest) = ((scaled >> shift) as u64, scaled & ((1 << shift) - 1));
    // To the nearest, and to the even one where both are as near.
    let half = (1u128 << shift) >> 1;
    let mut digits = whole + u64::from(rest > half || rest == half && half > 0 && whole % 2 == 1);
    if digits >= 10u64.pow(17) {
        return None;
    }
    let mut count = 17;
    while digits % 10 == 0 && count > 1 {
        digits /= 10;
        count -= 1;
    }
    Some((count, i64::from(exponent)))
}

/// Length of `%.17g` for so many significant digits.
fn general_len(digits: i64, exponent: i64) -> i64 {
    match exponent {
        -4..=-1 => 1 + 1 + (-exponent - 1) + digits,
        0..=16 if digits > exponent + 1 => digits + 1,
        0..=16 => exponent + 1,
        _ => digits + i64::from(digits > 1) + 2 + if exponent.abs() > 99 { 3 } else { 2 },
    }
}

/// Length of what `fpconv_dtoa` writes (`deps/fpconv`).
fn shortest_len(digits: i64, exponent: i64) -> i64 {
    let k = exponent + 1 - digits;
    let size = exponent.abs();
    if k >= 0 && size < digits + 7 {
        return digits + k;
    }
    if k < 0 && (k > -7 || size < 4) {
        let whole = digits + k;
        return if whole <= 0 { digits + 2 - whole } else { digits + 1 };
    }
    let exponent_digits = match size {
        0..=9 => 1,
        10..=99 => 2,
        _ => 3,
    };
    digits + i64::from(digits > 1) + 2 + exponent_digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_the_server_takes_them() {
        for yes in ["0", "-1", "9223372036854775807", "-9223372036854775808", "10"] {
            assert_eq!(integer(yes.as_bytes()), yes.parse().ok(), "{yes}");
        }
        for no in ["", "-", "-0", "+1", "01", "1a", " 1", "9223372036854775808", "-9223372036854775809", "1e3"] {
            assert_eq!(integer(no.as_bytes()), None, "{no}");
        }
    }

    #[test]
    fn scores_as_printf_and_as_the_shortest_text() {
        // printf("%.17g") and the replies of ZRANGE WITHSCORES of Redis 7.2.
        for (value, long, short) in [
            (0.1, "0.10000000000000001", "0.1"),
            (1.5, "1.5", "1.5"),
            (3.123456, "3.123456", "3.123456"),
            (9.123456, "9.1234559999999991", "9.123456"),
            (-2.5, "-2.5", "-2.5"),
            (1e-5, "1.0000000000000001e-05", "0.00001"),
            (1e300, "1.0000000000000001e+300", "1e+300"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
        ] {
            assert_eq!(super::score(value, true, false), Item::Text(long.len() as u64), "{value}");
            assert_eq!(super::score(value, true, true), Item::Text(short.len() as u64), "{value}");
        }
        assert_eq!(super::score(17.0, true, true), Item::Int(17));
        // 6.2 prints it as 1e+17, 7.0 stores the integer.
        assert_eq!(super::score(1e17, false, false), Item::Text(5));
        assert_eq!(super::score(1e17, true, false), Item::Int(100_000_000_000_000_000));
        assert_eq!(super::score(-0.0, true, true), Item::Text(2));
    }

    proptest::proptest! {
        #[test]
        fn seventeen_digits_with_and_without_writing_them(
            whole in 1.0..1e15f64, small in 1.0..1000.0f64, cents in 100u32..100_000_000, bits in 0u64..1 << 52,
        ) {
            let power = f64::from_bits(bits | (1023 + bits % 49) << 52);
            for score in [whole, small, f64::from(cents) / 100.0, f64::from(cents) / 128.0, power, 9.999_999_999_999_999, 1.0] {
                if let Some(digits) = super::digits_of_seventeen(score) {
                    proptest::prop_assert_eq!(Some(digits), super::written_digits(score, false), "{}", score);
                }
                proptest::prop_assert!(score > 9.99 && score < 10.0 || super::digits_of_seventeen(score).is_some(), "{}", score);
            }
        }
    }

    #[test]
    fn a_listpack_and_a_ziplist_byte_by_byte() {
        // "hi" 12 300 and 254 bytes, then "x" behind the long entry.
        let items = [Item::Text(2), Item::Int(12), Item::Int(300), Item::Text(254), Item::Text(1)];
        let packed = |listpack| {
            let mut packing = Packing::default();
            items.iter().for_each(|item| packing.push(*item, listpack));
            packing.bytes(listpack)
        };
        assert_eq!(packed(true), 7 + 4 + 2 + 3 + 258 + 3);
        assert_eq!(packed(false), 11 + 4 + 2 + 4 + 257 + 7);
    }
}
