//! Data sets of realistic shape, written with the test writer: key classes, value sizes, types and lifetimes as services leave them.
//!
//! Everything about key `i` follows from the seed and `i` alone, so that a profile is written in one pass, in any amount, and again
//! byte for byte. Keys follow one another by number; a server writes them in the order of its hash table.

#![allow(dead_code, reason = "each bench and example uses a part of it")]

use std::io::{self, Write};

use super::writer::{
    Consumer, Content, DumpWriter, FieldExpiryForm, Finished, Group, ListNode, Listpack, Magic, Pending, Random, Stream,
    StreamEntry, StreamId, StreamLayout, StreamNode, intset,
};

/// Moment of every save, in Unix seconds: 2026-01-01, 00:00 UTC.
pub const CTIME_SECONDS: u64 = 1_767_225_600;

const NOW_MS: u64 = CTIME_SECONDS * 1000;
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Bytes of a list node (`list-max-listpack-size` -2).
const NODE_BYTES: usize = 8192;

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Small strings only.
    SmallKv,
    /// Every type.
    Mixed,
    /// Few keys, large values.
    BigValues,
}

impl Profile {
    /// Keys, unless told otherwise. That is 1.5 GB of small strings, 1.1 GB mixed, 1.8 GB of big values.
    pub fn default_keys(self) -> u64 {
        match self {
            Self::SmallKv => 10_000_000,
            Self::Mixed => 1_500_000,
            Self::BigValues => 2474,
        }
    }

    /// Writes a dump of so many keys; mixed adds a two-hundredth of them in a second database.
    pub fn write<W: Write>(self, out: W, keys: u64, seed: u64, compress: bool) -> io::Result<Finished<W>> {
        let mut w = DumpWriter::new(out, Magic::Redis(12));
        w.compress(compress);
        w.aux("redis-ver", "7.4.1").aux("redis-bits", "64").aux("ctime", CTIME_SECONDS.to_string());
        w.aux("used-mem", (keys * 160).to_string()).aux("aof-base", "0");
        match self {
            Self::SmallKv => small_kv(&mut w, keys, seed),
            Self::Mixed => {
                mixed(&mut w, 0, keys, seed);
                mixed(&mut w, 1, keys.div_ceil(200), seed.wrapping_add(1));
            }
            Self::BigValues => big_values(&mut w, keys, seed),
        }
        w.finish()
    }
}

/// Chance of one key. What decides its expiry is drawn first, so that expiries can be counted ahead for RESIZEDB.
fn chance(seed: u64, i: u64) -> Random {
    Random::new(Random::new(seed ^ i.rotate_left(32)).next() ^ i)
}

fn begin_database<W: Write>(w: &mut DumpWriter<W>, db: u64, keys: u64, expires: impl Fn(u64) -> bool) {
    if keys > 0 {
        let expires = (0..keys).filter(|&i| expires(i)).count() as u64;
        w.select_db(db).resize_db(keys, expires);
    }
}

// Small strings.

#[derive(Debug, Clone, Copy)]
enum Small {
    Profile,
    Session,
    Rate,
    CacheV1,
    CacheV2,
    Unclassified,
    BareInteger,
    Binary,
}

fn small_class(random: &mut Random) -> (Small, Option<u64>) {
    match random.between(1, 1000) {
        ..=240 => (Small::Profile, None),
        241..=520 => (Small::Session, Some(HOUR + random.between(1, 14 * 24) * HOUR)),
        521..=720 => (Small::Rate, Some(MINUTE + random.between(1, 7200) * SECOND)),
        721..=820 => (Small::CacheV1, random.percent(50).then(|| HOUR + random.between(1, 90) * DAY)),
        821..=990 => (Small::CacheV2, Some(5 * MINUTE + random.between(1, 3 * 24 * 60) * MINUTE)),
        991..=996 => (Small::Unclassified, None),
        997..=998 => (Small::BareInteger, None),
        _ => (Small::Binary, None),
    }
}

