//! The one error of the parser: where, while reading what, and why.

use std::fmt;

use crate::key_text;
use crate::privacy::Names;

/// Result of everything that reads dump bytes.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes of the blocks in which programs copy files, or a small multiple of them.
const COPIED_BLOCK: u64 = 4096;

/// A fault in a dump. Small to pass around; the detail is allocated only when a fault exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Detail>);

/// What an [`Error`] carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Byte offset in the uncompressed dump at which reading failed.
    pub offset: u64,
    /// What was being read.
    pub reading: &'static str,
    /// Why it failed.
    pub kind: ErrorKind,
    /// The key whose record holds the fault, where it was already read (at most its first 200 bytes).
    pub key: Option<Box<[u8]>>,
    /// The bytes were decoded, and say nothing of the length of the file.
    pub is_decoded: bool,
}

/// Why reading failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes end before the thing being read does.
    Truncated {
        /// Bytes that were needed from the offset on.
        needed: u64,
        /// Bytes that were there.
        available: u64,
    },
    /// The file does not begin as a dump does.
    NotADump(&'static str),
    /// A type or opcode byte that the format of this file does not have.
    UnknownByte {
        /// The byte.
        byte: u8,
        /// Header of the file, such as `REDIS0012`.
        header: [u8; 9],
    },
    /// A length form that no writer produces.
    BadLength(u8),
    /// A value that breaks the format.
    Invalid(&'static str),
    /// A declared size above what can be true or what is accepted.
    TooLarge {
        /// The declared size.
        declared: u64,
        /// The largest that is accepted here.
        limit: u64,
    },
    /// What the dump is stored in cannot be read on: a compressed file that ends too early, say.
    Source(String),
    /// Zeros where records belong.
    Zeros {
        /// How many.
        bytes: u64,
        /// Nothing else follows.
        to_end: bool,
    },
    /// The checksum of the file is not the checksum of its bytes.
    Checksum {
        /// CRC64 that the file holds.
        stored: u64,
        /// CRC64 of its bytes.
        computed: u64,
    },
}

impl Error {
    /// A fault at `offset` while reading `reading`.
    #[cold]
    pub fn new(offset: u64, reading: &'static str, kind: ErrorKind) -> Self {
        Self(Box::new(Detail { offset, reading, kind, key: None, is_decoded: false }))
    }

    /// The same fault, naming the key in whose record it lies.
    #[cold]
    pub(crate) fn in_key(mut self, key: &[u8]) -> Self {
        self.0.key = Some(key.get(..200).unwrap_or(key).into());
        self
    }

    /// The same fault, in bytes that were decoded or not.
    #[cold]
    pub(crate) fn in_decoded(mut self, is_decoded: bool) -> Self {
        self.0.is_decoded = is_decoded;
        self
    }

    /// The same fault of bytes that were unpacked from what stands at `offset` of the file; a truncation of them is no truncation
    /// of the file.
    #[cold]
    pub(crate) fn inside_blob(mut self, offset: u64) -> Self {
        self.0.offset = offset;
        if self.is_truncation() {
            self.0.kind = ErrorKind::Invalid("the bytes unpacked from here end inside a record");
        }
        self
    }

    /// Offset, what was being read, why, and the key.
    pub fn detail(&self) -> &Detail {
        &self.0
    }

    /// True where nothing that could be read follows.
    pub fn is_end_of_file(&self) -> bool {
        self.is_truncation() || self.is_zeros_to_end()
    }

    /// True where nothing but zeros follow.
    pub(crate) fn is_zeros_to_end(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Zeros { to_end: true, .. })
    }

    /// True where more bytes could mend it.
    pub fn is_truncation(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Truncated { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail { offset, reading, kind, key, is_decoded } = &*self.0;
        if let ErrorKind::NotADump(why) = kind {
            return write!(f, "at byte {offset}, reading {reading}: {why}");
        }
        write!(f, "at byte {offset}, reading {reading}")?;
        if let Some(key) = key {
            // Messages end up in logs of backup jobs.
            write!(f, " of key \"{}\"", key_text::escape(&Names::Masked.of(key)))?;
        }
        match kind {
            ErrorKind::Truncated { needed, available } => {
                write!(f, ": {needed} bytes needed, {available} left; ")?;
                // Servers write no dumps of such lengths but by chance, and copies that broke off have them.
                if !is_decoded && offset.saturating_add(*available).is_multiple_of(COPIED_BLOCK) {
                    f.write_str(
                        "the file is half copied, it ends with a whole block of 4 KiB: copy it again, and compare the sizes",
                    )
                } else {
                    f.write_str("the file is truncated: copy it again, or wait until its save has finished")
                }
            }
            ErrorKind::Zeros { bytes, to_end: true } => write!(
                f,
                ": zeros from here to the end of the file, {bytes} bytes; the disk was full or the machine stopped before they were written: \
                 take another copy of the backup, and do not rely on the key in front of them"
            ),
            ErrorKind::Zeros { bytes, to_end: false } => write!(
                f,
                ": {bytes} zeros where records belong, and data behind them; a part of the file was not copied: copy it again"
            ),
            ErrorKind::UnknownByte { byte, header } => write!(
                f,
                ": unknown type or opcode {byte} (0x{byte:02x}) under header {}; the file is damaged or from a server that this version does not know",
                key_text::escape(header)
            ),
            ErrorKind::BadLength(byte) => {
                write!(f, ": byte 0x{byte:02x} is no length; the file is damaged here: take another copy of the backup")
            }
            ErrorKind::Invalid(why) => {
                write!(f, ": {why}; the file is damaged here: take another copy of the backup")
            }
            ErrorKind::TooLarge { declared, limit } => write!(
                f,
                ": declared size {declared} is above {limit}; the file is damaged here: take another copy of the backup"
            ),
            ErrorKind::Source(why) => write!(f, ": {why}"),
            ErrorKind::Checksum { stored, computed } => write!(
                f,
                ": the file says {stored:016x}, its bytes give {computed:016x}; all records can be read, and yet some bytes are not what the \
                 server wrote, any name or value may be wrong: take another copy of the backup"
            ),
            ErrorKind::NotADump(_) => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
