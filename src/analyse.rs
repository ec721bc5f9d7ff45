//! Joins the stages: opened dumps in, a census and what is to be said of each dump out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::census::{Census, ClassLimits, ListLimits};
use crate::classify::Classifier;
use crate::contract::Contracts;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::input::{Change, Input};
use crate::key_text;
use crate::measure::{Allocator, Fact, FactSink, LoadConfig, Measure, Model, SLOTS, Server, Snapshot, SnapshotSource};
use crate::rdb::{Frame, HEADER_LEN, ModuleId, Str, UNKNOWN_DB};
use crate::scan::{self, Head, Piece, ScanEnd, ScanOptions, Stretch};

/// Most faults inside values that are kept of one dump, the first ones.
const MOST_FAULTS: usize = 10;

/// Most function libraries that are kept of one dump.
const MOST_LIBRARIES: usize = 1000;

/// Longest function library whose first line is looked at.
const MOST_LIBRARY_BYTES: u64 = 64 << 20;

/// Bytes of the header of an object of KeyDB.
const KEYDB_OBJECT: u64 = 24;

/// What changes the result of an analysis, and how it is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Judge expiries against this moment (Unix milliseconds) instead of the dump's own.
    pub as_of_ms: Option<i64>,
    /// What is agreed on keys.
    pub contracts: Option<Arc<Contracts>>,
    /// Which keys are looked at.
    pub filter: Filter,
    /// Lengths of lists.
    pub lists: ListLimits,
    /// How dumps are cut and checked.
    pub scan: ScanOptions,
    /// The server that is taken to load the dumps.
    pub server: ServerOptions,
}

/// What is known of the server that loads the dumps; the dump, or the default, tells the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Product and version instead of those of the dump.
    pub version: Option<Server>,
    /// Its allocator.
    pub allocator: Option<Allocator>,
    /// Its limits.
    pub config: Option<LoadConfig>,
    /// Whether it is a cluster's.
    pub cluster: Option<bool>,
}

impl ServerOptions {
    /// What this names, and what `other` names where this names nothing.
    pub fn or(self, other: Self) -> Self {
        Self {
            version: self.version.or(other.version),
            allocator: self.allocator.or(other.allocator),
            config: self.config.or(other.config),
            cluster: self.cluster.or(other.cluster),
        }
    }
}

/// A dump whose head was read.
#[derive(Debug)]
pub struct Dump {
    /// The opened file.
    pub input: Input,
    /// Its head.
    pub head: Head,
    /// By what its keys are measured.
    pub model: Model,
}

impl Dump {
    /// Reads the head of an opened file.
    ///
    /// # Errors
    /// A file that is no dump.
    pub fn new(input: Input, options: &Options) -> Result<Self> {
        let head = Head::read(input.bytes())?;
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
        Ok(Self { input, head, model })
    }

    /// File name without folders.
    pub fn name(&self) -> String {
        let path = self.input.path();
        // Escaped as key names are: a terminal takes no orders from a file name.
        key_text::escape(path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes()).into_owned()
    }

    /// What dumps are sorted by, so that their order and names on the command line change nothing.
    fn content_order(&self) -> (Option<i64>, usize, &[u8]) {
        let bytes = self.input.bytes();
        let tail = bytes.last_chunk::<8>().map_or(bytes, |tail| &tail[..]);
        // Without a checksum at its end only the content tells dumps of one moment and size apart.
        let tell = if tail.iter().all(|&b| b == 0) { bytes } else { tail };
        (self.head.ctime_ms(), bytes.len(), tell)
    }
}

/// Puts dumps in the order of their content.
pub fn sort(dumps: &mut [Dump]) {
    dumps.sort_by(|a, b| a.content_order().cmp(&b.content_order()));
}

/// Indices of two dumps that are the same bytes, among sorted ones.
pub fn twins(dumps: &[Dump]) -> Option<(usize, usize)> {
    (1..dumps.len()).map(|at| (at - 1, at)).find(|&(a, b)| {
        let (a, b) = (&dumps[a], &dumps[b]);
        a.content_order() == b.content_order() && a.input.bytes() == b.input.bytes()
    })
}

