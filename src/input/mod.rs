//! Opens dumps, however they are stored: what a file is, its bytes say. A plain one is mapped and never written to; others are
//! decoded while they are read.

mod archive;
mod decode;
mod folder;
mod kind;
mod lz4;
mod manifest;
mod mapped;
mod members;
mod payload;
mod stream;
mod windows;

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead as _, Cursor, Write as _};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::UNIX_EPOCH;

use crate::key_text;
use archive::Archive;
use kind::Kind;
use mapped::Mapped;
use members::Members;
use stream::{START, Source, Stream};

pub use decode::Fault;
pub use folder::{Found, dumps_in};
pub use kind::{Capture, MARK_LEN};
pub use mapped::{Change, MapWatch, Passed, watch_maps};
pub use members::Opened;
pub use windows::{MOST_WINDOW_BYTES, Rest, StreamWindows, WINDOW_BYTES, Whole, Window, Windows};

/// The path that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// Bytes of a stream that are looked at for a payload of `DUMP`, which only its end tells.
const MOST_PAYLOAD: usize = 32 << 20;

/// Bytes of a file.
#[derive(Debug)]
enum Stored {
    Mapped(Arc<Mapped>),
    /// Also of an empty file, which cannot be mapped.
    Memory(Vec<u8>),
}

impl Stored {
    /// Where bytes of it go that were read.
    fn passed(&self) -> Passed<'_> {
        Passed::of(if let Self::Mapped(map) = self { Some(map) } else { None })
    }
}

impl Deref for Stored {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
enum Content {
    /// As it is stored.
    Whole(Arc<Stored>, Range<usize>),
    /// Decoded while it is read.
    Stream(Stream),
}

/// One opened dump.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    /// Path in the archive.
    member: Option<Vec<u8>>,
    content: Content,
    stored_bytes: u64,
    modified_ms: Option<i64>,
    capture: Option<Capture>,
    is_payload: bool,
    /// The mapped file that its bytes come from.
    file: Option<Arc<Mapped>>,
}

impl Input {
    /// Opens the file at `path`, or standard input where that is `-`, and gives `each` the dump, or those in an archive in its
    /// order. What it makes of them is returned, but for members of an archive that do not count in the end.
    ///
    /// The file is mapped, and must not change while it is read: the bytes behind the returned value are the file's own. One that
    /// another process rewrites gives wrong figures, which [`change`](Self::change) tells afterwards; one that is truncated ends the
    /// process with SIGBUS, unless that handles the signal, as the `rdbscope` program does; see [`watch_maps`].
    ///
    /// # Errors
    /// What the system says when the file cannot be opened or mapped; a folder or device is refused.
    pub fn open_all<T>(path: &Path, each: &mut dyn FnMut(Self) -> T) -> io::Result<Opened<T>> {
        if path.as_os_str() == STANDARD_INPUT {
            return standard_input(path, each);
        }
        let (stored, modified_ms) = map(path)?;
        let file = if let Stored::Mapped(file) = &stored { Some(Arc::clone(file)) } else { None };
        let mut each = |input: Self| each(Self { file: file.clone(), ..input });
        opened(path, Arc::new(stored), modified_ms, &mut each)
    }

