//! What a second look at listed keys has found.

use std::collections::{HashMap, HashSet};

use super::KeyRow;

/// Kept looks are gone through once there are so many times as many as listed keys.
const MOST_TIMES_LISTED: usize = 4;

/// What packed values hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Bytes of all elements.
    pub payload_bytes: Option<u64>,
    /// Bytes of the largest.
    pub largest_element_bytes: Option<u64>,
}

/// Looks by input and offset of the record.
#[derive(Debug, Default)]
pub(super) struct Looks(HashMap<(u32, u64), Look>);

impl Looks {
    /// Looks at the rows of `input` that `look` can see.
    pub(super) fn add<'r>(
        &mut self,
        input: u32,
        rows: impl Iterator<Item = &'r KeyRow> + Clone,
        look: impl Fn(&KeyRow) -> Option<Look>,
    ) {
        for row in rows.clone().filter(|row| row.input == input) {
            if !self.0.contains_key(&(input, row.offset))
                && let Some(found) = look(row)
            {
                self.0.insert((input, row.offset), found);
            }
        }
        let listed = rows.clone().count();
        if self.0.len() > MOST_TIMES_LISTED * listed.max(1) {
            let listed: HashSet<(u32, u64)> = rows.map(|row| (row.input, row.offset)).collect();
            self.0.retain(|place, _| listed.contains(place));
        }
    }

    /// What was found of a row, if anything.
    pub(super) fn of(&self, row: &KeyRow) -> Look {
        self.0.get(&(row.input, row.offset)).copied().unwrap_or_default()
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}
