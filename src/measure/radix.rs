//! Nodes of a server's radix tree (`rax.c`) over sorted keys, counted while the keys pass.

use super::allocator::Allocator;

/// Bytes of a key that are looked at: ids have 16, longer names are taken to differ in these.
const KEY: usize = 32;

/// A tree, and the way to the last key in it: the depths at which other keys branched off, and how many children each of those nodes has.
#[derive(Debug, Clone, Copy)]
pub(super) struct RadixTree {
    last: [u8; KEY],
    last_len: usize,
    branches: [(u8, u32); KEY],
    depth: usize,
    keys: u64,
    nodes: u64,
    bytes: u64,
}

/// What a whole tree amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TreeSize {
    /// Keys.
    pub keys: u64,
    /// Nodes.
    pub nodes: u64,
    /// Allocated bytes of the nodes.
    pub bytes: u64,
}

impl Default for RadixTree {
    fn default() -> Self {
        Self { last: [0; KEY], last_len: 0, branches: [(0, 0); KEY], depth: 0, keys: 0, nodes: 0, bytes: 0 }
    }
}

impl RadixTree {
    /// Adds a key, which must be larger than those before; another is taken for a further copy of the last and left out.
    pub fn add(&mut self, key: &[u8], allocator: Allocator) {
        let key = key.get(..KEY).unwrap_or(key);
        let last = &self.last[..self.last_len];
        if self.keys > 0 {
            if key <= last {
                return;
            }
            let shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
            // A key that goes on where another ends is taken to differ in the last byte.
            let shared = shared.min(self.last_len.saturating_sub(1));
            let below = self.close(shared, self.last_len, allocator);
            match self.depth.checked_sub(1).map(|top| &mut self.branches[top]) {
                Some((depth, children)) if usize::from(*depth) == shared => *children += 1,
                // Depths on the way are distinct and below the key's length, so that there is room.
                _ => {
                    self.branches[self.depth] = (shared as u8, 1);
                    self.depth += 1;
                }
            }
            self.stretch(below.saturating_sub(shared + 1), allocator);
        }
        self.last[..key.len()].copy_from_slice(key);
        self.last_len = key.len();
        self.keys = self.keys.saturating_add(1);
    }

    /// Ends the tree and starts over.
    pub fn take(&mut self, allocator: Allocator) -> TreeSize {
        let size = if self.keys == 0 {
            TreeSize { keys: 0, nodes: 1, bytes: allocator.usable(node_bytes(0, 0, false)) }
        } else {
            let top = self.close(0, self.last_len, allocator);
            // A node that branches at the root is the last one open.
            let top = match self.depth {
                0 => top,
                _ => {
                    let (depth, children) = self.branches[0];
                    self.stretch(top.saturating_sub(usize::from(depth) + 1), allocator);
                    self.branch(u64::from(children) + 1, allocator);
                    usize::from(depth)
                }
            };
            self.stretch(top, allocator);
            let leaf = allocator.usable(node_bytes(0, 0, true));
            TreeSize {
                keys: self.keys,
                nodes: self.nodes.saturating_add(self.keys),
                bytes: self.bytes.saturating_add(self.keys.saturating_mul(leaf)),
            }
        };
        *self = Self::default();
        size
    }

    /// Closes the nodes that branch deeper than `shared`, and returns the depth of what hangs there then.
    fn close(&mut self, shared: usize, mut below: usize, allocator: Allocator) -> usize {
        while let Some(top) = self.depth.checked_sub(1) {
            let (depth, children) = self.branches[top];
            let depth = usize::from(depth);
            if depth <= shared {
                break;
            }
            self.stretch(below.saturating_sub(depth + 1), allocator);
            self.branch(u64::from(children) + 1, allocator);
            self.depth = top;
            below = depth;
        }
        below
    }

    /// A stretch of `chars` bytes without branches is one node.
    fn stretch(&mut self, chars: usize, allocator: Allocator) {
        if chars > 0 {
            self.nodes = self.nodes.saturating_add(1);
            self.bytes = self.bytes.saturating_add(allocator.usable(node_bytes(chars as u64, 1, false)));
        }
    }

    fn branch(&mut self, children: u64, allocator: Allocator) {
        self.nodes = self.nodes.saturating_add(1);
        self.bytes = self.bytes.saturating_add(allocator.usable(node_bytes(children, children, false)));
    }
}

/// Bytes of a node: header, characters, padding to eight, pointers to children, and one to the value of a key.
pub(super) fn node_bytes(chars: u64, children: u64, is_key: bool) -> u64 {
    (4 + chars).next_multiple_of(8) + 8 * children + if is_key { 8 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(ids: impl Iterator<Item = (u64, u64)>) -> TreeSize {
        let mut tree = RadixTree::default();
        for (ms, seq) in ids {
            let key = (u128::from(ms) << 64 | u128::from(seq)).to_be_bytes();
            tree.add(&key, Allocator::Jemalloc);
        }
        tree.take(Allocator::Jemalloc)
    }

    #[test]
    fn nodes_as_xinfo_stream_counts_them() {
        // One listpack for each 100 entries of consecutive milliseconds.
        let streams = |n: u64| size((0..n).map(|k| (1_700_000_000_000 + 100 * k, 0))).nodes;
        assert_eq!(size(std::iter::empty()).nodes, 1);
        assert_eq!(streams(1), 2);
        assert_eq!(size([(1, 0), (2, 0)].into_iter()).nodes, 6);
        // Worked out by hand: a stretch of seven bytes, a branch of two, a stretch and a leaf each.
        assert_eq!(size([(1, 0), (2, 0)].into_iter()).bytes, 24 + 24 + 2 * (24 + 16));
    }

    #[test]
    fn the_recursive_definition() {
        fn nodes(keys: &[[u8; 16]], depth: usize) -> u64 {
            if let [_] = keys {
                return if depth < 16 { 2 } else { 1 };
            }
            let (first, last) = (keys[0], keys[keys.len() - 1]);
            let prefix = (depth..16).take_while(|&at| first[at] == last[at]).count();
            let mut sum = u64::from(prefix > 0) + 1;
            let mut rest = keys;
            while let Some(first) = rest.first() {
                let at = depth + prefix;
                let group = rest.iter().take_while(|key| key[at] == first[at]).count();
                sum += nodes(&rest[..group], at + 1);
                rest = &rest[group..];
            }
            sum
        }
        let mut state = 1u64;
        for n in [2usize, 3, 10, 100, 500] {
            let mut ids: Vec<(u64, u64)> = (0..n)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ((state >> 33) % 70_000, (state >> 20) % 3)
                })
                .collect();
            ids.sort_unstable();
            ids.dedup();
            let keys: Vec<[u8; 16]> =
                ids.iter().map(|(ms, seq)| (u128::from(*ms) << 64 | u128::from(*seq)).to_be_bytes()).collect();
            assert_eq!(size(ids.into_iter()).nodes, nodes(&keys, 0), "{n}");
        }
    }
}
