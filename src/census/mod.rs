//! The one aggregate: add a fact, merge two censuses. Merging is associative and commutative.

mod class;
mod counts;
mod entities;
mod histogram;
mod looks;
mod savings;
mod slots;
mod top;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

pub use class::{ClassStats, KeysByType, SmallestKey, TTL_BUCKETS, TtlBucket};
pub use counts::{Counts, PlaceCounts};
pub use entities::{Entities, Entity, Figures};
pub use histogram::Histogram;
pub use looks::Look;
pub use savings::{Fallbacks, Savings};
pub use slots::Slots;
pub use top::{KeyRow, TopKeys};

use crate::classify::{Class, Classifier, Discovery, Merge};
use crate::contract::{self, Contracts, Limits};
use crate::findings::Inspector;
use crate::measure::{Encoding, Fact, FieldExpiry, Lifetime, TableKeys};
use crate::rdb::KeyType;
use crate::values::{self, Judge, Sampled};

/// Limits above which a key is big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BigLimits {
    /// Bytes of a string value.
    pub string_bytes: u64,
    /// Bytes of one element.
    pub member_bytes: u64,
    /// Elements.
    pub elements: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
}

impl Default for BigLimits {
    /// A string or element of 10KB, 5000 elements, 1mb.
    fn default() -> Self {
        Self { string_bytes: 10 << 10, member_bytes: 10 << 10, elements: 5000, memory_bytes: 1 << 20 }
    }
}

/// What the census keeps of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// Keys for each type, by memory and by elements.
    pub top: usize,
    /// Keys above a limit.
    pub over: usize,
    /// Permanent keys.
    pub permanent: usize,
    /// Streams.
    pub streams: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { top: 100, over: 1000, permanent: 1000, streams: 1000 }
    }
}

/// The limits of every class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassLimits {
    /// Of classes that no contract names.
    pub default: BigLimits,
    /// Of the contracts' classes, in their order.
    pub registered: Vec<BigLimits>,
}

impl ClassLimits {
    /// The limits that contracts set, and the defaults where they set none.
    pub fn new(contracts: Option<&Contracts>) -> Self {
        let big = |limits: Limits| {
            let default = BigLimits::default();
            BigLimits {
                string_bytes: limits.string_bytes.unwrap_or(default.string_bytes),
                member_bytes: limits.member_bytes.unwrap_or(default.member_bytes),
                elements: limits.elements.unwrap_or(default.elements),
                memory_bytes: limits.memory_bytes.unwrap_or(default.memory_bytes),
            }
        };
        let wide = contracts.map_or_else(Limits::default, |contracts| contracts.limits);
        let registered =
            contracts.map_or_else(Vec::new, |contracts| contracts.classes.iter().map(|c| big(c.limits.or(wide))).collect());
        Self { default: big(wide), registered }
    }

    /// The limits of a class.
    #[inline]
    pub fn of(&self, registered: Option<usize>) -> &BigLimits {
        registered.and_then(|class| self.registered.get(class)).unwrap_or(&self.default)
    }

    /// The smallest limit of an element in any class: below it no packed value needs to be opened.
    pub fn smallest_member(&self) -> u64 {
        self.registered.iter().chain([&self.default]).map(|limits| limits.member_bytes).min().unwrap_or(0)
    }
}

/// Fields, or members, that have an expiry of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// Keys that have any.
    pub keys: u64,
    /// Of these, permanent keys all of whose fields expire.
    pub permanent_keys_emptied: u64,
    /// Fields.
    pub fields: u64,
    /// Of these, fields whose expiry had passed at the snapshot time.
    pub expired: u64,
}

impl FieldCounts {
    fn add(&mut self, expiry: &FieldExpiry, emptied: bool) {
        let of_key = Self { keys: 1, permanent_keys_emptied: u64::from(emptied), fields: expiry.fields, expired: expiry.expired };
        self.merge(&of_key);
    }

    fn merge(&mut self, other: &Self) {
        self.keys += other.keys;
        self.permanent_keys_emptied += other.permanent_keys_emptied;
        self.fields += other.fields;
        self.expired += other.expired;
    }
}

