//! The cluster slot of a key: CRC16 of its hash tag, or of the whole key, modulo 16384.

use wide::u8x16;

/// Slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// Bytes at a step of the checksum.
const STEP: usize = 16;

/// CRC16/XMODEM tables; `TABLES[k][b]` is the effect of byte `b` with `k` bytes after it.
static TABLES: [[u16; 256]; STEP] = tables();

const fn tables() -> [[u16; 256]; STEP] {
    let mut tables = [[0u16; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before << 8 ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The slot that holds `key`.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % SLOTS
}

/// The bytes between the first `{` and the first `}` after it, where there are any.
#[inline]
pub fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    if has_no_brace(key) {
        return None;
    }
    let open = memchr::memchr(b'{', key)?;
    let after = &key[open + 1..];
    let close = memchr::memchr(b'}', after)?;
    (close > 0).then(|| &after[..close])
}

/// True for a key of usual length without an opening brace: to search one takes longer than to look at all of it at once.
#[inline]
fn has_no_brace(key: &[u8]) -> bool {
    const LANES: usize = 16;
    let has = |bytes: &[u8; LANES]| u8x16::new(*bytes).simd_eq(u8x16::splat(b'{')).any();
    // What does not fill the lanes at the end is looked at together with bytes in front of it.
    match key.last_chunk() {
        Some(last) if key.len() <= 4 * LANES => !(has(last) || key.as_chunks().0.iter().any(has)),
        _ => false,
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    // Zeros in front change nothing, so that what does not fill a step comes first.
    let (first, rest) = bytes.split_at(bytes.len() % STEP);
    let crc = step(0, number(first));
    rest.as_chunks().0.iter().fold(crc, |crc, chunk| step(crc, u128::from_be_bytes(*chunk)))
}

/// The checksum of sixteen more bytes, the first on top.
#[inline]
fn step(crc: u16, bytes: u128) -> u16 {
    let bytes = (bytes ^ u128::from(crc) << 112).to_le_bytes();
    bytes.iter().zip(&TABLES).fold(0, |crc, (&byte, table)| crc ^ table[usize::from(byte)])
}

/// The number that fewer than sixteen bytes are, the first on top.
#[inline]
fn number(bytes: &[u8]) -> u128 {
    // From both ends, which may overlap.
    let both = |high: u128, low: u128, width: usize| high << (8 * (bytes.len() - width)) | low;
    if let (Some(high), Some(low)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return both(u64::from_be_bytes(*high).into(), u64::from_be_bytes(*low).into(), 8);
    }
    if let (Some(high), Some(low)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return both(u32::from_be_bytes(*high).into(), u32::from_be_bytes(*low).into(), 4);
    }
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_as_cluster_keyslot_answers() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, expected) in [
            ("123456789", 12739),
            ("foo", 12182),
            ("{user1000}.following", 3443),
            ("{user1000}.followers", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("", 0),
            ("{}x", 10595),
            ("a{b", 13340),
            ("hello", 866),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_tag_is_found_wherever_it_is(front in "[a-z:]{0,70}", tag in "[a-z{]{1,5}", back in "[a-z:{}]{0,40}") {
            let key = format!("{front}{{{tag}}}{back}");
            proptest::prop_assert_eq!(hash_tag(key.as_bytes()), Some(tag.as_bytes()));
            proptest::prop_assert_eq!(hash_tag(front.as_bytes()), None);
        }

        #[test]
        fn sixteen_bytes_at_a_step_equal_one(bytes: Vec<u8>) {
            let reference = crc::Crc::<u16>::new(&crc::CRC_16_XMODEM).checksum(&bytes);
            proptest::prop_assert_eq!(crc16(&bytes), reference);
        }
    }
}
