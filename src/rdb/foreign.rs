//! Names files that are given for a dump by mistake, by how they begin.

use super::HEADER_LEN;

/// What a file is that begins with `bytes`, and what to do next; `None` where nothing is recognised.
pub(super) fn name(bytes: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 13] = [
        (b"PAR1", "a Parquet file: give the dump that it was made from"),
        (b"%PDF-", "a PDF document: give a dump"),
        (b"\x89PNG", "a picture: give a dump"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
        (b"Rar!", "a RAR archive: unpack it first"),
        (b"-----BEGIN PGP", "an encrypted file: decrypt it first"),
        (b"age-encryption.org", "an encrypted file: decrypt it first"),
        (b"Salted__", "a file encrypted with openssl: decrypt it first"),
        (b"-ERR", "an error that a server answered instead of a dump: read it, and take the dump again"),
        (b"-NOAUTH", "an error that a server answered instead of a dump: log in, and take the dump again"),
        (b"-LOADING", "an error that a server answered instead of a dump: wait until it has loaded, and take the dump again"),
        (b"file appendonly", "the manifest of an append-only file: give the base file that it names"),
        (b"UkVESVMw", "a dump in base64: decode it first"),
    ];
    if let Some((_, what)) = SIGNATURES.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(what);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins = |word: &[u8]| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    match text.first()? {
        b'<' if begins(b"<!doctype html") || begins(b"<html") => Some(
            "a web page, most likely an error that was downloaded instead of the dump: open it in a browser, and download again",
        ),
        b'<' if begins(b"<?xml") || begins(b"<error") => {
            Some("an XML document, most likely an error of a storage service: read it, and download again")
        }
        b'{' | b'[' if is_text(text) => {
            Some("JSON text, perhaps an export of keys or an error of a service: give the dump itself")
        }
        _ if is_text(text) && text.len() >= 16 => Some("plain text: give the dump itself, as SAVE or redis-cli --rdb writes it"),
        _ => None,
    }
}

/// True for what a replica gets in front of a dump, with nothing of the dump behind it: line feeds, `+FULLRESYNC` and its fields, and `$` with a length
/// or mark.
pub(super) fn is_capture_without_dump(bytes: &[u8]) -> bool {
    let mut rest = past_line_feeds(bytes);
    if rest.starts_with(b"+FULLRESYNC") {
        rest = past_line_feeds(past_line(rest));
    } else if !rest.starts_with(b"$") {
        return false;
    }
    if rest.starts_with(b"$") {
        rest = past_line(rest);
    }
    let magics = [&b"REDIS"[..], b"VALKEY"];
    rest.len() < HEADER_LEN && magics.iter().any(|magic| rest.starts_with(&magic[..magic.len().min(rest.len())]))
}

fn past_line_feeds(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == b'\n').count()..]
}

/// What is behind the line that `bytes` begin with.
fn past_line(bytes: &[u8]) -> &[u8] {
    memchr::memmem::find(bytes, b"\r\n").map_or(&[], |end| &bytes[end + 2..])
}

/// True where the first kilobyte is printable.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().take(1024).all(|&byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}
