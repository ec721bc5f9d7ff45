//! CRC64 of a dump, piece by piece.
//!
//! The pieces are checksummed by `crc-fast`; joining two checksums is here because the crate's own takes a hundred times longer, which
//! counts with a join for every piece.

use crc_fast::{CrcAlgorithm, checksum};
use rayon::prelude::*;

/// The reflected Jones polynomial of Redis (`crc64.c`).
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Bytes that one thread takes at a time: a record may be larger than everything else in its batch.
const PART: usize = 1 << 20;

/// CRC64 of `bytes`; of many on all threads of the current rayon pool.
pub fn crc64(bytes: &[u8]) -> u64 {
    let of_part = |part: &[u8]| (checksum(CrcAlgorithm::Crc64Redis, part), part.len() as u64);
    let join_parts = |(first, len), (second, second_len)| (join(first, second, second_len), len + second_len);
    bytes.par_chunks(PART).map(of_part).reduce_with(join_parts).map_or_else(|| of_part(bytes).0, |(crc, _)| crc)
}

/// The checksum of bytes that are walked at the same time, a block ahead of the walk: it brings them into the cache at full speed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Running {
    crc: u64,
    /// Bytes that it covers.
    len: usize,
}

impl Running {
    /// Bytes of a block.
    const BLOCK: usize = 256 << 10;

    /// Takes the next block of `bytes`, once the walk has come to its beginning.
    #[inline]
    pub fn go_ahead(&mut self, walked: usize, bytes: &[u8]) {
        if walked >= self.len && self.len < bytes.len() {
            self.take(Self::BLOCK.max(walked - self.len), bytes);
        }
    }

    /// The checksum of all `bytes`.
    pub fn finish(mut self, bytes: &[u8]) -> u64 {
        self.take(bytes.len(), bytes);
        self.crc
    }

    #[inline(never)]
    fn take(&mut self, most: usize, bytes: &[u8]) {
        let rest = &bytes[self.len..];
        let block = &rest[..rest.len().min(most)];
        self.crc = join(self.crc, crc64(block), block.len() as u64);
        self.len += block.len();
    }
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
        fn ahead_of_any_walk_it_is_the_same(len in 0usize..3_000_000, steps in proptest::collection::vec(0usize..700_000, 0..9)) {
            let bytes: Vec<u8> = (0..len).map(|at| ((at * at) >> 7) as u8).collect();
            let mut running = Running::default();
            let mut walked = 0;
            for step in steps {
                running.go_ahead(walked, &bytes);
                walked = (walked + step).min(len);
            }
            proptest::prop_assert_eq!(running.finish(&bytes), crc64(&bytes));
        }

        #[test]
        fn joined_equals_one_run_and_the_crc_crate(first: Vec<u8>, second: Vec<u8>) {
            let whole = [&first[..], &second].concat();
            let joined = join(crc64(&first), crc64(&second), second.len() as u64);
            proptest::prop_assert_eq!(joined, crc64(&whole));
            proptest::prop_assert_eq!(joined, crc::Crc::<u64>::new(&crc::CRC_64_REDIS).checksum(&whole));
        }
    }
}
