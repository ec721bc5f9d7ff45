//! Values of random sizes for live servers: of each type and encoding enough that a rare mistake of the memory model shows, half of them
//! right at a size where something changes.

use super::{Data, FAR, YEAR};
use crate::command;
use crate::live_support::Version;

/// Values of each kind; some turn out to have another encoding than the one that is meant.
const EACH: usize = 1100;

/// Lengths up to which headers of strings, entries of listpacks and ziplists, packed values, blocks and nodes reach.
const EDGES: [usize; 22] =
    [1, 11, 12, 20, 31, 44, 63, 64, 111, 127, 191, 252, 255, 319, 1023, 2047, 4095, 8191, 16_383, 28_671, 65_530, 65_535];

/// What is between packed and table: limits of sorted sets and sets, and of hashes and sets of integers.
const LIMITS: [usize; 2] = [128, 512];

impl Data {
    /// Values of every type and encoding that a server of `version` has.
    pub(super) fn of_random_sizes(&mut self, version: &Version) {
        for _ in 0..EACH {
            self.string_of_random_size();
            self.lists_of_random_size();
            self.sets_of_random_size();
            self.hashes_of_random_size();
            self.zsets_of_random_size();
            self.stream_of_random_size(version);
        }
        if version.from([7, 4], [9, 0]) {
            for _ in 0..EACH {
                self.hashes_with_field_expiries();
            }
        }
    }

    /// From `least` to `most`, small ones as often as large ones; half of the time at one of `edges` or next to it.
    fn size(&mut self, least: usize, most: usize, edges: &[usize]) -> usize {
        let edges: Vec<usize> = edges
            .iter()
            .flat_map(|edge| [edge - 1, *edge, edge + 1, edge + 2])
            .filter(|edge| (least..=most).contains(edge))
            .collect();
        if !edges.is_empty() && self.random.below(2) == 0 {
            return edges[self.random.below(edges.len() as u64) as usize];
        }
        let bits = 1 + (most - least).checked_ilog2().unwrap_or(0);
        let most_random = 2 << self.random.below(u64::from(bits));
        (least + self.random.below(most_random) as usize).min(most)
    }

    /// A length of a string.
    fn len(&mut self, most: usize) -> usize {
        self.size(0, most, &EDGES)
    }

    /// A number of elements: tables double at powers of two.
    fn count(&mut self, least: usize, most: usize) -> usize {
        let mut edges: Vec<usize> = (1..16).map(|power| 1 << power).collect();
        edges.extend(LIMITS);
        self.size(least, most, &edges)
    }

    /// A number of any width that a packed value knows.
    fn integer(&mut self) -> Vec<u8> {
        let shift = self.random.below(64);
        ((self.random.next() as i64) >> shift).to_string().into()
    }

    /// Text of up to `most` bytes, or a number.
    fn item(&mut self, most: usize) -> Vec<u8> {
        if self.random.below(4) == 0 {
            return self.integer();
        }
        let len = self.len(most);
        self.random.word(len)
    }

    /// `n` names of up to `most` bytes, each another; what tells them apart stands in front.
    fn distinct(&mut self, n: usize, most: usize) -> Vec<Vec<u8>> {
        // Most collections have names of one length.
        let same = (self.random.below(2) == 0).then(|| self.len(most));
        let name = |i: usize| {
            let mut name = format!("{i:x}").into_bytes();
            let len = same.unwrap_or_else(|| self.len(most));
            if len > name.len() {
                let rest = self.random.word(len - name.len() - 1);
                name.push(b'z');
                name.extend(rest);
            }
            name
        };
        (0..n).map(name).collect()
    }

    /// Makes one of the names too long for a packed value.
    fn lengthen(&mut self, items: &mut [Vec<u8>]) {
        let at = self.random.below(items.len() as u64) as usize;
        let rest = self.size(65, 5000, &EDGES);
        let rest = self.random.word(rest);
        items[at].push(b'z');
        items[at].extend(rest);
    }

    fn string_of_random_size(&mut self) {
        let len = self.size(45, 200_000, &EDGES);
        let value = if self.random.below(2) == 0 { self.random.word(len) } else { vec![b'a'; len] };
        self.collection("SET", vec![value]);
    }

    /// A list of one node, and one of several or of a long element.
    fn lists_of_random_size(&mut self) {
        for (least, most) in [(1, 8000), (8200, 40_000)] {
            let bytes = self.size(least, most, &EDGES);
            let longest = self.size(8, bytes.max(9), &EDGES);
            let mut items = vec![];
            let mut sum = 0;
            while sum < bytes {
                let item = self.item(longest.min(bytes - sum));
                // A number takes less than its text.
                sum += if item.first() == Some(&b'v') { item.len() + 2 } else { 2 };
                items.push(item);
            }
            let command = if self.random.below(2) == 0 { "RPUSH" } else { "LPUSH" };
            self.collection(command, items);
        }
    }