/// Sums over pieces of one dump, and the faults found in them.
#[derive(Debug, Clone, Default)]
pub struct Passed {
    /// Keys.
    pub keys: u64,
    /// Bytes of their records.
    pub serialized_bytes: u64,
    /// Bytes of everything else, the header included.
    pub framing_bytes: u64,
    /// Function libraries: how many, and the first of them.
    pub functions: u64,
    /// The first function libraries.
    pub libraries: Vec<Library>,
    /// Data of modules that belongs to no key, by module type: records and their bytes.
    pub module_aux: BTreeMap<ModuleId, (u64, u64)>,
    /// Slots that slot records name.
    pub slots: BTreeSet<u16>,
    /// Values damaged inside: how many, and the first of them.
    pub value_faults: Faults,
    /// Values sized from a header that cannot be true.
    pub doubtful_sizes: Faults,
}

/// A function library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its name, where the first line of its code gives one.
    pub name: Option<Vec<u8>>,
    /// Its engine, likewise.
    pub engine: Option<Vec<u8>>,
    /// Bytes of its code.
    pub bytes: u64,
}

impl Library {
    fn new(code: Str<'_>) -> Self {
        let mut scratch = Vec::new();
        // A library that cannot be decompressed has no name to tell.
        let text = code.text(&mut scratch, MOST_LIBRARY_BYTES).unwrap_or_default();
        let first = text.split(|&b| b == b'\n').next().unwrap_or_default();
        // `#!engine name=library`, as FUNCTION LOAD wants it.
        let mut words =
            first.strip_prefix(b"#!").unwrap_or_default().split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let engine = words.next().map(<[u8]>::to_vec);
        let name = words.find_map(|word| word.strip_prefix(b"name=")).map(<[u8]>::to_vec);
        Self { name, engine, bytes: code.len() }
    }
}

/// Counted faults, the first few of them kept.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// How many.
    pub count: u64,
    /// The first, in file order.
    pub first: Vec<Error>,
}

impl Faults {
    fn push(&mut self, fault: Error) {
        self.count += 1;
        if self.first.len() < MOST_FAULTS {
            self.first.push(fault);
        }
    }

    fn append(&mut self, later: Self) {
        self.count += later.count;
        self.first.extend(later.first);
        self.first.truncate(MOST_FAULTS);
    }
}

impl Passed {
    /// Adds what a later piece of the same dump gave.
    fn append(&mut self, later: Self) {
        self.keys += later.keys;
        self.serialized_bytes += later.serialized_bytes;
        self.framing_bytes += later.framing_bytes;
        self.functions += later.functions;
        self.libraries.extend(later.libraries);
        self.libraries.truncate(MOST_LIBRARIES);
        for (id, (records, bytes)) in later.module_aux {
            let sum = self.module_aux.entry(id).or_default();
            *sum = (sum.0 + records, sum.1 + bytes);
        }
        self.slots.extend(later.slots);
        self.value_faults.append(later.value_faults);
        self.doubtful_sizes.append(later.doubtful_sizes);
    }

    fn frame(&mut self, frame: Frame<'_>, bytes: u64) {
        self.framing_bytes += bytes;
        match frame {
            Frame::Function { code } => {
                self.functions += 1;
                if self.libraries.len() < MOST_LIBRARIES {
                    self.libraries.push(Library::new(code));
                }
            }
            Frame::ModuleAux(id) => {
                let sum = self.module_aux.entry(id).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes);
            }
            Frame::SlotInfo { slot, .. } => self.slots.extend(u16::try_from(slot).ok().filter(|slot| *slot < SLOTS)),
            // Valkey writes slot records as AUX fields: slot, keys, keys with an expiry, keys with field expiries.
            Frame::Aux { name: Str::Raw(b"slot-info"), value: Str::Raw(value) } => {
                let slot =
                    value.split(|&b| b == b',').next().and_then(|slot| std::str::from_utf8(slot).ok()?.parse::<u16>().ok());
                self.slots.extend(slot.filter(|slot| *slot < SLOTS));
            }
            _ => {}
        }
    }
}

