//! The tables of `check`.

use super::{Cell, Column, Table, Unit};
use crate::findings::Verdict;

/// Every finding, a row for each, then those that are gone.
pub fn findings(verdict: &Verdict) -> Table {
    let rows = verdict.findings.iter().map(|finding| {
        vec![
            Cell::text(finding.severity.name()),
            Cell::text(finding.rule),
            Cell::text(finding.kind),
            Cell::text(finding.status.name()),
            Cell::text(finding.class.clone()),
            finding.owner.clone().map_or(Cell::Empty, Cell::text),
            Cell::text(finding.place.clone()),
            finding.keys.into(),
            finding.memory_bytes.into(),
            // Key text has no line ends of its own.
            Cell::text(finding.examples.join("\n")),
            Cell::text(finding.message.clone()),
            Cell::text(finding.fix),
        ]
    });
    let gone = verdict.gone.iter().map(|entry| {
        let kind = entry.id.rule.parse::<crate::findings::Rule>().map_or(Cell::Empty, |rule| Cell::text(rule.kind().name()));
        vec![
            Cell::Empty,
            Cell::text(entry.id.rule.clone()),
            kind,
            Cell::text("gone"),
            Cell::text(entry.id.class.clone()),
            Cell::Empty,
            Cell::text(entry.id.place.clone()),
            entry.keys.into(),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
        ]
    });
    Table {
        name: "findings",
        columns: columns![
            "severity" Text, "rule" Text, "kind" Text, "status" Text, "class" Text, "owner" Text, "place" Text, "keys" Count,
            "memory_bytes" Bytes, "examples" Text, "message" Text, "fix" Text,
        ],
        rows: rows.chain(gone).collect(),
    }
}
