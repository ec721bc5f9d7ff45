//! A finished report: plain values that tables are made of.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::advice::{self, Advice};
use crate::analyse::{Dump, Outcome};
use crate::census::{Census, ClassStats, Counts, FieldCounts, KeyRow, Look, PlaceCounts};
use crate::classify::{Classifier, Merge};
use crate::contract::{Class, Contracts};
use crate::measure::{Encoding, Overhead, SLOTS, TableKeys};
use crate::rdb::{KeyType, ModuleId};
use crate::recover::{Recovered, Recovery};

/// Most classes that are shown; the rest are summed.
const MOST_CLASSES: usize = 10_000;

/// So many rows are read without effort; from there on the smallest classes are summed.
const FEW_CLASSES: usize = 40;

/// Share of keys, and of memory, that the smallest classes stay below together.
const SMALL_SHARE: f64 = 0.01;

/// Name of the sum of the classes that are not shown.
pub const OTHER: &str = "(other)";

/// All figures of a run.
#[derive(Debug)]
pub struct Report {
    /// Sums over all keys.
    pub total: Counts,
    /// What was found in each input, in content order.
    pub outcomes: Vec<Outcome>,
    /// By type and encoding, most memory first.
    pub types: Vec<TypeCounts>,
    /// By type of a module, its version included.
    pub modules: Vec<(ModuleId, Counts)>,
    /// By database.
    pub databases: Vec<(u64, PlaceCounts)>,
    /// Bytes of the servers' tables that hold the keys.
    pub overhead_bytes: u64,
    /// By slot, all of them.
    pub slots: Vec<PlaceCounts>,
    /// Slots over which skew is computed.
    pub population: Population,
    /// By class, most memory first; `(other)` last.
    pub classes: Vec<ReportClass>,
    /// Sum of the squares of memory bytes.
    pub memory_squares: u128,
    /// Keys in the dumps, those that a filter leaves out included.
    pub keys_walked: u64,
    /// The largest keys of each type and those above a limit, most memory first.
    pub big_keys: Vec<BigKey>,
    /// Fields with an expiry of their own.
    pub fields: FieldCounts,
    /// The largest permanent keys all of whose fields expire, with their class.
    pub emptied_keys: Vec<(KeyRow, String)>,
    /// Streams with their class, those with most entries first.
    pub streams: Vec<(KeyRow, String)>,
    /// The largest permanent keys with their class.
    pub permanent_keys: Vec<(KeyRow, String)>,
    /// Values of strings were sampled.
    pub samples_values: bool,
    /// What would save memory.
    pub advice: Vec<Advice>,
    /// What was recovered behind faults, where that was asked for; in none of the figures above.
    pub recovered: Option<RecoveredKeys>,
}

/// Keys that were recovered behind faults.
#[derive(Debug)]
pub struct RecoveredKeys {
    /// Sums over them.
    pub total: Counts,
    /// By class, most memory first; `(other)` last.
    pub classes: Vec<ReportClass>,
    /// What became of the bytes behind the first fault, of each input.
    pub recoveries: Vec<Recovery>,
}

impl RecoveredKeys {
    /// Finishes what was recovered.
    pub fn new(recovered: Recovered, contracts: Option<&Arc<Contracts>>) -> Self {
        let Recovered { mut census, recoveries } = recovered;
        census.discovered.widen();
        let total = census.total();
        let Census { registered, discovered, .. } = census;
        let mut registered = registered_classes(registered, contracts);
        registered.retain(|class| class.stats.counts.keys > 0);
        let classes = shown_classes(registered, discovered.into_classes(), &total);
        Self { total, classes, recoveries }
    }
}

/// The slots that the inputs own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Population {
    /// Every slot of a cluster.
    All,
    /// Those that slot records name.
    Recorded(Vec<u16>),
}

impl Population {
    /// Those that the slot records of the inputs name, else all.
    pub fn of(outcomes: &[Outcome]) -> Self {
        let mut recorded: Vec<u16> = outcomes.iter().flat_map(|outcome| outcome.passed.slots.iter().copied()).collect();
        recorded.sort_unstable();
        recorded.dedup();
        if recorded.is_empty() { Self::All } else { Self::Recorded(recorded) }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::All => usize::from(SLOTS),
            Self::Recorded(slots) => slots.len(),
        }
    }

    /// True without any slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Self::All => Box::new(0..SLOTS),
            Self::Recorded(slots) => Box::new(slots.iter().copied()),
        }
    }
}

/// Keys of one type and encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeCounts {
    /// `core` or `module`.
    pub kind: &'static str,
    /// Name of the type.
    pub name: String,
    /// Encoding.
    pub encoding: Encoding,
    /// Sums.
    pub counts: Counts,
}

/// A class with its figures.
#[derive(Debug)]
pub struct ReportClass {
    /// Name.
    pub name: String,
    /// Pattern of its keys.
    pub pattern: String,
    /// A contract names it.
    pub registered: bool,
    /// Its owner by contract.
    pub owner: Option<String>,
    /// Figures.
    pub stats: ClassStats,
}

