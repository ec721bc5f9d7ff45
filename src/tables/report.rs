//! The tables of a report.

use super::{Cell, Column, Table, Unit};
use crate::analyse::Dump;
use crate::census::{ClassStats, Counts, KeyRow, TTL_BUCKETS};
use crate::measure::{Lifetime, SLOTS};
use crate::report::{BigKey, Report};

macro_rules! columns {
    ($($name:literal $unit:ident),* $(,)?) => {
        &[$(Column { name: $name, unit: Unit::$unit }),*]
    };
}

/// Every table of `report`, in the order in which they are documented.
pub fn all(report: &Report, dumps: &[Dump]) -> Vec<Table> {
    vec![
        summary(report, dumps),
        classes(report),
        types(report),
        databases(report),
        ttl_histogram(report),
        big_keys(report),
        permanent_keys(report),
        slots(report),
        slot_skew(report),
    ]
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
        row("functions", sum(|o| o.passed.functions), Unit::Count),
        row("damaged_values", sum(|o| o.passed.value_faults.count), Unit::Count),
        row("doubtful_sizes", sum(|o| o.passed.doubtful_sizes.count), Unit::Count),
        row("trailing_bytes", sum(|o| o.trailing_bytes), Unit::Bytes),
    ];
    Table { name: "summary", columns: columns!["name" Text, "value" Count, "unit" Text], rows }
}

fn classes(report: &Report) -> Table {
    let total = &report.total;
    let rows = report.classes.iter().map(|(name, stats)| class_row(name, stats, total)).collect();
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

fn class_row(name: &str, stats: &ClassStats, total: &Counts) -> Vec<Cell<'static>> {
    let counts = &stats.counts;
    let modelled = counts.keys - counts.not_modelled_keys;
    let [p50, p90, p99] = stats.memory.quantiles([0.5, 0.9, 0.99]);
    let [ttl_p50, ttl_p90] = stats.ttl_seconds.quantiles([0.5, 0.9]);
    let key = |key: &Option<Box<[u8]>>| key.as_ref().map_or(Cell::Empty, |key| Cell::key(key.to_vec()));
    vec![
        Cell::text(name.to_string()),
        Cell::text(name.to_string()),
        Cell::Flag(false),
        Cell::Empty,
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
        key(&stats.largest_key),
        counts.permanent_keys.into(),
        counts.permanent_memory_bytes.into(),
        counts.expired_keys.into(),
        counts.expired_memory_bytes.into(),
        ttl_p50.into(),
        ttl_p90.into(),
        stats.ttl_seconds.max().into(),
        Cell::text(type_counts(stats)),
        counts.not_modelled_keys.into(),
        key(&stats.example_key),
    ]
}

/// `hash:120 string:3`, largest first.
fn type_counts(stats: &ClassStats) -> String {
    let mut types: Vec<(u64, String)> = stats.types.iter().map(|(key_type, n)| (*n, key_type.to_string())).collect();
    types.sort_by(|(n, a), (m, b)| m.cmp(n).then_with(|| a.cmp(b)));
    types.iter().map(|(n, name)| format!("{name}:{n}")).collect::<Vec<_>>().join(" ")
}

fn share(part: u64, whole: u64) -> Cell<'static> {
    if whole == 0 { Cell::Fraction(0.0) } else { Cell::Fraction(part as f64 / whole as f64) }
}

