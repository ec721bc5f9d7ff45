//! Values that a client has compressed: told by their first bytes, and decoded to tell whether they are whole.

use std::io::Read;

use super::Format;

/// So much is decoded to tell whether a value is whole, in bytes.
const MOST_DECODED: u64 = 4 << 20;

/// Base-two logarithm of the largest window that a zstd frame may ask for.
const MOST_WINDOW_LOG: u32 = 25;

/// The format of a compressed value, and whether it decodes; `None` for anything else.
pub fn format(bytes: &[u8]) -> Option<(Format, bool)> {
    match bytes {
        [0x1f, 0x8b, 0x08, ..] => Some((Format::Gzip, decodes(flate2::bufread::MultiGzDecoder::new(bytes)))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some((Format::Zstd, is_zstd(bytes))),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some((Format::Lz4, decodes(lz4_flex::frame::FrameDecoder::new(bytes)))),
        [0xff, 0x06, 0x00, 0x00, b's', b'N', b'a', b'P', b'p', b'Y', ..] => Some((Format::Snappy, is_snappy(bytes))),
        // Two bytes prove nothing: what does not decode is no zlib.
        [cmf, flg, ..] if is_zlib_head(*cmf, *flg) => is_zlib(bytes).then_some((Format::Zlib, true)),
        _ => None,
    }
}

/// Whether a decoder comes to the end of its input, or as far as is looked, without a fault.
fn decodes(decoder: impl Read) -> bool {
    std::io::copy(&mut decoder.take(MOST_DECODED), &mut std::io::sink()).is_ok()
}

fn is_zstd(bytes: &[u8]) -> bool {
    zstd::stream::read::Decoder::with_buffer(bytes).is_ok_and(|mut decoder| {
        // A frame may ask for gigabytes.
        decoder.window_log_max(MOST_WINDOW_LOG).is_ok() && decodes(decoder)
    })
}

/// Deflate with a window of at most 32 KiB, no dictionary, and a check of both bytes.
fn is_zlib_head(cmf: u8, flg: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && flg & 0x20 == 0 && (u32::from(cmf) << 8 | u32::from(flg)).is_multiple_of(31)
}

fn is_zlib(bytes: &[u8]) -> bool {
    let mut decoder = flate2::bufread::ZlibDecoder::new(bytes);
    let decoded = std::io::copy(&mut (&mut decoder).take(MOST_DECODED), &mut std::io::sink());
    decoded.is_ok_and(|n| n == MOST_DECODED || decoder.total_in() == bytes.len() as u64)
}

/// Chunks that end with the value: a type, three bytes of length, and so many bytes. Types 0x02 to 0x7f are for versions to come that nobody may
/// skip.
fn is_snappy(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((&[kind, a, b, c], behind)) = rest.split_first_chunk() {
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        match behind.get(len..) {
            Some(next) if !(0x02..=0x7f).contains(&kind) => rest = next,
            _ => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::format;
    use super::*;

    const TEXT: &[u8] = b"what a client has compressed, what a client has compressed";

    #[track_caller]
    fn check(whole: &[u8], expected: Format) {
        assert_eq!(format(whole), (expected, true));
        assert_eq!(format(&whole[..whole.len() - 1]), (expected, false), "cut short");
        assert_eq!(format(&[whole, b"x"].concat()), (expected, false), "followed by something");
    }

    #[test]
    fn gzip_and_zlib() {
        // A stored block: final, two bytes, their complement; then CRC-32 and length of "hi" (RFC 1952).
        let stored = b"\x01\x02\x00\xfd\xff\x68\x69";
        let gzip = [&b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"[..], stored, b"\xac\x2a\x93\xd8", b"\x02\x00\x00\x00"].concat();
        check(&gzip, Format::Gzip);
        // Adler-32 of "hi": 1 + 104 + 105 = 0xd2, 105 + 210 = 0x13b.
        let zlib = [&b"\x78\x01"[..], stored, b"\x01\x3b\x00\xd2"].concat();
        assert_eq!(format(&zlib), (Format::Zlib, true));
        assert_eq!(format(b"x\x9c is no zlib").0, Format::Binary);
        assert_eq!(format(&[&zlib[..], b"\0"].concat()).0, Format::Binary);
    }

    #[test]
    fn frames() {
        check(&zstd::bulk::compress(TEXT, 3).expect("a frame"), Format::Zstd);
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(TEXT).expect("memory");
        let lz4 = lz4.finish().expect("a frame");
        assert_eq!(format(&lz4), (Format::Lz4, true));
        assert_eq!(format(&lz4[..lz4.len() - 9]), (Format::Lz4, false));
        // Magic, then a frame whose window would have 2^41 bytes.
        assert_eq!(format(b"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00"), (Format::Zstd, false));
        // A chunk as it is: type 1, a length of 6, four bytes of a checksum, "hi".
        check(b"\xff\x06\x00\x00sNaPpY\x01\x06\x00\x00\x01\x02\x03\x04hi", Format::Snappy);
        assert_eq!(format(b"\xff\x06\x00\x00sNaPpY\x02\x01\x00\x00x"), (Format::Snappy, false), "a chunk that none may skip");
        assert_eq!(format(b"\xff\x06\x00\x00sNaPpY\x80\x01\x00\x00x"), (Format::Snappy, true), "one that all may skip");
    }
}
