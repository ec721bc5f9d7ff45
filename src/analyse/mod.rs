//! Joins the stages: opened dumps in, a census and what is to be said of each dump out.

mod dump;

pub use dump::{Dump, sort};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::census::{Census, ClassLimits, ListLimits};
use crate::classify::Classifier;
use crate::contract::Contracts;
use crate::error::Error;
use crate::filter::Filter;
use crate::findings::{Inspector, Policy};
use crate::input::{Capture, Change, MARK_LEN};
use crate::look;
use crate::measure::{Allocator, Fact, FactSink, LoadConfig, Measure, SLOTS, Server};
use crate::rdb::{Frame, HEADER_LEN, ModuleId, Str, UNKNOWN_DB};
use crate::scan::{self, Collect, Piece, ScanEnd, ScanOptions, Stretch};
use crate::values::Part;

/// Most faults inside values that are kept of one dump, the first ones.
const MOST_FAULTS: usize = 10;

/// Most function libraries that are kept of one dump.
const MOST_LIBRARIES: usize = 1000;

/// Longest function library whose first line is looked at.
const MOST_LIBRARY_BYTES: u64 = 64 << 20;

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
    /// What keys are held against.
    pub policy: Option<Arc<Policy>>,
    /// Whether values of strings are sampled.
    pub values: bool,
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
    /// See [`Dump::is_of_cut_archive`].
    pub is_of_cut_archive: bool,
}

impl Outcome {
    /// True where the figures may not be all there is, or not all true.
    pub fn is_partial(&self) -> bool {
        self.end.fault.is_some() || self.passed.value_faults.count > 0 || self.change.is_some() || self.is_of_cut_archive
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

    /// What would save memory is asked of keys; see [`FactSink::ADVICE`].
    const ADVICE: bool = Self::MEMORY;

    /// Whether a packed value of `len` plain bytes is opened.
    fn opens(&self, _len: u64) -> bool {
        false
    }

    /// A key.
    fn fact(&mut self, fact: &Fact<'_>);
}

/// Takes what comes of the walk over a dump.
pub trait CollectPieces<R>: Send {
    /// What came of a piece, in file order; may end the walk.
    fn piece(&mut self, result: R, advance: Advance) -> ControlFlow<()>;

    /// See [`Collect::window`].
    fn window(&mut self, _bytes: &[u8], _base: u64) {}
}

impl<R, F: FnMut(R, Advance) -> ControlFlow<()> + Send> CollectPieces<R> for F {
    fn piece(&mut self, result: R, advance: Advance) -> ControlFlow<()> {
        self(result, advance)
    }
}

/// Adds up what is known of every piece, and hands the rest on.
struct Passing<'p, C> {
    dump: &'p Dump,
    passed: Passed,
    /// Stored bytes that a stream was read to when progress was told of last.
    told: u64,
    collect: &'p mut C,
}

impl<R, C: CollectPieces<R>> Collect<(R, Passed)> for Passing<'_, C> {
    fn piece(&mut self, (result, piece): (R, Passed), bytes: u64) -> ControlFlow<()> {
        let keys = piece.keys;
        self.passed.append(piece);
        let bytes = self.dump.input.advance(bytes, &mut self.told);
        self.collect.piece(result, Advance { bytes, keys })
    }

    fn window(&mut self, bytes: &[u8], base: u64) {
        self.collect.window(bytes, base);
    }
}

/// Walks one dump on all threads of the rayon pool: facts go to workers, which are made with `new_worker` and kept in `workers`
/// for the next dump; `finish` takes what a worker has to say of each piece, and `collect` gets that in file order.
pub fn walk_dump<W: PieceSink, R: Send>(
    dump: &Dump,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    mut collect: impl FnMut(R, Advance) -> ControlFlow<()> + Send,
) -> Outcome {
    walk_part(dump, None, options, workers, new_worker, finish, &mut collect)
}

/// Does what [`walk_dump`] does with the keys of a stretch that was recovered behind a fault; of a stream there is none.
pub fn walk_stretch<W: PieceSink, R: Send>(
    dump: &Dump,
    stretch: &Stretch,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    mut collect: impl FnMut(R, Advance) -> ControlFlow<()> + Send,
) -> Passed {
    walk_part(dump, Some(stretch), options, workers, new_worker, finish, &mut collect).passed
}

