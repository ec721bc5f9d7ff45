//! The walker beside the `rdb` crate on the same bytes. That crate decodes every value into memory, which is its purpose; the walker is
//! measured as it counts, and as it opens every packed value too.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/dumps.rs"]
mod dumps;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use rdb::{RdbDecoder, RdbValue, Simple};
use rdbscope::rdb::packed::Entry;
use rdbscope::rdb::{RecordHead, RecordTail, Role, Sink, Str};
use rdbscope::scan;

/// Counts keys and elements, and with `DEEP` opens every packed value.
#[derive(Default)]
struct Count<const DEEP: bool> {
    keys: u64,
    elements: u64,
    bytes: u64,
}

impl<const DEEP: bool> Sink for Count<DEEP> {
    fn text(&mut self, _role: Role, text: Str<'_>) {
        self.bytes += text.len();
    }

    fn opens(&self, _len: u64) -> bool {
        DEEP
    }

    fn entry(&mut self, _role: Role, entry: Entry<'_>) {
        self.bytes += entry.len();
    }

    fn end(&mut self, _head: &RecordHead<'_>, tail: &RecordTail) {
        self.keys += 1;
        self.elements += tail.elements.unwrap_or(0);
    }
}

fn walk<const DEEP: bool>(dump: &[u8]) -> (u64, u64) {
    let mut count = Count::<DEEP>::default();
    scan::walk(dump, &mut count).unwrap();
    black_box(count.bytes);
    (count.keys, count.elements)
}

/// The same through the `rdb` crate.
fn decode(dump: &[u8]) -> (u64, u64) {
    let (mut keys, mut elements) = (0, 0);
    for item in RdbDecoder::new(dump, Simple::new()).unwrap() {
        match item.unwrap() {
            RdbValue::String { .. } => keys += 1,
            RdbValue::Hash { values, .. } => {
                keys += 1;
                elements += values.len() as u64;
            }
            _ => {}
        }
    }
    (keys, elements)
}

fn benches(criterion: &mut Criterion) {
    for (name, dump) in dumps::all() {
        assert_eq!(walk::<false>(&dump), decode(&dump), "{name}");
        let mut group = criterion.benchmark_group(format!("peers/{name}"));
        group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Bytes(dump.len() as u64));
        group.bench_function("walker, counting", |b| b.iter(|| walk::<false>(black_box(&dump))));
        group.bench_function("walker, every entry", |b| b.iter(|| walk::<true>(black_box(&dump))));
        group.bench_function("rdb crate", |b| b.iter(|| decode(black_box(&dump))));
        group.finish();
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = benches
}
criterion_main!(all);
