//! The tables of a report.

use std::collections::BTreeMap;

use super::keys::stream_id;
use super::{Cell, Column, Table, Unit, advice, recovered, values};
use crate::analyse::{Dump, Library};
use crate::census::{ClassStats, Counts, KeyRow, PlaceCounts, TTL_BUCKETS};
use crate::measure::{Lifetime, SLOTS};
use crate::privacy::Names;
use crate::rdb::ModuleId;
use crate::report::{BigKey, Report, ReportClass, TypeCounts};
use crate::skew::Skew;
use crate::time;
use crate::values::rows;

/// Every table of `report`, in the order in which they are documented; keys appear as `names` says.
pub fn all(report: &Report, dumps: &[Dump], names: &Names) -> Vec<Table> {
    let mut tables = vec![
        summary(report, dumps),
        inputs(report, dumps),
        classes(report, names),
        types(report),
        databases(report),
        ttl_histogram(report, names),
        size_histogram(report, names),
        big_keys(report, names),
        permanent_list("permanent_keys", &report.permanent_keys, names),
        permanent_list("permanent_keys_emptied", &report.emptied_keys, names),
        permanent_classes(report, names),
        slots(report),
        slot_skew(report),
        streams(report, names),
        modules(report),
        functions(report),
        advice::table(report, names),
    ];
    if report.samples_values {
        tables.push(values::table(report.classes.iter().flat_map(|class| rows(&class.name, &class.stats)), names));
    }
    if let Some(recovered) = &report.recovered {
        tables.extend(recovered::tables(recovered, names));
    }
    tables
}

/// Totals of the whole input, a row for each.
fn summary(report: &Report, dumps: &[Dump]) -> Table {
    let total = &report.total;
    let sum = |f: fn(&crate::analyse::Outcome) -> u64| report.outcomes.iter().map(f).sum::<u64>();
    let row = |name: &'static str, value: u64, unit: Unit| vec![Cell::text(name), value.into(), Cell::text(unit.name())];
    let rows = vec![
        row("inputs", dumps.len() as u64, Unit::Count),
        row("partial_inputs", report.outcomes.iter().filter(|o| o.is_partial()).count() as u64, Unit::Count),
        row("dump_bytes", report.bytes(), Unit::Bytes),
        row("framing_bytes", report.framing_bytes(), Unit::Bytes),
        row("serialized_bytes", total.serialized_bytes, Unit::Bytes),
        row("memory_bytes", total.memory_bytes, Unit::Bytes),
        row("overhead_bytes", report.overhead_bytes, Unit::Bytes),
        row("keys", total.keys, Unit::Count),
        row("elements", total.elements, Unit::Count),
        row("permanent_keys", total.permanent_keys, Unit::Count),
        row("permanent_memory_bytes", total.permanent_memory_bytes, Unit::Bytes),
        row("volatile_keys", total.volatile_keys(), Unit::Count),
        row("expired_keys", total.expired_keys, Unit::Count),
        row("expired_memory_bytes", total.expired_memory_bytes, Unit::Bytes),
        row("not_modelled_keys", total.not_modelled_keys, Unit::Count),
        row("max_elements", total.max_elements, Unit::Count),
        row("max_memory_bytes", total.max_memory_bytes, Unit::Bytes),
        row("databases", report.databases.len() as u64, Unit::Count),
        row("classes", report.classes.len() as u64, Unit::Count),
        row("slots_used", report.slots.iter().filter(|counts| counts.keys > 0).count() as u64, Unit::Count),
        row("keys_with_field_expiry", report.fields.keys, Unit::Count),
        row("permanent_keys_whose_fields_all_expire", report.fields.permanent_keys_emptied, Unit::Count),
        row("fields_with_expiry", report.fields.fields, Unit::Count),
        row("expired_fields", report.fields.expired, Unit::Count),
        row("functions", sum(|o| o.passed.functions), Unit::Count),
        row("damaged_values", sum(|o| o.passed.value_faults.count), Unit::Count),
        row("doubtful_sizes", sum(|o| o.passed.doubtful_sizes.count), Unit::Count),
        row("trailing_bytes", sum(|o| o.trailing_bytes), Unit::Bytes),
    ];
    Table { name: "summary", columns: columns!["name" Text, "value" Count, "unit" Text], rows }
}

