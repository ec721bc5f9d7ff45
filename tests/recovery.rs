//! What is behind a fault: which records are found there, which are not taken for records, and where they stand in the answers.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/recovery.rs"]
mod recovery;
mod support;
#[path = "support/writer.rs"]
mod writer;

use std::time::Instant;

use recovery::{KINDS, Kind, Original, Tally, try_once};
use support::{Report, TempDump, all_dumps, column, name, number, read_csv, row, run};
use writer::{DumpWriter, Magic, Random};

/// The study of `docs/reliability.md`, smaller.
#[test]
fn nothing_is_recovered_that_was_not_there() {
    let originals: Vec<Original> = all_dumps()
        .iter()
        .map(|path| Original::new(name(path), std::fs::read(path).unwrap()))
        .filter(|original| !original.rows.is_empty())
        .collect();
    let mut random = Random::new(7);
    // A second length that is damaged may leave a dump that can be read, of which nothing but the checksum could tell.
    let several = [(Kind::Zeros, 3), (Kind::Type, 3)];
    for (kind, places) in KINDS.map(|kind| (kind, 1)).into_iter().chain(several) {
        let mut sum = Tally::default();
        while sum.faults < 200 {
            let original = random.pick(&originals);
            let wrong = |at: u64, row: &recovery::Row| panic!("{kind:?} in {}: {row:?} at {at}", original.name);
            sum.add(&try_once(original, (kind, places), &mut random, wrong));
        }
        let behind = sum.intact - sum.kept;
        if kind == Kind::Cut {
            assert_eq!((behind, sum.recovered), (0, 0), "nothing is behind a cut");
        } else {
            // Between faults that are near each other nothing can be relied on.
            let least = if places == 1 { 9 } else { 7 };
            assert!(sum.recovered * 10 > behind * least, "{kind:?}, {places}: {} of {behind} keys recovered", sum.recovered);
        }
    }
}

/// 40 strings in database 0, 40 in database 3. Returns the dump, and where each record begins.
fn two_databases() -> (Vec<u8>, Vec<usize>) {
    let mut w = DumpWriter::in_memory(Magic::Redis(11));
    let mut starts = Vec::new();
    let mut bytes = 9;
    for db in [0, 3] {
        w.select_db(db);
        bytes += 2;
        for at in 0..40 {
            starts.push(bytes as usize);
            bytes += w.key(&format!("user:{db}{at:02}")).string(format!("value of {at:02}")).serialized_bytes;
        }
    }
    let dump = w.into_bytes();
    assert_eq!(dump.len() as u64, bytes + 9, "the offsets are counted right");
    (dump, starts)
}

/// The type of the eleventh key is one that no server has.
fn damaged() -> (TempDump, Vec<usize>) {
    let (mut dump, starts) = two_databases();
    dump[starts[10]] = 0x96;
    (TempDump::new(&dump), starts)
}

#[test]
fn without_being_asked_nothing_is_searched() {
    let (dump, starts) = damaged();
    let report = dump.report(&[]);
    assert_eq!(report.run.code, 3);
    assert_eq!(report.total("keys"), 10);
    assert!(!report.files.contains_key("recovered.csv") && !report.files.contains_key("skipped.csv"));
    let message = format!(
        "partial: 10 keys before byte {} were read, and the last of them may be damaged itself; --recover searches the",
        starts[10]
    );
    assert!(report.run.stderr.contains(&message), "{}", report.run.stderr);
}

/// The record in which the fault lies, and four behind it that cannot be relied on, are skipped.
#[test]
fn recovered_keys_stand_apart() {
    let (dump, starts) = damaged();
    let plain = dump.report(&[]);
    let report = dump.report(&["--recover"]);
    assert_eq!(report.run.code, 3);
    for (file, bytes) in plain.files.iter().filter(|(file, _)| file.ends_with(".csv")) {
        assert!(report.files[file] == *bytes, "{file} has what was recovered");
    }
    let skipped = report.table("skipped");
    assert_eq!(skipped.len(), 1);
    assert_eq!(number(&skipped[0], "input"), 1);
    assert_eq!(number(&skipped[0], "from_byte"), starts[10] as u64);
    assert_eq!(number(&skipped[0], "to_byte"), starts[15] as u64);
    assert_eq!(number(&skipped[0], "bytes"), (starts[15] - starts[10]) as u64);
    assert_eq!(number(&skipped[0], "recovered_keys"), 65);
    let recovered = report.table("recovered");
    let class = row(&recovered, "class", "user:<digits>");
    assert_eq!(number(class, "keys"), 65);
    assert_eq!(class["types"], "string:65");
    assert_eq!(class["example_key"], "user:015");
    let message = format!("skipped bytes {} to {}; recovered 65 keys behind them, up to byte", starts[10], starts[15] - 1);
    assert!(report.run.stderr.contains(&message), "{}", report.run.stderr);
    assert!(report.run.text().contains("Recovered  65 keys behind faults"), "{}", report.run.text());
}

