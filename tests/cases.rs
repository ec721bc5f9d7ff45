//! Inputs on which other tools went wrong, each with the right answer, run through the program.
//!
//! Dumps are given as hexadecimal digits of the whole file, are built here, or lie in `fixtures/cases`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use rdbscope::key_text;
use rdbscope::rdb::packed::Entry;
use rdbscope::rdb::{Role, Sink};
use rdbscope::scan;
use serde_json::json;
use support::{Report, Row, T0, TempDump, column, dump, fixtures, hex, number, rdbscope, read_csv, row, run, string};

/// The moment that cases without one of their own are judged against.
const AT_T0: [&str; 2] = ["--as-of", "1767225600"];

fn case(name: &str) -> String {
    fixtures().join("cases").join(name).to_str().unwrap().to_string()
}

#[test]
fn u01_commas_and_quotes_come_back_from_csv() {
    let dump = TempDump::from_hex("524544495330303130fe000005612c623a31017600057122783a320176ffa74eac794fa21aa7");
    let expected = ["a,b:1", "q\"x:2"];
    assert_eq!(column(&dump.keys(&[]), "key"), expected);
    assert_eq!(column(&dump.keys(&["--preset", "rdbtools"]), "key"), expected);
    // Reading a table fails on any row that has not the columns of its header.
    let report = dump.report(&[]);
    for table in ["permanent_keys", "big_keys"] {
        assert_eq!(column(&report.table(table), "key"), expected, "{table}");
    }
}

#[test]
fn u03_bytes_that_are_no_utf8_come_back() {
    let dump = TempDump::from_hex("524544495330303130fe000009613a623a633acde9ba017600080a0a088abce2007a0176ffa66ee6a60082b9ab");
    let keys = [&b"a:b:c:\xcd\xe9\xba"[..], b"\n\n\x08\x8a\xbc\xe2\x00z"];
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["a:b:c:\\xcd\\xe9\\xba", "\\n\\n\\x08\\x8a\\xbc\\xe2\\x00z"]);
    for (row, key) in rows.iter().zip(keys) {
        assert_eq!(key_text::unescape(&row["key"]).unwrap(), key);
    }
    let json = dump.keys_json(&[]);
    assert_eq!(json[0]["key_b64"], "YTpiOmM6zem6");
    assert_eq!(json[1]["key_b64"], "CgoIirziAHo=");
    let report = dump.report(&[]);
    let classes = report.table("classes");
    assert!(column(&classes, "class").iter().any(|class| class.starts_with("a:b:c:")), "{classes:?}");
    for (name, file) in &report.files {
        assert!(!String::from_utf8_lossy(file).contains('\u{fffd}'), "{name}");
    }
}

#[test]
fn u05_key_names_that_are_integers() {
    let dump =
        TempDump::from_hex("524544495330303130fe0000c0ff016100c1c7cf016200c2ffffff7f01630006313233616263c007ff5766b8d4b6fb6650");
    let rows = dump.keys_json(&[]);
    let keys: Vec<&str> = rows.iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["-1", "-12345", "2147483647", "123abc"]);
    assert_eq!(rows[0]["key_b64"], "LTE=");
    // The value of the last is the integer 7, whose text is one byte.
    assert_eq!((&rows[3]["encoding"], &rows[3]["payload_bytes"]), (&json!("int"), &json!(1)));
    // A spreadsheet takes a leading minus for a formula.
    let csv = column(&dump.keys(&[]), "key").join(" ");
    assert_eq!(csv, "\\x2d1 \\x2d12345 2147483647 123abc");
}

const U07: &str = "524544495330303130fa056374696d650a31373637323235363030fe00fb05040003703a310176fcffa7da769b0100000003703a320176fc00a8da769b0100000003703a330176fc809611779b0100000003703a340176fc819611779b0100000003703a350176ffa9f064c66301ab11";