/// Walks the records of a whole dump, or of a stretch of it.
fn walk_part<W: PieceSink, R: Send>(
    dump: &Dump,
    stretch: Option<&Stretch>,
    options: &Options,
    workers: &Mutex<Vec<W>>,
    new_worker: impl Fn() -> W + Sync,
    finish: impl Fn(&mut W) -> R + Sync,
    collect: &mut impl CollectPieces<R>,
) -> Outcome {
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
    let framing_bytes = if stretch.is_some() { 0 } else { HEADER_LEN as u64 };
    let passed = Passed { framing_bytes, ..Passed::default() };
    let mut collect = Passing { dump, passed, told: 0, collect };
    let end = match stretch {
        None => {
            let mut windows = dump.input.windows(options.scan.window_bytes);
            scan::scan_windows(&mut *windows, &dump.head, options.scan, workers, new_worker, work, &mut collect)
        }
        Some(Stretch { bytes: range, .. }) => {
            let bytes = dump.input.whole().unwrap_or_default();
            let bytes = &bytes[..usize::try_from(range.end).unwrap_or(usize::MAX).min(bytes.len())];
            let scan = ScanOptions { checksum: false, ..options.scan };
            scan::scan_stretch(bytes, &dump.head, (range.start, UNKNOWN_DB), scan, workers, new_worker, work, &mut collect)
        }
    };
    Outcome {
        passed: collect.passed,
        trailing_bytes: trailing_bytes(dump, &end),
        end,
        change: dump.input.change(),
        is_of_cut_archive: dump.is_of_cut_archive,
    }
}

/// Bytes of the file behind the end of the dump, where that was reached; the mark that ends a dump in a replication stream is
/// part of its transfer.
pub fn trailing_bytes(dump: &Dump, end: &ScanEnd) -> u64 {
    let mark = if has_mark(dump, end) == Some(true) { MARK_LEN as u64 } else { 0 };
    end.rest.bytes - mark
}

/// Whether the mark that a replication stream has announced follows the dump; `None` where none was, or the end was not reached.
pub fn has_mark(dump: &Dump, end: &ScanEnd) -> Option<bool> {
    match dump.input.capture() {
        Some(Capture::Mark(mark)) if end.is_whole => Some(end.rest.first.starts_with(&mark)),
        _ => None,
    }
}

/// Indices of dumps in the order in which they are read best: those in one archive one behind the other.
fn reading_order(dumps: &[Dump]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..dumps.len()).collect();
    order.sort_by_key(|&at| dumps[at].input.place());
    order
}

/// Adds all keys of `dumps`, which must be sorted, to one census; `progress` is told of each piece that was passed.
pub fn census(dumps: &[Dump], options: &Options, progress: impl Fn(Advance) + Sync) -> (Census, Vec<Outcome>) {
    let mut outcomes: Vec<Option<Outcome>> = dumps.iter().map(|_| None).collect();
    let inspector = options.policy.clone().map(Inspector::new);
    let mut whole = empty_census(options).inspected(inspector).sampling_values(options.values);
    for at in reading_order(dumps) {
        outcomes[at] = Some(add_keys(&mut whole, (at as u32 + 1, &dumps[at]), None, options, &progress));
    }
    whole.settle();
    (whole, outcomes.into_iter().flatten().collect())
}

/// Merges what comes of pieces into the census.
struct CensusPieces<'c, P> {
    whole: &'c mut Census,
    /// What the pieces to come begin with.
    next: &'c Mutex<Census>,
    input: u32,
    dump: &'c Dump,
    progress: &'c P,
}

impl<P: Fn(Advance) + Sync> CollectPieces<Census> for CensusPieces<'_, P> {
    fn piece(&mut self, census: Census, advance: Advance) -> ControlFlow<()> {
        (self.progress)(advance);
        self.whole.merge(census);
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = self.whole.successor(self.input);
        ControlFlow::Continue(())
    }

    fn window(&mut self, bytes: &[u8], base: u64) {
        let Dump { head, model, .. } = self.dump;
        self.whole.look(self.input, |row| look::at(row, bytes, base, &head.format, model));
        self.whole.look_at_values(&Part { input: self.input, bytes, base, format: &head.format });
    }
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
        filter: options.filter.active(),
        opens_above,
    };
    let finish = |worker: &mut CensusWorker<'_>| std::mem::replace(&mut worker.census, fresh());
    let mut collect = CensusPieces { whole, next: &next, input, dump, progress };
    walk_part(dump, stretch, options, &workers, new_worker, finish, &mut collect)
}

struct CensusWorker<'o> {
    census: Census,
    classifier: Classifier,
    filter: Option<&'o Filter>,
    opens_above: u64,
}

impl PieceSink for CensusWorker<'_> {
    fn opens(&self, len: u64) -> bool {
        len > self.opens_above
    }

    #[inline]
    fn fact(&mut self, fact: &Fact<'_>) {
        let Self { census, classifier, filter, .. } = self;
        let class = match filter {
            None => Some(classifier.classify(fact.key)),
            Some(filter) => filter.admit(classifier, fact),
        };
        if let Some(class) = class {
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
    const ADVICE: bool = W::ADVICE;

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
