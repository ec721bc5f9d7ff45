//! The tables of what was recovered behind faults: keys that are in no other table.

use super::report::{class_name, name, type_counts};
use super::{Cell, Column, Table, Unit};
use crate::privacy::Names;
use crate::report::{RecoveredKeys, ReportClass};

/// Names of these tables, which a report without recovery does not have.
pub const NAMES: [&str; 2] = ["recovered", "skipped"];

/// Keys by class, and the bytes of which nothing is known.
pub(super) fn tables(recovered: &RecoveredKeys, names: &Names) -> [Table; 2] {
    [classes(recovered, names), skipped(recovered)]
}

fn classes(recovered: &RecoveredKeys, names: &Names) -> Table {
    let row = |class: &ReportClass| {
        let counts = &class.stats.counts;
        vec![
            class_name(class, names),
            Cell::Flag(class.registered),
            class.owner.clone().map_or(Cell::Empty, Cell::text),
            counts.keys.into(),
            counts.elements.into(),
            counts.memory_bytes.into(),
            counts.serialized_bytes.into(),
            counts.permanent_keys.into(),
            counts.expired_keys.into(),
            Cell::text(type_counts(&class.stats)),
            class.stats.example_key.get().map_or(Cell::Empty, |key| name(key, names)),
        ]
    };
    Table {
        name: NAMES[0],
        columns: columns![
            "class" Text, "registered" Flag, "owner" Text, "keys" Count, "elements" Count, "memory_bytes" Bytes, "serialized_bytes" Bytes,
            "permanent_keys" Count, "expired_keys" Count, "types" Text, "example_key" Text,
        ],
        rows: recovered.classes.iter().map(row).collect(),
    }
}

fn skipped(recovered: &RecoveredKeys) -> Table {
    let rows = (1u64..).zip(&recovered.recoveries).flat_map(|(input, recovery)| {
        // Of a stream nobody knows how much there was.
        let unsearched =
            recovery.needs_file.map(|from| vec![input.into(), from.into(), Cell::Empty, Cell::Empty, 0.into(), 0.into()]);
        let skipped = recovery.skipped.iter().enumerate().map(move |(at, range)| {
            // Behind the last range nothing need follow.
            let stretch = recovery.stretches.get(at);
            vec![
                input.into(),
                range.start.into(),
                range.end.into(),
                (range.end - range.start).into(),
                stretch.map_or(0, |stretch| stretch.keys).into(),
                stretch.map_or(0, |stretch| stretch.bytes.end - stretch.bytes.start).into(),
            ]
        });
        skipped.chain(unsearched)
    });
    Table {
        name: NAMES[1],
        columns: columns![
            "input" Count, "from_byte" Count, "to_byte" Count, "bytes" Bytes, "recovered_keys" Count, "recovered_bytes" Bytes,
        ],
        rows: rows.collect(),
    }
}