/// An expiry at the snapshot time itself is expired; the upper edge belongs to a range of lifetimes.
#[test]
fn u07_ttl_edges_against_ctime() {
    let dump = TempDump::from_hex(U07);
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["p:1", "p:2", "p:3", "p:4", "p:5"]);
    let t0 = T0 * 1000;
    let expiries =
        [String::new(), (t0 - 1).to_string(), t0.to_string(), (t0 + 3_600_000).to_string(), (t0 + 3_600_001).to_string()];
    assert_eq!(column(&rows, "expires_at_ms"), expiries);
    // Floored; negative for whatever is expired, at the very moment too.
    assert_eq!(column(&rows, "ttl_seconds"), ["", "-1", "-1", "3600", "3600"]);
    let report = dump.report(&[]);
    assert_eq!(["permanent_keys", "expired_keys", "volatile_keys"].map(|name| report.total(name)), [1, 2, 2]);
    let buckets = report.table("ttl_histogram");
    assert_eq!(column(&buckets, "bucket"), ["expired", "1h", "6h", "none"]);
    assert_eq!(column(&buckets, "keys"), ["2", "1", "1", "1"]);
}

#[test]
fn u07_the_clock_changes_nothing() {
    let dump = TempDump::from_hex(U07);
    let written = || {
        let report = dump.report(&[]);
        (report.files, dump.run_keys(&[]).ok().stdout)
    };
    let now = written();
    let file = std::fs::File::options().append(true).open(dump.path()).unwrap();
    // 2001 and 2096: the file's own time is not looked at where the dump has one.
    for seconds in [1_000_000_000, 4_000_000_000] {
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        assert_eq!(written(), now);
    }
}

#[test]
fn u09_expiries_in_seconds_and_milliseconds_of_a_format_without_checksum() {
    let dump = TempDump::from_hex("524544495330303034fe00fdd882c45100037365630176fc3dd8c3488501000000026d730176ff");
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["sec", "ms"]);
    assert_eq!(column(&rows, "expires_at_ms"), ["1371833048000", "1671963072573"]);
    let report = dump.report(&[]);
    assert!(report.run.text().contains("checksum absent"), "{}", report.run.text());
    assert_eq!(report.run.code, 0);
}

#[test]
fn u11_idle_time_and_frequency() {
    let dump = TempDump::from_hex(
        "524544495330303130fe00fc6092db769b010000f880000dbba0000469646c650176f9ff0003686f74017600046e6f6e650176ff6cfe80013ffd8569",
    );
    let rows = dump.keys(&AT_T0);
    assert_eq!(column(&rows, "key"), ["idle", "hot", "none"]);
    assert_eq!(column(&rows, "idle_seconds"), ["900000", "", ""]);
    assert_eq!(column(&rows, "freq"), ["", "255", ""]);
    // Volatile, a minute from the end.
    assert_eq!(column(&rows, "ttl_seconds"), ["60", "", ""]);
    assert_eq!(dump.report(&AT_T0).total("volatile_keys"), 1);
}

#[test]
fn u13_a_function_library_is_no_key() {
    let dump = TempDump::from_hex(
        "524544495330303130f5404923216c7561206e616d653d6d796c69620a72656469732e72656769737465725f66756e6374696f6e282766272c2066756e6374696f6e286b2c61292072657475726e203120656e6429fe0000016b0176ff6e6656d92213b68c",
    );
    assert_eq!(column(&dump.keys(&[]), "key"), ["k"]);
    let report = dump.report(&[]);
    assert_eq!((report.total("keys"), report.total("functions")), (1, 1));
}

#[test]
fn u15_a_module_value_and_the_key_after_it() {
    let dump = TempDump::from_hex(
        "524544495330303130fe0007036d3a31814e8a4af9360f10000205010304000000000000e03f030000c03f0504626c6f6200000761667465723a310176fff9fdfc7749ff6826",
    );
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["m:1", "after:1"]);
    assert_eq!(column(&rows, "type"), ["TopK-TYPE", "string"]);
    assert_eq!(rows[0]["encoding"], "raw");
    assert_eq!(rows[0]["memory_bytes"], "");
    let report = dump.report(&[]);
    assert_eq!(row(&report.table("types"), "type", "TopK-TYPE")["kind"], "module");
    assert_eq!(report.total("not_modelled_keys"), 1);
}

#[test]
fn u17_elements_of_a_list_of_ziplists() {
    let dump = TempDump::from_hex(
        "524544495330303039fe000e03713a6c02131300000010000000030000016103016203f4ff11110000000d000000020000feff030165ffffaae46eb1277b5289",
    );
    let rows = dump.keys(&[]);
    assert_eq!((&*rows[0]["type"], &*rows[0]["elements"]), ("list", "5"));
}

