//! The same dump given twice is refused by every command before a row is written, whatever it is wrapped in and whatever follows it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;

use std::path::{Path, PathBuf};

use stored::{gzip, piped, tar, zstd};
use support::{Run, T0, TempDump, dump, run, string};
use tempfile::TempDir;

const MARK: &[u8; 40] = b"0123456789abcdef0123456789abcdef01234567";

/// Keys of 110 bytes and more: 1,000 of them are more than the 64 KiB that are looked at of every dump.
fn keys(n: u32) -> Vec<u8> {
    let record = |at: u32| [&[0][..], &string(format!("user:{at}").as_bytes()), &string(&[b'v'; 100])].concat();
    (0..n).flat_map(record).collect()
}

fn aux(name: &str, value: &str) -> Vec<u8> {
    [&[0xfa][..], &string(name.as_bytes()), &string(value.as_bytes())].concat()
}

/// Dumps with and without a moment, with and without a checksum, below and above 64 KiB.
fn dumps() -> Vec<(&'static str, Vec<u8>)> {
    let dated = [aux("ctime", &T0.to_string()), aux("aof-preamble", "1")].concat();
    let without_sum = |mut bytes: Vec<u8>| {
        let end = bytes.len() - 8;
        bytes[end..].fill(0);
        bytes
    };
    let mut all = Vec::new();
    for n in [3, 1000] {
        let body = |front: &[u8]| [front, &[0xfe, 0], &keys(n)].concat();
        all.push(("dated", dump(b"REDIS0011", &body(&dated))));
        all.push(("undated", dump(b"REDIS0009", &body(&[]))));
        all.push(("checksum off", without_sum(dump(b"REDIS0011", &body(&dated)))));
        all.push(("of old", dump(b"REDIS0003", &body(&[]))));
    }
    all
}

