//! Memory figures against what servers answered, key by key, and their sum against `used_memory`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

#[path = "support/accuracy.rs"]
#[allow(dead_code)]
mod accuracy;

use accuracy::{Accuracy, misses};
use support::{Report, TempDump, fixtures};

fn every_dump() -> Vec<Accuracy> {
    let all = accuracy::all(&fixtures().join("truth"));
    assert!(all.len() >= 25, "fixtures are missing");
    all
}

/// A table that was printed before a dump came would tell of others than there are.
#[test]
fn the_table_of_the_document_is_of_today() {
    let document = std::fs::read_to_string(fixtures().join("../docs/memory-accuracy.md")).unwrap();
    let printed: String = document.lines().filter(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    assert_eq!(accuracy::table(&[fixtures().join("truth")]), printed, "print it anew, with examples/memory_accuracy.rs");
}

#[test]
fn every_key_of_every_fixture() {
    let mut failures = Vec::new();
    for dump in every_dump() {
        failures.extend(misses(&dump.keys, 0.0).into_iter().map(|miss| format!("{}: {miss}", dump.name)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn keys_and_tables_add_up_to_used_memory() {
    for dump in every_dump() {
        // Module values are in the server's figure and not in ours.
        let Some(used) = dump.used.filter(|_| !dump.name.contains("modules") && !dump.name.contains("vectors")) else { continue };
        let mut args = vec![dump.path.to_str().unwrap()];
        if dump.options.server.allocator.is_some() {
            args.extend(["--allocator", "libc"]);
        }
        if dump.options.server.cluster == Some(true) {
            args.push("--cluster");
        }
        let report = Report::of(&args);
        let ours = report.total("memory_bytes") - report.total("expired_memory_bytes") + report.total("overhead_bytes");
        let allowed = (used / 100).max(256 << 10);
        assert!(ours.abs_diff(used) <= allowed, "{}: keys and tables take {ours}, the server {used}", dump.name);
    }
}

/// A dump of Redis 7.0 with `records`.
fn dump(records: &[u8]) -> TempDump {
    let mut bytes = b"REDIS0010\xfa\x09redis-ver\x067.0.15\xfe\x00".to_vec();
    bytes.extend(records);
    // No checksum.
    bytes.extend(b"\xff\0\0\0\0\0\0\0\0");
    TempDump::new(&bytes)
}

fn memory_of(dump: &TempDump, options: &[&str]) -> Vec<u64> {
    let arguments = [&["--columns", "memory_bytes"], options].concat();
    let rows = dump.run_keys(&arguments).ok();
    rows.text().lines().skip(1).map(|figure| figure.parse().unwrap()).collect()
}

#[test]
fn one_key_on_every_line_of_servers() {
    // A name of two bytes, a value of one; then one of 44 bytes.
    let mut records = b"\x00\x02k1\x01x\x00\x03k44\x2c".to_vec();
    records.extend([b'v'; 44]);
    let dump = dump(&records);
    for (options, expected) in [
        // As these versions answered: their own, an upgrade, the packaged jemalloc.
        (&["--server-version", "6.2.5"][..], [51, 94]),
        (&[], [56, 96]),
        (&["--server-version", "7.4"], [56, 96]),
        (&["--server-version", "8.2"], [32, 72]),
        (&["--allocator", "system"], [64, 96]),
        // Links between the keys of a slot.
        (&["--cluster"], [72, 112]),
        (&["--cluster", "--server-version", "7.2"], [56, 96]),
    ] {
        assert_eq!(memory_of(&dump, options), expected, "{options:?}");
    }
}

#[test]
fn a_mean_is_rounded_without_the_name() {
    // A set under a name of 100 bytes: 36 members of 50 bytes and one of 180. Debian's 7.0.15 answers 4103, one less than the sum.
    let mut records = b"\x02\x40\x64".to_vec();
    records.extend([b'k'; 100]);
    records.push(37);
    for i in 0..37 {
        // A length of more than 63 takes two bytes.
        let (len, rest) = if i == 0 { (&[0x40, 180][..], 178) } else { (&[50][..], 48) };
        records.extend(len);
        records.extend(format!("{i:02}{}", "m".repeat(rest)).bytes());
    }
    assert_eq!(memory_of(&dump(&records), &["--allocator", "system"]), [4103]);
}

#[test]
fn limits_of_a_configuration() {
    // A hash of one field and a value of seven bytes, packed.
    let dump = dump(b"\x10\x01h\x15\x15\0\0\0\x04\0\x81a\x02\x81b\x02\x81c\x02\x83ddd\x04\xff");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let packed = memory_of(&dump, &[]);
    // Key 8, entry 24, object 16, a listpack of 21 bytes.
    assert_eq!(packed, [8 + 24 + 16 + 24]);
    let one = write("one.conf", "port 6379\nhash-max-ziplist-entries 1\n");
    let two = write("two.conf", "hash-max-listpack-entries 2\n");
    // A table of four buckets, and two entries with strings of one and of three bytes.
    let table = [8 + 24 + 16 + 56 + 32 + 2 * 24 + 4 * 8];
    assert_eq!(memory_of(&dump, &["--server-config", &one]), table);
    assert_eq!(memory_of(&dump, &["--server-config", &two]), packed);
    // The contracts file names one too; the command line goes first.
    let contracts = write("contracts.toml", "[server]\nconfig = \"one.conf\"\nversion = \"7.0.15\"\nallocator = \"jemalloc\"\n");
    assert_eq!(memory_of(&dump, &["-c", &contracts]), table);
    assert_eq!(memory_of(&dump, &["-c", &contracts, "--server-config", &two]), packed);
    let system = memory_of(&dump, &["-c", &contracts, "--server-config", &two, "--allocator", "system"]);
    assert_eq!(system, [8 + 24 + 16 + 32]);
}

#[test]
fn wrong_options_are_named() {
    let dump = dump(b"\x00\x02k1\x01x");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redis.conf");
    std::fs::write(&path, "port 1\nhash-max-listpack-entries many\n").unwrap();
    let path = path.to_str().unwrap();
    let stderr = |options: &[&str]| dump.run_keys(options).ended_with(2).stderr;
    assert!(stderr(&["--server-config", path]).contains("redis.conf:2: hash-max-listpack-entries"));
    assert!(stderr(&["--server-config", "absent.conf"]).contains("absent.conf"));
    assert!(stderr(&["--server-version", "seven"]).contains("no server version"));
    assert!(stderr(&["--allocator", "mimalloc"]).contains("no allocator"));
    std::fs::write(folder.path().join("c.toml"), "[server]\nversion = \"new\"\n").unwrap();
    let contracts = folder.path().join("c.toml");
    assert!(stderr(&["-c", contracts.to_str().unwrap()]).contains("c.toml:2:11"));
}

#[test]
fn options_are_in_the_manifest() {
    let dump = dump(b"\x00\x02k1\x01x");
    let path = dump.path();
    let report = Report::of([path.to_str().unwrap(), "--allocator", "libc", "--server-version", "valkey-9.1", "--cluster"]);
    let manifest: serde_json::Value = serde_json::from_slice(&report.files["manifest.json"]).unwrap();
    let options = &manifest["options"];
    assert_eq!((&options["allocator"], &options["server_version"]), (&"libc".into(), &"Valkey 9.1".into()));
    assert_eq!((&options["cluster"], &options["server_config"]), (&true.into(), &serde_json::Value::Null));
}

#[test]
fn a_list_that_an_old_server_packed_stays_a_quicklist() {
    // Type 10 with two entries, as 2.4 writes it; 8.2.3 and Valkey 9.1.2 answer quicklist after loading it.
    let dump = dump(b"\x0a\x03l10\x11\x11\0\0\0\x0d\0\0\0\x02\0\0\x01a\x03\x01b\xff");
    let rows = dump.run_keys(&["--columns", "encoding,memory_bytes", "--server-version", "8.2.3"]).ok();
    assert_eq!(rows.text().lines().nth(1), Some("quicklist,120"));
}