fn small_kv<W: Write>(w: &mut DumpWriter<W>, keys: u64, seed: u64) {
    let sentences = sentences(seed);
    begin_database(w, 0, keys, |i| small_class(&mut chance(seed, i)).1.is_some());
    let (mut key, mut value) = (Text::default(), Text::default());
    for i in 0..keys {
        let mut random = chance(seed, i);
        let r = &mut random;
        let (class, ttl) = small_class(r);
        key.clear();
        value.clear();
        match class {
            Small::Profile => {
                key.s("prod:shop-").n(skewed(r, 500)).s(":user:profile:").n(i);
                value.json(r, &sentences, i, 80, 150);
            }
            Small::Session => {
                key.s("prod:shop-").n(skewed(r, 500)).s(":session:").hex(r, 4).x(i);
                value.json(r, &sentences, i, 40, 80);
            }
            Small::Rate => {
                key.s("prod:").n(skewed(r, 500)).s(":rate:user:").n(i).s(":").n(r.below(24));
                value.s("{\"n\":").n(r.between(1, 500)).s(",\"w\":3600,\"u\":").n(r.between(1, 99_999)).s("}");
            }
            Small::CacheV1 => {
                key.s("cache:v1:product:").n(i).s(":detail");
                value.json(r, &sentences, i, 60, 240);
            }
            Small::CacheV2 => {
                key.s("cache:v2:p:").hex(r, 2).s(":").n(i);
                value.json(r, &sentences, i, 40, 160);
            }
            Small::Unclassified => {
                key.s(r.pick(&["PROD:Shop-", "tmp_", "test:", "lock:", "prod:shop_"])).n(i);
                value.s("x").s(r.pick(&sentences));
            }
            Small::BareInteger => {
                key.n(100_000_000 + i);
                value.json(r, &sentences, i, 60, 1);
            }
            Small::Binary => {
                key.binary(r, i);
                value.s(r.pick(&sentences));
            }
        }
        let record = w.key(&key);
        let record = match ttl {
            Some(ttl) => record.expires_at_ms((NOW_MS + ttl) as i64),
            None => record,
        };
        record.string(&value);
    }
}

// Every type.

#[derive(Debug, Clone, Copy)]
enum Kind {
    Cart,
    Catalog,
    Profile,
    Order,
    Feed,
    Queue,
    Ids,
    Tags,
    Seen,
    RankDay,
    RankGlobal,
    Events,
    Counter,
    Flag,
    Doc,
    Bitmap,
    Cardinality,
    Binary,
    FieldTtl,
}

/// Of 100,000 keys those up to this number, how many in a hundred have an expiry, and at most how many days it is off.
const KINDS: [(u64, Kind, u64, u64); 19] = [
    (30_000, Kind::Cart, 80, 30),
    (30_600, Kind::Catalog, 10, 90),
    (33_000, Kind::Profile, 0, 1),
    (51_000, Kind::Order, 20, 365),
    (58_000, Kind::Feed, 60, 7),
    (58_600, Kind::Queue, 0, 1),
    (62_000, Kind::Ids, 30, 30),
    (67_000, Kind::Tags, 30, 30),
    (67_300, Kind::Seen, 50, 3),
    (73_000, Kind::RankDay, 90, 60),
    (73_250, Kind::RankGlobal, 0, 1),
    (73_500, Kind::Events, 10, 30),
    (83_000, Kind::Counter, 0, 1),
    (88_000, Kind::Flag, 100, 2),
    (99_500, Kind::Doc, 50, 30),
    (99_600, Kind::Bitmap, 0, 1),
    (99_700, Kind::Cardinality, 0, 1),
    (99_800, Kind::Binary, 0, 1),
    (100_000, Kind::FieldTtl, 0, 1),
];

fn mixed_kind(random: &mut Random) -> (Kind, Option<u64>) {
    let c = random.between(1, 100_000);
    let at = KINDS.iter().position(|(up_to, ..)| c <= *up_to).unwrap_or(KINDS.len() - 1);
    let (_, kind, percent, days) = KINDS[at];
    (kind, random.percent(percent).then(|| HOUR + random.between(1, days * 24) * HOUR))
}

