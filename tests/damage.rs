//! Each kind of damage, and each kind of file that is no dump, has its own message, which says what to do next.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use support::{TempDump, dump, read_csv, run, string};

/// Version 11, database 0, one key of five bytes: what follows is at byte 16.
const HEAD: &[u8] = b"REDIS0011\xfe\x00\x00\x01k\x01v";

/// Rows of `keys` and the messages for what follows [`HEAD`].
#[track_caller]
fn after_head(rest: &[u8]) -> (Vec<String>, String) {
    let run = TempDump::new(&[HEAD, rest].concat()).run_keys(&["--columns", "key"]).ended_with(3);
    let (_, rows) = read_csv(&run.stdout);
    (rows.into_iter().map(|mut row| row.remove("key").unwrap()).collect(), run.stderr)
}

#[test]
fn a_dump_that_is_cut() {
    let (keys, stderr) = after_head(b"\x00\x01x\x0aabc");
    assert_eq!(keys, ["k"]);
    assert!(
        stderr.contains("at byte 20, reading string value of key \"x\": 10 bytes needed, 3 left; the file is truncated"),
        "{stderr}"
    );
    assert!(stderr.contains("copy it again, or wait until its save has finished"), "{stderr}");
    assert!(stderr.contains("partial: 1 key before byte 16 was read\n"), "nothing is behind a cut: {stderr}");
}

/// A copy that broke off ends with a whole block.
#[test]
fn a_dump_that_is_half_copied() {
    let mut rest = b"\x00\x03big".to_vec();
    rest.extend(string(&[b'v'; 9000]));
    let (keys, stderr) = after_head(&rest[..8192 - HEAD.len()]);
    assert_eq!(keys, ["k"]);
    assert!(
        stderr.contains("half copied, it ends with a whole block of 4 KiB: copy it again, and compare the sizes"),
        "{stderr}"
    );
}

/// Zeros are no keys without names.
#[test]
fn a_tail_of_zeros() {
    let (keys, stderr) = after_head(&[0; 1000]);
    assert_eq!(keys, ["k"]);
    assert!(
        stderr.contains("at byte 16, reading type or opcode: zeros from here to the end of the file, 1000 bytes"),
        "{stderr}"
    );
    assert!(stderr.contains("the disk was full or the machine stopped"), "{stderr}");
    // The value of x takes seven of them.
    let (keys, stderr) = after_head(&[&b"\x00\x01x\x0aabc"[..], &[0; 200]].concat());
    assert_eq!(keys, ["k", "x"]);
    assert!(stderr.contains("at byte 30, reading type or opcode: zeros from here to the end of the file, 193 bytes"), "{stderr}");
    assert!(stderr.contains("do not rely on the key in front of them"), "{stderr}");
    // 63 fields with their values are not in 100 bytes.
    let (keys, stderr) = after_head(&[&b"\x04\x01h\x3f"[..], &[0; 100]].concat());
    assert_eq!(keys, ["k"]);
    assert!(stderr.contains("at byte 20, reading number of elements of key \"h\": zeros from here"), "{stderr}");
}

#[test]
fn zeros_in_the_middle() {
    let (keys, stderr) = after_head(&[&[0; 50][..], b"\xfe\x01\x00\x01x\x01v"].concat());
    assert_eq!(keys, ["k"]);
    assert!(
        stderr.contains("at byte 16, reading type or opcode: 50 zeros where records belong, and data behind them"),
        "{stderr}"
    );
    assert!(stderr.contains("was not copied: copy it again\n"), "{stderr}");
    assert!(stderr.contains("partial: 1 key before byte 16 was read, and the last of them may be damaged itself; --recover searches the 57 bytes behind them"), "{stderr}");
}

/// One key without name and content is a key.
#[test]
fn an_empty_string_without_a_name_is_sound() {
    let whole = TempDump::new(&dump(b"REDIS0011", b"\xfe\x00\x00\x00\x00\x00\x01k\x01v"));
    assert_eq!(whole.keys(&[]).len(), 2);
    let last = TempDump::new(&dump(b"REDIS0011", b"\xfe\x00\x00\x01k\x01v\x00\x00\x00"));
    assert_eq!(last.keys(&[]).len(), 2);
}

#[test]
fn a_flipped_bit() {
    // In a value: only the checksum can tell.
    let mut whole = dump(b"REDIS0011", b"\xfe\x00\x00\x01k\x05value");
    whole[16] ^= 4;
    let flipped = TempDump::new(&whole);
    let run = flipped.run_keys(&["--columns", "key"]).ended_with(3);
    assert_eq!(run.text(), "key\nk\n");
    assert!(run.stderr.contains("reading checksum: the file says"), "{}", run.stderr);
    assert!(run.stderr.contains("any name or value may be wrong: take another copy of the backup"), "{}", run.stderr);
    assert!(!run.stderr.contains("--recover"), "all was read: {}", run.stderr);
    // In a type: 0x80 is none.
    let mut whole = dump(b"REDIS0011", b"\xfe\x00\x00\x01k\x05value");
    whole[11] ^= 0x80;
    let run = TempDump::new(&whole).run_keys(&[]).ended_with(3);
    assert!(run.stderr.contains("at byte 11, reading type or opcode: unknown type or opcode 128 (0x80)"), "{}", run.stderr);
}

#[test]
fn the_run_goes_on_with_the_next_file() {
    let broken = TempDump::new(&[HEAD, b"\x96"].concat());
    let sound = TempDump::new(&dump(b"REDIS0011", b"\xfe\x00\x00\x01a\x01v"));
    for (first, second) in [(&broken, &sound), (&sound, &broken)] {
        let paths = [first.path(), second.path()];
        let run = run(["keys", "--columns", "key", paths[0].to_str().unwrap(), paths[1].to_str().unwrap()]).ended_with(3);
        let mut lines: Vec<&str> = run.text().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "k", "key"]);
    }
}

#[test]
fn a_file_of_another_kind() {
    let files: [(&[u8], &str); 14] = [
        (b"", "the file is empty"),
        (b"REDI", "the file ends inside the nine bytes of the header"),
        (b"SQLite format 3\0.......", "an SQLite database"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "an executable"),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "a zip archive: unpack it first"),
        (b"{\"keys\": [1, 2, 3]}\n", "JSON text"),
        (b"\n<!DOCTYPE html><html><body>403</body></html>", "a web page"),
        (
            b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
            "an XML document, most likely an error of a storage service",
        ),
        (b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", "an append-only file without an RDB part"),
        (b"file appendonly.aof.1.base.rdb seq 1 type b\n", "the manifest of an append-only file"),
        (b"-NOAUTH Authentication required.\r\n", "an error that a server answered instead of a dump: log in"),
        (b"UkVESVMwMDEx+glyZWRpcy12ZXI=\n", "a dump in base64: decode it first"),
        (b"user:1,string,12\nuser:2,string,13\n", "plain text: give the dump itself"),
        (&[0; 600], "the file begins with zeros"),
    ];
    let mut messages = Vec::new();
    for (bytes, expected) in files {
        let run = TempDump::new(bytes).run_keys(&[]).ended_with(3);
        assert_eq!(run.text(), "", "no row");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        messages.push(run.stderr.split_once("reading the header: ").unwrap().1.to_string());
    }
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), files.len(), "each has its own message");
    let noise = TempDump::new(b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b").run_keys(&[]).ended_with(3);
    assert!(noise.stderr.contains("no dump: it begins with neither REDIS nor VALKEY"), "{}", noise.stderr);
}