/// A string entry of a listpack with its backward length.
fn listpack_string(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    let head = match len {
        0..64 => vec![0x80 | len as u8],
        64..4096 => vec![0xe0 | (len >> 8) as u8, len as u8],
        _ => [&[0xf0][..], &(len as u32).to_le_bytes()].concat(),
    };
    let entry = [&head, bytes].concat();
    let back = match entry.len() {
        0..128 => vec![entry.len() as u8],
        len => vec![(len >> 7) as u8, 0x80 | (len & 0x7f) as u8],
    };
    [entry, back].concat()
}

#[test]
fn u19_listpack_strings_on_either_side_of_a_length_form() {
    let entries = [&[b'x'; 4095][..], &[b'y'; 4096], b"tail"].map(listpack_string).concat();
    let total = (6 + entries.len() + 1) as u32;
    let listpack = [&total.to_le_bytes()[..], &[3, 0], &entries, &[0xff]].concat();
    // Database 0, a list of listpacks, one node, which is packed (2).
    let body = [&[0xfe, 0, 0x12][..], &string(b"big"), &[1, 2], &string(&listpack)].concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &body));
    let rows = dump.keys(&["--columns", "type,elements,payload_bytes,largest_element_bytes"]);
    let expected = [("type", "list"), ("elements", "3"), ("payload_bytes", "8195"), ("largest_element_bytes", "4096")];
    for (name, value) in expected {
        assert_eq!(rows[0][name], value, "{name}");
    }
    let big = &dump.report(&[]).table("big_keys")[0];
    assert_eq!((&*big["payload_bytes"], &*big["largest_element_bytes"]), ("8195", "4096"));
}

const U21: &str = "524544495330303130fe001005683a6e656738380000000c00816102dfff02816202d00002816302f1ffef03816402f2ff7fff04816502f3ffff7fff05816602f4ffffff7fffffffff09ffff4bf2c538aed569f6";

/// The integers of the values of a hash, in order.
#[derive(Default)]
struct Integers(Vec<i64>);

impl Sink for Integers {
    fn opens(&self, _len: u64) -> bool {
        true
    }

    fn entry(&mut self, role: Role, entry: Entry<'_>) {
        if let (Role::FieldValue, Entry::Int(n)) = (role, entry) {
            self.0.push(n);
        }
    }
}

#[test]
fn u21_negative_integers_in_a_listpack() {
    let dump = TempDump::from_hex(U21);
    let rows = dump.keys(&["--columns", "type,elements,payload_bytes,largest_element_bytes"]);
    assert_eq!((&*rows[0]["type"], &*rows[0]["elements"]), ("hash", "6"));
    // Six names of one letter, and the six values as text.
    assert_eq!((&*rows[0]["payload_bytes"], &*rows[0]["largest_element_bytes"]), ("43", "11"));
    let bytes = hex(U21);
    let mut values = Integers::default();
    scan::walk(&bytes, &mut values).unwrap();
    assert_eq!(values.0, [-1, -4096, -4097, -32_769, -8_388_609, -2_147_483_649]);
}

#[test]
fn u23_a_stream_counts_what_deletes_have_left() {
    let rows = read_csv(&run(["keys", &case("u23-stream-after-deletes.rdb")]).ok().stdout).1;
    let stream = row(&rows, "key", "st");
    assert_eq!((&*stream["type"], &*stream["encoding"], &*stream["elements"]), ("stream", "stream", "11"));
    assert_eq!(row(&rows, "key", "afterst")["type"], "string");
    let columns = ["--columns", "key,stream_groups,stream_consumers,stream_pending,stream_last_id"];
    let rows = read_csv(&run(["keys", &case("u23-stream-after-deletes.rdb")].into_iter().chain(columns)).ok().stdout).1;
    let stream = row(&rows, "key", "st");
    let counts = ["stream_groups", "stream_consumers", "stream_pending"].map(|name| &*stream[name]);
    assert_eq!((counts, &*stream["stream_last_id"]), (["1", "1", "3"], "5000000000000-7"));
}

