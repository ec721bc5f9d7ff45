//! Decoders of compressed bytes. Each needs a bounded amount of memory, whatever the bytes say.

use std::fmt;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use lz4_flex::frame::FrameDecoder;

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

/// Magic numbers of the frames of LZ4, little endian; those of frames that hold no data have four free bits.
const LZ4: u32 = 0x184d_2204;
const LZ4_LEGACY: u32 = 0x184c_2102;
const SKIPPABLE: u32 = 0x184d_2a50;

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
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
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
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(from)),
            // Frames that want a window of more than 128 MiB are refused by the decoder.
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
            Self::Lz4 => Box::new(Lz4Frames::new(from, usize::MAX)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(from)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(from, true, MOST_XZ_KIB)),
            Self::Envelope(front) => {
                skip(&mut from, front as u64)?;
                // Whatever follows the frame is to be ignored.
                Box::new(Lz4Frames::new(from, 1))
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

/// Remembers that the end was met.
struct Ending<R> {
    inner: R,
    ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.ended |= n == 0 && !buf.is_empty();
        Ok(n)
    }
}

/// What a frame is read from: its magic number, which was looked at, then the rest.
type FrameSource<R> = Ending<Chain<Cursor<[u8; 4]>, R>>;

/// Frames of LZ4 one behind the other, which the decoder of one frame leaves to its caller.
struct Lz4Frames<R: Read> {
    state: Lz4State<R>,
    /// Frames that are still read.
    frames: usize,
}

enum Lz4State<R: Read> {
    Between(R),
    Inside { decoder: Box<FrameDecoder<FrameSource<R>>>, is_legacy: bool },
    Ended,
}

impl<R: Read> Lz4Frames<R> {
    fn new(inner: R, frames: usize) -> Self {
        Self { state: Lz4State::Between(inner), frames }
    }

    /// Goes on to the next frame with data in it.
    fn next_frame(&mut self, mut inner: R) -> io::Result<Lz4State<R>> {
        if self.frames == 0 {
            return Ok(Lz4State::Ended);
        }
        loop {
            let mut magic = [0; 4];
            let mut read = 0;
            while read < magic.len() {
                match inner.read(&mut magic[read..])? {
                    0 if read == 0 => return Ok(Lz4State::Ended),
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => read += n,
                }
            }
            let number = u32::from_le_bytes(magic);
            if number & !0xf == SKIPPABLE {
                let mut len = [0; 4];
                inner.read_exact(&mut len)?;
                skip(&mut inner, u64::from(u32::from_le_bytes(len)))?;
                continue;
            }
            if number != LZ4 && number != LZ4_LEGACY {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what follows is no frame"));
            }
            self.frames -= 1;
            let source = Ending { inner: Cursor::new(magic).chain(inner), ended: false };
            return Ok(Lz4State::Inside { decoder: Box::new(FrameDecoder::new(source)), is_legacy: number == LZ4_LEGACY });
        }
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.state {
                Lz4State::Ended => return Ok(0),
                Lz4State::Inside { decoder, is_legacy } => {
                    let n = decoder.read(buf)?;
                    if n > 0 {
                        return Ok(n);
                    }
                    // The decoder takes the end of its bytes for the end of the frame; only the frames of old end so.
                    if decoder.get_ref().ended && !*is_legacy {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Lz4State::Between(_) => {}
            }
            self.state = match std::mem::replace(&mut self.state, Lz4State::Ended) {
                Lz4State::Between(inner) => self.next_frame(inner)?,
                Lz4State::Inside { decoder, .. } => Lz4State::Between(decoder.into_inner().inner.into_inner().1),
                Lz4State::Ended => return Ok(0),
            };
        }
    }
}
