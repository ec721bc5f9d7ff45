//! What the test writer writes is what the product reads: every type, however the dump is cut and on however many threads.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/writer.rs"]
mod writer;

use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::Mutex;

use proptest::prelude::*;
use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::input::Input;
use rdbscope::measure::Fact;
use rdbscope::rdb::packed::{Entry, PackedForm};
use rdbscope::rdb::{Frame, RecordHead, RecordTail, Role, Sink, Str};
use rdbscope::scan::{self, ChecksumState, Head, ScanEnd, ScanOptions};
use writer::{
    Checksum, Consumer, Content, DumpWriter, FieldExpiryForm, Finished, Group, ListNode, Listpack, Lzf, Magic, ModulePart,
    Pending, Random, Stream, StreamEntry, StreamId, StreamLayout, StreamNode, Written, Ziplist,
};

/// Moment of all saves, so that nothing depends on the day of the run: 2026-01-01, 00:00 UTC.
const CTIME_SECONDS: i64 = 1_767_225_600;

/// Something inside a value, in file order.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Text(Role, Vec<u8>),
    Score(f64),
    FieldExpiry(Option<i64>),
}

/// A record as it was written, or as it was read.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    db: u64,
    key: Vec<u8>,
    key_type: String,
    expires_at_ms: Option<i64>,
    idle_seconds: Option<u64>,
    freq: Option<u8>,
    elements: Option<u64>,
    seen: Vec<Seen>,
    written: Written,
}

impl Key {
    fn texts(&self) -> impl Iterator<Item = u64> {
        self.seen.iter().filter_map(|seen| if let Seen::Text(_, text) = seen { Some(text.len() as u64) } else { None })
    }
}

/// Keeps all that a walk reports.
#[derive(Debug, Default)]
struct Reader {
    keys: Vec<Key>,
    seen: Vec<Seen>,
    framing_bytes: u64,
    faults: Vec<String>,
}

impl Sink for Reader {
    fn frame(&mut self, _frame: Frame<'_>, bytes: u64) {
        self.framing_bytes += bytes;
    }

    fn begin(&mut self, _head: &RecordHead<'_>) {
        self.seen.clear();
    }

    fn text(&mut self, role: Role, text: Str<'_>) {
        let text = text.text(&mut Vec::new(), u64::MAX).unwrap().to_vec();
        self.seen.push(Seen::Text(role, text));
    }

    fn score(&mut self, score: f64) {
        self.seen.push(Seen::Score(score));
    }

    fn field_expiry(&mut self, at_ms: Option<i64>) {
        self.seen.push(Seen::FieldExpiry(at_ms));
    }

    fn packed(&mut self, _form: PackedForm, _len: u64, _entries: u64) {}

    fn opens(&self, _len: u64) -> bool {
        true
    }

    fn entry(&mut self, role: Role, entry: Entry<'_>) {
        let text = match entry {
            Entry::Bytes(bytes) => bytes.to_vec(),
            Entry::Int(value) => value.to_string().into_bytes(),
        };
        self.seen.push(Seen::Text(role, text));
    }

    fn value_fault(&mut self, fault: rdbscope::Error) {
        self.faults.push(fault.to_string());
    }

    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        self.keys.push(Key {
            db: head.db,
            key: head.key.to_vec(),
            key_type: head.record_type.key_type.to_string(),
            expires_at_ms: head.expires_at_ms,
            idle_seconds: head.idle_seconds,
            freq: head.freq,
            elements: tail.elements,
            seen: std::mem::take(&mut self.seen),
            written: Written { offset: head.offset, serialized_bytes: tail.serialized_bytes },
        });
    }
}

/// Everything that the product reports of a dump in memory.
struct Read {
    keys: Vec<Key>,
    framing_bytes: u64,
    faults: Vec<String>,
    end: ScanEnd,
}

fn on_threads<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// Reads a dump in pieces. Threads are those of the current pool.
fn read(bytes: &[u8], piece_bytes: u64) -> Read {
    let head = Head::read(bytes).unwrap();
    let mut all = Reader { framing_bytes: 9, ..Reader::default() };
    let end = scan::scan(
        bytes,
        &head,
        ScanOptions { piece_bytes, ..ScanOptions::default() },
        &Mutex::new(Vec::new()),
        || (),
        |(), piece| {
            let mut reader = Reader::default();
            if let Err(fault) = piece.walk(&mut reader) {
                // Of a piece that was guessed wrong nothing counts, and nothing of this either.
                reader.faults.push(fault.to_string());
            }
            reader
        },
        |piece: Reader, _| {
            all.keys.extend(piece.keys);
            all.framing_bytes += piece.framing_bytes;
            all.faults.extend(piece.faults);
            ControlFlow::Continue(())
        },
    );
    Read { keys: all.keys, framing_bytes: all.framing_bytes, faults: all.faults, end }
}

// Random records.

