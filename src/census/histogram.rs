//! A small histogram that merges: 64 buckets for each doubling, kept from the smallest to the largest that is used.

use std::collections::BTreeMap;

use hdrhistogram::Histogram as Hdr;

/// Buckets for each doubling; a value differs from its bucket's middle by less than 0.8 %.
const PER_OCTAVE: u64 = 64;

/// Values below this have a bucket each.
const EXACT_BELOW: u64 = 2 * PER_OCTAVE;

/// Counts of values by size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Bucket of the first count.
    first: usize,
    /// Half as wide as they could be, for the sake of the cache: what is above 2^32 stands in `carried`.
    counts: Vec<u32>,
    /// Multiples of 2^32 by bucket.
    carried: BTreeMap<usize, u64>,
    min: u64,
    max: u64,
    total: u64,
}

impl Histogram {
    /// Counts `value` once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(bucket(value), 1);
        if self.total == 0 {
            (self.min, self.max) = (value, value);
        } else {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
        self.total += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        for (bucket, n) in other.buckets() {
            self.record_n(bucket, n);
        }
        if self.total == 0 {
            (self.min, self.max) = (other.min, other.max);
        } else {
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
        self.total += other.total;
    }

    /// How many values were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest value, exactly; `None` without any.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The values at `quantiles` (0 to 1) by nearest rank, each within 1 % of the true one; `None` without any value.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Option<u64>; N] {
        if self.total == 0 {
            return [None; N];
        }
        // Three digits add at most 0.1 % to the 0.8 % of the buckets; a histogram that resizes itself accepts every value.
        let Ok(mut hdr) = Hdr::<u64>::new(3) else { return [None; N] };
        for (bucket, n) in self.buckets() {
            if hdr.record_n(middle(bucket), n).is_err() {
                return [None; N];
            }
        }
        quantiles.map(|q| Some(hdr.value_at_quantile(q).clamp(self.min, self.max)))
    }

    /// The buckets that have any count.
    fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate().map(|(at, &n)| {
            let bucket = self.first + at;
            (bucket, self.carried.get(&bucket).map_or(0, |carried| carried << 32) + u64::from(n))
        });
        counts.filter(|(_, n)| *n > 0)
    }

    #[inline]
    fn record_n(&mut self, bucket: usize, n: u64) {
        if bucket.checked_sub(self.first).is_none_or(|at| at >= self.counts.len()) {
            self.widen(bucket);
        }
        let count = &mut self.counts[bucket - self.first];
        let sum = u64::from(*count) + n;
        *count = sum as u32;
        if sum >> 32 > 0 {
            *self.carried.entry(bucket).or_default() += sum >> 32;
        }
    }

    #[cold]
    fn widen(&mut self, bucket: usize) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bucket));
            self.first = bucket;
        }
        if bucket >= self.first + self.counts.len() {
            self.counts.resize(bucket - self.first + 1, 0);
        }
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < EXACT_BELOW {
        return value as usize;
    }
    let octave = u64::from(value.ilog2()) - u64::from(PER_OCTAVE.ilog2());
    (octave * PER_OCTAVE + (value >> octave)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT_BELOW {
        return bucket;
    }
    let octave = bucket / PER_OCTAVE - 1;
    let low = (bucket - octave * PER_OCTAVE) << octave;
    low + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_one_another() {
        for value in (0..4096).chain([1 << 20, u64::MAX / 3, u64::MAX]) {
            let at = bucket(value);
            assert_eq!(bucket(middle(at)), at, "{value}");
            assert!(value.abs_diff(middle(at)) as f64 <= value as f64 * 0.008, "{value} {}", middle(at));
        }
    }

    #[test]
    fn counts_beyond_32_bits_are_carried() {
        let mut histogram = Histogram::default();
        histogram.record(7);
        let mut doubled = histogram.clone();
        for _ in 0..33 {
            let half = doubled.clone();
            doubled.merge(&half);
        }
        assert_eq!(doubled.buckets().collect::<Vec<_>>(), [(7, 1 << 33)]);
        assert_eq!(doubled.total(), 1 << 33);
    }

    proptest! {
        #[test]
        fn quantiles_within_one_percent(mut values in proptest::collection::vec(0u64..5_000_000, 1..400), cut in 0usize..400) {
            let cut = cut % values.len();
            let mut parts = [Histogram::default(), Histogram::default()];
            for (at, &value) in values.iter().enumerate() {
                parts[usize::from(at >= cut)].record(value);
            }
            let [mut whole, second] = parts;
            whole.merge(&second);
            values.sort();
            for q in [0.5, 0.9, 0.99] {
                let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1];
                let [found] = whole.quantiles([q]);
                let found = found.expect("values were recorded");
                prop_assert!(found.abs_diff(exact) as f64 <= 0.01 * exact as f64, "{found} for {exact}");
            }
            prop_assert_eq!(whole.max(), values.last().copied());
        }
    }
}
