//! Opens dumps: a path becomes a slice of bytes, mapped and never written to.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use memmap2::{Advice, Mmap};

use crate::rdb::{Dialect, HEADER_LEN};

/// What a folder of dumps holds.
#[derive(Debug, Default)]
pub struct Found {
    /// Files that begin as a dump does, by name.
    pub dumps: Vec<PathBuf>,
    /// Files that a server writes a dump to before it gets its name.
    pub temporary: Vec<PathBuf>,
    /// Everything else: how much of it.
    pub others: u64,
}

/// Looks for dumps in a folder, not in folders within it.
///
/// # Errors
/// What the system says when the folder cannot be read.
pub fn dumps_in(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let named_dump = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("rdb"));
        if !path.is_file() && !named_dump {
            found.others += 1;
            continue;
        }
        if entry.file_name().as_encoded_bytes().starts_with(b"temp-") {
            found.temporary.push(path);
            continue;
        }
        // What is named as a dump and is none, or cannot be read, must not go unnoticed: opening it will tell why.
        if named_dump || begins_as_dump(&path).unwrap_or(true) {
            found.dumps.push(path);
        } else {
            found.others += 1;
        }
    }
    found.dumps.sort();
    found.temporary.sort();
    Ok(found)
}

fn begins_as_dump(path: &Path) -> io::Result<bool> {
    let mut header = [0; HEADER_LEN];
    Ok(File::open(path)?.read_exact(&mut header).is_ok() && Dialect::parse(&header).is_some())
}

#[derive(Debug)]
enum Content {
    /// As it is in the file.
    Mapped(Mmap),
    /// As it was before it was compressed; also of an empty file, which cannot be mapped.
    Owned(Vec<u8>),
}

/// One opened file.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    content: Content,
    stored_bytes: u64,
    modified_ms: Option<i64>,
    /// What the system said of the file when it was opened.
    opened: Option<Metadata>,
}

/// How a file changed since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Bytes that it had.
    pub was_bytes: u64,
    /// Bytes that it has.
    pub bytes: u64,
}

/// True where both say something of the same file, and not of one that has taken the name of the other.
fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        a.created().ok() == b.created().ok()
    }
}

impl Input {
    /// Opens and maps the file at `path`.
    ///
    /// The file must not change while it is read: the bytes behind the returned value are the file's own. A file that another process
    /// rewrites gives wrong figures, which [`change`](Self::change) tells afterwards; one that is truncated ends the process with SIGBUS,
    /// unless that handles the signal, as the `rdbscope` program does.
    ///
    /// # Errors
    /// What the system says when the file cannot be opened or mapped; a folder or device is refused.
    #[allow(unsafe_code)]
    pub fn open(path: &Path) -> io::Result<Self> {
        // Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        if !fs::metadata(path)?.is_file() {
            let why = if path.is_dir() { "is a folder" } else { "is not a regular file: copy it to one" };
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let content = if metadata.len() == 0 {
            Content::Owned(Vec::new())
        } else {
            // SAFETY: the mapping is private and read-only. That the file is not changed while mapped is the documented contract of this
            // function; no bytes are interpreted but as `u8`, so a change can give wrong figures and no undefined value.
            let map = unsafe { Mmap::map(&file)? };
            // Advice that is not taken costs nothing.
            let _ = map.advise(Advice::Sequential);
            match enveloped(&map) {
                Some(frame) => Content::Owned(unwrap_envelope(frame)?),
                None => Content::Mapped(map),
            }
        };
        let modified_ms = metadata
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_millis()).ok());
        Ok(Self { path: path.into(), content, stored_bytes: metadata.len(), modified_ms, opened: Some(metadata) })
    }

    /// How the file changed since it was opened: its size, or its time alone. Nothing where another file has taken its name; the one that
    /// was opened is then as it was.
    pub fn change(&self) -> Option<Change> {
        let was = self.opened.as_ref()?;
        let is = fs::metadata(&self.path).ok().filter(|is| is_same_file(was, is))?;
        let as_it_was = was.len() == is.len() && was.modified().ok() == is.modified().ok();
        (!as_it_was).then_some(Change { was_bytes: was.len(), bytes: is.len() })
    }

    /// Takes a dump that is in memory already, named `path` in messages.
    ///
    /// # Errors
    /// An envelope that cannot be opened.
    pub fn in_memory(path: &Path, bytes: Vec<u8>) -> io::Result<Self> {
        let stored_bytes = bytes.len() as u64;
        let content = match enveloped(&bytes) {
            Some(frame) => Content::Owned(unwrap_envelope(frame)?),
            None => Content::Owned(bytes),
        };
        Ok(Self { path: path.into(), content, stored_bytes, modified_ms: None, opened: None })
    }

    /// The bytes of the uncompressed dump, and whatever follows it.
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => map,
            Content::Owned(bytes) => bytes,
        }
    }

    /// The bytes that are the file's own, where it is mapped: they change with it.
    pub fn map(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Mapped(map) => Some(map),
            Content::Owned(_) => None,
        }
    }

    /// Bytes of the file.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's modification time in Unix milliseconds.
    pub fn modified_ms(&self) -> Option<i64> {
        self.modified_ms
    }
}

/// The LZ4 frame of Valkey's compressed envelope: `VCS`, a version, the codec, a reserved byte, and what is inside. An earlier development form has
/// eight bytes.
fn enveloped(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'V', b'C', b'S', 1, 1, 0, 1, frame @ ..] => Some(frame),
        [b'V', b'K', b'C', b'S', 1, 1, _, 0, frame @ ..] => Some(frame),
        _ => None,
    }
}

/// Bytes that one compressed byte of an envelope may stand for; dumps come nowhere near, and LZ4 could reach 255.
const MOST_EXPANSION: u64 = 100;

/// The dump in an LZ4 frame.
fn unwrap_envelope(frame: &[u8]) -> io::Result<Vec<u8>> {
    let most = (frame.len() as u64).saturating_mul(MOST_EXPANSION).max(1 << 20);
    let mut dump = Vec::new();
    lz4_flex::frame::FrameDecoder::new(frame).take(most + 1).read_to_end(&mut dump)?;
    if dump.len() as u64 > most {
        let why = format!("the compressed dump expands more than {MOST_EXPANSION}-fold; it is damaged or made to fill memory");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(dump)
}
