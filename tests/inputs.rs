//! Dumps however they are stored: the same figures, and what can be said of the way in which they came.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;

use std::path::{Path, PathBuf};

use stored::{bzip2, envelope, gzip, lz4, piped, report_of_piped, skippable, tar, xz, zstd};
use support::{Report, Row, T0, TempDump, all_dumps, column, dump, fixtures, hex, name, number, read_csv, row, run, string};
use tempfile::TempDir;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

fn path(name: &str) -> PathBuf {
    fixtures().join(format!("truth/{name}.rdb"))
}

/// Dumps with their moment in them, of several servers, with everything that a dump may hold.
const DUMPS: [&str; 4] = ["redis-7.4.1-contracts", "redis-8.2.3-zoo", "redis-8.2.3-modules", "valkey-9.1.2-cluster"];

/// All tables are the same, but for what `inputs.csv` says of the files.
#[track_caller]
fn same_tables(first: &Report, second: &Report, what: &str) {
    assert_eq!((first.run.code, second.run.code), (0, 0), "{what}: {} {}", first.run.stderr, second.run.stderr);
    assert!(first.files.len() > 10);
    for (name, file) in first.files.iter().filter(|(name, _)| *name != "manifest.json" && *name != "inputs.csv") {
        assert!(second.files[name] == *file, "{what}: {name} differs");
    }
    let inputs = |report: &Report| -> Vec<Row> {
        let mut rows = report.table("inputs");
        rows.iter_mut().for_each(|row| drop(row.remove("stored_bytes")));
        rows
    };
    assert_eq!(inputs(first), inputs(second), "{what}");
}

/// Every way in which a dump may be stored as one file.
fn ways(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("plain", bytes.to_vec()),
        ("gzip", gzip(bytes)),
        ("zstd", zstd(bytes)),
        ("lz4", lz4(bytes)),
        ("bzip2", bzip2(bytes)),
        ("xz", xz(bytes)),
        ("envelope", envelope(bytes)),
        ("tar", tar(&[("backup/dump.rdb", 1_700_000_000, bytes)])),
        ("tar.gz", gzip(&tar(&[("backup/dump.rdb", 1_700_000_000, bytes)]))),
        ("tar of gzip", tar(&[("dump.rdb.gz", 1_700_000_000, &gzip(bytes))])),
        ("tar.zst of xz", zstd(&tar(&[("dump.xz", 1_700_000_000, &xz(bytes))]))),
        (
            "capture",
            [
                &b"+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 17\r\n\n\n$"[..],
                bytes.len().to_string().as_bytes(),
                b"\r\n",
                bytes,
            ]
            .concat(),
        ),
        ("gzip of zstd", gzip(&zstd(bytes))),
    ]
}

#[test]
fn a_dump_is_the_same_however_it_is_stored() {
    for name in DUMPS {
        let bytes = fixture(name);
        let plain = Report::of([path(name)]);
        let keys = run([Path::new("keys"), &path(name)]).ok();
        for (way, stored) in ways(&bytes) {
            // The name says nothing.
            let file = TempDump::new(&stored);
            let what = format!("{name} as {way}");
            let report = file.report(&[]);
            same_tables(&plain, &report, &what);
            let input = &report.table("inputs")[0];
            let member = match way {
                "tar" | "tar.gz" => bytes.len(),
                "tar of gzip" => gzip(&bytes).len(),
                "tar.zst of xz" => xz(&bytes).len(),
                _ => stored.len(),
            };
            assert_eq!((number(input, "bytes"), number(input, "stored_bytes")), (bytes.len() as u64, member as u64), "{what}");
            assert!(file.run_keys(&[]).ok().stdout == keys.stdout, "{what}");
            let verdict = run(["verify", file.path().to_str().unwrap()]).ok();
            assert!(verdict.text().contains(": ok, "), "{what}: {}", verdict.text());
            // In whatever windows.
            same_tables(&plain, &file.report(&["--window-bytes", "4096"]), &what);

            same_tables(&plain, &report_of_piped(&stored, &[]), &format!("{what}, piped"));
            assert!(piped(&stored, &["keys", "-"]).ok().stdout == keys.stdout, "{what}, piped");
        }
    }
}

