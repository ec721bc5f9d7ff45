//! Held against another reader of the format, the crate `rdb`, which shares no code with this one.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/writer.rs"]
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};

use proptest::prelude::*;
use rdb::{RdbDecoder, RdbError, RdbValue, Simple};
use support::facts::{OwnedFact, facts, open};
use support::truth::Place;
use support::{TempDump, all_dumps, name};
use writer::{DumpWriter, ListNode, Magic, listpack, ziplist};

/// Dumps that the crate cannot read: it knows no magic but `REDIS`.
const UNREADABLE: [(&str, &str); 3] = [
    ("valkey-9.1.2-cluster.rdb", "Not an RDB file"),
    ("valkey-9.1.2-contracts.rdb", "Not an RDB file"),
    ("valkey-9.1.2-zoo.rdb", "Not an RDB file"),
];

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
fn by_the_crate(dump: impl Read) -> Result<BTreeMap<Place, Known>, RdbError> {
    let mut db = 0;
    let mut keys = BTreeMap::new();
    for value in RdbDecoder::new(BufReader::new(dump), Simple::new())? {
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
        let theirs = match by_the_crate(File::open(&path).unwrap()) {
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

/// A text that is a word, a number of any width, or long enough to be compressed.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..70),
        3 => (any::<i64>(), 0u32..64).prop_map(|(n, shift)| (n >> shift).to_string().into_bytes()),
        1 => ("[ab]{1,3}", 1usize..3000).prop_map(|(word, n)| word.repeat(n).into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every packed form, plain and compressed, as the writer of the tests encodes it.
    #[test]
    fn the_crate_reads_what_the_writer_writes(
        texts in prop::collection::btree_set(text(), 1..60),
        integers in prop::collection::btree_set((any::<i64>(), 0u32..64).prop_map(|(n, shift)| n >> shift), 1..60),
        scores in prop::collection::vec(-1_000_000i32..1_000_000, 60),
        compress: bool,
        // Of packed forms that came later, the crate knows those of every version.
        is_old: bool,
    ) {
        let magic = Magic::Redis(if is_old { 9 } else { 11 });
        let mut w = DumpWriter::in_memory(magic);
        w.compress(compress).select_db(0);
        let texts: Vec<&Vec<u8>> = texts.iter().collect();
        let even = &texts[..texts.len() / 2 * 2];
        let pairs: Vec<(&Vec<u8>, &Vec<u8>)> = even.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let scored: Vec<(&Vec<u8>, f64)> = texts.iter().copied().zip(scores.iter().map(|score| f64::from(*score) / 4.0)).collect();
        let mut keys = BTreeSet::new();
        let mut key = |name: &'static str| {
            keys.insert(name);
            name
        };
        w.key(key("string")).string(texts[0]);
        w.key(key("list")).list(&texts);
        w.key(key("set")).set(&texts);
        w.key(key("set:intset")).set_intset(integers.iter().copied());
        w.key(key("zset")).zset(scored.clone());
        if !pairs.is_empty() {
            w.key(key("hash")).hash(pairs.clone());
        }
        if is_old {
            w.key(key("list:ziplist")).list_ziplist(&texts);
            w.key(key("list:ziplists")).list_quicklist(&[ziplist(magic, &texts), ziplist(magic, integers.iter().map(i64::to_string))]);
            w.key(key("zset:text")).zset_text(scored.clone());
            w.key(key("zset:ziplist")).zset_ziplist(scored.clone());
            if !pairs.is_empty() {
                w.key(key("hash:ziplist")).hash_ziplist(pairs.clone());
            }
        } else {
            w.key(key("list:nodes")).list_quicklist2(&[ListNode::Packed(listpack(&texts)), ListNode::Plain(texts[0].clone())]);
            w.key(key("set:listpack")).set_listpack(&texts);
            w.key(key("zset:listpack")).zset_listpack(scored.clone());
            if !pairs.is_empty() {
                w.key(key("hash:listpack")).hash_listpack(pairs.clone());
            }
        }
        let bytes = w.into_bytes();
        let theirs = by_the_crate(&bytes[..]).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let dump = TempDump::new(&bytes);
        let (facts, outcome) = facts::<true>(&open(&dump.path()));
        prop_assert_eq!((outcome.end.fault, outcome.passed.value_faults.count), (None, 0));
        let ours: BTreeMap<Place, Known> = facts.iter().map(|fact| ((fact.db, fact.key.clone()), Known::of_fact(fact))).collect();
        prop_assert_eq!(ours.len(), keys.len());
        prop_assert_eq!(ours, theirs);
    }
}
