//! Damages dumps for as long as is wanted, and says what the walk over them did that it should not: panic, hang, take memory without bound,
//! count a record that was cut.
//!
//! ```text
//! cargo run --profile mutate --example mutate -- --cuts fixtures/truth/*-zoo.rdb
//! cargo run --profile mutate --example mutate -- --mutations 10000000 --seed 1 fixtures/*/*.rdb
//! cargo run --profile mutate --example mutate -- --write 4711 --seed 1 fixtures/*/*.rdb > input.rdb
//! ```
//!
//! The profile is that of a release with overflow checks. A cut is examined in the company of the head of its dump and of the record before
//! the one that it cuts: what is left of a dump of a megabyte would be the same a million times.

#[path = "../tests/support/examples.rs"]
mod examples;
#[path = "../tests/support/hostile.rs"]
mod hostile;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use hostile::{fault_of, mutation, on_one_thread, over};
use rdbscope::scan::Head;

/// Damages dumps and says what went wrong.
#[derive(Debug, Parser)]
struct Args {
    /// Dumps to damage.
    dumps: Vec<PathBuf>,
    /// How many mutations.
    #[arg(long, default_value_t = 0)]
    mutations: u64,
    /// Number of the first mutation.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Other seeds, other mutations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cut every dump at every byte.
    #[arg(long)]
    cuts: bool,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Leave out dumps above so many bytes.
    #[arg(long)]
    most_bytes: Option<usize>,
    /// Write the mutation of this number to standard output instead.
    #[arg(long)]
    write: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut inputs = hostile::read(args.dumps.iter().cloned());
    inputs.retain(|(_, bytes)| args.most_bytes.is_none_or(|most| bytes.len() <= most));
    if !args.cuts {
        inputs.extend(hostile::examples());
        inputs.push(("small".into(), hostile::small_dump()));
    }
    if let Some(number) = args.write {
        let (name, bytes) = mutation(args.seed, number, &inputs);
        eprintln!("mutation {number} of {name}");
        return if std::io::stdout().write_all(&bytes).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // What a panic says of itself is of interest, and where it was called from not a thousand times.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let begin = Instant::now();
    let until = args.seconds.map(Duration::from_secs);
    let executions = AtomicU64::new(0);
    let goes_on = || until.is_none_or(|until| begin.elapsed() < until);
    let findings = if args.cuts {
        inputs.iter().flat_map(|(name, bytes)| cuts(name, bytes, &args, &executions, &goes_on)).collect()
    } else {
        let run = |numbers: &mut dyn Iterator<Item = u64>| {
            let finding = |number: u64| {
                let (name, bytes) = mutation(args.seed, args.first + number, &inputs);
                executions.fetch_add(1, Ordering::Relaxed);
                fault_of(&bytes).err().map(|fault| format!("mutation {} of {name}: {fault}", args.first + number))
            };
            numbers.take_while(|_| goes_on()).filter_map(finding).collect::<Vec<_>>()
        };
        over(args.threads, args.mutations, run).concat()
    };
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "{} executions over {} dumps in {:.0} s, {} findings",
        executions.into_inner(),
        inputs.len(),
        begin.elapsed().as_secs_f64(),
        findings.len()
    );
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Cuts every record at every byte.
fn cuts(name: &str, bytes: &[u8], args: &Args, executions: &AtomicU64, goes_on: &(dyn Fn() -> bool + Sync)) -> Vec<String> {
    let head = match Head::read(bytes) {
        Ok(head) => &bytes[..head.end as usize],
        Err(fault) => return vec![format!("{name}: {fault}")],
    };
    let records = on_one_thread(|| hostile::examine(bytes)).records;
    let run = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut findings = Vec::new();
        for number in numbers {
            let (start, end, _) = records[number as usize];
            let (before, expected) = match number.checked_sub(1) {
                Some(last) => (records[last as usize].0, vec![records[last as usize].1 - records[last as usize].0]),
                None => (start, vec![]),
            };
            for cut in start..end {
                if !goes_on() {
                    return findings;
                }
                executions.fetch_add(1, Ordering::Relaxed);
                let input = [head, &bytes[before as usize..cut as usize]].concat();
                match fault_of(&input) {
                    Err(fault) => findings.push(format!("{name} cut at {cut}: {fault}")),
                    Ok(found) => {
                        let sizes: Vec<u64> = found.records.iter().map(|(start, end, _)| end - start).collect();
                        if sizes != expected || !found.is_damaged {
                            findings.push(format!("{name} cut at {cut}: {sizes:?} instead of {expected:?}"));
                        }
                    }
                }
            }
        }
        findings
    };
    over(args.threads, records.len() as u64, run).concat()
}