    /// Opens the one dump at `path`; see [`Self::open_all`].
    ///
    /// # Errors
    /// As there; and an archive that does not hold exactly one dump.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_all(path, &mut |input| input)?.the_one()
    }

    /// Takes a dump that is in memory already, named `path` in messages.
    ///
    /// # Errors
    /// An archive that does not hold exactly one dump.
    pub fn in_memory(path: &Path, bytes: Vec<u8>) -> io::Result<Self> {
        opened(path, Arc::new(Stored::Memory(bytes)), None, &mut |input| input)?.the_one()
    }

    /// The bytes of the dump, and whatever follows it; `None` where they come from a stream.
    pub fn whole(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Whole(stored, range) => stored.get(range.clone()),
            Content::Stream(_) => None,
        }
    }

    /// The first bytes of the dump, and whether these are all: of a stream at least 64 KiB, unless they were forgotten.
    pub fn start(&self) -> (&[u8], bool) {
        match &self.content {
            Content::Whole(stored, range) => (stored.get(range.clone()).unwrap_or_default(), true),
            Content::Stream(stream) => (stream.start(), stream.is_all()),
        }
    }

    /// Reads on until `len` of the first bytes are at hand.
    pub fn read_start(&mut self, len: usize) {
        if let Content::Stream(stream) = &mut self.content {
            stream.read_start(len);
        }
    }

    /// Makes what can be read once only be read as often as wanted: its bytes, decoded, go to a temporary file without a name.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do.
    pub fn keep(&mut self) -> io::Result<()> {
        let Content::Stream(stream) = &mut self.content else { return Ok(()) };
        if stream.is_once() {
            stream.keep()?;
            self.stored_bytes = stream.read_so_far();
        }
        Ok(())
    }

    /// Gives back the memory of the first bytes, where they can be read again.
    pub fn forget_start(&mut self) {
        if let Content::Stream(stream) = &mut self.content {
            stream.forget_start();
        }
    }

    /// What keeps the first bytes from being all that were wanted, and is not the end of the file.
    pub fn start_fault(&self) -> Option<&Fault> {
        match &self.content {
            Content::Whole(..) => None,
            Content::Stream(stream) => stream.fault(),
        }
    }

    /// The dump from its first byte on; a stream in windows of so many bytes. Standard input can be read once.
    pub fn windows(&self, window_bytes: usize) -> Box<dyn Windows + '_> {
        match &self.content {
            Content::Whole(stored, range) => {
                Box::new(Whole::stored(stored.get(range.clone()).unwrap_or_default(), stored.passed()))
            }
            Content::Stream(stream) => Box::new(StreamWindows::new(stream.reader(), window_bytes).decoded(stream.is_decoded())),
        }
    }

    /// Bytes of the file, or of the member in its archive; of standard input those that were read so far.
    pub fn stored_bytes(&self) -> u64 {
        match &self.content {
            Content::Stream(stream) if stream.is_once() => stream.read_so_far(),
            _ => self.stored_bytes,
        }
    }

    /// Bytes that progress is counted to: of the dump, or the stored ones of a stream; `None` where that is not known.
    pub fn progress_bytes(&self) -> Option<u64> {
        match &self.content {
            Content::Whole(_, range) => Some(range.len() as u64),
            Content::Stream(stream) if stream.is_once() || stream.is_kept() => None,
            Content::Stream(_) => Some(self.stored_bytes),
        }
    }

    /// Why the file gives no date.
    pub fn undated_because(&self) -> &'static str {
        match (self.path.as_os_str() == STANDARD_INPUT, &self.member) {
            (true, None) => "standard input has no date",
            (_, Some(_)) => "its archive gives it no date",
            _ => "the file has no date",
        }
    }

    /// How the file that the dump comes from changed since it was opened.
    pub fn change(&self) -> Option<Change> {
        self.file.as_ref()?.change()
    }

    /// A part of the file was read that it no longer had, as far as [maps are watched](watch_maps).
    pub fn is_cut_off(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.is_cut_off())
    }

    /// Stored bytes that were read for the next `bytes` of the dump: of a stream those since `told`, which is moved on.
    pub(crate) fn advance(&self, bytes: u64, told: &mut u64) -> u64 {
        match &self.content {
            Content::Whole(..) => bytes,
            Content::Stream(stream) => {
                let read = stream.read_so_far();
                read.saturating_sub(std::mem::replace(told, read))
            }
        }
    }

    /// True for what can be read once only.
    pub fn is_once(&self) -> bool {
        matches!(&self.content, Content::Stream(stream) if stream.is_once())
    }

    /// For a member of a compressed archive which that is, and where in it: read in this order, an archive is decoded once.
    pub fn place(&self) -> Option<(usize, u64)> {
        match &self.content {
            Content::Whole(..) => None,
            Content::Stream(stream) => stream.place(),
        }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name without folders, of a member behind that of its archive; escaped as key names are: a terminal takes no orders
    /// from a file name.
    pub fn name(&self) -> String {
        self.named(self.path.file_name().unwrap_or(self.path.as_os_str()).as_encoded_bytes())
    }

    /// The path as it was given, of a member behind that of its archive; escaped likewise.
    pub fn full_name(&self) -> String {
        self.named(self.path.as_os_str().as_encoded_bytes())
    }

    fn named(&self, file: &[u8]) -> String {
        let file = if self.path.as_os_str() == STANDARD_INPUT { b"standard input" } else { file };
        match &self.member {
            Some(member) => format!("{}:{}", key_text::escape(file), key_text::escape(member)),
            None => key_text::escape(file).into_owned(),
        }
    }

    /// The modification time of the file, or of the member as its archive tells it, in Unix milliseconds.
    pub fn modified_ms(&self) -> Option<i64> {
        self.modified_ms
    }

    /// What a replication stream says of the dump in it.
    pub fn capture(&self) -> Option<Capture> {
        self.capture
    }

    /// True for the answer to `DUMP`: one key, whose name is not known.
    pub fn is_payload(&self) -> bool {
        self.is_payload
    }
}