#[test]
fn u25_infinite_scores_in_both_forms() {
    let dump = TempDump::from_hex(
        "524544495330303130fe0003027a31030470696e66fe046e696e66ff017803312e3505027a32020470696e66000000000000f07f0179000000000000d0bf000561667465720176ff8782261b508e528d",
    );
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["z1", "z2", "after"]);
    assert_eq!(column(&rows, "type"), ["zset", "zset", "string"]);
    assert_eq!(column(&rows, "elements"), ["3", "2", ""]);
}

#[test]
fn u27_a_checksum_that_is_switched_off() {
    let dump = TempDump::from_hex("524544495330303130fe0000016b0176ff0000000000000000");
    assert_eq!(column(&dump.keys(&[]), "key"), ["k"]);
    let report = dump.report(&[]);
    assert_eq!(report.run.code, 0);
    assert!(report.run.text().contains("checksum disabled"), "{}", report.run.text());
    assert_eq!((report.total("keys"), report.total("partial_inputs")), (1, 0));
}

#[test]
fn u29_cut_inside_the_last_value() {
    let dump = TempDump::from_hex(
        "524544495330303130fe000001610176000162017600096c6173746b65793a312856565656565656565656565656565656565656",
    );
    let report = dump.report(&[]);
    assert_eq!(report.run.code, 3);
    assert_eq!((report.total("keys"), report.total("partial_inputs")), (2, 1));
    assert!(report.run.text().contains("PARTIAL"), "{}", report.run.text());
    // The bytes of the value begin at 33: 9 of header, 2 of database, 5 for each key before, then type, length, 9 of key, length.
    let error = &report.run.stderr;
    assert!(error.contains("byte 33") && error.contains("\"lastkey:1\""), "{error}");
    assert!(error.contains("truncated"), "{error}");
    assert!(error.contains("partial: 2 keys before byte 21 were read"), "{error}");
    let keys = dump.run_keys(&[]).ended_with(3);
    assert_eq!(column(&read_csv(&keys.stdout).1, "key"), ["a", "b"]);
    assert!(keys.stderr.contains("\"lastkey:1\""), "{}", keys.stderr);
}

#[test]
fn u31_what_is_no_dump_is_named_for_what_it_is() {
    let inputs = [
        ("", "the file is empty"),
        ("5245444953", "the file ends inside the nine bytes of the header"),
        ("524544495830303130ff0000000000000000", "no dump: it begins with neither REDIS nor VALKEY"),
        ("1f8b0800000000000003", "reading gzip data: it ends too early; the file is truncated: copy it again"),
    ];
    for (digits, message) in inputs {
        let dump = TempDump::from_hex(digits);
        let keys = dump.run_keys(&[]).ended_with(3);
        assert_eq!(keys.text(), "", "{digits}");
        assert!(keys.stderr.contains(message), "{digits}: {}", keys.stderr);
        let report = dump.report(&[]);
        assert_eq!(report.run.code, 3, "{digits}");
        assert_eq!(report.run.text(), "", "{digits}");
        assert_eq!(report.files.len(), 0, "{digits}");
        let info = run(["info", dump.path().to_str().unwrap()]).ended_with(3);
        assert!(info.stderr.contains(message), "{digits}: {}", info.stderr);
    }
}

#[test]
fn u33_a_newer_version_with_known_content_is_a_warning() {
    let dump = TempDump::from_hex("524544495330303136fe0000016b0176ff61eff7be97ea828d");
    let keys = dump.run_keys(&[]).ok();
    assert_eq!(column(&read_csv(&keys.stdout).1, "key"), ["k"]);
    assert!(keys.stderr.contains("warning"), "{}", keys.stderr);
    assert!(keys.stderr.contains("REDIS0016 is newer"), "{}", keys.stderr);
}

/// Columns of field expiries.
const FIELD_EXPIRIES: [&str; 2] = ["--columns", "key,type,elements,expires_at_ms,hfe_fields,hfe_min_expire_ms,hfe_max_expire_ms"];

