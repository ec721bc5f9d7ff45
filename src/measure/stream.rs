//! Memory of a stream: its nodes, the radix tree over them, consumer groups and what is pending.

use super::costs::{Costs, Line};
use super::radix::{RadixTree, TreeSize};
use crate::rdb::{Str, StreamPart};

/// A radix tree as most servers estimate it: each key by its 16 bytes, each node by its header and a guess of thirty pointers.
const GUESSED_KEY: u64 = 16;
const GUESSED_NODE: u64 = 4 + 30 * 8;

/// Sums over the parts of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamTally {
    cost: u64,
    tree: RadixTree,
    is_open: bool,
    /// Trees over the names of groups, and of the consumers of one.
    groups: RadixTree,
    consumers: RadixTree,
    /// Tree over the ids that any group has pending. Ids of a later group that are not behind those of the groups before are taken to be
    /// among these.
    pending: RadixTree,
    has_pending: bool,
    has_groups: bool,
    in_group: bool,
}

impl StreamTally {
    /// A node's block.
    pub fn block(&mut self, len: u64, costs: &Costs) {
        self.cost = self.cost.saturating_add(costs.stream_block(len));
    }

    /// A part of the record.
    pub fn part(&mut self, part: &StreamPart<'_>, costs: &Costs) {
        match part {
            StreamPart::Node(id) | StreamPart::ConsumerPending(id) => {
                self.is_open = true;
                self.tree.add(&id[..], costs.allocator);
            }
            StreamPart::GroupPending(id) => {
                self.tree.add(&id[..], costs.allocator);
                if costs.refers_to_groups() {
                    self.has_pending = true;
                    self.pending.add(&id[..], costs.allocator);
                }
            }
            StreamPart::Counters(_) => {
                self.is_open = true;
                self.end_tree(costs);
            }
            StreamPart::Group { name, pending } => {
                self.end_group(costs);
                self.has_groups = true;
                self.in_group = true;
                self.is_open = true;
                self.add(costs.group().saturating_add(pending.saturating_mul(costs.pending_entry())));
                add_name(&mut self.groups, *name, costs);
            }
            StreamPart::Consumer { name, .. } => {
                self.end_tree(costs);
                self.is_open = true;
                self.add(costs.consumer(name.len()));
                add_name(&mut self.consumers, *name, costs);
            }
            StreamPart::HandedBack(_) => {}
        }
    }

    /// Cost of the whole without the object.
    pub fn settle(&mut self, costs: &Costs) -> u64 {
        self.end_group(costs);
        if self.has_groups && costs.has_exact_trees() && !costs.line.is_valkey() {
            let groups = self.groups.take(costs.allocator);
            self.add(costs.tree(groups));
        }
        if self.has_pending {
            let pending = self.pending.take(costs.allocator);
            self.add(costs.tree(pending));
        }
        self.cost.saturating_add(costs.stream())
    }

    fn end_group(&mut self, costs: &Costs) {
        self.end_tree(costs);
        if self.in_group && costs.has_exact_trees() && !costs.line.is_valkey() {
            let consumers = self.consumers.take(costs.allocator);
            self.add(costs.tree(consumers));
        }
        self.in_group = false;
    }

    fn end_tree(&mut self, costs: &Costs) {
        if self.is_open {
            let size = self.tree.take(costs.allocator);
            self.add(costs.tree(size));
            self.is_open = false;
        }
    }

    fn add(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }
}

fn add_name(tree: &mut RadixTree, name: Str<'_>, costs: &Costs) {
    // A number, or a name so long that it was compressed, is rare enough to go without its text.
    if let (true, Str::Raw(name)) = (costs.has_exact_trees(), name) {
        tree.add(name, costs.allocator);
    }
}

impl Costs {
    /// True where a server keeps account of its radix trees instead of guessing.
    fn has_exact_trees(&self) -> bool {
        self.line.is_redis_from(Line::Redis84) || self.line >= Line::Valkey81
    }

    /// A radix tree.
    fn tree(&self, size: TreeSize) -> u64 {
        if !self.has_exact_trees() {
            return size.keys.saturating_mul(GUESSED_KEY).saturating_add(size.nodes.saturating_mul(GUESSED_NODE));
        }
        size.bytes.saturating_add(self.allocator.usable(32))
    }

    /// The stream's own struct.
    fn stream(&self) -> u64 {
        match self.line {
            Line::Redis40 | Line::Redis50 | Line::Redis60 | Line::Redis60Late => 0,
            Line::Redis62 => 40,
            Line::Redis82Early | Line::Redis82 => 112,
            Line::Redis84 => self.allocator.usable(120),
            Line::Redis86 => self.allocator.usable(160),
            _ => 80,
        }
    }

    /// True where a tree that says which groups have an entry pending is in the account.
    fn refers_to_groups(&self) -> bool {
        self.line.is_redis_from(Line::Redis84)
    }

    /// A pending entry.
    fn pending_entry(&self) -> u64 {
        match self.line {
            Line::Redis86 => self.allocator.usable(64),
            line if line.is_redis_from(Line::Redis82Early) => self.allocator.usable(32),
            _ => 24,
        }
    }

    /// A group's own struct.
    fn group(&self) -> u64 {
        match self.line {
            Line::Redis84 => self.allocator.usable(48),
            Line::Redis86 => self.allocator.usable(56),
            _ if self.line >= Line::Redis70 => 40,
            _ => 32,
        }
    }

    /// A consumer's own struct and its name.
    fn consumer(&self, name: u64) -> u64 {
        match self.line {
            _ if self.line.is_redis_from(Line::Redis84) => self.allocator.usable(32).saturating_add(self.text(name)),
            _ if self.line >= Line::Redis72 => name.saturating_add(32),
            _ => name.saturating_add(24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Allocator;
    use crate::measure::Server;

    #[test]
    fn one_node_of_fifty_bytes() {
        let cost = |server, allocator| {
            let costs = Costs::new(server, allocator, false);
            let mut stream = StreamTally::default();
            stream.part(&StreamPart::Node(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]), &costs);
            stream.block(50, &costs);
            stream.part(&StreamPart::Counters(Default::default()), &costs);
            stream.settle(&costs)
        };
        // MEMORY USAGE less key, entry and object.
        assert_eq!(cost(Server::redis(6, 2, 5), Allocator::Jemalloc), 40 + 16 + 488 + 50);
        assert_eq!(cost(Server::redis(7, 0, 15), Allocator::Jemalloc), 80 + 504 + 56);
        assert_eq!(cost(Server::redis(8, 2, 3), Allocator::Jemalloc), 112 + 504 + 56);
        assert_eq!(cost(Server::redis(8, 4, 0), Allocator::Jemalloc), 128 + 80 + 50);
        assert_eq!(cost(Server::redis(8, 6, 0), Allocator::Jemalloc), 160 + 80 + 50);
        assert_eq!(cost(Server::valkey(9, 1, 2), Allocator::Libc), 80 + 104 + 56);
    }
}
