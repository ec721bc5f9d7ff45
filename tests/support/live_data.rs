//! The data that live servers are filled with: every type at and around the limits of its encodings, made of commands alone.

#[path = "live_sizes.rs"]
mod sizes;

use std::collections::HashMap;

use crate::command;
use crate::live_support::Version;
use crate::resp::{Command, Connection};

/// Databases that are filled.
pub const DATABASES: [u64; 3] = [0, 1, 9];

/// 2100-01-01: nothing expires while a test runs.
const FAR: i64 = 4_102_444_800_000;

/// A year in milliseconds.
const YEAR: u64 = 365 * 86_400_000;

/// SplitMix64: the same numbers on every machine for the same seed.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// Text that is no integer and does not compress.
    fn word(&mut self, len: usize) -> Vec<u8> {
        const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        let mut word: Vec<u8> = (0..len).map(|_| LETTERS[self.below(64) as usize]).collect();
        if let Some(first) = word.first_mut() {
            *first = b'v';
        }
        word
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Commands that make the data, and the expiries that they set.
#[derive(Debug)]
pub struct Data {
    random: Random,
    names: u32,
    commands: HashMap<u64, Vec<Command>>,
    expiries: HashMap<(u64, Vec<u8>), i64>,
}

impl Data {
    /// Everything that a server of `version` can hold.
    pub fn new(seed: u64, version: &Version) -> Self {
        let mut data = Self { random: Random(seed), names: 0, commands: HashMap::new(), expiries: HashMap::new() };
        data.strings();
        data.long_strings();
        data.integers();
        data.lists();
        data.sets();
        data.hashes();
        data.zsets();
        data.streams();
        data.stream_groups(version);
        data.hostile_names();
        data.of_random_sizes(version);
        if version.from([7, 4], [9, 0]) {
            data.field_expiries();
        }
        if !version.is_valkey && version.number >= [8, 0, 0] {
            data.vector_sets();
        }
        if version.from([7, 0], [7, 2]) {
            data.functions();
        }
        data
    }

    /// Writes all of it.
    pub fn write(&self, connection: &mut Connection) {
        for db in DATABASES {
            connection.run(&command!["SELECT", db.to_string()]);
            connection.pipeline(self.commands.get(&db).map_or(&[], Vec::as_slice));
        }
    }

    /// The expiry in Unix milliseconds that was set.
    pub fn expiry(&self, db: u64, key: &[u8]) -> Option<i64> {
        self.expiries.get(&(db, key.to_vec())).copied()
    }

    fn put(&mut self, db: u64, command: Command) {
        self.commands.entry(db).or_default().push(command);
    }

    fn expire(&mut self, db: u64, key: &[u8]) {
        let at = FAR + self.random.below(YEAR) as i64;
        self.put(db, command!["PEXPIREAT", key, at.to_string()]);
        self.expiries.insert((db, key.to_vec()), at);
    }

    /// A new key name of `len` bytes, which must be at least four; half of the long ones compress.
    fn name(&mut self, len: usize) -> Vec<u8> {
        self.names += 1;
        let mut name: Vec<u8> = (0..4)
            .rev()
            .map(|digit| b"0123456789abcdefghijklmnopqrstuvwxyz"[(self.names / 36_u32.pow(digit) % 36) as usize])
            .collect();
        if self.random.below(2) == 0 {
            name.resize(len, b':');
        } else {
            name.extend(self.random.word(len.saturating_sub(name.len())));
        }
        name
    }

    /// Database and name of a new key.
    fn key(&mut self) -> (u64, Vec<u8>) {
        let db = match self.random.below(10) {
            0 => 1,
            1 => 9,
            _ => 0,
        };
        let len = 4 + self.random.below(60) as usize;
        (db, self.name(len))
    }

    /// A new key made by `command key item…`, and where it is; one of three has an expiry, which the commands that follow leave alone.
    fn collection(&mut self, command: &str, items: Vec<Vec<u8>>) -> (u64, Vec<u8>) {
        let (db, key) = self.key();
        let mut whole = command![command, key];
        whole.extend(items);
        self.put(db, whole);
        if self.random.below(3) == 0 {
            self.expire(db, &key);
        }
        (db, key)
    }

    /// Every value length against every key length, with and without expiry: key and value may share a block of 64 or 128 bytes.
    fn strings(&mut self) {
        let longer = (121..=132).step_by(2).chain(248..=258);
        for key_len in (4..=120).chain(longer) {
            for value_len in (0..=48).chain(49..=118_usize.saturating_sub(key_len)) {
                // With libc, Valkey 9.1 answers differently from load to load here: an expiry fits into the block of these strings
                // only where the heap had a larger piece at hand.
                let depends_on_heap = key_len >= 108 && key_len + value_len <= 111;
                for expires in [false, true].into_iter().filter(|expires| !(*expires && depends_on_heap)) {
                    let (db, key, value) = (0, self.name(key_len), self.random.word(value_len));
                    self.put(db, command!["SET", key, value]);
                    if expires {
                        self.expire(db, &key);
                    }
                }
            }
        }
    }

    /// Lengths around those of the length prefix and of compression; bit maps, counters of distinct values, strings that grew.
    fn long_strings(&mut self) {
        for len in
            [49, 63, 64, 65, 126, 127, 128, 191, 192, 254, 255, 256, 1000, 8191, 8192, 16_382, 16_383, 16_384, 16_385, 70_000]
        {
            for value in [self.random.bytes(len), self.random.word(len), vec![b'a'; len], vec![0; len]] {
                self.collection("SET", vec![value]);
            }
        }
        for bit in [0, 7, 8, 351, 352, 353, 1000, 100_000, 1_000_000] {
            let (db, key) = self.collection("SETBIT", vec![bit.to_string().into(), b"1".into()]);
            let other = self.random.below(bit + 1);
            self.put(db, command!["SETBIT", key, other.to_string(), "1"]);
        }
        for n in [1, 2, 10, 100, 1000, 5000] {
            let items = (0..n).map(|_| self.random.word(12)).collect();
            self.collection("PFADD", items);
        }
        for len in [0, 1, 19, 20, 40, 43, 44, 45, 100] {
            let (first, second) = (self.random.word(len), self.random.word(2));
            let (db, key) = self.collection("APPEND", vec![first]);
            self.put(db, command!["APPEND", key, second]);
            let piece = self.random.word(3);
            self.collection("SETRANGE", vec![len.to_string().into(), piece]);
        }
    }

    /// Integers of every width, text that only looks like one, and integers under names of integers.
    fn integers(&mut self) {
        let mut texts = vec![];
        for exponent in 0..64 {
            for step in [-1_i128, 0, 1] {
                texts.push(((1_i128 << exponent) + step).to_string());
                texts.push((-(1_i128 << exponent) + step).to_string());
            }
        }
        for digits in 1..=21 {
            texts.push("9".repeat(digits));
            texts.push(format!("-1{}", "0".repeat(digits - 1)));
        }
        let almost = [
            "-0",
            "+1",
            "01",
            "007",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x10",
            "",
            "-",
            "18446744073709551615",
            "18446744073709551616",
            "9999",
            "10000",
            "10001",
        ];
        texts.extend(almost.map(String::from));
        for text in &texts {
            for _ in 0..2 {
                self.collection("SET", vec![text.clone().into()]);
            }
        }
        texts.sort();
        texts.dedup();
        for name in texts {
            let value = self.random.below(20_000).to_string();
            self.put(1, command!["SET", name, value]);
        }
        for n in [1, 9998, 9999, 10_000, i64::MAX] {
            self.collection("INCRBY", vec![n.to_string().into()]);
        }
    }

    fn lists(&mut self) {
        for n in [1, 2, 3, 10, 100, 127, 128, 129, 500, 511, 512, 513, 2000] {
            for len in [0, 1, 5, 63, 64, 65] {
                let words = (0..n).map(|_| self.random.word(len)).collect();
                self.collection("RPUSH", words);
            }
            let integers = (0..n).map(|i| (self.random.next() as i64 >> (i % 64)).to_string().into()).collect();
            self.collection("LPUSH", integers);
        }
        // A node is full at 8192 bytes, or at about as many; elements above that are nodes of their own.
        for len in [10_usize, 62, 63, 64, 100, 126, 127, 128, 250, 253, 254, 500, 1020, 1364, 2040, 2725, 4090, 4095] {
            let full = 8192 / (len + 2);
            for n in full.saturating_sub(4).max(1)..=full + 2 {
                let words = (0..n).map(|_| self.random.word(len)).collect();
                self.collection("RPUSH", words);
            }
        }
        for len in (8170..=8200).chain([4096, 5000, 9000, 16_384, 20_000, 66_000]) {
            let alone = vec![self.random.word(len)];
            self.collection("RPUSH", alone);
            let among = vec![self.random.word(3), vec![b'x'; len], self.random.word(3)];
            self.collection("RPUSH", among);
        }
        // Lists that were longer, and nodes that were split.
        for left in [1, 5, 100, 127, 128, 129, 400] {
            let words = (0..1500).map(|_| self.random.word(30)).collect();
            let (db, key) = self.collection("RPUSH", words);
            self.put(db, command!["LTRIM", key, "700", (699 + left).to_string()]);
            let words: Vec<_> = (0..left + 1).map(|_| self.random.word(20)).collect();
            let first = words[0].clone();
            let (db, key) = self.collection("RPUSH", words);
            let long = self.random.word(9000);
            self.put(db, command!["LINSERT", key, "AFTER", first, long]);
            self.put(db, command!["LPOP", key]);
        }
    }

    fn sets(&mut self) {
        let counts = [1, 2, 3, 50, 126, 127, 128, 129, 130, 300, 510, 511, 512, 513, 514, 700];
        for n in counts {
            // Three widths of integers.
            for width in [100_i64, 1_000_000, 1_000_000_000_000] {
                let integers: Vec<Vec<u8>> = (0..n).map(|i| (i * (width / 100) - width).to_string().into()).collect();
                self.collection("SADD", integers.clone());
                // A set of integers that was a table because of a word.
                let (db, key) = self.collection("SADD", integers);
                self.put(db, command!["SADD", key, "word"]);
                self.put(db, command!["SREM", key, "word"]);
            }
            for len in [4, 63, 64, 65] {
                let words = (0..n).map(|i| format!("{i:0len$}x").split_off(1).into()).collect();
                self.collection("SADD", words);
            }
            let mut mixed: Vec<Vec<u8>> = (1..n).map(|i| i.to_string().into()).collect();
            mixed.push(self.random.word(20));
            self.collection("SADD", mixed);
            // One long member, and what is left when it has gone.
            for stays in [true, false] {
                let mut words: Vec<Vec<u8>> = (1..n).map(|i| format!("w{i}").into()).collect();
                words.push(vec![b'l'; 65]);
                words.push(b"short".to_vec());
                let (db, key) = self.collection("SADD", words);
                if !stays {
                    self.put(db, command!["SREM", key, [b'l'; 65]]);
                }
            }
        }
        // Larger sets that shrank to the limits.
        for left in [1, 127, 128, 129, 511, 512, 513] {
            for prefix in ["", "w"] {
                let members: Vec<Vec<u8>> = (0..left + 200).map(|i| format!("{prefix}{i}").into()).collect();
                let mut gone = members[left..].to_vec();
                let (db, key) = self.collection("SADD", members);
                let mut command = command!["SREM", key];
                command.append(&mut gone);
                self.put(db, command);
            }
        }
    }

    /// Fields and values of a hash, in turn.
    fn pairs(&mut self, n: usize, field_len: usize, value_len: usize) -> Vec<Vec<u8>> {
        let field = |i: usize| format!("{i:x}").into_bytes();
        let padded = |mut field: Vec<u8>| {
            field.resize(field_len.max(field.len()), b'z');
            field
        };
        (0..n).flat_map(|i| [padded(field(i)), self.random.word(value_len)]).collect()
    }

    fn hashes(&mut self) {
        for n in [1, 2, 3, 50, 127, 128, 129, 510, 511, 512, 513, 514] {
            for (field_len, value_len) in
                [(1, 0), (4, 8), (8, 63), (8, 64), (8, 65), (63, 8), (64, 8), (65, 8), (64, 64), (65, 65)]
            {
                let pairs = self.pairs(n, field_len, value_len);
                self.collection("HSET", pairs);
            }
            let integers =
                (0..n).flat_map(|i| [i.to_string().into(), (self.random.next() as i64 >> (i % 64)).to_string().into()]).collect();
            self.collection("HSET", integers);
            // One long value among short ones, and what is left when it has gone.
            for stays in [true, false] {
                let mut pairs = self.pairs(n, 5, 5);
                pairs.extend([b"long".to_vec(), vec![b'l'; 65]]);
                let (db, key) = self.collection("HSET", pairs);
                let leave = if stays { command!["HSET", key, "long", "short"] } else { command!["HDEL", key, "long"] };
                self.put(db, leave);
            }
        }
        for left in [1, 511, 512, 513] {
            let pairs = self.pairs(left + 100, 6, 6);
            let gone: Vec<_> = pairs.iter().step_by(2).skip(left).cloned().collect();
            let (db, key) = self.collection("HSET", pairs);
            let mut command = command!["HDEL", key];
            command.extend(gone);
            self.put(db, command);
        }
        for n in [1, 100, 127, 128, i64::MAX] {
            self.collection("HINCRBY", vec![b"count".to_vec(), n.to_string().into()]);
            self.collection("HINCRBYFLOAT", vec![b"sum".to_vec(), format!("{}.5", n / 1000).into()]);
        }
    }

    fn zsets(&mut self) {
        for n in [1, 2, 3, 50, 126, 127, 128, 129, 130, 300] {
            for len in [4, 63, 64, 65] {
                for scores in 0..5 {
                    let mut items = vec![];
                    for i in 0..n {
                        items.push(match (scores, i) {
                            (0, _) => i.to_string(),
                            (1, _) => format!("{}.{:06}", i, self.random.below(1_000_000)),
                            (2, 0) => "-inf".to_string(),
                            (2, _) => "inf".to_string(),
                            (3, _) => (self.random.next() as i64 >> (i % 64)).to_string(),
                            _ => format!("{}e{}", self.random.below(1000), self.random.below(600) as i64 - 300),
                        });
                        items.push(format!("{i:0len$}x").split_off(1));
                    }
                    self.collection("ZADD", items.into_iter().map(String::into_bytes).collect());
                }
            }
            let integers = (0..n).flat_map(|i| [b"0".to_vec(), (i * 1000).to_string().into()]).collect();
            self.collection("ZADD", integers);
            for stays in [true, false] {
                let mut items: Vec<Vec<u8>> = (1..n).flat_map(|i| ["1.5".into(), format!("w{i}").into()]).collect();
                items.extend([b"2".to_vec(), vec![b'l'; 65], b"3".to_vec(), b"short".to_vec()]);
                let (db, key) = self.collection("ZADD", items);
                if !stays {
                    self.put(db, command!["ZREM", key, [b'l'; 65]]);
                }
            }
        }
        for left in [1, 127, 128, 129] {
            let items = (0..left + 50).flat_map(|i| [i.to_string().into(), format!("w{i}").into()]).collect();
            let (db, key) = self.collection("ZADD", items);
            self.put(db, command!["ZREMRANGEBYRANK", key, "0", "49"]);
        }
        let places = ["13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"];
        self.collection("GEOADD", places.map(Into::into).to_vec());
    }

    /// A stream of `n` entries with IDs one millisecond apart.
    fn stream(&mut self, n: u64, fields: usize, value_len: usize) -> (u64, Vec<u8>) {
        let (db, key) = self.key();
        for i in 0..n {
            let mut entry = command!["XADD", key, format!("{}-{}", 1_700_000_000_000 + i, i % 3)];
            for field in 0..fields {
                // The third entry has other fields than the first, whose fields the rest of a node shares.
                let name = if i == 2 { "other" } else { "field" };
                entry.extend(command![format!("{name}{field}"), self.random.word(value_len)]);
            }
            self.put(db, entry);
        }
        if n > 0 && self.random.below(3) == 0 {
            self.expire(db, &key);
        }
        (db, key)
    }

    fn streams(&mut self) {
        let id = |i: u64| format!("{}-{}", 1_700_000_000_000 + i, i % 3);
        for n in [1, 2, 3, 99, 100, 101, 250] {
            for (fields, value_len) in [(1, 3), (3, 10), (1, 100)] {
                self.stream(n, fields, value_len);
                let (db, key) = self.stream(n, fields, value_len);
                for i in (0..n).step_by(3) {
                    self.put(db, command!["XDEL", key, id(i)]);
                }
                let (db, key) = self.stream(n, fields, value_len);
                self.put(db, command!["XTRIM", key, "MAXLEN", (n / 2).to_string()]);
                let (db, key) = self.stream(n, fields, value_len);
                self.put(db, command!["XTRIM", key, "MAXLEN", "~", (n / 3).to_string()]);
                let (db, key) = self.stream(n, fields, value_len);
                for group in ["first", "second"] {
                    self.put(db, command!["XGROUP", "CREATE", key, group, "0"]);
                }
                for consumer in ["one", "two"] {
                    let read =
                        command!["XREADGROUP", "GROUP", "first", consumer, "COUNT", (n / 3 + 1).to_string(), "STREAMS", key, ">"];
                    self.put(db, read);
                }
                self.put(db, command!["XACK", key, "first", id(0)]);
                self.put(db, command!["XDEL", key, id(n / 2)]);
            }
        }
        for len in [1000, 4095, 4096, 9000] {
            self.stream(4, 2, len);
        }
        // Emptied, and never filled.
        let (db, key) = self.stream(5, 1, 5);
        self.put(db, command!["XTRIM", key, "MAXLEN", "0"]);
        let (db, key) = self.stream(0, 0, 0);
        self.put(db, command!["XGROUP", "CREATE", key, "group", "$", "MKSTREAM"]);
    }

    /// Groups without consumers, consumers without entries, entries that were claimed, acknowledged, and deleted while pending.
    fn stream_groups(&mut self, version: &Version) {
        let id = |i: u64| format!("{}-{}", 1_700_000_000_000 + i, i % 3);
        for n in [1, 10, 130, 300] {
            for (groups, consumers) in [(1, 0), (1, 1), (3, 4), (12, 2)] {
                let (db, key) = self.stream(n, 2, 8);
                for group in 0..groups {
                    let group = format!("group:{group}");
                    self.put(db, command!["XGROUP", "CREATE", key, group, "0"]);
                    for consumer in 0..consumers {
                        let consumer = format!("consumer {consumer}");
                        let count = (n / 3 + 1).to_string();
                        self.put(db, command!["XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", key, ">"]);
                    }
                    if consumers > 0 && version.from([6, 2], [7, 2]) {
                        self.put(db, command!["XGROUP", "CREATECONSUMER", key, group, "idle"]);
                    }
                    if consumers > 1 {
                        self.put(db, command!["XCLAIM", key, group, "consumer 1", "0", id(0), id(n / 4)]);
                        self.put(db, command!["XACK", key, group, id(n / 2), id(n / 5)]);
                        self.put(db, command!["XGROUP", "DELCONSUMER", key, group, "consumer 3"]);
                    }
                }
                // Pending in some groups, and deleted all the same.
                self.put(db, command!["XDEL", key, id(0), id(n / 3)]);
                if n == 130 {
                    self.put(db, command!["XTRIM", key, "MAXLEN", "20"]);
                }
            }
        }
        let (db, key) = self.stream(3, 1, 4);
        self.put(db, command!["XSETID", key, "1800000000000-5"]);
    }

    fn vector_sets(&mut self) {
        for n in [1, 2, 20, 150] {
            for dimensions in [1, 3, 50] {
                let (db, key) = self.key();
                for element in 0..n {
                    let mut add = command!["VADD", key, "VALUES", dimensions.to_string()];
                    add.extend((0..dimensions).map(|_| format!("{}.5", self.random.below(100)).into_bytes()));
                    add.push(format!("element {element}").into_bytes());
                    self.put(db, add);
                }
                self.expire(db, &key);
            }
        }
    }

    /// Libraries short and long; the long one compresses.
    fn functions(&mut self) {
        for (name, rules) in [("small", 0), ("middle", 3), ("large", 400)] {
            let rule = |n| format!("-- Rule {n}: what is done with it.\n");
            let comment: String = (0..rules).map(rule).collect();
            let code = format!("#!lua name={name}\n{comment}redis.register_function('{name}_f', function() return 1 end)");
            self.put(0, command!["FUNCTION", "LOAD", code]);
        }
    }

    fn hostile_names(&mut self) {
        let mut names: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        names.extend([b"\x00\x01\x02".to_vec(), b"\xff\xfe\xfd".to_vec(), b"\xc3\x28".to_vec(), (0..=255).collect(), vec![]]);
        let texts = [
            "=1+1",
            "+1",
            "-1",
            "@sum",
            "a,b",
            "a;b",
            "\"quoted\"",
            "it's",
            "back\\slash",
            "\\x41",
            "\\n",
            "line\nbreak",
            "carriage\r\n",
            "tab\t",
            " leading",
            "trailing ",
            "  ",
            "ключ",
            "键",
            "🔑",
            "e\u{301}",
            "\u{202e}reversed",
            "\u{feff}mark",
            "\u{2028}",
            "null",
            "true",
            "{}",
            "{tag}",
            "{tag}a",
            "{tag}b",
            "a{tag}",
            "{}{tag}",
            "{{tag}}",
            "{tag",
            "tag}",
            "}{tag}",
            "{a}{b}",
            "foo{}{bar}",
            "foo{{bar}}zap",
            "{\u{0}}",
            "a:b:c",
            "a::b",
            ":",
            "::",
            "*",
            "?",
            "[a-z]",
            "$1",
            "%s",
            "<b>",
            "--help",
            "/etc",
        ];
        names.extend(texts.map(Into::into));
        for len in [63, 64, 127, 128, 255, 256, 16_383, 16_384, 20_000] {
            names.extend([vec![b'k'; len], self.random.bytes(len)]);
        }
        names.extend((0..500).map(|_| {
            let len = 1 + self.random.below(24) as usize;
            self.random.bytes(len)
        }));
        names.sort();
        names.dedup();
        for name in names {
            let value = self.random.bytes(10);
            self.put(9, command!["SET", name, value]);
            if self.random.below(2) == 0 {
                self.expire(9, &name);
            }
            // Elsewhere the same name has another type.
            let value = self.random.bytes(5);
            let command = match self.random.below(4) {
                0 => command!["RPUSH", name, value],
                1 => command!["SADD", name, value],
                2 => command!["HSET", name, "field", value],
                _ => command!["ZADD", name, "1", value],
            };
            self.put(0, command);
        }
    }

    /// Hashes some or all of whose fields expire.
    fn field_expiries(&mut self) {
        for n in [1, 2, 10, 100, 510, 511, 512, 513, 514] {
            for (field_len, value_len) in [(4, 8), (8, 64), (8, 65), (64, 8), (65, 8)] {
                for every in [1, 2, 10, 1000] {
                    let pairs = self.pairs(n, field_len, value_len);
                    let fields: Vec<_> = pairs.iter().step_by(2).step_by(every).cloned().collect();
                    let (db, key) = self.collection("HSET", pairs);
                    for field in &fields {
                        let at = FAR + self.random.below(YEAR) as i64;
                        self.put(db, command!["HPEXPIREAT", key, at.to_string(), "FIELDS", "1", field]);
                    }
                    // A hash none of whose fields expires any more.
                    if self.random.below(4) == 0 {
                        let mut persist = command!["HPERSIST", key, "FIELDS", fields.len().to_string()];
                        persist.extend(fields);
                        self.put(db, persist);
                    }
                }
            }
        }
    }
}
