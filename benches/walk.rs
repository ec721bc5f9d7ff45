//! The walker alone, over dumps in memory: how fast record boundaries are found, and how fast everything is reported.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/dumps.rs"]
mod dumps;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use rdbscope::rdb::packed::PackedForm;
use rdbscope::rdb::{RecordHead, RecordTail, Role, Sink, Str};
use rdbscope::scan;

/// Wants the ends of records only.
struct Skim;

impl Sink for Skim {
    const SKIM: bool = true;
}

/// Adds up what a walk reports without opening packed values.
#[derive(Default)]
struct Sums {
    keys: u64,
    elements: u64,
    bytes: u64,
}

impl Sink for Sums {
    fn text(&mut self, _role: Role, text: Str<'_>) {
        self.bytes += text.len();
    }

    fn packed(&mut self, _form: PackedForm, len: u64, _entries: u64) {
        self.bytes += len;
    }

    fn end(&mut self, _head: &RecordHead<'_>, tail: &RecordTail) {
        self.keys += 1;
        self.elements += tail.elements.unwrap_or(0);
    }
}

fn walk(dump: &[u8], sink: &mut impl Sink) {
    scan::walk(dump, sink).unwrap();
}

fn benches(criterion: &mut Criterion) {
    for (name, dump) in dumps::all() {
        let mut group = criterion.benchmark_group(format!("walk/{name}"));
        group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Bytes(dump.len() as u64));
        group.bench_function("skim", |b| b.iter(|| walk(black_box(&dump), &mut Skim)));
        group.bench_function("sums", |b| {
            b.iter(|| {
                let mut sums = Sums::default();
                walk(black_box(&dump), &mut sums);
                black_box((sums.keys, sums.elements, sums.bytes))
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = benches
}
criterion_main!(all);