fn inputs(report: &Report, dumps: &[Dump]) -> Table {
    let row = |(ordinal, (dump, outcome)): (u64, (&Dump, &crate::analyse::Outcome))| {
        let snapshot = dump.model.snapshot;
        let version = dump.head.server_version();
        vec![
            ordinal.into(),
            Cell::text(dump.head.product()),
            version.map_or(Cell::Empty, |version| Cell::key(version.as_bytes().to_vec())),
            Cell::text(String::from_utf8_lossy(&dump.head.dialect().header()).into_owned()),
            snapshot.map_or(Cell::Empty, |s| time::rfc3339(s.at_ms).map_or(Cell::Int(s.at_ms), Cell::text)),
            snapshot.map_or(Cell::Empty, |s| Cell::text(s.source.name())),
            outcome.passed.keys.into(),
            outcome.end.bytes.into(),
            dump.input.stored_bytes().into(),
            Cell::text(outcome.end.checksum.name()),
            Cell::Flag(outcome.is_partial()),
        ]
    };
    Table {
        name: "inputs",
        columns: columns![
            "input" Count, "server" Text, "version" Text, "rdb_version" Text, "snapshot_time" Text, "snapshot_source" Text, "keys" Count,
            "bytes" Bytes, "stored_bytes" Bytes, "checksum" Text, "partial" Flag,
        ],
        rows: (1..).zip(dumps.iter().zip(&report.outcomes)).map(row).collect(),
    }
}

fn classes(report: &Report, names: &Names) -> Table {
    let total = &report.total;
    let rows = report.classes.iter().map(|class| class_row(class, total, names)).collect();
    Table {
        name: "classes",
        columns: columns![
            "class" Text, "pattern" Text, "registered" Flag, "owner" Text, "keys" Count, "keys_share" Share, "memory_bytes" Bytes,
            "memory_share" Share, "serialized_bytes" Bytes, "elements" Count, "avg_memory_bytes" Bytes, "p50_memory_bytes" Bytes,
            "p90_memory_bytes" Bytes, "p99_memory_bytes" Bytes, "max_memory_bytes" Bytes, "largest_key" Text, "permanent_keys" Count,
            "permanent_memory_bytes" Bytes, "expired_keys" Count, "expired_memory_bytes" Bytes, "ttl_p50_seconds" Seconds,
            "ttl_p90_seconds" Seconds, "ttl_max_seconds" Seconds, "types" Text, "not_modelled_keys" Count, "example_key" Text,
        ],
        rows,
    }
}

fn class_row(class: &ReportClass, total: &Counts, names: &Names) -> Vec<Cell<'static>> {
    let stats = &class.stats;
    let counts = &stats.counts;
    let modelled = counts.keys - counts.not_modelled_keys;
    let [p50, p90, p99] = stats.memory.quantiles([0.5, 0.9, 0.99]);
    let [ttl_p50, ttl_p90] = stats.ttl_seconds.quantiles([0.5, 0.9]);
    let key = |key: Option<&[u8]>| key.map_or(Cell::Empty, |key| name(key, names));
    vec![
        class_name(class, names),
        Cell::text(names.of_text(&class.pattern).into_owned()),
        Cell::Flag(class.registered),
        class.owner.clone().map_or(Cell::Empty, Cell::text),
        counts.keys.into(),
        share(counts.keys, total.keys),
        counts.memory_bytes.into(),
        share(counts.memory_bytes, total.memory_bytes),
        counts.serialized_bytes.into(),
        counts.elements.into(),
        counts.memory_bytes.checked_div(modelled).into(),
        p50.into(),
        p90.into(),
        p99.into(),
        counts.max_memory_bytes.into(),
        key(stats.largest_key.as_deref()),
        counts.permanent_keys.into(),
        counts.permanent_memory_bytes.into(),
        counts.expired_keys.into(),
        counts.expired_memory_bytes.into(),
        ttl_p50.into(),
        ttl_p90.into(),
        stats.ttl_seconds.max().into(),
        Cell::text(type_counts(stats)),
        counts.not_modelled_keys.into(),
        key(stats.example_key.get()),
    ]
}

