//! Each stage behind the walk by itself, for one key or value: where the time of a census goes.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/support/writer.rs"]
mod writer;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rdbscope::census::{Census, ClassLimits, ClassStats, Histogram, ListLimits};
use rdbscope::classify::{Classifier, Discovery, Separators, Shape};
use rdbscope::contract::Contracts;
use rdbscope::contract::Ends;
use rdbscope::measure::{self, Encoding, Fact, Lifetime};
use rdbscope::rdb::packed::PackedForm;
use rdbscope::rdb::{KeyType, lzf};
use writer::{Lzf, Magic, Random};

/// Keys that each pass goes over, of the shapes that the generator's small strings have.
const KEYS: usize = 4096;

fn keys() -> Vec<Vec<u8>> {
    let mut random = Random::new(1);
    let mut key = |i: u64| match random.below(5) {
        0 => format!("prod:shop-{}:user:profile:{i}", random.below(500)),
        1 => format!("prod:shop-{}:session:{:024x}", random.below(500), random.next()),
        2 => format!("prod:{}:rate:user:{i}:{}", random.below(500), random.below(24)),
        3 => format!("cache:v1:product:{i}:detail"),
        _ => format!("cart:{{shop-{}:{i}}}:items", random.below(40)),
    };
    (0..KEYS as u64).map(|i| key(i).into_bytes()).collect()
}

fn facts(keys: &[Vec<u8>]) -> Vec<Fact<'_>> {
    let mut random = Random::new(2);
    keys.iter()
        .enumerate()
        .map(|(i, key)| {
            let value = random.between(20, 300);
            let left_ms = random.between(1, 1 << 30);
            let lifetime = if random.percent(60) { Lifetime::Volatile { left_ms: Some(left_ms) } } else { Lifetime::Permanent };
            Fact {
                offset: 150 * i as u64,
                db: 0,
                key,
                key_type: KeyType::String,
                encoding: Encoding::Raw,
                elements: None,
                payload_bytes: Some(value),
                largest_element_bytes: Some(value),
                longest_seen_bytes: value,
                serialized_bytes: value + key.len() as u64 + 12,
                memory_bytes: Some(value + key.len() as u64 + 64),
                uncounted_bytes: 0,
                expires_at_ms: None,
                lifetime,
                slot: measure::slot(key),
                idle_seconds: None,
                freq: None,
                field_expiry: None,
                stream: None,
                what_if: None,
            }
        })
        .collect()
}

fn by_key(criterion: &mut Criterion) {
    let keys = keys();
    let facts = facts(&keys);
    let separators = Separators::default();
    let mut group = criterion.benchmark_group("stages/key");
    group.throughput(Throughput::Elements(KEYS as u64));
    group.bench_function("slot", |b| {
        b.iter(|| keys.iter().map(|key| u64::from(measure::slot(black_box(key)))).sum::<u64>());
    });
    group.bench_function("shape", |b| {
        let mut shape = Shape::default();
        b.iter(|| {
            for key in &keys {
                shape.take(black_box(key), &separators);
                black_box(shape.text());
            }
        });
    });
    group.bench_function("class of a known shape", |b| {
        let mut classifier = Classifier::default();
        let mut classes = Discovery::<ClassStats>::default();
        b.iter(|| {
            for key in &keys {
                black_box(classes.class(classifier.classify(black_box(key)).key).0.counts.keys);
            }
        });
    });
    group.bench_function("add to a class", |b| {
        let mut class = ClassStats::default();
        b.iter(|| facts.iter().for_each(|fact| class.add(black_box(fact), Ends::default())));
    });
    group.bench_function("add to a census", |b| {
        let mut census = Census::new(ListLimits::default(), Arc::new(ClassLimits::new(None)));
        let mut classifier = Classifier::default();
        b.iter(|| facts.iter().for_each(|fact| census.add(black_box(fact), classifier.classify(fact.key))));
    });
    group.bench_function("histogram", |b| {
        let mut histogram = Histogram::default();
        b.iter(|| facts.iter().for_each(|fact| histogram.record(black_box(fact.serialized_bytes))));
    });
    group.finish();
}

