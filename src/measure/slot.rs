//! The cluster slot of a key: CRC16 of its hash tag, or of the whole key, modulo 16384.

use wide::u8x16;

/// Slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// CRC16/XMODEM tables for eight bytes at a step; `TABLES[k][b]` is the effect of byte `b` with `k` bytes after it.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
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
    while k < 8 {
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
    let mut crc = 0u16;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let [high, low] = crc.to_be_bytes();
        crc = TABLES[7][usize::from(chunk[0] ^ high)]
            ^ TABLES[6][usize::from(chunk[1] ^ low)]
            ^ TABLES[5][usize::from(chunk[2])]
            ^ TABLES[4][usize::from(chunk[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    for &byte in chunks.remainder() {
        crc = crc << 8 ^ TABLES[0][usize::from((crc >> 8) as u8 ^ byte)];
    }
    crc
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
        fn eight_bytes_at_a_step_equal_one(bytes: Vec<u8>) {
            let reference = crc::Crc::<u16>::new(&crc::CRC_16_XMODEM).checksum(&bytes);
            proptest::prop_assert_eq!(crc16(&bytes), reference);
        }
    }
}
