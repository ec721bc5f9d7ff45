//! Writes a large dump in seconds, for trying out and measuring.
//!
//! ```text
//! cargo run --release --example generate -- smallkv dump.rdb
//! cargo run --release --example generate -- mixed dump.rdb --keys 100000 --seed 7
//! ```
//!
//! The same arguments give the same bytes: all times count from a fixed moment, 2026-01-01, 00:00 UTC.
//!
//! - `smallkv`: strings only. User profiles without expiry (24 %), sessions of up to 14 days (28 %), rate limiters of up to two hours
//!   (20 %), a first version of a cache of which half lost its expiry (10 %), its second version of up to three days (17 %), and one
//!   percent that no contract knows: typing errors, bare numbers, binary keys. 10 million keys unless told otherwise.
//! - `mixed`: every type in every encoding that Redis 7.4 writes: carts, catalogues and profiles as hashes, orders of which one hash
//!   tag has most, feeds and job queues as lists, sets of numbers and of words, rankings, event streams with consumer groups, counters,
//!   flags, documents, bitmaps, hashes with field expiries. 1.5 million keys, and a two-hundredth of them in database 1.
//! - `bigvalues`: random blobs of 100 KB to 50 MB, and hashes, sorted sets, a set and a list of up to a million elements. 2,474 keys.

#[path = "../tests/support/profiles.rs"]
mod profiles;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use profiles::Profile;

/// Writes a large dump of realistic shape.
#[derive(Debug, Parser)]
struct Args {
    /// What the dump holds.
    profile: Name,
    /// File to write.
    out: PathBuf,
    /// Keys in the first database.
    #[arg(long)]
    keys: Option<u64>,
    /// Other data of the same shape.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave strings uncompressed, as with `rdbcompression no`.
    #[arg(long)]
    plain: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum Name {
    /// Small strings.
    SmallKv,
    /// Every type.
    Mixed,
    /// Large values.
    BigValues,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let profile = match args.profile {
        Name::SmallKv => Profile::SmallKv,
        Name::Mixed => Profile::Mixed,
        Name::BigValues => Profile::BigValues,
    };
    let started = Instant::now();
    let keys = args.keys.unwrap_or(profile.default_keys());
    match File::create(&args.out).and_then(|file| profile.write(file, keys, args.seed, !args.plain)) {
        Ok(finished) => {
            let seconds = started.elapsed().as_secs_f64();
            let megabytes = finished.bytes as f64 / 1e6;
            println!(
                "{}: {} keys, {megabytes:.0} MB in {seconds:.1} s, {:.0} MB/s",
                args.out.display(),
                finished.keys,
                megabytes / seconds
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", args.out.display());
            ExitCode::FAILURE
        }
    }
}
