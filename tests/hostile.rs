//! Nothing trusts the bytes: damaged dumps end in time, in bounded memory, without a panic, and with what stood before the damage.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/examples.rs"]
mod examples;
#[path = "support/hostile.rs"]
mod hostile;
mod support;
#[path = "support/writer.rs"]
mod writer;

use std::time::Duration;

use hostile::{Examined, SMALL_BYTES, examine, fault_of, mutation, on_one_thread, over, small_dump};
use support::{TempDump, all_dumps, dump, fixtures};
use writer::{Checksum, DumpWriter, Listpack, Magic};

/// Threads of each test; the tests themselves run side by side too.
const THREADS: u64 = 2;

/// Every run makes the same mutations.
const SEED: u64 = 4;

fn small_inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs = hostile::read(all_dumps());
    inputs.retain(|(_, bytes)| bytes.len() <= SMALL_BYTES);
    assert!(inputs.len() >= 15, "fixtures are missing");
    inputs.extend(hostile::examples());
    inputs.push(("small".into(), small_dump()));
    inputs
}

fn zoos() -> Vec<(String, Vec<u8>)> {
    hostile::read(["redis-7.0.15-zoo.rdb", "redis-8.2.3-zoo.rdb"].map(|name| fixtures().join("truth").join(name)))
}

#[track_caller]
fn none(findings: Vec<Vec<String>>) {
    let findings: Vec<String> = findings.concat();
    assert!(findings.is_empty(), "{} findings, the first:\n{}", findings.len(), findings[..findings.len().min(10)].join("\n"));
}

/// A dump that is cut at `cut` holds exactly the records that end before it, and is said to be damaged.
fn finding_of_cut(name: &str, bytes: &[u8], whole: &Examined, cut: usize) -> Option<String> {
    let found = match fault_of(&bytes[..cut]) {
        Ok(found) => found,
        Err(fault) => return Some(format!("{name} cut at {cut}: {fault}")),
    };
    let complete = whole.records.partition_point(|(_, end, _)| *end <= cut as u64);
    if found.records != whole.records[..complete] {
        return Some(format!("{name} cut at {cut}: {} records instead of {complete}", found.records.len()));
    }
    (!found.is_damaged).then(|| format!("{name} cut at {cut}: not damaged"))
}

/// Bytes of the dump itself: what an append-only file has behind its end belongs to no record.
fn end_of_dump(bytes: &[u8]) -> usize {
    let head = rdbscope::scan::Head::read(bytes).unwrap();
    let workers = std::sync::Mutex::new(vec![()]);
    let end = rdbscope::scan::scan(
        bytes,
        &head,
        rdbscope::scan::ScanOptions::default(),
        &workers,
        || (),
        |(), _| (),
        |(), _| std::ops::ControlFlow::Continue(()),
    );
    assert_eq!(end.fault, None);
    end.stored_bytes as usize
}

#[test]
fn every_cut_of_small_dumps() {
    // Where records are compressed together, or in chunks, a cut takes several at once or leaves them in another order.
    let is_plain = |name: &str| !["E10", "E15", "E16", "E18", "E19"].contains(&name);
    for (name, bytes) in small_inputs().iter().filter(|(name, _)| is_plain(name)) {
        let whole = on_one_thread(|| examine(bytes));
        none(over(THREADS, end_of_dump(bytes) as u64, |cuts| {
            cuts.filter_map(|cut| finding_of_cut(name, bytes, &whole, cut as usize)).collect()
        }));
    }
}

#[test]
fn every_97th_cut_of_two_zoos() {
    for (name, bytes) in zoos() {
        let whole = on_one_thread(|| examine(&bytes));
        none(over(THREADS, bytes.len() as u64 / 97, |cuts| {
            cuts.filter_map(|cut| finding_of_cut(&name, &bytes, &whole, cut as usize * 97)).collect()
        }));
    }
}