pub(super) fn class_name(class: &ReportClass, names: &Names) -> Cell<'static> {
    // What a contract calls a class is no key.
    if class.registered { Cell::text(class.name.clone()) } else { Cell::text(names.of_text(&class.name).into_owned()) }
}

pub(super) fn name(key: &[u8], names: &Names) -> Cell<'static> {
    Cell::key(names.of(key).into_owned())
}

/// `hash:120 string:3`, largest first.
pub(super) fn type_counts(stats: &ClassStats) -> String {
    let mut types: Vec<(u64, String)> = stats.types.iter().map(|(key_type, n)| (n, key_type.to_string())).collect();
    types.sort_by(|(n, a), (m, b)| m.cmp(n).then_with(|| a.cmp(b)));
    types.iter().map(|(n, name)| format!("{name}:{n}")).collect::<Vec<_>>().join(" ")
}

pub(super) fn share(part: u64, whole: u64) -> Cell<'static> {
    if whole == 0 { Cell::Fraction(0.0) } else { Cell::Fraction(part as f64 / whole as f64) }
}

fn types(report: &Report) -> Table {
    let row = |TypeCounts { kind, name, encoding, counts: c }: &TypeCounts| {
        vec![
            Cell::text(*kind),
            Cell::text(name.clone()),
            Cell::text(encoding.name()),
            c.keys.into(),
            c.elements.into(),
            c.memory_bytes.into(),
            c.serialized_bytes.into(),
            c.permanent_keys.into(),
            c.expired_keys.into(),
            c.max_elements.into(),
            c.max_memory_bytes.into(),
        ]
    };
    Table {
        name: "types",
        columns: columns![
            "kind" Text, "type" Text, "encoding" Text, "keys" Count, "elements" Count, "memory_bytes" Bytes, "serialized_bytes" Bytes,
            "permanent_keys" Count, "expired_keys" Count, "max_elements" Count, "max_memory_bytes" Bytes,
        ],
        rows: report.types.iter().map(row).collect(),
    }
}

fn databases(report: &Report) -> Table {
    Table {
        name: "databases",
        columns: columns![
            "db" Count, "keys" Count, "memory_bytes" Bytes, "serialized_bytes" Bytes, "elements" Count, "permanent_keys" Count,
            "expired_keys" Count, "expired_memory_bytes" Bytes,
        ],
        rows: report.databases.iter().map(|(db, counts)| place_row(*db, counts)).collect(),
    }
}

fn slots(report: &Report) -> Table {
    let used = (0..SLOTS).zip(&report.slots).filter(|(_, counts)| counts.keys > 0);
    Table {
        name: "slots",
        columns: columns![
            "slot" Count, "keys" Count, "memory_bytes" Bytes, "serialized_bytes" Bytes, "elements" Count, "permanent_keys" Count,
            "expired_keys" Count, "expired_memory_bytes" Bytes,
        ],
        rows: used.map(|(slot, counts)| place_row(u64::from(slot), counts)).collect(),
    }
}

/// A database or a slot.
fn place_row(place: u64, c: &PlaceCounts) -> Vec<Cell<'static>> {
    vec![
        place.into(),
        c.keys.into(),
        c.memory_bytes.into(),
        c.serialized_bytes.into(),
        c.elements.into(),
        c.permanent_keys.into(),
        c.expired_keys.into(),
        c.expired_memory_bytes.into(),
    ]
}

fn ttl_histogram(report: &Report, names: &Names) -> Table {
    let of_class = |class: &ReportClass| {
        let name = class_name(class, names);
        let used = TTL_BUCKETS.iter().zip(class.stats.ttl).filter(|(_, (keys, _))| *keys > 0);
        used.map(|(bucket, (keys, bytes))| vec![name.clone(), Cell::text(bucket.name), keys.into(), bytes.into()])
            .collect::<Vec<_>>()
    };
    Table {
        name: "ttl_histogram",
        columns: columns!["class" Text, "bucket" Text, "keys" Count, "memory_bytes" Bytes],
        rows: report.classes.iter().flat_map(of_class).collect(),
    }
}

