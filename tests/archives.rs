//! Archives and append-only files in several parts: what counts of them, and what is said of the rest.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;

use std::path::Path;

use stored::{gzip, piped, tar, zstd};
use support::{Report, Run, TempDump, dump, read_csv, run, string};
use tempfile::TempDir;

/// A dump of one key.
fn one_key(name: &str) -> Vec<u8> {
    dump(b"REDIS0011", &[&[0xfe, 0, 0][..], &string(name.as_bytes()), &string(b"value")].concat())
}

const BLOCK: usize = 512;

/// Header of a member with its checksum: name, size, type, and bytes from 257 on, where newer forms have their magic.
fn header(name: &str, size: usize, kind: u8, more: &[u8]) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"00000000001\0");
    block[156] = kind;
    block[257..257 + more.len()].copy_from_slice(more);
    summed(block)
}

fn summed(mut block: Vec<u8>) -> Vec<u8> {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(BLOCK), 0);
    padded
}

const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];
const USTAR: &[u8] = b"ustar\x0000";
const GNU: &[u8] = b"ustar  \0";

/// Keys and messages for an archive in every way in which it may come.
fn everywhere(archive: &[u8], code: i32, check: impl Fn(&[String], &str)) {
    for stored in [archive.to_vec(), gzip(archive), zstd(archive)] {
        let arguments = ["--columns", "key"];
        for run in [TempDump::new(&stored).run_keys(&arguments), piped(&stored, &[&["keys", "-"], &arguments[..]].concat())] {
            let run = run.ended_with(code);
            let mut keys: Vec<String> = run.text().lines().skip(1).map(str::to_string).collect();
            keys.sort();
            check(&keys, &run.stderr);
        }
    }
}

#[test]
fn of_members_of_the_same_name_the_last_counts() {
    let (first, second, third, other) = (one_key("first"), one_key("second"), one_key("third"), one_key("other"));
    let member = |name: &str, bytes: &[u8]| [header(name, bytes.len(), b'0', USTAR), padded(bytes)].concat();
    let archive = [
        &member("backup/dump.rdb", &first)[..],
        &member("backup/other.rdb", &other),
        &member("./backup//dump.rdb", &second),
        &member("backup/dump.rdb", &third),
        &END,
    ]
    .concat();
    everywhere(&archive, 0, |keys, stderr| {
        assert_eq!(keys, ["other", "third"]);
        let told = |name: &str| stderr.matches(&format!("{name}: left out: a later member of the same name replaces it")).count();
        assert_eq!((told(":backup/dump.rdb"), told(":./backup//dump.rdb")), (1, 1), "{stderr}");
    });
    // What is no dump any more is none, and one that was broken does not count.
    everywhere(
        &tar(&[("a.rdb", 1, b"broken"), ("a.rdb", 1, &first), ("b", 1, &other), ("b", 1, b"notes")]),
        0,
        |keys, stderr| {
            assert_eq!(keys, ["first"]);
            assert!(stderr.contains(":b: left out: a later member"), "{stderr}");
        },
    );
}