/// A big key, looked at twice.
#[derive(Debug)]
pub struct BigKey {
    /// What the census kept of it.
    pub row: KeyRow,
    /// Its class.
    pub class: String,
    /// Why it is listed: names of the limits it is above, and `top`.
    pub rules: Vec<&'static str>,
    /// Pieces that would bring it under the limits; `None` where one element alone is above.
    pub parts: Option<u64>,
    /// Bytes of all its elements.
    pub payload_bytes: Option<u64>,
    /// Bytes of its longest element.
    pub largest_element_bytes: Option<u64>,
}

impl Report {
    /// Finishes a census of `dumps`.
    pub fn new(mut census: Census, dumps: &[Dump], outcomes: Vec<Outcome>, contracts: Option<&Arc<Contracts>>) -> Self {
        census.discovered.widen();
        let samples_values = census.samples_values();
        let total = census.total();
        let mut classifier = Classifier::new(contracts.cloned());
        let big_keys = big_keys(&mut census, &mut classifier);
        let (permanent, emptied, streams) = (census.take_permanent(), census.take_emptied(), census.take_streams());
        let mut with_class = |rows: Vec<KeyRow>| -> Vec<(KeyRow, String)> {
            rows.into_iter()
                .map(|row| {
                    let class = census.class_name(&row.key, &mut classifier);
                    (row, class)
                })
                .collect()
        };
        let (permanent_keys, emptied_keys, streams) = (with_class(permanent), with_class(emptied), with_class(streams));
        let slots = std::mem::take(&mut census.slots).into_counts();
        let overhead_bytes = overhead(&census, &slots, dumps, &outcomes);
        let separators = contracts.map_or(&b":"[..], |contracts| &contracts.separators);
        let mut advice = dumps.first().map_or_else(Vec::new, |dump| {
            let entities = std::mem::take(&mut census.entities);
            advice::hashes(entities, &dump.model, separators, |key| census.class_pattern(key, &mut classifier))
        });
        let Census { types, databases, registered, discovered, memory_squares, fields, .. } = census;
        let modules = types
            .iter()
            .filter_map(|(key_type, _, counts)| match key_type {
                KeyType::Module(id) => Some((*id, *counts)),
                _ => None,
            })
            .collect();
        let classes = shown_classes(registered_classes(registered, contracts), discovered.into_classes(), &total);
        if let Some(dump) = dumps.first() {
            advice.extend(advice::of_classes(&classes, &dump.model, separators));
            advice.sort();
        }
        Self {
            total,
            types: types_by_name(types),
            modules,
            databases: databases.into_iter().collect(),
            overhead_bytes,
            population: Population::of(&outcomes),
            slots,
            classes,
            advice,
            samples_values,
            memory_squares,
            fields,
            emptied_keys,
            streams,
            keys_walked: outcomes.iter().map(|outcome| outcome.passed.keys).sum(),
            big_keys,
            permanent_keys,
            outcomes,
            recovered: None,
        }
    }

    /// True where a dump was damaged.
    pub fn is_partial(&self) -> bool {
        self.outcomes.iter().any(Outcome::is_partial)
    }

    /// Bytes of the dumps that were read.
    pub fn bytes(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.end.bytes).sum()
    }

    /// Bytes of the dumps that belong to no record.
    pub fn framing_bytes(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.passed.framing_bytes).sum()
    }
}

/// What keys cause in `used_memory` beside the figures of `MEMORY USAGE`: the tables that hold them, and what values take
/// uncounted.
fn overhead(census: &Census, slots: &[PlaceCounts], dumps: &[Dump], outcomes: &[Outcome]) -> u64 {
    let uncounted = census.tables.values().fold(0i64, |sum, held| sum.saturating_add(held.uncounted_bytes));
    tables(census, slots, dumps, outcomes).saturating_add_signed(uncounted)
}

/// Tables of each input's databases, or, where each slot has its own, of the slots.
fn tables(census: &Census, slots: &[PlaceCounts], dumps: &[Dump], outcomes: &[Outcome]) -> u64 {
    let mut sum = 0u64;
    let mut slot_tables = None;
    for (input, (dump, outcome)) in (1..).zip(dumps.iter().zip(outcomes)) {
        let overhead = Overhead::new(&dump.model, dump.model.cluster || !outcome.passed.slots.is_empty());
        let databases = census.tables.range((input, 0)..=(input, u64::MAX));
        if overhead.has_slot_tables() {
            let mut node = TableKeys::default();
            databases.for_each(|(_, held)| node.add(held));
            sum = sum.saturating_add(overhead.of_node(node));
            slot_tables = Some(overhead);
            continue;
        }
        sum = databases.fold(sum, |sum, (_, held)| sum.saturating_add(overhead.tables(*held)));
    }
    // Nodes of a cluster share no slot, and all run the same version as far as anybody can tell.
    let Some(overhead) = slot_tables else { return sum };
    let of_slot = |counts: &PlaceCounts| TableKeys {
        keys: counts.keys - counts.expired_keys,
        expires: counts.volatile_keys(),
        uncounted_bytes: 0,
    };
    slots.iter().fold(sum, |sum, counts| sum.saturating_add(overhead.tables(of_slot(counts))))
}