/// Maps the file at `path`; also returns its modification time.
fn map(path: &Path) -> io::Result<(Stored, Option<i64>)> {
    // Looked at before it is opened: opening a pipe would wait for whoever writes to it.
    if !fs::metadata(path)?.is_file() {
        let why = if path.is_dir() {
            "is a folder"
        } else {
            "is not a regular file: copy it to one, or give it on standard input as -"
        };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let stored = map_file(path, &file, &metadata)?;
    let modified_ms = metadata
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_millis()).ok());
    Ok((stored, modified_ms))
}

fn map_file(path: &Path, file: &File, metadata: &Metadata) -> io::Result<Stored> {
    if metadata.len() == 0 {
        return Ok(Stored::Memory(Vec::new()));
    }
    Ok(Stored::Mapped(Arc::new(Mapped::new(path, file, metadata.clone())?)))
}

/// Opens what the bytes of a file are.
fn opened<T>(
    path: &Path,
    stored: Arc<Stored>,
    modified_ms: Option<i64>,
    each: &mut dyn FnMut(Input) -> T,
) -> io::Result<Opened<T>> {
    let len = stored.len();
    match Kind::of(&stored[..len.min(START)]) {
        Kind::Packed(_) => {
            let (stream, kind) = Stream::new(Source::Stored(stored, 0..len), Arc::default());
            if kind == Kind::Tar {
                return of_archive(path, &Arc::new(stream.into_archive()), each);
            }
            Ok(Opened::one(each(Input::of_stream(path, None, stream, &kind, len as u64, modified_ms))))
        }
        Kind::Tar => of_plain_archive(path, &stored, each),
        kind => Ok(Opened::one(each(Input::of_stored(path, None, stored, 0..len, &kind, modified_ms)))),
    }
}

/// Standard input. What it is, is told from its first bytes. An archive there is copied to a temporary file, as its members may
/// be wanted in another order than theirs.
fn standard_input<T>(path: &Path, each: &mut dyn FnMut(Input) -> T) -> io::Result<Opened<T>> {
    let read = Arc::new(AtomicU64::new(0));
    let reader = stream::Counted { inner: io::stdin(), read: Arc::clone(&read) };
    let (stream, kind) = Stream::new(Source::once(decode::buffered(reader)), read);
    if kind != Kind::Tar {
        return Ok(Opened::one(each(Input::of_stream(path, None, stream, &kind, 0, None))));
    }
    let (stored, fault) = copied(stream.reader())?;
    let mut opened = of_plain_archive(path, &Arc::new(stored), each)?;
    opened.fault = fault.or(opened.fault);
    Ok(opened)
}

