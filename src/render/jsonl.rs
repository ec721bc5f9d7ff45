//! One JSON object a line.

use std::io::{self, Write};

use serde::Serializer as _;
use serde::ser::SerializeMap as _;

use crate::tables::{Cell, Column};

/// Writes one row as an object with the columns' names.
pub(super) fn row<'a, 'c>(
    columns: impl Iterator<Item = &'c Column>,
    cells: impl Iterator<Item = Cell<'a>>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let mut json = serde_json::Serializer::new(&mut *out);
    let mut map = json.serialize_map(None)?;
    for (column, cell) in columns.zip(cells) {
        match &cell {
            Cell::Empty => map.serialize_entry(column.name, &())?,
            Cell::UInt(n) => map.serialize_entry(column.name, n)?,
            Cell::Int(n) => map.serialize_entry(column.name, n)?,
            Cell::Text(text) => map.serialize_entry(column.name, text)?,
            Cell::Fraction(_) | Cell::Key(_) | Cell::Flag(_) => map.serialize_entry(column.name, &cell.to_json())?,
        }
    }
    map.end()?;
    out.write_all(b"\n")
}
