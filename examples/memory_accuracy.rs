//! Prints how near memory figures are to the answers of the servers beside the dumps in `fixtures/truth`, or in the folders given, as the
//! table of `docs/memory-accuracy.md`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;

#[path = "../tests/support/accuracy.rs"]
#[allow(dead_code, missing_docs)]
mod accuracy;

fn main() {
    let mut folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        folders.push(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/truth"));
    }
    print!("{}", accuracy::table(&folders));
}
