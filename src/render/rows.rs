//! Rows that are written while a dump is walked.

use std::io;

use super::{csv as csv_format, jsonl};
use crate::tables::{Cell, Column};

/// A format that rows can be written in one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// Writes rows into a buffer.
#[derive(Debug)]
pub struct RowWriter {
    columns: Vec<Column>,
    out: Out,
}

#[derive(Debug)]
enum Out {
    Csv(Box<csv::Writer<Vec<u8>>>),
    Jsonl(Vec<u8>),
}

impl RowWriter {
    /// Rows of `columns` in `format`.
    pub fn new(columns: Vec<Column>, format: RowFormat) -> Self {
        let out = match format {
            RowFormat::Csv => Out::Csv(csv_buffer()),
            RowFormat::Jsonl => Out::Jsonl(Vec::new()),
        };
        Self { columns, out }
    }

    /// Writes the names of the columns, where the format has a header.
    pub fn header(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Csv(writer) => Ok(writer.write_record(self.columns.iter().map(|column| column.name))?),
            Out::Jsonl(_) => Ok(()),
        }
    }

    /// Writes one row.
    pub fn row<'a>(&mut self, cells: impl Iterator<Item = Cell<'a>>) -> io::Result<()> {
        match &mut self.out {
            Out::Csv(writer) => csv_format::cells(cells, writer),
            Out::Jsonl(out) => jsonl::row(self.columns.iter(), cells, out),
        }
    }

    /// Takes what was written so far.
    pub fn take(&mut self) -> Vec<u8> {
        match &mut self.out {
            // A buffer in memory has no way to fail.
            Out::Csv(writer) => std::mem::replace(writer, csv_buffer()).into_inner().unwrap_or_default(),
            Out::Jsonl(out) => std::mem::take(out),
        }
    }
}

fn csv_buffer() -> Box<csv::Writer<Vec<u8>>> {
    Box::new(csv::WriterBuilder::new().flexible(false).from_writer(Vec::new()))
}
