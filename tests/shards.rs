//! Several dumps as one whole: listed, in folders, twice, of the same slots.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};

use support::{Report, T0, column, dump, fixtures, number, run, string, sum};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    fixtures().join(format!("truth/{name}.rdb"))
}

/// Three nodes as they would be collected from three machines.
const SHARDS: [&str; 3] = ["redis-7.0.15-lfu", "redis-8.2.3-nocrc", "redis-7.4.1-modules"];

fn copied(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .map(|name| {
            let path = folder.join(format!("{name}.rdb"));
            std::fs::copy(fixture(name), &path).unwrap();
            path
        })
        .collect()
}

#[track_caller]
fn same_tables(first: &Report, second: &Report) {
    assert_eq!((first.run.code, second.run.code), (0, 0), "{} {}", first.run.stderr, second.run.stderr);
    assert!(first.files.len() > 10);
    for (name, file) in first.files.iter().filter(|(name, _)| *name != "manifest.json") {
        assert!(second.files[name] == *file, "{name} differs");
    }
}

#[test]
fn a_folder_is_the_dumps_in_it() {
    let folder = TempDir::new().unwrap();
    let paths = copied(folder.path(), &SHARDS);
    // What is no dump is passed over: other files, and folders.
    std::fs::write(folder.path().join("nodes.conf"), "REDIS is not a header here").unwrap();
    std::fs::write(folder.path().join("short"), "REDIS").unwrap();
    std::fs::create_dir(folder.path().join("older")).unwrap();
    std::fs::copy(fixture("redis-7.0.15-lru"), folder.path().join("older/dump.rdb")).unwrap();
    let listed = Report::of(&paths);
    let whole = Report::of([folder.path()]);
    same_tables(&listed, &whole);
    let keys = |arguments: Vec<&Path>| run([Path::new("keys")].into_iter().chain(arguments)).ok().stdout;
    assert_eq!(keys(vec![folder.path()]), keys(paths.iter().map(PathBuf::as_path).collect()));
    // A folder and a dump beside it.
    let both = Report::of([folder.path(), &fixture("redis-7.0.15-lru")]);
    let all = Report::of(SHARDS.iter().map(|name| fixture(name)).chain([fixture("redis-7.0.15-lru")]));
    same_tables(&both, &all);
    assert_eq!(all.total("inputs"), 4);
}

#[test]
fn shards_add_up() {
    let whole = Report::of(SHARDS.map(fixture));
    let parts: Vec<Report> = SHARDS.map(|name| Report::of([fixture(name)])).into();
    for name in
        ["keys", "memory_bytes", "serialized_bytes", "elements", "permanent_keys", "expired_keys", "dump_bytes", "framing_bytes"]
    {
        assert_eq!(whole.total(name), parts.iter().map(|part| part.total(name)).sum::<u64>(), "{name}");
    }
    let inputs = whole.table("inputs");
    assert_eq!(sum(&inputs, "keys"), whole.total("keys"));
    for table in ["types", "databases", "classes", "slots"] {
        assert_eq!(sum(&whole.table(table), "serialized_bytes"), whole.total("serialized_bytes"), "{table}");
    }
}

#[test]
fn what_a_save_has_not_finished_is_left_out() {
    let folder = TempDir::new().unwrap();
    copied(folder.path(), &SHARDS[..1]);
    std::fs::copy(fixture("redis-7.0.15-lru"), folder.path().join("temp-4711.rdb")).unwrap();
    let report = Report::of([folder.path()]);
    assert_eq!((report.run.code, report.total("inputs")), (0, 1));
    let warning = report.run.stderr.lines().find(|line| line.contains("temp-4711.rdb")).unwrap();
    assert!(warning.starts_with("rdbscope: warning: ") && warning.contains("left out"), "{warning}");
    same_tables(&report, &Report::of([fixture(SHARDS[0])]));
}

