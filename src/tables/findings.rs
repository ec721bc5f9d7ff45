//! The tables of `check`.

use super::report::share;
use super::{Cell, Column, Table, Unit};
use crate::findings::{ALL, RegisterRow, Timeline, Verdict, VersionRow};
use crate::privacy::Names;
use crate::time;

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

/// What is agreed on permanent classes beside what is there.
pub fn permanent_register(register: &[RegisterRow], names: &Names) -> Table {
    let text = |text: &Option<String>| text.clone().map_or(Cell::Empty, Cell::text);
    let flag = |flag: Option<bool>| flag.map_or(Cell::Empty, Cell::Flag);
    let rows = register.iter().map(|row| {
        vec![
            Cell::text(names.of_text(&row.class).into_owned()),
            Cell::Flag(row.registered),
            text(&row.owner),
            text(&row.source),
            text(&row.delete),
            flag(row.backup),
            flag(row.rebuild),
            row.budget_keys.into(),
            row.keys.into(),
            row.permanent_keys.into(),
            row.permanent_memory_bytes.into(),
            Cell::text(row.lacking.join(" ")),
        ]
    });
    Table {
        name: "permanent_register",
        columns: columns![
            "class" Text, "registered" Flag, "owner" Text, "source" Text, "delete" Text, "backup" Flag, "rebuild" Flag,
            "budget_keys" Count, "keys" Count, "permanent_keys" Count, "permanent_memory_bytes" Bytes, "lacking" Text,
        ],
        rows: rows.collect(),
    }
}

/// Keys and bytes that expiry frees: every span of all classes together, and those spans of each class in which a key expires.
pub fn expiry_timeline(timelines: &[(String, Timeline)], names: &Names) -> Table {
    let rows = timelines.iter().flat_map(|(class, timeline)| {
        let name = names.of_text(class).into_owned();
        let is_all = class == ALL;
        let shown = timeline.spans().into_iter().filter(move |span| is_all || span.keys > 0);
        shown.map(move |span| {
            vec![
                Cell::text(name.clone()),
                Cell::text(span.unit),
                span.from_seconds.into(),
                span.keys.into(),
                span.memory_bytes.into(),
            ]
        })
    });
    Table {
        name: "expiry_timeline",
        columns: columns!["class" Text, "unit" Text, "from_seconds" Seconds, "keys" Count, "memory_bytes" Bytes],
        rows: rows.collect(),
    }
}

/// Keys by the version in their names.
pub fn versions(versions: &[VersionRow], names: &Names) -> Table {
    let row = |row: &VersionRow| {
        let and_lower = if row.and_lower { " and lower" } else { "" };
        vec![
            Cell::text(names.of_text(&row.pattern).into_owned()),
            row.version.map_or(Cell::Empty, |number| Cell::text(format!("v{number}{and_lower}"))),
            Cell::text(names.of_text(&row.class).into_owned()),
            Cell::Flag(row.is_current),
            row.keys.into(),
            share(row.keys, row.group_keys),
            row.memory_bytes.into(),
            row.permanent_keys.into(),
            row.keys.saturating_sub(row.permanent_keys).saturating_sub(row.expired_keys).into(),
            row.expired_keys.into(),
            row.gone_at_ms.and_then(time::rfc3339_millis).map_or(Cell::Empty, Cell::text),
        ]
    };
    Table {
        name: "versions",
        columns: columns![
            "pattern" Text, "version" Text, "class" Text, "is_current" Flag, "keys" Count, "keys_share" Share, "memory_bytes" Bytes,
            "permanent_keys" Count, "volatile_keys" Count, "expired_keys" Count, "gone_at" Text,
        ],
        rows: versions.iter().map(row).collect(),
    }
}