#[test]
fn every_bit_flip_of_a_small_dump() {
    let bytes = small_dump();
    assert!((3500..4600).contains(&bytes.len()), "{} bytes", bytes.len());
    let whole = on_one_thread(|| examine(&bytes));
    assert!(!whole.is_damaged);
    none(over(THREADS, 8 * bytes.len() as u64, |bits| {
        bits.filter_map(|bit| {
            let mut flipped = bytes.clone();
            flipped[bit as usize / 8] ^= 1 << (bit % 8);
            match fault_of(&flipped) {
                Err(fault) => Some(format!("bit {bit}: {fault}")),
                // The checksum covers every byte but those of itself, and of them a change is a mismatch too.
                Ok(found) if !found.is_damaged && bit / 8 >= 9 => Some(format!("bit {bit}: not noticed")),
                Ok(_) => None,
            }
        })
        .collect()
    }));
}

#[test]
fn a_hundred_thousand_mutations_of_small_dumps() {
    mutate(&small_inputs(), 100_000);
}

#[test]
fn a_thousand_mutations_of_zoos() {
    mutate(&zoos(), 1000);
}

fn mutate(inputs: &[(String, Vec<u8>)], n: u64) {
    none(over(THREADS, n, |numbers| {
        numbers
            .filter_map(|number| {
                let (name, bytes) = mutation(SEED, number, inputs);
                fault_of(&bytes).err().map(|fault| format!("mutation {number} of {name}: {fault}"))
            })
            .collect()
    }));
}

/// 200 cuts of each of these through the program: a file that is not whole is never a success.
#[test]
fn the_exit_code_of_cuts() {
    let names = ["redis-7.0.15-functions", "redis-8.2.3-nocrc", "redis-6.2.5-lfu", "redis-7.4.1-modules", "redis-8.6.0-lru"];
    for name in names {
        let bytes = std::fs::read(fixtures().join("truth").join(format!("{name}.rdb"))).unwrap();
        for n in 0..200 {
            let cut = bytes.len() * n / 200;
            let run = TempDump::new(&bytes[..cut]).run_keys(&["--quiet"]);
            assert_eq!(run.code, 3, "{name} cut at {cut}: {}", run.stderr);
            assert!(run.stderr.starts_with("rdbscope: "), "{name} cut at {cut}: {}", run.stderr);
        }
    }
}

/// A value whose blob is damaged inside, its length and the file around it as they should be; the checksum is switched off.
#[track_caller]
fn is_found_by_verify(what: &str, magic: Magic, type_byte: u8, blob: &[u8], damage: &[(usize, u8)]) {
    let write = |blob: &[u8]| {
        let mut w = DumpWriter::in_memory(magic);
        w.select_db(0);
        w.key("x").value(type_byte, |w| {
            match type_byte {
                // A list of one node, and the container of that node where there is one.
                14 => w.len(1),
                18 => w.bytes(&[1, 2]),
                // The earliest expiry.
                25 => w.bytes(&1_999_999_999_999u64.to_le_bytes()),
                // A stream of one node.
                15 => w.bytes(&[&[1, 16][..], &[0; 16]].concat()),
                _ => {}
            }
            w.raw_str(blob);
            if type_byte == 15 {
                w.bytes(&[2, 5, 1, 0]);
            }
        });
        w.key("after").string("v");
        TempDump::new(&w.finish_with(Checksum::Zero).unwrap().out)
    };
    let verify = |dump: &TempDump| support::run(["verify", dump.path().to_str().unwrap()]);
    let sound = verify(&write(blob));
    assert_eq!(sound.code, 0, "{what}, sound: {}", sound.text());
    let mut damaged = blob.to_vec();
    for &(at, byte) in damage {
        assert_ne!(damaged[at], byte, "{what}: no damage at {at}");
        damaged[at] = byte;
    }
    let found = verify(&write(&damaged));
    assert_eq!(found.code, 3, "{what}, damaged at {damage:?}: {}", found.text());
    assert!(found.text().contains("of key \"x\"") && found.text().contains("2 keys read"), "{what}: {}", found.text());
}