/// A stream is what the file is, in windows smaller than most records, and in none.
#[test]
fn windows_change_nothing_in_any_fixture() {
    for path in all_dumps() {
        let bytes = std::fs::read(&path).unwrap();
        let as_of = ["--as-of", "2026-11-30T12:00:00Z"];
        let whole = Report::of([path.to_str().unwrap()].into_iter().chain(as_of));
        // Very small ones cost much, and small dumps show as much.
        let windows: &[&str] = if bytes.len() < 100_000 { &["64", "5000"] } else { &["3001"] };
        for window in windows {
            let what = format!("{} in windows of {window}", name(&path));
            let report = report_of_piped(&bytes, &[&as_of[..], &["--window-bytes", window, "--piece-bytes", "200"]].concat());
            assert_eq!(report.run.code, whole.run.code, "{what}: {}", report.run.stderr);
            // What is said of the dump is the same, but for its name.
            let said = |run: &support::Run, name: &str| run.stderr.replace(name, "DUMP");
            assert_eq!(said(&report.run, "standard input"), said(&whole.run, &name(&path)), "{what}");
            for (name, file) in whole.files.iter().filter(|(name, _)| *name != "manifest.json") {
                assert!(report.files[name] == *file, "{what}: {name} differs");
            }
        }
        let verified = |run: support::Run, name: &str| (run.code, run.text().replace(name, "DUMP"));
        let of_file = verified(run([Path::new("verify"), &path]), &name(&path));
        assert_eq!(
            verified(piped(&bytes, &["verify", "-", "--window-bytes", "777"]), "standard input"),
            of_file,
            "{}",
            name(&path)
        );
    }
}

/// Rows of `keys` of a stream in windows of so many bytes.
fn keys_in_windows(bytes: &[u8], window: usize) -> support::Run {
    piped(
        bytes,
        &["keys", "-", "--columns", "db,key,type,elements,serialized_bytes,hfe_fields", "--window-bytes", &window.to_string()],
    )
}

/// What belongs to a record, or waits for more of it, survives the end of a window wherever that is.
#[test]
fn windows_that_end_anywhere() {
    let sub = |name: &str, value: &str| [&[0xfa][..], &string(name.as_bytes()), &string(value.as_bytes())].concat();
    let member = |at: u32| [sub("keydb-subexpire-key", &format!("m{at}")), sub("keydb-subexpire-when", "1893456000000")].concat();
    let set = |key: &str| [&[2][..], &string(key.as_bytes()), &[2], &string(b"m1"), &string(b"m2")].concat();
    let plain = |key: &str| [&[0][..], &string(key.as_bytes()), &string(b"value")].concat();
    // KeyDB writes the expiries of members behind the value; another AUX field belongs to no record.
    let keydb = [
        &sub("redis-ver", "6.3.4")[..],
        &[0xfe, 0],
        &set("first"),
        &member(1),
        &member(2),
        &plain("between"),
        &sub("other", "field"),
        &set("second"),
        &member(1),
        &[0xfe, 3],
        &plain("last"),
    ]
    .concat();
    // Dragonfly cuts a record into chunks, with others between: worked example E19 of the format, behind some keys.
    let chunks = "e0010000000900000004016803026631013100016b0176e001000000050000000266320132e001000000050000000266330133";
    let dragonfly = [&[0xfe, 0][..], &plain("front:1"), &plain("front:2"), &hex(chunks), &plain("after")].concat();
    for (header, body) in [(b"REDIS0009", keydb), (b"REDIS0009", dragonfly)] {
        let bytes = dump(header, &body);
        let whole = keys_in_windows(&bytes, 1 << 20).ok();
        assert!(whole.text().lines().count() > 4);
        for window in 64..64 + 90 {
            let windowed = keys_in_windows(&bytes, window).ok();
            assert_eq!(windowed.text(), whole.text(), "windows of {window}");
        }
    }
}

#[test]
fn a_record_larger_than_a_window_grows_it() {
    let value: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(n) >> 3) as u8).collect();
    let record = |key: &str, value: &[u8]| [&[0][..], &string(key.as_bytes()), &string(value)].concat();
    let body = [&[0xfe, 0][..], &record("small:1", b"v"), &record("large", &value), &record("small:2", b"w")].concat();
    let bytes = dump(b"REDIS0010", &body);
    let grown = report_of_piped(&bytes, &["--window-bytes", "65536", "--as-of", "0"]);
    same_tables(&TempDump::new(&bytes).report(&["--as-of", "0"]), &grown, "grown");
    // 300,000 bytes, at most twice that.
    let line = grown.run.text().lines().find(|line| line.contains("grew to")).unwrap_or_else(|| panic!("{}", grown.run.text()));
    let kib: f64 = line.split("grew to ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((293.0..600.0).contains(&kib) && line.contains("KiB"), "{line}");
    let large = row(&grown.table("big_keys"), "key", "large").clone();
    assert_eq!((number(&large, "payload_bytes"), number(&large, "largest_element_bytes")), (300_000, 300_000));
    // With the usual windows nothing is said.
    assert!(!report_of_piped(&bytes, &["--as-of", "0"]).run.text().contains("grew to"));
}