/// What an analysis says of one dump.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Sums and faults.
    pub passed: Passed,
    /// How the scan ended.
    pub end: ScanEnd,
    /// Bytes of the file behind the end of the dump.
    pub trailing_bytes: u64,
    /// The file changed while it was read.
    pub change: Option<Change>,
}

impl Outcome {
    /// True where the figures may not be all there is, or not all true.
    pub fn is_partial(&self) -> bool {
        self.end.fault.is_some() || self.passed.value_faults.count > 0 || self.change.is_some()
    }
}

/// Pairs of inputs whose slot records name the same slots, and how many. Each input with the first such other only.
pub fn shared_slots(outcomes: &[Outcome]) -> Vec<(usize, usize, usize)> {
    let slots = |at: usize| &outcomes[at].passed.slots;
    (1..outcomes.len())
        .filter_map(|second| {
            let shared = (0..second).map(|first| (first, second, slots(first).intersection(slots(second)).count()));
            shared.into_iter().find(|(_, _, n)| *n > 0)
        })
        .collect()
}

/// What a piece adds to the progress of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance {
    /// Bytes passed.
    pub bytes: u64,
    /// Keys passed.
    pub keys: u64,
}

/// Where the facts of one piece go.
pub trait PieceSink: Send {
    /// Every packed value is opened.
    const DEEP: bool = false;

    /// Memory is modelled; see [`FactSink::MEMORY`].
    const MEMORY: bool = true;

    /// Whether a packed value of `len` plain bytes is opened.
    fn opens(&self, _len: u64) -> bool {
        false
    }

    /// A key.
    fn fact(&mut self, fact: &Fact<'_>);
}

/// Walks one dump on all threads of the rayon pool: facts go to workers, which are made with `new_worker` and kept in `workers` for the next
/// dump; `finish` takes what a worker has to say of each piece, and `collect` gets that in file order.
pub fn walk_dump<W: PieceSink, R: Send>(
    dump: &Dump,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    collect: impl FnMut(R, Advance) -> ControlFlow<()> + Send,
) -> Outcome {
    walk_part(dump, None, options, workers, new_worker, finish, collect)
}

/// Does what [`walk_dump`] does with the keys of a stretch that was recovered behind a fault.
pub fn walk_stretch<W: PieceSink, R: Send>(
    dump: &Dump,
    stretch: &Stretch,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    collect: impl FnMut(R, Advance) -> ControlFlow<()> + Send,
) -> Passed {
    walk_part(dump, Some(stretch), options, workers, new_worker, finish, collect).passed
}

/// Walks the records of a whole dump, or of a stretch of it.
fn walk_part<W: PieceSink, R: Send>(
    dump: &Dump,
    stretch: Option<&Stretch>,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    mut collect: impl FnMut(R, Advance) -> ControlFlow<()> + Send,
) -> Outcome {
    let all = dump.input.bytes();
    let (bytes, from, framing_bytes) = match stretch {
        None => (all, (HEADER_LEN as u64, 0), HEADER_LEN as u64),
        Some(Stretch { bytes, .. }) => {
            let end = usize::try_from(bytes.end).unwrap_or(usize::MAX).min(all.len());
            (&all[..end], (bytes.start, UNKNOWN_DB), 0)
        }
    };
    let scan = ScanOptions { checksum: options.scan.checksum && stretch.is_none(), ..options.scan };
    let mut passed = Passed { framing_bytes, ..Passed::default() };
    let work = |worker: &mut W, piece: &Piece<'_>| {
        let (_, framing_bytes) = piece.plain_len();
        let passed = Passed { framing_bytes, ..Passed::default() };
        let mut sink = Measure::new(&dump.model, PieceFacts { worker, passed });
        // A scan hands out pieces that it has walked; a fault that only a second look finds is kept with those inside values.
        if let Err(fault) = piece.walk(&mut sink) {
            sink.facts.passed.value_faults.push(fault);
        }
        let PieceFacts { worker, passed } = sink.facts;
        (finish(worker), passed)
    };
    let end = scan::scan_from(bytes, &dump.head, from, scan, workers, new_worker, work, |(result, piece), bytes| {
        let advance = Advance { bytes, keys: piece.keys };
        passed.append(piece);
        collect(result, advance)
    });
    let trailing_bytes = trailing_bytes(dump, &end);
    Outcome { passed, end, trailing_bytes, change: dump.input.change() }
}

