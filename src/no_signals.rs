//! Where there are no signals: a mapped file cannot be truncated, and an interrupt ends the process at once.

/// Nothing to be handled.
pub fn handle() {}

/// Nothing to be watched.
pub fn watch(_map: &[u8]) {}

/// Nothing to be forgotten.
pub fn forget(_map: std::ops::Range<*const u8>) {}

/// Never.
pub fn is_cut_off(_map: &[u8]) -> bool {
    false
}
