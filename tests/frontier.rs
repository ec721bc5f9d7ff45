//! Dumps of servers newer than RDB 12, of KeyDB and of Dragonfly, run through the program.
//!
//! The worked examples come from the format's description, with the expectations given there; the rest is built here by hand or with the
//! test writer. What the numbers must be was worked out from the layouts, byte by byte.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/examples.rs"]
mod examples;
mod support;
#[path = "support/writer.rs"]
mod writer;

use examples::*;
use support::{Report, Row, TempDump, column, dump, row, string};
use writer::{DumpWriter, Listpack, Magic, Random, listpack};

/// 2033-05-18, the expiry that most examples have.
const AT: &str = "1999999999999";

const COLUMNS: &str = "db,key,type,encoding,elements,payload_bytes,serialized_bytes,expires_at_ms,hfe_fields,hfe_min_expire_ms,\
                       hfe_max_expire_ms,stream_groups,stream_consumers,stream_pending,stream_last_id";

/// Rows of all keys, and the tables, of a dump that is read without a fault; their sums must agree.
struct Read {
    rows: Vec<Row>,
    report: Report,
}

impl Read {
    #[track_caller]
    fn of(bytes: &[u8]) -> Self {
        let dump = TempDump::new(bytes);
        let rows = dump.keys(&["--columns", COLUMNS]);
        let report = dump.report(&[]);
        assert_eq!(report.run.code, 0, "{}", report.run.stderr);
        assert_eq!(report.total("keys"), rows.len() as u64);
        assert_eq!(report.total("serialized_bytes") + report.total("framing_bytes"), report.total("dump_bytes"));
        let serialized: u64 = rows.iter().map(|row| support::number(row, "serialized_bytes")).sum();
        assert_eq!(report.total("serialized_bytes"), serialized);
        Self { rows, report }
    }

    #[track_caller]
    fn of_hex(digits: &str) -> Self {
        Self::of(&support::hex(digits))
    }

    #[track_caller]
    fn key(&self, key: &str) -> &Row {
        row(&self.rows, "key", key)
    }

    fn names(&self) -> Vec<&str> {
        column(&self.rows, "key")
    }

    #[track_caller]
    fn is(&self, key: &str, expected: &[(&str, &str)]) {
        let row = self.key(key);
        for (name, value) in expected {
            assert_eq!(row[*name], *value, "{name} of {key}");
        }
    }

    fn checksum(&self) -> String {
        self.report.table("inputs")[0]["checksum"].clone()
    }
}

/// A string `v` under the key `k`, whose presence shows that whatever stands before it was passed to its last byte.
const AFTER: &[u8] = b"\x00\x01k\x01v";

/// The dump is refused at `offset` for `byte`, and what came before it is counted.
#[track_caller]
fn refused(bytes: &[u8], offset: usize, byte: u8, keys: u64) {
    assert_eq!(bytes[offset], byte, "the test's own arithmetic");
    let header = String::from_utf8(bytes[..9].to_vec()).unwrap();
    let dump = TempDump::new(bytes);
    let report = dump.report(&[]);
    assert_eq!((report.run.code, report.total("keys"), report.total("partial_inputs")), (3, keys, 1));
    let run = dump.run_keys(&[]).ended_with(3);
    for stderr in [&report.run.stderr, &run.stderr] {
        let names = [format!("byte {offset},"), format!("type or opcode {byte} "), format!("header {header}")];
        assert!(names.iter().all(|name| stderr.contains(name.as_str())), "{names:?}: {stderr}");
    }
}

/// `body` in database 0 under `header`, a key behind it.
fn with_after(header: &[u8; 9], body: &[u8]) -> Vec<u8> {
    dump(header, &[&[0xfe, 0][..], body, AFTER].concat())
}