/// Bytes of the file behind the end of the dump, where that was reached.
pub fn trailing_bytes(dump: &Dump, end: &ScanEnd) -> u64 {
    if end.is_whole() { (dump.input.bytes().len() as u64).saturating_sub(end.stored_bytes) } else { 0 }
}

/// Adds all keys of `dumps`, which must be sorted, to one census; `progress` is told of each piece that was passed.
pub fn census(dumps: &[Dump], options: &Options, progress: impl Fn(Advance) + Sync) -> (Census, Vec<Outcome>) {
    let mut whole = empty_census(options);
    let outcomes = (1..).zip(dumps).map(|(input, dump)| add_keys(&mut whole, (input, dump), None, options, &progress)).collect();
    whole.settle();
    (whole, outcomes)
}

/// A census of no keys.
pub(crate) fn empty_census(options: &Options) -> Census {
    Census::new(options.lists, Arc::new(ClassLimits::new(options.contracts.as_deref())))
}

/// Adds the keys of a dump and its ordinal, or of a stretch of it, to a census.
pub(crate) fn add_keys(
    whole: &mut Census,
    (input, dump): (u32, &Dump),
    stretch: Option<&Stretch>,
    options: &Options,
    progress: &(impl Fn(Advance) + Sync),
) -> Outcome {
    let opens_above = whole.limits().smallest_member();
    let workers = Mutex::new(Vec::new());
    // What lists already hold spares the pieces to come much.
    let next = Mutex::new(whole.successor(input));
    let fresh = || next.lock().unwrap_or_else(PoisonError::into_inner).successor(input);
    let new_worker = || CensusWorker {
        census: fresh(),
        classifier: Classifier::new(options.contracts.clone()),
        filter: &options.filter,
        opens_above,
    };
    walk_part(
        dump,
        stretch,
        options,
        &workers,
        new_worker,
        |worker| std::mem::replace(&mut worker.census, fresh()),
        |census, advance| {
            progress(advance);
            whole.merge(census);
            *next.lock().unwrap_or_else(PoisonError::into_inner) = whole.successor(input);
            ControlFlow::Continue(())
        },
    )
}

struct CensusWorker<'o> {
    census: Census,
    classifier: Classifier,
    filter: &'o Filter,
    opens_above: u64,
}

impl PieceSink for CensusWorker<'_> {
    fn opens(&self, len: u64) -> bool {
        len > self.opens_above
    }

    #[inline]
    fn fact(&mut self, fact: &Fact<'_>) {
        let Self { census, classifier, filter, .. } = self;
        if let Some(class) = filter.admit(classifier, fact, false) {
            census.add(fact, class);
        }
    }
}

struct PieceFacts<'w, W> {
    worker: &'w mut W,
    passed: Passed,
}

impl<W: PieceSink> FactSink for PieceFacts<'_, W> {
    const DEEP: bool = W::DEEP;
    const MEMORY: bool = W::MEMORY;

    fn opens(&self, len: u64) -> bool {
        self.worker.opens(len)
    }

    #[inline]
    fn fact(&mut self, fact: &Fact<'_>) {
        self.passed.keys += 1;
        self.passed.serialized_bytes += fact.serialized_bytes;
        self.worker.fact(fact);
    }

    fn frame(&mut self, frame: Frame<'_>, bytes: u64) {
        self.passed.frame(frame, bytes);
    }

    fn value_fault(&mut self, fault: Error) {
        self.passed.value_faults.push(fault);
    }

    fn doubtful_size(&mut self, fault: Error) {
        self.passed.doubtful_sizes.push(fault);
    }
}
