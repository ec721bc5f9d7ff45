//! What is decoded takes no more memory than windows and the largest record do, whatever the bytes promise.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/stored.rs"]
mod stored;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rdbscope::analyse::{self, Dump, Options, Outcome};
use rdbscope::input::Input;
use rdbscope::scan::ScanOptions;
use support::{dump, string};

/// Bytes that are allocated, and the most that there were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    MOST.fetch_max(NOW.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

#[allow(unsafe_code)]
// SAFETY: every request is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while the bytes are copied.
        add(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test at a time: what is counted is the whole process's.
static ALONE: Mutex<()> = Mutex::new(());

const MB: usize = 1 << 20;

/// Windows of a megabyte.
const WINDOW: usize = MB;

/// What the census itself takes on two threads, with some pieces at work.
const CENSUS: usize = 48 * MB;

/// Scans what is stored, and returns how that ended and the most bytes that were allocated for it.
fn scanned(stored: Vec<u8>) -> (Outcome, usize) {
    let options = Options { scan: ScanOptions { window_bytes: WINDOW, ..ScanOptions::default() }, ..Options::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let dump = Dump::new(Input::in_memory(Path::new("dump"), stored).unwrap(), &options).unwrap();
    let (_, mut outcomes) = pool.install(|| analyse::census(&[dump], &options, |_| ()));
    let most = MOST.load(Ordering::Relaxed) - before;
    (outcomes.pop().unwrap(), most)
}

/// `front`, then zeros, compressed.
fn with_zeros(front: &[u8], zeros: u64) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(front).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(zeros), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn keys(n: u32) -> Vec<u8> {
    let record = |at: u32| [&[0][..], &string(format!("user:{at}").as_bytes()), &string(&[b'v'; 200])].concat();
    [vec![0xfe, 0], (0..n).flat_map(record).collect()].concat()
}

#[test]
fn a_gibibyte_behind_the_end() {
    let _alone = ALONE.lock();
    let bomb = with_zeros(&dump(b"REDIS0010", &keys(1000)), 1 << 30);
    assert!(bomb.len() < 200_000);
    let (outcome, most) = scanned(bomb);
    assert_eq!((outcome.passed.keys, outcome.trailing_bytes, outcome.end.fault), (1000, 1 << 30, None));
    assert!(most < CENSUS, "{most} bytes");
}

#[test]
fn a_hundred_megabytes_of_small_records() {
    let _alone = ALONE.lock();
    let bytes = dump(b"REDIS0010", &keys(500_000));
    assert!(bytes.len() > 100 * MB);
    let stored = stored::zstd(&bytes);
    drop(bytes);
    let (outcome, most) = scanned(stored);
    assert_eq!((outcome.passed.keys, outcome.end.window_grown_to), (500_000, None));
    assert!(most < CENSUS, "{most} bytes");
}

/// A length of 2^62 bytes, of which two megabytes come.
#[test]
fn a_length_is_not_believed() {
    let _alone = ALONE.lock();
    let absurd = [&[0, 1, b'k', 0x81][..], &(1u64 << 62).to_be_bytes(), &[7; 2 * MB]].concat();
    for stored in [stored::gzip, stored::zstd, stored::lz4] {
        let (outcome, most) = scanned(stored(&[&b"REDIS0010"[..], &keys(100), &absurd].concat()));
        assert_eq!(outcome.passed.keys, 100);
        let fault = outcome.end.fault.unwrap().to_string();
        assert!(fault.contains("it takes 4611686018427387916 bytes or more") && fault.contains("into a file"), "{fault}");
        assert!(most < CENSUS, "{most} bytes");
    }
}

/// One record of sixty megabytes takes a window that is at most twice as large, and no second one.
#[test]
fn a_large_record_takes_what_it_takes() {
    let _alone = ALONE.lock();
    let len = 60 * MB;
    let front = [&b"REDIS0010\xfe\0\0\x05large\x80"[..], &(len as u32).to_be_bytes()].concat();
    let (outcome, most) = scanned(with_zeros(&front, len as u64));
    assert_eq!((outcome.passed.keys, outcome.passed.serialized_bytes), (1, 12 + len as u64));
    let grown = outcome.end.window_grown_to.unwrap() as usize;
    assert!((len..2 * len + 2 * WINDOW).contains(&grown), "{grown}");
    // While it grows the allocator may hold the old and the new one.
    assert!(most < 3 * len + CENSUS, "{most} bytes");
}

/// A head that never ends is read to a limit.
#[test]
fn a_head_without_end() {
    let _alone = ALONE.lock();
    let field = [&[0xfa][..], &string(b"name"), &string(&[b'v'; 1000])].concat();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(b"REDIS0010").unwrap();
    for _ in 0..300_000 {
        encoder.write_all(&field).unwrap();
    }
    let (outcome, most) = scanned(encoder.finish().unwrap());
    assert_eq!(outcome.passed.keys, 0);
    assert!(outcome.end.bytes > 300_000_000);
    // 64 MiB of it, in memory that doubles.
    assert!(most < 3 * 64 * MB + CENSUS, "{most} bytes");
}
