//! A dump whose head was read, and the order of several.

use std::io;
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::input::{Fault, Input};
use crate::measure::{LoadConfig, Model, Snapshot, SnapshotSource};
use crate::rdb::{HEADER_LEN, Sink, Step, Walker};
use crate::scan::{self, ChecksumState, Head, Piece, ScanOptions};

/// Bytes of a dump that tell it from others of the same moment.
const FINGERPRINTED: usize = 64 << 10;

/// Bytes of the header of an object of KeyDB.
const KEYDB_OBJECT: u64 = 24;

/// A dump whose head was read.
#[derive(Debug)]
pub struct Dump {
    /// The opened file.
    pub input: Input,
    /// Its head.
    pub head: Head,
    /// By what its keys are measured.
    pub model: Model,
    /// The archive that it is in could not be read to its end: others may be missing.
    pub is_of_cut_archive: bool,
    /// Hash of its first bytes.
    fingerprint: [u8; 32],
    /// What tells it from others with the same first bytes, where there are any.
    identity: Option<Identity>,
}

impl Dump {
    /// Reads the head of an opened file.
    ///
    /// # Errors
    /// A file that is no dump, or whose first bytes cannot be decoded.
    pub fn new(mut input: Input, options: &Options) -> Result<Self> {
        let head = loop {
            let (start, is_all) = input.start();
            let len = start.len();
            if len < HEADER_LEN
                && let Some(Fault { reading, why }) = input.start_fault()
            {
                return Err(Error::new(len as u64, reading, ErrorKind::Source(why.clone())));
            }
            let (head, is_cut) = Head::read_start(start)?;
            if is_all || !is_cut {
                break head;
            }
            input.read_start(len.saturating_mul(2));
        };
        let start = input.start().0;
        let fingerprint = *blake3::hash(first_bytes(start, &head)).as_bytes();
        input.forget_start();
        let snapshot = |at_ms, source| Snapshot { at_ms, source };
        let snapshot = options
            .as_of_ms
            .map(|at| snapshot(at, SnapshotSource::AsOf))
            .or_else(|| head.ctime_ms().map(|at| snapshot(at, SnapshotSource::Ctime)))
            .or_else(|| input.modified_ms().map(|at| snapshot(at, SnapshotSource::Mtime)));
        let model = Model {
            server: options.server.version.unwrap_or_else(|| head.server()),
            config: options.server.config.unwrap_or(LoadConfig::DEFAULT),
            allocator: options.server.allocator,
            cluster: options.server.cluster.unwrap_or(false),
            object_bytes: if head.is_keydb() && options.server.version.is_none() { KEYDB_OBJECT } else { Model::OBJECT },
            snapshot,
        };
        Ok(Self { input, head, model, is_of_cut_archive: false, fingerprint, identity: None })
    }

    /// File name without folders.
    pub fn name(&self) -> String {
        self.input.name()
    }

    /// What dumps are sorted by, however they are stored: so their order and names on the command line change nothing.
    fn content_order(&self) -> (Option<i64>, &[u8; 32]) {
        (self.head.ctime_ms(), &self.fingerprint)
    }

    /// What tells the dump from others that begin alike; it is read once more for that.
    fn identity(&self, options: &Options) -> Identity {
        let scan = ScanOptions { checksum: true, ..options.scan };
        let mut windows = self.input.windows(scan.window_bytes);
        let skim = |skim: &mut Skim, piece: &Piece<'_>| drop(piece.walk(skim));
        let mut collect = |(), _| ControlFlow::Continue(());
        let end = scan::scan_windows(&mut *windows, &self.head, scan, &Mutex::default(), || Skim, skim, &mut collect);
        drop(windows);
        if end.is_whole {
            let stored = match (end.checksum, end.fault.as_ref().map(|fault| &fault.detail().kind)) {
                (ChecksumState::Ok, _) => end.computed,
                (_, Some(ErrorKind::Checksum { stored, .. })) => Some(*stored),
                _ => None,
            };
            return Identity::Dump(end.stored_bytes, end.computed, stored);
        }
        let mut hasher = blake3::Hasher::new();
        let mut windows = self.input.windows(scan.window_bytes);
        let mut passed = 0;
        loop {
            let window = windows.next(passed, 0);
            hasher.update(window.bytes);
            passed = window.bytes.len();
            if window.is_last {
                return Identity::Bytes(hasher.count(), *hasher.finalize().as_bytes());
            }
        }
    }
}

/// Passes records.
struct Skim;

impl Sink for Skim {
    const SKIM: bool = true;
}

/// The first bytes of a dump that tell it from others of the same moment. What follows its end is not of them, as it depends on how the dump
/// arrived.
fn first_bytes<'a>(start: &'a [u8], head: &Head) -> &'a [u8] {
    let start = &start[..start.len().min(FINGERPRINTED)];
    let mut walker = Walker::new(start.get(HEADER_LEN..).unwrap_or_default(), HEADER_LEN as u64, &head.format, 0);
    loop {
        match walker.step(&mut Skim) {
            Ok(Step::End) => return start.get(..usize::try_from(walker.offset()).unwrap_or(usize::MAX)).unwrap_or(start),
            Ok(_) => {}
            Err(_) => return start,
        }
    }
}

/// What a dump is, however it is stored and whatever follows it in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// Length of a dump that can be read to its end, the CRC64 of its bytes but the stored one, and that.
    Dump(u64, Option<u64>, Option<u64>),
    /// Length and hash of everything, where nobody knows where the dump ends.
    Bytes(u64, [u8; 32]),
}

/// Puts dumps in the order of their content, and returns the indices of two that are the same.
///
/// Those that begin with the same 64 KiB are read once more, to their end, each of them: so no row of a dump that is given twice gets written. What
/// can be read once only is kept in a temporary file then.
///
/// # Errors
/// What is wrong with the temporary file.
pub fn sort(dumps: &mut [Dump], options: &Options) -> io::Result<Option<(usize, usize)>> {
    dumps.sort_by(|a, b| a.content_order().cmp(&b.content_order()));
    let mut first = 0;
    for alike in dumps.chunk_by_mut(|a, b| a.content_order() == b.content_order()) {
        if alike.len() > 1 {
            for dump in &mut *alike {
                dump.input.keep()?;
                dump.identity = Some(dump.identity(options));
            }
            alike.sort_by_key(|dump| dump.identity);
            if let Some(at) = alike.windows(2).position(|pair| pair[0].identity == pair[1].identity) {
                return Ok(Some((first + at, first + at + 1)));
            }
        }
        first += alike.len();
    }
    Ok(None)
}
