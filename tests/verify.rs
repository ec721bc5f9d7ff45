//! What `verify` finds: damage inside values that a walk over records does not see.
//!
//! Dumps are built with a checksum of the damaged bytes, so that nothing but the look inside can find the damage.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/writer.rs"]
mod writer;

use std::path::Path;

use support::{Run, TempDump, fixtures, rdbscope, run};
use writer::{
    Checksum, Content, DumpWriter, FieldExpiryForm, Group, ListNode, Listpack, Magic, Pending, Record, Stream, StreamEntry,
    StreamId, StreamLayout, StreamNode, Written, listpack, ziplist,
};

/// The damaged key of every dump here.
const KEY: &str = "cart:broken";

type InMemory<'w> = Record<'w, Vec<u8>>;

/// Three keys, of which `damaged` writes the second: the bytes of the dump, and where that key's record lies.
fn with_neighbours(magic: Magic, damaged: impl FnOnce(InMemory<'_>) -> Written) -> (Vec<u8>, Written) {
    let mut writer = DumpWriter::in_memory(magic);
    writer.select_db(0).key("before").string("a value");
    let written = damaged(writer.key(KEY));
    writer.key("after").string("another value");
    (writer.into_bytes(), written)
}

fn verify(dump: &TempDump) -> Run {
    Run::of(rdbscope().arg("verify").arg(dump.path()))
}

/// Expects one fault, for the reason `why`, at an offset in the record of the damaged key; all three keys are read all the same.
#[track_caller]
fn finds(magic: Magic, what: &str, why: &str, damaged: impl FnOnce(InMemory<'_>) -> Written) {
    let (bytes, written) = with_neighbours(magic, damaged);
    let found = verify(&TempDump::new(&bytes)).ended_with(3);
    let lines: Vec<&str> = found.text().lines().collect();
    assert_eq!(lines.len(), 2, "{what}: {lines:?}");
    let offset = lines[0].strip_prefix("dump.rdb: at byte ").and_then(|rest| rest.split_once(',')).unwrap_or_else(|| {
        panic!("{what}: {lines:?}");
    });
    let offset: u64 = offset.0.parse().unwrap();
    assert!((written.offset..written.end()).contains(&offset), "{what}: {offset} is not in {written:?}");
    assert!(lines[0].contains(&format!("of key \"{KEY}\"")) && lines[0].contains(why), "{what}: {}", lines[0]);
    let checksum = if magic.has_checksum() { "ok" } else { "absent" };
    assert_eq!(lines[1], format!("dump.rdb: 1 fault, 3 keys read, checksum {checksum}"), "{what}");
}

/// Expects no fault.
#[track_caller]
fn passes(magic: Magic, what: &str, whole: impl FnOnce(InMemory<'_>) -> Written) {
    let (bytes, _) = with_neighbours(magic, whole);
    let found = verify(&TempDump::new(&bytes));
    let checksum = if magic.has_checksum() { "ok" } else { "absent" };
    assert_eq!((found.code, found.text()), (0, &*format!("dump.rdb: ok, 3 keys, checksum {checksum}\n")), "{what}");
}

/// What can go wrong in a packed value, and how it is told.
struct Damage {
    what: &'static str,
    why: &'static str,
    damage: fn(&mut Vec<u8>),
}

/// The length in the first four bytes of a listpack or ziplist is that of its bytes again.
fn mend_length(blob: &mut [u8]) {
    let len = blob.len() as u32;
    blob[..4].copy_from_slice(&len.to_le_bytes());
}

/// Byte 6 is the encoding of the first entry of a listpack.
const OF_LISTPACKS: [Damage; 6] = [
    Damage { what: "entry length", why: "entry passes the end", damage: |blob| blob[6] = 0xbf },
    Damage { what: "count", why: "counts other entries", damage: |blob| blob[4] -= 1 },
    Damage { what: "encoding", why: "no listpack encoding", damage: |blob| blob[6] = 0xf5 },
    Damage { what: "length", why: "header and length disagree", damage: |blob| blob[0] += 1 },
    Damage { what: "early end mark", why: "bytes after the end mark", damage: |blob| blob[6] = 0xff },
    Damage {
        what: "no end mark",
        why: "end mark missing",
        damage: |blob| {
            blob.pop();
            mend_length(blob);
        },
    },
];

/// Bytes 10 and 11 are the length of no previous entry, and the encoding of the first one of a ziplist.
const OF_ZIPLISTS: [Damage; 6] = [
    Damage { what: "entry length", why: "entry passes the end", damage: |blob| blob[11] = 0x3f },
    Damage { what: "count", why: "counts other entries", damage: |blob| blob[8] -= 1 },
    Damage { what: "encoding", why: "no ziplist encoding", damage: |blob| blob[11] = 0xff },
    Damage { what: "length", why: "header and length disagree", damage: |blob| blob[0] += 1 },
    Damage { what: "early end mark", why: "bytes after the end mark", damage: |blob| blob[10] = 0xff },
    Damage {
        what: "no end mark",
        why: "end mark missing",
        damage: |blob| {
            blob.pop();
            mend_length(blob);
        },
    },
];

const REDIS_7: Magic = Magic::Redis(11);
const REDIS_6: Magic = Magic::Redis(9);

/// Members and scores, fields and values, or elements: two of each.
const ITEMS: [&str; 4] = ["alpha", "1", "beta", "2"];

#[test]
fn damage_in_a_listpack_of_a_hash_set_or_sorted_set() {
    for type_byte in [16, 17, 20] {
        let whole = listpack(ITEMS);
        passes(REDIS_7, &format!("type {type_byte}"), |record| record.blob(type_byte, &whole));
        for Damage { what, why, damage } in OF_LISTPACKS {
            let mut blob = whole.clone();
            damage(&mut blob);
            finds(REDIS_7, &format!("{what}, type {type_byte}"), why, |record| record.blob(type_byte, &blob));
        }
    }
}

#[test]
fn damage_in_a_node_of_a_list() {
    let whole = listpack(ITEMS);
    let node = |blob: &[u8]| {
        vec![ListNode::Packed(listpack(["first"])), ListNode::Plain(b"p".repeat(9000)), ListNode::Packed(blob.to_vec())]
    };
    passes(REDIS_7, "list", |record| record.list_quicklist2(&node(&whole)));
    for Damage { what, why, damage } in OF_LISTPACKS {
        let mut blob = whole.clone();
        damage(&mut blob);
        finds(REDIS_7, what, why, |record| record.list_quicklist2(&node(&blob)));
    }
}

#[test]
fn damage_in_a_ziplist() {
    let whole = ziplist(REDIS_6, ITEMS);
    for type_byte in [10, 12, 13] {
        passes(REDIS_6, &format!("type {type_byte}"), |record| record.blob(type_byte, &whole));
        for Damage { what, why, damage } in OF_ZIPLISTS {
            let mut blob = whole.clone();
            damage(&mut blob);
            finds(REDIS_6, &format!("{what}, type {type_byte}"), why, |record| record.blob(type_byte, &blob));
        }
    }
    let nodes = |blob: &[u8]| [ziplist(REDIS_6, ["first"]), blob.to_vec()];
    passes(REDIS_6, "list", |record| record.list_quicklist(&nodes(&whole)));
    for Damage { what, why, damage } in OF_ZIPLISTS {
        let mut blob = whole.clone();
        damage(&mut blob);
        finds(REDIS_6, &format!("{what}, list node"), why, |record| record.list_quicklist(&nodes(&blob)));
    }
}

#[test]
fn damage_in_a_set_of_integers() {
    // Width 2, three members: 1, 2 and 300.
    let whole = [2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0x2c, 1];
    passes(REDIS_7, "intset", |record| record.blob(11, &whole));
    let damages: [(usize, u8, &str); 5] = [
        (0, 3, "width is not 2, 4 or 8"),
        (0, 4, "count and length disagree"),
        (4, 4, "count and length disagree"),
        // 3 before 2, and 2 twice.
        (8, 3, "not in ascending order"),
        (8, 2, "not in ascending order"),
    ];
    for (at, byte, why) in damages {
        let mut blob = whole;
        blob[at] = byte;
        finds(REDIS_7, &format!("byte {at} is {byte}"), why, |record| record.blob(11, &blob));
    }
}

#[test]
fn damage_in_a_zipmap() {
    // Two fields, f: v1 and g: v2; a value has its count of unused bytes behind its length.
    let whole = [2, 1, b'f', 2, 0, b'v', b'1', 1, b'g', 2, 0, b'v', b'2', 0xff];
    let magic = Magic::Redis(3);
    passes(magic, "zipmap", |record| record.blob(9, &whole));
    let damages: [(usize, u8, &str); 5] = [
        (0, 3, "counts other entries"),
        (9, 99, "entry passes the end"),
        (10, 99, "entry passes the end"),
        (7, 0xff, "bytes after the end mark"),
        (8, b'f', "there twice"),
    ];
    for (at, byte, why) in damages {
        let mut blob = whole;
        blob[at] = byte;
        finds(magic, &format!("byte {at} is {byte}"), why, |record| record.blob(9, &blob));
    }
    finds(magic, "no end mark", "end mark missing", |record| record.blob(9, &whole[..13]));
}

fn stream() -> Stream {
    let id = |ms| StreamId { ms, seq: 0 };
    let entry = |ms, content| StreamEntry { id: id(ms), deleted: false, content };
    let own = Content::Own(vec![(b"colour".to_vec(), b"red".to_vec())]);
    let node = |ms| StreamNode {
        id: id(ms),
        fields: vec![b"colour".to_vec()],
        entries: vec![entry(ms, Content::Same(vec![b"blue".to_vec()])), entry(ms + 1, own.clone())],
    };
    Stream { nodes: vec![node(1000), node(2000)], groups: Vec::new(), ..Stream::default() }
}

/// Writes a stream of two nodes as [`stream`] has them, the listpack of the second given.
fn stream_with(record: InMemory<'_>, layout: StreamLayout, blob: &[u8], first_ms: u64, length: u64) -> Written {
    let raw_id = |ms: u64| [ms.to_be_bytes(), [0; 8]].concat();
    record.value(layout as u8, |w| {
        w.len(2);
        w.raw_str(&raw_id(first_ms));
        w.str(&stream().nodes[0].listpack());
        w.raw_str(&raw_id(2000));
        w.str(blob);
        w.len(length);
        // The last id; of later layouts the first, the largest deleted one, and how many were added.
        for number in [2001, 0].iter().chain(if layout > StreamLayout::V1 { &[1000, 0, 0, 0, 4][..] } else { &[] }) {
            w.len(*number);
        }
        w.len(0);
    })
}

#[test]
fn damage_in_a_node_of_a_stream() {
    let whole = stream().nodes[1].listpack();
    for (magic, layout) in [(REDIS_6, StreamLayout::V1), (Magic::Redis(10), StreamLayout::V2), (REDIS_7, StreamLayout::V3)] {
        passes(magic, "as the writer has it", |record| record.stream(layout, &stream()));
        passes(magic, "as the test has it", |record| stream_with(record, layout, &whole, 1000, 4));
        // The count in the header alone is not found: nobody reads it of a stream, whose nodes count for themselves.
        for Damage { what, why, damage } in OF_LISTPACKS.iter().filter(|damage| damage.what != "count") {
            let mut blob = whole.clone();
            damage(&mut blob);
            finds(magic, what, why, |record| stream_with(record, layout, &blob, 1000, 4));
        }
        // The first entry of the listpack is the number of live entries.
        let mut blob = whole.clone();
        blob[6] = 3;
        finds(magic, "live entries", "do not add up", |record| stream_with(record, layout, &blob, 1000, 4));
        finds(magic, "length", "its length and the entries of its nodes disagree", |record| {
            stream_with(record, layout, &whole, 1000, 5)
        });
        finds(magic, "order", "ids of its nodes are not in ascending order", |record| {
            stream_with(record, layout, &whole, 2000, 4)
        });
    }
}

#[test]
fn a_consumer_group_that_does_not_add_up() {
    let id = StreamId { ms: 1000, seq: 0 };
    let group = |consumers| Group {
        name: b"g".to_vec(),
        last_id: id,
        pending: vec![Pending { id, delivered_at_ms: 1, deliveries: 1 }],
        consumers,
        ..Group::default()
    };
    let consumer = writer::Consumer { name: b"c".to_vec(), pending: vec![id], ..writer::Consumer::default() };
    let with = |group| Stream { groups: vec![group], ..stream() };
    passes(REDIS_7, "owned", |record| record.stream(StreamLayout::V3, &with(group(vec![consumer]))));
    let why = "its pending entries and those of its consumers disagree";
    finds(REDIS_7, "nobody's", why, |record| record.stream(StreamLayout::V3, &with(group(Vec::new()))));
}

#[test]
fn a_member_or_field_that_is_there_twice() {
    let why = "the same member or field is there twice";
    let twice = ["a", "1", "b", "2", "a", "3"];
    let pairs = [("a", "1"), ("b", "2"), ("a", "3")];
    let scores = [("a", 1.0), ("b", 2.0), ("a", 3.0)];
    finds(REDIS_7, "set", why, |record| record.set(["a", "b", "a"]));
    finds(REDIS_7, "hash", why, |record| record.hash(pairs));
    finds(REDIS_7, "sorted set", why, |record| record.zset(scores));
    finds(Magic::Redis(3), "sorted set with scores as text", why, |record| record.zset_text(scores));
    finds(REDIS_7, "set in a listpack", why, |record| record.set_listpack(["a", "b", "a"]));
    finds(REDIS_7, "hash in a listpack", why, |record| record.blob(16, &listpack(twice)));
    finds(REDIS_7, "sorted set in a listpack", why, |record| record.zset_listpack(scores));
    finds(REDIS_6, "hash in a ziplist", why, |record| record.hash_ziplist(pairs));
    finds(REDIS_6, "sorted set in a ziplist", why, |record| record.zset_ziplist(scores));
    let fields = pairs.map(|(field, value)| (field.as_bytes().to_vec(), value.as_bytes().to_vec(), Some(4_102_444_800_000)));
    for form in [FieldExpiryForm::Table, FieldExpiryForm::Listpack] {
        finds(Magic::Redis(12), "hash with field expiries", why, |record| record.hash_with_expiries(form, &fields));
    }
    // An integer and the text of it are one member.
    let mut pack = Listpack::default();
    pack.push_integer(7).push_text(b"7");
    finds(REDIS_7, "integer and text", why, |record| record.blob(20, &pack.finish()));
    // Values, elements and entries of streams may repeat.
    passes(REDIS_7, "values", |record| record.hash([("a", "same"), ("b", "same")]));
    passes(REDIS_7, "elements", |record| record.list_quicklist2(&[ListNode::Packed(listpack(["a", "a"]))]));
    passes(REDIS_7, "scores", |record| record.zset_listpack([("a", 1.0), ("b", 1.0)]));
}

#[test]
fn a_score_that_is_no_number() {
    let scores = [("a", 1.0), ("b", f64::NAN)];
    finds(REDIS_7, "binary", "not a number", |record| record.zset(scores));
    finds(Magic::Redis(3), "text", "not a number", |record| record.zset_text(scores));
    finds(REDIS_7, "listpack", "not a number", |record| record.blob(17, &listpack(["a", "1", "b", "nan"])));
    finds(REDIS_6, "ziplist", "not a number", |record| record.blob(12, &ziplist(REDIS_6, ["a", "1", "b", "nan"])));
    finds(REDIS_7, "a word", "a score is no number", |record| record.blob(17, &listpack(["a", "much"])));
    // The infinities are scores.
    passes(REDIS_7, "infinite", |record| record.zset([("a", f64::INFINITY), ("b", f64::NEG_INFINITY)]));
}

#[test]
fn a_pair_that_is_cut() {
    for type_byte in [16, 17] {
        let blob = listpack(["a", "1", "b"]);
        finds(REDIS_7, &format!("type {type_byte}"), "ends in the middle of an element", |record| record.blob(type_byte, &blob));
    }
}

/// Lengths in six bits: 0xc3, the compressed length, the plain one.
fn lzf(packed: &[u8], plain: u8) -> Vec<u8> {
    [&[0xc3, packed.len() as u8, plain], packed].concat()
}

#[test]
fn a_compressed_string_that_expands_wrong() {
    // A literal run of three; one that passes the end; a back reference before the beginning; one of three bytes from one back.
    let cases: [(&[u8], u8, &str); 4] = [
        (&[2, b'a', b'b', b'c'], 2, "expand past the declared length"),
        (&[2, b'a', b'b', b'c'], 4, "end before the declared length"),
        (&[9, b'a', b'b', b'c'], 10, "passes the end of the compressed bytes"),
        (&[0, b'a', 0x20, 5], 4, "back reference before the start"),
    ];
    for (packed, plain, why) in cases {
        let string = lzf(packed, plain);
        finds(REDIS_7, why, why, |record| record.value(0, |w| w.bytes(&string)));
        finds(REDIS_7, why, why, |record| {
            record.value(2, |w| {
                w.len(2);
                w.str(b"sound");
                w.bytes(&string);
            })
        });
    }
    // A listpack of 24 bytes whose header, like the length of the string, speaks of 25.
    let mut blob = listpack(ITEMS);
    assert_eq!(blob.len(), 24);
    let packed = |blob: &[u8]| [&[23], blob].concat();
    passes(REDIS_7, "packed value", |record| record.value(16, |w| w.bytes(&lzf(&packed(&blob), 24))));
    blob[0] = 25;
    finds(REDIS_7, "packed value", "end before the declared length", |record| {
        record.value(16, |w| w.bytes(&lzf(&packed(&blob), 25)))
    });
    passes(REDIS_7, "literal", |record| record.value(0, |w| w.bytes(&lzf(&[2, b'a', b'b', b'c'], 3))));
    passes(REDIS_7, "back reference", |record| record.value(0, |w| w.bytes(&lzf(&[0, b'a', 0x20, 0], 4))));
}

/// A value that cannot expand to the length it declares is read by all other commands, with a warning.
#[test]
fn u55_is_a_fault() {
    let dump =
        TempDump::from_hex("524544495330303130fe0000026f6b01760003626164c30443e8e0ffffff000561667465720176ffad5fbd666e537674");
    let found = verify(&dump).ended_with(3);
    let lines: Vec<&str> = found.text().lines().collect();
    // 9 of header, 2 of database, 6 of the first key, then type and 4 of key: the value begins at 22 and ends before 32.
    let offset = lines[0].strip_prefix("dump.rdb: at byte ").and_then(|rest| rest.split_once(',')).unwrap().0;
    assert!((17..32).contains(&offset.parse::<u64>().unwrap()), "{lines:?}");
    assert!(lines[0].contains("of key \"bad\"") && lines[0].contains("1000"), "{lines:?}");
    assert_eq!(lines[1..], ["dump.rdb: 1 fault, 3 keys read, checksum ok"]);
}

#[test]
fn every_real_dump_is_sound() {
    for dump in support::all_dumps() {
        let found = Run::of(rdbscope().arg("verify").arg(&dump));
        let name = support::name(&dump);
        assert_eq!(found.code, 0, "{}", found.text());
        assert!(found.text().starts_with(&format!("{name}: ok, ")) && found.text().lines().count() == 1, "{}", found.text());
    }
}

#[test]
fn a_line_for_each_of_several_dumps() {
    let truth = |name: &str| fixtures().join("truth").join(name);
    let folder = tempfile::tempdir().unwrap();
    for name in ["redis-7.4.1-contracts.rdb", "redis-8.2.3-nocrc.rdb"] {
        std::fs::copy(truth(name), folder.path().join(name)).unwrap();
    }
    // Keys as the meta files count them.
    let ok = ["redis-7.4.1-contracts.rdb: ok, 3,257 keys, checksum ok", "redis-8.2.3-nocrc.rdb: ok, 124 keys, checksum disabled"];
    let of = |arguments: &[&Path]| {
        let run = run([Path::new("verify")].iter().chain(arguments));
        let mut lines: Vec<String> = run.text().lines().map(Into::into).collect();
        lines.sort();
        (run.code, lines)
    };
    assert_eq!(of(&[&truth("redis-7.4.1-contracts.rdb"), &truth("redis-8.2.3-nocrc.rdb")]), (0, ok.map(String::from).into()));
    assert_eq!(of(&[folder.path()]), (0, ok.map(String::from).into()));
    // One that is damaged leaves the verdict of the others.
    let mut bytes = std::fs::read(truth("redis-7.4.1-contracts.rdb")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(folder.path().join("damaged.rdb"), &bytes).unwrap();
    let (code, lines) = of(&[folder.path()]);
    assert_eq!((code, lines.len()), (3, 4), "{lines:?}");
    assert!(lines[0].starts_with("damaged.rdb: ") && lines[1].starts_with("damaged.rdb: "), "{lines:?}");
    assert_eq!(lines[2..], ok);
}

#[test]
fn checksums() {
    let build = |checksum| {
        let mut writer = DumpWriter::in_memory(REDIS_7);
        writer.select_db(0).key("k").string("v");
        TempDump::new(&writer.finish_with(checksum).unwrap().out)
    };
    assert_eq!(verify(&build(Checksum::Real)).ok().text(), "dump.rdb: ok, 1 key, checksum ok\n");
    // A server that was told not to compute one writes zero.
    assert_eq!(verify(&build(Checksum::Zero)).ok().text(), "dump.rdb: ok, 1 key, checksum disabled\n");
    let mut bytes = std::fs::read(build(Checksum::Real).path()).unwrap();
    // The value, which any byte may be.
    let value = bytes.len() - 10;
    assert_eq!(bytes[value], b'v');
    bytes[value] = b'w';
    let dump = TempDump::new(&bytes);
    let found = verify(&dump).ended_with(3);
    let lines: Vec<&str> = found.text().lines().collect();
    assert!(lines[0].contains("the file says") && lines[0].contains("its bytes give"), "{lines:?}");
    assert_eq!(lines[1..], ["dump.rdb: 1 fault, 1 key read, checksum mismatch"]);
    let unchecked = Run::of(rdbscope().arg("verify").arg(dump.path()).arg("--no-checksum")).ok();
    assert_eq!(unchecked.text(), "dump.rdb: ok, 1 key, checksum not checked\n");
}

#[test]
fn the_tail_of_an_append_only_file_is_no_fault() {
    let mut writer = DumpWriter::in_memory(REDIS_7);
    writer.aux("aof-preamble", "1").select_db(0).key("k").string("v");
    let mut bytes = writer.into_bytes();
    bytes.extend(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n");
    let found = verify(&TempDump::new(&bytes)).ok();
    assert_eq!(found.text(), "dump.rdb: ok, 1 key, checksum ok\n");
    // 4 + 9 + 7 + 7: three pairs of a length and a word, each line ended by two bytes.
    let warning = "rdbscope: warning: dump.rdb: 27 bytes after the RDB end (AOF tail) not analysed\n";
    assert_eq!(found.stderr, warning);
    // Whatever else follows is to be known of as well.
    let mut bytes = with_neighbours(REDIS_7, |record| record.string("v")).0;
    bytes.extend(b"garbage");
    let found = verify(&TempDump::new(&bytes)).ok();
    assert_eq!(found.stderr, "rdbscope: warning: dump.rdb: 7 bytes after the RDB end not analysed\n");
}

#[test]
fn a_dump_that_is_cut() {
    let (bytes, written) = with_neighbours(REDIS_7, |record| record.string("v".repeat(40)));
    let found = verify(&TempDump::new(&bytes[..written.end() as usize - 10])).ended_with(3);
    let lines: Vec<&str> = found.text().lines().collect();
    assert!(lines[0].contains(&format!("of key \"{KEY}\"")) && lines[0].contains("truncated"), "{lines:?}");
    assert_eq!(lines[1..], ["dump.rdb: 1 fault, 1 key read, checksum not checked"]);
}

/// Names of keys in messages are masked, and a file name gives no orders to a terminal.
#[test]
fn what_a_message_shows() {
    let mut writer = DumpWriter::in_memory(REDIS_7);
    writer.select_db(0).key("login:13800000002").set(["a", "a"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\x1b[31m\nb.rdb");
    std::fs::write(&path, writer.into_bytes()).unwrap();
    let found = run([Path::new("verify"), &path]).ended_with(3);
    let lines: Vec<&str> = found.text().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("a\\x1b[31m\\nb.rdb: ")), "{lines:?}");
    assert!(lines[0].contains("of key \"login:138***02\""), "{lines:?}");
}
