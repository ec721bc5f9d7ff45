//! A mapped file, and what becomes of it while it is read.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[cfg(unix)]
use memmap2::UncheckedAdvice;
use memmap2::{Advice, Mmap};

/// What a program does about maps whose files may be truncated.
#[derive(Debug, Clone, Copy)]
pub struct MapWatch {
    /// A file was mapped here.
    pub mapped: fn(&[u8]),
    /// It will no longer be.
    pub unmapped: fn(&[u8]),
    /// A part of it was read that the file no longer had.
    pub is_cut_off: fn(&[u8]) -> bool,
}

static WATCH: OnceLock<MapWatch> = OnceLock::new();

/// Has all maps from now on watched; the first call counts.
///
/// The library maps files under the contract that they do not change. A program that handles the bus error of a truncated file has to know
/// which addresses are maps.
pub fn watch_maps(watch: MapWatch) {
    let _ = WATCH.set(watch);
}

/// How a file changed since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Bytes that it had.
    pub was_bytes: u64,
    /// Bytes that it has.
    pub bytes: u64,
}

/// A file that is mapped.
#[derive(Debug)]
pub struct Mapped {
    map: Mmap,
    path: PathBuf,
    /// What the system said of the file when it was opened.
    opened: Metadata,
}

impl Mapped {
    /// Maps an open file that is not empty.
    #[allow(unsafe_code)]
    pub(super) fn new(path: &Path, file: &File, opened: Metadata) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only. That the file is not changed while mapped is the documented contract of
        // `Input::open_all`; no bytes are interpreted but as `u8`, so a change can give wrong figures and no undefined value.
        let map = unsafe { Mmap::map(file)? };
        // Advice that is not taken costs nothing.
        let _ = map.advise(Advice::Sequential);
        if let Some(watch) = WATCH.get() {
            (watch.mapped)(&map);
        }
        Ok(Self { map, path: path.into(), opened })
    }

    /// How the file changed: its size, or its time alone. Nothing where another file has taken its name; the one that was opened is then
    /// as it was.
    pub(super) fn change(&self) -> Option<Change> {
        let was = &self.opened;
        let is = fs::metadata(&self.path).ok().filter(|is| is_same_file(was, is))?;
        let as_it_was = was.len() == is.len() && was.modified().ok() == is.modified().ok();
        (!as_it_was).then_some(Change { was_bytes: was.len(), bytes: is.len() })
    }

    /// Lets go of the memory in which some bytes of the map are; they are read again from the file where they are wanted again.
    fn release(&self, bytes: &[u8]) {
        #[cfg(unix)]
        if let Some(start) = (bytes.as_ptr() as usize).checked_sub(self.map.as_ptr() as usize) {
            release(&self.map, start, bytes.len());
        }
    }

    /// A part of it was read that the file no longer had.
    pub(super) fn is_cut_off(&self) -> bool {
        WATCH.get().is_some_and(|watch| (watch.is_cut_off)(&self.map))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if let Some(watch) = WATCH.get() {
            (watch.unmapped)(&self.map);
        }
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn release(map: &Mmap, start: usize, len: usize) {
    // SAFETY: the map is a shared one of a file and is never written to, so that pages that are dropped come back with the bytes of the file,
    // which may stand anywhere in a slice of `u8`. Advice that is not taken costs nothing.
    let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, len) };
}

/// Bytes that were read and are not wanted any more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed<'a>(Option<&'a Mapped>);

impl<'a> Passed<'a> {
    pub(super) fn of(map: Option<&'a Mapped>) -> Self {
        Self(map)
    }

    /// Lets go of their memory, where they are mapped.
    pub fn release(self, bytes: &[u8]) {
        if let Some(map) = self.0 {
            map.release(bytes);
        }
    }
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
