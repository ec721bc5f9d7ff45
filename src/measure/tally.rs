//! What is added up while a value passes: all that encoding and memory are computed from.

use crate::rdb::Str;
use crate::rdb::packed::PackedForm;

/// Sums over the strings and packed nodes of one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Strings of the value that stand by themselves.
    pub texts: u64,
    /// Bytes of those strings.
    pub payload: u64,
    /// Bytes of the entries of packed values, where these were opened; encoding and memory must not depend on that.
    pub opened: u64,
    /// Longest string or entry.
    pub longest: u64,
    /// True while every string was the decimal text of a 64-bit integer; false without any.
    pub all_integers: bool,
    /// Bytes of packed values.
    pub packed_bytes: u64,
    /// Nodes of a list.
    pub list_nodes: u64,
    /// Of these, nodes that are one long element.
    pub list_plain_nodes: u64,
    /// Bytes of the largest packed node.
    pub list_largest_node: u64,
}

impl Tally {
    /// Starts over for the next value.
    #[inline]
    pub fn clear(&mut self) {
        *self = Self { all_integers: true, ..Self::default() };
    }

    /// A string that stands by itself.
    #[inline]
    pub fn text(&mut self, text: Str<'_>) {
        let len = text.len();
        self.texts += 1;
        self.payload += len;
        self.longest = self.longest.max(len);
        if self.all_integers {
            self.all_integers = is_integer(text);
        }
    }

    /// An entry of a packed value.
    #[inline]
    pub fn entry(&mut self, len: u64) {
        self.opened += len;
        self.longest = self.longest.max(len);
    }

    /// A packed value, or a packed node of a list.
    #[inline]
    pub fn packed(&mut self, _form: PackedForm, len: u64, entries: u64) {
        self.packed_bytes += len;
        // The loader drops empty nodes.
        if entries > 0 {
            self.list_nodes += 1;
            self.list_largest_node = self.list_largest_node.max(len);
        }
    }
}

/// Canonical decimal text of a signed 64-bit integer: what the server keeps as a number.
#[inline]
fn is_integer(text: Str<'_>) -> bool {
    match text {
        Str::Int(_) => true,
        Str::Raw(bytes) => is_canonical_integer(bytes),
        // Only strings above 20 bytes are compressed.
        Str::Lzf { .. } => false,
    }
}

fn is_canonical_integer(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => bytes.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    // Nineteen digits may pass the range; the parse decides.
    canonical && (digits.len() < 19 || std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_the_server_takes_them() {
        for yes in ["0", "-1", "9223372036854775807", "-9223372036854775808", "10"] {
            assert!(is_canonical_integer(yes.as_bytes()), "{yes}");
        }
        for no in ["", "-", "-0", "+1", "01", "1a", " 1", "9223372036854775808", "-9223372036854775809", "1e3"] {
            assert!(!is_canonical_integer(no.as_bytes()), "{no}");
        }
    }
}
