//! What is kept of the breaches in one class while keys pass: sums that merge associatively and commutatively.

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::Rule;
use super::timeline::Timeline;
use super::version::Versions;
use crate::measure::{Fact, Lifetime};
use crate::privacy::Sensitive;
use crate::rdb::KeyType;
use crate::values::key_hash;

/// Expiries that are kept of one class, at most.
const MOST_EXPIRIES: usize = 1 << 12;

/// What keys are counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// They break a rule by themselves.
    Broken(Rule),
    /// They have no expiry; what that means depends on the others of their class.
    Permanent,
    /// They have a type; more than one in a class is a breach.
    OfType,
}

/// What tells findings of one rule and class apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nothing.
    Whole,
    /// A database.
    Db(u64),
    /// A type.
    Type(KeyType),
    /// A kind of personal data.
    Sensitive(Sensitive),
    /// A version.
    Version(u64),
}

/// Keys under one mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Of these, keys that never expire.
    pub permanent_keys: u64,
    /// Of these, keys whose expiry has passed at the snapshot time.
    pub expired_keys: u64,
    /// The longest time left of the others, in milliseconds.
    pub longest_left_ms: u64,
    /// The last expiry of those others, in Unix milliseconds.
    pub last_expiry_ms: Option<i64>,
    /// Some of them.
    pub examples: Examples,
}

impl Tally {
    /// Adds one key, and keeps it among `most` examples where it is one of the largest.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>, most: usize) {
        let memory = fact.memory_bytes.unwrap_or(0);
        self.keys += 1;
        self.memory_bytes = self.memory_bytes.saturating_add(memory);
        match fact.lifetime {
            Lifetime::Permanent => self.permanent_keys += 1,
            Lifetime::Expired { .. } => self.expired_keys += 1,
            Lifetime::Volatile { left_ms } => {
                self.longest_left_ms = self.longest_left_ms.max(left_ms.unwrap_or(0));
                self.last_expiry_ms = self.last_expiry_ms.max(fact.expires_at_ms);
            }
        }
        self.examples.offer(memory, fact.key, most);
    }

    /// Adds the sums of `other`.
    pub fn merge(&mut self, other: Self, most: usize) {
        self.keys += other.keys;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.permanent_keys += other.permanent_keys;
        self.expired_keys += other.expired_keys;
        self.longest_left_ms = self.longest_left_ms.max(other.longest_left_ms);
        self.last_expiry_ms = self.last_expiry_ms.max(other.last_expiry_ms);
        for (memory, key) in other.examples.0 {
            self.examples.offer(memory, &key, most);
        }
    }
}

/// The keys that take most memory, the smallest key bytes among equals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examples(Vec<(u64, Box<[u8]>)>);

impl Examples {
    /// The keys, largest first.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(_, key)| &**key)
    }

    #[inline]
    fn offer(&mut self, memory: u64, key: &[u8], most: usize) {
        let before = |(other, text): &(u64, Box<[u8]>)| *other > memory || (*other == memory && **text < *key);
        if self.0.len() >= most && self.0.last().is_none_or(before) {
            return;
        }
        let at = self.0.partition_point(before);
        // A key that stands in two dumps is one example.
        if self.0.get(at).is_none_or(|(other, text)| *other != memory || **text != *key) {
            self.0.insert(at, (memory, key.into()));
            self.0.truncate(most);
        }
    }
}

/// Keys of one class with a hash tag that lie in one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedSlot {
    /// Hash of the tag.
    tag: u64,
    /// All have the same tag.
    pub same_tag: bool,
    /// The keys.
    pub tally: Tally,
}

/// The breaches in one class.
#[derive(Debug, Clone, Default)]
pub struct Breaches {
    /// Examples that are kept.
    most: usize,
    marks: Vec<(Mark, Place, Tally)>,
    tagged: HashMap<u16, TaggedSlot>,
    /// When its volatile keys expire.
    pub expiries: Expiries,
    /// When they will be gone.
    pub timeline: Timeline,
    /// The last expiry of its volatile keys, in Unix milliseconds.
    pub last_expiry_ms: Option<i64>,
    /// Its keys by version, where its pattern leaves that open.
    pub versions: Versions,
}