/// Everything that is added up over keys.
#[derive(Debug)]
pub struct Census {
    lists: ListLimits,
    limits: Arc<ClassLimits>,
    input: u32,
    /// By type and encoding.
    pub types: Vec<(KeyType, Encoding, Counts)>,
    /// By database.
    pub databases: BTreeMap<u64, PlaceCounts>,
    /// By slot, all of them.
    pub slots: Slots,
    /// By class of the contracts, in their order.
    pub registered: Vec<ClassStats>,
    /// By discovered class.
    pub discovered: Discovery<ClassStats>,
    /// Sum of the squares of memory bytes, for the spread that chance would give.
    pub memory_squares: u128,
    /// Fields with an expiry of their own.
    pub fields: FieldCounts,
    /// Entities whose attributes are strings.
    pub entities: Entities,
    permanent: TopKeys,
    over: TopKeys,
    emptied: TopKeys,
    streams: TopKeys,
    /// Largest keys of each type, by memory and by elements. Module types are one.
    top: Vec<(Option<KeyType>, TopKeys, TopKeys)>,
    looks: looks::Looks,
    last_db: Option<(u64, PlaceCounts)>,
    last_uncounted_bytes: i64,
    inspector: Option<Inspector>,
    samples_values: bool,
    /// Loaded keys by input and database: what each table of a server holds.
    pub tables: BTreeMap<(u32, u64), TableKeys>,
}

impl Census {
    /// An empty census of keys with `limits`.
    pub fn new(lists: ListLimits, limits: Arc<ClassLimits>) -> Self {
        Self {
            lists,
            input: 0,
            types: Vec::new(),
            databases: BTreeMap::new(),
            slots: Slots::default(),
            registered: vec![ClassStats::default(); limits.registered.len()],
            limits,
            discovered: Discovery::default(),
            memory_squares: 0,
            fields: FieldCounts::default(),
            entities: Entities::default(),
            permanent: TopKeys::new(lists.permanent),
            over: TopKeys::new(lists.over),
            emptied: TopKeys::new(lists.permanent),
            streams: TopKeys::new(lists.streams),
            top: Vec::new(),
            looks: looks::Looks::default(),
            last_db: None,
            last_uncounted_bytes: 0,
            inspector: None,
            samples_values: false,
            tables: BTreeMap::new(),
        }
    }

    /// The same census, which holds each key against rules as well.
    pub fn inspected(self, inspector: Option<Inspector>) -> Self {
        Self { inspector, ..self }
    }

    /// The same census, which samples the values of strings as well.
    pub fn sampling_values(self, samples_values: bool) -> Self {
        Self { samples_values, ..self }
    }

    /// Whether values are sampled.
    pub fn samples_values(&self) -> bool {
        self.samples_values
    }

    /// An empty census of keys of input `ordinal` that will be merged with this one: its lists take nothing that would not stay here.
    pub fn successor(&self, ordinal: u32) -> Self {
        let top = self.top.iter().map(|(group, memory, elements)| (*group, memory.successor(), elements.successor())).collect();
        Self {
            input: ordinal,
            permanent: self.permanent.successor(),
            over: self.over.successor(),
            emptied: self.emptied.successor(),
            streams: self.streams.successor(),
            top,
            inspector: self.inspector.clone(),
            samples_values: self.samples_values,
            ..Self::new(self.lists, Arc::clone(&self.limits))
        }
    }

