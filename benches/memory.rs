//! What the memory model costs, and what advice does that is worked out with it: the census of a dump with both, without advice, and with a
//! model that says the same of every key and adds nothing up.
//!
//! ```text
//! cargo bench --bench memory
//! cargo bench --bench memory -- dump.rdb other.rdb
//! ```
//!
//! They take turns on one thread, so that whatever else the machine does hits all; figures are medians.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/support/profiles.rs"]
mod profiles;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use profiles::Profile;
use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::census::{Census, ClassLimits, ListLimits};
use rdbscope::classify::Classifier;
use rdbscope::input::Input;
use rdbscope::measure::Fact;

/// Times that each goes over a dump.
const TURNS: usize = 40;

/// What a report does with the facts of each key.
struct Worker<const MEMORY: bool, const ADVICE: bool> {
    census: Census,
    classifier: Classifier,
    opens_above: u64,
}

impl<const MEMORY: bool, const ADVICE: bool> PieceSink for Worker<MEMORY, ADVICE> {
    const MEMORY: bool = MEMORY;
    const ADVICE: bool = ADVICE;

    fn opens(&self, len: u64) -> bool {
        len > self.opens_above
    }

    #[inline]
    fn fact(&mut self, fact: &Fact<'_>) {
        self.census.add(fact, self.classifier.classify(fact.key));
    }
}

/// One of those that take turns.
type Run = fn(&Dump, &Options) -> (u64, Duration);

/// Keys of a dump and the time that they took.
fn census<const MEMORY: bool, const ADVICE: bool>(dump: &Dump, options: &Options) -> (u64, Duration) {
    let limits = Arc::new(ClassLimits::new(None));
    let workers = Mutex::new(Vec::new());
    let worker = || Worker::<MEMORY, ADVICE> {
        census: Census::new(ListLimits::default(), Arc::clone(&limits)),
        classifier: Classifier::default(),
        opens_above: limits.smallest_member(),
    };
    let begin = Instant::now();
    analyse::walk_dump(dump, options, &workers, worker, |_| (), |(), _| ControlFlow::Continue(()));
    let keys = workers.into_inner().unwrap().iter().map(|worker| worker.census.total().keys).sum();
    (keys, begin.elapsed())
}

fn compare(name: &str, path: &Path) {
    let options = Options::default();
    let dump = Dump::new(Input::open(path).unwrap(), &options).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut times: [Vec<f64>; 3] = Default::default();
    pool.install(|| {
        for turn in 0..=TURNS {
            // Who goes second finds warmer caches.
            let mut runs: [(usize, Run); 3] =
                [(0, census::<false, false>), (1, census::<true, false>), (2, census::<true, true>)];
            runs.rotate_left(turn % 3);
            let mut keys = None;
            for (which, run) in runs {
                let (counted, time) = run(&dump, &options);
                assert_eq!(*keys.get_or_insert(counted), counted, "{name}: keys");
                // The first turn warms up.
                if turn > 0 {
                    times[which].push(time.as_secs_f64() * 1e3);
                }
            }
        }
    });
    let [without, model, advice] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[TURNS / 2]
    });
    let more = |with: f64| 100.0 * (with / without - 1.0);
    println!(
        "{name}: {without:.1} ms without, {model:.1} ms with the model ({:+.1} %), {advice:.1} ms with advice as well ({:+.1} %)",
        more(model),
        more(advice)
    );
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for path in &named {
        compare(path, path.as_ref());
    }
    if !named.is_empty() {
        return;
    }
    for (name, profile, keys) in
        [("smallkv", Profile::SmallKv, 350_000), ("mixed", Profile::Mixed, 60_000), ("bigvalues", Profile::BigValues, 100)]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        profile.write(file.reopen().unwrap(), keys, 1, true).unwrap();
        compare(name, file.path());
    }
}