impl Breaches {
    /// Nothing yet; so many examples will be kept of each.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds a key under a mark.
    #[inline]
    pub fn add(&mut self, mark: Mark, place: Place, fact: &Fact<'_>) {
        let most = self.most;
        self.tally(mark, place).add(fact, most);
    }

    /// Adds a key of a version.
    #[inline]
    pub fn add_version(&mut self, number: u64, fact: &Fact<'_>) {
        self.versions.add(number, fact, self.most);
    }

    /// Adds a key with a hash tag.
    #[inline]
    pub fn add_tagged(&mut self, tag: &[u8], fact: &Fact<'_>) {
        let tag = xxh3_64(tag);
        let fresh = || TaggedSlot { tag, same_tag: true, tally: Tally::default() };
        let slot = self.tagged.entry(fact.slot).or_insert_with(fresh);
        slot.same_tag &= slot.tag == tag;
        slot.tally.add(fact, self.most);
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: Self) {
        self.most = self.most.max(other.most);
        let most = self.most;
        for (mark, place, tally) in other.marks {
            self.tally(mark, place).merge(tally, most);
        }
        for (number, slot) in other.tagged {
            match self.tagged.get_mut(&number) {
                Some(sum) => {
                    sum.same_tag &= slot.same_tag && sum.tag == slot.tag;
                    sum.tally.merge(slot.tally, most);
                }
                None => {
                    self.tagged.insert(number, slot);
                }
            }
        }
        self.expiries.merge(other.expiries);
        self.timeline.merge(&other.timeline);
        self.last_expiry_ms = self.last_expiry_ms.max(other.last_expiry_ms);
        self.versions.merge(other.versions, most);
    }

    /// The keys under `mark` by what tells them apart, in order.
    pub fn of(&self, mark: Mark) -> Vec<(Place, &Tally)> {
        let mut found: Vec<_> =
            self.marks.iter().filter(|(m, _, _)| *m == mark).map(|(_, place, tally)| (*place, tally)).collect();
        found.sort_by_key(|(place, _)| *place);
        found
    }

    /// The slot with most tagged keys, the smallest among equals, and the number of tagged keys.
    pub fn fullest_slot(&self) -> Option<(u16, &TaggedSlot, u64)> {
        let all = self.tagged.values().map(|slot| slot.tally.keys).sum();
        let (number, slot) = self.tagged.iter().max_by_key(|(number, slot)| (slot.tally.keys, std::cmp::Reverse(**number)))?;
        Some((*number, slot, all))
    }

    #[inline]
    fn tally(&mut self, mark: Mark, place: Place) -> &mut Tally {
        let at = match self.marks.iter().position(|(m, p, _)| (*m, *p) == (mark, place)) {
            Some(at) => at,
            None => {
                self.marks.push((mark, place, Tally::default()));
                self.marks.len() - 1
            }
        };
        &mut self.marks[at].2
    }
}

/// When keys expire: of all, or, where there are many, of those with the smallest hashes, which are a function of the set of keys alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiries {
    /// One key in 2^halvings is kept.
    halvings: u32,
    held: Vec<(u64, i64)>,
}

impl Expiries {
    /// Takes a key with its expiry in Unix milliseconds.
    #[inline]
    pub fn offer(&mut self, fact: &Fact<'_>, expires_at_ms: i64) {
        let hash = key_hash(fact.db, fact.key);
        if hash.leading_zeros() >= self.halvings {
            self.held.push((hash, expires_at_ms));
            self.shrink();
        }
    }

    /// The moments in order, and how many keys each of them stands for.
    pub fn sorted(&self) -> (Vec<i64>, u64) {
        let mut moments: Vec<i64> = self.held.iter().map(|(_, at)| *at).collect();
        moments.sort_unstable();
        (moments, 1 << self.halvings)
    }

    fn merge(&mut self, other: Self) {
        self.halvings = self.halvings.max(other.halvings);
        self.held.extend(other.held);
        let halvings = self.halvings;
        self.held.retain(|(hash, _)| hash.leading_zeros() >= halvings);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.held.len() > MOST_EXPIRIES && self.halvings < 60 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.held.retain(|(hash, _)| hash.leading_zeros() >= halvings);
        }
    }
}