fn mixed<W: Write>(w: &mut DumpWriter<W>, db: u64, keys: u64, seed: u64) {
    let sentences = sentences(seed);
    begin_database(w, db, keys, |i| mixed_kind(&mut chance(seed, i)).1.is_some());
    let (mut key, mut value) = (Text::default(), Text::default());
    for i in 0..keys {
        let mut random = chance(seed, i);
        let r = &mut random;
        let (kind, ttl) = mixed_kind(r);
        key.clear();
        value.clear();
        mixed_key(&mut key, r, kind, i);
        let record = w.key(&key);
        let record = match ttl {
            Some(ttl) => record.expires_at_ms((NOW_MS + ttl) as i64),
            None => record,
        };
        let sentence = |r: &mut Random| sentences[r.below(256) as usize].as_bytes().to_vec();
        match kind {
            Kind::Cart => {
                let mut pack = Listpack::default();
                for _ in 0..=skewed(r, 30) {
                    value.clear();
                    pack.push(value.s("sku-").n(r.between(1, 999_999)).as_ref());
                    value.clear();
                    pack.push(value.s("{\"q\":").n(r.between(1, 9)).s(",\"p\":").n(r.between(1, 99_999)).s("}").as_ref());
                }
                record.blob(16, &pack.finish());
            }
            Kind::Catalog => {
                let n = 150 + skewed(r, 600);
                let fields: Vec<_> = (0..n).map(|j| (format!("attr-{j}-{}", r.below(999)).into_bytes(), sentence(r))).collect();
                if n <= 512 {
                    record.hash_listpack(fields)
                } else {
                    record.hash(fields)
                };
            }
            Kind::Profile => {
                value.json(r, &sentences, i, 120, 200);
                let (name, city, version) = (pick(r, &NAMES), pick(r, &WORDS), r.between(1, 9).to_string());
                record.hash([("bio", value.as_ref()), ("name", name), ("city", city), ("ver", version.as_bytes())]);
            }
            Kind::Order if r.below(3) == 0 => {
                value.json(r, &sentences, i, 100, 300);
                record.string(&value);
            }
            Kind::Order => {
                let mut pack = Listpack::default();
                pack.push(b"status").push(pick(r, &WORDS)).push(b"amount").push_integer(r.between(1, 999_999) as i64);
                value.s("sku-").n(r.between(1, 999_999));
                pack.push(b"user").push_integer(i as i64).push(b"sku").push(value.as_ref()).push(b"note").push(&sentence(r));
                record.blob(16, &pack.finish());
            }
            Kind::Feed => {
                let mut nodes = Nodes::default();
                for _ in 0..2 + skewed(r, 40) {
                    value.clear();
                    nodes.push(value.s("ev:").n(r.between(1, 99_999_999)).s(":").b(pick(r, &WORDS)).as_ref());
                }
                record.list_quicklist2(&nodes.finish());
            }
            Kind::Queue => {
                let mut nodes = Nodes::default();
                for j in 0..100 * r.between(2, 9) {
                    value.clear();
                    value.json(r, &sentences, j % 100, 60, 160);
                    nodes.push(value.as_ref());
                }
                record.list_quicklist2(&nodes.finish());
            }
            Kind::Ids => {
                let limit = *r.pick(&[30_000, 2_000_000_000, 90_000_000_000_000]);
                let members: Vec<i64> = (0..5 + skewed(r, 400)).map(|_| r.below(limit) as i64).collect();
                record.blob(11, &intset(members));
            }
            Kind::Tags => {
                let mut members: Vec<_> =
                    (0..r.between(3, 27)).map(|_| [pick(r, &WORDS), b"-", &digits(r.below(99))].concat()).collect();
                members.sort();
                members.dedup();
                record.set_listpack(members);
            }
            Kind::Seen => {
                let n = 500 * r.between(2, 7);
                record.set((0..n as u32).map(|_| format!("{:012x}", r.next() >> 16)));
            }
            Kind::RankDay => {
                let mut members: Vec<_> = (0..3 + skewed(r, 100))
                    .map(|_| {
                        let score = if r.percent(50) { r.below(99_999) as f64 } else { r.below(1_000_000) as f64 / 1000.0 };
                        (format!("u{}", r.between(1, 9_999_999)), score)
                    })
                    .collect();
                members.sort_by(|a, b| a.1.total_cmp(&b.1));
                record.zset_listpack(members);
            }
            Kind::RankGlobal => {
                let n = 300 * r.between(2, 9);
                record.zset((0..n as u32).map(|j| (format!("member-{:012x}", r.next() >> 16), 1e6 - f64::from(j) * 1.5)));
            }
            Kind::Events => {
                let n = 20 + skewed(r, 800);
                record.stream(StreamLayout::V3, &events(r, n, &sentences));
            }
            Kind::Counter => {
                record.string(digits(r.below(1_000_000_000)));
            }
            Kind::Flag => {
                record.string(pick(r, &WORDS));
            }
            Kind::Doc => {
                let target = 200 + skewed(r, 3000);
                value.json(r, &sentences, i, target, 1);
                record.string(&value);
            }
            Kind::Bitmap => {
                let mut bits = vec![0; (20_000 + r.below(200_000)) as usize / 8 + 1];
                if let Some(last) = bits.last_mut() {
                    *last = 0x80;
                }
                record.string(bits);
            }
            Kind::Cardinality => {
                let mut sketch = b"HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80".to_vec();
                sketch.extend((0..200).map(|j| if j % 2 == 0 { 0x40 | r.below(64) as u8 } else { 0x80 | r.below(127) as u8 }));
                record.string(sketch);
            }
            Kind::Binary => {
                record.string("bin");
            }
            Kind::FieldTtl => {
                let at = NOW_MS + HOUR + r.between(1, 48) * HOUR;
                let field = |name: &[u8], value: Vec<u8>, at| (name.to_vec(), value, at);
                let (a, b, c) = (pick(r, &NAMES).to_vec(), pick(r, &NAMES).to_vec(), sentence(r));
                let fields = [field(b"a", a, Some(at)), field(b"b", b, None), field(b"c", c, None)];
                record.hash_with_expiries(FieldExpiryForm::Listpack, &fields);
            }
        }
    }
}

