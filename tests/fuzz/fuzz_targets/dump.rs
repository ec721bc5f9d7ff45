//! A whole dump: to a census, and to facts with every packed value opened.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use libfuzzer_sys::fuzz_target;
use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::input::Input;
use rdbscope::measure::Fact;

#[derive(Default)]
struct Count(u64);

impl PieceSink for Count {
    const DEEP: bool = true;

    fn fact(&mut self, _fact: &Fact<'_>) {
        self.0 += 1;
    }
}

/// One thread: an input must behave alike each time.
fn pool() -> &'static rayon::ThreadPool {
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread"))
}

fuzz_target!(|bytes: &[u8]| {
    // What is compressed may be a long time coming.
    if rdbscope::rdb::header(bytes).is_err() {
        return;
    }
    let options = Options::default();
    let Ok(input) = Input::in_memory(Path::new("dump.rdb"), bytes.to_vec()) else { return };
    let Ok(dump) = Dump::new(input, &options) else { return };
    let dumps = [dump];
    pool().install(|| {
        let (_, outcomes) = analyse::census(&dumps, &options, |_| ());
        let mut keys = 0;
        let outcome = analyse::walk_dump(
            &dumps[0],
            &options,
            &Mutex::new(Vec::new()),
            Count::default,
            |worker| std::mem::take(&mut worker.0),
            |piece, _| {
                keys += piece;
                ControlFlow::Continue(())
            },
        );
        assert_eq!(keys, outcomes[0].passed.keys);
        assert_eq!(outcome.passed.serialized_bytes + outcome.passed.framing_bytes, outcome.end.bytes);
    });
});