fn types(report: &Report) -> Table {
    let row = |(key_type, encoding, c): &(crate::rdb::KeyType, crate::measure::Encoding, Counts)| {
        vec![
            Cell::text(key_type.kind()),
            Cell::text(key_type.to_string()),
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
fn place_row(place: u64, c: &Counts) -> Vec<Cell<'static>> {
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

fn ttl_histogram(report: &Report) -> Table {
    let of_class = |(name, stats): &(String, ClassStats)| {
        let name = name.clone();
        TTL_BUCKETS
            .iter()
            .zip(stats.ttl)
            .filter(|(_, (keys, _))| *keys > 0)
            .map(move |(bucket, (keys, bytes))| {
                vec![Cell::text(name.clone()), Cell::text(bucket.name), keys.into(), bytes.into()]
            })
            .collect::<Vec<_>>()
    };
    Table {
        name: "ttl_histogram",
        columns: columns!["class" Text, "bucket" Text, "keys" Count, "memory_bytes" Bytes],
        rows: report.classes.iter().flat_map(of_class).collect(),
    }
}

fn big_keys(report: &Report) -> Table {
    let row = |(rank, big): (u64, &BigKey)| {
        let key = &big.row;
        vec![
            rank.into(),
            Cell::text(big.rules.join(";")),
            key.db.into(),
            Cell::key(key.key.to_vec()),
            Cell::text(big.class.clone()),
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
            Cell::Flag(matches!(key.lifetime, Lifetime::Volatile { .. }) && big.rules.iter().any(|rule| *rule != "top")),
        ]
    };
    Table {
        name: "big_keys",
        columns: columns![
            "rank" Count, "rule" Text, "db" Count, "key" Text, "class" Text, "type" Text, "encoding" Text, "elements" Count,
            "payload_bytes" Bytes, "largest_element_bytes" Bytes, "memory_bytes" Bytes, "serialized_bytes" Bytes, "ttl_seconds" Seconds,
            "slot" Count, "input" Count, "big_and_volatile" Flag,
        ],
        rows: (1..).zip(&report.big_keys).map(row).collect(),
    }
}

fn permanent_keys(report: &Report) -> Table {
    let row = |(rank, (key, class)): (u64, &(KeyRow, String))| {
        vec![
            rank.into(),
            key.db.into(),
            Cell::key(key.key.to_vec()),
            Cell::text(class.clone()),
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
        name: "permanent_keys",
        columns: columns![
            "rank" Count, "db" Count, "key" Text, "class" Text, "type" Text, "encoding" Text, "elements" Count, "memory_bytes" Bytes,
            "serialized_bytes" Bytes, "slot" Count, "input" Count,
        ],
        rows: (1..).zip(&report.permanent_keys).map(row).collect(),
    }
}

fn slot_skew(report: &Report) -> Table {
    let skews = [("keys", Skew::of(report, |c| c.keys)), ("memory_bytes", Skew::of(report, |c| c.memory_bytes))];
    let rows = skews
        .into_iter()
        .map(|(measure, skew)| {
            vec![
                Cell::text(measure),
                skew.population.into(),
                skew.used.into(),
                Cell::Fraction(skew.mean),
                skew.max.into(),
                skew.max_slot.map(u64::from).into(),
                skew.max_over_mean.map_or(Cell::Empty, Cell::Fraction),
                skew.cv.map_or(Cell::Empty, Cell::Fraction),
                skew.gini.map_or(Cell::Empty, Cell::Fraction),
                skew.top1_share.map_or(Cell::Empty, Cell::Fraction),
            ]
        })
        .collect();
    Table {
        name: "slot_skew",
        columns: columns![
            "measure" Text, "population" Count, "used" Count, "mean" Count, "max" Count, "max_slot" Count, "max_over_mean" Share,
            "cv" Share, "gini" Share, "top1_share" Share,
        ],
        rows,
    }
}

/// How unevenly a measure lies over the slots of the population.
#[derive(Debug, Clone, PartialEq)]
pub struct Skew {
    /// Slots looked at.
    pub population: u64,
    /// Of these, slots with any key.
    pub used: u64,
    /// Mean over the population.
    pub mean: f64,
    /// Largest value.
    pub max: u64,
    /// The smallest slot that has it; `None` without keys.
    pub max_slot: Option<u16>,
    /// Largest value over the mean.
    pub max_over_mean: Option<f64>,
    /// Standard deviation over the mean.
    pub cv: Option<f64>,
    /// Gini coefficient: 0 where all are equal, near 1 where one has all.
    pub gini: Option<f64>,
    /// Share of the largest 1 % of slots, rounded up.
    pub top1_share: Option<f64>,
}

impl Skew {
    /// Looks at one measure.
    pub fn of(report: &Report, measure: fn(&Counts) -> u64) -> Self {
        let place = |slot: u16| &report.slots[usize::from(slot)];
        let mut values: Vec<u64> = report.population.iter().map(|slot| measure(place(slot))).collect();
        let used = report.population.iter().filter(|slot| place(*slot).keys > 0).count() as u64;
        let max = values.iter().copied().max().unwrap_or(0);
        let max_slot = report.population.iter().find(|slot| max > 0 && measure(place(*slot)) == max);
        let population = values.len() as f64;
        let sum: f64 = values.iter().map(|&v| v as f64).sum();
        let mean = if values.is_empty() { 0.0 } else { sum / population };
        let of_mean = |x: f64| (mean > 0.0).then(|| x / mean);
        let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / population;
        values.sort_unstable();
        // Sum over ranks, of values in ascending order.
        let ranked: f64 = (1..).zip(&values).map(|(rank, &v)| f64::from(rank) * v as f64).sum();
        let top = values.len().div_ceil(100);
        let top_sum: f64 = values.iter().rev().take(top).map(|&v| v as f64).sum();
        Self {
            population: values.len() as u64,
            used,
            mean,
            max,
            max_slot,
            max_over_mean: of_mean(max as f64),
            cv: of_mean(variance.sqrt()),
            gini: (sum > 0.0).then(|| 2.0 * ranked / (population * sum) - (population + 1.0) / population),
            top1_share: (sum > 0.0).then(|| top_sum / sum),
        }
    }
}
