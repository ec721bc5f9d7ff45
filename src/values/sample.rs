//! Which values of a class are looked at: those whose keys have the smallest hashes, a function of the set of keys alone.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Judge, Verdict};
use crate::measure::Fact;
use crate::rdb::{Format, RecordHead, Role, Sink, Str, Walker};

/// Values of a class that are looked at.
const MOST_SAMPLED: usize = 256;

/// The hash of a key in its database by which keys are sampled.
#[inline]
pub fn key_hash(db: u64, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, db)
}

/// A key whose value is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    hash: u64,
    input: u32,
    offset: u64,
    db: u64,
    /// Memory of the key.
    pub memory_bytes: u64,
    /// What its value is; nothing until it was looked at.
    pub verdict: Option<Box<Verdict>>,
}

impl Sampled {
    /// A key that stands in two dumps is two.
    fn order(&self) -> (u64, u32, u64) {
        (self.hash, self.input, self.offset)
    }
}

/// The keys of one class with the smallest hashes.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Up to twice as many as stay in the end.
    held: Vec<Sampled>,
    /// No key above it can stay.
    limit: Option<u64>,
}

impl Sample {
    /// Takes a key of input `input`.
    #[inline]
    pub fn offer(&mut self, fact: &Fact<'_>, input: u32) {
        let hash = key_hash(fact.db, fact.key);
        if self.limit.is_none_or(|limit| hash <= limit) {
            let memory_bytes = fact.memory_bytes.unwrap_or(0);
            self.hold(Sampled { hash, input, offset: fact.offset, db: fact.db, memory_bytes, verdict: None });
        }
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: Self) {
        other.held.into_iter().for_each(|sampled| self.hold(sampled));
    }

    /// The sampled keys, in no order.
    pub fn settled(&mut self) -> &mut [Sampled] {
        self.settle();
        &mut self.held
    }

    /// The verdicts on the sampled values, each with the memory of its key.
    pub fn verdicts(&self) -> Vec<(&Verdict, u64)> {
        let mut held: Vec<&Sampled> = self.held.iter().collect();
        held.sort_by_key(|sampled| sampled.order());
        held.into_iter()
            .take(MOST_SAMPLED)
            .filter_map(|sampled| Some((sampled.verdict.as_deref()?, sampled.memory_bytes)))
            .collect()
    }

    fn hold(&mut self, sampled: Sampled) {
        self.held.push(sampled);
        if self.held.len() >= 2 * MOST_SAMPLED {
            self.settle();
        }
    }

    fn settle(&mut self) {
        if self.held.len() > MOST_SAMPLED {
            let (_, last, _) = self.held.select_nth_unstable_by_key(MOST_SAMPLED - 1, Sampled::order);
            self.limit = Some(last.hash);
            self.held.truncate(MOST_SAMPLED);
        }
    }
}

/// A part of a dump at hand.
#[derive(Debug, Clone, Copy)]
pub struct Part<'b> {
    /// The ordinal of the dump.
    pub input: u32,
    /// The bytes.
    pub bytes: &'b [u8],
    /// Which byte of the dump the first of them is.
    pub base: u64,
    /// The format of the dump.
    pub format: &'b Format,
}

impl Sampled {
    /// Looks at the value, where it was not and its record begins in these bytes. A record that does not stand in them as it is, since it was
    /// compressed together with others, stays unread.
    pub fn look(&mut self, judge: &mut Judge, at: &Part<'_>) {
        let record = self.offset.checked_sub(at.base).and_then(|from| at.bytes.get(usize::try_from(from).ok()?..));
        if self.input != at.input || self.verdict.is_some() {
            return;
        }
        let Some(record) = record.filter(|record| !record.is_empty()) else { return };
        let mut sink = ValueSink { judge, hash: 0, found: None };
        let walked = Walker::new(record, self.offset, at.format, self.db).step(&mut sink);
        let same = walked.is_ok() && sink.hash == self.hash;
        self.verdict = Some(Box::new(sink.found.filter(|_| same).unwrap_or_else(Verdict::unread)));
    }

    /// Whether its value is still to be looked at in a part of a dump.
    pub fn is_open(&self, input: u32) -> bool {
        self.input == input && self.verdict.is_none()
    }
}

/// Judges the one value of a record.
struct ValueSink<'j> {
    judge: &'j mut Judge,
    hash: u64,
    found: Option<Verdict>,
}

impl Sink for ValueSink<'_> {
    fn begin(&mut self, head: &RecordHead<'_>) {
        self.hash = key_hash(head.db, head.key);
    }

    fn text(&mut self, role: Role, text: Str<'_>) {
        if role == Role::Value {
            self.found = Some(self.judge.judge(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(hash: u64) -> Sampled {
        Sampled { hash, input: 1, offset: hash, db: 0, memory_bytes: 0, verdict: None }
    }

    fn hashes(mut sample: Sample) -> Vec<u64> {
        let mut hashes: Vec<u64> = sample.settled().iter().map(|sampled| sampled.hash).collect();
        hashes.sort_unstable();
        hashes
    }

    proptest::proptest! {
        #[test]
        fn the_smallest_of_any_parts(hashes_of: Vec<u64>, n in 0u64..3000, cut in 0usize..3000) {
            // Many keys, so that limits act in every part.
            let all: Vec<u64> = hashes_of.into_iter().chain((0..n).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
            let of = |hashes: &[u64]| {
                let mut sample = Sample::default();
                hashes.iter().for_each(|hash| {
                    if sample.limit.is_none_or(|limit| *hash <= limit) {
                        sample.hold(sampled(*hash));
                    }
                });
                sample
            };
            let mut expected = all.clone();
            expected.sort_unstable();
            expected.truncate(MOST_SAMPLED);
            let (first, second) = all.split_at(cut.min(all.len()));
            let mut parts = of(second);
            parts.merge(of(first));
            proptest::prop_assert_eq!(&hashes(of(&all)), &expected);
            proptest::prop_assert_eq!(&hashes(parts), &expected);
        }
    }
}