#[test]
fn e1_metadata_of_a_key() {
    let read = Read::of_hex(E1);
    assert_eq!(read.names(), ["k"]);
    // All but header, database, sizes and trailer: the metadata counts to the key.
    read.is("k", &[("type", "string"), ("payload_bytes", "1"), ("expires_at_ms", AT), ("serialized_bytes", "27")]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e2_metadata_that_a_server_wrote() {
    let read = Read::of_hex(E2);
    assert_eq!(read.names(), ["k2", "k"]);
    read.is("k2", &[("type", "string"), ("payload_bytes", "1"), ("expires_at_ms", ""), ("serialized_bytes", "6")]);
    read.is("k", &[("type", "string"), ("payload_bytes", "1"), ("expires_at_ms", AT)]);
    assert_eq!(read.checksum(), "ok");
    assert_eq!(read.report.table("inputs")[0]["rdb_version"], "REDIS0014");
}

#[test]
fn e3_a_stream_whose_producers_are_told_apart() {
    let read = Read::of_hex(E3);
    let expected = [("type", "stream"), ("encoding", "stream"), ("elements", "1"), ("payload_bytes", "2")];
    read.is("s", &expected);
    read.is("s", &[("stream_groups", "0"), ("stream_consumers", "0"), ("stream_pending", "0"), ("stream_last_id", "1-1")]);
    assert_eq!(read.checksum(), "ok");
}

/// What nobody holds any more is still pending: the server says pel-count 1.
#[test]
fn e4_a_stream_with_an_entry_handed_back() {
    let read = Read::of_hex(E4);
    read.is("s", &[("type", "stream"), ("elements", "1"), ("stream_groups", "1"), ("stream_consumers", "0")]);
    read.is("s", &[("stream_pending", "1"), ("stream_last_id", "1-1")]);
    assert_eq!(read.report.total("damaged_values"), 0);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e5_an_array() {
    let read = Read::of_hex(E5);
    assert_eq!(read.names(), ["a"]);
    read.is("a", &[("type", "array"), ("elements", "4")]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e6_an_array_that_a_server_wrote() {
    let read = Read::of_hex(E6);
    assert_eq!(read.names(), ["ar"]);
    read.is("ar", &[("type", "array"), ("elements", "5")]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e7_a_stream_that_a_server_wrote() {
    let read = Read::of_hex(E7);
    // 0x01a22c7bc1fb milliseconds.
    read.is("s", &[("type", "stream"), ("elements", "1"), ("stream_groups", "0"), ("stream_last_id", "1796042637819-0")]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e8_hashes_that_refer_to_a_template() {
    let read = Read::of_hex(E8);
    assert_eq!(read.names(), ["h1", "h2", "k"]);
    read.is("h1", &[("type", "hash"), ("encoding", "template-listpack"), ("elements", "2"), ("expires_at_ms", AT)]);
    read.is("h2", &[("type", "hash"), ("encoding", "template-array"), ("elements", "2"), ("expires_at_ms", "")]);
    read.is("k", &[("type", "string"), ("payload_bytes", "1")]);
    // The values alone, "41" and "ann", "7" and "bob": names are the template's.
    read.is("h1", &[("payload_bytes", "5")]);
    read.is("h2", &[("payload_bytes", "4")]);
    // Expiry 9, type 1, key 3, values 17; type 1, key 3, template 1, values 2 and 4.
    read.is("h1", &[("serialized_bytes", "30")]);
    read.is("h2", &[("serialized_bytes", "11")]);
    assert_eq!(read.report.total("elements"), 4);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e9_hashes_with_a_template_of_their_own() {
    let read = Read::of_hex(E9);
    assert_eq!(read.names(), ["h1", "h2", "h3"]);
    for (key, encoding) in [("h1", "template-listpack"), ("h2", "template-listpack"), ("h3", "template-array")] {
        read.is(key, &[("type", "hash"), ("encoding", encoding), ("elements", "2")]);
    }
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e10_a_bitmap_of_a_number_not_yet_known_is_refused() {
    refused(&support::hex(E10), 11, 33, 0);
}

#[test]
fn e11_field_expiries_of_valkey() {
    let read = Read::of_hex(E11);
    assert_eq!(read.names(), ["h", "k"]);
    read.is("h", &[("type", "hash"), ("encoding", "hashtable"), ("elements", "2"), ("expires_at_ms", "")]);
    read.is("h", &[("hfe_fields", "1"), ("hfe_min_expire_ms", AT), ("hfe_max_expire_ms", AT)]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e12_a_slot_import_is_no_key() {
    let read = Read::of_hex(E12);
    assert_eq!(read.names(), ["h", "k"]);
    read.is("h", &[("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", AT), ("hfe_max_expire_ms", AT)]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e13_a_dump_of_valkey() {
    let read = Read::of_hex(E13);
    assert_eq!(read.names(), ["h", "k", "h3"]);
    read.is("h", &[("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", AT), ("hfe_max_expire_ms", AT)]);
    read.is("k", &[("type", "string"), ("payload_bytes", "1")]);
    read.is("h3", &[("type", "hash"), ("encoding", "listpack"), ("elements", "1"), ("hfe_fields", ""), ("payload_bytes", "2")]);
    let input = &read.report.table("inputs")[0];
    assert_eq!((&*input["server"], &*input["version"]), ("Valkey", "9.1.2"));
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e14_a_hash_of_paths() {
    let read = Read::of_hex(E14);
    assert_eq!(read.names(), ["p", "k"]);
    read.is("p", &[("type", "path-hash"), ("elements", "3")]);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e15_a_command_among_the_records_is_refused() {
    refused(&support::hex(E15), 16, 242, 1);
}

#[test]
fn e16_the_compressed_envelope() {
    let read = Read::of_hex(E16);
    assert_eq!(read.names(), ["k"]);
    let input = &read.report.table("inputs")[0];
    assert_eq!(["bytes", "stored_bytes", "rdb_version"].map(|name| &*input[name]), ["25", "55", "VALKEY081"]);
    assert_eq!(read.report.total("dump_bytes"), 25);
    assert_eq!(read.checksum(), "ok");
}

#[test]
fn e17_member_expiries_and_flags_of_dragonfly() {
    let read = Read::of_hex(E17);
    assert_eq!(read.names(), ["h", "s", "k"]);
    let at = "1999999999000";
    read.is("h", &[("type", "hash"), ("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", at)]);
    read.is("h", &[("hfe_max_expire_ms", at), ("expires_at_ms", "")]);
    read.is("s", &[("type", "set"), ("elements", "1"), ("hfe_fields", "")]);
    // The flags count to the key.
    read.is("k", &[("type", "string"), ("serialized_bytes", "10")]);
    assert_eq!(read.checksum(), "disabled");
}

#[test]
fn e18_records_compressed_together() {
    let read = Read::of_hex(E18);
    let names: Vec<String> = (0..10).map(|n| format!("key:{n:02}")).collect();
    assert_eq!(read.names(), names);
    for name in &names {
        // Type, length and key, length and value.
        read.is(name, &[("type", "string"), ("payload_bytes", "20"), ("db", "0"), ("serialized_bytes", "29")]);
    }
    // Header, the 292 bytes that were compressed, end mark and checksum.
    assert_eq!((read.report.total("dump_bytes"), read.report.total("framing_bytes")), (310, 20));
    assert_eq!(read.checksum(), "disabled");
}

#[test]
fn e19_a_record_in_chunks() {
    let read = Read::of_hex(E19);
    let mut names = read.names();
    names.sort_unstable();
    assert_eq!(names, ["h", "k"]);
    // Chunks of 9, 5 and 5 bytes; their headers belong to no key.
    read.is("h", &[("type", "hash"), ("elements", "3"), ("payload_bytes", "9"), ("serialized_bytes", "19")]);
    assert_eq!((read.report.total("dump_bytes"), read.report.total("framing_bytes")), (71, 71 - 19 - 5));
    assert_eq!(read.checksum(), "disabled");
}

/// Records that mean a thing in one dialect and another, or nothing, in the next.
mod dialects {
    use super::*;

    const REDIS_12: &[u8; 9] = b"REDIS0012";
    const REDIS_13: &[u8; 9] = b"REDIS0013";
    const REDIS_14: &[u8; 9] = b"REDIS0014";
    const REDIS_15: &[u8; 9] = b"REDIS0015";
    const REDIS_16: &[u8; 9] = b"REDIS0016";
    const VALKEY_80: &[u8; 9] = b"VALKEY080";
    const VALKEY_81: &[u8; 9] = b"VALKEY081";
    const DRAGONFLY: &[u8; 9] = b"REDIS0009";

    /// A record of type `byte` under the key `x`.
    fn record(byte: u8, value: &[u8]) -> Vec<u8> {
        [&[byte, 1, b'x'], value].concat()
    }

    #[track_caller]
    fn means(header: &[u8; 9], record: &[u8], expected: &[(&str, &str)]) -> Read {
        let read = Read::of(&with_after(header, record));
        assert_eq!(read.names(), ["x", "k"]);
        read.is("x", expected);
        read
    }

    /// Refused right behind the selected database.
    #[track_caller]
    fn means_nothing(headers: &[&[u8; 9]], record: &[u8]) {
        for header in headers {
            refused(&with_after(header, record), 11, record[0], 0);
        }
    }

    fn packed(items: &[&str]) -> Vec<u8> {
        string(&listpack(items))
    }

    #[test]
    fn type_20_is_a_set_and_in_dragonfly_json() {
        let set = record(20, &packed(&["a", "b"]));
        for header in [b"REDIS0011", VALKEY_80] {
            means(header, &set, &[("type", "set"), ("encoding", "listpack"), ("elements", "2")]);
        }
        means(DRAGONFLY, &record(20, b"\x07{\"a\":1}"), &[("type", "ReJSON-RL"), ("elements", "")]);
    }

    /// `f1` expires at the moment of the examples, `f2` never.
    #[test]
    fn type_22_is_a_hash_with_the_expiry_before_or_behind() {
        let at = 1_999_999_999_999u64;
        let absolute = [&[0x81][..], &at.to_be_bytes()].concat();
        let candidate = [&[2][..], &absolute, b"\x02f1\x011\x00\x02f2\x012"].concat();
        let expected =
            [("type", "hash"), ("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", AT), ("hfe_max_expire_ms", AT)];
        means(REDIS_12, &record(22, &candidate), &expected);
        let valkey = [&b"\x02\x02f1\x011"[..], &at.to_le_bytes(), b"\x02f2\x012", &[0xff; 8]].concat();
        for header in [VALKEY_80, VALKEY_81] {
            means(header, &record(22, &valkey), &expected);
        }
        means_nothing(&[DRAGONFLY, b"REDIS0011"], &record(22, &candidate));
    }

    #[test]
    fn type_23_is_a_hash_with_expiries_or_one_of_paths() {
        let mut fields = Listpack::default();
        fields.push(b"f1").push(b"1").push_integer(1_999_999_999_999).push(b"f2").push(b"2").push_integer(0);
        let expected = [("type", "hash"), ("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", AT)];
        let candidate = record(23, &string(&fields.finish()));
        means(REDIS_12, &candidate, &expected);
        let paths = record(23, b"\x01\x01p\x01\x01f\x01v");
        means(VALKEY_81, &paths, &[("type", "path-hash"), ("elements", "1")]);
        means_nothing(&[DRAGONFLY], &candidate);
        means_nothing(&[VALKEY_80], &paths);
    }

    /// Relative to an earliest expiry, plus one: 1 is the earliest itself.
    #[test]
    fn types_24_and_25_are_hashes_with_expiries_of_redis_alone() {
        let at = 1_999_999_999_999u64.to_le_bytes();
        let table = record(24, &[&at[..], b"\x03\x01\x02f1\x011\x00\x02f2\x012\x03\x02f3\x013"].concat());
        let expected = [("type", "hash"), ("elements", "3"), ("hfe_fields", "2"), ("hfe_min_expire_ms", AT)];
        means(REDIS_12, &table, &expected);
        means(REDIS_12, &table, &[("hfe_max_expire_ms", "2000000000001"), ("encoding", "listpackex")]);
        let mut fields = Listpack::default();
        for (field, expiry) in [(b"f1", 1_999_999_999_999), (b"f3", 2_000_000_000_001), (b"f2", 0)] {
            fields.push(field).push(b"1").push_integer(expiry);
        }
        let packed = record(25, &[&at[..], &string(&fields.finish())].concat());
        means(REDIS_12, &packed, &expected);
        means(REDIS_12, &packed, &[("hfe_max_expire_ms", "2000000000001"), ("encoding", "listpackex")]);
        for record in [table, packed] {
            means_nothing(&[VALKEY_80, VALKEY_81, DRAGONFLY, b"REDIS0011"], &record);
        }
    }

    /// An empty stream whose last id is 5-1, as each layout has it.
    #[test]
    fn types_26_and_27_are_streams_of_redis_alone() {
        let empty = b"\x00\x00\x05\x01\x00\x00\x00\x00\x00\x00\x40\x64\x40\x64\x00\x00\x00";
        let expected = [("type", "stream"), ("elements", "0"), ("stream_groups", "0"), ("stream_last_id", "5-1")];
        means(REDIS_13, &record(26, empty), &expected);
        means(REDIS_14, &record(27, empty), &expected);
        means_nothing(&[REDIS_12, VALKEY_80, VALKEY_81, DRAGONFLY], &record(26, empty));
        means_nothing(&[REDIS_13, VALKEY_80, VALKEY_81, DRAGONFLY], &record(27, empty));
    }

    #[test]
    fn type_28_is_an_array_of_redis_alone() {
        let array = record(28, b"\x02\x00\x05\x03\x02hi\x3f\x01\x07\x00\x00\x00\x00\x00\x00\x00");
        means(REDIS_14, &array, &[("type", "array"), ("elements", "2")]);
        means_nothing(&[REDIS_13, VALKEY_80, VALKEY_81, DRAGONFLY], &array);
    }

    #[test]
    fn type_29_is_a_template_or_before_that_a_rate_limiter() {
        let template = record(29, &[&[0][..], &packed(&["age", "name"]), &packed(&["0", "41", "ann"])].concat());
        means(REDIS_15, &template, &[("type", "hash"), ("encoding", "template-listpack"), ("elements", "2")]);
        means(REDIS_14, &record(29, &[0x2a]), &[("type", "gcra"), ("elements", "")]);
        means_nothing(&[REDIS_13, VALKEY_80, VALKEY_81, DRAGONFLY], &template);
    }

    #[test]
    fn type_30_is_a_hash_by_template_and_in_dragonfly_json() {
        let packed = record(30, &packed(&["0", "41", "ann"]));
        let with_template = |header| dump(header, &[b"\xf2\x00\x02\x03age\x04name\xfe\x00", &packed[..], AFTER].concat());
        Read::of(&with_template(REDIS_15)).is("x", &[("encoding", "template-listpack"), ("elements", "2")]);
        means(DRAGONFLY, &record(30, b"\x02{}"), &[("type", "ReJSON-RL"), ("elements", "")]);
        means_nothing(&[REDIS_14, VALKEY_80, VALKEY_81], &packed);
    }

    /// 324,790,399 seconds after 2023-02-01 is 1,999,999,999 after 1970.
    #[test]
    fn type_31_is_a_template_and_in_dragonfly_a_hash_with_expiries() {
        let template = record(31, b"\x01\x02\x03age\x04name\x0241\x03ann");
        means(REDIS_15, &template, &[("type", "hash"), ("encoding", "template-array"), ("elements", "2")]);
        let dragonfly = record(31, b"\x02\x01f\x01v\x09324790399\x01g\x01w\xc0\xff");
        let expected = [("type", "hash"), ("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", "1999999999000")];
        means(DRAGONFLY, &dragonfly, &expected);
        means_nothing(&[REDIS_14, VALKEY_80, VALKEY_81], &template);
    }

    #[test]
    fn type_32_is_a_hash_by_template_and_in_dragonfly_a_set_with_expiries() {
        let template = record(32, b"\x07\x0241\x03ann");
        let file = dump(REDIS_15, &[b"\xf2\x07\x02\x03age\x04name\xfe\x00", &template[..], AFTER].concat());
        Read::of(&file).is("x", &[("type", "hash"), ("encoding", "template-array"), ("elements", "2")]);
        // 86,400 seconds after that moment: the next day.
        let dragonfly = record(32, b"\x02\x01m\xc2\x80\x51\x01\x00\x01n\xc0\xff");
        let expected = [("type", "set"), ("elements", "2"), ("hfe_fields", "1"), ("hfe_min_expire_ms", "1675296000000")];
        means(DRAGONFLY, &dragonfly, &expected);
        means_nothing(&[REDIS_14, VALKEY_80, VALKEY_81], &template);
    }

    #[test]
    fn type_33_is_a_rate_limiter_of_one_version_and_in_dragonfly_a_filter() {
        let limiter = record(33, &[0x2a]);
        means(REDIS_15, &limiter, &[("type", "gcra"), ("elements", "")]);
        means_nothing(&[REDIS_14, REDIS_16, b"REDIS0017", VALKEY_80, VALKEY_81], &limiter);
        let filter = [&[0][..], &[0; 16], &[0, 0, 9, 1, 3, 2, 0xaa, 0xbb]].concat();
        means(DRAGONFLY, &record(33, &filter), &[("type", "MBbloom--"), ("elements", "")]);
    }

    #[test]
    fn type_34_and_opcode_241_are_not_guessed() {
        means_nothing(&[REDIS_15, REDIS_16, VALKEY_80, VALKEY_81], &record(34, b"\x02\x01a"));
        means_nothing(&[REDIS_15, REDIS_16, VALKEY_80, VALKEY_81, DRAGONFLY], &[241]);
    }

    #[test]
    fn opcode_242_is_a_template_of_redis_alone() {
        let template = b"\xf2\x00\x01\x01f";
        let read = Read::of(&dump(REDIS_15, &[&template[..], &[0xfe, 0], AFTER].concat()));
        assert_eq!((read.names(), read.report.total("serialized_bytes")), (vec!["k"], 5));
        means_nothing(&[REDIS_14, VALKEY_80, VALKEY_81, DRAGONFLY], template);
    }

    #[test]
    fn opcode_243_is_metadata_or_a_slot_import() {
        // One class, its specification, an unsigned 7, end.
        let metadata = b"\xf3\x01\x09\xf5\xc4\x28\x02\x07\x00";
        let keyed = [metadata, &record(0, b"\x01v")[..]].concat();
        for header in [REDIS_13, REDIS_16] {
            means(header, &keyed, &[("type", "string"), ("serialized_bytes", "14")]);
        }
        let import = [&[0xf3, 40][..], &[b'j'; 40], &[1, 0, 9]].concat();
        for header in [VALKEY_80, VALKEY_81] {
            let read = Read::of(&dump(header, &[&import[..], &[0xfe, 0], AFTER].concat()));
            assert_eq!((read.names(), read.report.total("serialized_bytes")), (vec!["k"], 5));
        }
        means_nothing(&[REDIS_12, DRAGONFLY], metadata);
    }

    #[test]
    fn a_newer_number_alone_is_a_warning() {
        for header in [b"REDIS0016", b"REDIS0099", b"VALKEY082"] {
            let dump = TempDump::new(&with_after(header, b""));
            let run = dump.run_keys(&[]).ok();
            let warning = format!("{} is newer", String::from_utf8_lossy(header));
            assert!(run.stderr.contains("warning") && run.stderr.contains(&warning), "{}", run.stderr);
            let report = dump.report(&[]);
            assert_eq!((report.run.code, report.total("keys"), report.total("partial_inputs")), (0, 1, 0));
        }
        for header in [b"REDIS0015", b"VALKEY081"] {
            assert!(!TempDump::new(&with_after(header, b"")).run_keys(&[]).ok().stderr.contains("warning"));
        }
    }

    #[test]
    fn a_template_that_no_record_defines_is_damage() {
        let file = with_after(REDIS_15, &record(32, b"\x05\x011\x012"));
        let run = TempDump::new(&file).run_keys(&[]).ended_with(3);
        assert!(run.stderr.contains("byte 14,") && run.stderr.contains("template"), "{}", run.stderr);
    }

    /// Workers that begin in the middle of the file know the table too.
    #[test]
    fn templates_are_known_however_the_dump_is_cut() {
        let mut w = DumpWriter::in_memory(Magic::Redis(15));
        for (id, fields) in [(0u64, 1u64), (1, 70), (2, 3)] {
            w.byte(0xf2);
            w.len(id);
            w.len(fields);
            for field in 0..fields {
                w.str(format!("f{field:02}").as_bytes());
            }
        }
        for db in 0..3 {
            w.select_db(db);
            for key in 0..200u64 {
                let (id, fields) = [(0, 1), (1, 70), (2, 3)][key as usize % 3];
                w.key(&format!("h:{key}")).value(32, |w| {
                    w.len(id);
                    for field in 0..fields {
                        w.str(format!("value {field} of {key}").as_bytes());
                    }
                });
            }
        }
        let dump = TempDump::new(&w.into_bytes());
        for (piece, threads) in [("1", "2"), ("4096", "2"), ("1000000", "1")] {
            let rows = dump.keys(&["--columns", "elements", "--piece-bytes", piece, "--threads", threads]);
            let expected: Vec<&str> = (0..600).map(|key| ["1", "70", "3"][key % 200 % 3]).collect();
            assert_eq!(column(&rows, "elements"), expected, "pieces of {piece} bytes");
        }
    }
}

mod keydb {
    use super::*;

    const HEADER: &[u8; 9] = b"REDIS0009";

    fn aux(name: &str, value: &str) -> Vec<u8> {
        [&[0xfa][..], &string(name.as_bytes()), &string(value.as_bytes())].concat()
    }

    #[test]
    fn a_time_stamp_before_a_key_counts_to_it() {
        let stamp = aux("mvcc-tstamp", "1700000000000000");
        let expiry = [&[0xfc][..], &1_999_999_999_999i64.to_le_bytes()].concat();
        let body = [&[0xfe, 0][..], &expiry, &stamp, b"\x00\x01a\x01v", &stamp, b"\x00\x01b\x01v", AFTER].concat();
        let read = Read::of(&dump(HEADER, &body));
        assert_eq!(read.names(), ["a", "b", "k"]);
        // Opcode, length and name, length and text.
        let stamp_bytes = 1 + 12 + 17;
        read.is("a", &[("expires_at_ms", AT), ("serialized_bytes", &(9 + stamp_bytes + 5).to_string())]);
        read.is("b", &[("expires_at_ms", ""), ("serialized_bytes", &(stamp_bytes + 5).to_string())]);
        read.is("k", &[("serialized_bytes", "5")]);
    }

    #[test]
    fn member_expiries_behind_a_value_count_to_it() {
        let pair = |member: &str, at: &str| [aux("keydb-subexpire-key", member), aux("keydb-subexpire-when", at)].concat();
        let set = [&b"\x02\x01s\x03\x01a\x01b\x01c"[..], &pair("a", AT), &pair("c", "2000000000000")].concat();
        let body = [&[0xfe, 0][..], &set, AFTER, &aux("some-end", "1")].concat();
        let read = Read::of(&dump(HEADER, &body));
        assert_eq!(read.names(), ["s", "k"]);
        read.is("s", &[("type", "set"), ("elements", "3"), ("expires_at_ms", ""), ("hfe_fields", "2")]);
        read.is("s", &[("hfe_min_expire_ms", AT), ("hfe_max_expire_ms", "2000000000000")]);
        read.is("s", &[("serialized_bytes", &set.len().to_string())]);
        // An attribute of the file behind a key belongs to no key.
        read.is("k", &[("hfe_fields", ""), ("serialized_bytes", "5")]);
    }

    /// Script, start, interval, keys, arguments.
    #[test]
    fn a_cron_job() {
        let job = [&b"\x40\x01j\x08return 1"[..], &[0; 16], b"\x02\x01a\x01b\x01\x01x"].concat();
        let read = Read::of(&with_after(HEADER, &job));
        assert_eq!(read.names(), ["j", "k"]);
        read.is("j", &[("type", "cron"), ("elements", ""), ("serialized_bytes", &job.len().to_string())]);
        refused(&with_after(b"REDIS0010", &job), 11, 64, 0);
    }
}

mod dragonfly {
    use super::*;

    const HEADER: &[u8; 9] = b"REDIS0009";

    /// A dump that says whose it is, and whose checksum is zero as Dragonfly writes it.
    fn file(body: &[u8]) -> Vec<u8> {
        [&HEADER[..], b"\xfa\x06df-ver\x05v1.30", body, &[0xff], &[0; 8]].concat()
    }

    /// Bytes of header, AUX and trailer of such a dump.
    const FRAME: u64 = 9 + 14 + 9;

    fn zstd(plain: &[u8]) -> Vec<u8> {
        [&[201][..], &string(&zstd::encode_all(plain, 1).unwrap())].concat()
    }

    fn lz4(plain: &[u8]) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new().content_size(Some(plain.len() as u64));
        let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        std::io::Write::write_all(&mut encoder, plain).unwrap();
        [&[202][..], &string(&encoder.finish().unwrap())].concat()
    }

    fn chunk(id: u32, bytes: &[u8]) -> Vec<u8> {
        [&[224][..], &id.to_le_bytes(), &(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    fn text(key: &str, value: &[u8]) -> Vec<u8> {
        [&[0][..], &string(key.as_bytes()), &string(value)].concat()
    }

    #[test]
    fn its_name_and_version() {
        let read = Read::of(&file(&[&[0xfe, 0][..], AFTER].concat()));
        assert_eq!(read.report.table("inputs")[0]["server"], "Dragonfly");
    }

    #[test]
    fn probabilistic_types() {
        let bloom = [&[0][..], &[0; 16], &[1, 2, 3], &[2, 5, 2, 0xaa, 0xbb, 6, 1, 0xcc]].concat();
        // Two filters: 3 bytes in chunks of 2 and 1, and 2 bytes in one.
        let chunked = [&[0][..], &[0; 16], &[1, 2, 3], &[2, 5, 3, 2, 1, 2, 1, 3, 6, 2, 2, 8, 9]].concat();
        // 3 wide and 2 deep: 6 cells of eight bytes.
        let count_min = [&[3, 2, 7][..], &[1; 48]].concat();
        let top_k = [&[0, 2, 3, 4][..], &[0; 8], b"\x02\x01a\x05\x01b\x04\x03xyz"].concat();
        let cuckoo = [&[9, 8, 7, 6, 5, 4][..], &[2, 2, 1, 7, 1, 8, 3, 3, 1, 2, 3]].concat();
        let records = [
            (33, "MBbloom--", bloom),
            (34, "MBbloom--", chunked),
            (35, "CMSk-TYPE", count_min),
            (36, "TopK-TYPE", top_k),
            (37, "MBbloomCF", cuckoo),
        ];
        for (byte, name, value) in records {
            let record = [&[byte, 1, b'x'], &value[..]].concat();
            let read = Read::of(&file(&[&[0xfe, 0][..], &record, AFTER].concat()));
            assert_eq!(read.names(), ["x", "k"], "{name}");
            read.is("x", &[("type", name), ("elements", ""), ("serialized_bytes", &record.len().to_string())]);
        }
    }

    #[test]
    fn opcodes_that_belong_to_no_key() {
        let number = |n: u32| n.to_le_bytes();
        // One entry of two levels, with two links and none.
        let entry = [&number(1)[..], &2u64.to_le_bytes(), &number(1), &number(2), &number(7), &number(8), &number(0)].concat();
        let index = [&b"\xde\x05idx:f\x01\x01"[..], &entry].concat();
        let frames: [&[u8]; 6] = [
            &[200, 0, 0, 0, 0, 0, 0, 0, 0],
            &[203],
            &[210, 2, 3, b'a', b'b', b'c'],
            &[211, 1, 2, 3, 4, 5, 6, 7, 8],
            &index,
            b"\xdf\x03\x03idx\x02\x01a\x01\x01b\x02",
        ];
        for frame in frames {
            let read = Read::of(&file(&[&[0xfe, 0][..], frame, AFTER].concat()));
            assert_eq!(read.names(), ["k"], "opcode {}", frame[0]);
            assert_eq!(read.report.total("framing_bytes"), FRAME + 2 + frame.len() as u64, "opcode {}", frame[0]);
            // No other dialect has them.
            for header in [b"REDIS0010", b"VALKEY080"] {
                refused(&with_after(header, frame), 11, frame[0], 0);
            }
        }
    }

    #[test]
    fn flags_of_a_key() {
        let expiry = [&[0xfc][..], &1_999_999_999_999i64.to_le_bytes()].concat();
        let memcache = [&[220][..], &3u32.to_le_bytes(), &9u32.to_le_bytes()].concat();
        let body = [&[0xfe, 0][..], &expiry, &memcache, b"\x00\x01a\x01v", AFTER].concat();
        let read = Read::of(&file(&body));
        read.is("a", &[("expires_at_ms", AT), ("serialized_bytes", "23")]);
    }

    /// A blob selects its own database, and the records behind it are still in that one.
    #[test]
    fn a_blob_carries_its_database_on() {
        let plain = [&[0xfe, 3][..], &text("a", &[b'v'; 300]), &[0xfe, 5], &text("b", &[b'w'; 300]), &text("c", b"x")].concat();
        for blob in [zstd(&plain), lz4(&plain)] {
            assert!(blob.len() < plain.len());
            let read = Read::of(&file(&[&[0xfe, 0][..], &text("first", b"1"), &blob, &text("last", b"1")].concat()));
            let places: Vec<(&str, &str)> = read.rows.iter().map(|row| (&*row["key"], &*row["db"])).collect();
            assert_eq!(places, [("first", "0"), ("a", "3"), ("b", "5"), ("c", "5"), ("last", "5")]);
            read.is("a", &[("payload_bytes", "300"), ("serialized_bytes", "305")]);
            let framing = FRAME + 2 + 4;
            assert_eq!(read.report.total("framing_bytes"), framing);
            assert_eq!(read.report.total("dump_bytes"), framing + 9 + 305 + 305 + 5 + 8);
        }
    }

    #[test]
    fn chunks_inside_blobs_and_between_them() {
        // A hash of 3 fields in three chunks: in a blob, between blobs, in another blob.
        let hash = b"\x04\x01h\x03\x02f1\x011\x02f2\x012\x02f3\x013";
        let parts = [&hash[..10], &hash[10..16], &hash[16..]];
        let first = [&[0xfe, 1][..], &text("a", &[b'v'; 300]), &chunk(7, parts[0]), &text("b", &[b'v'; 300])].concat();
        let second = [&[0xfe, 2][..], &text("c", &[b'v'; 300]), &chunk(7, parts[2]), &text("d", &[b'v'; 300])].concat();
        let body = [&[0xfe, 0][..], &lz4(&first), &chunk(7, parts[1]), &zstd(&second), AFTER].concat();
        let read = Read::of(&file(&body));
        let mut places: Vec<(&str, &str)> = read.rows.iter().map(|row| (&*row["key"], &*row["db"])).collect();
        places.sort_unstable();
        // The record is in the database in which its first chunk stands.
        assert_eq!(places, [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2"), ("h", "1"), ("k", "2")]);
        read.is("h", &[("type", "hash"), ("elements", "3"), ("payload_bytes", "9")]);
        read.is("h", &[("serialized_bytes", &hash.len().to_string())]);
        assert_eq!(read.report.total("framing_bytes"), FRAME + 3 * 2 + 3 * 9);
    }

    /// Whatever the sizes of the chunks, the record is there when its last one is.
    #[test]
    fn a_large_record_in_chunks_of_every_size() {
        let mut random = Random::new(4);
        for (len, most) in [(5000, 4096), (5000, 100), (4097, 1), (40_000, 4096), (100_000, 30_000), (9000, 8999), (300, 299)] {
            let (a, b) = (text("a", &vec![b'a'; len]), text("b", &vec![b'b'; len / 2]));
            let (mut rest_a, mut rest_b) = (&a[..], &b[..]);
            let mut body = vec![0xfe, 0];
            let mut chunks = 0;
            while !(rest_a.is_empty() && rest_b.is_empty()) {
                let (id, rest) = if rest_b.is_empty() || !rest_a.is_empty() && random.percent(50) {
                    (1, &mut rest_a)
                } else {
                    (2, &mut rest_b)
                };
                let (now, later) = rest.split_at((1 + random.below(most) as usize).min(rest.len()));
                *rest = later;
                body.extend(chunk(id, now));
                chunks += 1;
            }
            let read = Read::of(&file(&body));
            let mut names = read.names();
            names.sort_unstable();
            assert_eq!(names, ["a", "b"], "{len} bytes in chunks of at most {most}");
            read.is("a", &[("payload_bytes", &len.to_string()), ("serialized_bytes", &a.len().to_string())]);
            assert_eq!(read.report.total("framing_bytes"), FRAME + 2 + 9 * chunks);
        }
    }

    /// An id that is used again, in another database.
    #[test]
    fn an_id_of_chunks_that_is_used_again() {
        let (a, b) = (text("a", &[b'a'; 5000]), text("b", &[b'b'; 5000]));
        let body = [
            &[0xfe, 0][..],
            &chunk(1, &a[..4500]),
            &chunk(1, &a[4500..]),
            &[0xfe, 1],
            &chunk(1, &b[..4500]),
            &chunk(1, &b[4500..]),
        ]
        .concat();
        let read = Read::of(&file(&body));
        let places: Vec<(&str, &str)> = read.rows.iter().map(|row| (&*row["key"], &*row["db"])).collect();
        assert_eq!(places, [("a", "0"), ("b", "1")]);
    }

    #[test]
    fn a_chunk_that_is_missing_is_damage() {
        let large = text("h", &[b'v'; 6000]);
        for part in [&large[..100], &large[..5000]] {
            let dump = TempDump::new(&file(&[&[0xfe, 0][..], &chunk(1, part), AFTER].concat()));
            let run = dump.run_keys(&[]).ended_with(3);
            assert!(run.stderr.contains("the last chunk of a record is missing"), "{}", run.stderr);
            let report = dump.report(&[]);
            assert_eq!((report.run.code, report.total("keys"), report.total("partial_inputs")), (3, 1, 1));
        }
    }

    #[test]
    fn what_is_no_blob_is_damage() {
        let plain = [&[0xfe, 0][..], &text("a", &[b'v'; 300]), &text("b", &[b'v'; 300])].concat();
        let whole = lz4(&plain);
        // Half a record at its end.
        let cut = lz4(&plain[..plain.len() - 100]);
        let nested = zstd(&[&[0xfe, 0][..], &whole].concat());
        let mut flipped = whole.clone();
        flipped[20] ^= 0x10;
        let garbage = [&[201, 20][..], &[0x55; 20]].concat();
        for (blob, what) in [(cut, "cut"), (nested, "nested"), (flipped, "flipped"), (garbage, "garbage")] {
            let dump = TempDump::new(&file(&[&[0xfe, 0][..], AFTER, &blob, AFTER].concat()));
            let run = dump.run_keys(&[]).ended_with(3);
            // Header, AUX, database, a record.
            assert!(run.stderr.contains("byte 30, reading"), "{what}: {}", run.stderr);
            assert_eq!(dump.report(&[]).total("keys"), 1, "{what}");
        }
    }

    /// An attribute stands in front of its key, nothing between them.
    #[test]
    fn an_attribute_in_front_of_a_blob_loses_nothing() {
        let expiry = [&[0xfc][..], &1_999_999_999_999i64.to_le_bytes()].concat();
        let blob = lz4(&[&[0xfe, 0][..], &text("a", &[b'v'; 300])].concat());
        let dump = TempDump::new(&file(&[&[0xfe, 0][..], &expiry, &blob, AFTER].concat()));
        let run = dump.run_keys(&[]).ended_with(3);
        assert!(run.stderr.contains("byte 25,") || run.stderr.contains("byte 34,"), "{}", run.stderr);
    }
}

/// Attributes in front of the end mark belong to no key, and the sums still agree.
#[test]
fn an_expiry_without_a_key() {
    let expiry = [&[0xfc][..], &1_999_999_999_999i64.to_le_bytes()].concat();
    let read = Read::of(&dump(b"REDIS0012", &[&[0xfe, 0][..], AFTER, &expiry].concat()));
    assert_eq!((read.names(), read.report.total("framing_bytes")), (vec!["k"], 9 + 2 + 9 + 9));
}