#[test]
fn damage_inside_a_blob_is_found_by_verify() {
    let (redis_9, redis_12) = (Magic::Redis(9), Magic::Redis(12));
    // Header of six bytes; then an entry of five bytes (length, text, length back), and so on.
    let listpack = writer::listpack(["abc", "4095", "abcd", "-7"]);
    let scored = writer::listpack(["a", "1", "b", "2.5"]);
    for (what, type_byte, blob) in
        [("list", 18, &listpack), ("hash", 16, &listpack), ("set", 20, &listpack), ("sorted set", 17, &scored)]
    {
        let end = blob.len() - 1;
        let damages: [&[(usize, u8)]; 6] =
            [&[(6, 0xbf)], &[(6, 0xf0)], &[(6, 0xf7)], &[(4, 3)], &[(end, 0)], &[(0, blob[0] + 1)]];
        for damage in damages {
            is_found_by_verify(&format!("{what} as listpack"), redis_12, type_byte, blob, damage);
        }
    }
    is_found_by_verify("score that is no number", redis_12, 17, &scored, &[(blob_position(&scored, b"2.5"), b'x')]);
    // Header of ten bytes; then the length of the entry before, an encoding, and a text.
    let ziplist = writer::ziplist(redis_9, ["abc", "70000", "abcd", "-7"]);
    let scored = writer::ziplist(redis_9, ["a", "1", "b", "2.5"]);
    for (what, type_byte, blob) in
        [("list", 10, &ziplist), ("list of nodes", 14, &ziplist), ("hash", 13, &ziplist), ("sorted set", 12, &scored)]
    {
        let end = blob.len() - 1;
        let damages: [&[(usize, u8)]; 6] =
            [&[(11, 0x3f)], &[(11, 0x80)], &[(11, 0xff)], &[(8, 3)], &[(end, 0)], &[(0, blob[0] + 1)]];
        for damage in damages {
            is_found_by_verify(&format!("{what} as ziplist"), redis_9, type_byte, blob, damage);
        }
    }
    for members in [[1i64, 2, 3], [1, 2, 100_000], [1, 2, 1 << 40]] {
        let blob = writer::intset(members);
        let width = blob[0];
        let second = 8 + usize::from(width);
        let damages: [&[(usize, u8)]; 4] = [&[(0, 3)], &[(4, 2)], &[(second, 0)], &[(second, 1)]];
        for damage in damages {
            is_found_by_verify("intset", redis_12, 11, &blob, damage);
        }
    }
    let zipmap = writer::zipmap([("ab", "cd"), ("ef", "gh")], 1);
    let end = zipmap.len() - 1;
    let damages: [&[(usize, u8)]; 5] = [&[(1, 200)], &[(4, 200)], &[(5, 200)], &[(end, 0)], &[(0, 3)]];
    for damage in damages {
        is_found_by_verify("zipmap", Magic::Redis(3), 9, &zipmap, damage);
    }
    let mut fields = Listpack::default();
    fields.push(b"f").push(b"v").push_integer(1_999_999_999_999);
    let fields = fields.finish();
    for damage in [&[(6, 0xbf)][..], &[(12, 0x81)], &[(4, 2)]] {
        is_found_by_verify("hash with expiries", redis_12, 25, &fields, damage);
    }
    // Two live entries, none deleted, one shared field, its name, its end; then flags, id, value, and how far to go back.
    let mut node = Listpack::default();
    for integer in [2, 0, 1] {
        node.push_integer(integer);
    }
    node.push(b"field").push_integer(0);
    for entry in [1, 2] {
        node.push_integer(2).push_integer(0).push_integer(entry).push(b"value").push_integer(4);
    }
    let node = node.finish();
    for damage in [&[(6, 1)][..], &[(8, 1)], &[(10, 2)], &[(12, 0xbf)], &[(19, 1)], &[(21, 0)], &[(4, 3)]] {
        is_found_by_verify("stream node", Magic::Redis(9), 15, &node, damage);
    }
}

