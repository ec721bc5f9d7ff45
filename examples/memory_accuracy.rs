//! Prints how near memory figures are to the answers of the servers beside the dumps in `fixtures/truth`, or in the folders given, as the
//! table of `docs/memory-accuracy.md`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;

#[path = "../tests/support/accuracy.rs"]
#[allow(dead_code, missing_docs)]
mod accuracy;

use accuracy::Sums;

fn main() {
    let mut folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        folders.push(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/truth"));
    }
    let mut sums: BTreeMap<(String, String, String), Sums> = BTreeMap::new();
    for dump in folders.iter().flat_map(|folder| accuracy::all(folder)) {
        for key in &dump.keys {
            sums.entry((dump.server.clone(), key.key_type.clone(), key.encoding.clone())).or_default().add(key);
        }
    }
    println!("| server | type | encoding | keys | exact | within 3 % or 32 bytes | worst key | total |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for ((server, key_type, encoding), sums) in sums {
        let near = sums.near as f64 / sums.keys as f64;
        println!(
            "| {server} | {key_type} | {encoding} | {} | {:.2} % | {:.2} % | {:.2} % | {:.3} % |",
            sums.keys,
            100.0 * sums.exact_share(),
            100.0 * near,
            100.0 * sums.worst,
            100.0 * sums.total_error()
        );
    }
}
