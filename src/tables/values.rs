//! The table of what values are.

use super::report::share;
use super::{Cell, Column, Table, Unit};
use crate::privacy::Names;
use crate::values::ValueRow;

/// Name of this table, which a report has only where values were asked for.
pub const NAME: &str = "value_formats";

/// Formats of sampled values, by class.
pub fn table(values: impl IntoIterator<Item = ValueRow>, names: &Names) -> Table {
    let row = |row: ValueRow| {
        let ratio = (row.compressed_bytes > 0).then(|| row.plain_bytes as f64 / row.compressed_bytes as f64);
        vec![
            Cell::text(names.of_text(&row.class).into_owned()),
            Cell::text(row.format.name()),
            row.schema_version.map_or(Cell::Empty, Cell::text),
            row.strings.into(),
            row.sampled.into(),
            share(row.sampled, row.sampled_of_class),
            row.not_parsed.into(),
            (row.bytes / row.sampled.max(1)).into(),
            ratio.map_or(Cell::Empty, Cell::Fraction),
        ]
    };
    Table {
        name: NAME,
        columns: columns![
            "class" Text, "format" Text, "schema_version" Text, "strings" Count, "sampled_values" Count, "share" Share,
            "not_parsed" Count, "average_bytes" Bytes, "compress_ratio" Share,
        ],
        rows: values.into_iter().map(row).collect(),
    }
}
