//! Every key of every real dump against what the server said that had loaded it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use rdbscope::analyse::Dump;
use rdbscope::rdb::{Frame, RecordHead, Sink};
use rdbscope::scan::{self, ChecksumState};
use support::facts::{OwnedFact, facts, open};
use support::truth::{Place, Truth, TruthLine};
use support::{dumps_in, name};

/// Types whose payload is known once packed values are opened.
const TYPES_WITH_PAYLOAD: [&str; 5] = ["string", "list", "set", "hash", "zset"];

/// An idle time was asked for some seconds after the load, and the server counts them in a clock of its own.
const IDLE_SLACK: std::ops::RangeInclusive<i64> = -5..=15;

fn every_truth() -> Vec<Truth> {
    let truths: Vec<Truth> = dumps_in("truth").iter().map(|dump| Truth::beside(dump)).collect();
    // As many as the folder has answers for, so that a dump that is not found is not passed over.
    let answers = std::fs::read_dir(support::fixtures().join("truth")).unwrap();
    let answers = answers.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".truth.jsonl"));
    assert_eq!(truths.len(), answers.count());
    assert!(truths.len() >= 30, "fixtures are missing");
    truths
}

/// Collects what differs, so that a failure shows all of it.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn equal<T: PartialEq + Debug>(&mut self, whose: &dyn Debug, what: &str, ours: T, theirs: T) {
        if ours != theirs {
            self.0.push(format!("{whose:?}: {what} is {ours:?}, the server says {theirs:?}"));
        }
    }

    #[track_caller]
    fn none(self, dump: &str) {
        let n = self.0.len();
        assert!(n == 0, "{dump}: {n} differences, the first:\n{}", self.0[..n.min(20)].join("\n"));
    }
}

fn by_place(facts: Vec<OwnedFact>) -> BTreeMap<Place, OwnedFact> {
    let n = facts.len();
    let by_place: BTreeMap<_, _> = facts.into_iter().map(|fact| ((fact.db, fact.key.clone()), fact)).collect();
    assert_eq!(by_place.len(), n, "a key was reported twice");
    by_place
}

/// Holds one key against its line; `lost_fields` where the server dropped a part of it while loading.
fn compare(fact: &OwnedFact, truth: &TruthLine, lost_fields: bool, differences: &mut Differences) {
    let whose = truth.key.escape_ascii().to_string();
    differences.equal(&whose, "type", &*fact.key_type, &*truth.key_type);
    // Redis 5.0 has no word for the encoding of streams.
    if let Some(encoding) = truth.encoding.as_deref()
        && (encoding, fact.encoding) != ("unknown", "stream")
    {
        differences.equal(&whose, "encoding", fact.encoding, encoding);
    }
    if truth.count.is_some() && !lost_fields {
        let count = if fact.key_type == "string" { fact.payload_bytes } else { fact.elements };
        differences.equal(&whose, "count", count, truth.count);
    }
    let near = |a: i64, b: i64| truth.expire_approx && a.abs_diff(b) <= 60;
    if !fact.expires_at_ms.zip(truth.expire_at_ms).is_some_and(|(a, b)| near(a, b)) {
        differences.equal(&whose, "expiry", fact.expires_at_ms, truth.expire_at_ms);
    }
    if truth.slot.is_some() {
        differences.equal(&whose, "slot", Some(u64::from(fact.slot)), truth.slot);
    }
    if truth.freq.is_some() {
        differences.equal(&whose, "freq", fact.freq.map(u64::from), truth.freq);
    }
    if let Some(idle) = truth.idle {
        let since_file = fact.idle_seconds.map(|ours| idle as i64 - ours as i64);
        let fits = since_file.is_some_and(|seconds| IDLE_SLACK.contains(&seconds));
        differences.equal(&whose, "idle time near that of the server", fits, true);
    }
    if !lost_fields {
        let expiry = fact.field_expiry;
        differences.equal(&whose, "fields with an expiry", expiry.map(|e| e.fields), truth.hfe_fields.filter(|n| *n > 0));
        differences.equal(&whose, "earliest field expiry", expiry.map(|e| e.min_ms), truth.hfe_min_expire_ms);
        differences.equal(&whose, "latest field expiry", expiry.map(|e| e.max_ms), truth.hfe_max_expire_ms);
    }
    if truth.key_type == "stream" {
        let id = |(ms, seq): (u64, u64)| format!("{ms}-{seq}");
        let stream = fact.stream.unwrap_or_default();
        let totals = [stream.groups, stream.consumers, stream.pending];
        differences.equal(&whose, "groups, consumers, pending", Some(totals), truth.stream_totals);
        differences.equal(&whose, "last id", Some(id(stream.counters.last_id)), truth.last_id.clone());
        if truth.max_deleted_id.is_some() && stream.counters.max_deleted_id.is_some() {
            differences.equal(&whose, "largest deleted id", stream.counters.max_deleted_id.map(id), truth.max_deleted_id.clone());
            differences.equal(&whose, "entries added", stream.counters.entries_added, truth.entries_added);
        }
        // The truth has the total of what streams hold, and not the longest part.
        differences.equal(&whose, "payload", fact.payload_bytes, truth.elem_bytes);
    }
    if TYPES_WITH_PAYLOAD.contains(&&*fact.key_type) && !lost_fields {
        differences.equal(&whose, "payload", fact.payload_bytes, truth.elem_bytes);
        differences.equal(&whose, "largest element", fact.largest_element_bytes, truth.max_elem_bytes);
    }
}