#[test]
fn u35_a_permanent_hash_of_which_some_fields_expire() {
    let dump = TempDump::from_hex(
        "524544495330303132fe001805683a686665809611779b01000003000266300276300102663102763143e9026632027632000561667465720176ffa877d041247c68bf",
    );
    let rows = dump.keys(&FIELD_EXPIRIES);
    assert_eq!(column(&rows, "key"), ["h:hfe", "after"]);
    let (first, second) = ((T0 + 3600) * 1000, (T0 + 3601) * 1000);
    let hash = row(&rows, "key", "h:hfe");
    assert_eq!(["type", "elements", "expires_at_ms", "hfe_fields"].map(|name| &*hash[name]), ["hash", "3", "", "2"]);
    assert_eq!((&hash["hfe_min_expire_ms"], &hash["hfe_max_expire_ms"]), (&first.to_string(), &second.to_string()));
    let report = dump.report(&AT_T0);
    assert_eq!((report.total("permanent_keys"), report.total("volatile_keys")), (2, 0));
    assert_eq!((report.total("keys_with_field_expiry"), report.total("fields_with_expiry")), (1, 2));
    assert_eq!((report.total("expired_fields"), report.total("permanent_keys_whose_fields_all_expire")), (0, 0));
    // An hour later the first of the two has expired, to the millisecond.
    assert_eq!(dump.report(&["--as-of", &(T0 + 3600).to_string()]).total("expired_fields"), 1);
}

#[test]
fn u37_type_22_of_a_release_candidate() {
    let dump = TempDump::from_hex(
        "524544495330303132fe001605683a70726502810000019b7711968002663102763100026630027630000561667465720176ffd3e942a93184cdb5",
    );
    let rows = dump.keys(&FIELD_EXPIRIES);
    assert_eq!(column(&rows, "key"), ["h:pre", "after"]);
    let at = ((T0 + 3600) * 1000).to_string();
    let hash = row(&rows, "key", "h:pre");
    assert_eq!(["type", "elements", "hfe_fields"].map(|name| &*hash[name]), ["hash", "2", "1"]);
    assert_eq!((&hash["hfe_min_expire_ms"], &hash["hfe_max_expire_ms"]), (&at, &at));
}

#[test]
fn u39_slot_records_name_the_slots() {
    let dump =
        TempDump::from_hex("524544495330303132fe00fb0200f46f9601000003666f6f0176f453c5010000036261720176ff9ab58e0d551ca07d");
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["foo", "bar"]);
    assert_eq!(column(&rows, "slot"), ["12182", "5061"]);
    // The slots that the records name are those that skew is seen over.
    let report = dump.report(&[]);
    let skew = report.table("slot_skew");
    assert_eq!(column(&skew, "population"), ["2", "2"]);
    assert_eq!(column(&skew, "used"), ["2", "2"]);
}

#[test]
fn u41_slots_of_keys_and_hash_tags() {
    let dump = TempDump::from_hex(
        "524544495330303130fe000003666f6f0176000362617201760008666f6f7b6261727d017600147b75736572313030307d2e666f6c6c6f77696e67017600093132333435363738390176ff26dfd755953c3b45",
    );
    assert_eq!(column(&dump.keys(&[]), "slot"), ["12182", "5061", "5061", "3443", "12739"]);
    let report = dump.report(&[]);
    let slots = report.table("slots");
    assert_eq!(column(&slots, "slot"), ["3443", "5061", "12182", "12739"]);
    assert_eq!(column(&slots, "keys"), ["1", "2", "1", "1"]);
}

#[test]
fn u43_one_hash_tag_crowds_one_slot() {
    let report = Report::of([case("u43-hash-tag-skew.rdb")]);
    assert_eq!((report.total("keys"), report.total("slots_used")), (2000, 1001));
    for slot in report.table("slots") {
        let expected = if slot["slot"] == "8943" { 1000 } else { 1 };
        assert_eq!(number(&slot, "keys"), expected, "{slot:?}");
    }
    let skew = &report.table("slot_skew")[0];
    assert_eq!(
        ["measure", "population", "used", "max", "max_slot"].map(|name| &*skew[name]),
        ["keys", "16384", "1001", "1000", "8943"]
    );
    // 1,000 over a mean of 2,000 / 16,384.
    assert_eq!(skew["max_over_mean"], "8192.000000");
    let classes = report.table("classes");
    assert_eq!(row(&classes, "class", "{t1}:<digits>")["keys"], "1000");
    assert_eq!(row(&classes, "class", "r:<digits>")["keys"], "1000");
}

