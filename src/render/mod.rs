//! Each format renders any table.

mod csv;
mod jsonl;
mod rows;

pub use self::csv::table as csv_table;
pub use rows::{RowFormat, RowWriter};
