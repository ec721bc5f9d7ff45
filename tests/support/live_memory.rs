//! Memory of keys, and of all of them together, against what a live server says of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::accuracy::{self, Measured};
use crate::command;
use crate::live_data::DATABASES;
use crate::live_support::{Version, info_field};
use crate::resp::Connection;
use crate::{Facts, Place, ask_of_each, tables};

/// What the server says of the memory of each key.
pub fn memory(connection: &mut Connection, loaded: &BTreeMap<Place, Facts>) -> BTreeMap<Place, u64> {
    let mut memory = BTreeMap::new();
    for db in DATABASES {
        connection.run(&command!["SELECT", db.to_string()]);
        let keys: Vec<Vec<u8>> = loaded.keys().filter(|(at, _)| *at == db).map(|(_, key)| key.clone()).collect();
        let replies = ask_of_each(connection, &keys, |key| command!["MEMORY", "USAGE", key, "SAMPLES", "0"]);
        memory.extend(keys.into_iter().zip(replies).map(|(key, reply)| ((db, key), u64::try_from(reply.integer()).unwrap())));
    }
    memory
}

/// Holds memory by `rows` against what the server said of each key.
pub fn compare_memory(
    version: &Version,
    seed: u64,
    memory: &BTreeMap<Place, u64>,
    loaded: &BTreeMap<Place, Facts>,
    rows: &BTreeMap<Place, Map<String, Value>>,
) {
    let is_libc = version.is_valkey;
    let text = |facts: &Facts, column| facts[column].as_str().unwrap().to_string();
    // Memory of a module's values is the module's own affair: nothing is said of it.
    let (modules, modelled): (Vec<_>, Vec<_>) = memory.iter().partition(|(place, _)| loaded[*place]["type"] == "vectorset");
    for (place, _) in modules {
        assert_eq!(rows[place]["memory_bytes"], Value::Null, "{version}: {place:?}");
    }
    let keys: Vec<Measured> = modelled
        .into_iter()
        .map(|(place, theirs)| {
            let (key_type, encoding) = (text(&loaded[place], "type"), text(&loaded[place], "encoding"));
            let ours = rows[place]["memory_bytes"].as_u64();
            let elements = loaded[place].get("elements").and_then(Value::as_u64).unwrap_or(0);
            Measured { place: place.clone(), key_type, encoding, elements, ours, theirs: *theirs, is_libc }
        })
        .collect();
    for ((key_type, encoding), sums) in accuracy::by_encoding(&keys) {
        let (exact, worst) = (100.0 * sums.exact_share(), 100.0 * sums.worst);
        println!("live: {version}: {key_type} {encoding}: {} keys, {exact:.2} % exact, worst {worst:.2} %", sums.keys);
    }
    let misses = accuracy::misses(&keys, 0.05);
    assert!(misses.is_empty(), "{version}: memory, seed {seed}:\n{}", misses.join("\n"));
}

/// `used_memory` less what the server took before it held any data.
pub fn used_memory(connection: &mut Connection) -> u64 {
    let info = connection.run(&command!["INFO", "memory"]).text();
    let field = |name| info_field(&info, name).unwrap().parse::<u64>().unwrap();
    field("used_memory") - field("used_memory_startup")
}

/// What deleting the keys frees that have no place in a comparison with `used_memory`: values of modules, and streams where `MEMORY USAGE`
/// guesses at their radix trees.
pub fn free_unaccounted(connection: &mut Connection, version: &Version, loaded: &BTreeMap<Place, Facts>) -> u64 {
    let before = used_memory(connection);
    for db in DATABASES {
        connection.run(&command!["SELECT", db.to_string()]);
        let keys = loaded.iter().filter(|((at, _), facts)| *at == db && is_unaccounted(version, facts));
        connection.pipeline(&keys.map(|((_, key), _)| command!["DEL", key]).collect::<Vec<_>>());
    }
    before.saturating_sub(used_memory(connection))
}

fn is_unaccounted(version: &Version, facts: &Facts) -> bool {
    let guesses = !version.from([8, 4], [8, 1]);
    facts["type"] == "vectorset" || (guesses && facts["type"] == "stream")
}

/// Holds the sum over keys and the tables that hold them against `used`, for those keys of which it can be known.
pub fn compare_used_memory(
    version: &Version,
    dump: &Path,
    allocator: &str,
    used: u64,
    loaded: &BTreeMap<Place, Facts>,
    rows: &BTreeMap<Place, Map<String, Value>>,
) {
    let summary = tables(dump, "summary.csv", &["--allocator", allocator]);
    let total = |name: &str| summary.iter().find(|row| row["name"] == name).unwrap()["value"].parse::<u64>().unwrap();
    let memory = |place: &Place| rows[place]["memory_bytes"].as_u64().unwrap_or(0);
    let all: u64 = rows.keys().map(memory).sum();
    assert_eq!((total("memory_bytes"), total("expired_memory_bytes")), (all, 0), "{version}: the sum of all keys");
    let unaccounted: u64 =
        loaded.iter().filter(|(_, facts)| is_unaccounted(version, facts)).map(|(place, _)| memory(place)).sum();
    let ours = all - unaccounted + total("overhead_bytes");
    let off = 100.0 * (ours as f64 - used as f64) / used as f64;
    println!("live: {version}: keys and tables take {ours} bytes, used_memory says {used}, {off:+.3} %");
    // One percent, or 256 KiB where that is more.
    let allowed = (0.01 * used as f64).max(262_144.0);
    assert!(ours.abs_diff(used) as f64 <= allowed, "{version}: keys and tables take {ours}, the server {used}");
}
