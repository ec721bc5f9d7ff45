//! What would save memory in a class, added up key by key. Expired keys are left out: they are gone once the dump is loaded.

use crate::contract::Ends;
use crate::measure::{Fact, Limit};

/// Sums over the keys of a class that a server loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Savings {
    /// Bytes of their names.
    pub name_bytes: u64,
    /// Memory saved if each word of the literal prefix were one letter.
    pub short_prefix_bytes: i64,
    /// Keys that a higher limit would keep compact, in no order.
    pub fallbacks: Vec<Fallbacks>,
}

/// Keys that are kept from their compact encoding by the same limit, and let in by the same step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallbacks {
    /// The limit.
    pub limit: Limit,
    /// Index of the step in [`Limit::STEPS`].
    pub step: usize,
    /// How many.
    pub keys: u64,
    /// Memory that they take.
    pub memory_bytes: u64,
    /// Memory that they would take less.
    pub saved_bytes: i64,
}

impl Savings {
    /// Adds a key whose pattern has these literal ends.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>, ends: Ends) {
        if fact.lifetime.is_expired() {
            return;
        }
        self.name_bytes = self.name_bytes.saturating_add(fact.key.len() as u64);
        let (Some(what_if), Some(memory)) = (&fact.what_if, fact.memory_bytes) else { return };
        if ends.prefix > ends.short_prefix {
            let saved = what_if.saved_by_shorter_name((ends.prefix - ends.short_prefix) as u64);
            self.short_prefix_bytes = self.short_prefix_bytes.saturating_add(saved);
        }
        if let Some(fallback) = what_if.fallback() {
            self.add_fallbacks(Fallbacks {
                limit: fallback.limit,
                step: fallback.step,
                keys: 1,
                memory_bytes: memory,
                saved_bytes: memory.cast_signed().saturating_sub(fallback.memory_bytes.cast_signed()),
            });
        }
    }

    /// Adds the sums of `other`.
    pub fn merge(&mut self, other: Self) {
        self.name_bytes = self.name_bytes.saturating_add(other.name_bytes);
        self.short_prefix_bytes = self.short_prefix_bytes.saturating_add(other.short_prefix_bytes);
        other.fallbacks.into_iter().for_each(|fallbacks| self.add_fallbacks(fallbacks));
    }

    fn add_fallbacks(&mut self, more: Fallbacks) {
        match self.fallbacks.iter_mut().find(|sum| (sum.limit, sum.step) == (more.limit, more.step)) {
            Some(sum) => sum.add(&more),
            None => self.fallbacks.push(more),
        }
    }
}

impl Fallbacks {
    /// Adds the sums of `other`, which is of the same limit.
    pub fn add(&mut self, other: &Self) {
        self.keys += other.keys;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.saved_bytes = self.saved_bytes.saturating_add(other.saved_bytes);
    }
}