/// Types that a version of the format may hold.
fn types_of(magic: Magic) -> Vec<u8> {
    let v = match magic {
        Magic::Redis(version) => version,
        Magic::Valkey(_) => 11,
    };
    let mut types = vec![0, 1, 2, 4];
    let mut add = |from: u16, to: u16, more: &[u8]| {
        if (from..=to).contains(&v) {
            types.extend_from_slice(more);
        }
    };
    add(1, 7, &[3]);
    add(2, 3, &[9]);
    add(2, 6, &[10]);
    add(2, 99, &[11]);
    add(2, 9, &[12]);
    add(4, 9, &[13]);
    add(7, 9, &[14]);
    add(8, 99, &[5, 7]);
    add(9, 9, &[15]);
    add(10, 99, &[16, 17, 18]);
    add(10, 10, &[19]);
    add(11, 99, &[20, 21]);
    add(12, 99, &[22, 23, 24, 25]);
    add(13, 99, &[26]);
    add(14, 99, &[27, 28]);
    add(15, 99, &[29, 31]);
    if matches!(magic, Magic::Valkey(_)) {
        types.push(22);
    }
    if matches!(magic, Magic::Valkey(81..)) {
        types.push(23);
    }
    types
}

/// A string of any kind that matters to some encoding; `small` ones are short.
fn text(random: &mut Random, small: bool) -> Vec<u8> {
    // Around the edges of the length forms of strings, listpacks, ziplists and zipmaps.
    const EDGES: [usize; 16] = [0, 1, 20, 21, 63, 64, 126, 127, 253, 254, 255, 4095, 4096, 16_383, 16_384, 70_000];
    match random.below(8) {
        0 => {
            let bits = random.between(1, 64);
            let value = (random.next() >> (64 - bits)) as i64;
            (if random.percent(50) { value.wrapping_neg() } else { value }).to_string().into_bytes()
        }
        // What looks like an integer and is none.
        1 => random.pick(&[&b"-0"[..], b"007", b"+1", b"-", b"", b"99999999999999999999", b" 1", b"1e3"]).to_vec(),
        2 if !small => {
            let most = if random.percent(10) { EDGES.len() } else { 11 };
            let n = *random.pick(&EDGES[..most]);
            random.bytes(n)
        }
        3 if !small => b"the same words again and ".repeat(random.between(1, 40) as usize),
        4 => vec![0xff; random.below(9) as usize],
        _ => {
            let n = random.below(if small { 6 } else { 40 }) as usize;
            (0..n).map(|_| *random.pick(b"abcdefgh:{}-")).collect()
        }
    }
}

fn texts(random: &mut Random, small: bool) -> Vec<Vec<u8>> {
    let n = if small { random.between(1, 3) } else { random.below(*random.clone().pick(&[4, 20, 20, 300])) };
    (0..n).map(|_| text(random, small)).collect()
}

fn pairs(random: &mut Random, small: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    texts(random, small).into_iter().map(|field| (field, text(random, small))).collect()
}

fn scores(random: &mut Random, small: bool) -> Vec<(Vec<u8>, f64)> {
    let score = |random: &mut Random| match random.below(5) {
        0 => random.below(1000) as f64,
        1 => -0.5 * random.below(1000) as f64,
        2 => *random.pick(&[f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MAX, f64::MIN_POSITIVE]),
        _ => random.fraction() * 1e6,
    };
    texts(random, small).into_iter().map(|member| (member, score(random))).collect()
}

fn stream(random: &mut Random, small: bool) -> Stream {
    let mut stream = Stream::default();
    let mut ms = random.below(1 << 45);
    let mut ids = Vec::new();
    for _ in 0..random.below(if small { 2 } else { 5 }) {
        let mut node = StreamNode { id: StreamId { ms, seq: random.below(3) }, fields: texts(random, true), entries: Vec::new() };
        for _ in 0..random.between(1, if small { 2 } else { 60 }) {
            let content = if random.percent(50) {
                Content::Same(node.fields.iter().map(|_| text(random, true)).collect())
            } else {
                Content::Own(pairs(random, true))
            };
            let id = StreamId { ms, seq: node.id.seq + random.below(100) };
            ids.push(id);
            node.entries.push(StreamEntry { id, deleted: random.percent(20), content });
            ms += random.below(100_000);
        }
        stream.nodes.push(node);
    }
    for _ in 0..random.below(3) {
        let pending: Vec<StreamId> = ids.iter().copied().filter(|_| random.percent(30)).collect();
        let consumers = (0..random.below(3))
            .map(|_| Consumer {
                name: text(random, true),
                seen_at_ms: random.next() as i64,
                active_at_ms: -1,
                pending: pending.iter().copied().filter(|_| random.percent(50)).collect(),
            })
            .collect();
        stream.groups.push(Group {
            name: text(random, small),
            last_id: ids.last().copied().unwrap_or_default(),
            entries_read: random.percent(50).then(|| random.below(1000)),
            pending: pending
                .iter()
                .map(|&id| Pending { id, delivered_at_ms: random.next() as i64, deliveries: random.below(1 << 20) })
                .collect(),
            consumers,
            handed_back: pending.iter().copied().filter(|_| random.percent(20)).collect(),
        });
    }
    for _ in 0..random.below(3) {
        let of_it: Vec<StreamId> = ids.iter().copied().filter(|_| random.percent(30)).collect();
        let own = of_it.into_iter().map(|id| (text(random, true), id)).collect();
        stream.producers.push((text(random, true), own));
    }
    stream
}

