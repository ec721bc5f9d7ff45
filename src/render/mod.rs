//! Each format renders any table.

mod csv;
mod findings;
mod jsonl;
mod rows;

pub use self::csv::table as csv_table;
pub use findings::{findings_json, junit, sarif};
pub use rows::{RowFormat, RowWriter};
