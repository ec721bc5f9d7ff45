//! Where there are no signals: a mapped file cannot be truncated, and an interrupt ends the process at once.

/// Nothing to be handled.
pub fn handle() {}