fn size_histogram(report: &Report, names: &Names) -> Table {
    let of_class = |class: &ReportClass| {
        let name = class_name(class, names);
        let used = class.stats.sizes.iter().enumerate().filter(|(_, (keys, _))| *keys > 0);
        used.map(|(power, &(keys, bytes))| {
            let least = 1u64 << power;
            vec![name.clone(), least.into(), (least - 1 + least).into(), keys.into(), bytes.into()]
        })
        .collect::<Vec<_>>()
    };
    Table {
        name: "size_histogram",
        columns: columns!["class" Text, "bucket_min_bytes" Bytes, "bucket_max_bytes" Bytes, "keys" Count, "memory_bytes" Bytes],
        rows: report.classes.iter().flat_map(of_class).collect(),
    }
}

fn big_keys(report: &Report, names: &Names) -> Table {
    let row = |(rank, big): (u64, &BigKey)| {
        let key = &big.row;
        vec![
            rank.into(),
            Cell::text(big.rules.join(";")),
            key.db.into(),
            name(&key.key, names),
            Cell::text(names.of_text(&big.class).into_owned()),
            Cell::text(key.key_type.to_string()),
            Cell::text(key.encoding.name()),
            key.elements.into(),
            big.payload_bytes.into(),
            big.largest_element_bytes.into(),
            key.memory_bytes.into(),
            key.serialized_bytes.into(),
            key.lifetime.ttl_seconds().into(),
            u64::from(key.slot).into(),
            u64::from(key.input).into(),
            big.parts.into(),
            Cell::Flag(matches!(key.lifetime, Lifetime::Volatile { .. }) && big.rules.iter().any(|rule| *rule != "top")),
        ]
    };
    Table {
        name: "big_keys",
        columns: columns![
            "rank" Count, "rule" Text, "db" Count, "key" Text, "class" Text, "type" Text, "encoding" Text, "elements" Count,
            "payload_bytes" Bytes, "largest_element_bytes" Bytes, "memory_bytes" Bytes, "serialized_bytes" Bytes, "ttl_seconds" Seconds,
            "slot" Count, "input" Count, "parts" Count, "big_and_volatile" Flag,
        ],
        rows: (1..).zip(&report.big_keys).map(row).collect(),
    }
}

/// Permanent keys of one state: all, or those that stay though every field of theirs expires.
fn permanent_list(table: &'static str, keys: &[(KeyRow, String)], names: &Names) -> Table {
    let row = |(rank, (key, class)): (u64, &(KeyRow, String))| {
        vec![
            rank.into(),
            key.db.into(),
            name(&key.key, names),
            Cell::text(names.of_text(class).into_owned()),
            Cell::text(key.key_type.to_string()),
            Cell::text(key.encoding.name()),
            key.elements.into(),
            key.memory_bytes.into(),
            key.serialized_bytes.into(),
            u64::from(key.slot).into(),
            u64::from(key.input).into(),
        ]
    };
    Table {
        name: table,
        columns: columns![
            "rank" Count, "db" Count, "key" Text, "class" Text, "type" Text, "encoding" Text, "elements" Count, "memory_bytes" Bytes,
            "serialized_bytes" Bytes, "slot" Count, "input" Count,
        ],
        rows: (1..).zip(keys).map(row).collect(),
    }
}

fn permanent_classes(report: &Report, names: &Names) -> Table {
    let mut classes: Vec<&ReportClass> = report.classes.iter().filter(|class| class.stats.counts.permanent_keys > 0).collect();
    // The order of the report, which is stable, among equals.
    classes.sort_by_key(|class| std::cmp::Reverse(class.stats.counts.permanent_memory_bytes));
    let row = |class: &&ReportClass| {
        let counts = &class.stats.counts;
        vec![
            class_name(class, names),
            Cell::Flag(class.registered),
            class.owner.clone().map_or(Cell::Empty, Cell::text),
            counts.permanent_keys.into(),
            counts.permanent_memory_bytes.into(),
            class.stats.largest_permanent.as_ref().map_or(Cell::Empty, |(_, key)| name(key, names)),
        ]
    };
    Table {
        name: "permanent_classes",
        columns: columns![
            "class" Text, "registered" Flag, "owner" Text, "keys" Count, "memory_bytes" Bytes, "largest_key" Text,
        ],
        rows: classes.iter().map(row).collect(),
    }
}

