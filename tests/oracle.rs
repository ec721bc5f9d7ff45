//! Held against another reader of the format, the crate `rdb`, which shares no code with this one.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use rdb::{RdbDecoder, RdbError, RdbValue, Simple};
use support::facts::{OwnedFact, facts, open};
use support::truth::Place;
use support::{all_dumps, name};

/// Dumps that the crate cannot read: it knows no magic but `REDIS`.
const UNREADABLE: [(&str, &str); 2] =
    [("valkey-9.1.2-cluster.rdb", "Not an RDB file"), ("valkey-9.1.2-zoo.rdb", "Not an RDB file")];

/// Types that the crate passes over without reporting their keys: streams and whatever modules define.
fn is_passed_over(key_type: &str) -> bool {
    !matches!(key_type, "string" | "list" | "set" | "zset" | "hash")
}

/// What both sides know of a key.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    key_type: String,
    /// Bytes of a string, elements of anything else.
    count: u64,
    /// Bytes of all elements, and of the longest.
    payload: (u64, u64),
    expires_at_ms: Option<i64>,
}

impl Known {
    fn new<'e>(key_type: &str, count: usize, elements: impl Iterator<Item = &'e Vec<u8>>, expiry: Option<u64>) -> Self {
        let lens: Vec<u64> = elements.map(|element| element.len() as u64).collect();
        Self {
            key_type: key_type.into(),
            count: count as u64,
            payload: (lens.iter().sum(), lens.into_iter().max().unwrap_or(0)),
            expires_at_ms: expiry.map(|at| at as i64),
        }
    }

    /// What the crate says of a key; `None` for what is no key.
    fn of_value(value: RdbValue) -> Option<(Vec<u8>, Self)> {
        Some(match value {
            RdbValue::String { key, value, expiry } => (key, Self::new("string", value.len(), [&value].into_iter(), expiry)),
            RdbValue::List { key, values, expiry } => (key, Self::new("list", values.len(), values.iter(), expiry)),
            RdbValue::Set { key, members, expiry } => (key, Self::new("set", members.len(), members.iter(), expiry)),
            RdbValue::Hash { key, values, expiry } => {
                let texts = values.iter().flat_map(|(field, value)| [field, value]);
                (key, Self::new("hash", values.len(), texts, expiry))
            }
            RdbValue::SortedSet { key, values, expiry } => {
                let members = values.iter().map(|(_, member)| member);
                (key, Self::new("zset", values.len(), members, expiry))
            }
            RdbValue::SelectDb(_) | RdbValue::ResizeDb { .. } | RdbValue::AuxField { .. } | RdbValue::Checksum(_) => return None,
        })
    }

    fn of_fact(fact: &OwnedFact) -> Self {
        let count = if fact.key_type == "string" { fact.payload_bytes } else { fact.elements };
        Self {
            key_type: fact.key_type.clone(),
            count: count.unwrap(),
            payload: (fact.payload_bytes.unwrap(), fact.largest_element_bytes.unwrap()),
            expires_at_ms: fact.expires_at_ms,
        }
    }
}

/// Every key that the crate reports.
fn by_the_crate(path: &Path) -> Result<BTreeMap<Place, Known>, RdbError> {
    let file = BufReader::new(File::open(path)?);
    let mut db = 0;
    let mut keys = BTreeMap::new();
    for value in RdbDecoder::new(file, Simple::new())? {
        match value? {
            RdbValue::SelectDb(n) => db = u64::from(n),
            value => {
                if let Some((key, known)) = Known::of_value(value) {
                    assert!(keys.insert((db, key), known).is_none(), "a key twice");
                }
            }
        }
    }
    Ok(keys)
}

#[test]
fn the_crate_reads_the_same_keys() {
    let mut unreadable = Vec::new();
    let mut compared = 0;
    for path in all_dumps() {
        let theirs = match by_the_crate(&path) {
            Ok(theirs) => theirs,
            Err(error) => {
                unreadable.push((name(&path), error.to_string()));
                continue;
            }
        };
        let (facts, _) = facts::<true>(&open(&path));
        let mut ours = BTreeMap::new();
        for fact in facts.iter().filter(|fact| !is_passed_over(&fact.key_type)) {
            ours.insert((fact.db, fact.key.clone()), Known::of_fact(fact));
        }
        for (place, known) in &theirs {
            assert_eq!(ours.get(place), Some(known), "{} {place:?}", name(&path));
        }
        assert_eq!(ours.len(), theirs.len(), "{}: keys that the crate has not", name(&path));
        compared += theirs.len();
    }
    let unreadable: Vec<_> = unreadable.iter().map(|(name, why)| (name.as_str(), why.split(':').next().unwrap())).collect();
    assert_eq!(unreadable, UNREADABLE);
    assert!(compared > 10_000, "only {compared} keys were compared");
}