/// Ways in which the dump may arrive but the plain one.
fn wrapped(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let len = bytes.len().to_string();
    let ping = b"*1\r\n$4\r\nPING\r\n";
    vec![
        ("a tail", [bytes, ping].concat()),
        ("another tail", [bytes, b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"].concat()),
        ("a long tail", [bytes, &ping.repeat(10_000)].concat()),
        ("zeros behind it", [bytes, &[0; 700]].concat()),
        ("a length", [b"$", len.as_bytes(), b"\r\n", bytes].concat()),
        ("a mark", [b"$EOF:", &MARK[..], b"\r\n", bytes, MARK, ping].concat()),
        ("gzip of a tail", gzip(&[bytes, ping].concat())),
        ("zstd", zstd(bytes)),
        ("tar", tar(&[("dump.rdb", 7, bytes)])),
        ("tar.gz", gzip(&tar(&[("dump.rdb", 9, &[bytes, ping].concat())]))),
    ]
}

#[track_caller]
fn refused(run: Run, what: &str) {
    assert_eq!(run.code, 3, "{what}: {}", run.stderr);
    assert!(run.stderr.contains("the same dump as") && run.stderr.contains("give each once"), "{what}: {}", run.stderr);
    assert_eq!(run.text(), "", "{what}: rows were written");
}

/// Runs every command on `inputs`; none leaves a file.
fn all_refuse(inputs: &[&Path], stdin: &[u8], what: &str) {
    for command in [&["report"][..], &["keys"], &["check"], &["verify"], &["contract", "discover"]] {
        let out = TempDir::new().unwrap();
        let file = out.path().join("out");
        let mut arguments: Vec<&str> = command.iter().copied().chain(inputs.iter().map(|path| path.to_str().unwrap())).collect();
        if command[0] != "verify" {
            arguments.extend(["-o", file.to_str().unwrap()]);
        }
        let what = format!("{what}, {command:?}");
        refused(piped(stdin, &arguments), &what);
        assert!(!file.exists(), "{what}: a file was kept");
        if command[0] == "keys" {
            refused(piped(stdin, &arguments[..arguments.len() - 2]), &format!("{what} to standard output"));
        }
    }
}

#[test]
fn whatever_a_dump_is_wrapped_in() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    for (kind, bytes) in dumps() {
        let plain = write("plain", &bytes);
        let wrapped = wrapped(&bytes);
        for (at, (way, stored)) in wrapped.iter().enumerate() {
            let what = format!("{kind} of {} bytes and {way}", bytes.len());
            let one = write("one", stored);
            all_refuse(&[&plain, &one], b"", &what);
            // Neither is the plain one.
            let (other_way, stored) = &wrapped[(at + 3) % wrapped.len()];
            let other = write("other", stored);
            all_refuse(&[&one, &other], b"", &format!("{what}, {other_way}"));
            all_refuse(&[Path::new("-"), &one], stored, &format!("{what}, {other_way} piped"));
        }
    }
}

/// Dumps that begin alike and are not the same are taken, without their checksums as well.
#[test]
fn dumps_that_only_begin_alike() {
    let folder = TempDir::new().unwrap();
    let body = |last: &[u8]| [&[0xfe, 0][..], &keys(1000), &[0, 1, b'z'], &string(last)].concat();
    // The same length, and another; with tails that make the files equally long.
    let dumps = [b"one".as_slice(), b"two", b"threee"].map(|last| dump(b"REDIS0010", &body(last)));
    let tails = [3, 3, 0].map(|n| vec![b'*'; n]);
    let paths: Vec<PathBuf> = (0..3)
        .map(|at| {
            let path = folder.path().join(at.to_string());
            std::fs::write(&path, [&dumps[at][..], &tails[at]].concat()).unwrap();
            path
        })
        .collect();
    for more in [&[][..], &["--no-checksum"]] {
        let arguments = ["keys", "--columns", "key"].into_iter().chain(paths.iter().map(|path| path.to_str().unwrap()));
        let keys = run(arguments.chain(more.iter().copied())).ok();
        assert_eq!(keys.text().lines().count(), 1 + 3 * 1001);
        let keys = piped(&dumps[2], &["keys", "-", paths[0].to_str().unwrap(), paths[1].to_str().unwrap()]).ok();
        assert_eq!(keys.text().lines().count(), 1 + 3 * 1001);
    }
}

/// A stored checksum that is another one makes another dump, a damaged one.
#[test]
fn dumps_that_differ_in_their_checksum() {
    let bytes = dump(b"REDIS0010", &[&[0xfe, 0][..], &keys(1000)].concat());
    let flipped = |mask: u8| {
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= mask;
        TempDump::new(&flipped)
    };
    let paths = [flipped(0), flipped(1), flipped(2)].map(|dump| (dump.path(), dump));
    let keys = run(["keys"].into_iter().chain(paths.iter().map(|(path, _)| path.to_str().unwrap()))).ended_with(3);
    assert_eq!(keys.text().lines().count(), 1 + 3 * 1000);
    refused(run(["keys", paths[1].0.to_str().unwrap(), flipped(1).path().to_str().unwrap()]), "the same damage");
}

/// Standard input is kept where it begins as another dump does; what is wrong with it is told all the same.
#[test]
fn a_truncated_stream_that_begins_as_another_dump() {
    let folder = TempDir::new().unwrap();
    let bytes = dump(b"REDIS0010", &[&[0xfe, 0][..], &keys(3000)].concat());
    let path = folder.path().join("dump.rdb");
    std::fs::write(&path, &bytes).unwrap();
    let stored = gzip(&bytes);
    let cut = piped(&stored[..stored.len() / 2], &["keys", "-", path.to_str().unwrap()]).ended_with(3);
    assert!(cut.stderr.contains("standard input: at byte"), "{}", cut.stderr);
    assert!(cut.stderr.contains("reading gzip data: it ends too early"), "{}", cut.stderr);
    assert!(cut.text().lines().count() > 3500, "{}", cut.text().lines().count());
}
