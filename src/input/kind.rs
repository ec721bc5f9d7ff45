//! What bytes are, told by the bytes themselves and never by a name.

use super::decode::Layer;
use crate::rdb::{Dialect, HEADER_LEN};

/// Bytes of the mark that ends a dump of unknown length in a replication stream.
pub const MARK_LEN: usize = 40;

/// What begins here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A dump.
    Dump,
    /// Something to decode first.
    Packed(Layer),
    /// A dump behind what a replica got in front of it: so many bytes.
    Capture(usize, Capture),
    /// An archive.
    Tar,
    /// Something else.
    Other,
}

/// What a replication stream says of the dump in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Its length in bytes.
    Length(u64),
    /// The mark that follows it.
    Mark([u8; MARK_LEN]),
}

impl Kind {
    /// Tells from the first bytes; 64 KiB are plenty.
    pub(super) fn of(bytes: &[u8]) -> Self {
        // A member may be named as a dump begins.
        if is_tar(bytes) {
            return Self::Tar;
        }
        if begins_as_dump(bytes) {
            return Self::Dump;
        }
        if let Some(layer) = Layer::of(bytes) {
            return Self::Packed(layer);
        }
        capture(bytes).map_or(Self::Other, |(len, capture)| Self::Capture(len, capture))
    }
}

/// True for the nine bytes of a header.
pub(super) fn begins_as_dump(bytes: &[u8]) -> bool {
    bytes.first_chunk::<HEADER_LEN>().and_then(Dialect::parse).is_some()
}

/// A header of an archive whose own checksum is right. Those of old have no magic, and "ustar" may stand in any file.
fn is_tar(bytes: &[u8]) -> bool {
    bytes.first_chunk::<512>().is_some_and(|block| block[0] != 0 && super::archive::is_header(block))
}

/// `+FULLRESYNC <id> <offset>`, line feeds that keep the connection alive, then `$<length>` or `$EOF:<mark>`; the dump follows.
fn capture(bytes: &[u8]) -> Option<(usize, Capture)> {
    let mut rest = past_line_feeds(bytes);
    if rest.starts_with(b"+FULLRESYNC ") {
        rest = past_line_feeds(line(rest)?.1);
    }
    let (announced, dump) = line(rest.strip_prefix(b"$")?)?;
    let capture = match announced.strip_prefix(b"EOF:") {
        Some(mark) => Capture::Mark(mark.try_into().ok()?),
        None => Capture::Length(std::str::from_utf8(announced).ok()?.parse().ok()?),
    };
    begins_as_dump(dump).then_some((bytes.len() - dump.len(), capture))
}

fn past_line_feeds(bytes: &[u8]) -> &[u8] {
    let feeds = bytes.iter().take_while(|&&b| b == b'\n').count();
    &bytes[feeds..]
}

/// A line of the protocol, and what is behind it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memmem::find(&bytes[..bytes.len().min(256)], b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8; MARK_LEN] = b"0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn captures_of_replication_streams() {
        let of = |front: &[u8]| match Kind::of(&[front, b"REDIS0010\xff"].concat()) {
            Kind::Capture(len, capture) => Some((len == front.len(), capture)),
            _ => None,
        };
        let resync = b"+FULLRESYNC 9f1c3b4e5d6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c 4711\r\n";
        let eof = [&b"$EOF:"[..], MARK, b"\r\n"].concat();
        assert_eq!(of(b"$10\r\n"), Some((true, Capture::Length(10))));
        assert_eq!(of(&[&resync[..], b"\n\n\n$10\r\n"].concat()), Some((true, Capture::Length(10))));
        assert_eq!(of(&[&resync[..], &eof].concat()), Some((true, Capture::Mark(*MARK))));
        assert_eq!(of(&eof), Some((true, Capture::Mark(*MARK))));
        // No length, a mark of 39 bytes, no dump behind it.
        assert_eq!(of(b"$ten\r\n"), None);
        assert_eq!(of(&[&b"$EOF:"[..], &MARK[1..], b"\r\n"].concat()), None);
        assert_eq!(Kind::of(b"$10\r\nhello"), Kind::Other);
        assert_eq!(Kind::of(resync), Kind::Other);
    }
}