    /// Adds one key.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>, class: Class<'_>) {
        match self.types.iter_mut().find(|(t, e, _)| (*t, *e) == (fact.key_type, fact.encoding)) {
            Some((_, _, counts)) => counts.add(fact),
            None => {
                let mut counts = Counts::default();
                counts.add(fact);
                self.types.push((fact.key_type, fact.encoding, counts));
            }
        }
        match &mut self.last_db {
            Some((db, counts)) if *db == fact.db => counts.merge(&PlaceCounts::of(fact)),
            _ => {
                self.settle_db();
                self.last_db = Some((fact.db, PlaceCounts::of(fact)));
            }
        }
        if !fact.lifetime.is_expired() {
            self.last_uncounted_bytes = self.last_uncounted_bytes.saturating_add(fact.uncounted_bytes);
        }
        self.slots.add(fact);
        let (stats, ends) = match class.registered.and_then(|at| self.registered.get_mut(at)) {
            Some(stats) => (stats, class.ends),
            None => self.discovered.class(class.key),
        };
        stats.add(fact, ends);
        if let Some(inspector) = &mut self.inspector {
            let breaches = stats.breaches.get_or_insert_with(|| Box::new(inspector.fresh()));
            inspector.inspect(fact, class.registered, breaches);
        }
        if self.samples_values && fact.key_type == KeyType::String {
            stats.values.get_or_insert_default().offer(fact, self.input);
        }
        self.entities.offer(fact, ends.tail);
        let memory = u128::from(fact.memory_bytes.unwrap_or(0));
        self.memory_squares = self.memory_squares.saturating_add(memory * memory);
        if let Some(expiry) = &fact.field_expiry {
            self.fields.add(expiry, fact.all_fields_expire());
        }
        self.list(fact, class.registered);
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, mut other: Self) {
        self.settle_db();
        other.settle_db();
        for (key_type, encoding, counts) in other.types {
            match self.types.iter_mut().find(|(t, e, _)| (*t, *e) == (key_type, encoding)) {
                Some((_, _, sum)) => sum.merge(&counts),
                None => self.types.push((key_type, encoding, counts)),
            }
        }
        for (db, counts) in other.databases {
            self.databases.entry(db).or_default().merge(&counts);
        }
        for (place, held) in other.tables {
            self.tables.entry(place).or_default().add(&held);
        }
        self.slots.merge(other.slots);
        for (sum, stats) in self.registered.iter_mut().zip(other.registered) {
            sum.merge(stats);
        }
        self.discovered.merge(other.discovered);
        self.memory_squares = self.memory_squares.saturating_add(other.memory_squares);
        self.fields.merge(&other.fields);
        self.entities.merge(other.entities);
        self.emptied.merge(other.emptied);
        self.streams.merge(other.streams);
        self.permanent.merge(other.permanent);
        self.over.merge(other.over);
        self.looks.merge(other.looks);
        for (key_type, by_memory, by_elements) in other.top {
            let (memory, elements) = self.top_of(key_type);
            memory.merge(by_memory);
            elements.merge(by_elements);
        }
    }

    /// Has `look` look again at the big keys of `input` that it can see.
    pub fn look(&mut self, input: u32, look: impl Fn(&KeyRow) -> Option<Look>) {
        let top = self.top.iter().flat_map(|(_, by_memory, by_elements)| by_memory.rows().chain(by_elements.rows()));
        self.looks.add(input, self.over.rows().chain(top), look);
    }

    /// Looks at the sampled values whose records begin in a part of a dump.
    pub fn look_at_values(&mut self, at: &values::Part<'_>) {
        if !self.samples_values {
            return;
        }
        let classes = self.registered.iter_mut().chain(self.discovered.stats_mut());
        let samples = classes.filter_map(|stats| stats.values.as_mut());
        let open: Vec<&mut Sampled> =
            samples.flat_map(|sample| sample.settled()).filter(|sampled| sampled.is_open(at.input)).collect();
        open.into_par_iter().for_each_init(Judge::default, |judge, sampled| sampled.look(judge, at));
    }

    /// What such a look has found of a key.
    pub fn looked_at(&self, row: &KeyRow) -> Look {
        self.looks.of(row)
    }

    /// Ends adding: puts what was held back where it belongs.
    pub fn settle(&mut self) {
        self.settle_db();
    }

    /// Sums over all keys.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, _, counts) in &self.types {
            total.merge(counts);
        }
        total
    }

    /// When the keys of a class are big.
    pub fn limits(&self) -> Arc<ClassLimits> {
        Arc::clone(&self.limits)
    }

    /// The largest keys of each type by memory and by elements; a key may be there twice.
    pub fn take_top(&mut self) -> impl Iterator<Item = KeyRow> {
        std::mem::take(&mut self.top)
            .into_iter()
            .flat_map(|(_, by_memory, by_elements)| by_memory.into_sorted().into_iter().chain(by_elements.into_sorted()))
    }

    /// Keys above a limit, largest first.
    pub fn take_over(&mut self) -> Vec<KeyRow> {
        std::mem::replace(&mut self.over, TopKeys::new(0)).into_sorted()
    }

    /// Permanent keys all of whose fields expire, largest first.
    pub fn take_emptied(&mut self) -> Vec<KeyRow> {
        std::mem::replace(&mut self.emptied, TopKeys::new(0)).into_sorted()
    }

    /// Streams, those with most entries first.
    pub fn take_streams(&mut self) -> Vec<KeyRow> {
        std::mem::replace(&mut self.streams, TopKeys::new(0)).into_sorted()
    }

    /// Permanent keys, largest first.
    pub fn take_permanent(&mut self) -> Vec<KeyRow> {
        std::mem::replace(&mut self.permanent, TopKeys::new(0)).into_sorted()
    }

    /// Name of the class that `key` belongs to, once all keys were added.
    pub fn class_name(&self, key: &[u8], classifier: &mut Classifier) -> String {
        self.of_class(key, classifier, |class| &class.name)
    }

    /// Pattern of that class.
    pub fn class_pattern(&self, key: &[u8], classifier: &mut Classifier) -> String {
        self.of_class(key, classifier, |class| &class.pattern)
    }

    fn of_class(&self, key: &[u8], classifier: &mut Classifier, registered_as: impl Fn(&contract::Class) -> &String) -> String {
        let registered = classifier.classify(key).registered;
        match registered.zip(classifier.contracts()).and_then(|(at, contracts)| contracts.classes.get(at)) {
            Some(class) => registered_as(class).clone(),
            None => self.discovered.name(classifier.classify(key).key.shape()),
        }
    }

    fn settle_db(&mut self) {
        if let Some((db, counts)) = self.last_db.take() {
            self.tables.entry((self.input, db)).or_default().add(&TableKeys {
                keys: counts.keys - counts.expired_keys,
                expires: counts.volatile_keys(),
                uncounted_bytes: std::mem::take(&mut self.last_uncounted_bytes),
            });
            self.databases.entry(db).or_default().merge(&counts);
        }
    }

    #[inline]
    fn list(&mut self, fact: &Fact<'_>, registered: Option<usize>) {
        let input = self.input;
        let memory = fact.memory_bytes.unwrap_or(0);
        if fact.lifetime == Lifetime::Permanent {
            self.permanent.offer(memory, fact, input);
            if fact.all_fields_expire() {
                self.emptied.offer(memory, fact, input);
            }
        }
        if self.limits.of(registered).broken_by(fact) {
            self.over.offer(memory, fact, input);
        }
        if let Some(stream) = &fact.stream {
            self.streams.offer(stream.counters.length, fact, input);
        }
        let group = (fact.key_type.kind() == "core").then_some(fact.key_type);
        let (by_memory, by_elements) = self.top_of(group);
        by_memory.offer(memory, fact, input);
        if let Some(elements) = fact.elements {
            by_elements.offer(elements, fact, input);
        }
    }

    #[inline]
    fn top_of(&mut self, group: Option<KeyType>) -> (&mut TopKeys, &mut TopKeys) {
        let at = match self.top.iter().position(|(g, _, _)| *g == group) {
            Some(at) => at,
            None => {
                let top = self.lists.top;
                self.top.push((group, TopKeys::new(top), TopKeys::new(top)));
                self.top.len() - 1
            }
        };
        let (_, by_memory, by_elements) = &mut self.top[at];
        (by_memory, by_elements)
    }
}

