//! Reports are named tables of typed columns, built once and rendered in any format.

macro_rules! columns {
    ($($name:literal $unit:ident),* $(,)?) => {
        &[$(Column { name: $name, unit: Unit::$unit }),*]
    };
}

mod advice;
mod findings;
mod keys;
mod recovered;
mod report;
mod values;

pub use findings::{expiry_timeline, findings as findings_table, permanent_register, versions};
pub use keys::{KEY_COLUMNS, KeyColumn, KeySource, RDBTOOLS_COLUMNS, key_column};
pub use recovered::NAMES as RECOVERED_TABLES;
pub use report::all as report_tables;
pub use values::{NAME as VALUES_TABLE, table as value_formats};

use std::borrow::Cow;

use serde_json::Number;

use crate::key_text;

/// What the numbers of a column count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A name or other text.
    Text,
    /// Keys, elements, ranks and other plain numbers.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Unix milliseconds.
    UnixMs,
    /// A fraction of one.
    Share,
    /// True or false.
    Flag,
}

impl Unit {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::UnixMs => "unix ms",
            Self::Share => "share",
            Self::Flag => "flag",
        }
    }
}

/// A column: its name in files, and what its numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
}

/// A value in a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Nothing to say; never zero.
    Empty,
    /// A number.
    UInt(u64),
    /// A number that may be negative.
    Int(i64),
    /// A number with six decimals.
    Fraction(f64),
    /// Text of this program's own, or text that was escaped before.
    Text(Cow<'a, str>),
    /// Bytes of a dump, shown as key text.
    Key(Cow<'a, [u8]>),
    /// True or false.
    Flag(bool),
}

impl<'a> Cell<'a> {
    /// Text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Bytes of a dump.
    pub fn key(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::Key(bytes.into())
    }

    /// The value as text, without any format's own escapes; `None` where empty.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Empty => return None,
            Self::UInt(n) => n.to_string().into(),
            Self::Int(n) => n.to_string().into(),
            Self::Fraction(x) => format!("{x:.6}").into(),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Key(bytes) => key_text::escape(bytes),
            Self::Flag(yes) => if *yes { "true" } else { "false" }.into(),
        })
    }

    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Empty => Value::Null,
            Self::UInt(n) => Value::from(*n),
            Self::Int(n) => Value::from(*n),
            Self::Fraction(x) => Number::from_f64((x * 1e6).round() / 1e6).map_or(Value::Null, Value::Number),
            Self::Flag(yes) => Value::Bool(*yes),
            Self::Text(_) | Self::Key(_) => self.to_text().map_or(Value::Null, |text| Value::String(text.into_owned())),
        }
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Self::Empty, Self::UInt)
    }
}

impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Self::UInt(n)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(n: Option<i64>) -> Self {
        n.map_or(Self::Empty, Self::Int)
    }
}

/// A finished table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Name, which is the file name without its ending.
    pub name: &'static str,
    /// Columns.
    pub columns: &'static [Column],
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell<'static>>>,
}
