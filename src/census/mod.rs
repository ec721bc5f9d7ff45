//! The one aggregate: add a fact, merge two censuses. Merging is associative and commutative.

mod class;
mod counts;
mod histogram;
mod top;

use std::collections::BTreeMap;

pub use class::{ClassStats, TTL_BUCKETS, TtlBucket};
pub use counts::Counts;
pub use histogram::Histogram;
pub use top::{KeyRow, TopKeys};

use crate::classify::{Discovery, Merge, Separators, Shape};
use crate::measure::{Encoding, Fact, Lifetime, SLOTS};
use crate::rdb::KeyType;

/// Limits above which a key is big.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BigLimits {
    /// Bytes of a string value, or of one element.
    pub string_bytes: u64,
    /// Elements.
    pub elements: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
}

impl Default for BigLimits {
    /// 10KB, 5000 elements, 1mb.
    fn default() -> Self {
        Self { string_bytes: 10 << 10, elements: 5000, memory_bytes: 1 << 20 }
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
    /// When a key is big.
    pub big: BigLimits,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { top: 100, over: 1000, permanent: 1000, big: BigLimits::default() }
    }
}

/// Everything that is added up over keys.
#[derive(Debug)]
pub struct Census {
    limits: ListLimits,
    separators: Separators,
    shape: Shape,
    input: u32,
    /// By type and encoding.
    pub types: Vec<(KeyType, Encoding, Counts)>,
    /// By database.
    pub databases: BTreeMap<u64, Counts>,
    /// By slot, all of them.
    pub slots: Vec<Counts>,
    /// By class.
    pub classes: Discovery<ClassStats>,
    permanent: TopKeys,
    over: TopKeys,
    /// Largest keys of each type, by memory and by elements. Module types are one.
    top: Vec<(Option<KeyType>, TopKeys, TopKeys)>,
    last_db: Option<(u64, Counts)>,
}

impl Census {
    /// An empty census.
    pub fn new(limits: ListLimits, separators: Separators) -> Self {
        Self {
            limits,
            separators,
            shape: Shape::default(),
            input: 0,
            types: Vec::new(),
            databases: BTreeMap::new(),
            slots: vec![Counts::default(); usize::from(SLOTS)],
            classes: Discovery::default(),
            permanent: TopKeys::new(limits.permanent),
            over: TopKeys::new(limits.over),
            top: Vec::new(),
            last_db: None,
        }
    }

    /// The keys that follow are of input `ordinal`.
    pub fn set_input(&mut self, ordinal: u32) {
        self.input = ordinal;
    }

    /// Adds one key.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>) {
        match self.types.iter_mut().find(|(t, e, _)| (*t, *e) == (fact.key_type, fact.encoding)) {
            Some((_, _, counts)) => counts.add(fact),
            None => {
                let mut counts = Counts::default();
                counts.add(fact);
                self.types.push((fact.key_type, fact.encoding, counts));
            }
        }
        match &mut self.last_db {
            Some((db, counts)) if *db == fact.db => counts.add(fact),
            _ => {
                self.settle_db();
                let mut counts = Counts::default();
                counts.add(fact);
                self.last_db = Some((fact.db, counts));
            }
        }
        self.slots[usize::from(fact.slot)].add(fact);
        self.shape.take(fact.key, &self.separators);
        self.classes.class(&self.shape).add(fact);
        self.list(fact);
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
        for (sum, counts) in self.slots.iter_mut().zip(&other.slots) {
            if counts.keys > 0 {
                sum.merge(counts);
            }
        }
        self.classes.merge(other.classes);
        self.permanent.merge(other.permanent);
        self.over.merge(other.over);
        for (key_type, by_memory, by_elements) in other.top {
            let (memory, elements) = self.top_of(key_type);
            memory.merge(by_memory);
            elements.merge(by_elements);
        }
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

    /// What lists keep.
    pub fn limits(&self) -> &ListLimits {
        &self.limits
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

    /// Permanent keys, largest first.
    pub fn take_permanent(&mut self) -> Vec<KeyRow> {
        std::mem::replace(&mut self.permanent, TopKeys::new(0)).into_sorted()
    }

    /// Name of the class that `key` belongs to, once all keys were added.
    pub fn class_name(&mut self, key: &[u8]) -> String {
        self.shape.take(key, &self.separators);
        self.classes.name(&self.shape)
    }

    fn settle_db(&mut self) {
        if let Some((db, counts)) = self.last_db.take() {
            self.databases.entry(db).or_default().merge(&counts);
        }
    }

    #[inline]
    fn list(&mut self, fact: &Fact<'_>) {
        let input = self.input;
        let memory = fact.memory_bytes.unwrap_or(0);
        if fact.lifetime == Lifetime::Permanent {
            self.permanent.offer(memory, fact, input);
        }
        if self.limits.big.broken_by(fact) {
            self.over.offer(memory, fact, input);
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
                let top = self.limits.top;
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
        fact.longest_seen_bytes > self.string_bytes
            || fact.elements.is_some_and(|elements| elements > self.elements)
            || fact.memory_bytes.is_some_and(|memory| memory > self.memory_bytes)
    }

    /// Names of the limits that a listed key is above.
    pub fn rules(&self, row: &KeyRow) -> Vec<&'static str> {
        let string = row.string_bytes.is_some_and(|bytes| bytes > self.string_bytes);
        let member = row.string_bytes.is_none() && row.longest_seen_bytes > self.string_bytes;
        [
            (row.memory_bytes.is_some_and(|bytes| bytes > self.memory_bytes), "memory"),
            (row.elements.is_some_and(|elements| elements > self.elements), "elements"),
            (string, "string"),
            (member, "member"),
        ]
        .into_iter()
        .filter_map(|(broken, rule)| broken.then_some(rule))
        .collect()
    }
}