fn slot_skew(report: &Report) -> Table {
    let rows = [("keys", Skew::of_keys(report)), ("memory_bytes", Skew::of_memory(report))]
        .into_iter()
        .map(|(measure, skew)| {
            let fraction = |x: Option<f64>| x.map_or(Cell::Empty, Cell::Fraction);
            vec![
                Cell::text(measure),
                skew.population.into(),
                skew.used.into(),
                Cell::Fraction(skew.mean),
                skew.max.into(),
                skew.max_slot.map(u64::from).into(),
                fraction(skew.max_over_mean),
                fraction(skew.expected_max_over_mean),
                fraction(skew.cv),
                fraction(skew.expected_cv),
                fraction(skew.gini),
                fraction(skew.top1_share),
            ]
        })
        .collect();
    Table {
        name: "slot_skew",
        columns: columns![
            "measure" Text, "population" Count, "used" Count, "mean" Count, "max" Count, "max_slot" Count, "max_over_mean" Share,
            "expected_max_over_mean" Share, "cv" Share, "expected_cv" Share, "gini" Share, "top1_share" Share,
        ],
        rows,
    }
}

fn streams(report: &Report, names: &Names) -> Table {
    let row = |(key, class): &(KeyRow, String)| {
        let stream = key.stream.unwrap_or_default();
        let counters = stream.counters;
        vec![
            key.db.into(),
            name(&key.key, names),
            Cell::text(names.of_text(class).into_owned()),
            counters.length.into(),
            stream.groups.into(),
            stream.consumers.into(),
            stream.pending.into(),
            stream_id(counters.last_id),
            counters.max_deleted_id.map_or(Cell::Empty, stream_id),
            counters.entries_added.into(),
            stream.removed().into(),
            key.memory_bytes.into(),
            key.serialized_bytes.into(),
            u64::from(key.slot).into(),
            u64::from(key.input).into(),
        ]
    };
    Table {
        name: "streams",
        columns: columns![
            "db" Count, "key" Text, "class" Text, "entries" Count, "groups" Count, "consumers" Count, "pending" Count, "last_id" Text,
            "max_deleted_id" Text, "entries_added" Count, "deleted" Count, "memory_bytes" Bytes, "serialized_bytes" Bytes,
            "slot" Count, "input" Count,
        ],
        rows: report.streams.iter().map(row).collect(),
    }
}

/// Module types: keys of them, and data of theirs that belongs to no key.
fn modules(report: &Report) -> Table {
    let mut modules: BTreeMap<ModuleId, (Counts, u64, u64)> = BTreeMap::new();
    for (id, counts) in &report.modules {
        modules.entry(*id).or_default().0.merge(counts);
    }
    for (id, (records, bytes)) in report.outcomes.iter().flat_map(|outcome| &outcome.passed.module_aux) {
        let (_, aux_records, aux_bytes) = modules.entry(*id).or_default();
        (*aux_records, *aux_bytes) = (*aux_records + records, *aux_bytes + bytes);
    }
    let row = |(id, (counts, aux_records, aux_bytes)): (ModuleId, (Counts, u64, u64))| {
        vec![
            Cell::text(id.to_string()),
            u64::from(id.version()).into(),
            counts.keys.into(),
            counts.elements.into(),
            counts.serialized_bytes.into(),
            counts.permanent_keys.into(),
            counts.expired_keys.into(),
            aux_records.into(),
            aux_bytes.into(),
        ]
    };
    Table {
        name: "modules",
        columns: columns![
            "module" Text, "version" Count, "keys" Count, "elements" Count, "serialized_bytes" Bytes, "permanent_keys" Count,
            "expired_keys" Count, "aux_records" Count, "aux_bytes" Bytes,
        ],
        rows: modules.into_iter().map(row).collect(),
    }
}

fn functions(report: &Report) -> Table {
    let of_input = |(input, outcome): (u64, &crate::analyse::Outcome)| {
        let text = |name: &Option<Vec<u8>>| name.clone().map_or(Cell::Empty, Cell::key);
        let row = move |library: &Library| vec![input.into(), text(&library.name), text(&library.engine), library.bytes.into()];
        outcome.passed.libraries.iter().map(row).collect::<Vec<_>>()
    };
    Table {
        name: "functions",
        columns: columns!["input" Count, "library" Text, "engine" Text, "bytes" Bytes],
        rows: (1..).zip(&report.outcomes).flat_map(of_input).collect(),
    }
}
