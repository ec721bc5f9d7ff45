//! A scan guesses where records begin. Content made to mislead it costs time and changes nothing: every record is reported once,
//! in order, in its database, whatever the pieces and threads.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/writer.rs"]
mod writer;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rdbscope::rdb::{RecordHead, RecordTail, Sink};
use rdbscope::scan::{self, ChecksumState, Head, ScanEnd, ScanOptions};
use writer::{DumpWriter, Magic};

/// Database, key, and bytes of the record.
type Record = (u64, Vec<u8>, u64);

/// A dump, and the records that were written to it.
struct Written {
    dump: DumpWriter<Vec<u8>>,
    db: u64,
    records: Vec<Record>,
}

impl Written {
    fn new() -> Self {
        let mut dump = DumpWriter::in_memory(Magic::Redis(10));
        dump.select_db(0);
        Self { dump, db: 0, records: Vec::new() }
    }

    fn select(&mut self, db: u64) {
        self.dump.select_db(db);
        self.db = db;
    }

    fn string(&mut self, key: &str, value: &[u8]) {
        let written = self.dump.key(key).string(value);
        self.records.push((self.db, key.into(), written.serialized_bytes));
    }

    /// So many ordinary records.
    fn filler(&mut self, name: &str, n: usize) {
        for at in 0..n {
            let key = format!("{name}:{at}");
            let record = self.dump.key(&key);
            let record = if at % 3 == 0 { record.expires_at_ms(1_900_000_000_000 + at as i64) } else { record };
            let written = match at % 4 {
                0 => record.hash((0..at % 50).map(|field| (format!("field-{field}"), "value"))),
                1 => record.zset((0..at % 20).map(|member| (format!("member-{member}"), 0.25))),
                _ => record.string("v".repeat(at % 300)),
            };
            self.records.push((self.db, key.into_bytes(), written.serialized_bytes));
        }
    }

    /// Reads it back in pieces of many sizes on some threads, and returns the most records that were walked in vain.
    #[track_caller]
    fn check(self) -> usize {
        let bytes = self.dump.into_bytes();
        let mut in_vain = 0;
        for threads in 1..=3 {
            for piece_bytes in [700, 4096, 10_000, 65_536, 1 << 20, 1 << 30] {
                let (records, end, walked) = read(&bytes, piece_bytes, threads);
                in_vain = in_vain.max(walked - records.len());
                let what = format!("{threads} threads, pieces of {piece_bytes}");
                assert_eq!(end.fault, None, "{what}");
                assert_eq!(end.checksum, ChecksumState::Ok, "{what}");
                assert_eq!(end.stored_bytes, bytes.len() as u64, "{what}");
                assert!(records == self.records, "{what}: {} records of {}", records.len(), self.records.len());
            }
        }
        in_vain
    }
}

#[derive(Default)]
struct Reader(Vec<Record>);

impl Sink for Reader {
    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        self.0.push((head.db, head.key.to_vec(), tail.serialized_bytes));
    }
}

/// The records that count, how the scan ended, and how many records were walked.
fn read(bytes: &[u8], piece_bytes: u64, threads: usize) -> (Vec<Record>, ScanEnd, usize) {
    let head = Head::read(bytes).unwrap();
    let mut records = Vec::new();
    let walked = AtomicUsize::new(0);
    let work = |(): &mut (), piece: &scan::Piece<'_>| {
        let mut reader = Reader::default();
        // A piece whose beginning was guessed wrong ends in a fault, and counts for nothing.
        let _ = piece.walk(&mut reader);
        walked.fetch_add(reader.0.len(), Ordering::Relaxed);
        reader
    };
    let collect = |reader: Reader, _| {
        records.extend(reader.0);
        ControlFlow::Continue(())
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let options = ScanOptions { piece_bytes, ..ScanOptions::default() };
    let end = pool.install(|| scan::scan(bytes, &head, options, &Mutex::new(Vec::new()), || (), work, collect));
    (records, end, walked.into_inner())
}

#[test]
fn ordinary_records_in_several_databases() {
    let mut dump = Written::new();
    for db in 0..4 {
        dump.select(db);
        dump.filler(&format!("plain:{db}"), 700);
    }
    dump.check();
}

