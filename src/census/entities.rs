//! Entities whose attributes are strings of their own, `user:7:name` and `user:7:email`, which one hash for each entity could hold.

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::measure::{Fact, Lifetime};
use crate::rdb::KeyType;

/// Most entities that are kept.
const MOST: usize = 1 << 14;

/// An entity and the strings that a hash would hold as its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// The smallest key among the strings.
    pub key: Box<[u8]>,
    /// Sums over them.
    pub figures: Figures,
}

/// Sums over the strings of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Bytes at the end of the smallest key which are the name of the field, with the separator in front.
    pub tail: usize,
    /// Strings.
    pub strings: u64,
    /// Memory that they take.
    pub memory_bytes: u64,
    /// Bytes that they would take as entries of a packed hash.
    pub entry_bytes: u64,
}

/// All entities, or, where there are many, those of a sample: the ones with the smallest hashes. Which these are is a function of the set of
/// entities alone, and every string of an entity is there or none.
#[derive(Debug, Clone, Default)]
pub struct Entities {
    /// One entity in 2^halvings is kept.
    halvings: u32,
    held: HashMap<u64, Entity>,
}

impl Entities {
    /// Takes a key that ends in `tail` literal bytes, a separator first, where it is a permanent string that is short enough for a packed
    /// hash. One that expires has no place in a hash, which lives and dies as a whole.
    #[inline]
    pub fn offer(&mut self, fact: &Fact<'_>, tail: usize) {
        if tail < 2 || tail >= fact.key.len() || fact.key_type != KeyType::String || fact.lifetime != Lifetime::Permanent {
            return;
        }
        let (entity, field) = fact.key.split_at(fact.key.len() - tail);
        let hash = xxh3_64_with_seed(entity, fact.db);
        if !self.keeps(hash) {
            return;
        }
        let figures = fact.what_if.as_ref().and_then(|what_if| what_if.as_field(&field[1..])).zip(fact.memory_bytes);
        if let Some((entry_bytes, memory_bytes)) = figures {
            self.put(hash, fact.key, &Figures { tail, strings: 1, memory_bytes, entry_bytes });
        }
    }

    /// Adds the entities of `other`.
    pub fn merge(&mut self, other: Self) {
        self.halvings = self.halvings.max(other.halvings);
        let halvings = self.halvings;
        self.held.retain(|hash, _| is_kept(*hash, halvings));
        for (hash, entity) in other.held {
            self.put(hash, &entity.key, &entity.figures);
        }
    }

    /// How many entities each of those that are kept stands for.
    pub fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// Those that are kept, in no order.
    pub fn into_kept(self) -> impl Iterator<Item = Entity> {
        self.held.into_values()
    }

    fn keeps(&self, hash: u64) -> bool {
        is_kept(hash, self.halvings)
    }

    fn put(&mut self, hash: u64, key: &[u8], figures: &Figures) {
        // Each one may end in fewer being kept.
        if !self.keeps(hash) {
            return;
        }
        match self.held.get_mut(&hash) {
            Some(held) => return held.add(key, figures),
            None => self.held.insert(hash, Entity { key: key.into(), figures: *figures }),
        };
        while self.held.len() > MOST {
            self.halvings += 1;
            let halvings = self.halvings;
            self.held.retain(|hash, _| is_kept(*hash, halvings));
        }
    }
}

fn is_kept(hash: u64, halvings: u32) -> bool {
    hash.leading_zeros() >= halvings
}

impl Entity {
    fn add(&mut self, key: &[u8], more: &Figures) {
        let sum = &mut self.figures;
        sum.strings += more.strings;
        sum.memory_bytes = sum.memory_bytes.saturating_add(more.memory_bytes);
        sum.entry_bytes = sum.entry_bytes.saturating_add(more.entry_bytes);
        if key < &*self.key {
            self.key = key.into();
            sum.tail = more.tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl Iterator<Item = u64>) -> Entities {
        let mut entities = Entities::default();
        for (name, field) in numbers.flat_map(|number| ["name", "email"].map(|field| (format!("user:{number}"), field))) {
            let hash = xxh3_64_with_seed(name.as_bytes(), 0);
            let figures = Figures { tail: field.len() + 1, strings: 1, memory_bytes: 80, entry_bytes: 10 };
            entities.put(hash, format!("{name}:{field}").as_bytes(), &figures);
        }
        entities
    }

    #[test]
    fn a_sample_does_not_depend_on_how_the_input_was_cut() {
        const ALL: u64 = 100_000;
        let whole = of(0..ALL);
        // 100,000 / 8 is the first that fits into 16,384.
        assert_eq!(whole.weight(), 8);
        let both = Figures { tail: ":email".len(), strings: 2, memory_bytes: 160, entry_bytes: 20 };
        assert!(whole.held.values().all(|entity| entity.figures == both && entity.key.ends_with(b":email")));
        let estimate = whole.held.len() as u64 * whole.weight();
        assert!((97_000..103_000).contains(&estimate), "{estimate}");
        for pieces in [2, 7] {
            let mut merged = Entities::default();
            (0..pieces).for_each(|piece| merged.merge(of((piece..ALL).step_by(pieces as usize))));
            assert!(merged.halvings == whole.halvings && merged.held == whole.held, "{pieces} pieces");
        }
    }

    #[test]
    fn few_entities_are_all_kept() {
        let entities = of(0..1000);
        assert_eq!((entities.weight(), entities.held.len()), (1, 1000));
    }
}
