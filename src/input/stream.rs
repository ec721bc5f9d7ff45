//! Dumps that cannot be mapped as they are: compressed, piped, in a compressed archive. They are read from their beginning each
//! time.

use std::fmt;
use std::io::{self, BufRead, Cursor, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Stored;
use super::archive::Archive;
use super::decode::{Fault, Layer, Reader, buffered};
use super::kind::Kind;

/// Bytes at the beginning of a stream that are kept: those that tell what it is, and it from others.
pub(super) const START: usize = 64 << 10;

/// Bytes of a map that are read between letting go of those before.
const AT_HAND: usize = 1 << 20;

/// Most decoders behind one another.
const MOST_LAYERS: usize = 3;

/// Where the stored bytes are.
#[derive(Clone)]
pub(super) enum Source {
    /// In a file, or memory.
    Stored(Arc<Stored>, Range<usize>),
    /// Nowhere to go back to. What was read of it stands in front of the rest.
    Once(Arc<Mutex<Option<Reader>>>),
    /// What could be read once, in a temporary file, and why there is no more of it.
    Kept(Arc<Stored>, Option<Fault>),
    /// In an archive that is a stream itself: so many bytes from an offset.
    Member(Arc<Archive>, u64, u64),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(_, range) => f.debug_tuple("Stored").field(range).finish(),
            Self::Once(_) => f.write_str("Once"),
            Self::Kept(..) => f.write_str("Kept"),
            Self::Member(_, offset, size) => f.debug_tuple("Member").field(offset).field(size).finish(),
        }
    }
}

impl Source {
    /// What can be read once.
    pub(super) fn once(reader: Reader) -> Self {
        Self::Once(Arc::new(Mutex::new(Some(reader))))
    }

    fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Reader> {
        match self {
            Self::Stored(stored, range) => {
                read.store(0, Ordering::Relaxed);
                Ok(Box::new(StoredReader { stored: Arc::clone(stored), range: range.clone(), read: Arc::clone(read) }))
            }
            Self::Once(rest) => {
                let taken = rest.lock().unwrap_or_else(PoisonError::into_inner).take();
                taken.ok_or_else(|| io::Error::other("it was read already, and can be read once"))
            }
            Self::Kept(stored, fault) => {
                let range = 0..stored.len();
                let kept = StoredReader { stored: Arc::clone(stored), range, read: Arc::default() };
                Ok(buffered(kept.chain(Failed(fault.clone()))))
            }
            Self::Member(archive, offset, size) => {
                read.store(0, Ordering::Relaxed);
                let member = Archive::member(archive, *offset, *size)?;
                Ok(buffered(Counted { inner: member, read: Arc::clone(read) }))
            }
        }
    }
}

/// A dump that is decoded while it is read.
#[derive(Debug)]
pub(super) struct Stream {
    source: Source,
    layers: Vec<Layer>,
    /// The first bytes of the dump.
    start: Vec<u8>,
    /// Nothing follows them; and why, where that is not the end of the file.
    ended: Option<Option<Fault>>,
    /// Stored bytes that were read.
    read: Arc<AtomicU64>,
    /// Some layer is a decoder.
    is_decoded: bool,
}

impl Stream {
    /// A member of an archive whose first bytes, or all, were read already.
    pub(super) fn of_member(source: Source, start: Vec<u8>, is_all: bool) -> (Self, Kind) {
        let len = start.len();
        let (mut stream, kind) = Self::new(Source::Stored(Arc::new(Stored::Memory(start)), 0..len), Arc::default());
        if is_all || stream.start.len() >= START {
            stream.source = source;
            return (stream, kind);
        }
        // They do not decode to enough.
        Self::new(source, Arc::default())
    }

    /// Looks at the beginning of a stream, and opens what is compressed there.
    pub(super) fn new(source: Source, read: Arc<AtomicU64>) -> (Self, Kind) {
        let mut stream = Self { source, layers: Vec::new(), start: Vec::new(), ended: None, read, is_decoded: false };
        loop {
            stream.read_start(START);
            match Kind::of(&stream.start) {
                Kind::Packed(layer) if stream.layers.len() < MOST_LAYERS => stream.push(layer),
                Kind::Capture(front, capture) => {
                    stream.push(Layer::Front(front));
                    stream.read_start(START);
                    return (stream, Kind::Capture(front, capture));
                }
                kind => return (stream, kind),
            }
        }
    }

