//! The table of what would save memory.

use super::{Cell, Column, Table, Unit};
use crate::privacy::Names;
use crate::report::Report;

/// Advice, what saves most first.
pub fn table(report: &Report, names: &Names) -> Table {
    let rows = report.advice.iter().map(|advice| {
        let name = |name: &str| if advice.registered { name.to_string() } else { names.of_text(name).into_owned() };
        let text = |text: &str| if text.is_empty() { Cell::Empty } else { Cell::text(names.of_text(text).into_owned()) };
        vec![
            Cell::text(advice.kind.name()),
            Cell::text(name(&advice.class)),
            text(&advice.from),
            text(&advice.to),
            advice.keys.into(),
            advice.memory_bytes.into(),
            advice.name_bytes.into(),
            advice.saved_bytes.into(),
            advice.sampled_one_in.into(),
        ]
    });
    let rows = rows.collect();
    let columns = columns![
        "advice" Text, "class" Text, "from" Text, "to" Text, "keys" Count, "memory_bytes" Bytes, "name_bytes" Bytes, "saved_bytes" Bytes,
        "sampled_one_in" Count,
    ];
    Table { name: "advice", columns, rows }
}
