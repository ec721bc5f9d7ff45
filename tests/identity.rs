//! Same input, same output; and every table adds up to the same totals.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::{Report, Row, all_dumps, fixtures, name, number, run, sum};
use tempfile::TempDir;

/// Larger dumps take long to run through again and again, and one of them stands for all.
const MOST_BYTES: u64 = 120_000;

/// What a run must never depend on: how many threads there are, and where a dump is cut.
const WAYS: [&[&str]; 5] = [
    &["--threads", "2"],
    &["--threads", "3"],
    &["--threads", "7"],
    &["--threads", "1", "--piece-bytes", "64"],
    &["--threads", "3", "--piece-bytes", "64"],
];

/// Everything that a run writes to files and, of keys, to standard output.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    report: BTreeMap<String, Vec<u8>>,
    keys: Vec<u8>,
}

/// The one file in which names of files may stand, without them.
fn without_names(manifest: &[u8]) -> serde_json::Value {
    let mut manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    for input in manifest["inputs"].as_array_mut().unwrap() {
        input["name"].take();
    }
    manifest
}

fn written(dumps: &[PathBuf], way: &[&str]) -> Written {
    let arguments = || dumps.iter().map(|path| path.to_str().unwrap()).chain(way.iter().copied());
    let report = Report::of(arguments());
    assert_eq!(report.run.code, 0, "{}", report.run.stderr);
    let keys = run(["keys", "--format", "csv"].into_iter().chain(arguments())).ok();
    Written { report: report.files, keys: keys.stdout }
}

#[track_caller]
fn assert_same(first: &Written, second: &Written, what: &str) {
    assert!(first.report.len() >= 9, "{what}: only {:?} were written", first.report.keys());
    assert!(first.report.keys().eq(second.report.keys()), "{what}: other files");
    for (file, bytes) in &first.report {
        if file == "manifest.json" {
            assert_eq!(without_names(bytes), without_names(&second.report[file]), "{what}");
        } else {
            assert!(second.report[file] == *bytes, "{what}: {file} differs");
        }
    }
    assert!(first.keys == second.keys, "{what}: the keys differ");
}

fn one_way_or_another(dumps: &[PathBuf], what: &str) {
    let first = written(dumps, &["--threads", "1"]);
    for way in WAYS {
        assert_same(&first, &written(dumps, way), &format!("{what} {way:?}"));
    }
}

#[test]
fn of_small_dumps_however_they_are_cut() {
    let small = |path: &PathBuf| path.metadata().unwrap().len() <= MOST_BYTES;
    let dumps: Vec<PathBuf> = all_dumps().into_iter().filter(small).collect();
    assert!(dumps.len() >= 25, "fixtures are missing");
    for dump in dumps {
        let name = name(&dump);
        one_way_or_another(&[dump], &name);
    }
}

#[test]
fn of_a_large_dump_however_it_is_cut() {
    one_way_or_another(&[fixtures().join("truth/redis-7.4.1-zoo.rdb")], "zoo");
}

#[test]
fn of_several_dumps_in_any_order_and_under_any_name() {
    // With and without keys, with and without a checksum, of two products.
    let dumps: Vec<PathBuf> =
        ["redis-7.0.15-lfu", "redis-8.2.3-nocrc", "valkey-9.1.2-cluster", "redis-7.0.15-empty", "redis-5.0.14-zoo"]
            .iter()
            .map(|name| fixtures().join(format!("truth/{name}.rdb")))
            .collect();
    let first = written(&dumps, &["--threads", "1"]);
    let mut reversed = dumps.clone();
    reversed.reverse();
    assert_same(&first, &written(&reversed, &["--threads", "3"]), "reversed");
    let mut turned = dumps.clone();
    turned.rotate_left(2);
    assert_same(&first, &written(&turned, &["--threads", "2", "--piece-bytes", "64"]), "turned");
    let folder = TempDir::new().unwrap();
    let copy = |(n, dump): (usize, &PathBuf)| {
        // Names in the opposite order of those they had.
        let path = folder.path().join(format!("{}.other", (b'z' - n as u8) as char));
        std::fs::copy(dump, &path).unwrap();
        path
    };
    let copies: Vec<PathBuf> = turned.iter().enumerate().map(copy).collect();
    assert_same(&first, &written(&copies, &["--threads", "7"]), "copies");
}

/// Columns that every way of grouping keys must add up in.
const SUMMED: [&str; 3] = ["keys", "memory_bytes", "serialized_bytes"];

/// Tables that group all keys.
const GROUPINGS: [&str; 4] = ["types", "databases", "classes", "slots"];

