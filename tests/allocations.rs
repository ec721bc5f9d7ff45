//! Records cost no allocation: what a census allocates grows with its classes, lists and pieces.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/writer.rs"]
mod writer;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use rdbscope::analyse::{self, Dump, Options};
use rdbscope::input::Input;
use writer::{DumpWriter, Magic};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[allow(unsafe_code)]
// SAFETY: every request is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn dump_of(keys: u64) -> tempfile::NamedTempFile {
    let mut dump = DumpWriter::in_memory(Magic::Redis(11));
    dump.select_db(0);
    for n in 0..keys {
        // Numbers in no order.
        let id = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34;
        let value = "v".repeat((id % 200) as usize);
        match n % 4 {
            0 => dump.key(&format!("shop-{}:user:profile:{id}", id % 900)).string(value),
            1 => dump.key(&format!("session:{:016x}", id << 20 | 0xabc)).expires_at_ms(1_900_000_000_000).string(value),
            2 => dump.key(&format!("cart:{{{id}}}:items")).set_listpack(["one", "two", "three"]),
            _ => dump.key(&format!("rank:{id}:weekly")).zset([("first", 0.5), ("second", 1.5)]),
        };
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&dump.into_bytes()).unwrap();
    file
}

fn allocations_for(keys: u64) -> u64 {
    let file = dump_of(keys);
    let options = Options::default();
    let dumps = [Dump::new(Input::open(file.path()).unwrap(), &options).unwrap()];
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let (census, _) = analyse::census(&dumps, &options, |_| ());
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(census.total().keys, keys);
    made
}

#[test]
fn a_million_more_records() {
    // The first fill the lists, in every piece of the first batch.
    let (few, many) = (allocations_for(1_500_000), allocations_for(2_500_000));
    let more = many.saturating_sub(few);
    println!("{few} allocations for 1.5 million records, {more} for a million more");
    assert!(more < 20_000, "{more} allocations for a million records more");
}