fn blob_position(blob: &[u8], text: &[u8]) -> usize {
    blob.windows(text.len()).position(|window| window == text).unwrap()
}

/// A compressed value that cannot expand so far: a warning elsewhere, a fault here.
#[test]
fn u55_verify_decompresses() {
    let digits = "524544495330303130fe0000026f6b01760003626164c30443e8e0ffffff000561667465720176ffad5fbd666e537674";
    let dump = TempDump::from_hex(digits);
    let run = support::run(["verify", dump.path().to_str().unwrap()]).ended_with(3);
    assert!(run.text().contains("of key \"bad\"") && run.text().contains("1000"), "{}", run.text());
}

#[test]
fn inputs_that_once_went_wrong() {
    let folder = fixtures().join("crashes");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "rdb") {
            let bytes = std::fs::read(&path).unwrap();
            on_one_thread(|| fault_of(&bytes)).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
            replayed += 1;
        }
    }
    assert!(replayed > 0);
}

/// Lengths and counts that no file can hold.
mod absurd {
    use super::*;

    /// Most time and memory.
    const TIME: Duration = Duration::from_millis(100);
    const BYTES: usize = 64 << 20;

    /// A length in its 64-bit form.
    fn len(n: u64) -> Vec<u8> {
        [&[0x81][..], &n.to_be_bytes()].concat()
    }

    fn lzf(packed: &[u8], plain_len: u64) -> Vec<u8> {
        [&[0xc3, packed.len() as u8][..], &len(plain_len), packed].concat()
    }

    /// A listpack whose length is right and whose entries are `entries`.
    fn listpack(count: u16, entries: &[u8]) -> Vec<u8> {
        let total = entries.len() as u32 + 7;
        support::string(&[&total.to_le_bytes()[..], &count.to_le_bytes(), entries, &[0xff]].concat())
    }

    /// A stream up to its groups: no nodes, an empty rest.
    const STREAM: &[u8] = b"\x0f\x01x\x00\x00\x00\x00";

    #[track_caller]
    fn ends(header: &[u8; 9], body: &[u8], code: i32) {
        let bytes = dump(header, body);
        let best = on_one_thread(|| (0..3).map(|_| examine(&bytes)).min_by_key(|examined| examined.time).unwrap());
        assert!(best.time < TIME, "{:?}", best.time);
        assert!(best.peak_bytes < BYTES, "{} bytes", best.peak_bytes);
        let file = TempDump::new(&bytes);
        let run = file.run_keys(&[]);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert_eq!(file.report(&[]).run.code, code);
    }

    macro_rules! refused {
        ($($name:ident: $header:literal, $($part:expr),+;)+) => {
            $(#[test]
            fn $name() {
                ends($header, &[$(&$part[..]),+].concat(), 3);
            })+
        };
    }