/// What adds up does so under a filter too; only the bytes that belong to no key do not.
fn reconcile_permanent(dump: &Path, whole: &Report) {
    let report = Report::of([dump.to_str().unwrap(), "--permanent"]);
    let dump_name = name(dump);
    for column in ["keys", "permanent_keys"] {
        assert_eq!(report.total(column), whole.total("permanent_keys"), "{dump_name}: {column}");
    }
    for column in ["memory_bytes", "permanent_memory_bytes"] {
        assert_eq!(report.total(column), whole.total("permanent_memory_bytes"), "{dump_name}: {column}");
    }
    assert_eq!((report.total("volatile_keys"), report.total("expired_keys")), (0, 0), "{dump_name}");
    for table in GROUPINGS {
        let rows = report.table(table);
        for column in SUMMED.iter().chain(&["elements", "permanent_keys"]) {
            assert_eq!(sum(&rows, column), report.total(column), "{dump_name}: {column} of {table} with --permanent");
        }
        if table == "classes" {
            assert_eq!(sum(&rows, "permanent_memory_bytes"), report.total("permanent_memory_bytes"), "{dump_name}");
        }
    }
    // A key may be in a class of another name when others are left out: less is widened and collapsed.
    let without_class = |report: &Report| -> Vec<Row> {
        let rows = report.table("permanent_keys").into_iter();
        rows.map(|mut row| {
            row.remove("class");
            row
        })
        .collect()
    };
    assert_eq!(without_class(&report), without_class(whole), "{dump_name}");
}

fn reconcile(dump: &Path) {
    let report = Report::of([dump]);
    reconcile_permanent(dump, &report);
    let dump_name = name(dump);
    assert_eq!(report.run.code, 0, "{dump_name}: {}", report.run.stderr);
    let total = |name: &str| report.total(name);
    assert_eq!(total("permanent_keys") + total("volatile_keys") + total("expired_keys"), total("keys"), "{dump_name}");
    for table in GROUPINGS {
        let rows = report.table(table);
        for column in SUMMED {
            assert_eq!(sum(&rows, column), total(column), "{dump_name}: {column} of {table}");
        }
        for column in ["permanent_keys", "expired_keys"] {
            assert_eq!(sum(&rows, column), total(column), "{dump_name}: {column} of {table}");
        }
        if table != "types" {
            let column = "expired_memory_bytes";
            assert_eq!(sum(&rows, column), total(column), "{dump_name}: {column} of {table}");
        }
        assert_eq!(sum(&rows, "elements"), total("elements"), "{dump_name}: elements of {table}");
    }
    assert_eq!(total("serialized_bytes") + total("framing_bytes"), total("dump_bytes"), "{dump_name}");
    assert_eq!(total("dump_bytes"), dump.metadata().unwrap().len(), "{dump_name}");
    reconcile_classes(&report, &dump_name);
    let permanent = report.table("permanent_keys");
    assert_eq!(permanent.len() as u64, total("permanent_keys").min(1000), "{dump_name}");
    let keys = run(["keys", dump.to_str().unwrap()]).ok();
    let keys = support::read_csv(&keys.stdout).1;
    assert_eq!(keys.len() as u64, total("keys"), "{dump_name}");
    assert_eq!(sum(&keys, "serialized_bytes"), total("serialized_bytes"), "{dump_name}");
    let modelled: Vec<Row> = keys.into_iter().filter(|row| !row["memory_bytes"].is_empty()).collect();
    assert_eq!(sum(&modelled, "memory_bytes"), total("memory_bytes"), "{dump_name}");
}

/// The lifetimes of a class add up to the class.
fn reconcile_classes(report: &Report, dump: &str) {
    let buckets = report.table("ttl_histogram");
    for class in report.table("classes") {
        let of_class: Vec<Row> = buckets.iter().filter(|row| row["class"] == class["class"]).cloned().collect();
        let bucket = |name: &str| {
            let found: Vec<Row> = of_class.iter().filter(|row| row["bucket"] == name).cloned().collect();
            sum(&found, "keys")
        };
        assert_eq!(sum(&of_class, "keys"), number(&class, "keys"), "{dump}: {class:?}");
        assert_eq!(sum(&of_class, "memory_bytes"), number(&class, "memory_bytes"), "{dump}: {class:?}");
        assert_eq!(bucket("none"), number(&class, "permanent_keys"), "{dump}: {class:?}");
        assert_eq!(bucket("expired"), number(&class, "expired_keys"), "{dump}: {class:?}");
    }
}

/// U67.
#[test]
fn u67_every_table_adds_up_to_the_totals() {
    for dump in all_dumps() {
        reconcile(&dump);
    }
}

#[test]
fn u67_the_list_of_permanent_keys_has_as_many_rows_as_it_can() {
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let of_limit = |limit: &str| {
        let report = Report::of([dump.to_str().unwrap(), "--permanent-limit", limit]);
        (report.table("permanent_keys").len() as u64, report.total("permanent_keys"))
    };
    // 3,257 keys of which 1,971 have an expiry, by the walk of the meta file.
    assert_eq!(of_limit("0"), (0, 1286));
    assert_eq!(of_limit("7"), (7, 1286));
    assert_eq!(of_limit("1000"), (1000, 1286));
    assert_eq!(of_limit("5000"), (1286, 1286));
}