fn module(random: &mut Random, small: bool) -> (u64, Vec<ModulePart>) {
    let parts = (0..random.below(if small { 4 } else { 30 }))
        .map(|_| match random.below(5) {
            0 => ModulePart::Signed(random.next() as i64 >> random.below(64)),
            1 => ModulePart::Unsigned(random.next() >> random.below(64)),
            2 => ModulePart::Float(random.fraction() as f32),
            3 => ModulePart::Double(random.fraction()),
            _ => ModulePart::Text(text(random, small)),
        })
        .collect();
    let name = *random.pick(&["ReJSON-RL", "vectorset", "MBbloom--", "tairhash-"]);
    (writer::module_id(name, random.below(1024)), parts)
}

fn seen_texts<T: AsRef<[u8]>>(role: Role, items: impl IntoIterator<Item = T>) -> Vec<Seen> {
    items.into_iter().map(|item| Seen::Text(role, item.as_ref().to_vec())).collect()
}

fn seen_pairs(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<Seen> {
    fields
        .iter()
        .flat_map(|(field, value)| [Seen::Text(Role::Field, field.clone()), Seen::Text(Role::FieldValue, value.clone())])
        .collect()
}

/// Fields and values of the live entries of a stream; an entry that shares its fields with the node has them all the same.
fn seen_entries(stream: &Stream) -> Vec<Seen> {
    let of_node = |node: &StreamNode| {
        let live = node.entries.iter().filter(|entry| !entry.deleted);
        live.flat_map(|entry| match &entry.content {
            Content::Same(values) => seen_pairs(&node.fields.iter().cloned().zip(values.iter().cloned()).collect::<Vec<_>>()),
            Content::Own(pairs) => seen_pairs(pairs),
        })
        .collect::<Vec<_>>()
    };
    stream.nodes.iter().flat_map(of_node).collect()
}

fn borrowed<A, B>(pairs: &[(A, B)]) -> impl ExactSizeIterator<Item = (&A, &B)> {
    pairs.iter().map(|(a, b)| (a, b))
}

/// Writes a record of the type and returns what must be read.
fn write_record<W: std::io::Write>(w: &mut DumpWriter<W>, db: u64, type_byte: u8, random: &mut Random, small: bool) -> Key {
    let key = [b"k:".to_vec(), text(random, small)].concat();
    let mut head = Key {
        db,
        key: key.clone(),
        key_type: String::new(),
        expires_at_ms: None,
        idle_seconds: None,
        freq: None,
        elements: None,
        seen: Vec::new(),
        written: Written { offset: 0, serialized_bytes: 0 },
    };
    let magic = w.magic();
    let version = magic.version();
    let mut record = w.key(&key);
    if random.percent(60) {
        if version < 3 || random.percent(10) {
            let at = random.next() as i32;
            record = record.expires_at_seconds(at);
            head.expires_at_ms = Some(i64::from(at) * 1000);
        } else {
            let at = if random.percent(90) { CTIME_SECONDS * 1000 + random.below(1 << 34) as i64 } else { random.next() as i64 };
            record = record.expires_at_ms(at);
            head.expires_at_ms = Some(at);
        }
    }
    if version >= 9 && random.percent(30) {
        let seconds = random.next() >> random.between(30, 63);
        record = record.idle_seconds(seconds);
        head.idle_seconds = Some(seconds);
    }
    if version >= 9 && random.percent(30) {
        let counter = random.next() as u8;
        record = record.freq(counter);
        head.freq = Some(counter);
    }
    if version == 9 && random.percent(10) {
        record = record.aux("mvcc-tstamp", random.next().to_string());
    }
    let (key_type, elements, seen, written) = write_value(record, magic, type_byte, random, small);
    Key { key_type, elements, seen, written, ..head }
}

type Value = (String, Option<u64>, Vec<Seen>, Written);

fn write_value<W: std::io::Write>(
    record: writer::Record<'_, W>,
    magic: Magic,
    type_byte: u8,
    random: &mut Random,
    small: bool,
) -> Value {
    let value = |name: &str, elements: usize, seen, written| (name.to_string(), Some(elements as u64), seen, written);
    match type_byte {
        0 => {
            let text = text(random, small);
            ("string".into(), None, seen_texts(Role::Value, [&text]), record.string(&text))
        }
        1 | 10 => {
            let items = texts(random, small);
            let written = if type_byte == 1 { record.list(&items) } else { record.list_ziplist(&items) };
            value("list", items.len(), seen_texts(Role::Element, &items), written)
        }
        2 | 20 => {
            let members = texts(random, small);
            let written = if type_byte == 2 { record.set(&members) } else { record.set_listpack(&members) };
            value("set", members.len(), seen_texts(Role::Member, &members), written)
        }
        3 | 5 => {
            let members = scores(random, small);
            let with_scores = members.iter().map(|(member, score)| (member, *score));
            let written = if type_byte == 3 { record.zset_text(with_scores) } else { record.zset(with_scores) };
            let seen = members.iter().flat_map(|(m, score)| [Seen::Text(Role::Member, m.clone()), Seen::Score(*score)]).collect();
            value("zset", members.len(), seen, written)
        }
        12 | 17 => {
            let members = scores(random, small);
            let with_scores = members.iter().map(|(member, score)| (member, *score));
            let written = if type_byte == 12 { record.zset_ziplist(with_scores) } else { record.zset_listpack(with_scores) };
            let seen = members.iter().flat_map(|(m, score)| [Seen::Text(Role::Member, m.clone()), Seen::Score(*score)]).collect();
            value("zset", members.len(), seen, written)
        }
        4 | 9 | 13 | 16 => {
            let fields = pairs(random, small);
            let unused = random.below(5) as u8;
            let written = match type_byte {
                4 => record.hash(borrowed(&fields)),
                9 => record.hash_zipmap(borrowed(&fields), unused),
                13 => record.hash_ziplist(borrowed(&fields)),
                _ => record.hash_listpack(borrowed(&fields)),
            };
            value("hash", fields.len(), seen_pairs(&fields), written)
        }
        7 => {
            let (id, parts) = module(random, small);
            let unsigned = |part: &ModulePart| if let ModulePart::Unsigned(value) = part { Some(*value) } else { None };
            let second = parts.iter().filter_map(unsigned).nth(1);
            let name = rdbscope::rdb::ModuleId(id).to_string();
            let elements = second.filter(|_| name == "vectorset");
            (name, elements, Vec::new(), record.module(id, &parts))
        }
        11 => {
            let shift = *random.pick(&[50, 34, 1]);
            let mut members: Vec<i64> =
                (0..random.below(if small { 4 } else { 300 })).map(|_| random.next() as i64 >> shift).collect();
            let written = record.set_intset(members.iter().copied());
            members.sort();
            members.dedup();
            value("set", members.len(), seen_texts(Role::Member, members.iter().map(ToString::to_string)), written)
        }
        14 => {
            let nodes: Vec<Vec<Vec<u8>>> = (0..random.below(4)).map(|_| texts(random, small)).collect();
            let long = random.percent(20);
            let blobs: Vec<Vec<u8>> = nodes
                .iter()
                .map(|items| {
                    let mut pack = Ziplist::new(magic);
                    if long {
                        pack.long_previous();
                    }
                    for item in items {
                        pack.push(item);
                    }
                    pack.finish()
                })
                .collect();
            let items = nodes.concat();
            value("list", items.len(), seen_texts(Role::Element, &items), record.list_quicklist(&blobs))
        }
        18 => {
            let mut items = Vec::new();
            let nodes: Vec<ListNode> = (0..random.below(4))
                .map(|_| {
                    if random.percent(30) {
                        items.push(text(random, small));
                        ListNode::Plain(items.last().unwrap().clone())
                    } else {
                        let node = texts(random, small);
                        let blob = writer::listpack(&node);
                        items.extend(node);
                        ListNode::Packed(blob)
                    }
                })
                .collect();
            value("list", items.len(), seen_texts(Role::Element, &items), record.list_quicklist2(&nodes))
        }
        15 | 19 | 21 | 26 | 27 => {
            let stream = stream(random, small);
            let layout = match type_byte {
                15 => StreamLayout::V1,
                19 => StreamLayout::V2,
                21 => StreamLayout::V3,
                26 => StreamLayout::V4,
                _ => StreamLayout::V5,
            };
            value("stream", stream.live_entries() as usize, seen_entries(&stream), record.stream(layout, &stream))
        }
        23 if matches!(magic, Magic::Valkey(_)) => {
            let paths: Vec<_> = (0..random.below(4)).map(|_| (text(random, true), pairs(random, small))).collect();
            let fields: Vec<_> = paths.iter().flat_map(|(_, fields)| fields.clone()).collect();
            let written = record.value(23, |w| {
                w.len(paths.len() as u64);
                for (path, fields) in &paths {
                    w.str(path);
                    w.len(fields.len() as u64);
                    for (field, value) in fields {
                        w.str(field);
                        w.str(value);
                    }
                }
            });
            value("path-hash", fields.len(), seen_pairs(&fields), written)
        }
        28 => {
            let items: Vec<(u64, Vec<u8>)> = (0..random.below(20)).map(|n| (n * 300, text(random, small))).collect();
            let written = record.value(28, |w| {
                w.len(items.len() as u64 + 2);
                w.bytes(&[1, 7]);
                for (index, item) in &items {
                    w.len(*index);
                    // Strings of seven bytes and less have a tag of their own.
                    w.len(if item.len() < 8 { 3 } else { 0 });
                    w.str(item);
                }
                for (index, tag) in [(100_000, 1), (100_001, 2)] {
                    w.len(index);
                    w.len(tag);
                    w.bytes(&index.to_le_bytes());
                }
            });
            let texts = items.iter().map(|(_, item)| item);
            value("array", items.len() + 2, seen_texts(Role::Element, texts), written)
        }
        29 | 31 => {
            let fields = pairs(random, small);
            let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            let in_listpack = random.percent(50);
            let written = record.value(type_byte, |w| {
                if in_listpack {
                    w.len(0);
                    w.str(&writer::listpack(&names));
                } else {
                    w.len(1);
                    w.len(names.len() as u64);
                    names.iter().for_each(|name| w.str(name));
                }
                if type_byte == 29 {
                    // In front of the values stands a number that means nothing here.
                    let mut pack = Listpack::default();
                    pack.push_integer(0);
                    for value in &values {
                        pack.push(value);
                    }
                    w.str(&pack.finish());
                } else {
                    values.iter().for_each(|value| w.str(value));
                }
            });
            let seen = [seen_texts(Role::Field, &names), seen_texts(Role::FieldValue, &values)].concat();
            value("hash", names.len(), seen, written)
        }
        22..=25 => {
            let expiry = |random: &mut Random| random.percent(60).then(|| CTIME_SECONDS as u64 * 1000 + random.below(1 << 34));
            let fields: Vec<_> = pairs(random, small).into_iter().map(|(f, v)| (f, v, expiry(random))).collect();
            let form = match (type_byte, magic) {
                (22, Magic::Valkey(_)) => FieldExpiryForm::Valkey,
                (22, _) => FieldExpiryForm::Candidate,
                (23, _) => FieldExpiryForm::CandidateListpack,
                (24, _) => FieldExpiryForm::Table,
                _ => FieldExpiryForm::Listpack,
            };
            let seen = fields.iter().flat_map(|(field, value, at)| {
                let at = Some(Seen::FieldExpiry(at.map(|at| at as i64)));
                let [before, after] = match form {
                    FieldExpiryForm::Valkey | FieldExpiryForm::CandidateListpack | FieldExpiryForm::Listpack => [None, at],
                    FieldExpiryForm::Candidate | FieldExpiryForm::Table => [at, None],
                };
                let texts = seen_pairs(&[(field.clone(), value.clone())]);
                before.into_iter().chain(texts).chain(after)
            });
            let seen = seen.collect();
            value("hash", fields.len(), seen, record.hash_with_expiries(form, &fields))
        }
        _ => panic!("no writer for type {type_byte}"),
    }
}

/// What may stand in front of the keys of this version.
fn write_head<W: std::io::Write>(w: &mut DumpWriter<W>, random: &mut Random) {
    let version = w.magic().version();
    if version >= 7 {
        let name = if matches!(w.magic(), Magic::Valkey(_)) { "valkey-ver" } else { "redis-ver" };
        w.aux(name, "9.9.9").aux("redis-bits", "64").aux("ctime", CTIME_SECONDS.to_string());
    }
    if version >= 9 && random.percent(30) {
        w.module_aux(writer::module_id("ft_index0", 1), 1, &[ModulePart::Unsigned(7), ModulePart::Text(b"index".to_vec())]);
    }
    if version >= 10 && random.percent(30) {
        w.function("#!lua name=lib\nredis.register_function('f', function() return 1 end)");
    }
    if matches!(w.magic(), Magic::Valkey(_)) && random.percent(30) {
        w.slot_import("0123456789abcdef0123456789abcdef01234567", &[(0, 5), (100, 16_383)]);
    }
}

/// A dump of random records, each made from its own seed, so that fewer seeds are the same records less some.
fn write_dump(magic: Magic, compress: bool, seeds: &[u64]) -> (Finished<Vec<u8>>, Vec<Key>) {
    let mut w = DumpWriter::in_memory(magic);
    w.compress(compress);
    write_head(&mut w, &mut Random::new(seeds.first().copied().unwrap_or_default()));
    let types = types_of(magic);
    let mut db = 0;
    let keys = seeds
        .iter()
        .map(|&seed| {
            let mut random = Random::new(seed);
            if random.percent(20) {
                db = random.next() >> random.between(40, 63);
                w.select_db(db);
                if magic.version() >= 7 {
                    w.resize_db(random.below(100_000), 3);
                }
            }
            match magic {
                Magic::Redis(12) if random.percent(10) => w.slot_info(random.below(16_384), 1, 0),
                Magic::Valkey(_) if random.percent(10) => w.slot_info_aux(random.below(16_384), 1, 0),
                _ => &mut w,
            };
            let type_byte = *random.pick(&types);
            write_record(&mut w, db, type_byte, &mut random, false)
        })
        .collect();
    (w.finish().unwrap(), keys)
}

fn magics() -> impl Strategy<Value = Magic> {
    prop_oneof![5 => (1u16..=15).prop_map(Magic::Redis), 1 => (80u16..=81).prop_map(Magic::Valkey)]
}

/// Takes facts as the commands do.
#[derive(Default)]
struct Facts(Vec<Taken>);

#[derive(Debug, Clone, PartialEq)]
struct Taken {
    db: u64,
    key: Vec<u8>,
    elements: Option<u64>,
    payload_bytes: Option<u64>,
    largest_element_bytes: Option<u64>,
    serialized_bytes: u64,
    expires_at_ms: Option<i64>,
}

impl PieceSink for Facts {
    const DEEP: bool = true;

    fn fact(&mut self, fact: &Fact<'_>) {
        self.0.push(Taken {
            db: fact.db,
            key: fact.key.to_vec(),
            elements: fact.elements,
            payload_bytes: fact.payload_bytes,
            largest_element_bytes: fact.largest_element_bytes,
            serialized_bytes: fact.serialized_bytes,
            expires_at_ms: fact.expires_at_ms,
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_read(
        magic in magics(),
        compress: bool,
        seeds in prop::collection::vec(any::<u64>(), 0..60),
        piece_bytes in prop_oneof![1u64..2000, Just(1 << 20)],
        threads in 1usize..=3,
    ) {
        let (dump, written) = write_dump(magic, compress, &seeds);
        let read = on_threads(threads, || read(&dump.out, piece_bytes));
        prop_assert_eq!(read.faults, Vec::<String>::new());
        prop_assert_eq!(read.keys.len(), written.len());
        for (read, written) in read.keys.iter().zip(&written) {
            prop_assert_eq!(read, written);
        }
        prop_assert_eq!(read.framing_bytes, dump.framing_bytes);
        prop_assert_eq!(read.end.fault, None);
        prop_assert_eq!(read.end.bytes, dump.bytes);
        let checksum = if magic.has_checksum() { ChecksumState::Ok } else { ChecksumState::Absent };
        prop_assert_eq!(read.end.checksum, checksum);
        let serialized: u64 = written.iter().map(|key| key.written.serialized_bytes).sum();
        prop_assert_eq!(serialized + dump.framing_bytes, dump.out.len() as u64);
    }

    #[test]
    fn facts_are_what_was_written(
        magic in magics(),
        compress: bool,
        seeds in prop::collection::vec(any::<u64>(), 0..40),
        piece_bytes in 1u64..5000,
        threads in 1usize..=3,
    ) {
        let (dump, written) = write_dump(magic, compress, &seeds);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&dump.out).unwrap();
        let options = Options { scan: ScanOptions { piece_bytes, ..ScanOptions::default() }, ..Options::default() };
        let opened = Dump::new(Input::open(file.path()).unwrap(), &options).unwrap();
        let mut facts = Vec::new();
        let outcome = on_threads(threads, || {
            let take = |worker: &mut Facts| std::mem::take(&mut worker.0);
            analyse::walk_dump(&opened, &options, &Mutex::new(Vec::new()), Facts::default, take, |piece, _| {
                facts.extend(piece);
                ControlFlow::Continue(())
            })
        });
        let expected: Vec<Taken> = written
            .iter()
            .map(|key| {
                let is_core = ["string", "list", "set", "zset", "hash", "stream"].contains(&&*key.key_type);
                Taken {
                    db: key.db,
                    key: key.key.clone(),
                    elements: key.elements,
                    payload_bytes: is_core.then(|| key.texts().sum()),
                    largest_element_bytes: is_core.then(|| key.texts().max().unwrap_or(0)),
                    serialized_bytes: key.written.serialized_bytes,
                    expires_at_ms: key.expires_at_ms,
                }
            })
            .collect();
        prop_assert_eq!(facts, expected);
        prop_assert!(!outcome.is_partial());
        prop_assert_eq!(outcome.passed.keys, written.len() as u64);
        prop_assert_eq!(outcome.passed.framing_bytes, dump.framing_bytes);
        prop_assert_eq!(outcome.passed.serialized_bytes + dump.framing_bytes, dump.bytes);
        prop_assert_eq!(outcome.trailing_bytes, 0);
    }

    #[test]
    fn a_hidden_count_is_found_by_a_walk(seed: u64, compress: bool) {
        let mut random = Random::new(seed);
        let items = texts(&mut random, false);
        // Version 9 has another type 20: Dragonfly's.
        let magic = Magic::Redis(11);
        let mut pack = Listpack::default();
        let mut zip = Ziplist::new(magic);
        pack.hide_count();
        zip.hide_count();
        for item in &items {
            pack.push(item);
            zip.push(item);
        }
        let (pack, zip) = (pack.finish(), zip.finish());
        let mut w = DumpWriter::in_memory(magic);
        w.compress(compress);
        w.key("set").blob(20, &pack);
        w.key("list").blob(10, &zip);
        w.key("nodes").list_quicklist(&[zip.clone(), zip]);
        w.key("nodes2").list_quicklist2(&[ListNode::Packed(pack.clone()), ListNode::Plain(b"plain".to_vec()), ListNode::Packed(pack)]);
        let read = read(&w.into_bytes(), 100);
        prop_assert_eq!(read.faults, Vec::<String>::new());
        let n = items.len() as u64;
        let elements: Vec<_> = read.keys.iter().map(|key| key.elements).collect();
        prop_assert_eq!(elements, [Some(n), Some(n), Some(2 * n), Some(2 * n + 1)]);
    }

    #[test]
    fn compressed_strings_are_lzf(words in prop::collection::vec(0u8..5, 0..4000), more: Vec<u8>) {
        let mut lzf_of = Lzf::new();
        for plain in [&words[..], &more, &words] {
            if let Some(packed) = lzf_of.compress(plain, plain.len()) {
                prop_assert_eq!(&lzf::decompress(packed, plain.len().max(1)).unwrap_or_default(), &plain);
            }
        }
        // What one string leaves behind changes nothing for the next.
        let again = lzf_of.compress(&words, words.len()).map(<[u8]>::to_vec);
        prop_assert_eq!(Lzf::new().compress(&words, words.len()).map(<[u8]>::to_vec), again);
    }
}

#[test]
fn more_than_65_534_entries() {
    let magic = Magic::Redis(11);
    for n in [65_534, 65_535, 65_536, 70_000u64] {
        let items: Vec<Vec<u8>> = (0..n).map(|i| i.to_string().into_bytes()).collect();
        let mut w = DumpWriter::in_memory(magic);
        w.key("set").set_listpack(&items);
        w.key("list").list_ziplist(&items);
        w.key("hash").hash_listpack(items.iter().map(|item| (item, item)));
        let read = read(&w.into_bytes(), 1);
        let elements: Vec<_> = read.keys.iter().map(|key| key.elements).collect();
        assert_eq!(elements, [Some(n), Some(n), Some(n)]);
        assert_eq!(read.faults, Vec::<String>::new());
    }
}

#[test]
fn strings_at_the_edges_of_every_length_form() {
    // An entry of a listpack is 1, 2 or 5 bytes longer than its text, and the length behind it widens above 127, 16,382 and
    // 2,097,150.
    let edges =
        [0, 20, 21, 63, 64, 65, 125, 126, 127, 253, 254, 255, 4095, 4096, 16_377, 16_378, 16_383, 16_384, 2_097_145, 2_097_146];
    let items: Vec<Vec<u8>> = edges.into_iter().flat_map(|n| [vec![b'x'; n], vec![b'-'; 3]]).collect();
    let fields: Vec<_> = items.iter().map(|item| (item, item)).collect();
    for compress in [false, true] {
        let mut w = DumpWriter::in_memory(Magic::Redis(11));
        w.compress(compress);
        w.key("list").list(&items);
        w.key("ziplist").list_ziplist(&items);
        w.key("listpack").set_listpack(&items);
        w.key("zipmap").hash_zipmap(fields.iter().copied(), 0);
        let read = read(&w.into_bytes(), 1);
        assert_eq!(read.faults, Vec::<String>::new());
        let texts: Vec<Vec<u64>> = read.keys.iter().map(|key| key.texts().collect()).collect();
        let lens: Vec<u64> = items.iter().map(|item| item.len() as u64).collect();
        let twice: Vec<u64> = lens.iter().flat_map(|n| [*n, *n]).collect();
        assert_eq!(texts, [lens.clone(), lens.clone(), lens, twice]);
    }
}

#[test]
fn checksums_real_zero_wrong_and_absent() {
    let finish = |magic, checksum| {
        let mut w = DumpWriter::in_memory(magic);
        w.key("k").string("v");
        w.finish_with(checksum).unwrap().out
    };
    let state = |bytes: &[u8]| read(bytes, 1).end.checksum;
    assert_eq!(state(&finish(Magic::Redis(5), Checksum::Real)), ChecksumState::Ok);
    assert_eq!(state(&finish(Magic::Redis(12), Checksum::Zero)), ChecksumState::Disabled);
    assert_eq!(state(&finish(Magic::Valkey(80), Checksum::Other(7))), ChecksumState::Mismatch);
    assert_eq!(state(&finish(Magic::Redis(4), Checksum::Real)), ChecksumState::Absent);
}

#[test]
fn bytes_of_real_files() {
    let body = |write: &dyn Fn(&mut DumpWriter<Vec<u8>>)| {
        let mut w = DumpWriter::in_memory(Magic::Redis(12));
        write(&mut w);
        let bytes = w.into_bytes();
        bytes[9..bytes.len() - 9].to_vec()
    };
    // Redis 8.2.3: AUX redis-bits, an integer in one byte.
    assert_eq!(
        body(&|w| {
            w.aux("redis-bits", "64");
        }),
        b"\xfa\x0aredis-bits\xc0\x40"
    );
    // Redis 8.2.3: a hash of type 24 whose second field expires a second after the first.
    let (at, later) = (1_999_999_999_999, 2_000_000_000_999);
    let fields =
        [("f1", "v1", Some(at)), ("f2", "v2", Some(later)), ("f3", "v3", None)].map(|(f, v, at)| (f.into(), v.into(), at));
    let table = b"\x18\x02hy\xff\x1f\x4a\xa9\xd1\x01\x00\x00\x03\x01\x02f1\x02v1\x43\xe9\x02f2\x02v2\x00\x02f3\x02v3";
    assert_eq!(
        body(&|w| {
            w.key("hy").hash_with_expiries(FieldExpiryForm::Table, &fields);
        }),
        table
    );
    // The same server: a hash of type 25 of 35 bytes.
    let fields = [("f1", "v1", Some(at)), ("f2", "v2", None)].map(|(f, v, at)| (f.into(), v.into(), at));
    let listpack = body(&|w| {
        w.key("hx").hash_with_expiries(FieldExpiryForm::Listpack, &fields);
    });
    assert!(listpack.starts_with(b"\x19\x02hx\xff\x1f\x4a\xa9\xd1\x01\x00\x00\x23\x23\x00\x00\x00\x06\x00"), "{listpack:02x?}");
    assert!(listpack.windows(10).any(|w| w == b"\xf4\xff\x1f\x4a\xa9\xd1\x01\x00\x00\x09"), "{listpack:02x?}");
    // Valkey 9.1.2: type 22.
    let valkey = b"\x16\x02hx\x02\x02f1\x02v1\xff\x1f\x4a\xa9\xd1\x01\x00\x00\x02f2\x02v2\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(
        body(&|w| {
            w.key("hx").hash_with_expiries(FieldExpiryForm::Valkey, &fields);
        }),
        valkey
    );
    // The id of a file's module type.
    assert_eq!(writer::module_id("TopK-TYPE", 0), 0x4e8a_4af9_360f_1000);
}

#[test]
fn a_value_that_holds_dumps_is_one_key() {
    let (inner, _) = write_dump(Magic::Redis(12), false, &(1..60).collect::<Vec<u64>>());
    let mut w = DumpWriter::in_memory(Magic::Redis(12));
    w.select_db(3);
    let twice = [&inner.out[..], &inner.out].concat();
    let records = inner.out[9..inner.out.len() - 9].to_vec();
    let written = [
        w.key("whole").expires_at_ms(1).string(&inner.out),
        w.key("twice").string(&twice),
        w.key("records").list([&records, &records, &inner.out]),
        w.key(&inner.out).hash([(&inner.out, &records)]),
    ];
    let dump = w.finish().unwrap();
    for (threads, piece_bytes) in [(1, 1), (2, 64), (3, 1000), (3, 1 << 20)] {
        let read = on_threads(threads, || read(&dump.out, piece_bytes));
        assert_eq!(read.keys.iter().map(|key| key.written).collect::<Vec<_>>(), written);
        assert!(read.keys.iter().all(|key| key.db == 3));
        assert_eq!((read.framing_bytes, read.end.fault), (dump.framing_bytes, None));
    }
}

#[test]
fn zeros_and_end_marks_and_fake_records_hide_nothing() {
    let mut fakes = DumpWriter::in_memory(Magic::Redis(11));
    for i in 0..2000u32 {
        fakes.key(&i.to_string()).expires_at_ms(i64::from(i)).string("fake");
    }
    let fakes = fakes.into_bytes();
    // Cut so that the fakes begin in the middle of one, and with an expiry of which the key is missing.
    let (front, back) = (fakes[9..].to_vec(), fakes[14..fakes.len() - 20].to_vec());
    let (zeros, ones) = (vec![0; 3 << 20], vec![0xff; 1 << 20]);
    let values: Vec<&[u8]> = vec![&zeros, b"between", &ones, &front, &back, b"\xfe\x07", b"\xff", &zeros];
    let mut w = DumpWriter::in_memory(Magic::Redis(11));
    w.select_db(0);
    let written: Vec<Written> = values.iter().enumerate().map(|(i, value)| w.key(&format!("key:{i}")).string(value)).collect();
    let dump = w.finish().unwrap();
    for (threads, piece_bytes) in [(1, 1 << 20), (2, 1), (3, 4096), (3, 100_000)] {
        let read = on_threads(threads, || read(&dump.out, piece_bytes));
        assert_eq!(read.keys.iter().map(|key| key.written).collect::<Vec<_>>(), written);
        assert_eq!((read.framing_bytes, read.end.checksum), (dump.framing_bytes, ChecksumState::Ok));
    }
}

#[test]
fn a_cut_at_any_byte_leaves_exactly_the_whole_records() {
    let magics = [
        Magic::Redis(1),
        Magic::Redis(3),
        Magic::Redis(6),
        Magic::Redis(9),
        Magic::Redis(10),
        Magic::Redis(12),
        Magic::Valkey(80),
    ];
    on_threads(1, || {
        for magic in magics {
            for type_byte in types_of(magic) {
                let mut w = DumpWriter::in_memory(magic);
                let mut random = Random::new(u64::from(type_byte) << 16 | u64::from(magic.version()));
                w.compress(true);
                write_head(&mut w, &mut random);
                w.select_db(0);
                let keys: Vec<Key> = (0..3).map(|_| write_record(&mut w, 0, type_byte, &mut random, true)).collect();
                let bytes = w.into_bytes();
                for cut in 0..bytes.len() {
                    let bytes = &bytes[..cut];
                    if cut < 9 {
                        assert!(Head::read(bytes).is_err());
                        continue;
                    }
                    let whole = keys.iter().filter(|key| key.written.end() <= cut as u64).count();
                    for piece_bytes in [1, 1 << 20] {
                        let read = read(bytes, piece_bytes);
                        assert_eq!(read.keys, keys[..whole], "type {type_byte} of {magic:?}, cut at {cut}");
                        assert!(read.end.fault.is_some_and(|fault| fault.is_truncation()), "type {type_byte}, cut at {cut}");
                        assert!(read.end.bytes <= cut as u64);
                    }
                }
            }
        }
    });
}
