//! What is kept of one class.

use super::{Counts, Histogram, Merge, Savings};
use crate::contract::Ends;
use crate::findings::Breaches;
use crate::measure::{Fact, Lifetime};
use crate::rdb::KeyType;
use crate::values::Sample;

/// A range of remaining lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlBucket {
    /// As tables name it.
    pub name: &'static str,
    /// Longest remaining time that belongs to it, in seconds; the range begins above that of the bucket before.
    pub upper_seconds: Option<u64>,
}

const fn bucket(name: &'static str, upper_seconds: u64) -> TtlBucket {
    TtlBucket { name, upper_seconds: Some(upper_seconds) }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The TTL buckets in order: expired, then by remaining time, the upper edge included, then none.
pub const TTL_BUCKETS: [TtlBucket; 14] = [
    TtlBucket { name: "expired", upper_seconds: None },
    bucket("1m", MINUTE),
    bucket("5m", 5 * MINUTE),
    bucket("15m", 15 * MINUTE),
    bucket("1h", HOUR),
    bucket("6h", 6 * HOUR),
    bucket("1d", DAY),
    bucket("3d", 3 * DAY),
    bucket("7d", 7 * DAY),
    bucket("30d", 30 * DAY),
    bucket("90d", 90 * DAY),
    bucket("1y", 365 * DAY),
    TtlBucket { name: "over 1y", upper_seconds: None },
    TtlBucket { name: "none", upper_seconds: None },
];

const EXPIRED: usize = 0;
const OVER: usize = 12;
const NONE: usize = 13;

/// Index in [`TTL_BUCKETS`] of a lifetime; `None` for an expiry that nothing can be held against.
fn ttl_bucket(lifetime: Lifetime) -> Option<usize> {
    match lifetime {
        Lifetime::Permanent => Some(NONE),
        Lifetime::Expired { .. } => Some(EXPIRED),
        Lifetime::Volatile { left_ms } => {
            let left = left_ms?;
            let fits = |b: &TtlBucket| b.upper_seconds.is_some_and(|upper| left <= upper * 1000);
            Some(TTL_BUCKETS.iter().position(fits).unwrap_or(OVER))
        }
    }
}

/// Keys by type; most classes have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeysByType {
    first: Option<(KeyType, u64)>,
    others: Vec<(KeyType, u64)>,
}

impl KeysByType {
    /// The types with their numbers of keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (KeyType, u64)> {
        self.first.iter().chain(&self.others).copied()
    }

    #[inline]
    fn add(&mut self, key_type: KeyType, keys: u64) {
        match &mut self.first {
            Some((first, n)) if *first == key_type => *n += keys,
            None => self.first = Some((key_type, keys)),
            Some(_) => match self.others.iter_mut().find(|(other, _)| *other == key_type) {
                Some((_, n)) => *n += keys,
                None => self.others.push((key_type, keys)),
            },
        }
    }
}

/// The smallest of many keys; its first eight bytes decide nearly always, without a look at the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SmallestKey {
    head: u64,
    key: Option<Box<[u8]>>,
}

impl SmallestKey {
    /// The key; `None` without any.
    pub fn get(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    #[inline]
    fn offer(&mut self, key: &[u8]) {
        let head = head(key);
        if head > self.head && self.key.is_some() {
            return;
        }
        if self.key.as_deref().is_none_or(|kept| key < kept) {
            *self = Self { head, key: Some(key.into()) };
        }
    }
}

/// The first eight bytes as a number of the same order; shorter keys are filled up with zeros.
#[inline]
fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut filled = [0; 8];
            filled[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(filled)
        }
    }
}

/// Sums, distributions and examples of one class.
#[derive(Debug, Clone, Default)]
pub struct ClassStats {
    /// Sums.
    pub counts: Counts,
    /// Keys by type.
    pub types: KeysByType,
    /// Memory of its keys.
    pub memory: Histogram,
    /// Seconds left of its volatile keys.
    pub ttl_seconds: Histogram,
    /// Keys and memory by remaining lifetime, as [`TTL_BUCKETS`].
    pub ttl: [(u64, u64); TTL_BUCKETS.len()],
    /// Keys and memory by size: at index n the keys whose memory is from 2^n to 2^(n+1) - 1 bytes.
    pub sizes: Vec<(u64, u64)>,
    /// Memory and bytes of the permanent key that takes most memory, the smallest key bytes among equals.
    pub largest_permanent: Option<(u64, Box<[u8]>)>,
    /// What would save memory.
    pub savings: Savings,
    /// The smallest key bytes.
    pub example_key: SmallestKey,
    /// The key that takes most memory, the smallest key bytes among equals.
    pub largest_key: Option<Box<[u8]>>,
    /// What its keys break, where they were held against rules.
    pub breaches: Option<Box<Breaches>>,
    /// Its sampled values, where they were asked for.
    pub values: Option<Box<Sample>>,
}