    /// From here on what `layer` makes of the bytes is the stream.
    fn push(&mut self, layer: Layer) {
        self.is_decoded |= !matches!(layer, Layer::Front(_));
        let ended = self.ended.take();
        let start = std::mem::take(&mut self.start);
        let Source::Once(rest) = &self.source else {
            // The decoders are made anew whenever it is read.
            self.layers.push(layer);
            return;
        };
        let opened = self.source.open(&self.read).and_then(|rest| match ended {
            // The fault was met already, and is not met again.
            Some(Some(fault)) => layer.open(chained(start, buffered(Failed(Some(fault))))),
            _ => layer.open(chained(start, rest)),
        });
        match opened {
            Ok(reader) => *rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader),
            Err(error) => self.ended = Some(Some(Fault::of(&error, layer.name()))),
        }
    }

    /// Copies the rest of what can be read once to where it can be read again; see [`super::Input::keep`].
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let (stored, fault) = super::copied(self.reader())?;
        // Decoders and what was read stand in front of what is read once.
        debug_assert!(self.layers.is_empty());
        self.source = Source::Kept(Arc::new(stored), fault);
        self.start = Vec::new();
        self.ended = None;
        Ok(())
    }

    /// True for what was kept.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self.source, Source::Kept(..))
    }

    /// Opens the source and all decoders.
    fn open(&self) -> io::Result<Reader> {
        let stored = self.source.open(&self.read)?;
        self.layers.iter().try_fold(stored, |from, layer| layer.open(from))
    }

    /// Reads until `len` bytes of the beginning are at hand, or all there are.
    pub(super) fn read_start(&mut self, len: usize) {
        if self.ended.is_some() || self.start.len() >= len {
            return;
        }
        let mut reader = match self.open() {
            Ok(reader) => reader,
            Err(error) => {
                self.ended = Some(Some(Fault::of(&error, self.reading())));
                return;
            }
        };
        let is_once = matches!(self.source, Source::Once(_));
        if !is_once {
            self.start.clear();
        }
        let most = (len - self.start.len()) as u64;
        // What was read before a fault stays.
        match (&mut reader).take(most).read_to_end(&mut self.start) {
            Ok(_) if self.start.len() < len => self.ended = Some(None),
            Ok(_) => {}
            Err(error) => self.ended = Some(Some(Fault::of(&error, self.reading()))),
        }
        if let Source::Once(rest) = &self.source {
            *rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
        }
    }

    /// Everything, from the beginning.
    pub(super) fn reader(&self) -> Reader {
        let opened = match &self.source {
            Source::Once(_) => self.source.open(&self.read).map(|rest| match self.fault() {
                Some(fault) => chained(self.start.clone(), buffered(Failed(Some(fault.clone())))),
                None => chained(self.start.clone(), rest),
            }),
            _ => self.open(),
        };
        opened.unwrap_or_else(|error| buffered(Failed(Some(Fault::of(&error, self.reading())))))
    }

    /// As messages name what is read.
    fn reading(&self) -> &'static str {
        match self.source {
            Source::Once(_) | Source::Kept(..) => "standard input",
            _ => self.layers.last().map_or("the file", |layer| layer.name()),
        }
    }

    /// True where its bytes are not as they are stored.
    pub(super) fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    /// The first bytes.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// True where these are all.
    pub(super) fn is_all(&self) -> bool {
        self.ended.is_some()
    }

    /// Why no more could be read.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.ended.as_ref().and_then(Option::as_ref)
    }

    /// Stored bytes that were read so far.
    pub(super) fn read_so_far(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The archive that it is in, and where; one behind the other they are read without going back.
    pub(super) fn place(&self) -> Option<(usize, u64)> {
        match &self.source {
            Source::Member(archive, offset, _) => Some((Arc::as_ptr(archive) as usize, *offset)),
            _ => None,
        }
    }

    /// What it is decoded from, as a stream of its own: an archive.
    pub(super) fn into_archive(self) -> Archive {
        Archive::new(self.source, self.layers)
    }

    /// Gives back the memory of the first bytes, where they can be read again.
    pub(super) fn forget_start(&mut self) {
        if !self.is_once() {
            self.start = Vec::new();
            self.ended = None;
        }
    }

    /// True where it can be read once only.
    pub(super) fn is_once(&self) -> bool {
        matches!(self.source, Source::Once(_))
    }
}

/// Opens a source and the decoders behind it.
pub(super) fn open(source: &Source, layers: &[Layer]) -> io::Result<Reader> {
    let stored = source.open(&Arc::default())?;
    layers.iter().try_fold(stored, |from, layer| layer.open(from))
}

fn chained(front: Vec<u8>, rest: Reader) -> Reader {
    Box::new(Cursor::new(front).chain(rest))
}

/// Reads what is stored in memory or a map.
struct StoredReader {
    stored: Arc<Stored>,
    range: Range<usize>,
    read: Arc<AtomicU64>,
}

impl Read for StoredReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for StoredReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.stored.get(self.range.clone()).unwrap_or_default();
        Ok(&bytes[..bytes.len().min(AT_HAND)])
    }

    fn consume(&mut self, n: usize) {
        let before = self.range.start;
        self.range.start += n;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        if before / AT_HAND < self.range.start / AT_HAND {
            let passed = before / AT_HAND * AT_HAND..self.range.start / AT_HAND * AT_HAND;
            self.stored.passed().release(self.stored.get(passed).unwrap_or_default());
        }
    }
}

/// Counts what is read.
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Ends in a fault that was met before.
struct Failed(Option<Fault>);

impl Read for Failed {
    fn read(&mut self, _buf: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(fault) => Err(io::Error::other(fault)),
            None => Ok(0),
        }
    }
}
