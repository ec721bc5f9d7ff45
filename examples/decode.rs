//! Decodes a dump to nothing, with the decoders and the windows that a scan reads from: the least time that a report of it can
//! take.
//!
//! ```text
//! cargo run --release --example decode -- dump.rdb.zst
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rdbscope::input::{Input, WINDOW_BYTES};

/// Decodes a dump to nothing.
#[derive(Debug, Parser)]
struct Args {
    /// The dump, however it is stored; - for standard input.
    dump: PathBuf,
}

fn main() -> ExitCode {
    let Args { dump } = Args::parse();
    let input = match Input::open(&dump) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("{}: {error}", dump.display());
            return ExitCode::FAILURE;
        }
    };
    let mut windows = input.windows(WINDOW_BYTES);
    let (mut bytes, mut passed) = (0u64, 0);
    loop {
        let window = windows.next(passed, 0);
        passed = window.bytes.len();
        bytes += passed as u64;
        if window.is_last {
            if let Some(fault) = window.fault {
                eprintln!("{}: {fault}", dump.display());
                return ExitCode::FAILURE;
            }
            println!("{bytes} bytes");
            return ExitCode::SUCCESS;
        }
    }
}