/// The database is not known until one is selected.
#[test]
fn rows_of_recovered_keys_are_marked_where_that_is_asked_for() {
    let (dump, _) = damaged();
    let run = dump.run_keys(&["--recover", "--columns", "db,key,recovered"]).ended_with(3);
    let (_, rows) = read_csv(&run.stdout);
    assert_eq!(rows.len(), 10 + 65);
    let expected = (0..10)
        .map(|at| format!("0 user:0{at:02} false"))
        .chain((15..40).map(|at| format!("? user:0{at:02} true")))
        .chain((0..40).map(|at| format!("3 user:3{at:02} true")));
    let found: Vec<String> = rows.iter().map(|row| format!("{} {} {}", row["db"], row["key"], row["recovered"])).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
    let (header, rows) = read_csv(&dump.run_keys(&["--recover"]).ended_with(3).stdout);
    assert!(!header.contains(&"recovered".into()), "{header:?}");
    assert_eq!(rows.len(), 75);
    let in_3 = dump.run_keys(&["--recover", "--db", "3", "--columns", "key"]).ended_with(3);
    assert_eq!(read_csv(&in_3.stdout).1.len(), 40, "an unknown database is none that was asked for");
}

#[test]
fn verify_goes_on_behind_a_fault() {
    let (dump, _) = damaged();
    let run = run(["verify".as_ref(), "--recover".as_ref(), dump.path().as_os_str()]).ended_with(3);
    assert!(run.text().contains("1 fault, 10 keys read, 65 recovered"), "{}", run.text());
}

/// Between two faults a chain of 24 records is enough; the last four, which may be what the second fault made of a value, are left out.
#[test]
fn on_to_the_next_fault_and_again() {
    let (mut dump, starts) = two_databases();
    dump[starts[4]] = 0x96;
    dump[starts[50]] = 0x96;
    let dump = TempDump::new(&dump);
    let run = dump.run_keys(&["--recover", "--columns", "key"]).ended_with(3);
    let (_, rows) = read_csv(&run.stdout);
    let expected: Vec<String> =
        (0..4).chain(9..46).chain(55..80).map(|at| format!("user:{}{:02}", at / 40 * 3, at % 40)).collect();
    assert_eq!(column(&rows, "key"), expected);
    let report = dump.report(&["--recover"]);
    assert_eq!(column(&report.table("skipped"), "recovered_keys"), ["37", "25"]);
}

#[test]
fn a_sound_dump_has_nothing_to_recover() {
    let (dump, _) = two_databases();
    let report = TempDump::new(&dump).report(&["--recover"]);
    assert_eq!(report.run.code, 0, "{}", report.run.stderr);
    assert!(report.table("recovered").is_empty() && report.table("skipped").is_empty());
}

/// A dump that is a value ends, and more follows: its records are none of this dump's.
#[test]
fn a_dump_inside_a_damaged_value_is_not_recovered() {
    let (inner, _) = two_databases();
    let mut w = DumpWriter::in_memory(Magic::Redis(11));
    w.select_db(0);
    for at in 0..5 {
        w.key(&format!("before:{at}")).string("value");
    }
    w.key("backup").string(&inner);
    for at in 0..40 {
        w.key(&format!("after:{at:02}")).string("value");
    }
    let mut dump = w.into_bytes();
    let at = dump.windows(6).position(|window| window == b"backup").unwrap() - 2;
    dump[at] = 0x96;
    let run = TempDump::new(&dump).run_keys(&["--recover", "--columns", "key"]).ended_with(3);
    let (_, rows) = read_csv(&run.stdout);
    let expected: Vec<String> =
        (0..5).map(|at| format!("before:{at}")).chain((4..40).map(|at| format!("after:{at:02}"))).collect();
    assert_eq!(column(&rows, "key"), expected);
}

/// Whatever is behind a fault, searching it takes time in proportion to the file.
#[test]
fn the_search_takes_no_longer_than_the_file_is_long() {
    const BYTES: usize = 4 << 20;
    let head = b"REDIS0011\xfe\x00\x00\x04good\x01v\x96";
    let mut random = Random::new(3);
    // Records that break off after 30, hashes and sets in which every byte begins another, strings that pretend to be long, values that
    // describe themselves without end, and noise.
    let patterns = [
        ("records", [&b"\x00\x04fake\x03abc".repeat(30)[..], b"\x97"].concat()),
        ("hashes", b"\x04\x01a\x80\x00\x0f\x00\x00".to_vec()),
        ("sets", b"\x02\x01a\x80\x00\x20\x00\x00".to_vec()),
        ("strings", b"\x00\x01a\x80\x00\x01\x00\x00".to_vec()),
        ("modules", [&b"\x07\x01a\x81\x4e\x8a\x4a\xf9\x36\x0f\x10\x00"[..], &b"\x02\x01".repeat(2000)].concat()),
        ("noise", random.bytes(1 << 16)),
    ];
    for (what, pattern) in patterns {
        let mut dump = head.to_vec();
        while dump.len() < BYTES {
            dump.extend_from_slice(&pattern);
        }
        let dump = TempDump::new(&dump);
        let begin = Instant::now();
        let path = dump.path();
        let report = Report::of([path.as_os_str(), "--recover".as_ref()]);
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("{what}: {seconds:.2} s");
        assert_eq!(report.run.code, 3);
        assert_eq!(report.total("keys"), 1, "{what}");
        assert!(seconds < 30.0, "{what}: {seconds} s");
    }
}