    refused! {
        string_of_2_to_62_bytes: b"REDIS0012", b"\0\x01x", len(1 << 62), b"abc";
        key_of_2_to_62_bytes: b"REDIS0012", b"\0", len(1 << 62), b"abc";
        string_of_2_to_64_bytes: b"REDIS0012", b"\0\x01x", len(u64::MAX), b"abc";
        hash_of_2_to_32_fields: b"REDIS0012", b"\x04\x01x\x80\xff\xff\xff\xff", b"\x01f\x01v";
        hash_of_2_to_63_fields: b"REDIS0012", b"\x04\x01x", len(1 << 63), b"\x01f\x01v";
        list_of_2_to_64_elements: b"REDIS0012", b"\x01\x01x", len(u64::MAX), b"\x01a";
        set_of_2_to_60_members: b"REDIS0012", b"\x02\x01x", len(1 << 60), b"\x01a";
        zset_of_2_to_61_members: b"REDIS0012", b"\x05\x01x", len(1 << 61), b"\x01a";
        field_expiries_of_2_to_62: b"REDIS0012", b"\x18\x01x", [0; 8], len(1 << 62), b"\x01\x01f\x01v";
        field_expiries_of_valkey: b"VALKEY080", b"\x16\x01x", len(1 << 62), b"\x01f\x01v", [0; 8];
        compressed_string_of_2_to_40_bytes: b"REDIS0012", b"\0\x01x", lzf(b"\x03abcd", 1 << 40);
        compressed_key_of_2_to_40_bytes: b"REDIS0012", b"\0", lzf(b"\x03abcd", 1 << 40), b"\x01v";
        compressed_listpack_of_2_to_40_bytes: b"REDIS0012", b"\x10\x01x", lzf(b"\x03abcd", 1 << 40);
        compressed_bytes_of_2_to_62: b"REDIS0012", b"\0\x01x\xc3", len(1 << 62), len(10), b"\x03abcd";
        list_of_2_to_40_nodes: b"REDIS0012", b"\x12\x01x", len(1 << 40), b"\x02\x01a";
        list_of_2_to_40_ziplists: b"REDIS0009", b"\x0e\x01x", len(1 << 40), b"\x01a";
        listpack_of_65_534_entries: b"REDIS0012", b"\x10\x01x", listpack(65_534, b"\x01\x01");
        intset_of_2_to_32_members: b"REDIS0012", b"\x0b\x01x\x0a\x08\0\0\0\xff\xff\xff\xff\x01\x02";
        zipmap_entry_of_2_to_32_bytes: b"REDIS0003", b"\x09\x01x\x09\x01\xfe\xff\xff\xff\xffab\xff";
        stream_of_2_to_60_nodes: b"REDIS0012", b"\x0f\x01x", len(1 << 60), b"\x10", [0; 16];
        stream_of_2_to_62_groups: b"REDIS0012", STREAM, len(1 << 62), b"\x01g\0\0";
        stream_of_2_to_61_pending: b"REDIS0012", STREAM, b"\x01\x01g\0\0", len(1 << 61), [0; 25];
        stream_of_2_to_60_consumers: b"REDIS0012", STREAM, b"\x01\x01g\0\0\0", len(1 << 60), b"\x01c", [0; 9];
        stream_of_a_consumer_of_2_to_60: b"REDIS0012", STREAM, b"\x01\x01g\0\0\0\x01\x01c", [0; 8], len(1 << 60), [0; 16];
        stream_of_2_to_60_handed_back:
            b"REDIS0014", b"\x1b\x01x\0\0\0\0\0\0\0\0\0\x01\x01g\0\0\0\0\0", len(1 << 60), [0; 16];
        stream_of_2_to_62_producers: b"REDIS0014", b"\x1a\x01x\0\0\0\0\0\0\0\0\0\0\x01\x01", len(1 << 62), b"\x01p\0";
        stream_of_2_to_62_produced: b"REDIS0014", b"\x1a\x01x\0\0\0\0\0\0\0\0\0\0\x01\x01\x01\x01p", len(1 << 62), b"\x01i\0\0";
        array_of_2_to_63_elements: b"REDIS0014", b"\x1c\x01x", len(1 << 63), b"\0\0\0\x01a";
        template_of_2_to_50_fields: b"REDIS0015", b"\xf2\0", len(1 << 50), b"\x01f";
        template_number_2_to_63: b"REDIS0015", b"\xf2", len(1 << 63), b"\x01\x01f";
        template_names_of_2_to_50: b"REDIS0015", b"\x1f\x01x\x01", len(1 << 50), b"\x01f\x01v";
        paths_of_2_to_60: b"VALKEY081", b"\x17\x01x", len(1 << 60), b"\x01p\x01\x01f\x01v";
        path_of_2_to_60_fields: b"VALKEY081", b"\x17\x01x\x01\x01p", len(1 << 60), b"\x01f\x01v";
        module_string_of_2_to_62: b"REDIS0012", b"\x07\x01x", len(1 << 62), b"\x05", len(1 << 62), b"a";
        function_of_2_to_62: b"REDIS0012", b"\xf5", len(1 << 62), b"#!lua name=a";
        attribute_of_2_to_62: b"REDIS0012", b"\xfa\x01a", len(1 << 62), b"b";
        slot_ranges_of_2_to_62: b"VALKEY080", b"\xf3\x28", [b'j'; 40], len(1 << 62), b"\0\x01";
        metadata_classes_of_2_to_62: b"REDIS0013", b"\xf3", len(1 << 62), b"\0\0\0\0\0";
        sketch_of_2_to_80_cells: b"REDIS0009", b"\x23\x01x", len(1 << 40), len(1 << 40), b"\0", [0; 64];
        sketch_of_2_to_62_cells: b"REDIS0009", b"\x23\x01x", len(1 << 31), len(1 << 31), b"\0", [0; 64];
        top_k_of_2_to_62_items: b"REDIS0009", b"\x24\x01x\0\x01\x01\x01", [0; 8], len(1 << 62), b"\x01a\x01";
        filter_of_2_to_62_bytes: b"REDIS0009", b"\x22\x01x\0", [0; 16], b"\0\0\0\x01\x01", len(1 << 62), len(1 << 61), b"abc";
        filters_of_2_to_62: b"REDIS0009", b"\x25\x01x\0\0\0\0\0\0", len(1 << 62), b"\x01\x01a";
        vectors_of_2_to_60: b"REDIS0009", b"\xde\x01i\0", len(1 << 60), [0; 24];
        vector_of_2_to_32_levels: b"REDIS0009", b"\xde\x01i\0\x01", [0; 12], [0xff; 4], [0; 64];
        vector_of_2_to_32_links: b"REDIS0009", b"\xde\x01i\0\x01", [0; 16], [0xff; 4], [0; 64];
        documents_of_2_to_62: b"REDIS0009", b"\xdf\0\x01i", len(1 << 62), b"\x01k\0";
        chunk_of_2_to_32_bytes: b"REDIS0009", b"\xe0\x01\0\0\0\xff\xff\xff\xff", b"\0\x01k\x01v";
        cron_of_2_to_62_keys: b"REDIS0009", b"\x40\x01x\x01s", [0; 16], len(1 << 62), b"\x01k\0";
    }

