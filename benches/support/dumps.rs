//! Dumps in memory, each of one kind of record: large enough to leave the caches, small enough for a short run.

use super::writer::{DumpWriter, Magic, Random};

/// Bytes of each dump, about.
const DUMP_BYTES: u64 = 16 << 20;

/// Every kind with its name.
pub fn all() -> [(&'static str, Vec<u8>); 3] {
    [("strings", strings()), ("hash listpacks", hash_listpacks()), ("hash tables", hash_tables())]
}

/// Strings of 20 to 180 bytes, half of them with an expiry.
fn strings() -> Vec<u8> {
    fill(|w, random, key| {
        let n = random.between(20, 180) as usize;
        let value = random.bytes(n);
        let record = w.key(key);
        if random.percent(50) {
            record.expires_at_ms(1_900_000_000_000).string(value)
        } else {
            record.string(value)
        };
    })
}

/// Hashes of ten fields in a listpack.
fn hash_listpacks() -> Vec<u8> {
    fill(|w, random, key| {
        let fields: Vec<_> = (0..10).map(|i| (format!("field-{i}"), random.below(1 << 40).to_string())).collect();
        w.key(key).hash_listpack(fields);
    })
}

/// Hashes of a thousand fields, each a string of its own.
fn hash_tables() -> Vec<u8> {
    fill(|w, random, key| {
        let fields = (0..1000u32).map(|i| (format!("field-{i}"), format!("value {:x}", random.next())));
        w.key(key).hash(fields);
    })
}

fn fill(mut record: impl FnMut(&mut DumpWriter<Vec<u8>>, &mut Random, &str)) -> Vec<u8> {
    let mut w = DumpWriter::in_memory(Magic::Redis(11));
    let mut random = Random::new(1);
    w.select_db(0);
    let mut i = 0;
    while w.offset() < DUMP_BYTES {
        record(&mut w, &mut random, &format!("prod:shop-{}:user:{i}", i % 97));
        i += 1;
    }
    w.into_bytes()
}
