//! Sums by slot.

use super::PlaceCounts;
use crate::measure::{Fact, SLOTS};

/// Keys that wait to be added. Slots follow no order and their sums fill more than the nearest cache: added one after another, each would
/// wait for memory; added in one go, they wait together.
const WAITING: usize = 256;

/// Sums of every slot.
#[derive(Debug, Default)]
pub struct Slots {
    /// Empty as long as all keys wait.
    counts: Vec<PlaceCounts>,
    waiting: Vec<(u16, PlaceCounts)>,
}

impl Slots {
    /// Adds one key.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>) {
        self.wait((fact.slot, PlaceCounts::of(fact)));
    }

    #[inline]
    fn wait(&mut self, counts: (u16, PlaceCounts)) {
        if self.waiting.len() == WAITING {
            self.settle();
        }
        self.waiting.push(counts);
    }

    /// Adds the sums of `other`.
    pub fn merge(&mut self, other: Self) {
        if self.counts.is_empty() {
            self.counts = other.counts;
        } else {
            for (sum, counts) in self.counts.iter_mut().zip(&other.counts).filter(|(_, counts)| counts.keys > 0) {
                sum.merge(counts);
            }
        }
        for waiting in other.waiting {
            self.wait(waiting);
        }
    }

    /// The sums of all slots, in order.
    pub fn into_counts(mut self) -> Vec<PlaceCounts> {
        self.settle();
        self.counts
    }

    fn settle(&mut self) {
        self.counts.resize(usize::from(SLOTS), PlaceCounts::default());
        for (slot, counts) in self.waiting.drain(..) {
            self.counts[usize::from(slot)].merge(&counts);
        }
    }
}
