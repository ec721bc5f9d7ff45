//! The sums that every table shares.

use crate::measure::{Fact, Lifetime};

/// Sums over a set of keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys: permanent, volatile and expired.
    pub keys: u64,
    /// Members, fields and entries; a string has none.
    pub elements: u64,
    /// Bytes in the server's memory.
    pub memory_bytes: u64,
    /// Bytes of records in the dump.
    pub serialized_bytes: u64,
    /// Keys without expiry.
    pub permanent_keys: u64,
    /// Their memory.
    pub permanent_memory_bytes: u64,
    /// Keys whose expiry had passed at the snapshot time.
    pub expired_keys: u64,
    /// Their memory.
    pub expired_memory_bytes: u64,
    /// Keys whose memory is not modelled, and so in no memory sum.
    pub not_modelled_keys: u64,
    /// Elements of the key that has most.
    pub max_elements: u64,
    /// Memory of the key that takes most.
    pub max_memory_bytes: u64,
}

impl Counts {
    /// Adds one key.
    #[inline]
    pub fn add(&mut self, fact: &Fact<'_>) {
        let memory = fact.memory_bytes.unwrap_or(0);
        let elements = fact.elements.unwrap_or(0);
        self.keys += 1;
        // A record may claim any number; sums stay defined.
        self.elements = self.elements.saturating_add(elements);
        self.memory_bytes = self.memory_bytes.saturating_add(memory);
        self.serialized_bytes += fact.serialized_bytes;
        match fact.lifetime {
            Lifetime::Permanent => {
                self.permanent_keys += 1;
                self.permanent_memory_bytes = self.permanent_memory_bytes.saturating_add(memory);
            }
            Lifetime::Expired { .. } => {
                self.expired_keys += 1;
                self.expired_memory_bytes = self.expired_memory_bytes.saturating_add(memory);
            }
            Lifetime::Volatile { .. } => {}
        }
        self.not_modelled_keys += u64::from(fact.memory_bytes.is_none());
        self.max_elements = self.max_elements.max(elements);
        self.max_memory_bytes = self.max_memory_bytes.max(memory);
    }

    /// Adds the sums of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.keys += other.keys;
        self.elements = self.elements.saturating_add(other.elements);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.serialized_bytes += other.serialized_bytes;
        self.permanent_keys += other.permanent_keys;
        self.permanent_memory_bytes = self.permanent_memory_bytes.saturating_add(other.permanent_memory_bytes);
        self.expired_keys += other.expired_keys;
        self.expired_memory_bytes = self.expired_memory_bytes.saturating_add(other.expired_memory_bytes);
        self.not_modelled_keys += other.not_modelled_keys;
        self.max_elements = self.max_elements.max(other.max_elements);
        self.max_memory_bytes = self.max_memory_bytes.max(other.max_memory_bytes);
    }

    /// Keys with an expiry still to come.
    pub fn volatile_keys(&self) -> u64 {
        self.keys - self.permanent_keys - self.expired_keys
    }
}

/// The sums that databases and slots show. One cache line, since the slots of keys follow no order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct PlaceCounts {
    /// Keys.
    pub keys: u64,
    /// Bytes in the server's memory.
    pub memory_bytes: u64,
    /// Bytes of records in the dump.
    pub serialized_bytes: u64,
    /// Members, fields and entries.
    pub elements: u64,
    /// Keys without expiry.
    pub permanent_keys: u64,
    /// Keys whose expiry had passed at the snapshot time.
    pub expired_keys: u64,
    /// Their memory.
    pub expired_memory_bytes: u64,
}

impl PlaceCounts {
    /// Those of one key.
    #[inline]
    pub fn of(fact: &Fact<'_>) -> Self {
        let memory = fact.memory_bytes.unwrap_or(0);
        let expired = fact.lifetime.is_expired();
        Self {
            keys: 1,
            memory_bytes: memory,
            serialized_bytes: fact.serialized_bytes,
            elements: fact.elements.unwrap_or(0),
            permanent_keys: u64::from(fact.lifetime == Lifetime::Permanent),
            expired_keys: u64::from(expired),
            expired_memory_bytes: if expired { memory } else { 0 },
        }
    }

    /// Adds the sums of `other`.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.keys += other.keys;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.serialized_bytes += other.serialized_bytes;
        self.elements = self.elements.saturating_add(other.elements);
        self.permanent_keys += other.permanent_keys;
        self.expired_keys += other.expired_keys;
        self.expired_memory_bytes = self.expired_memory_bytes.saturating_add(other.expired_memory_bytes);
    }

    /// Keys with an expiry still to come.
    pub fn volatile_keys(&self) -> u64 {
        self.keys - self.permanent_keys - self.expired_keys
    }
}
