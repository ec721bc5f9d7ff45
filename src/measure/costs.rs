//! What the parts of a loaded value cost on one server line with one allocator.

use super::allocator::Allocator;
use super::server::Server;
use crate::rdb::Family;

/// Server lines that account differently. Within a family later ones compare greater; between families the order means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// Redis 4.0, and in its stead all before.
    Redis40,
    Redis50,
    /// Up to 6.0.8.
    Redis60,
    /// From 6.0.9: names and strings by their allocation.
    Redis60Late,
    Redis62,
    Redis70,
    Redis72,
    /// 7.4 and 8.0.
    Redis74,
    /// 8.2.0 and 8.2.1, which leave the key out.
    Redis82Early,
    Redis82,
    Redis84,
    /// 8.6 and later.
    Redis86,
    /// 7.2 is counted as Redis 7.2.
    Valkey80,
    Valkey81,
    Valkey90,
    /// 9.1 and later.
    Valkey91,
}

impl Line {
    fn of(server: Server) -> Self {
        let [major, minor, patch] = server.version;
        match server.family {
            Family::Redis => match (major, minor) {
                (0..=4, _) => Self::Redis40,
                (5, _) => Self::Redis50,
                (6, 0) if patch < 9 => Self::Redis60,
                (6, 0) => Self::Redis60Late,
                (6, _) => Self::Redis62,
                (7, 0) => Self::Redis70,
                (7, 1..=2) => Self::Redis72,
                (7, _) | (8, 0..=1) => Self::Redis74,
                (8, 2) if patch < 2 => Self::Redis82Early,
                (8, 2..=3) => Self::Redis82,
                (8, 4..=5) => Self::Redis84,
                _ => Self::Redis86,
            },
            Family::Valkey => match (major, minor) {
                (..=7, _) => Self::Redis72,
                (8, 0) => Self::Valkey80,
                (8, _) => Self::Valkey81,
                (9, 0) => Self::Valkey90,
                _ => Self::Valkey91,
            },
        }
    }

    pub fn is_valkey(self) -> bool {
        self >= Self::Valkey80
    }

    /// True for Redis from `line` on.
    pub fn is_redis_from(self, line: Self) -> bool {
        self >= line && !self.is_valkey()
    }
}

/// Which size of an allocation a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    /// What was asked for.
    Requested,
    /// What can be used.
    Usable,
}

/// Fixed-point unit of expected sizes: levels of skip lists are random.
pub(super) const UNIT: u64 = 1 << 10;

/// Lengths for which sizes are kept ready.
const READY: usize = 160;

/// Most levels that are told apart; deeper ones occur once in a million nodes.
const LEVELS: u64 = 10;

/// Sizes of one server line with one allocator.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    pub line: Line,
    pub allocator: Allocator,
    /// Object header: 16 bytes; KeyDB has 24.
    pub object: u64,
    /// Key name by the argument of the command: Redis 4.0, 5.0.0.
    pub key_by_argument: bool,
    /// Links between the keys of a slot: 7.0 in cluster mode.
    pub slot_links: u64,
    /// Blocks of stream nodes by their allocation.
    pub stream_blocks_usable: bool,
    text: Reported,
    block: Reported,
    /// Longest strings with headers of three and of five bytes.
    text8: u64,
    text16: u64,
    /// Expected size of a skip list's node: of its own, and with a member of so many bytes inside, in [`UNIT`]s of a byte.
    node: u64,
    ready: Box<[u64]>,
    /// Reported bytes of strings, and blocks of hash fields without an expiry from 7.4 on.
    texts: [u64; READY],
    fields: [u64; READY],
}

impl Costs {
    pub fn new(server: Server, allocator: Allocator, cluster: bool) -> Self {
        let line = Line::of(server);
        let newest_sds = line.is_valkey() || line >= Line::Redis82Early;
        let usable = |from: Line| if line >= from { Reported::Usable } else { Reported::Requested };
        let mut costs = Self {
            line,
            allocator,
            object: 16,
            key_by_argument: line == Line::Redis40 || server == Server::redis(5, 0, 0),
            slot_links: if cluster && line == Line::Redis70 { 16 } else { 0 },
            stream_blocks_usable: line >= Line::Redis70 || (line == Line::Redis62 && server.version[2] >= 9),
            text: usable(Line::Redis60Late),
            block: if line.is_redis_from(Line::Redis84) { Reported::Requested } else { usable(Line::Redis70) },
            text8: if newest_sds { 252 } else { 255 },
            text16: if newest_sds { 65_530 } else { 65_535 },
            node: 0,
            ready: Box::default(),
            texts: [0; READY],
            fields: [0; READY],
        };
        costs.texts = std::array::from_fn(|len| costs.text_of(len as u64));
        costs.fields = std::array::from_fn(|len| costs.field_of(len as u64, false));
        costs.node = expected(|level| costs.allocator.usable(24 + 16 * level));
        if costs.embeds_members() {
            costs.ready = (0..READY as u64).map(|len| costs.node_with(len)).collect();
        }
        costs
    }