#[test]
fn several_members_and_frames_one_behind_the_other() {
    let bytes = fixture("redis-7.4.1-contracts");
    let keys = run([Path::new("keys"), &path("redis-7.4.1-contracts")]).ok().stdout;
    let parts: Vec<&[u8]> = bytes.chunks(100_000).collect();
    assert_eq!(parts.len(), 4);
    let each = |pack: fn(&[u8]) -> Vec<u8>| parts.iter().map(|part| pack(part)).collect::<Vec<_>>();
    let between = |frames: Vec<Vec<u8>>| {
        let mut all = skippable(b"first");
        frames.iter().for_each(|frame| all.extend([&frame[..], &skippable(b""), &skippable(&[7; 5000])].concat()));
        all
    };
    let ways = [
        ("gzip", each(gzip).concat()),
        ("bzip2", each(bzip2).concat()),
        ("xz", each(xz).concat()),
        ("zstd", each(zstd).concat()),
        ("lz4", each(lz4).concat()),
        ("zstd with frames to skip", between(each(zstd))),
        ("lz4 with frames to skip", between(each(lz4))),
    ];
    for (way, stored) in ways {
        assert!(TempDump::new(&stored).run_keys(&[]).ok().stdout == keys, "{way}");
        assert!(piped(&stored, &["keys", "-"]).ok().stdout == keys, "{way}, piped");
    }
}

/// What a compressed file held before it was cut counts, and the run says that there was more.
#[test]
fn a_truncated_compressed_file_keeps_what_was_whole() {
    let bytes = fixture("redis-7.4.1-contracts");
    let whole = run([Path::new("keys"), &path("redis-7.4.1-contracts")]).ok();
    let all: Vec<&str> = whole.text().lines().collect();
    let ways = [
        ("gzip data", gzip(&bytes)),
        ("zstd data", zstd(&bytes)),
        ("lz4 data", lz4(&bytes)),
        ("bzip2 data", bzip2(&bytes)),
        ("xz data", xz(&bytes)),
        ("compressed envelope", envelope(&bytes)),
    ];
    for (reading, stored) in ways {
        let mut most = 0;
        for share in 1..8 {
            let cut = TempDump::new(&stored[..stored.len() * share / 8]);
            let what = format!("{reading} cut at {share}/8");
            let keys = cut.run_keys(&[]).ended_with(3);
            assert!(keys.stderr.contains(&format!("reading {reading}: it ends too early")), "{what}: {}", keys.stderr);
            assert!(keys.stderr.contains("copy it again"), "{what}: {}", keys.stderr);
            let lines: Vec<&str> = keys.text().lines().collect();
            assert!(lines.len() < all.len() && lines == all[..lines.len()], "{what}");
            most = most.max(lines.len());
            if lines.len() > 1 {
                let report = cut.report(&[]);
                assert_eq!(report.run.code, 3, "{what}");
                assert_eq!((report.total("partial_inputs"), report.total("keys")), (1, lines.len() as u64 - 1), "{what}");
                let partial = format!("partial: {} keys before byte", lines.len() - 1);
                assert!(keys.stderr.replace(',', "").contains(&partial), "{what}: {}", keys.stderr);
                assert_eq!(report.table("inputs")[0]["checksum"], "not checked", "{what}");
            }
        }
        // The blocks of bzip2 and xz are large: they give all of one or nothing.
        assert!(most > all.len() / 2 || matches!(reading, "bzip2 data" | "xz data"), "{reading}: {most} of {}", all.len());
    }
    // Cut behind the dump, in what the compression adds: everything is there, and yet the file is not what it was.
    let stored = gzip(&bytes);
    let cut = TempDump::new(&stored[..stored.len() - 4]);
    let keys = cut.run_keys(&[]).ended_with(3);
    assert_eq!(keys.text().lines().count(), all.len());
    assert!(keys.stderr.contains("reading gzip data: it ends too early") && !keys.stderr.contains("partial"), "{}", keys.stderr);
    assert_eq!(cut.report(&[]).table("inputs")[0]["checksum"], "ok");
}

