//! Memory of single-purpose keys around every limit, as servers answered after loading them: `fixtures/memory`, a row a key.
//!
//! The keys are written anew from their sizes, which is all that their memory depends on, in the records that leave the encoding to the
//! loader.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

#[path = "support/accuracy.rs"]
#[allow(dead_code)]
mod accuracy;

use std::collections::BTreeMap;

use accuracy::{Measured, misses};
use base64::Engine as _;
use support::{Row, TempDump, fixtures, read_csv};

/// A length as dumps write it.
fn length(n: usize) -> Vec<u8> {
    match n {
        0..64 => vec![n as u8],
        64..16_384 => vec![0x40 | (n >> 8) as u8, n as u8],
        _ => [&[0x80][..], &u32::try_from(n).unwrap().to_be_bytes()].concat(),
    }
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [length(bytes.len()), bytes.to_vec()].concat()
}

/// A text of `len` bytes that begins with the digits of `n`.
fn padded(n: usize, digits: usize, pad: u8, len: usize) -> Vec<u8> {
    let mut text = format!("{n:0digits$x}").into_bytes();
    text.resize(len, pad);
    text
}

/// Type byte and value for a row; `None` for one that is not written anew.
fn value(row: &Row) -> Option<Vec<u8>> {
    let number = |name: &str| row[name].parse::<usize>().unwrap_or(0);
    let (n, len) = (number("n"), number("elem_len"));
    if row["encoding"] == "int" || !row["note"].is_empty() {
        return None;
    }
    let member = |at| text(&padded(at, 5, b'm', len));
    let of_all =
        |byte: u8, element: &dyn Fn(usize) -> Vec<u8>| Some([vec![byte], length(n), (0..n).flat_map(element).collect()].concat());
    match &*row["type"] {
        "string" => Some([vec![0], text(&vec![b'v'; n])].concat()),
        _ if len < 5 => None,
        "set" => of_all(2, &member),
        "hash" => {
            let value = text(&vec![b'v'; number("value_len")]);
            of_all(4, &|at| [member(at), value.clone()].concat())
        }
        "zset" => of_all(5, &|at| [member(at), (at as f64).to_le_bytes().to_vec()].concat()),
        _ => None,
    }
}

fn compare(version: &str, options: &[&str], fewest: usize) {
    let path = fixtures().join(format!("memory/memory-usage-{version}.csv"));
    let (_, rows) = read_csv(&std::fs::read(path).unwrap());
    let mut dump = b"REDIS0010\xfe\x00".to_vec();
    let mut written = BTreeMap::new();
    for row in &rows {
        let key_len: usize = row["key_len"].parse().unwrap();
        let Some(value) = value(row).filter(|_| key_len >= 6) else { continue };
        let key = padded(written.len(), 6, b'k', key_len);
        if row["ttl"] == "1" {
            dump.push(252);
            dump.extend(4_102_444_800_000i64.to_le_bytes());
        }
        dump.push(value[0]);
        dump.extend(text(&key));
        dump.extend(&value[1..]);
        written.insert(key, row);
    }
    dump.extend(b"\xff\0\0\0\0\0\0\0\0");
    let run =
        TempDump::new(&dump).run_keys(&[&["--format", "jsonl", "--quiet", "--server-version", version], options].concat()).ok();
    let mut keys = Vec::new();
    for line in run.text().lines() {
        let ours: serde_json::Value = serde_json::from_str(line).unwrap();
        let key = base64::engine::general_purpose::STANDARD.decode(ours["key_b64"].as_str().unwrap()).unwrap();
        let row = written[&key];
        assert_eq!(ours["encoding"], row["encoding"].as_str(), "{row:?}");
        keys.push(Measured {
            place: (0, row.values().cloned().collect::<Vec<_>>().join(",").into_bytes()),
            key_type: row["type"].clone(),
            encoding: row["encoding"].clone(),
            elements: ours["elements"].as_u64().unwrap_or(0),
            ours: ours["memory_bytes"].as_u64(),
            theirs: row["memory_usage"].parse().unwrap(),
            is_libc: options.contains(&"libc"),
        });
    }
    assert!(keys.len() >= fewest, "only {} keys", keys.len());
    let misses = misses(&keys, 0.02);
    assert!(misses.is_empty(), "{version}:\n{}", misses.join("\n"));
    // Not one may be off, of those that the file decides.
    let wrong: Vec<String> = keys.iter().filter(|key| key.is_decidable() && !key.is_exact()).map(Measured::describe).collect();
    assert!(wrong.is_empty(), "{version}: {}", wrong.join("\n"));
}

#[test]
fn redis_7_0() {
    compare("7.0.15", &[], 4000);
}

#[test]
fn redis_7_4() {
    compare("7.4.1", &[], 4000);
}

#[test]
fn redis_8_2() {
    compare("8.2.3", &[], 4000);
}

#[test]
fn valkey_9_1() {
    compare("valkey-9.1.2", &["--allocator", "libc"], 4000);
}