#[test]
fn u45_repeated_separators_make_no_class_of_their_own() {
    let dump = TempDump::from_hex("524544495330303130fe000004663a3a3101760005663a3a3a3201760003663a330176ff7071a307542d3c87");
    assert_eq!(column(&dump.keys(&[]), "key"), ["f::1", "f:::2", "f:3"]);
    let report = dump.report(&[]);
    let classes = report.table("classes");
    assert_eq!(column(&classes, "class"), ["f:<digits>"]);
    assert_eq!(column(&classes, "keys"), ["3"]);
    assert_eq!(number(&classes[0], "memory_bytes"), report.total("memory_bytes"));
    assert!(number(&classes[0], "serialized_bytes") <= report.total("dump_bytes"));
}

#[test]
fn u47_identifiers_fold_into_one_class() {
    let report = Report::of([case("u47-identifiers.rdb")]);
    let classes = report.table("classes");
    let mut counts: Vec<(&str, &str)> = classes.iter().map(|row| (row["class"].as_str(), row["keys"].as_str())).collect();
    counts.sort_unstable();
    assert_eq!(counts, [("order:<digits>", "1000"), ("user:<uuid>:cart", "1000")]);
}

/// The separators are those of the contracts file; the colon alone without one.
#[test]
fn u49_separators_as_configured() {
    let keys = ["XYZ/abc:1", "XYZ/123:2", "a-b-1", "a:b"];
    let body = keys.map(|key| [&[0][..], &string(key.as_bytes()), &string(b"v")].concat()).concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &[&[0xfe, 0][..], &body].concat()));
    let folder = tempfile::tempdir().unwrap();
    let shapes = |separator: &str| {
        let file = folder.path().join("contracts.toml");
        std::fs::write(&file, format!("separator = {separator}\n")).unwrap();
        let rows = dump.keys(&["-c", file.to_str().unwrap()]);
        rows.iter().map(|row| row["shape"].clone()).collect::<Vec<_>>()
    };
    let by_colon = ["XYZ/abc:<digits>", "XYZ/<digits>:<digits>", "a-b-<digits>", "a:b"];
    assert_eq!(column(&dump.keys(&[]), "shape"), by_colon);
    assert_eq!(shapes("\":\""), by_colon);
    assert_eq!(shapes("[\":\", \"/\"]"), by_colon, "both XYZ keys are typed alike");
    assert_eq!(shapes("\"-\""), ["XYZ/abc:<digits>", "XYZ/<digits>:<digits>", "a-b-<digits>", "a:b"]);
    // First segments, by contracts that take any number of further ones: three with the colon, and with both XYZ is one.
    let first = |separator: &str, first: &str| {
        let file = folder.path().join("contracts.toml");
        let contracts = format!("separator = {separator}\n[[class]]\nname = \"first\"\npattern = \"{first}:<**>\"\n");
        std::fs::write(&file, contracts).unwrap();
        let rows = dump.keys(&["-c", file.to_str().unwrap(), "--class", "first"]);
        rows.iter().map(|row| row["key"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(first("\":\"", "XYZ"), [""; 0]);
    assert_eq!(first("\":\"", "XYZ/abc"), ["XYZ/abc:1"]);
    assert_eq!(first("[\":\", \"/\"]", "XYZ"), ["XYZ/abc:1", "XYZ/123:2"]);
    assert_eq!(first("[\":\", \"/\"]", "a"), ["a:b"]);
}

#[test]
fn u51_the_same_key_in_three_databases() {
    let dump = TempDump::from_hex("524544495330303130fe000001610176fe3f0001610176fe412c0001610176fe412dff56e64186995aa9e0");
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "db"), ["0", "63", "300"]);
    assert_eq!(column(&rows, "key"), ["a", "a", "a"]);
    // Database 301 was selected and has no key.
    let databases = dump.report(&[]).table("databases");
    assert_eq!(column(&databases, "db"), ["0", "63", "300"]);
    assert_eq!(column(&databases, "keys"), ["1", "1", "1"]);
}

#[test]
fn u53_long_length_forms_on_short_strings() {
    let dump = TempDump::from_hex(
        "524544495330303039fe00008100000000000000036b363481000000000000000a767676767676767676760080000000036b3332800000000a77777777777777777777ff32dfdcb3bbf3577b",
    );
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["k64", "k32"]);
    assert_eq!(column(&rows, "payload_bytes"), ["10", "10"]);
}

