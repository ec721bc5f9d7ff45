//! The whole census of a dump in a file, with one thread and with as many as there are cores.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/support/profiles.rs"]
mod profiles;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use profiles::Profile;
use rdbscope::analyse::{self, Dump, Options};
use rdbscope::input::Input;
use rdbscope::scan::ScanOptions;

/// Keys of the dump: about 50 MB.
const KEYS: u64 = 350_000;

fn benches(criterion: &mut Criterion) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let finished = Profile::SmallKv.write(file.reopen().unwrap(), KEYS, 1, true).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut group = criterion.benchmark_group("scan/smallkv");
    group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Bytes(finished.bytes));
    let mut thread_counts = vec![1, cores];
    thread_counts.dedup();
    for threads in thread_counts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for checksum in [true, false] {
            let options = Options { scan: ScanOptions { checksum, ..ScanOptions::default() }, ..Options::default() };
            let dumps = [Dump::new(Input::open(file.path()).unwrap(), &options).unwrap()];
            let name = format!("{threads} threads, {}", if checksum { "checksum" } else { "no checksum" });
            group.bench_function(name, |b| {
                b.iter(|| {
                    let (census, _) = pool.install(|| analyse::census(&dumps, &options, |_| ()));
                    assert_eq!(census.total().keys, KEYS);
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = benches
}
criterion_main!(all);