    /// The values end where their strings do; only a look inside finds what is wrong with them.
    #[track_caller]
    fn is_found_inside(body: &[u8]) {
        let bytes = dump(b"REDIS0012", body);
        let best = on_one_thread(|| (0..3).map(|_| examine(&bytes)).min_by_key(|examined| examined.time).unwrap());
        assert!(best.is_damaged && best.time < TIME && best.peak_bytes < BYTES, "{best:?}");
        let run = TempDump::new(&bytes).run_keys(&["--columns", "key,payload_bytes"]).ended_with(3);
        assert!(run.text().contains("\nx,"), "{}", run.text());
    }

    #[test]
    fn listpack_entry_of_2_to_32_bytes() {
        is_found_inside(&[&b"\x12\x01x\x01\x02"[..], &listpack(1, b"\xf0\xff\xff\xff\xffab\x07")].concat());
    }

    #[test]
    fn stream_node_of_2_to_63_fields() {
        // One live entry, none deleted, 2^63 - 1 fields.
        let node = listpack(4, b"\x01\x01\0\x01\xf4\xff\xff\xff\xff\xff\xff\xff\x7f\x09\0\x01");
        is_found_inside(&[&b"\x0f\x01x\x01\x10"[..], &[0; 16], &node, b"\x01\0\0\0"].concat());
    }