/// The manifest is obeyed in an archive as it is in a folder.
#[test]
fn an_append_only_file_in_several_parts_within_an_archive() {
    let (base, old, beside) = (one_key("base"), one_key("old"), one_key("beside"));
    let manifest =
        b"file a.aof.2.base.rdb seq 2 type b\nfile a.aof.1.base.rdb seq 1 type h\nfile a.aof.1.incr.aof seq 1 type h\n\
                     file a.aof.2.incr.aof seq 2 type i\nfile a.aof.3.incr.aof seq 3 type i\n";
    let commands = b"*1\r\n$4\r\nPING\r\n";
    // An increment may itself begin as a dump does.
    let preamble = [&old[..], commands].concat();
    let members: Vec<(&str, u64, &[u8])> = vec![
        ("data/dump.rdb", 1, &beside),
        ("data/aof/a.aof.1.base.rdb", 1, &old),
        ("data/aof/a.aof.1.incr.aof", 1, commands),
        ("data/aof/a.aof.2.base.rdb", 1, &base),
        ("data/aof/a.aof.2.incr.aof", 1, commands),
        ("data/aof/a.aof.3.incr.aof", 1, &preamble),
        ("data/aof/temp-a.aof.manifest", 1, b"half"),
        ("data/aof/a.aof.manifest", 1, manifest),
    ];
    let bytes = preamble.len() + commands.len();
    everywhere(&tar(&members), 0, |keys, stderr| {
        assert_eq!(keys, ["base", "beside"]);
        assert!(stderr.contains(&format!("{bytes} bytes of commands behind the base")), "{stderr}");
        assert!(stderr.contains(":data/aof/temp-a.aof.manifest: left out: a save was writing it"), "{stderr}");
        assert!(!stderr.contains("no dumps"), "{stderr}");
    });
    // The same from a folder.
    let folder = TempDir::new().unwrap();
    for (name, _, bytes) in &members[1..] {
        std::fs::write(folder.path().join(Path::new(name).file_name().unwrap()), bytes).unwrap();
    }
    let keys = run([Path::new("keys"), folder.path(), "--columns".as_ref(), "key".as_ref()]).ok();
    assert_eq!(keys.text(), "key\nbase\n");
    assert!(keys.stderr.contains(&format!("{bytes} bytes of commands behind the base")), "{}", keys.stderr);
    assert!(keys.stderr.contains("temp-a.aof.manifest: left out: a save was writing it"), "{}", keys.stderr);
    assert!(!keys.stderr.contains("no dumps"), "{}", keys.stderr);
    // Without one of the increments, and without the base.
    std::fs::remove_file(folder.path().join("a.aof.3.incr.aof")).unwrap();
    let keys = run([Path::new("keys"), folder.path()]).ok();
    let missing = "a.aof.3.incr.aof: named by the manifest of the append-only file, and not there";
    assert!(keys.stderr.contains(&format!("{}/{missing}", folder.path().display())), "{}", keys.stderr);
    let without = |left_out: usize| {
        let kept: Vec<_> = members.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, member)| *member).collect();
        tar(&kept)
    };
    everywhere(&without(5), 0, |keys, stderr| {
        assert_eq!(keys, ["base", "beside"]);
        assert!(stderr.contains(&format!(":data/aof/{missing}")), "{stderr}");
        assert!(stderr.contains("14 bytes of commands"), "{stderr}");
    });
    everywhere(&without(3), 3, |keys, stderr| {
        assert_eq!(keys, ["beside"]);
        assert!(stderr.contains(":data/aof/a.aof.2.base.rdb: the manifest beside it names it as the base"), "{stderr}");
    });
    // A base of commands, and a manifest that names none.
    let mut other = members.clone();
    other[3].2 = commands;
    everywhere(&tar(&other[1..]), 3, |keys, stderr| {
        assert!(keys.is_empty(), "{keys:?}");
        assert!(stderr.contains("an append-only file without an RDB part"), "{stderr}");
    });
    other[7].2 = b"file a.aof.2.incr.aof seq 2 type i\n";
    everywhere(&tar(&other), 3, |keys, stderr| {
        assert!(keys.is_empty(), "{keys:?}");
        assert!(stderr.contains("append-only file in data/aof: its manifest names no base"), "{stderr}");
    });
}

