//! Usable bytes of an allocation: what the server's accounting sees of a request.

use std::fmt;
use std::str::FromStr;

/// From here on glibc maps pages for a block (`M_MMAP_THRESHOLD`; it rises while a server frees such blocks).
const LIBC_MAPPED: u64 = (128 << 10) - 8;

/// The allocator that a server was built with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Allocator {
    /// jemalloc as Redis and Valkey bundle it (`--with-lg-quantum=3`).
    #[default]
    Jemalloc,
    /// jemalloc as Debian and Ubuntu package it: a quantum of 16 bytes.
    System,
    /// malloc of glibc. What a block really holds depends on its history; this is what it holds at least.
    Libc,
}

impl Allocator {
    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jemalloc => "jemalloc",
            Self::System => "system",
            Self::Libc => "libc",
        }
    }

    /// Bytes that a request of `n` bytes can use (`malloc_usable_size`).
    #[inline]
    pub fn usable(self, n: u64) -> u64 {
        match self {
            Self::Jemalloc if n <= 64 => n.max(1).next_multiple_of(8),
            Self::System if n <= 8 => 8,
            Self::System if n <= 128 => n.next_multiple_of(16),
            Self::Jemalloc | Self::System => four_per_doubling(n),
            // Eight bytes of header in front of each chunk of 16 n bytes.
            Self::Libc if n < LIBC_MAPPED => (n + 8).next_multiple_of(16).max(32) - 8,
            Self::Libc => n.saturating_add(16).checked_next_multiple_of(4096).map_or(n, |pages| pages - 16),
        }
    }
}

/// Four size classes between each power of two and the next, without an upper end.
#[inline]
fn four_per_doubling(n: u64) -> u64 {
    let step = 1 << ((n - 1).ilog2() - 2);
    n.checked_next_multiple_of(step).unwrap_or(n)
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Allocator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Jemalloc, Self::System, Self::Libc]
            .into_iter()
            .find(|allocator| allocator.name() == text)
            .ok_or_else(|| format!("{text:?} is no allocator: jemalloc, system or libc"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_of_the_bundled_jemalloc() {
        // The table of jemalloc's manual for a quantum of 8 bytes.
        let classes = [
            8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280,
            1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336, 16384, 20480, 24576, 28672,
            32768,
        ];
        let mut below = 0;
        for class in classes {
            for n in below + 1..=class {
                assert_eq!(Allocator::Jemalloc.usable(n), class, "{n}");
            }
            below = class;
        }
        assert_eq!(Allocator::Jemalloc.usable(0), 8);
        assert_eq!(Allocator::Jemalloc.usable(1_048_577), 1_310_720);
        assert_eq!(Allocator::Jemalloc.usable(u64::MAX), u64::MAX);
    }

    #[test]
    fn size_classes_of_the_packaged_jemalloc() {
        for (n, usable) in [(1, 8), (8, 8), (9, 16), (24, 32), (40, 48), (56, 64), (65, 80), (88, 96), (120, 128), (129, 160)] {
            assert_eq!(Allocator::System.usable(n), usable, "{n}");
        }
    }

    #[test]
    fn chunks_of_glibc() {
        for (n, usable) in [(1, 24), (24, 24), (25, 40), (40, 40), (41, 56), (1000, 1000), (1001, 1016), (131_066, 135_152)] {
            assert_eq!(Allocator::Libc.usable(n), usable, "{n}");
        }
        assert_eq!(Allocator::Libc.usable(u64::MAX), u64::MAX);
    }
}
