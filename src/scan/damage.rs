//! Tells from the bytes around a fault how a file was damaged.

use super::pieces::View;
use crate::error::{Error, ErrorKind};

/// Fewest zeros at the end of a file that are no accident: a dump without checksum ends with eight.
const LEAST_ZEROS: usize = 64;

/// The same fault in a window, blamed on zeros where these are its cause. What follows the window is not known.
#[cold]
pub(super) fn diagnose(fault: Error, view: View<'_>) -> Error {
    let bytes = view.bytes;
    let detail = fault.detail();
    let from = usize::try_from(detail.offset.saturating_sub(view.base)).unwrap_or(usize::MAX).min(bytes.len());
    let is_zero = |byte: &u8| *byte == 0;
    if let ErrorKind::Zeros { .. } = detail.kind {
        let zeros = bytes[from..].iter().take_while(|byte| is_zero(byte)).count();
        let kind = ErrorKind::Zeros { bytes: zeros as u64, to_end: view.is_last && from + zeros == bytes.len() };
        return Error::new(detail.offset, detail.reading, kind);
    }
    let zeros = bytes.iter().rev().take_while(|byte| is_zero(byte)).count();
    // The record in which they begin reads them as empty elements, or misses what they stand for.
    if view.is_last && zeros >= LEAST_ZEROS && (fault.is_truncation() || from >= bytes.len() - zeros) {
        let kind = ErrorKind::Zeros { bytes: zeros as u64, to_end: true };
        let at = Error::new(view.base + (bytes.len() - zeros) as u64, detail.reading, kind);
        return match &detail.key {
            Some(key) => at.in_key(key),
            None => at,
        };
    }
    fault
}
