//! Tells from the bytes around a fault how a file was damaged.

use super::pieces::View;
use crate::error::{Error, ErrorKind};
use crate::input::Windows;

/// Fewest zeros at the end of a file that are no accident: a dump without checksum ends with eight.
const LEAST_ZEROS: u64 = 64;

/// A fault, and the zeros that may be its cause.
#[derive(Debug)]
pub(super) struct Suspicion {
    fault: Error,
    /// Where they begin, and how many are in the window.
    start: u64,
    zeros: u64,
    /// They reach its end.
    is_open: bool,
}

impl Suspicion {
    /// What the window in which a fault lies tells of it.
    #[cold]
    pub(super) fn of(fault: Error, view: View<'_>) -> Self {
        let bytes = view.bytes;
        let detail = fault.detail();
        let from = usize::try_from(detail.offset.saturating_sub(view.base)).unwrap_or(usize::MAX).min(bytes.len());
        let is_zero = |byte: &&u8| **byte == 0;
        if let ErrorKind::Zeros { .. } = detail.kind {
            let zeros = bytes[from..].iter().take_while(is_zero).count();
            return Self { start: detail.offset, zeros: zeros as u64, is_open: from + zeros == bytes.len(), fault };
        }
        let zeros = bytes.iter().rev().take_while(is_zero).count();
        // The record in which they begin reads them as empty elements, or misses what they stand for.
        let is_open = zeros > 0 && (fault.is_truncation() || from >= bytes.len() - zeros);
        Self { start: view.end() - zeros as u64, zeros: zeros as u64, is_open, fault }
    }

    /// True where it depends on what is behind the window.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The fault, blamed on the zeros where these are its cause: `behind` more follow the window, to the end of the file or not.
    pub(super) fn settle(self, behind: u64, to_end: bool) -> Error {
        let Self { fault, start, zeros, is_open } = self;
        let (bytes, to_end) = if is_open { (zeros.saturating_add(behind), to_end) } else { (zeros, false) };
        let detail = fault.detail();
        let is_told = matches!(detail.kind, ErrorKind::Zeros { .. });
        let are_the_cause = is_told || (to_end && bytes >= LEAST_ZEROS);
        if !are_the_cause {
            return fault;
        }
        let at = Error::new(start, detail.reading, ErrorKind::Zeros { bytes, to_end });
        match &detail.key {
            Some(key) if !is_told => at.in_key(key),
            _ => at,
        }
    }
}

/// Passes zeros behind the first `passed` bytes of a window, and tells how many there are and whether nothing follows them.
pub(super) fn zeros_behind(windows: &mut dyn Windows, mut passed: usize) -> (u64, bool) {
    let mut zeros = 0;
    loop {
        let window = windows.next(passed, 0);
        let more = window.bytes.iter().take_while(|byte| **byte == 0).count();
        zeros += more as u64;
        if more < window.bytes.len() || window.is_last {
            return (zeros, more == window.bytes.len() && window.fault.is_none());
        }
        passed = more;
    }
}
