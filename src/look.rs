//! A second look at keys that a list shows, with their packed values opened, while their bytes are at hand.

use crate::census::{KeyRow, Look};
use crate::measure::{Fact, FactSink, Measure, Model};
use crate::rdb::{Format, Walker};

/// Walks the record of `row` again; `bytes` begin at byte `base` of its dump. `None` for a record that does not stand in them as
/// it is: it was unpacked, or it ends elsewhere.
pub fn at(row: &KeyRow, bytes: &[u8], base: u64, format: &Format, model: &Model) -> Option<Look> {
    let record = bytes.get(usize::try_from(row.offset.checked_sub(base)?).ok()?..)?;
    let mut sink = Measure::new(model, DeepLook::default());
    Walker::new(record, row.offset, format, row.db).step(&mut sink).ok()?;
    let same = sink.facts.key == *row.key && sink.facts.serialized_bytes == row.serialized_bytes;
    same.then_some(sink.facts.found)
}

#[derive(Default)]
struct DeepLook {
    key: Vec<u8>,
    serialized_bytes: u64,
    found: Look,
}

impl FactSink for DeepLook {
    const DEEP: bool = true;
    const ADVICE: bool = false;

    fn fact(&mut self, fact: &Fact<'_>) {
        self.key = fact.key.into();
        self.serialized_bytes = fact.serialized_bytes;
        self.found = Look { payload_bytes: fact.payload_bytes, largest_element_bytes: fact.largest_element_bytes };
    }
}