/// Decoders that would take more memory than they may are not begun with.
#[test]
fn windows_of_a_gibibyte_are_refused() {
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(30).unwrap();
    std::io::Write::write_all(&mut encoder, &fixture("redis-7.0.15-lfu")).unwrap();
    let keys = TempDump::new(&encoder.finish().unwrap()).run_keys(&[]).ended_with(3);
    assert!(keys.stderr.contains("too much memory") && keys.stderr.contains("pipe it"), "{}", keys.stderr);
    // 1.5 GiB in the dictionary of the one block.
    let mut stored = xz(&fixture("redis-7.0.15-lfu"));
    // Header of a stream: 12 bytes; of the block: size, flags, filter 0x21, size of its properties, the dictionary.
    assert_eq!(stored[14..16], [0x21, 1]);
    stored[16] = 37;
    let header = 12..12 + (usize::from(stored[12]) + 1) * 4;
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(&stored[header.start..header.end - 4]);
    stored[header.end - 4..header.end].copy_from_slice(&crc.to_le_bytes());
    let keys = TempDump::new(&stored).run_keys(&[]).ended_with(3);
    assert!(keys.stderr.contains("reading xz data") && keys.stderr.contains("pipe it"), "{}", keys.stderr);
}

#[test]
fn a_flipped_bit_in_a_compressed_file_is_told() {
    let bytes = fixture("redis-7.4.1-contracts");
    for (way, stored) in ways(&bytes).into_iter().filter(|(way, _)| ["gzip", "zstd", "bzip2", "xz"].contains(way)) {
        let mut flipped = stored.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x10;
        let keys = TempDump::new(&flipped).run_keys(&[]).ended_with(3);
        // Where only a letter is another one, the records are whole.
        assert!(keys.text().lines().count() <= 3258, "{way}");
        assert!(keys.stderr.contains("take another copy of the backup"), "{way}: {}", keys.stderr);
    }
}

const MARK: &[u8; 40] = b"0123456789abcdef0123456789abcdef01234567";

#[test]
fn captures_of_replication_streams() {
    let bytes = fixture("redis-7.4.1-contracts");
    let resync = b"+FULLRESYNC 9f1c3b4e5d6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c 4711\r\n";
    let plain = Report::of([path("redis-7.4.1-contracts")]);
    let len = bytes.len().to_string();
    let ping = b"*1\r\n$4\r\nPING\r\n";
    let mark = &MARK[..];
    let front = [&b"$EOF:"[..], mark, b"\r\n"].concat();
    let sound = [
        ("a length", [&resync[..], b"$", len.as_bytes(), b"\r\n", &bytes].concat()),
        ("a length alone", [&b"\n\n$"[..], len.as_bytes(), b"\r\n", &bytes].concat()),
        ("a mark", [&resync[..], b"\n\n", &front, &bytes, mark].concat()),
    ];
    for (what, stored) in &sound {
        for report in [TempDump::new(stored).report(&[]), report_of_piped(stored, &[]), TempDump::new(&gzip(stored)).report(&[])]
        {
            same_tables(&plain, &report, what);
            assert!(!report.run.stderr.contains("warning"), "{what}: {}", report.run.stderr);
        }
    }
    // Commands follow, and are counted.
    let followed = TempDump::new(&[&resync[..], &front, &bytes, mark, ping].concat()).report(&[]);
    assert_eq!((followed.run.code, followed.total("trailing_bytes")), (0, 14));
    assert!(
        followed.run.stderr.contains("14 bytes after the RDB end (replication stream) not analysed"),
        "{}",
        followed.run.stderr
    );
    // Offsets are those of the dump.
    let cut = TempDump::new(&[&resync[..], &front, &bytes[..1000]].concat()).run_keys(&[]).ended_with(3);
    let of_dump = TempDump::new(&bytes[..1000]).run_keys(&[]).ended_with(3);
    assert_eq!((cut.stdout, cut.stderr), (of_dump.stdout, of_dump.stderr));
    let unmarked = TempDump::new(&[&front[..], &bytes, ping].concat()).run_keys(&[]).ok();
    assert!(unmarked.stderr.contains("the mark that ends the transfer does not follow the dump"), "{}", unmarked.stderr);
    let other = TempDump::new(&[&b"$17\r\n"[..], &bytes].concat()).run_keys(&[]).ok();
    let told = format!("the replication stream announced 17 bytes, the dump in it takes {len} bytes");
    assert!(other.stderr.replace(',', "").contains(&told.replace(',', "")), "{}", other.stderr);
    let nothing = TempDump::new(resync).run_keys(&[]).ended_with(3);
    assert!(nothing.stderr.contains("a capture of a replication stream"), "{}", nothing.stderr);
}