/// Contracts of `classes` classes: the five that the keys belong to, and others beside them, for single tenants and of other services.
fn contracts(classes: usize) -> Arc<Contracts> {
    let all = [
        "<env>:<tenant>:user:profile:<digits>",
        "<env>:<tenant>:session:<hex>",
        "<env>:<digits>:rate:user:<digits>:<digits>",
        "cache:<version>:product:<digits>:detail",
        "cart:{<tenant>:<digits>}:items",
    ];
    let kinds = ["<digits>", "<uuid>", "<date>", "<slug>", "<digits>:<hour>"];
    let others = (0..).map(|i| match i % 5 {
        0 => format!("prod:shop-{i}:user:profile:<digits>"),
        1 => format!("prod:shop-{i}:session:<hex>"),
        2 => format!("<env>:<tenant>:service-{i}:{}", kinds[i / 5 % 5]),
        3 => format!("service-{i}:v1:item:{}", kinds[i / 5 % 5]),
        _ => format!("cache:v1:service-{i}:<digits>:detail"),
    });
    let mut text = String::from("[segments]\nenv = [\"prod\", \"staging\", \"dev\"]\ntenant = \"shop-<digits>\"\n");
    for (i, pattern) in all.into_iter().map(String::from).chain(others).take(classes).enumerate() {
        text.push_str(&format!("[[class]]\nname = \"c{i}\"\npattern = \"{pattern}\"\n"));
    }
    Arc::new(Contracts::parse(&text).unwrap())
}

fn by_contract(criterion: &mut Criterion) {
    let keys = keys();
    let mut group = criterion.benchmark_group("stages/contract");
    group.throughput(Throughput::Elements(KEYS as u64));
    for classes in [5, 500] {
        let contracts = contracts(classes);
        assert!(keys.iter().all(|key| contracts.class_of(key).is_some()), "every key is classified");
        group.bench_function(format!("one of {classes}"), |b| {
            b.iter(|| keys.iter().filter_map(|key| contracts.class_of(black_box(key))).sum::<usize>());
        });
    }
    group.finish();
}

fn by_value(criterion: &mut Criterion) {
    let items: Vec<String> = (0..100).map(|i| format!("field {i} of a hundred")).collect();
    let listpack = writer::listpack(&items);
    let ziplist = writer::ziplist(Magic::Redis(9), &items);
    let mut lzf = Lzf::new();
    let packed = lzf.compress(&listpack, listpack.len()).unwrap().to_vec();
    let mut group = criterion.benchmark_group("stages/value");
    group.bench_function("head of an LZF listpack", |b| {
        b.iter(|| {
            let mut head = [0; 10];
            lzf::decompress_head(black_box(&packed), &mut head);
            black_box(head)
        });
    });
    group.bench_function("count of a listpack header", |b| {
        b.iter(|| PackedForm::Listpack.count(black_box(&listpack[..10]), listpack.len() as u64));
    });
    group.throughput(Throughput::Bytes(listpack.len() as u64));
    group.bench_function("entries of a listpack", |b| {
        b.iter(|| PackedForm::Listpack.entries(black_box(&listpack), |entry| _ = black_box(entry.len())));
    });
    group.bench_function("entries of a ziplist", |b| {
        b.iter(|| PackedForm::Ziplist.entries(black_box(&ziplist), |entry| _ = black_box(entry.len())));
    });
    group.bench_function("whole of an LZF listpack", |b| {
        let mut out = Vec::new();
        b.iter(|| lzf::decompress(black_box(&packed), listpack.len(), &mut out));
    });
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(700));
    targets = by_key, by_contract, by_value
}
criterion_main!(all);
