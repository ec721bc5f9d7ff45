//! Nodes of a list: kept as they are in the dump, converted, or filled one element after another.

use super::packing::{Item, Packing};
use super::tally::Scale;

/// Longest node that a limit of elements, not bytes, allows (`SIZE_SAFETY_LIMIT`).
const SAFE_BYTES: u64 = 8192;

/// Longest element of a packed node where the limit of bytes does not tell.
const MOST_BYTES: u64 = 1 << 30;

/// Sums over the nodes of a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListNodes {
    /// Nodes.
    pub count: u64,
    /// Of these, nodes that are one long element.
    pub plain: u64,
    /// Bytes of the largest packed node.
    pub largest: u64,
    /// Cost of all nodes.
    pub cost: u64,
    open: Packing,
    announced: Option<u64>,
}

impl ListNodes {
    /// A packed node that stays as it is.
    #[inline]
    pub fn kept(&mut self, len: u64, scale: &Scale<'_>) {
        self.count += 1;
        self.largest = self.largest.max(len);
        self.cost = self.cost.saturating_add(scale.costs.list_node(len));
    }

    /// A node that is one long element.
    #[inline]
    pub fn plain(&mut self, len: u64, scale: &Scale<'_>) {
        self.count += 1;
        self.plain += 1;
        self.cost = self.cost.saturating_add(scale.costs.list_node(len));
    }

    /// An element is pushed at the end, as `quicklistPushTail` does.
    pub fn push(&mut self, item: Item, len: u64, scale: &Scale<'_>) {
        if self.is_large(len, scale) {
            self.settle(scale);
            self.plain(len, scale);
            return;
        }
        if self.open.entries() > 0 && !self.has_room(len, scale) {
            self.settle(scale);
        }
        self.open.push(item, scale.has_listpacks());
    }

    /// A node that is converted has so many entries; they come next, or, where its header did not know, came before.
    pub fn announce(&mut self, entries: u64, scale: &Scale<'_>) {
        if self.announced.is_none() && self.open.entries() > 0 {
            self.settle(scale);
            return;
        }
        self.open = Packing::default();
        self.announced = (entries > 0).then_some(entries);
    }

    /// An entry of a node that is converted.
    pub fn repack(&mut self, item: Item, scale: &Scale<'_>) {
        self.open.push(item, scale.has_listpacks());
        if self.announced == Some(self.open.entries()) {
            self.settle(scale);
        }
    }

    /// Closes the node that is being filled.
    pub fn settle(&mut self, scale: &Scale<'_>) {
        if self.open.entries() > 0 {
            self.kept(self.open.bytes(scale.has_listpacks()), scale);
        }
        self.open = Packing::default();
        self.announced = None;
    }

    /// An element that gets a node of its own.
    fn is_large(&self, len: u64, scale: &Scale<'_>) -> bool {
        match scale.config.list_node() {
            _ if !scale.server.is_redis_from(7, 0) => false,
            _ if !scale.server.is_redis_from(7, 4) => len >= MOST_BYTES,
            (Some(bytes), _) => len > bytes,
            (None, _) => len > SAFE_BYTES,
        }
    }

    fn has_room(&self, len: u64, scale: &Scale<'_>) -> bool {
        // What the server takes an entry to add, which may be more than it does.
        let overhead = if scale.has_listpacks() {
            8
        } else {
            let header = match len {
                0..=63 => 1,
                64..=16_383 => 2,
                _ => 5,
            };
            header + if len < 254 { 1 } else { 5 }
        };
        let bytes = self.open.bytes(scale.has_listpacks()).saturating_add(len).saturating_add(overhead);
        match scale.config.list_node() {
            (Some(most), _) => bytes <= most,
            (None, entries) => bytes <= SAFE_BYTES && self.open.entries() < entries,
        }
    }
}
