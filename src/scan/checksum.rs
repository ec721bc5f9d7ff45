//! CRC64 of a dump, piece by piece.
//!
//! The pieces are checksummed by `crc-fast`; joining two checksums is here because the crate's own takes a hundred times longer, which
//! counts with a join for every piece.

use crc_fast::{CrcAlgorithm, checksum};

/// The reflected Jones polynomial of Redis (`crc64.c`).
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// CRC64 of `bytes`.
pub fn crc64(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// CRC64 of two runs of bytes, from that of each and the length of the second.
pub fn join(first: u64, second: u64, second_len: u64) -> u64 {
    multiply(first, power_of_x(second_len)) ^ second
}

/// x^(8 n) modulo the polynomial, bits reflected.
fn power_of_x(n: u64) -> u64 {
    let one = 1 << 63;
    let mut square = one >> 8;
    let mut power = one;
    let mut rest = n;
    while rest > 0 {
        if rest & 1 == 1 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        rest >>= 1;
    }
    power
}

/// Product modulo the polynomial, bits reflected: the top bit is the constant term.
fn multiply(a: u64, mut b: u64) -> u64 {
    let mut product = 0;
    let mut bit = 1u64 << 63;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_format() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b"REDIS0011"), 0xddf8_81e7_1bd6_a1ab);
    }

    proptest::proptest! {
        #[test]
        fn joined_equals_one_run_and_the_crc_crate(first: Vec<u8>, second: Vec<u8>) {
            let whole = [&first[..], &second].concat();
            let joined = join(crc64(&first), crc64(&second), second.len() as u64);
            proptest::prop_assert_eq!(joined, crc64(&whole));
            proptest::prop_assert_eq!(joined, crc::Crc::<u64>::new(&crc::CRC_64_REDIS).checksum(&whole));
        }
    }
}