#[test]
fn u55_a_compressed_value_that_cannot_expand_so_far() {
    let dump =
        TempDump::from_hex("524544495330303130fe0000026f6b01760003626164c30443e8e0ffffff000561667465720176ffad5fbd666e537674");
    let keys = dump.run_keys(&[]).ok();
    let rows = read_csv(&keys.stdout).1;
    assert_eq!(column(&rows, "key"), ["ok", "bad", "after"]);
    assert_eq!(column(&rows, "payload_bytes"), ["1", "1000", "1"]);
    let report = dump.report(&[]);
    assert_eq!(report.run.code, 0);
    assert_eq!((report.total("keys"), report.total("doubtful_sizes")), (3, 1));
    for stderr in [&keys.stderr, &report.run.stderr] {
        let warning = stderr.lines().find(|line| line.contains("warning")).unwrap();
        assert!(warning.contains("1000") && warning.contains("352"), "{warning}");
    }
}

#[test]
fn u57_members_of_integer_sets() {
    let dump = TempDump::from_hex(
        "524544495330303130fe000b037331360e0200000003000000ffff050030750b0373333210040000000200000090eefeff701101000b037336341808000000020000000000000000ffffff0000000000010000ffd5bdd69c0c2b1730",
    );
    let rows = dump.keys(&[]);
    assert_eq!(column(&rows, "key"), ["s16", "s32", "s64"]);
    assert_eq!(column(&rows, "elements"), ["3", "2", "2"]);
    assert_eq!(column(&rows, "encoding"), ["intset", "intset", "intset"]);
}

#[test]
fn u59_a_zipmap_value_with_a_long_length() {
    let value = [b'V'; 300];
    let second = [&[1, b'b', 0xfe, 0x2c, 1, 0, 0, 0][..], &value, &[0xff]].concat();
    let zipmap = [&[2, 1, b'a', 2, 0, b'v', b'1'][..], &second].concat();
    let body = [&[0xfe, 0, 9][..], &string(b"zm"), &string(&zipmap)].concat();
    let dump = TempDump::new(&dump(b"REDIS0003", &body));
    let deep = dump.keys(&["--columns", "type,elements,encoding,payload_bytes,largest_element_bytes"]);
    let expected = [
        ("type", "hash"),
        ("elements", "2"),
        ("payload_bytes", "304"),
        ("largest_element_bytes", "300"),
        // Its longest value is above the 64 bytes up to which a server keeps a hash packed.
        ("encoding", "hashtable"),
    ];
    for (name, value) in expected {
        assert_eq!(deep[0][name], value, "{name}");
    }
    assert_eq!(dump.keys(&[])[0]["encoding"], "hashtable");
}

#[test]
fn u61_the_tail_of_an_append_only_file_is_a_warning() {
    let dump = TempDump::from_hex(
        "524544495330303130fa0c616f662d707265616d626c650131fe0000016b0176fff5370edddc9d2ec12a320d0a24360d0a53454c4543540d0a24310d0a300d0a2a330d0a24330d0a5345540d0a24310d0a7a0d0a24310d0a310d0a",
    );
    let note = "50 bytes after the RDB end (AOF tail) not analysed";
    let keys = dump.run_keys(&[]).ok();
    assert_eq!(column(&read_csv(&keys.stdout).1, "key"), ["k"]);
    assert!(keys.stderr.contains(note), "{}", keys.stderr);
    let report = dump.report(&[]);
    assert_eq!(report.run.code, 0);
    assert!(report.run.stderr.contains(note), "{}", report.run.stderr);
    assert_eq!((report.total("keys"), report.total("trailing_bytes")), (1, 50));
}

#[test]
fn u63_ties_do_not_shorten_a_list() {
    let dump = TempDump::from_hex(
        "524544495330303130fe0000036b3a3002763000036b3a3102763100036b3a3202763200036b3a3302763300036b3a3402763400036b3a3502763500036b3a3602763600036b3a3702763700036b3a3802763800036b3a39027639ffdb9d82f543069cce",
    );
    let keys = |arguments: &[&str], table: &str| {
        let rows = dump.report(arguments).table(table);
        column(&rows, "key").join(" ")
    };
    let all = "k:0 k:1 k:2 k:3 k:4 k:5 k:6 k:7 k:8 k:9";
    assert_eq!(keys(&["--top", "10"], "big_keys"), all);
    assert_eq!(keys(&["--top", "100"], "big_keys"), all);
    assert_eq!(keys(&["--permanent-limit", "10"], "permanent_keys"), all);
    // Equal in all else, the smallest keys stay.
    assert_eq!(keys(&["--permanent-limit", "3"], "permanent_keys"), "k:0 k:1 k:2");
    assert_eq!(keys(&["--top", "3"], "big_keys"), "k:0 k:1 k:2");
}