/// Sums types of one name, which modules of several versions have, and sorts them: most memory first.
fn types_by_name(types: Vec<(KeyType, Encoding, Counts)>) -> Vec<TypeCounts> {
    let mut by_name: BTreeMap<(String, &'static str), TypeCounts> = BTreeMap::new();
    for (key_type, encoding, counts) in types {
        let (name, kind) = (key_type.to_string(), key_type.kind());
        let empty = TypeCounts { kind, name: name.clone(), encoding, counts: Counts::default() };
        by_name.entry((name, encoding.name())).or_insert(empty).counts.merge(&counts);
    }
    // The sort is stable: by name among equals.
    let mut types: Vec<TypeCounts> = by_name.into_values().collect();
    types.sort_by_key(|t| (Reverse(t.counts.memory_bytes), Reverse(t.counts.keys)));
    types
}

/// The contracts' classes with what was found of them, those without keys included.
fn registered_classes(stats: Vec<ClassStats>, contracts: Option<&Arc<Contracts>>) -> Vec<ReportClass> {
    let classes = contracts.map_or(&[][..], |contracts| &contracts.classes);
    let class = |(class, stats): (&Class, ClassStats)| ReportClass {
        name: class.name.clone(),
        pattern: class.pattern.clone(),
        registered: true,
        owner: class.owner.clone(),
        stats,
    };
    classes.iter().zip(stats).map(class).collect()
}

/// Sorts classes, and sums the discovered ones at the end of the list: above [`MOST_CLASSES`] all, above [`FEW_CLASSES`] the
/// smallest, as long as together they stay below [`SMALL_SHARE`] of keys and of memory.
fn shown_classes(registered: Vec<ReportClass>, discovered: Vec<(String, ClassStats)>, total: &Counts) -> Vec<ReportClass> {
    let shape =
        |(name, stats): (String, ClassStats)| ReportClass { pattern: name.clone(), name, registered: false, owner: None, stats };
    let mut discovered: Vec<ReportClass> = discovered.into_iter().map(shape).collect();
    discovered.sort_by(by_memory);
    let mut shown = discovered.len();
    let (mut keys, mut memory) = (0, 0);
    while shown > 0 && registered.len() + shown >= FEW_CLASSES {
        let counts = &discovered[shown - 1].stats.counts;
        keys += counts.keys;
        memory += counts.memory_bytes;
        let small = |part: u64, whole: u64| (part as f64) < whole as f64 * SMALL_SHARE;
        if registered.len() + shown <= MOST_CLASSES && !(small(keys, total.keys) && small(memory, total.memory_bytes)) {
            break;
        }
        shown -= 1;
    }
    // A single class has a better name than "other".
    let rest = if discovered.len() - shown > 1 { discovered.split_off(shown) } else { Vec::new() };
    let mut classes = registered;
    classes.append(&mut discovered);
    classes.sort_by(by_memory);
    if !rest.is_empty() {
        let sum = rest.into_iter().fold(ClassStats::default(), |mut sum, class| {
            sum.merge(class.stats);
            sum
        });
        classes.push(ReportClass { pattern: String::new(), ..shape((OTHER.into(), sum)) });
    }
    classes
}

/// Most memory first, then most keys, then by name.
fn by_memory(a: &ReportClass, b: &ReportClass) -> Ordering {
    let order = |class: &ReportClass| (Reverse(class.stats.counts.memory_bytes), Reverse(class.stats.counts.keys));
    order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
}

/// Input, database and bytes of a key.
type Listed = (u32, u64, Box<[u8]>);

fn big_keys(census: &mut Census, classifier: &mut Classifier) -> Vec<BigKey> {
    let limits = census.limits();
    // By place: one row for each key, whatever lists it is on.
    let mut listed: HashMap<Listed, (KeyRow, bool)> = HashMap::new();
    let place = |row: &KeyRow| -> Listed { (row.input, row.offset, row.key.clone()) };
    for row in census.take_over() {
        listed.insert(place(&row), (row, false));
    }
    for row in census.take_top() {
        listed.entry(place(&row)).or_insert((row, true)).1 = true;
    }
    let mut rows: Vec<(KeyRow, bool)> = listed.into_values().collect();
    for (row, _) in &mut rows {
        row.rank_by = row.memory_bytes.unwrap_or(0);
    }
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    rows.into_iter()
        .map(|(row, top)| {
            let Look { payload_bytes, largest_element_bytes } = census.looked_at(&row);
            let limits = limits.of(classifier.classify(&row.key).registered);
            let mut rules = limits.rules(&row);
            rules.extend(top.then_some("top"));
            let (class, parts) = (census.class_name(&row.key, classifier), limits.parts(&row));
            BigKey { class, rules, parts, payload_bytes, largest_element_bytes, row }
        })
        .collect()
}