/// Copies what is read to a temporary file that has no name, so that nothing can be left of it. Also returns why it could not be read to its end.
///
/// # Errors
/// Of the file, with what to do.
fn copied(mut reader: decode::Reader) -> io::Result<(Stored, Option<Fault>)> {
    let failed = |error: io::Error| {
        let folder = key_text::escape(std::env::temp_dir().as_os_str().as_encoded_bytes()).into_owned();
        let what = "is copied to a temporary file, as it is looked at twice";
        let why =
            format!("{what}; {folder} takes no more: {error}; free some space there, or set TMPDIR to a folder on another disk");
        io::Error::new(error.kind(), why)
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let fault = loop {
        let n = match reader.fill_buf() {
            Ok([]) => break None,
            Ok(bytes) => {
                file.write_all(bytes).map_err(failed)?;
                bytes.len()
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => break Some(Fault::of(&error, "standard input")),
        };
        reader.consume(n);
    };
    let metadata = file.metadata().map_err(failed)?;
    Ok((map_file(Path::new(STANDARD_INPUT), &file, &metadata)?, fault))
}

/// Opens the dumps in an archive that is at hand.
fn of_plain_archive<T>(path: &Path, stored: &Arc<Stored>, each: &mut dyn FnMut(Input) -> T) -> io::Result<Opened<T>> {
    let mut members = Members::new();
    let (others, end) = archive::list(Cursor::new(&***stored), START, |member| {
        let first = usize::try_from(member.offset).unwrap_or(usize::MAX).min(stored.len());
        // Where the archive is cut short, so is the member.
        let last = first.saturating_add(usize::try_from(member.size).unwrap_or(usize::MAX)).min(stored.len());
        let (size, modified_ms) = (member.size, member.modified_ms);
        members.take(member, each, |name, start| match Kind::of(&start) {
            Kind::Packed(_) => {
                let (stream, kind) = Stream::new(Source::Stored(Arc::clone(stored), first..last), Arc::default());
                (Input::of_stream(path, Some(name), stream, &kind, size, modified_ms), kind)
            }
            kind => (Input::of_stored(path, Some(name), Arc::clone(stored), first..last, &kind, modified_ms), kind),
        });
    });
    with_end(members.settle()?, others, end)
}

/// Opens the dumps in an archive that is a stream.
fn of_archive<T>(path: &Path, archive: &Arc<Archive>, each: &mut dyn FnMut(Input) -> T) -> io::Result<Opened<T>> {
    let mut members = Members::new();
    let (others, end) = match archive.reader() {
        // Twice as much as is kept of a dump: so it is enough of most that are compressed, too.
        Ok(reader) => archive::list(reader, 2 * START, |member| {
            let (size, modified_ms) = (member.size, member.modified_ms);
            let source = Source::Member(Arc::clone(archive), member.offset, size);
            members.take(member, each, |name, start| {
                let is_all = start.len() as u64 == size;
                let (stream, kind) = Stream::of_member(source, start, is_all);
                (Input::of_stream(path, Some(name), stream, &kind, size, modified_ms), kind)
            });
        }),
        Err(error) => (0, Err(error)),
    };
    with_end(members.settle()?, others, end)
}

/// Adds how the archive ended.
fn with_end<T>(mut opened: Opened<T>, others: u64, end: io::Result<()>) -> io::Result<Opened<T>> {
    opened.others += others;
    opened.fault = end.err().map(|error| Fault::of(&error, "tar archive"));
    Ok(opened)
}

impl Input {
    fn of_stored(
        path: &Path,
        member: Option<Vec<u8>>,
        stored: Arc<Stored>,
        range: Range<usize>,
        kind: &Kind,
        modified_ms: Option<i64>,
    ) -> Self {
        let stored_bytes = range.len() as u64;
        let bytes = stored.get(range.clone()).unwrap_or_default();
        let payload = if *kind == Kind::Other { payload::dump_of(bytes) } else { None };
        let is_payload = payload.is_some();
        let (content, capture) = match (payload, kind) {
            (Some(dump), _) => {
                let len = dump.len();
                (Content::Whole(Arc::new(Stored::Memory(dump)), 0..len), None)
            }
            (None, Kind::Capture(front, capture)) => (Content::Whole(stored, range.start + front..range.end), Some(*capture)),
            (None, _) => (Content::Whole(stored, range), None),
        };
        Self { path: path.into(), member, content, stored_bytes, modified_ms, capture, is_payload, file: None }
    }

    fn of_stream(
        path: &Path,
        member: Option<Vec<u8>>,
        mut stream: Stream,
        kind: &Kind,
        stored_bytes: u64,
        modified_ms: Option<i64>,
    ) -> Self {
        let mut payload = None;
        if *kind == Kind::Other && stream.start().first().is_some_and(|&byte| payload::may_begin(byte)) {
            stream.read_start(MOST_PAYLOAD);
            if stream.is_all() && stream.fault().is_none() {
                payload = payload::dump_of(stream.start());
            }
        }
        let is_payload = payload.is_some();
        let (content, stored_bytes) = match payload {
            Some(dump) => {
                let stored_bytes = if stream.is_once() { stream.read_so_far() } else { stored_bytes };
                let len = dump.len();
                (Content::Whole(Arc::new(Stored::Memory(dump)), 0..len), stored_bytes)
            }
            None => (Content::Stream(stream), stored_bytes),
        };
        let capture = if let Kind::Capture(_, capture) = kind { Some(*capture) } else { None };
        Self { path: path.into(), member, content, stored_bytes, modified_ms, capture, is_payload, file: None }
    }
}