    /// Bytes that a string asks for: header, text, terminator.
    #[inline]
    pub fn text_request(&self, len: u64) -> u64 {
        len.saturating_add(match len {
            1..=31 => 2,
            0 => 4,
            _ if len <= self.text8 => 4,
            _ if len <= self.text16 => 6,
            _ if len <= u64::from(u32::MAX) => 10,
            _ => 18,
        })
    }

    /// Bytes that a string asks for inside another block, where the empty one has the smallest header.
    #[inline]
    pub fn inner_request(&self, len: u64) -> u64 {
        if len == 0 { 2 } else { self.text_request(len) }
    }

    /// Bytes that a string asks for whose header has room for flags.
    #[inline]
    pub fn flagged_request(&self, len: u64) -> u64 {
        if len <= 31 { len + 4 } else { self.text_request(len) }
    }

    /// Reported bytes of a string of `len` bytes that stands by itself.
    #[inline]
    pub fn text(&self, len: u64) -> u64 {
        match ready(&self.texts, len) {
            Some(size) => size,
            None => self.text_of(len),
        }
    }

    fn text_of(&self, len: u64) -> u64 {
        let request = self.text_request(len);
        match self.text {
            Reported::Requested => request,
            // The smallest header has no room for the size of its block.
            Reported::Usable if self.line.is_redis_from(Line::Redis84) && (1..=31).contains(&len) => request,
            Reported::Usable => self.allocator.usable(request),
        }
    }

    /// Reported bytes of a packed value of `len` bytes.
    #[inline]
    pub fn block(&self, len: u64) -> u64 {
        match self.block {
            Reported::Requested => len,
            Reported::Usable => self.allocator.usable(len),
        }
    }

    /// Reported bytes of a stream node of `len` bytes.
    #[inline]
    pub fn stream_block(&self, len: u64) -> u64 {
        if self.line.is_redis_from(Line::Redis84) || !self.stream_blocks_usable { len } else { self.allocator.usable(len) }
    }

    /// Reported bytes of one list node, its struct included.
    #[inline]
    pub fn list_node(&self, len: u64) -> u64 {
        let own = match self.line {
            _ if self.line.is_redis_from(Line::Redis84) => self.allocator.usable(40),
            _ if self.line >= Line::Redis70 => 40,
            _ => 32,
        };
        self.block(len).saturating_add(own)
    }

    /// True where members of a sorted set lie inside the nodes of its skip list.
    #[inline]
    pub fn embeds_members(&self) -> bool {
        self.line.is_redis_from(Line::Redis86) || self.line >= Line::Valkey90
    }

    /// Expected bytes of a member in a skip list and what holds it there, in [`UNIT`]s: levels are random.
    #[inline]
    pub fn skiplist_member(&self, len: u64) -> u64 {
        if !self.embeds_members() {
            return self.text(len).saturating_mul(UNIT).saturating_add(self.node);
        }
        match ready(&self.ready, len) {
            Some(size) => size,
            None => self.node_with(len),
        }
    }

    /// Bytes of a member in a skip list and what holds it there, on so many levels.
    pub fn skiplist_member_at(&self, len: u64, level: u64) -> u64 {
        if !self.embeds_members() {
            return self.text(len).saturating_add(self.allocator.usable(24 + 16 * level));
        }
        let marker = u64::from(self.line.is_valkey());
        let own = self.inner_request(len).saturating_add(16 + marker);
        self.allocator.usable(own.saturating_add(16 * level))
    }

    fn node_with(&self, len: u64) -> u64 {
        expected(|level| self.skiplist_member_at(len, level))
    }

