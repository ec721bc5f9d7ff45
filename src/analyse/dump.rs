//! A dump whose head was read, and the order of several.

use super::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::input::{Fault, Input};
use crate::measure::{LoadConfig, Model, Snapshot, SnapshotSource};
use crate::rdb::HEADER_LEN;
use crate::scan::{Head, ScanEnd};

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
    /// Hash of its first bytes.
    fingerprint: [u8; 32],
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
        let fingerprint = *blake3::hash(&start[..start.len().min(FINGERPRINTED)]).as_bytes();
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
        Ok(Self { input, head, model, fingerprint })
    }

    /// File name without folders.
    pub fn name(&self) -> String {
        self.input.name()
    }

    /// What dumps are sorted by, however they are stored: so their order and names on the command line change nothing.
    fn content_order(&self) -> (Option<i64>, &[u8; 32]) {
        (self.head.ctime_ms(), &self.fingerprint)
    }

    /// Length and hash of the whole dump; a stream is decoded once more for them. `None` for what can be read once only.
    fn content_hash(&self, options: &Options) -> Option<(u64, [u8; 32])> {
        if self.input.is_once() {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        let mut windows = self.input.windows(options.scan.window_bytes);
        let mut passed = 0;
        loop {
            let window = windows.next(passed, 0);
            hasher.update(window.bytes);
            passed = window.bytes.len();
            if window.is_last {
                return Some((hasher.count(), *hasher.finalize().as_bytes()));
            }
        }
    }
}

/// A dump, and what tells it from others that begin alike: its length first, which is known of a mapped one.
struct Known {
    dump: Dump,
    len: Option<u64>,
    hash: Option<[u8; 32]>,
}

impl Known {
    fn new(dump: Dump) -> Self {
        let len = dump.input.whole().map(|bytes| bytes.len() as u64);
        Self { dump, len, hash: None }
    }

    fn look(&mut self, options: &Options) {
        if let Some((len, hash)) = self.dump.content_hash(options) {
            (self.len, self.hash) = (Some(len), Some(hash));
        }
    }

    /// What cannot be known comes last.
    fn order(&self) -> impl Ord + use<> {
        (self.len.is_none(), self.len, self.hash)
    }
}

/// Puts dumps in the order of their content, and returns the indices of two that are the same bytes.
///
/// Of dumps that begin with the same 64 KiB more is looked at. The one that can be read once only is the last of them, as nothing
/// can be known of it; see [`scanned_twins`].
pub fn sort(dumps: &mut Vec<Dump>, options: &Options) -> Option<(usize, usize)> {
    let mut known: Vec<Known> = dumps.drain(..).map(Known::new).collect();
    known.sort_by(|a, b| a.dump.content_order().cmp(&b.dump.content_order()));
    for alike in known.chunk_by_mut(|a, b| a.dump.content_order() == b.dump.content_order()) {
        if alike.len() > 1 {
            alike.iter_mut().filter(|known| known.len.is_none()).for_each(|known| known.look(options));
            alike.sort_by_key(Known::order);
            for same in alike.chunk_by_mut(|a, b| a.len == b.len) {
                if same.len() > 1 {
                    same.iter_mut().filter(|known| known.hash.is_none()).for_each(|known| known.look(options));
                    same.sort_by_key(Known::order);
                }
            }
        }
    }
    let same = |at: &usize| known[*at].hash.is_some() && known[*at].order() == known[at - 1].order();
    let twins = (1..known.len()).find(same).map(|at| (at - 1, at));
    dumps.extend(known.into_iter().map(|known| known.dump));
    twins
}

/// Indices of two dumps that have turned out to be the same once they were scanned: one could be read once only, or more than the
/// dump stands in one of the files.
pub fn scanned_twins(dumps: &[Dump], ends: &[&ScanEnd]) -> Option<(usize, usize)> {
    let told = |at: usize| (dumps[at].content_order(), ends[at].bytes, ends[at].computed, ends[at].is_whole);
    let tells = |a: usize, b: usize| ends[a].computed.is_some() || dumps[a].input.is_once() || dumps[b].input.is_once();
    // Those that begin alike stand together.
    (1..dumps.len()).find_map(|second| {
        let alike = (0..second).rev().take_while(|&first| dumps[first].content_order() == dumps[second].content_order());
        alike.into_iter().find(|&first| tells(first, second) && told(first) == told(second)).map(|first| (first, second))
    })
}
