//! Compressed forms at their edges: what stands between and behind, what they ask for, and what a stream cannot do.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use stored::{bzip2, gzip, lz4, piped, skippable};
use support::{Report, TempDump, dump, fixtures, read_csv, run, string};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(format!("truth/{name}.rdb"))).unwrap()
}

/// Rows of `keys` of a dump as it is, and of one that is stored, which must go well.
#[track_caller]
fn same_keys(bytes: &[u8], stored: &[u8], what: &str) {
    let plain = TempDump::new(bytes).run_keys(&[]).ok().stdout;
    let file = TempDump::new(stored).run_keys(&[]).ok();
    assert!(file.stdout == plain, "{what}: {}", file.stderr);
    assert!(!file.stderr.contains("warning"), "{what}: {}", file.stderr);
    assert!(piped(stored, &["keys", "-"]).ok().stdout == plain, "{what}, piped");
}

#[test]
fn zeros_behind_gzip() {
    let bytes = fixture("redis-7.0.15-lfu");
    for zeros in [1, 511, 300_000] {
        same_keys(&bytes, &[gzip(&bytes), vec![0; zeros]].concat(), "zeros");
        let (front, back) = bytes.split_at(5000);
        same_keys(&bytes, &[gzip(front), gzip(back), vec![0; zeros]].concat(), "two members and zeros");
    }
    for garbage in [&b"garbage"[..], b"\0\0\0x"] {
        let keys = TempDump::new(&[&gzip(&bytes), garbage].concat()).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains("reading gzip data"), "{}", keys.stderr);
    }
}

/// A block of LZ4 that holds bytes as they are: runs of literals alone.
fn literals(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![(bytes.len().min(15) as u8) << 4];
    if bytes.len() >= 15 {
        let rest = bytes.len() - 15;
        block.extend(std::iter::repeat_n(255, rest / 255));
        block.push((rest % 255) as u8);
    }
    [&block, bytes].concat()
}

/// A frame of old: magic, then each block with its stored length in front.
fn legacy(blocks: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![0x02, 0x21, 0x4c, 0x18];
    for block in blocks {
        let stored = literals(block);
        frame.extend((stored.len() as u32).to_le_bytes());
        frame.extend(stored);
    }
    frame
}

#[test]
fn frames_of_lz4_of_old() {
    let bytes = fixture("redis-7.4.1-contracts");
    let (a, rest) = bytes.split_at(100_000);
    let (b, c) = rest.split_at(77);
    same_keys(&bytes, &legacy(&[&bytes]), "one block");
    same_keys(&bytes, &legacy(&[a, b, c]), "three blocks");
    same_keys(&bytes, &[legacy(&[a, b]), legacy(&[c])].concat(), "two frames");
    same_keys(&bytes, &[legacy(&[a]), lz4(b), legacy(&[c])].concat(), "of old, modern, of old");
    same_keys(&bytes, &[lz4(a), legacy(&[b]), skippable(b"note"), legacy(&[]), lz4(c)].concat(), "modern, of old, modern");
    // Linked blocks of 8 MiB, by another encoder's rules: matches, too.
    let mut packed = vec![0x02, 0x21, 0x4c, 0x18];
    let large = dump(b"REDIS0010", &[&[0xfe, 0, 0][..], &string(b"large"), &string(&vec![b'x'; 20_000_000])].concat());
    for block in large.chunks(8 << 20) {
        let stored = lz4_flex::block::compress(block);
        packed.extend((stored.len() as u32).to_le_bytes());
        packed.extend(stored);
    }
    assert_eq!(read_csv(&TempDump::new(&packed).run_keys(&[]).ok().stdout).1[0]["serialized_bytes"], "20000012");
    // A cut inside a block, one inside a length, a length above any block, and no block.
    let whole = legacy(&[a, b, c]);
    for cut in [whole.len() - 1, 4 + 4 + literals(a).len() + 2] {
        let keys = TempDump::new(&whole[..cut]).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains("reading lz4 data: it ends too early"), "{}", keys.stderr);
    }
    for wrong in [[0xff, 0xff, 0xff, 0x00], [0, 0, 0, 0]] {
        let keys = TempDump::new(&[&legacy(&[a])[..], &wrong, &[1; 100]].concat()).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains("reading lz4 data: what follows is neither a block nor a frame"), "{}", keys.stderr);
    }
    // Cut between two blocks nobody can tell, and the length of the dump says nothing of the file.
    let cut = 20 * 4096;
    for stored in [legacy(&[&bytes[..cut]]), gzip(&bytes[..cut])] {
        let keys = TempDump::new(&stored).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains("the file is truncated") && !keys.stderr.contains("4 KiB"), "{}", keys.stderr);
    }
    let plain = TempDump::new(&bytes[..cut]).run_keys(&[]).ended_with(3);
    assert!(plain.stderr.contains("whole block of 4 KiB"), "{}", plain.stderr);
}

#[test]
fn zstd_that_needs_a_dictionary() {
    let bytes = dump(b"REDIS0011", b"\xfe\0\0\x01k\x01v");
    let len = bytes.len() as u8;
    // One segment whose length takes a byte, and a dictionary whose number takes one; one block, the last, as it is.
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, len, len << 3 | 1, 0, 0][..], &bytes].concat();
    let keys = TempDump::new(&frame).run_keys(&[]).ended_with(3);
    assert!(
        keys.stderr.contains("it needs the dictionary that it was compressed with: decompress it with zstd -d -D DICTIONARY"),
        "{}",
        keys.stderr
    );
    assert!(!keys.stderr.contains("damaged"), "{}", keys.stderr);
}

