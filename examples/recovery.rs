//! Breaks dumps whose keys are known, and counts what `--recover` brings back, and whether any of it is wrong.
//!
//! ```text
//! cargo run --profile mutate --example recovery -- --faults 12000 fixtures/truth/*.rdb
//! ```

#[path = "../tests/support/recovery.rs"]
mod recovery;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rayon::prelude::*;
use recovery::{KINDS, Original, Tally, try_once};
use writer::Random;

/// Breaks dumps and counts what is recovered.
#[derive(Debug, Parser)]
struct Args {
    /// Sound dumps.
    #[arg(required = true)]
    dumps: Vec<PathBuf>,
    /// How many faults of each kind.
    #[arg(long, default_value_t = 3000)]
    faults: u64,
    /// Places at which a dump is broken at once.
    #[arg(long, default_value_t = 1)]
    places: usize,
    /// Other seeds, other faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let originals: Vec<Original> = args
        .dumps
        .iter()
        .map(|path| Original::new(path.display().to_string(), std::fs::read(path).expect("the dump is there")))
        .filter(|original| !original.rows.is_empty())
        .collect();
    println!(
        "| fault | broke the structure | keys intact | read before it | recovered | of those behind it | wrong | left to the checksum |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut sum = Tally::default();
    for kind in KINDS {
        let of_one = |number: u64| {
            let mut random = Random::new(args.seed ^ Random::new(number << 2 | kind as u64).next());
            let original = random.pick(&originals);
            try_once(original, (kind, args.places), &mut random, |at, row| {
                eprintln!("{kind:?} {number}: {} at {at}: {row:?}", original.name)
            })
        };
        let add = |mut a: Tally, b: Tally| {
            a.add(&b);
            a
        };
        let tally = (0..args.faults).into_par_iter().map(of_one).reduce(Tally::default, add);
        line(&format!("{kind:?}").to_lowercase(), &tally);
        sum.add(&tally);
    }
    line("all", &sum);
    println!(
        "\nkeys up to a fault that are not as they were: {}; unnoticed in dumps without a checksum: {}",
        sum.kept_wrong, sum.unnoticed
    );
    if sum.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line(name: &str, tally: &Tally) {
    let Tally { faults, intact, kept, recovered, wrong, by_checksum, .. } = tally;
    let behind = intact.saturating_sub(*kept);
    let share = *recovered as f64 * 100.0 / behind.max(1) as f64;
    println!("| {name} | {faults} | {intact} | {kept} | {recovered} | {share:.1} % | {wrong} | {by_checksum} |");
}