/// Two answers to DUMP that the documentation of the commands DUMP and RESTORE shows.
const STRING: &str = "00c00a0a006e9f57450eae63bb";
const LIST: &str = "0a171700000012000000030000c0010004c0020004c00300ff04007523 3cc03b2ee9dd";

#[test]
fn answers_to_dump() {
    let columns = ["--columns", "db,key,type,elements,serialized_bytes,expires_at_ms", "--as-of", "0"];
    for (digits, expected) in [(STRING, "0,,string,,4,"), (&LIST.replace(' ', ""), "0,,list,3,26,")] {
        let payload = hex(digits);
        let with_line_feed = [&payload[..], b"\n"].concat();
        for stored in [payload.clone(), with_line_feed, gzip(&payload), tar(&[("key.dump", 0, &payload)])] {
            for keys in [TempDump::new(&stored).run_keys(&columns), piped(&stored, &[&["keys", "-"], &columns[..]].concat())] {
                let keys = keys.ok();
                let rows: Vec<&str> = keys.text().lines().skip(1).collect();
                assert_eq!(rows, [expected], "{digits}");
                assert!(keys.stderr.contains("the answer to DUMP: one key, whose name it does not hold"), "{}", keys.stderr);
            }
        }
        let report = TempDump::new(&payload).report(&["--as-of", "0"]);
        let input = &report.table("inputs")[0];
        // Nine bytes of header in front, a name of no bytes, and nine of end mark and checksum (which the oldest version has
        // not), in place of ten.
        let bytes = payload.len() as u64 + if digits == STRING { 9 } else { 1 };
        assert_eq!((number(input, "bytes"), number(input, "stored_bytes")), (bytes, payload.len() as u64));
        let mut flipped = payload.clone();
        flipped[2] ^= 1;
        let refused = TempDump::new(&flipped).run_keys(&[]).ended_with(3);
        assert!(refused.stderr.contains("no dump"), "{}", refused.stderr);
    }
}

/// The base that the manifest names, and none of the other parts.
#[test]
fn an_append_only_file_in_several_parts() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let base = fixture("redis-7.0.15-aof");
    write("appendonly.aof.2.base.rdb", &base);
    write("appendonly.aof.1.base.rdb", &fixture("redis-7.0.15-lfu"));
    write("appendonly.aof.2.incr.aof", b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
    write("appendonly.aof.3.incr.aof", b"*1\r\n$4\r\nPING\r\n");
    write(
        "appendonly.aof.manifest",
        b"file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.1.base.rdb seq 1 type h\n\
          file appendonly.aof.2.incr.aof seq 2 type i\nfile appendonly.aof.3.incr.aof seq 3 type i\n",
    );
    let report = Report::of([folder.path()]);
    same_tables(&Report::of([path("redis-7.0.15-aof")]), &report, "a folder");
    assert!(report.run.stderr.contains("37 bytes of commands"), "{}", report.run.stderr);
    assert!(!report.run.stderr.contains("left out"), "{}", report.run.stderr);
    // A base without a dump in it, and none.
    let fails = |manifest: &str, message: &str| {
        write("appendonly.aof.manifest", manifest.as_bytes());
        let report = Report::of([folder.path()]);
        assert_eq!((report.run.code, report.files.len()), (3, 0), "{manifest}: {}", report.run.stderr);
        assert!(report.run.stderr.contains(message), "{manifest}: {}", report.run.stderr);
    };
    fails(
        "file appendonly.aof.3.incr.aof seq 1 type b\nfile appendonly.aof.2.base.rdb seq 2 type h\nfile appendonly.aof.1.base.rdb seq 1 type h\n",
        "an append-only file without an RDB part",
    );
    fails("file appendonly.aof.3.incr.aof seq 1 type i\n", "its manifest names no base");
    fails("file ../dump.rdb seq 1 type b\n", "its manifest names a file in another folder in line 1");
    fails("what is this\n", "its manifest cannot be understood in line 1");
    // A base that is gone.
    fails(
        "file gone.rdb seq 1 type b\nfile appendonly.aof.2.base.rdb seq 2 type h\nfile appendonly.aof.1.base.rdb seq 1 type h\n",
        "gone.rdb",
    );
}

/// A dump of one key that expires, and of one that does not.
fn undated() -> Vec<u8> {
    let expiry = [&[0xfd][..], &((T0 + 600) as u32).to_le_bytes()].concat();
    let body = [&[0xfe, 0][..], &expiry, &[0, 1, b'a', 1, b'v', 0, 1, b'b', 1, b'w']].concat();
    dump(b"REDIS0010", &body)
}