    /// Reported bytes of a hash field, its value, and the entry of the table.
    #[inline]
    pub fn hash_entry(&self, field: u64, value: u64, has_expiry: bool) -> u64 {
        let expiry = if has_expiry { 8 } else { 0 };
        match self.line {
            Line::Redis86 => {
                let name = if has_expiry { self.flagged_request(field) } else { self.inner_request(field) };
                let expiry = 2 * expiry;
                let whole = name.saturating_add(value).saturating_add(expiry + 4);
                if whole <= 128 {
                    24 + whole
                } else {
                    let name = self.flagged_request(field).saturating_add(expiry + 8);
                    self.text(value).saturating_add(name).saturating_add(24)
                }
            }
            Line::Valkey90 | Line::Valkey91 => {
                let name = if has_expiry { self.flagged_request(field) } else { self.inner_request(field) };
                let whole = name.saturating_add(value).saturating_add(expiry + 4);
                if whole <= 128 {
                    self.allocator.usable(whole)
                } else {
                    let name = self.flagged_request(field).saturating_add(expiry + 8);
                    self.text(value).saturating_add(self.allocator.usable(name))
                }
            }
            Line::Valkey81 => {
                let name = self.allocator.usable(self.inner_request(field).saturating_add(9));
                self.text(value).saturating_add(name)
            }
            Line::Redis74 | Line::Redis82Early | Line::Redis82 | Line::Redis84 => {
                let name = match ready(&self.fields, field) {
                    Some(size) if !has_expiry => size,
                    _ => self.field_of(field, has_expiry),
                };
                self.text(value).saturating_add(name).saturating_add(24)
            }
            _ => self.text(field).saturating_add(self.text(value)).saturating_add(24),
        }
    }

    /// The block of a hash field from 7.4 on.
    fn field_of(&self, len: u64, has_expiry: bool) -> u64 {
        let header = match len {
            0..=31 => 1,
            32..=65_535 => 3,
            _ => 9,
        };
        let meta = if has_expiry { 16 + 2 } else { 0 };
        self.allocator.usable(len.saturating_add(header + 1 + meta))
    }

    /// Reported bytes of a set member and the entry of the table.
    #[inline]
    pub fn set_member(&self, len: u64) -> u64 {
        let entry = match self.line {
            Line::Valkey80 | Line::Valkey81 | Line::Valkey90 | Line::Valkey91 => 0,
            _ => 24,
        };
        self.text(len).saturating_add(entry)
    }
}

/// The size that is ready for a length.
#[inline]
fn ready(sizes: &[u64], len: u64) -> Option<u64> {
    sizes.get(usize::try_from(len).ok()?).copied()
}

/// Expected value over the random level of a node: one in four goes a level up.
fn expected(size: impl Fn(u64) -> u64) -> u64 {
    let mut sum = 0u64;
    let mut left = UNIT << 20;
    for level in 1..=LEVELS {
        let here = if level == LEVELS { left } else { left / 4 * 3 };
        left -= here;
        sum = sum.saturating_add(size(level).saturating_mul(here >> 10));
    }
    sum >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_nodes_of_skip_lists() {
        let node = |allocator| {
            let costs = Costs::new(Server::redis(7, 0, 15), allocator, false);
            costs.node as f64 / UNIT as f64
        };
        // Of the level distribution 0.75 * 0.25^(level - 1), worked out by hand.
        assert!((node(Allocator::Jemalloc) - 45.84).abs() < 0.02);
        assert!((node(Allocator::System) - 53.33).abs() < 0.02);
    }

    #[test]
    fn strings_by_line() {
        let text = |server, len| Costs::new(server, Allocator::Jemalloc, false).text(len);
        // 5.0 reports what it asked for, 7.0 what it got, 8.4 what it asked for only with the smallest header.
        assert_eq!([text(Server::redis(5, 0, 14), 40), text(Server::redis(7, 0, 15), 40)], [44, 48]);
        assert_eq!([text(Server::redis(8, 4, 0), 20), text(Server::redis(8, 2, 3), 20)], [22, 24]);
        assert_eq!([text(Server::redis(7, 0, 15), 253), text(Server::redis(8, 2, 3), 253)], [320, 320]);
    }

    #[test]
    fn sizes_do_not_overflow() {
        for server in [Server::redis(4, 0, 0), Server::redis(7, 0, 0), Server::redis(8, 6, 0), Server::valkey(9, 1, 0)] {
            let costs = Costs::new(server, Allocator::Jemalloc, false);
            let most = u64::MAX;
            let _ = (costs.text(most), costs.block(most), costs.list_node(most), costs.skiplist_member(most));
            let _ = (costs.hash_entry(most, most, true), costs.set_member(most), costs.flagged_request(most));
        }
    }
}