#[test]
fn every_key_is_as_its_server_says() {
    let mut compared = 0;
    let mut lines = 0;
    for truth in every_truth() {
        let dump = open(&truth.dump);
        let (facts, outcome) = facts::<true>(&dump);
        assert_eq!(outcome.end.fault, None, "{}", name(&truth.dump));
        assert_eq!(outcome.passed.value_faults.count, 0, "{}", name(&truth.dump));
        let mut ours = by_place(facts);
        let mut differences = Differences::default();
        lines += truth.lines.len();
        for line in &truth.lines {
            match ours.remove(&line.place()) {
                Some(fact) => {
                    let lost_fields = truth.meta.lost_fields.contains(&line.place());
                    compare(&fact, line, lost_fields, &mut differences);
                }
                None => differences.equal(&line.place(), "key is there", false, true),
            }
            compared += 1;
        }
        // What is left over are the keys that the server dropped while loading, all of them.
        differences.equal(
            &"keys without an answer",
            "set",
            ours.into_keys().collect::<BTreeSet<_>>(),
            truth.meta.expired_on_load,
        );
        differences.none(&name(&truth.dump));
    }
    assert_eq!(compared, lines);
    assert!(compared > 12_000, "only {compared} keys were compared");
}

#[test]
fn records_and_framing_make_up_the_file() {
    for truth in every_truth() {
        let (facts, outcome) = facts::<false>(&open(&truth.dump));
        let dump = name(&truth.dump);
        let records: u64 = facts.iter().map(|fact| fact.serialized_bytes).sum();
        assert_eq!(outcome.passed.serialized_bytes, records, "{dump}");
        assert_eq!(records + outcome.passed.framing_bytes, truth.meta.file_size, "{dump}");
        assert_eq!(outcome.end.bytes, truth.meta.file_size, "{dump}");
        assert_eq!(outcome.trailing_bytes, 0, "{dump}");
    }
}

#[test]
fn counts_are_those_of_an_independent_walk() {
    for Truth { dump, meta, .. } in every_truth() {
        let (facts, outcome) = facts::<false>(&open(&dump));
        let dump = name(&dump);
        let mut keys = BTreeMap::new();
        let mut expires = BTreeMap::new();
        for fact in &facts {
            *keys.entry(fact.db).or_default() += 1;
            if fact.expires_at_ms.is_some() {
                *expires.entry(fact.db).or_default() += 1;
            }
        }
        assert_eq!(dump, meta.file);
        assert_eq!(keys, meta.keys_in_file, "{dump}");
        assert_eq!(expires, meta.expires_in_file, "{dump}");
        assert_eq!(outcome.passed.keys, meta.keys_in_file.values().sum::<u64>(), "{dump}");
        assert_eq!(outcome.passed.functions, meta.functions_in_file, "{dump}");
        let module_aux: u64 = outcome.passed.module_aux.values().map(|(records, _)| records).sum();
        assert_eq!(module_aux, meta.module_aux_in_file, "{dump}");
        assert_eq!(outcome.passed.slots.len() as u64, meta.slot_info_in_file, "{dump}");
    }
}

#[test]
fn checksums_are_right_or_switched_off() {
    let mut disabled = Vec::new();
    for truth in every_truth() {
        let (_, outcome) = facts::<false>(&open(&truth.dump));
        let is_zero = truth.meta.checksum.bytes().all(|digit| digit == b'0');
        let expected = if is_zero { ChecksumState::Disabled } else { ChecksumState::Ok };
        assert_eq!(outcome.end.checksum, expected, "{}", name(&truth.dump));
        if is_zero {
            disabled.push(name(&truth.dump));
        }
    }
    assert_eq!(disabled, ["redis-7.0.15-nocrc.rdb", "redis-8.2.3-nocrc.rdb"]);
}

