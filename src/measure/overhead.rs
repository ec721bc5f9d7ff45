//! What keys cause in `used_memory` beside the figures of `MEMORY USAGE`: the tables that hold them, and the index of expiries.

use super::costs::{Costs, Line};
use super::table;
use super::{Model, SLOTS};

/// Keys that one pair of tables holds: of a database, or, in a cluster since Redis 7.4 and Valkey 8.0, of a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableKeys {
    /// Keys that are loaded.
    pub keys: u64,
    /// Of these, keys with an expiry.
    pub expires: u64,
    /// What values take beside the figures of `MEMORY USAGE`.
    pub uncounted_bytes: i64,
}

impl TableKeys {
    /// Adds what `other` holds.
    pub fn add(&mut self, other: &Self) {
        self.keys += other.keys;
        self.expires += other.expires;
        self.uncounted_bytes = self.uncounted_bytes.saturating_add(other.uncounted_bytes);
    }
}

/// Computes the tables of one server.
#[derive(Debug)]
pub struct Overhead {
    costs: Costs,
    cluster: bool,
}

impl Overhead {
    /// Of the server of `model`, `cluster` if it is a cluster's.
    pub fn new(model: &Model, cluster: bool) -> Self {
        Self { costs: model.scale().costs, cluster }
    }

    /// True where each slot has tables of its own.
    pub fn has_slot_tables(&self) -> bool {
        self.cluster && self.costs.line >= Line::Redis74
    }

    /// What a node of a cluster takes on top once it holds any keys, and any with an expiry: sums over slots by which keys are found at
    /// random. Valkey 9 also keeps counts by slot. As measured on 8.2.3 and 9.1.2.
    pub fn of_node(&self, held: TableKeys) -> u64 {
        const SUMS: u64 = 24_576;
        const COUNTS: u64 = 12 * SLOTS as u64;
        if !self.has_slot_tables() || held.keys == 0 {
            return 0;
        }
        let sums = if held.expires > 0 { 2 * SUMS } else { SUMS };
        if self.costs.line >= Line::Valkey90 { sums + COUNTS } else { sums }
    }

    /// Bytes of the tables that hold `held`.
    pub fn tables(&self, held: TableKeys) -> u64 {
        if held.keys == 0 {
            return 0;
        }
        self.main(held.keys).saturating_add(self.expires(held.expires))
    }

    /// The table of keys; of its entries only what `MEMORY USAGE` leaves out.
    fn main(&self, keys: u64) -> u64 {
        let usable = |n| self.costs.allocator.usable(n);
        let line = self.costs.line;
        let (own, entries) = match line {
            Line::Valkey80 => (self.dict(), 0),
            line if line >= Line::Valkey81 => return table::valkey_buckets(keys).saturating_add(self.dict()),
            line if line >= Line::Redis82Early => (self.dict().saturating_add(SIZE_HISTOGRAMS), table::chained(keys)),
            // Counted by its size, not by its block.
            _ => (self.dict(), keys.saturating_mul(usable(24) - 24)),
        };
        own.saturating_add(entries).saturating_add(usable(table::presized(keys).saturating_mul(8)))
    }

    /// The table of expiries, whose entries share the key's name.
    fn expires(&self, keys: u64) -> u64 {
        if keys == 0 {
            return 0;
        }
        let usable = |n| self.costs.allocator.usable(n);
        let entries = match self.costs.line {
            Line::Valkey80 => keys.saturating_mul(usable(24)),
            line if line >= Line::Valkey81 => return table::valkey_buckets(keys).saturating_add(self.dict()),
            line if line >= Line::Redis82Early => table::chained(keys),
            _ => keys.saturating_mul(usable(24)),
        };
        self.dict().saturating_add(entries).saturating_add(usable(table::presized(keys).saturating_mul(8)))
    }

    /// Struct of a table that is made when its first key comes; until 7.2 those of all databases are there from the start.
    fn dict(&self) -> u64 {
        match self.costs.line {
            line if line >= Line::Valkey81 => self.costs.allocator.usable(104),
            line if line >= Line::Redis74 => self.costs.allocator.usable(64),
            _ => 0,
        }
    }
}

/// Counts of sizes by type that Redis keeps with each table of keys since 8.0: five types of sixty ranges.
const SIZE_HISTOGRAMS: u64 = 5 * 60 * 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{LoadConfig, Server};

    #[test]
    fn tables_of_fifty_thousand_keys() {
        let model = |server| Model {
            server,
            config: LoadConfig::DEFAULT,
            allocator: None,
            cluster: false,
            object_bytes: Model::OBJECT,
            snapshot: None,
        };
        let tables = |server, expires| {
            Overhead::new(&model(server), false).tables(TableKeys { keys: 50_000, expires, uncounted_bytes: 0 })
        };
        // Measured: 10.5 bytes a key for 65,536 buckets, and with expiries 24 and again 10.5.
        assert_eq!(tables(Server::redis(7, 0, 15), 0), 524_288);
        assert_eq!(tables(Server::redis(7, 0, 15), 50_000), 2 * 524_288 + 24 * 50_000);
        // 4.8 bytes a key for those that are not alone in their bucket.
        let each = (tables(Server::redis(8, 2, 3), 0) - 524_288) as f64 / 50_000.0;
        assert!((4.7..5.0).contains(&each), "{each}");
    }
}
