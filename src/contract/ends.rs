//! The literal text at both ends of a pattern.

/// Bytes of whole literal segments at the ends of a pattern that has placeholders between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// Of those in front of the first placeholder, each with the separator behind it.
    pub prefix: usize,
    /// Of the same, were each cut as by [`shortened`].
    pub short_prefix: usize,
    /// Of those behind the last placeholder, each with the separator in front of it.
    pub tail: usize,
}

impl Ends {
    /// The ends of a pattern whose segments stand between these bytes.
    pub fn of_pattern(pattern: &str, separators: &[u8]) -> Self {
        Self::of(pattern.as_bytes().split(|byte| separators.contains(byte)))
    }

    /// The ends of a pattern of these segments, separators left out. Nothing without a placeholder; a segment with an escape in it stands for
    /// other bytes than it has, and counts as a placeholder.
    pub fn of<'t>(segments: impl DoubleEndedIterator<Item = &'t [u8]> + Clone) -> Self {
        let literal = |segment: &&[u8]| !segment.iter().any(|b| b"<>\\".contains(b));
        if segments.clone().all(|segment| literal(&segment)) {
            return Self::default();
        }
        let mut ends = Self::default();
        for segment in segments.clone().take_while(literal) {
            ends.prefix += segment.len() + 1;
            ends.short_prefix += shortened(segment).len() + 1;
        }
        ends.tail = segments.rev().take_while(literal).map(|segment| segment.len() + 1).sum();
        ends
    }
}

/// The first character of a segment, with the brace of a hash tag that begins there. A version stays whole: it tells keys apart.
pub fn shortened(segment: &[u8]) -> &[u8] {
    if let [b'v' | b'V', number @ ..] = segment
        && number.iter().all(u8::is_ascii_digit)
    {
        return segment;
    }
    let brace = usize::from(segment.first() == Some(&b'{'));
    // Bytes that continue a character of UTF-8 have the upper bits 10.
    let end = (brace + 1..segment.len()).find(|&at| segment[at] & 0xc0 != 0x80).unwrap_or(segment.len());
    &segment[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> (usize, usize, usize) {
        let ends = Ends::of_pattern(pattern, b":");
        (ends.prefix, ends.short_prefix, ends.tail)
    }

    #[test]
    fn whole_literal_segments_at_the_ends() {
        assert_eq!(of("user:profile:<digits>"), ("user:profile:".len(), "u:p:".len(), 0));
        assert_eq!(of("user:<digits>:address:street"), (5, 2, ":address:street".len()));
        assert_eq!(of("shop-<digits>:cart"), (0, 0, ":cart".len()));
        assert_eq!(of("cart:{<digits>}:items"), (5, 2, ":items".len()));
        assert_eq!(of("{user:<digits>}"), ("{user:".len(), "{u:".len(), 0));
        assert_eq!(of("größe:<int>"), ("größe:".len(), "g:".len(), 0));
        assert_eq!(of("cache:v12:<digits>"), ("cache:v12:".len(), "c:v12:".len(), 0));
        assert_eq!(of("<digits>"), (0, 0, 0));
        assert_eq!(of(":a:<digits>"), (3, 3, 0));
    }

    #[test]
    fn without_a_placeholder_there_are_no_ends() {
        assert_eq!(of("config:main"), (0, 0, 0));
        assert_eq!(of(""), (0, 0, 0));
    }

    #[test]
    fn a_separator_in_the_name_of_a_placeholder() {
        assert_eq!(Ends::of_pattern("a-<user-id>", b"-").tail, 0);
        assert_eq!(Ends::of_pattern("<user-id>-b", b"-").prefix, 0);
    }

    #[test]
    fn an_escape_is_not_what_stands_in_the_key() {
        assert_eq!(of("a\\nb:user:<digits>:x\\\\y"), (0, 0, 0));
    }
}
