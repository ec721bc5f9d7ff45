//! A part of a dump that is walked on its own.

use std::ops::Range;

use crate::error::Error;

/// Records behind a fault that can be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Where the first of them begins, and the last ends, or the dump.
    pub bytes: Range<u64>,
    /// How many there are.
    pub keys: u64,
    /// What ends it; nothing where that is the end mark.
    pub fault: Option<Error>,
}