/// Counts type bytes and opcodes as an independent walk did for the meta files.
#[derive(Default)]
struct Bytes {
    types: BTreeMap<u64, u64>,
    opcodes: BTreeMap<u64, u64>,
}

impl Sink for Bytes {
    const SKIM: bool = true;

    fn frame(&mut self, frame: Frame<'_>, _bytes: u64) {
        let opcode = match frame {
            Frame::SlotInfo { .. } => 244,
            Frame::Function { .. } => 245,
            Frame::ModuleAux(_) => 247,
            Frame::Aux { .. } => 250,
            Frame::ResizeDb { .. } => 251,
            Frame::SelectDb(_) => 254,
            Frame::End { .. } => 255,
            _ => panic!("no fixture has {frame:?}"),
        };
        *self.opcodes.entry(opcode).or_default() += 1;
    }

    fn begin(&mut self, head: &RecordHead<'_>) {
        *self.types.entry(u64::from(head.record_type.byte)).or_default() += 1;
        let prefixes = [
            (248, head.idle_seconds.is_some()),
            (249, head.freq.is_some()),
            // Servers of the fixtures write expiries in milliseconds only.
            (252, head.expires_at_ms.is_some()),
        ];
        for (opcode, _) in prefixes.into_iter().filter(|(_, there)| *there) {
            *self.opcodes.entry(opcode).or_default() += 1;
        }
    }
}

fn type_bytes_and_opcodes(dump: &Dump) -> Bytes {
    let mut bytes = Bytes::default();
    scan::walk(dump.input.whole().unwrap(), &mut bytes).unwrap();
    bytes
}

#[test]
fn type_bytes_and_opcodes_are_those_of_an_independent_walk() {
    let mut seen = BTreeSet::new();
    for truth in every_truth() {
        let found = type_bytes_and_opcodes(&open(&truth.dump));
        assert_eq!(found.types, truth.meta.rdb_types_in_file, "{}", name(&truth.dump));
        assert_eq!(found.opcodes, truth.meta.opcodes_in_file, "{}", name(&truth.dump));
        seen.extend(found.types.into_keys().map(|byte| (byte, truth.meta.file.starts_with("valkey"))));
    }
    // Type bytes that the fixtures cover, so that losing one is seen; 22 means something else to Valkey.
    let redis: Vec<u64> = seen.iter().filter(|(_, valkey)| !valkey).map(|(byte, _)| *byte).collect();
    assert_eq!(redis, [0, 2, 4, 5, 7, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 24, 25, 26]);
    assert!(seen.contains(&(22, true)));
}

#[test]
fn opening_packed_values_changes_no_other_figure() {
    for truth in every_truth() {
        let dump = open(&truth.dump);
        let (shallow, _) = facts::<false>(&dump);
        let (deep, _) = facts::<true>(&dump);
        assert_eq!(shallow.len(), deep.len());
        for (shallow, deep) in shallow.into_iter().zip(deep) {
            let known = shallow.payload_bytes.is_some();
            let payload = |fact: &OwnedFact| (fact.payload_bytes, fact.largest_element_bytes);
            if known {
                assert_eq!(payload(&shallow), payload(&deep));
            }
            let rest = |fact: OwnedFact| OwnedFact { payload_bytes: None, largest_element_bytes: None, ..fact };
            assert_eq!(rest(shallow), rest(deep), "{}", name(&truth.dump));
        }
    }
}

/// What a module keeps in its values is its own.
#[test]
fn payload_is_empty_where_it_is_not_known() {
    let mut seen = BTreeSet::new();
    for truth in every_truth() {
        let (facts, _) = facts::<true>(&open(&truth.dump));
        let unknown = facts.iter().filter(|fact| !TYPES_WITH_PAYLOAD.contains(&&*fact.key_type) && fact.key_type != "stream");
        for fact in unknown {
            assert_eq!(fact.payload_bytes, None, "{}: {fact:?}", name(&truth.dump));
            assert_eq!(fact.largest_element_bytes, None, "{}: {fact:?}", name(&truth.dump));
            seen.insert(fact.key_type.clone());
        }
    }
    assert!(seen.contains("ReJSON-RL") && seen.contains("vectorset"), "{seen:?}");
}