/// GNU tar writes holes in four ways; none is left out silently or taken for damage.
#[test]
fn members_that_are_stored_sparse() {
    let (sound, hidden) = (one_key("sound"), one_key("hidden"));
    let record = |name: &str, value: &str| {
        let len = name.len() + value.len() + 5;
        format!("{len:02} {name}={value}\n")
    };
    let with_pax = |records: &[String], name: &str, data: &[u8]| {
        let records = records.concat();
        let extension = [header("PaxHeaders/x", records.len(), b'x', USTAR), padded(records.as_bytes())].concat();
        [extension, header(name, data.len(), b'0', USTAR), padded(data)].concat()
    };
    // Map of one part in the header itself; with the flag at 482, in 512 bytes more.
    let mut old = header("old.rdb", hidden.len(), b'S', GNU);
    old[386..398].copy_from_slice(b"00000000000\0");
    old[398..410].copy_from_slice(format!("{:011o}\0", hidden.len()).as_bytes());
    old[483..495].copy_from_slice(format!("{:011o}\0", hidden.len()).as_bytes());
    let mut extended = old.clone();
    extended[482] = 1;
    let (old, extended) = (summed(old), summed(extended));
    let ways: [(&str, Vec<u8>); 5] = [
        ("old.rdb", [&old[..], &padded(&hidden)].concat()),
        ("old.rdb", [&extended[..], &[0; BLOCK], &padded(&hidden)].concat()),
        ("zero.rdb", with_pax(&[record("GNU.sparse.size", "99"), record("GNU.sparse.numblocks", "1")], "zero.rdb", &hidden)),
        (
            "one.rdb",
            with_pax(&[record("GNU.sparse.name", "one.rdb"), record("GNU.sparse.map", "0,99")], "GNUSparseFile.1/x", &hidden),
        ),
        (
            "two.rdb",
            with_pax(
                &[record("GNU.sparse.major", "1"), record("GNU.sparse.minor", "0"), record("GNU.sparse.name", "two.rdb")],
                "GNUSparseFile.2/x",
                &[padded(b"1\n0\n99\n"), hidden.clone()].concat(),
            ),
        ),
    ];
    for (name, member) in ways {
        let archive = [&header("first.rdb", sound.len(), b'0', USTAR), &padded(&sound)[..], &member, &END].concat();
        everywhere(&archive, 3, |keys, stderr| {
            assert_eq!(keys, ["sound"], "{name}");
            assert!(stderr.contains(&format!(":{name}: is stored sparse: unpack the archive, and give the file")), "{stderr}");
            assert!(!stderr.contains("damaged"), "{stderr}");
        });
    }
}

#[test]
fn an_archive_inside_an_archive() {
    let (inner, outer) = (one_key("inner"), one_key("outer"));
    for nested in [tar(&[("a.rdb", 1, &inner)]), gzip(&tar(&[("a.rdb", 1, &inner)]))] {
        everywhere(&tar(&[("monday.tar", 1, &nested), ("b.rdb", 1, &outer)]), 3, |keys, stderr| {
            assert_eq!(keys, ["outer"]);
            assert!(stderr.contains(":monday.tar: is an archive inside an archive: unpack the outer one"), "{stderr}");
        });
    }
}

/// Cut between two members it would look whole but for the blocks at its end.
#[test]
fn an_archive_without_its_end() {
    let (first, second) = (one_key("first"), one_key("second"));
    let whole = tar(&[("a.rdb", 1, &first), ("b.rdb", 1, &second)]);
    assert_eq!(whole.len(), 6 * BLOCK);
    for blocks in [2, 4] {
        everywhere(&whole[..blocks * BLOCK], 3, |keys, stderr| {
            assert_eq!(keys.len(), blocks / 2);
            assert!(stderr.contains("it may have been cut off between two members"), "{stderr}");
        });
        let report = TempDump::new(&whole[..blocks * BLOCK]).report(&[]);
        assert_eq!((report.run.code, report.total("partial_inputs")), (3, blocks as u64 / 2));
        assert!(report.table("inputs").iter().all(|input| input["partial"] == "true"));
    }
    everywhere(&whole[..5 * BLOCK], 0, |keys, stderr| {
        assert_eq!(keys, ["first", "second"]);
        assert!(!stderr.contains("cut off"), "{stderr}");
    });
}

/// Two archives one behind the other, as `cat` makes them.
#[test]
fn an_archive_behind_an_archive() {
    let archive = |name: &str| tar(&[(name, 1, &one_key(name))]);
    let filled = [&archive("first.rdb")[..], &[0; 7 * BLOCK]].concat();
    everywhere(&filled, 0, |keys, _| assert_eq!(keys, ["first.rdb"]));
    everywhere(&[&filled[..], &archive("second.rdb")].concat(), 3, |keys, stderr| {
        assert_eq!(keys, ["first.rdb"]);
        assert!(stderr.contains("another archive follows its end, and was not read"), "{stderr}");
    });
    everywhere(&[&filled[..], &[b'x'; BLOCK]].concat(), 0, |keys, _| assert_eq!(keys, ["first.rdb"]));
}