    /// An intset, a packed set and a table.
    fn sets_of_random_size(&mut self) {
        let n = self.count(1, 512);
        let (first, step) = (self.random.next() as i64 >> (16 + self.random.below(48)), 1 + self.random.below(1 << 10) as i64);
        let integers = (0..n as i64).map(|i| (first + i * step).to_string().into()).collect();
        self.collection("SADD", integers);
        let n = self.count(1, 128);
        let members = self.distinct(n, 64);
        self.collection("SADD", members);
        let members = if self.random.below(3) == 0 {
            let n = self.count(129, 4000);
            self.distinct(n, 100)
        } else {
            let n = self.count(1, 400);
            let mut members = self.distinct(n, 64);
            self.lengthen(&mut members);
            members
        };
        self.collection("SADD", members);
    }

    /// Fields and values in turn, which stay packed.
    fn packed_pairs(&mut self) -> Vec<Vec<u8>> {
        let n = self.count(1, 512);
        let fields = self.distinct(n, 64);
        fields.into_iter().flat_map(|field| [field, self.item(64)]).collect()
    }

    /// Fields and values in turn, which become a table: because they are many, or because one is long.
    fn table_pairs(&mut self) -> Vec<Vec<u8>> {
        if self.random.below(3) == 0 {
            let n = self.count(513, 4000);
            let fields = self.distinct(n, 70);
            return fields.into_iter().flat_map(|field| [field, self.item(100)]).collect();
        }
        let mut pairs = self.packed_pairs();
        self.lengthen(&mut pairs);
        pairs
    }

    fn hashes_of_random_size(&mut self) {
        let pairs = self.packed_pairs();
        self.collection("HSET", pairs);
        let pairs = self.table_pairs();
        self.collection("HSET", pairs);
    }

    /// Hashes some or all of whose fields expire, packed and as a table.
    fn hashes_with_field_expiries(&mut self) {
        for is_table in [false, true] {
            let pairs = if is_table { self.table_pairs() } else { self.packed_pairs() };
            let mut fields: Vec<_> = pairs.iter().step_by(2).cloned().collect();
            let (db, key) = self.collection("HSET", pairs);
            let expiring = self.count(1, fields.len());
            fields.truncate(expiring);
            // Fields that expire together, and each at a time of its own.
            let together = self.count(1, expiring);
            for fields in fields.chunks(together) {
                let at = FAR + self.random.below(YEAR) as i64;
                let mut expire = command!["HPEXPIREAT", key, at.to_string(), "FIELDS", fields.len().to_string()];
                expire.extend(fields.iter().cloned());
                self.put(db, expire);
            }
        }
    }

    /// A packed sorted set and a skip list.
    fn zsets_of_random_size(&mut self) {
        let n = self.count(1, 128);
        let members = self.distinct(n, 64);
        self.zset_of(members);
        let members = if self.random.below(2) == 0 {
            let n = self.count(129, 3000);
            self.distinct(n, 80)
        } else {
            let n = self.count(1, 128);
            let mut members = self.distinct(n, 64);
            self.lengthen(&mut members);
            members
        };
        self.zset_of(members);
    }

    fn zset_of(&mut self, members: Vec<Vec<u8>>) {
        let kind = self.random.below(4);
        let score = |data: &mut Self| match kind {
            0 => data.integer(),
            1 => format!("{}.{:03}", data.random.below(1 << 20), data.random.below(1000)).into(),
            2 => format!("{}e{}", data.random.below(1 << 30), data.random.below(600) as i64 - 300).into(),
            _ => b"0".to_vec(),
        };
        let items = members.into_iter().flat_map(|member| [score(self), member]).collect();
        self.collection("ZADD", items);
    }

    /// A stream with or without groups; entries may be gone again.
    fn stream_of_random_size(&mut self, version: &Version) {
        let n = self.count(1, 400) as u64;
        let (fields, value_len) = (1 + self.random.below(4) as usize, self.len(200));
        let (db, key) = self.stream(n, fields, value_len);
        let id = |i: u64| format!("{}-{}", 1_700_000_000_000 + i, i % 3);
        for group in 0..self.random.below(4) {
            let group = format!("group {group}");
            self.put(db, command!["XGROUP", "CREATE", key, group, "0"]);
            for _ in 0..self.random.below(4) {
                let name = self.size(1, 100, &EDGES);
                let name = self.random.word(name);
                let count = self.count(1, 100).to_string();
                self.put(db, command!["XREADGROUP", "GROUP", group, name, "COUNT", count, "STREAMS", key, ">"]);
                if version.from([6, 2], [7, 2]) && self.random.below(4) == 0 {
                    self.put(db, command!["XGROUP", "CREATECONSUMER", key, group, "idle"]);
                }
            }
            let acknowledged = id(self.random.below(n));
            self.put(db, command!["XACK", key, group, acknowledged]);
        }
        match self.random.below(4) {
            0 => self.put(db, command!["XTRIM", key, "MAXLEN", (n / 2).to_string()]),
            1 => {
                let deleted = id(self.random.below(n));
                self.put(db, command!["XDEL", key, deleted]);
            }
            _ => {}
        }
    }
}
