//! Comma-separated values that a spreadsheet opens without running a formula.

use std::borrow::Borrow;
use std::io::{self, Write};

use crate::key_text;
use crate::tables::{Cell, Table};

/// Writes `table` with its header.
pub fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns.iter().map(|column| column.name))?;
    for row in &table.rows {
        cells(row, &mut writer)?;
    }
    writer.flush()
}

/// Writes one row.
pub(super) fn cells<'a, W: Write>(
    cells: impl IntoIterator<Item = impl Borrow<Cell<'a>>>,
    writer: &mut csv::Writer<W>,
) -> io::Result<()> {
    let mut number = itoa::Buffer::new();
    for cell in cells {
        let cell = cell.borrow();
        match cell {
            Cell::UInt(n) => writer.write_field(number.format(*n))?,
            Cell::Int(n) => writer.write_field(number.format(*n))?,
            Cell::Fraction(_) | Cell::Empty | Cell::Flag(_) => {
                writer.write_field(cell.to_text().as_deref().unwrap_or_default())?
            }
            Cell::Text(_) | Cell::Key(_) => {
                let text = cell.to_text().unwrap_or_default();
                match key_text::csv_guarded(&text) {
                    Some(guarded) => writer.write_field(guarded)?,
                    None => writer.write_field(&*text)?,
                }
            }
        }
    }
    Ok(writer.write_record(None::<&[u8]>)?)
}