fn mixed_key(key: &mut Text, r: &mut Random, kind: Kind, i: u64) {
    let tag = |key: &mut Text, r: &mut Random| {
        key.s("{shop-").n(skewed(r, 40)).s(":").n(i).s("}");
    };
    let tagged = |key: &mut Text, r: &mut Random, prefix| tag(key.s(prefix), r);
    match kind {
        Kind::Cart => {
            tagged(key, r, "cart:");
            key.s(":items");
        }
        Kind::Catalog => {
            tagged(key, r, "catalog:");
            key.s(":attrs");
        }
        Kind::Profile => tagged(key, r, "profile:"),
        // One hot tag takes most of it.
        Kind::Order => {
            let shop = if r.percent(80) { 7 } else { r.between(1, 40) };
            key.s("order:{shop-").n(shop).s("}:").n(i);
        }
        Kind::Feed => tagged(key, r, "feed:"),
        Kind::Queue => drop(key.s("queue:jobs:").n(i)),
        Kind::Ids => tagged(key, r, "idx:ids:"),
        Kind::Tags => tagged(key, r, "tags:"),
        Kind::Seen => drop(key.s("seen:").n(i)),
        Kind::RankDay => drop(key.s("rank:{shop-").n(r.between(1, 40)).s("}:day:").n(i)),
        Kind::RankGlobal => drop(key.s("rank:global:").n(i)),
        Kind::Events => drop(key.s("events:{shop-").n(r.between(1, 40)).s("}:").n(i)),
        Kind::Counter => drop(key.s("cnt:").b(pick(r, &WORDS)).s(":").n(i)),
        Kind::Flag => drop(key.s("flag:").n(i)),
        Kind::Doc => tagged(key, r, "doc:"),
        Kind::Bitmap => drop(key.s("bitmap:").n(i)),
        Kind::Cardinality => drop(key.s("hll:").n(i)),
        Kind::Binary => key.binary(r, i),
        Kind::FieldTtl => drop(key.s("hfe:").n(i)),
    }
}

/// A stream of `n` entries a second apart, with two groups, one of which has read 20 of them.
fn events(r: &mut Random, n: u64, sentences: &[String]) -> Stream {
    let mut stream = Stream::default();
    let mut ids = Vec::new();
    for j in 0..n {
        let id = StreamId { ms: NOW_MS - (n - j) * SECOND, seq: j % 3 };
        ids.push(id);
        // Entries are about 50 bytes long; a node of 4096 bytes is full.
        if j % 80 == 0 {
            let fields = [&b"type"[..], b"user", b"body"].map(<[u8]>::to_vec).to_vec();
            stream.nodes.push(StreamNode { id, fields, entries: Vec::new() });
        }
        let body = sentences[r.below(256) as usize].as_bytes().to_vec();
        let values = vec![pick(r, &WORDS).to_vec(), digits(r.between(1, 999_999)), body];
        if let Some(node) = stream.nodes.last_mut() {
            node.entries.push(StreamEntry { id, deleted: false, content: Content::Same(values) });
        }
    }
    let read = &ids[..ids.len().min(20)];
    let consumer = |name: &[u8], pending: &[StreamId]| Consumer {
        name: name.to_vec(),
        seen_at_ms: NOW_MS as i64,
        active_at_ms: NOW_MS as i64,
        pending: pending.to_vec(),
    };
    let split = read.len().min(15);
    stream.groups.push(Group {
        name: b"audit".to_vec(),
        last_id: StreamId::default(),
        entries_read: Some(0),
        ..Group::default()
    });
    stream.groups.push(Group {
        name: b"billing".to_vec(),
        last_id: read.last().copied().unwrap_or_default(),
        entries_read: Some(read.len() as u64),
        pending: read.iter().map(|&id| Pending { id, delivered_at_ms: NOW_MS as i64, deliveries: 1 }).collect(),
        consumers: vec![consumer(b"worker-1", &read[..split]), consumer(b"worker-2", &read[split..])],
        ..Group::default()
    });
    stream
}