#[test]
fn what_ends_before_a_dump_begins() {
    let cases: [(&[u8], &str); 9] = [
        (b"$1000\r\n", "ends before the dump begins"),
        (b"$1000\r\nREDIS00", "ends before the dump begins"),
        (b"$10", "ends before the dump begins"),
        (b"\n\n$EOF:0123456789abcdef0123456789abcdef01234567\r\n", "ends before the dump begins"),
        (b"+FULLRESYNC 9f1c3b4e5d6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c 4711\r\n", "ends before the dump begins"),
        (b"+FULLRESYNC 9f1c3b4e5d6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c 4711\r\n\n\n$99\r\nVALK", "ends before the dump begins"),
        (b"#TS:1700000000\r\n*1\r\n$4\r\nPING\r\n", "an append-only file without an RDB part"),
        (b"BZh", "reading bzip2 data: it ends too early"),
        (b"$5\r\nhello*1\r\n", "a capture of a replication stream: cut off what precedes REDIS"),
    ];
    for (bytes, expected) in cases {
        let keys = TempDump::new(bytes).run_keys(&[]).ended_with(3);
        assert!(keys.stderr.contains(expected), "{expected}: {}", keys.stderr);
    }
}

/// A string of 1.2 GiB, of which a little comes: what it says is enough.
#[test]
fn a_record_that_no_window_holds() {
    let len = 1_200_000_000u32;
    let front = [&b"REDIS0010\xfe\0\0\x01k\x01v\0\x05large\x80"[..], &len.to_be_bytes(), &[7; 100_000]].concat();
    for stored in [gzip(&front), bzip2(&front)] {
        let arguments = ["--columns", "key", "--window-bytes", "65536"];
        for run in [TempDump::new(&stored).run_keys(&arguments), piped(&stored, &[&["keys", "-"], &arguments[..]].concat())] {
            let run = run.ended_with(3);
            assert_eq!(run.text(), "key\nk\n");
            // The type, the name with its length, the length, and the bytes.
            assert!(run.stderr.contains(&format!("it takes {} bytes or more", len + 12)), "{}", run.stderr);
            assert!(run.stderr.contains("decompress the dump into a file"), "{}", run.stderr);
        }
    }
    // A file has no windows.
    let plain = TempDump::new(&front).run_keys(&[]).ended_with(3);
    assert!(plain.stderr.contains("1200000000 bytes needed, 100000 left"), "{}", plain.stderr);
}

/// Memory that cannot be had ends the input, not the process.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_not_there() {
    let limited = |kib: u64, path: PathBuf, more: &str| {
        let program = env!("CARGO_BIN_EXE_rdbscope");
        let script = format!("ulimit -v {kib}; exec {program} verify --threads 1 {} {more}", path.display());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    // A window that is larger than what there is.
    let small = TempDump::new(&gzip(&fixture("redis-7.0.15-lfu")));
    let (code, said) = limited(2 << 20, small.path(), "--window-bytes 4294967296");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("not enough memory for a window of 4294967296 bytes"), "{said}");
    // One that has to grow beyond it.
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    let len = 700_000_000u32;
    encoder.write_all(&[&b"REDIS0010\xfe\0\0\x01k\x01v\0\x05large\x80"[..], &len.to_be_bytes()].concat()).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(len.into()), &mut encoder).unwrap();
    let large = TempDump::new(&encoder.finish().unwrap());
    let (code, said) = limited(1 << 20, large.path(), "");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("not enough memory for a window of") && said.contains("1 key read"), "{said}");
}

/// What passed through a stream cannot be searched.
#[test]
fn recovery_needs_a_file() {
    let record = |at: u32| [&[0][..], &string(format!("k{at:03}").as_bytes()), &string(b"value")].concat();
    let front: Vec<u8> = (0..20).flat_map(record).collect();
    let behind: Vec<u8> = (20..60).flat_map(record).collect();
    // Type 0x96 is none.
    let broken = dump(b"REDIS0011", &[&[0xfe, 0][..], &front, &[0x96], &behind].concat());
    let at = 11 + front.len();
    let said =
        format!("nothing behind byte {at} was searched; --recover needs a file that is no stream: decompress the dump into one");
    let stored = gzip(&broken);
    let file = TempDump::new(&stored);
    let path = file.path();
    for command in ["report", "keys", "verify"] {
        for run in [run([command, path.to_str().unwrap(), "--recover"]), piped(&stored, &[command, "-", "--recover"])] {
            let run = run.ended_with(3);
            assert!(run.stderr.contains(&said), "{command}: {}", run.stderr);
            assert_eq!(run.stderr.matches("--recover").count(), 1, "{command}: {}", run.stderr);
        }
    }
    let report = file.report(&["--recover"]);
    let skipped = report.table("skipped");
    assert_eq!((&*skipped[0]["from_byte"], &*skipped[0]["to_byte"], &*skipped[0]["bytes"]), (&*at.to_string(), "", ""));
    assert!(report.run.text().contains("behind the faults of streams, which were not searched"), "{}", report.run.text());
    // The plain one recovers, and has nothing to advise.
    let plain = TempDump::new(&broken).report(&["--recover"]);
    assert_eq!(plain.table("skipped")[0]["recovered_keys"], "36");
    assert!(!plain.run.stderr.contains("--recover"), "{}", plain.run.stderr);
    let zeros = dump(b"REDIS0011", &[&[0xfe, 0][..], &front, &[0; 50], &behind].concat());
    let zeros = Report::of([TempDump::new(&zeros).path().to_str().unwrap(), "--recover"]);
    assert!(zeros.run.code == 3 && !zeros.run.stderr.contains("--recover"), "{}", zeros.run.stderr);
}