impl BigLimits {
    #[inline]
    fn broken_by(&self, fact: &Fact<'_>) -> bool {
        self.above_of(fact).contains(&true)
    }

    /// Whether a key is above the limit of memory, of elements, of a string's bytes, of an element's bytes.
    #[inline]
    pub fn above_of(&self, fact: &Fact<'_>) -> [bool; 4] {
        self.above(fact.memory_bytes, fact.elements, fact.key_type == KeyType::String, fact.longest_seen_bytes)
    }

    #[inline]
    fn above(&self, memory: Option<u64>, elements: Option<u64>, is_string: bool, longest: u64) -> [bool; 4] {
        [
            memory.is_some_and(|memory| memory > self.memory_bytes),
            elements.is_some_and(|elements| elements > self.elements),
            is_string && longest > self.string_bytes,
            !is_string && longest > self.member_bytes,
        ]
    }

    /// Names of the limits that a listed key is above.
    pub fn rules(&self, row: &KeyRow) -> Vec<&'static str> {
        let above = self.above(row.memory_bytes, row.elements, row.string_bytes.is_some(), row.longest_seen_bytes);
        ["memory", "elements", "string", "member"]
            .into_iter()
            .zip(above)
            .filter_map(|(rule, broken)| broken.then_some(rule))
            .collect()
    }

    /// Pieces that would bring a key under the limits: 1 where it is under them already, `None` where one element alone is above.
    pub fn parts(&self, row: &KeyRow) -> Option<u64> {
        let pieces = |size: Option<u64>, limit: u64| size.unwrap_or(0).div_ceil(limit.max(1)).max(1);
        if row.string_bytes.is_none() && row.longest_seen_bytes > self.member_bytes {
            return None;
        }
        let parts = [
            pieces(row.memory_bytes, self.memory_bytes),
            pieces(row.elements, self.elements),
            pieces(row.string_bytes, self.string_bytes),
        ];
        parts.into_iter().max()
    }
}