    #[test]
    fn stream_of_2_to_64_entries() {
        let node = listpack(4, b"\x01\x01\0\x01\0\x01\0\x01");
        ends(b"REDIS0012", &[&b"\x0f\x01x\x01\x10"[..], &[0; 16], &node, &len(u64::MAX), b"\0\0\0"].concat(), 3);
    }

    /// The value ends where its compressed bytes do, so the key counts. That it cannot be so long is a warning up to what a server takes
    /// from a client, and damage above.
    #[test]
    fn compressed_string_of_2_to_32_bytes() {
        let string = |len: u64| [b"\0\x01x", &lzf(b"\x03abcd", len)[..]].concat();
        ends(b"REDIS0012", &string(512 << 20), 0);
        ends(b"REDIS0012", &string(u64::from(u32::MAX)), 3);
    }

    #[test]
    fn sizes_of_a_database_and_slots() {
        let slot = [&[0xf4][..], &len(u64::MAX), &len(u64::MAX), &len(u64::MAX)].concat();
        let sizes = [&[0xfb][..], &len(u64::MAX), &len(u64::MAX)].concat();
        ends(b"REDIS0012", &[b"\xfe", &len(u64::MAX)[..], &sizes, &slot, b"\0\x01k\x01v"].concat(), 0);
    }

    /// Few compressed bytes that stand for very many records.
    #[test]
    fn blobs_that_expand_without_end() {
        let zeros = vec![0; 200 << 20];
        let bomb = zstd::encode_all(&zeros[..], 1).unwrap();
        ends(b"REDIS0009", &[&[201][..], &support::string(&bomb)].concat(), 3);
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        std::io::Write::write_all(&mut encoder, &zeros).unwrap();
        let bomb = encoder.finish().unwrap();
        ends(b"REDIS0009", &[&[202][..], &support::string(&bomb)].concat(), 3);
    }
}

/// Many blobs that each expand as far as one may, together far beyond the memory that there is for them.
#[test]
fn many_blobs_that_expand_far() {
    // Strings of a thousand zeros under the empty key.
    let record = [&[0, 0, 0x43, 0xe8][..], &[0; 1000]].concat();
    let blob = zstd::encode_all(&record.repeat(6000)[..], 1).unwrap();
    let one = [&[201][..], &support::string(&blob)].concat();
    let bytes = dump(b"REDIS0009", &one.repeat(40));
    let examined = on_one_thread(|| examine(&bytes));
    assert!(!examined.is_damaged);
    assert_eq!(examined.records.len(), 40 * 6000);
    assert!(examined.peak_bytes < 64 << 20, "{} bytes", examined.peak_bytes);
}

/// A stream node that is compressed as far as can be, of the smallest entries that there are.
#[test]
fn a_stream_node_of_very_many_entries() {
    let plain_len = 88 * 30_000usize;
    let count = (plain_len - 7) / 2;
    let mut plain = vec![0u8; 0];
    plain.extend((plain_len as u32).to_le_bytes());
    plain.extend(u16::MAX.to_le_bytes());
    plain.extend([1, 1].repeat(count));
    plain.resize(plain_len - 1, 1);
    plain.push(0xff);
    let packed = writer::Lzf::new().compress(&plain, plain_len).unwrap().to_vec();
    let len = |n: usize| [&[0x80][..], &(n as u32).to_be_bytes()].concat();
    let lzf = [&[0xc3][..], &len(packed.len()), &len(plain_len), &packed].concat();
    let body = [&b"\x0f\x01x\x01\x10"[..], &[0; 16], &lzf, b"\0\0\0\0"].concat();
    let bytes = dump(b"REDIS0012", &body);
    let examined = on_one_thread(|| fault_of(&bytes)).unwrap();
    assert!(examined.is_damaged);
    assert!(examined.peak_bytes < 16 << 20, "{} bytes for {} plain ones", examined.peak_bytes, plain_len);
}