#[test]
fn a_folder_without_dumps() {
    let folder = TempDir::new().unwrap();
    for add in [None, Some("notes.txt"), Some("temp-1.rdb")] {
        if let Some(name) = add {
            let bytes = if name == "notes.txt" { b"nothing".to_vec() } else { std::fs::read(fixture(SHARDS[0])).unwrap() };
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let report = Report::of([folder.path()]);
        assert_eq!(report.run.code, 3, "{add:?}");
        assert!(report.run.stderr.contains("no dump is in this folder"), "{}", report.run.stderr);
        assert_eq!((report.files.len(), report.run.text()), (0, ""));
        run(["keys", folder.path().to_str().unwrap()]).ended_with(3);
    }
}

#[test]
fn the_same_dump_twice() {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("other-name.rdb");
    // With a checksum to tell it by, and without.
    for name in ["redis-7.0.15-lfu", "redis-8.2.3-nocrc"] {
        std::fs::copy(fixture(name), &copy).unwrap();
        for second in [fixture(name), copy.clone(), folder.path().to_path_buf()] {
            let report = Report::of([fixture(name), second.clone(), fixture("redis-7.0.15-lru")]);
            assert_eq!(report.run.code, 3, "{second:?}");
            assert!(report.run.stderr.contains("the same dump as"), "{}", report.run.stderr);
            assert!(report.run.stderr.contains("give each once"), "{}", report.run.stderr);
            assert_eq!((report.files.len(), report.run.text()), (0, ""), "nothing looks whole");
            let keys = run([Path::new("keys"), &fixture(name), &second]).ended_with(3);
            assert_eq!(keys.text(), "");
        }
    }
}

#[test]
fn slots_that_two_nodes_hold() {
    // Each is one node that owns every slot; both name the 768 slots that have keys.
    let report = Report::of(["redis-7.4.1-cluster", "redis-8.2.3-cluster"].map(fixture));
    assert_eq!(report.run.code, 0);
    let warning = report.run.stderr.lines().find(|line| line.contains("both hold")).unwrap();
    let expected = "rdbscope: warning: redis-7.4.1-cluster.rdb and redis-8.2.3-cluster.rdb both hold 768 slots: keys in them may be \
                    counted twice";
    assert_eq!(warning, expected);
    // Without slot records there is nothing to tell.
    let silent = Report::of(["redis-7.0.15-cluster", "redis-8.2.3-cluster"].map(fixture));
    assert!(!silent.run.stderr.contains("both hold"), "{}", silent.run.stderr);
}

/// A dump of one key that expires at `expires_at` seconds, made at `ctime`.
fn made_at(ctime: i64, expires_at: i64, key: &str) -> Vec<u8> {
    let aux = [&[0xfa][..], &string(b"ctime"), &string(ctime.to_string().as_bytes())].concat();
    let record = [&[0xfd][..], &(expires_at as u32).to_le_bytes(), &[0], &string(key.as_bytes()), &string(b"v")].concat();
    dump(b"REDIS0010", &[&aux[..], &[0xfe, 0], &record].concat())
}

#[test]
fn each_dump_has_its_own_moment_and_ordinals_follow_content() {
    let folder = TempDir::new().unwrap();
    // The later one has the name that comes first, and the key of both expires between the two.
    for (name, ctime, key) in [("a.rdb", T0 + 3600, "late:1"), ("b.rdb", T0, "early:1"), ("c.rdb", T0 + 60, "mid:1")] {
        std::fs::write(folder.path().join(name), made_at(ctime, T0 + 600, key)).unwrap();
    }
    let paths = ["a.rdb", "b.rdb", "c.rdb"].map(|name| folder.path().join(name));
    let report = Report::of(&paths);
    let inputs = report.table("inputs");
    assert_eq!(column(&inputs, "input"), ["1", "2", "3"]);
    assert_eq!(column(&inputs, "snapshot_time"), ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T01:00:00Z"]);
    assert_eq!(column(&inputs, "snapshot_source"), ["ctime"; 3]);
    assert_eq!(["volatile_keys", "expired_keys"].map(|name| report.total(name)), [2, 1]);
    let big = report.table("big_keys");
    let of = |key: &str| {
        let row = support::row(&big, "key", key);
        (number(row, "input"), row["ttl_seconds"].clone())
    };
    assert_eq!([of("early:1"), of("mid:1"), of("late:1")], [(1, "600".into()), (2, "540".into()), (3, "-3000".into())]);
    // Another moment is that of all.
    let moved = Report::of([folder.path().to_str().unwrap(), "--as-of", "2026-01-01T02:00:00Z"]);
    assert_eq!(moved.total("expired_keys"), 3);
    assert_eq!(column(&moved.table("inputs"), "snapshot_source"), ["as-of"; 3]);
}

/// Names of files stand in one file alone, without their folders.
#[test]
fn names_of_files_stand_in_the_manifest() {
    let report = Report::of(SHARDS.map(fixture));
    let manifest: serde_json::Value = serde_json::from_slice(&report.files["manifest.json"]).unwrap();
    let inputs = manifest["inputs"].as_array().unwrap();
    let mut names: Vec<&str> = inputs.iter().map(|input| input["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let mut expected = SHARDS.map(|name| format!("{name}.rdb"));
    expected.sort_unstable();
    assert_eq!(names, expected);
    let folder = fixtures().to_str().unwrap().to_string();
    for (file, bytes) in &report.files {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains(&folder), "{file}");
        assert!(file == "manifest.json" || SHARDS.iter().all(|name| !text.contains(name)), "{file}");
    }
    let tables = manifest["tables"].as_array().unwrap();
    assert_eq!(tables.len(), report.files.len() - 1);
    for table in tables {
        let name = table["name"].as_str().unwrap();
        let (header, rows) = support::read_csv(&report.files[&format!("{name}.csv")]);
        assert_eq!(table["rows"].as_u64(), Some(rows.len() as u64), "{name}");
        let columns: Vec<&str> = table["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(columns, header, "{name}");
        assert!(table["columns"].as_array().unwrap().iter().all(|c| c["unit"].is_string()), "{name}");
    }
}
