//! Decoders of compressed bytes. Each needs a bounded amount of memory, whatever the bytes say.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use super::lz4;

/// Bytes that are read from somewhere, one after the other.
pub(super) type Reader = Box<dyn BufRead + Send>;

/// Bytes that are read at a time where they are not at hand.
const BUFFER: usize = 128 << 10;

/// Reads from `inner` through a buffer, unless more is wanted at once than fits there.
pub(super) fn buffered(inner: impl Read + Send + 'static) -> Reader {
    Box::new(BufReader::with_capacity(BUFFER, inner))
}

/// KiB of memory that an xz dictionary may take: `xz -9` takes 64 MiB.
const MOST_XZ_KIB: u32 = 192 << 10;

/// What to do with what takes more memory than that.
const PIPE: &str = "decompress it with its own program and pipe it to this one: - is standard input";

/// A way in which bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Gzip,
    Zstd,
    Lz4,
    Bzip2,
    Xz,
    /// Valkey's: so many bytes, then one frame of LZ4.
    Envelope(usize),
    /// Bytes in front of the dump.
    Front(usize),
}

impl Layer {
    /// How bytes that begin so are compressed.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Self::Lz4),
            // A file that is cut inside its header is told of by the decoder.
            [b'B', b'Z', b'h'] | [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            // `VCS`, a version, the codec, a reserved byte, and what is inside. An earlier development form has eight bytes.
            [b'V', b'C', b'S', 1, 1, 0, 1, ..] => Some(Self::Envelope(7)),
            [b'V', b'K', b'C', b'S', 1, 1, _, 0, ..] => Some(Self::Envelope(8)),
            // A frame without data, which zstd and LZ4 both have: what follows it tells; zstd is who writes them first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, rest @ ..] => {
                let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                match rest.get(len..) {
                    Some(after) if after.len() >= 4 => Self::of(after).filter(|layer| matches!(layer, Self::Zstd | Self::Lz4)),
                    _ => Some(Self::Zstd),
                }
            }
            _ => None,
        }
    }

    /// As messages name what it decodes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip data",
            Self::Zstd => "zstd data",
            Self::Lz4 => "lz4 data",
            Self::Bzip2 => "bzip2 data",
            Self::Xz => "xz data",
            Self::Envelope(_) => "compressed envelope",
            Self::Front(_) => "replication stream",
        }
    }

    /// Most bytes that its decoder is asked for at once when it has decoded so many: what it has decoded in front of damage is lost where it
    /// meets that in the same call. Those of zstd and LZ4 go by blocks of their own; that of bzip2 knows behind a block whether it was sound.
    fn most_at_once(self, decoded: usize) -> usize {
        match self {
            Self::Gzip | Self::Xz => (decoded / 64).clamp(256, 4 << 10),
            Self::Bzip2 => usize::MAX,
            Self::Zstd | Self::Lz4 | Self::Envelope(_) | Self::Front(_) => BUFFER,
        }
    }

    /// The bytes behind it.
    pub(super) fn open(self, mut from: Reader) -> io::Result<Reader> {
        let decoder: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(GzipMembers::new(from)),
            // Frames that want a window of more than 128 MiB are refused by the decoder.
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
            Self::Lz4 => Box::new(lz4::Frames::new(from, usize::MAX)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(from)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(from, true, MOST_XZ_KIB)),
            Self::Envelope(front) => {
                skip(&mut from, front as u64)?;
                // Whatever follows the frame is to be ignored.
                Box::new(lz4::Frames::new(from, 1))
            }
            Self::Front(front) => {
                skip(&mut from, front as u64)?;
                from
            }
        };
        Ok(buffered(Asked { layer: self, decoded: 0, inner: decoder }))
    }
}

/// Passes `n` bytes.
///
/// # Errors
/// Bytes that end before.
pub(super) fn skip(from: &mut (impl Read + ?Sized), n: u64) -> io::Result<()> {
    let passed = io::copy(&mut from.take(n), &mut io::sink())?;
    if passed < n { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Why bytes that a dump is stored in cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What was being read.
    pub reading: &'static str,
    /// Why it failed, and what to do.
    pub why: String,
}

impl Fault {
    /// The fault that `error` tells of, met while reading `reading` unless it says so itself.
    pub(super) fn of(error: &io::Error, reading: &'static str) -> Self {
        if let Some(named) = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            return named.clone();
        }
        let why = match error.kind() {
            // The limits above; zstd tells of its own in words alone.
            io::ErrorKind::OutOfMemory => format!("{error}; {PIPE}"),
            _ if error.to_string().contains("too much memory") => format!("{error}; {PIPE}"),
            io::ErrorKind::UnexpectedEof => "it ends too early; the file is truncated: copy it again".into(),
            // zstd tells in words alone.
            _ if error.to_string().contains("Dictionary mismatch") => {
                "it needs the dictionary that it was compressed with: decompress it with zstd -d -D DICTIONARY first".into()
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                format!("{error}; the file is damaged here: take another copy of the backup")
            }
            _ => error.to_string(),
        };
        Self { reading, why }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reading {}: {}", self.reading, self.why)
    }
}

impl std::error::Error for Fault {}

/// Asks a decoder, and says in each error what was being read.
struct Asked {
    layer: Layer,
    decoded: usize,
    inner: Box<dyn Read + Send>,
}

impl Read for Asked {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(self.layer.most_at_once(self.decoded));
        let n = self.inner.read(&mut buf[..most]).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, Fault::of(&error, self.layer.name())),
        })?;
        self.decoded = self.decoded.saturating_add(n);
        Ok(n)
    }
}

/// Members of gzip one behind the other. Zeros behind the last, with which tapes are filled up, belong to no member.
struct GzipMembers<R> {
    member: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(from: R) -> Self {
        Self { member: Some(flate2::bufread::GzDecoder::new(from)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            let Some(mut from) = self.member.take().map(flate2::bufread::GzDecoder::into_inner) else { break };
            let mut zeros = false;
            while let Some(0) = from.fill_buf()?.first() {
                let run = from.fill_buf()?.iter().take_while(|byte| **byte == 0).count();
                from.consume(run);
                zeros = true;
            }
            if from.fill_buf()?.is_empty() {
                return Ok(0);
            }
            if zeros {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "zeros and other bytes follow the last member"));
            }
            self.member = Some(flate2::bufread::GzDecoder::new(from));
        }
        Ok(0)
    }
}
