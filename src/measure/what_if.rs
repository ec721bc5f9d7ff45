//! What a key would take if it were held otherwise, by the same model.

use super::Model;
use super::allocator::Allocator;
use super::config::{Limit, LoadConfig};
use super::encoding::{self, Encoding, LoadedKey};
use super::memory;
use super::packing::{self, Item};
use super::tally::{Scale, Tally};
use crate::rdb::KeyType;

/// A measured key that other conditions can be tried on.
#[derive(Debug, Clone, Copy)]
pub struct WhatIf<'a> {
    pub(super) key: &'a LoadedKey<'a>,
    pub(super) encoding: Encoding,
    pub(super) allocator: Option<Allocator>,
    pub(super) tally: &'a Tally,
    pub(super) scale: &'a Scale<'a>,
}

/// What makes a key compact that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// The limit that it is above.
    pub limit: Limit,
    /// Index in [`Limit::STEPS`] of the first step that lets it in.
    pub step: usize,
    /// What it would take.
    pub memory_bytes: u64,
}

impl WhatIf<'_> {
    /// Bytes that the key would take less if its name were shorter by so many; negative where allocation sizes play that trick.
    #[inline]
    pub fn saved_by_shorter_name(&self, by: u64) -> i64 {
        let &Self { key, encoding, tally, scale, .. } = self;
        let shorter = LoadedKey { key_len: key.key_len.saturating_sub(by), ..*key };
        let moves = key.record_type.key_type == KeyType::String && scale.names_move_values();
        let then = if moves { self.loaded(&shorter, scale.config) } else { encoding };
        let now = memory::with_name_of(key, encoding, tally, scale);
        now.cast_signed() - memory::with_name_of(&shorter, then, tally, scale).cast_signed()
    }

    /// The one limit that keeps the key from its compact encoding, where that is less than eight times too low. A key that is above two is
    /// not helped by one.
    #[inline]
    pub fn fallback(&self) -> Option<Fallback> {
        if !matches!(self.encoding, Encoding::Hashtable | Encoding::Skiplist) {
            return None;
        }
        let &Self { key, tally, scale, .. } = self;
        Limit::of(key.record_type.key_type).iter().find_map(|&limit| {
            let needed = if limit.is_of_length() { tally.longest } else { key.elements };
            let now = limit.get(scale.config);
            let step = Limit::STEPS.iter().position(|step| needed <= now.saturating_mul(*step))?;
            let raised = limit.raised(scale.config, step);
            let encoding = self.loaded(key, &raised);
            let is_compact = !matches!(encoding, Encoding::Hashtable | Encoding::Skiplist);
            is_compact.then(|| Fallback { limit, step, memory_bytes: memory::compact(key, encoding, tally, scale) })
        })
    }

    /// Bytes that a string and `name` take as value and field of a packed hash; `None` where either is too long for one.
    #[inline]
    pub fn as_field(&self, name: &[u8]) -> Option<u64> {
        let &Self { key, tally, scale, .. } = self;
        if key.record_type.key_type != KeyType::String || tally.payload.max(name.len() as u64) > scale.config.hash.value {
            return None;
        }
        let value = if tally.all_integers { Item::Int(tally.range.0) } else { Item::Text(tally.payload) };
        let field = packing::integer(name).map_or(Item::Text(name.len() as u64), Item::Int);
        let listpack = scale.has_listpacks();
        Some(packing::entry(field, listpack).saturating_add(packing::entry(value, listpack)))
    }

    fn loaded(&self, key: &LoadedKey<'_>, config: &LoadConfig) -> Encoding {
        encoding::after_load(self.scale.server, config, self.allocator, key, self.tally)
    }
}

/// Hashes that hold what were strings before.
#[derive(Debug)]
pub struct StringsAsHash<'m> {
    scale: Scale<'m>,
}

impl<'m> StringsAsHash<'m> {
    /// Hashes of the server that `model` describes.
    pub fn new(model: &'m Model) -> Self {
        Self { scale: model.scale() }
    }

    /// Memory of a permanent hash with a key of `key_len` bytes, whose fields and values take `entry_bytes`; `None` where it is too large to
    /// be packed.
    pub fn memory_bytes(&self, key_len: u64, fields: u64, entry_bytes: u64) -> Option<u64> {
        let packs = fields <= self.scale.config.hash.entries;
        packs.then(|| memory::packed_hash(key_len, entry_bytes, &self.scale))
    }
}