// Large values.

/// Of 2,474 keys 2,464 are blobs and ten are collections of a million elements; with fewer keys these shrink alike.
fn big_values<W: Write>(w: &mut DumpWriter<W>, keys: u64, seed: u64) {
    let sentences = sentences(seed);
    let collections = keys.min(10);
    let blobs = keys - collections;
    let elements = (keys * 1_000_000 / Profile::BigValues.default_keys()).clamp(1000, 1_000_000) as u32;
    let ttl = |r: &mut Random| r.percent(40).then(|| r.between(HOUR, 30 * DAY));
    begin_database(w, 0, keys, |i| i < blobs && ttl(&mut chance(seed, i)).is_some());
    let mut blob = Vec::new();
    for i in 0..blobs {
        let mut random = chance(seed, i);
        let r = &mut random;
        let ttl = ttl(r);
        // Of 616 blobs one is 50 MB and fifteen are 1 to 20 MB; the others 100 KB to 1 MB.
        let bytes = match i % 616 {
            615 => 50_000_000,
            600.. => log_uniform(r, 1e6, 2e7),
            _ => log_uniform(r, 1e5, 1e6),
        };
        blob.resize(bytes, 0);
        r.fill(&mut blob);
        let key = format!("blob:{}:{i}", if i % 3 == 0 { "model" } else { "img" });
        let record = w.key(&key);
        match ttl {
            Some(ttl) => record.expires_at_ms((NOW_MS + ttl) as i64),
            None => record,
        }
        .string(&blob);
    }
    for i in blobs..keys {
        let mut random = chance(seed, i);
        let r = &mut random;
        let j = i - blobs;
        match j {
            0..4 => {
                let fields = (0..elements).map(|k| (format!("field:{k}"), sentences[r.below(256) as usize].as_bytes()));
                w.key(&format!("huge:hash:{j}")).hash(fields)
            }
            4..8 => {
                let members = (0..elements).map(|k| (format!("member:{k}"), 1e7 - f64::from(k) * 9.75 - r.fraction()));
                w.key(&format!("huge:zset:{}", j - 4)).zset(members)
            }
            8 => {
                let members = (0..elements).map(|k| format!("m:{:06x}{k}", r.below(1 << 24)));
                w.key("huge:set:0").set(members)
            }
            _ => {
                let mut nodes = Nodes::default();
                let mut item = Text::default();
                for k in 0..elements {
                    item.clear();
                    nodes.push(item.s("item:").n(u64::from(k)).s(":").hex(r, 2).as_ref());
                }
                w.key("huge:list:0").list_quicklist2(&nodes.finish())
            }
        };
    }
}

fn log_uniform(r: &mut Random, low: f64, high: f64) -> usize {
    (low * (high / low).powf(r.fraction())) as usize
}

/// The nodes of a list as they fill up.
#[derive(Debug, Default)]
struct Nodes {
    done: Vec<ListNode>,
    open: Listpack,
}

impl Nodes {
    fn push(&mut self, item: &[u8]) {
        if item.len() > NODE_BYTES {
            self.close();
            self.done.push(ListNode::Plain(item.to_vec()));
            return;
        }
        if self.open.byte_len() + item.len() + 4 > NODE_BYTES {
            self.close();
        }
        self.open.push(item);
    }

    fn close(&mut self) {
        if self.open.count() > 0 {
            self.done.push(ListNode::Packed(self.open.finish()));
            self.open.clear();
        }
    }