#[test]
fn without_a_moment_no_key_has_a_time_left() {
    let bytes = undated();
    let cases = [
        (report_of_piped(&bytes, &[]), "standard input has no date"),
        (report_of_piped(&gzip(&bytes), &[]), "standard input has no date"),
        (TempDump::new(&tar(&[("dump.rdb", 0, &bytes)])).report(&[]), "its archive gives it no date"),
        (TempDump::new(&gzip(&tar(&[("dump.rdb", 0, &bytes)]))).report(&[]), "its archive gives it no date"),
    ];
    for (report, why) in cases {
        assert_eq!(report.run.code, 0, "{}", report.run.stderr);
        assert!(report.run.text().contains(why) && report.run.text().contains("--as-of"), "{}", report.run.text());
        let input = &report.table("inputs")[0];
        assert_eq!((&*input["snapshot_time"], &*input["snapshot_source"]), ("", ""));
        assert_eq!(["permanent_keys", "volatile_keys", "expired_keys"].map(|name| report.total(name)), [1, 1, 0]);
        let big = report.table("big_keys");
        assert_eq!([&*row(&big, "key", "a")["ttl_seconds"], &*row(&big, "key", "b")["ttl_seconds"]], ["", ""]);
    }
    let rows = read_csv(&piped(&bytes, &["keys", "-"]).ok().stdout).1;
    assert_eq!(column(&rows, "ttl_seconds"), ["", ""]);
    assert_eq!(column(&rows, "expires_at_ms"), [((T0 + 600) * 1000).to_string().as_str(), ""]);
    // A member's own date is its moment, and --as-of is everybody's.
    let dated = TempDump::new(&tar(&[("dump.rdb", T0 as u64, &bytes)])).report(&[]);
    let input = &dated.table("inputs")[0];
    assert_eq!((&*input["snapshot_time"], &*input["snapshot_source"]), ("2026-01-01T00:00:00Z", "mtime"));
    assert_eq!(row(&dated.table("big_keys"), "key", "a")["ttl_seconds"], "600");
    let rows = read_csv(&piped(&bytes, &["keys", "-", "--as-of", &(T0 + 590).to_string()]).ok().stdout).1;
    assert_eq!(column(&rows, "ttl_seconds"), ["10", ""]);
}

/// Three shards, in whatever order and however stored.
#[test]
fn an_archive_of_dumps() {
    let names = ["redis-7.0.15-lfu", "redis-8.2.3-nocrc", "redis-7.4.1-modules"];
    let [a, b, c] = names.map(fixture);
    let listed = Report::of(names.map(path));
    let members: Vec<(&str, u64, &[u8])> = vec![
        ("shards/nodes.conf", 1_700_000_000, b"no dump"),
        ("shards/c.rdb", 1_700_000_000, &c),
        ("shards/temp-77.rdb", 1_700_000_000, &a[..100]),
        ("shards/a", 1_700_000_000, &a),
        ("shards/empty", 1_700_000_000, b""),
        ("shards/b.rdb", 1_700_000_000, &b),
    ];
    let packed_b = gzip(&b);
    let mut mixed = members.clone();
    mixed[5] = (
        "a/name/that/is/longer/than/the/hundred/bytes/that/the/header/of/a/member/has/room/for/it/so/it/comes/first/b.gz",
        0,
        &packed_b,
    );
    for (what, archive) in [
        ("tar", tar(&members)),
        ("tar with gzip", tar(&mixed)),
        ("tar.gz", gzip(&tar(&mixed))),
        ("tar.zst", zstd(&tar(&members))),
    ] {
        let file = TempDump::new(&archive);
        for report in [file.report(&[]), file.report(&["--window-bytes", "1000"]), report_of_piped(&archive, &[])] {
            same_tables(&listed, &report, what);
            assert!(report.run.stderr.contains("2 other members left out"), "{what}: {}", report.run.stderr);
            assert!(report.run.stderr.contains(":shards/temp-77.rdb: left out"), "{what}: {}", report.run.stderr);
        }
        let listed = run([Path::new("keys")].into_iter().chain(names.map(path).iter().map(PathBuf::as_path))).ok();
        assert!(file.run_keys(&[]).ok().stdout == listed.stdout, "{what}");
    }
    let report = TempDump::new(&tar(&mixed)).report(&[]);
    let manifest: serde_json::Value = serde_json::from_slice(&report.files["manifest.json"]).unwrap();
    let shown: Vec<&str> = manifest["inputs"].as_array().unwrap().iter().map(|input| input["name"].as_str().unwrap()).collect();
    assert!(shown.contains(&"dump.rdb:shards/c.rdb") && shown.contains(&"dump.rdb:shards/a"), "{shown:?}");
    assert!(shown.iter().any(|name| name.ends_with("/first/b.gz")), "{shown:?}");
    // info tells of each.
    let info = run(["info", TempDump::new(&tar(&members)).path().to_str().unwrap()]).ok();
    assert_eq!(info.text().matches("format           REDIS").count(), 3);
    // An archive without dumps.
    for archive in [tar(&members[..1]), gzip(&tar(&members[..1])), tar(&[])] {
        if archive.len() < 2000 && archive.iter().all(|&byte| byte == 0) {
            continue;
        }
        let keys = TempDump::new(&archive).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains("no dump is in this archive"), "{}", keys.stderr);
    }
    // What is named as a dump and is none does not go unnoticed.
    let named = TempDump::new(&tar(&[("wrong.rdb", 0, b"no dump"), ("right", 0, &a)]));
    let keys = named.run_keys(&[]).ended_with(3);
    assert!(keys.stderr.contains("dump.rdb:wrong.rdb: at byte 0, reading the header: no dump"), "{}", keys.stderr);
    assert!(keys.text().lines().count() > 10);
}

