//! The largest few of many: a list of bounded length that merges.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::measure::{Encoding, Fact, Lifetime, StreamFacts};
use crate::rdb::KeyType;

/// A key in a list, with what the lists show of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// What the list is ranked by.
    pub rank_by: u64,
    /// Bytes of the key.
    pub key: Box<[u8]>,
    /// Database number.
    pub db: u64,
    /// Ordinal of the input.
    pub input: u32,
    /// Offset of the record.
    pub offset: u64,
    /// Type.
    pub key_type: KeyType,
    /// Encoding.
    pub encoding: Encoding,
    /// Elements, where it has any.
    pub elements: Option<u64>,
    /// Bytes of a string value.
    pub string_bytes: Option<u64>,
    /// Longest element that was looked at.
    pub longest_seen_bytes: u64,
    /// Bytes in memory.
    pub memory_bytes: Option<u64>,
    /// Bytes in the dump.
    pub serialized_bytes: u64,
    /// Permanent, volatile or expired.
    pub lifetime: Lifetime,
    /// Slot.
    pub slot: u16,
    /// What is known of a stream.
    pub stream: Option<StreamFacts>,
}

impl KeyRow {
    fn new(rank_by: u64, fact: &Fact<'_>, input: u32) -> Self {
        Self {
            rank_by,
            key: fact.key.into(),
            db: fact.db,
            input,
            offset: fact.offset,
            key_type: fact.key_type,
            encoding: fact.encoding,
            elements: fact.elements,
            string_bytes: fact.payload_bytes.filter(|_| fact.key_type == KeyType::String),
            longest_seen_bytes: fact.longest_seen_bytes,
            memory_bytes: fact.memory_bytes,
            serialized_bytes: fact.serialized_bytes,
            lifetime: fact.lifetime,
            slot: fact.slot,
            stream: fact.stream,
        }
    }

    /// Larger first; among equals by key bytes, database, input and place.
    fn order(&self) -> impl Ord + '_ {
        (Reverse(self.rank_by), &self.key, self.db, self.input, self.offset)
    }
}

impl Ord for KeyRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for KeyRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The `most` largest rows offered so far.
#[derive(Debug, Clone)]
pub struct TopKeys {
    most: usize,
    /// Rank and key below which nothing is taken: there are enough above.
    floor: Option<(u64, Box<[u8]>)>,
    /// The last in order is on top.
    rows: BinaryHeap<KeyRow>,
}

impl TopKeys {
    /// Keeps `most` rows.
    pub fn new(most: usize) -> Self {
        Self { most, floor: None, rows: BinaryHeap::new() }
    }

    /// An empty list for what will be merged with this one: it takes nothing that would not rank here.
    pub fn successor(&self) -> Self {
        let last = self.rows.peek().filter(|_| self.rows.len() >= self.most);
        let floor = last.map_or_else(|| self.floor.clone(), |last| Some((last.rank_by, last.key.clone())));
        Self { most: self.most, floor, rows: BinaryHeap::new() }
    }

    /// Takes the key where it ranks among the largest.
    #[inline]
    pub fn offer(&mut self, rank_by: u64, fact: &Fact<'_>, input: u32) {
        let last = if self.rows.len() >= self.most {
            match self.rows.peek() {
                Some(last) => Some((last.rank_by, &last.key)),
                None => return,
            }
        } else {
            self.floor.as_ref().map(|(rank_by, key)| (*rank_by, key))
        };
        if last.is_some_and(|(least, key)| (Reverse(rank_by), fact.key) > (Reverse(least), key)) {
            return;
        }
        self.push(KeyRow::new(rank_by, fact, input));
    }

    /// Adds the rows of `other`.
    pub fn merge(&mut self, other: Self) {
        for row in other.rows {
            self.push(row);
        }
    }

    /// The rows, in no order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &KeyRow> + Clone {
        self.rows.iter()
    }

    /// The rows, largest first.
    pub fn into_sorted(self) -> Vec<KeyRow> {
        self.rows.into_sorted_vec()
    }

    fn push(&mut self, row: KeyRow) {
        self.rows.push(row);
        if self.rows.len() > self.most {
            self.rows.pop();
        }
    }
}