/// Records are counted, not unique names.
#[test]
fn u65_a_key_that_is_there_three_times() {
    let dump = TempDump::from_hex("524544495330303130fe000003647570017600036475700276760001780176ffcaaa42c2148e0d7f");
    assert_eq!(column(&dump.keys(&[]), "key"), ["dup", "dup", "x"]);
    assert_eq!(dump.report(&[]).total("keys"), 3);
}

#[test]
fn u69_limits_fire_strictly_above() {
    let report = Report::of([case("u69-thresholds.rdb")]);
    let over: Vec<Row> =
        report.table("big_keys").into_iter().filter(|row| row["rule"].split(';').any(|rule| rule == "elements")).collect();
    assert_eq!(column(&over, "key"), ["h5001"]);
    assert_eq!(over[0]["elements"], "5001");
    // 5,001 elements are two pieces of at most 5,000.
    assert_eq!(over[0]["parts"], "2");
    // A limit that contracts set is a limit like any other.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contracts.toml");
    for (limit, expected) in [(4999, vec!["h5000", "h5001"]), (5000, vec!["h5001"]), (5001, vec![])] {
        std::fs::write(&file, format!("[limits]\nelements = {limit}\n")).unwrap();
        let report = Report::of([&case("u69-thresholds.rdb"), "-c", file.to_str().unwrap()]);
        let rows = report.table("big_keys");
        let mut over: Vec<&str> =
            rows.iter().filter(|row| row["rule"].split(';').any(|rule| rule == "elements")).map(|row| &*row["key"]).collect();
        over.sort_unstable();
        assert_eq!(over, expected, "{limit}");
    }
}

#[test]
fn u71_rows_go_to_stdout_and_messages_to_stderr() {
    let contracts = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let keys = run(["keys", contracts.to_str().unwrap()]).ok();
    assert!(keys.text().starts_with("db,key,type,"), "{:?}", keys.text().lines().next());
    // The header, and the 3,257 keys of the meta file.
    assert_eq!(read_csv(&keys.stdout).1.len(), 3257);
    let last = "rdbscope: 3257 keys; names are exact, personal data in them included\n";
    assert_eq!(keys.stderr, last);
    let nocrc = fixtures().join("truth/redis-8.2.3-nocrc.rdb");
    let keys = run(["keys", nocrc.to_str().unwrap()]).ok();
    let lines: Vec<&str> = keys.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("rdbscope: warning: "), "{lines:?}");
    assert!(lines[1].starts_with("rdbscope: 124 keys; "), "{lines:?}");
    let quiet = run(["keys", "--quiet", nocrc.to_str().unwrap()]).ok();
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, keys.stdout);
}

#[test]
fn u71_a_closed_pipe_ends_quietly() {
    let contracts = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    for piece_bytes in ["64", "1000000"] {
        let mut child = rdbscope()
            .args(["keys", contracts.to_str().unwrap(), "--piece-bytes", piece_bytes])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut header = String::new();
        // Dropped after one line, with more to come than a pipe holds.
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut header).unwrap();
        assert!(header.starts_with("db,key,"), "{header}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
        assert_eq!(stderr, "");
    }
}

/// Progress needs a terminal, which a test has to make for itself.
#[cfg(target_os = "linux")]
#[test]
fn u71_progress_shows_on_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap();
    let stderr = std::fs::File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
    let contracts = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let mut child = rdbscope()
        .args(["keys", contracts.to_str().unwrap(), "--threads", "1", "--piece-bytes", "64"])
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // The end of a terminal that nobody holds open any more is an error on Linux.
    let _ = std::fs::File::from(terminal).read_to_end(&mut shown);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains('%') && shown.contains("keys/s"), "{shown:?}");
}