#[test]
fn archives_that_lie_or_are_cut() {
    let bytes = fixture("redis-7.4.1-contracts");
    let archive = tar(&[("first.rdb", 1_700_000_000, &bytes), ("second.rdb", 1_700_000_000, &fixture("redis-7.0.15-lfu"))]);
    // Cut in the first member, in the second, and between header and data.
    for cut in [200_000, 512 + bytes.len().next_multiple_of(512) + 700, 512 + bytes.len().next_multiple_of(512) + 512] {
        for stored in [archive[..cut].to_vec(), zstd(&archive[..cut])] {
            let keys = TempDump::new(&stored).run_keys(&[]).ended_with(3);
            assert!(keys.stderr.contains("truncated") || keys.stderr.contains("empty"), "{cut}: {}", keys.stderr);
            let count = keys.text().lines().count();
            if cut > 300_000 {
                assert!(count >= 3258, "{cut}: {count}")
            } else {
                assert!((100..3258).contains(&count), "{cut}: {count}")
            }
        }
    }
    // A size that no file has, and a name that is longer than any: in base 256, as large files have theirs.
    let lie = |at: usize, kind: u8, size: u64| {
        let mut lying = archive.clone();
        lying[at + 124..at + 136].copy_from_slice(&[&[0x80, 0, 0, 0][..], &size.to_be_bytes()].concat());
        lying[at + 156] = kind;
        lying[at + 148..at + 156].copy_from_slice(b"        ");
        let sum: u32 = lying[at..at + 512].iter().map(|byte| u32::from(*byte)).sum();
        lying[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        lying
    };
    for (kind, size) in [(b'0', u64::MAX), (b'0', 1 << 62), (b'L', 1 << 40), (b'x', u64::MAX - 600), (b'K', 1 << 30)] {
        for lying in [lie(0, kind, size), gzip(&lie(0, kind, size))] {
            let keys = TempDump::new(&lying).run_keys(&[]).ended_with(3);
            assert!(
                keys.stderr.contains("tar archive") || keys.stderr.contains("gzip data") || keys.stderr.contains("truncated"),
                "{}",
                keys.stderr
            );
        }
    }
    // A header that is not what its checksum says: what was before it counts.
    let mut wrong = archive.clone();
    wrong[512 + bytes.len().next_multiple_of(512)] ^= 1;
    let keys = TempDump::new(&wrong).run_keys(&[]).ended_with(3);
    assert!(keys.stderr.contains("reading tar archive: the checksum of a member's header is wrong"), "{}", keys.stderr);
    assert_eq!(keys.text().lines().count(), 3258);
}

#[test]
fn the_same_dump_twice_however_it_is_stored() {
    let folder = TempDir::new().unwrap();
    let plain = path("redis-7.0.15-lfu");
    let bytes = fixture("redis-7.0.15-lfu");
    for (way, stored) in ways(&bytes).into_iter().skip(1) {
        let other = folder.path().join("other");
        std::fs::write(&other, &stored).unwrap();
        for command in ["keys", "report", "verify"] {
            let twice = run([Path::new(command), &plain, &other, &path("redis-7.0.15-lru")]).ended_with(3);
            assert!(
                twice.stderr.contains("the same dump as") && twice.stderr.contains("give each once"),
                "{way}: {}",
                twice.stderr
            );
            assert_eq!(twice.text(), "", "{way}");
        }
        // What is piped is known only once it was read.
        let report = report_of_piped(&stored, &[plain.to_str().unwrap()]);
        assert_eq!((report.run.code, report.files.len()), (3, 0), "{way}");
        assert!(report.run.stderr.contains("the same dump as"), "{way}: {}", report.run.stderr);
        let keys = piped(&stored, &["keys", "-", plain.to_str().unwrap()]).ended_with(3);
        assert!(keys.stderr.contains("the same dump as"), "{way}: {}", keys.stderr);
    }
    let twice = piped(&bytes, &["keys", "-", "-"]).ended_with(3);
    assert!(twice.stderr.contains("standard input: it can be read once"), "{}", twice.stderr);
}

/// Ordinals follow the content, also where dumps begin alike.
#[test]
fn the_order_of_dumps_does_not_depend_on_how_they_are_stored() {
    let filler = |key: &str, n: u32| -> Vec<u8> {
        (0..n).flat_map(|at| [&[0][..], &string(format!("{key}:{at}").as_bytes()), &string(&[b'v'; 100])].concat()).collect()
    };
    let aux = [&[0xfa][..], &string(b"ctime"), &string(T0.to_string().as_bytes())].concat();
    // More than 64 KiB are the same.
    let dumps: Vec<Vec<u8>> = (0..4)
        .map(|shard| {
            dump(
                b"REDIS0010",
                &[&aux[..], &[0xfe, 0], &filler("same", 1000), &filler(&format!("shard{shard}"), 10 + shard)].concat(),
            )
        })
        .collect();
    let folder = TempDir::new().unwrap();
    let stored = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let plain: Vec<PathBuf> = dumps.iter().enumerate().map(|(at, bytes)| stored(&format!("{at}.rdb"), bytes.clone())).collect();
    let listed = Report::of(&plain);
    let mixed = [
        stored("z", tar(&[("x", 0, &dumps[3]), ("w", 0, &dumps[1])])),
        stored("y", gzip(&dumps[0])),
        stored("x", zstd(&dumps[2])),
    ];
    same_tables(&listed, &Report::of(&mixed), "mixed");
    let archive =
        stored("all.tar.gz", gzip(&tar(&[("3", 0, &dumps[3]), ("1", 0, &dumps[1]), ("0", 0, &dumps[0]), ("2", 0, &dumps[2])])));
    same_tables(&listed, &Report::of([archive]), "an archive");
    let keys = run([Path::new("keys")].into_iter().chain(plain.iter().map(PathBuf::as_path))).ok();
    assert!(run([Path::new("keys")].into_iter().chain(mixed.iter().map(PathBuf::as_path))).ok().stdout == keys.stdout);
}

#[test]
fn a_folder_of_dumps_in_any_form() {
    let folder = TempDir::new().unwrap();
    let names = ["redis-7.0.15-lfu", "redis-8.2.3-nocrc", "redis-7.4.1-modules"];
    let [a, b, c] = names.map(fixture);
    std::fs::write(folder.path().join("a.gz"), gzip(&a)).unwrap();
    std::fs::write(folder.path().join("b"), &b).unwrap();
    std::fs::write(folder.path().join("c"), tar(&[("c", 0, &c)])).unwrap();
    std::fs::write(folder.path().join("README"), "no dump").unwrap();
    let report = Report::of([folder.path()]);
    same_tables(&Report::of(names.map(path)), &report, "a folder");
    assert!(report.run.stderr.contains("1 other file left out"), "{}", report.run.stderr);
}

#[test]
fn info_of_streams() {
    let bytes = fixture("redis-7.4.1-contracts");
    let quick = piped(&zstd(&bytes), &["info", "-"]).ok();
    for line in ["file             standard input", "format           REDIS0012", "end              not read"] {
        assert!(quick.text().contains(line), "{}", quick.text());
    }
    let full = piped(&zstd(&bytes), &["info", "-", "--full"]).ok();
    for line in ["keys             3,257", "checksum         ok", "after the end    0 B"] {
        assert!(full.text().contains(line), "{}", full.text());
    }
    let path = TempDump::new(&gzip(&bytes));
    assert!(run(["info", path.path().to_str().unwrap()]).ok().text().contains("as it is stored"));
}