#[test]
fn a_dump_as_a_value() {
    let mut inner = Written::new();
    inner.filler("inner", 500);
    let inner = inner.dump.into_bytes();
    let mut dump = Written::new();
    dump.filler("before", 100);
    for at in 0..6 {
        dump.string(&format!("backup:{at}"), &inner);
        dump.filler(&format!("between:{at}"), at);
    }
    dump.filler("after", 100);
    assert!(dump.check() > 0, "nothing misled the scan");
}

#[test]
fn megabytes_of_zeros() {
    let mut dump = Written::new();
    dump.filler("before", 50);
    dump.string("bitmap", &vec![0; 3 << 20]);
    dump.filler("after", 50);
    dump.check();
}

#[test]
fn values_full_of_records() {
    // Plain ones, some that expire, and one kind that runs on into the record behind the value.
    let plain = b"\x00\x04fake\x03abc".repeat(20_000);
    let expiring = b"\xfc\x00\x00\x01\x02\x03\x04\x05\x06\x00\x04fake\x03abc".repeat(10_000);
    let mut running_on = plain.clone();
    running_on.extend(b"\x00\x04fake\x40\x60");
    let mut dump = Written::new();
    for (name, value) in [("plain", &plain), ("expiring", &expiring), ("running-on", &running_on)] {
        dump.filler(&format!("before:{name}"), 40);
        dump.string(name, value);
    }
    dump.filler("after", 100);
    assert!(dump.check() > 0, "nothing misled the scan");
}

#[test]
fn databases_selected_inside_a_value() {
    let fake = b"\xfe\x07\x00\x04fake\x03abc".repeat(10_000);
    let mut dump = Written::new();
    dump.filler("before", 40);
    dump.string("value", &fake);
    dump.filler("after", 40);
    dump.check();
}

#[test]
fn one_record_larger_than_a_batch() {
    let mut dump = Written::new();
    dump.filler("before", 30);
    let written = dump.dump.key("huge").hash((0..60_000).map(|field| (format!("field-{field}"), format!("value-{field}"))));
    dump.records.push((0, b"huge".to_vec(), written.serialized_bytes));
    dump.filler("after", 30);
    dump.check();
}

#[test]
fn keys_that_are_no_text() {
    let mut dump = Written::new();
    for at in 0..2000u32 {
        let key = [&at.to_be_bytes()[..], b"\xff\x00\x01"].concat();
        let written = dump.dump.key(&key).string("v".repeat(at as usize % 90));
        dump.records.push((0, key, written.serialized_bytes));
    }
    dump.check();
}

/// A dump that was cut, between records and inside one, holds what precedes the cut, and its end is missed.
#[test]
fn a_dump_that_was_cut() {
    let mut dump = Written::new();
    dump.filler("plain", 900);
    let records = dump.records;
    let bytes = dump.dump.into_bytes();
    let end_of_600 = 11 + records[..600].iter().map(|(_, _, bytes)| bytes).sum::<u64>();
    for (cut, whole) in [(end_of_600, 600), (end_of_600 + 5, 600), (11, 0), (9, 0)] {
        for piece_bytes in [700, 4096, 30_000, 1 << 30] {
            let (found, end, _) = read(&bytes[..cut as usize], piece_bytes, 2);
            assert!(end.fault.is_some_and(|fault| fault.is_truncation()), "cut at {cut}, pieces of {piece_bytes}");
            assert!(found == records[..whole], "cut at {cut}, pieces of {piece_bytes}: {} records", found.len());
        }
    }
}

/// What is read up to a fault, and the fault, do not depend on the pieces.
#[test]
fn a_fault_in_the_middle() {
    let mut dump = Written::new();
    dump.filler("plain", 900);
    let records = dump.records;
    let mut bytes = dump.dump.into_bytes();
    // The type byte of a record in the middle becomes one that no server has.
    let start: u64 = 11 + records[..600].iter().map(|(_, _, bytes)| bytes).sum::<u64>() + 9;
    assert_eq!(bytes[start as usize], 4, "record 600 expires and is a hash");
    bytes[start as usize] = 150;
    for threads in 1..=3 {
        for piece_bytes in [700, 4096, 30_000, 1 << 30] {
            let (found, end, _) = read(&bytes, piece_bytes, threads);
            assert_eq!(end.fault.map(|fault| fault.detail().offset), Some(start), "{threads} threads, pieces of {piece_bytes}");
            assert!(found == records[..600], "{threads} threads, pieces of {piece_bytes}: {} records", found.len());
        }
    }
}