impl ClassStats {
    /// Adds one key whose pattern has these literal ends.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>, ends: Ends) {
        let memory = fact.memory_bytes.unwrap_or(0);
        let largest_before = self.counts.max_memory_bytes;
        self.counts.add(fact);
        self.savings.add(fact, ends);
        self.types.add(fact.key_type, 1);
        if let Some(memory) = fact.memory_bytes {
            self.memory.record(memory);
            self.count_size(memory.max(1).ilog2() as usize, 1, memory);
        }
        if fact.lifetime == Lifetime::Permanent {
            self.offer_permanent(memory, fact.key);
        }
        if let Lifetime::Volatile { left_ms: Some(left) } = fact.lifetime {
            self.ttl_seconds.record(left / 1000);
        }
        if let Some(at) = ttl_bucket(fact.lifetime) {
            let (keys, bytes) = &mut self.ttl[at];
            *keys += 1;
            *bytes = bytes.saturating_add(memory);
        }
        self.example_key.offer(fact.key);
        if memory > largest_before {
            self.largest_key = Some(fact.key.into());
        } else if memory == largest_before {
            keep_smaller(&mut self.largest_key, fact.key);
        }
    }

    #[inline]
    fn count_size(&mut self, at: usize, keys: u64, bytes: u64) {
        if self.sizes.len() <= at {
            self.sizes.resize(at + 1, (0, 0));
        }
        let (sum_keys, sum_bytes) = &mut self.sizes[at];
        *sum_keys += keys;
        *sum_bytes = sum_bytes.saturating_add(bytes);
    }

    #[inline]
    fn offer_permanent(&mut self, memory: u64, key: &[u8]) {
        let larger = match &self.largest_permanent {
            None => true,
            Some((most, kept)) => memory > *most || (memory == *most && key < &**kept),
        };
        if larger {
            self.largest_permanent = Some((memory, key.into()));
        }
    }
}

impl Merge for ClassStats {
    fn keys(&self) -> u64 {
        self.counts.keys
    }

    fn merge(&mut self, other: Self) {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if other.counts.keys == 0 {
            return;
        }
        match other.counts.max_memory_bytes.cmp(&self.counts.max_memory_bytes) {
            Greater => self.largest_key = other.largest_key,
            Equal => {
                if let Some(key) = other.largest_key {
                    keep_smaller(&mut self.largest_key, &key);
                }
            }
            Less => {}
        }
        self.counts.merge(&other.counts);
        for (key_type, n) in other.types.iter() {
            self.types.add(key_type, n);
        }
        self.memory.merge(&other.memory);
        self.ttl_seconds.merge(&other.ttl_seconds);
        for ((keys, bytes), (more_keys, more_bytes)) in self.ttl.iter_mut().zip(other.ttl) {
            *keys += more_keys;
            *bytes = bytes.saturating_add(more_bytes);
        }
        for (at, (keys, bytes)) in other.sizes.into_iter().enumerate().filter(|(_, (keys, _))| *keys > 0) {
            self.count_size(at, keys, bytes);
        }
        self.savings.merge(other.savings);
        if let Some((memory, key)) = other.largest_permanent {
            self.offer_permanent(memory, &key);
        }
        match (&mut self.breaches, other.breaches) {
            (Some(sum), Some(breaches)) => sum.merge(*breaches),
            (None, breaches) => self.breaches = breaches,
            (Some(_), None) => {}
        }
        match (&mut self.values, other.values) {
            (Some(sum), Some(values)) => sum.merge(*values),
            (None, values) => self.values = values,
            (Some(_), None) => {}
        }
        if let Some(key) = other.example_key.get() {
            self.example_key.offer(key);
        }
    }
}

#[inline]
fn keep_smaller(kept: &mut Option<Box<[u8]>>, key: &[u8]) {
    if kept.as_deref().is_none_or(|kept| key < kept) {
        *kept = Some(key.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_edges_belong_to_their_bucket() {
        let name = |left_ms| ttl_bucket(Lifetime::Volatile { left_ms: Some(left_ms) }).map(|at| TTL_BUCKETS[at].name);
        assert_eq!(name(1), Some("1m"));
        assert_eq!(name(60_000), Some("1m"));
        assert_eq!(name(60_001), Some("5m"));
        assert_eq!(name(3_600_000), Some("1h"));
        assert_eq!(name(3_600_001), Some("6h"));
        assert_eq!(name(365 * 86_400_000), Some("1y"));
        assert_eq!(name(365 * 86_400_000 + 1), Some("over 1y"));
        assert_eq!(ttl_bucket(Lifetime::Permanent).map(|at| TTL_BUCKETS[at].name), Some("none"));
        assert_eq!(ttl_bucket(Lifetime::Expired { since_ms: 0 }).map(|at| TTL_BUCKETS[at].name), Some("expired"));
    }

    proptest::proptest! {
        #[test]
        fn the_smallest_of_any_keys(keys in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..12), 0..40)) {
            let mut smallest = SmallestKey::default();
            keys.iter().for_each(|key| smallest.offer(key));
            proptest::prop_assert_eq!(smallest.get(), keys.iter().min().map(Vec::as_slice));
        }
    }
}