    fn finish(mut self) -> Vec<ListNode> {
        self.close();
        self.done
    }
}

// Text.

const WORDS: [&[u8]; 38] = [
    b"alpha",
    b"bravo",
    b"cart",
    b"delta",
    b"express",
    b"fresh",
    b"gift",
    b"hotel",
    b"index",
    b"juliet",
    b"kilo",
    b"lima",
    b"mobile",
    b"north",
    b"order",
    b"priority",
    b"quick",
    b"refund",
    b"sale",
    b"token",
    b"update",
    b"voucher",
    b"window",
    b"xray",
    b"yellow",
    b"zulu",
    b"shipping",
    b"standard",
    b"premium",
    b"member",
    b"coupon",
    b"blocked",
    b"pending",
    b"review",
    b"email",
    b"phone",
    b"address",
    b"checkout",
];

const NAMES: [&[u8]; 20] = [
    b"alice", b"bob", b"carol", b"dave", b"erin", b"frank", b"grace", b"heidi", b"ivan", b"judy", b"mallory", b"niaj", b"olivia",
    b"peggy", b"rupert", b"sybil", b"trent", b"victor", b"walter", b"zoe",
];

fn pick<const N: usize>(r: &mut Random, from: &'static [&'static [u8]; N]) -> &'static [u8] {
    let picked: &&[u8] = r.pick(&from[..]);
    picked
}

fn digits(n: u64) -> Vec<u8> {
    itoa::Buffer::new().format(n).as_bytes().to_vec()
}

/// 256 sentences of three words and a number.
fn sentences(seed: u64) -> Vec<String> {
    let mut r = Random::new(seed ^ 0x5e17_e4ce);
    let word = |r: &mut Random| String::from_utf8_lossy(pick(r, &WORDS)).into_owned();
    (0..256).map(|_| format!("{} {} {} {}", word(&mut r), word(&mut r), word(&mut r), r.between(1, 9999))).collect()
}

/// 1 to `n`, low numbers far more often.
fn skewed(r: &mut Random, n: u64) -> u64 {
    let x = r.fraction();
    (n as f64 * x * x * x) as u64 + 1
}

/// A key or value under construction, in memory that is used over and over.
#[derive(Debug, Default)]
struct Text(Vec<u8>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Text {
    fn clear(&mut self) {
        self.0.clear();
    }

    /// Text.
    fn s(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.b(text.as_ref().as_bytes())
    }

    /// Bytes.
    fn b(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A decimal number.
    fn n(&mut self, n: u64) -> &mut Self {
        self.b(itoa::Buffer::new().format(n).as_bytes())
    }

    /// A hexadecimal number.
    fn x(&mut self, n: u64) -> &mut Self {
        let digits = (u64::BITS - n.leading_zeros()).div_ceil(4).max(1);
        self.nibbles(n, digits)
    }

    /// So many times six random hexadecimal digits.
    fn hex(&mut self, r: &mut Random, times: u32) -> &mut Self {
        for _ in 0..times {
            self.nibbles(r.next() >> 40, 6);
        }
        self
    }

    fn nibbles(&mut self, n: u64, digits: u32) -> &mut Self {
        self.0.extend((0..digits).rev().map(|at| b"0123456789abcdef"[(n >> (4 * at) & 15) as usize]));
        self
    }

    /// A JSON object of at least `least` and up to `more` further bytes.
    fn json(&mut self, r: &mut Random, sentences: &[String], id: u64, least: u64, more: u64) {
        let target = (least + r.between(1, more)) as usize;
        let name = pick(r, &NAMES);
        self.s("{\"id\":").n(id).s(",\"name\":\"").b(name).s("\",\"email\":\"").b(name).n(r.between(1, 99_999));
        self.s("@example.com\",\"ts\":").n(1_700_000_000 + r.between(1, 99_999_999));
        if self.0.len() + 12 < target {
            self.s(",\"note\":\"");
            while self.0.len() + 4 < target {
                self.s(r.pick(sentences)).s("; ");
            }
            self.s("\"");
        }
        self.s("}");
    }

    /// A key of bytes that no text has.
    fn binary(&mut self, r: &mut Random, i: u64) {
        let [a, b, ..] = r.next().to_le_bytes();
        self.b(&[0, 255, a, 10, b, 44, 34]);
        self.b(format!("{i:08}").as_bytes());
    }
}