/// Archives of before 1988 have no magic, and one may begin with its name.
#[test]
fn archives_of_old_and_with_a_label() {
    let bytes = one_key("k");
    let old = [&header("dump.rdb", bytes.len(), 0, b""), &padded(&bytes)[..], &END].concat();
    let mut label = header("weekly backup", 0, b'V', GNU);
    // Neither mode nor size.
    label[100..108].fill(0);
    label[124..136].fill(0);
    let labelled = [&summed(label), &header("dump.rdb", bytes.len(), b'0', GNU), &padded(&bytes)[..], &END].concat();
    for archive in [old, labelled] {
        everywhere(&archive, 0, |keys, stderr| {
            assert_eq!(keys, ["k"]);
            assert!(!stderr.contains("left out"), "{stderr}");
        });
    }
}

/// The answer to DUMP that the documentation of RESTORE shows.
const PAYLOAD: &[u8] = &[0, 0xc0, 10, 10, 0, 0x6e, 0x9f, 0x57, 0x45, 0x0e, 0xae, 0x63, 0xbb];

#[test]
fn answers_to_dump_in_folders_and_archives() {
    let mut flipped = PAYLOAD.to_vec();
    flipped[1] ^= 1;
    let packed = gzip(PAYLOAD);
    let members: [(&str, &[u8]); 4] = [("a", PAYLOAD), ("b.gz", &packed), ("notes", b"\x01text"), ("damaged", &flipped)];
    let folder = TempDir::new().unwrap();
    for (name, bytes) in members {
        // The same dump is not to be given twice.
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join(name), bytes).unwrap();
        std::fs::write(place.join("dump.rdb"), one_key("k")).unwrap();
        let archived = TempDump::new(&tar(&[(name, 1, bytes), ("dump.rdb", 1, &one_key("k"))]));
        let is_dump = matches!(name, "a" | "b.gz");
        let of = |run: Run| {
            let run = run.ok();
            assert_eq!(run.stderr.contains("left out: no dumps"), !is_dump, "{name}: {}", run.stderr);
            read_csv(&run.stdout).1.len()
        };
        let expected = if is_dump { 2 } else { 1 };
        assert_eq!(of(run([Path::new("keys"), &place])), expected, "{name} in a folder");
        assert_eq!(of(archived.run_keys(&[])), expected, "{name} in an archive");
    }
}

/// A copy of an archive from standard input has no name, so that no way of ending leaves it.
#[cfg(target_os = "linux")]
#[test]
fn an_archive_on_standard_input_leaves_no_file() {
    use std::io::Write as _;
    use std::process::Stdio;

    let temporary = TempDir::new().unwrap();
    let archive = tar(&[("a.rdb", 1, &one_key("k")), ("large", 1, &[7; 4 << 20])]);
    let mut child = support::rdbscope()
        .args(["report", "-"])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than fits into the pipe: the copy has begun.
    stdin.write_all(&archive[..3 << 20]).unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// `ulimit -f` of four blocks is a full disk that any test can have.
#[cfg(unix)]
#[test]
fn a_copy_that_does_not_fit() {
    let archive = TempDump::new(&tar(&[("a.rdb", 1, &one_key("k")), ("large", 1, &[7; 4 << 20])]));
    let script = format!("ulimit -f 4; cat {} | {} report -", archive.path().display(), env!("CARGO_BIN_EXE_rdbscope"));
    let output = std::process::Command::new("sh").args(["-c", &script]).env("TMPDIR", "/tmp").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{stderr}");
    assert!(stderr.contains("rdbscope: standard input: is copied to a temporary file"), "{stderr}");
    assert!(stderr.contains("/tmp takes no more") && stderr.contains("set TMPDIR to a folder on another disk"), "{stderr}");
}

#[test]
fn an_append_only_folder_beside_a_dump() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("dump.rdb"), one_key("k")).unwrap();
    std::fs::create_dir(folder.path().join("appendonlydir")).unwrap();
    let report = Report::of([folder.path()]);
    assert_eq!(report.run.code, 0);
    assert!(
        report.run.stderr.contains("1 folder in it not looked into: give those that hold dumps, too"),
        "{}",
        report.run.stderr
    );
}
