//! The shape of a key: its segments, each typed, with the separators between them.

use super::segment::{self, kind};
use crate::contract::Ends;

/// Most segments that are typed; what follows is one `<**>`.
pub const MOST_SEGMENTS: usize = 16;

/// Bytes that separate the segments of a key.
#[derive(Debug, Clone)]
pub struct Separators {
    bytes: Vec<u8>,
    /// The kind of each byte, with [`kind::SEPARATOR`] where it separates.
    kinds: [u8; 256],
}

impl Separators {
    /// Each of `bytes` separates.
    pub fn new(bytes: &[u8]) -> Self {
        let mut kinds = kind::OF;
        for &byte in bytes {
            kinds[usize::from(byte)] |= kind::SEPARATOR;
        }
        Self { bytes: bytes.into(), kinds }
    }

    /// All of them.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The segments of `key`: at least one, which may be empty.
    #[inline]
    pub fn segments<'k>(&self, key: &'k [u8]) -> Segments<'k, '_> {
        Segments { rest: Some(key), front: &[], separators: self }
    }

    /// True for a byte that separates.
    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.kinds[usize::from(byte)] & kind::SEPARATOR != 0
    }
}

impl Default for Separators {
    /// The colon alone.
    fn default() -> Self {
        Self::new(b":")
    }
}

/// One segment of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'k> {
    /// The run of separators in front of it; empty only before the first.
    pub front: &'k [u8],
    /// Its bytes.
    pub text: &'k [u8],
    /// The kinds of bytes that it holds.
    kinds: u8,
}

/// The segments of a key, one after another.
#[derive(Debug, Clone)]
pub struct Segments<'k, 's> {
    rest: Option<&'k [u8]>,
    front: &'k [u8],
    separators: &'s Separators,
}

impl<'k> Iterator for Segments<'k, '_> {
    type Item = Segment<'k>;

    #[inline]
    fn next(&mut self) -> Option<Segment<'k>> {
        let Self { rest, front, separators } = self;
        let (key, front) = (rest.take()?, std::mem::take(front));
        let mut kinds = 0;
        for (at, &byte) in key.iter().enumerate() {
            let of_byte = separators.kinds[usize::from(byte)];
            if of_byte & kind::SEPARATOR != 0 {
                let (text, after) = key.split_at(at);
                let run = after.iter().position(|&b| !separators.has(b)).unwrap_or(after.len());
                let (run, after) = after.split_at(run);
                (self.front, self.rest) = (run, Some(after));
                return Some(Segment { front, text, kinds });
            }
            kinds |= of_byte;
        }
        Some(Segment { front, text: key, kinds })
    }
}

/// One typed segment in the text of a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where its text ends; it begins where the one before ends. The separator in front belongs to it.
    pub end: usize,
    /// It holds literal letters.
    pub literal: bool,
}

/// Buffer for the shape of one key, used over and over.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    text: Vec<u8>,
    parts: Vec<Part>,
}

impl Shape {
    /// Takes the shape of `key`. A run of separators counts as one. A key that does not begin as text has no segments.
    pub fn take(&mut self, key: &[u8], separators: &Separators) {
        self.text.clear();
        self.parts.clear();
        for segment in separators.segments(key) {
            // The separator is the start of the part.
            self.text.extend(segment.front.first());
            if self.parts.len() == MOST_SEGMENTS {
                self.text.extend_from_slice(b"<**>");
                self.end_part(false);
                return;
            }
            let literal = segment::shape(segment.text, segment.kinds, &mut self.text);
            self.end_part(literal);
            if self.text == segment::BINARY {
                return;
            }
        }
        self.keep_apart();
    }

    /// A key may have the name that reports give to the sum of small classes.
    #[inline]
    fn keep_apart(&mut self) {
        if self.text == b"(other)" {
            self.text.splice(..1, *b"\\x28");
            if let [part] = &mut self.parts[..] {
                part.end = self.text.len();
            }
        }
    }

    /// The shape as text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The typed segments with their text, separators included.
    pub fn parts(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let mut start = 0;
        self.parts.iter().map(move |part| {
            let text = &self.text[start..part.end];
            start = part.end;
            (text, part.literal)
        })
    }

    /// The literal text at its ends.
    pub fn ends(&self) -> Ends {
        let mut segments = [&[][..]; MOST_SEGMENTS + 1];
        for (at, (segment, (text, _))) in segments.iter_mut().zip(self.parts()).enumerate() {
            // A part begins with its separator.
            *segment = if at == 0 { text } else { text.get(1..).unwrap_or_default() };
        }
        Ends::of(segments[..self.parts.len()].iter().copied())
    }

    fn end_part(&mut self, literal: bool) {
        self.parts.push(Part { end: self.text.len(), literal });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, separators: &[u8]) -> String {
        let mut shape = Shape::default();
        shape.take(key.as_bytes(), &Separators::new(separators));
        String::from_utf8_lossy(shape.text()).into_owned()
    }

    #[test]
    fn tags_keep_their_braces() {
        assert_eq!(of("cart:{shop-7:1001}:items", b":"), "cart:{shop-<digits>:<digits>}:items");
        assert_eq!(of("order:{shop-7}:0", b":"), "order:{shop-<digits>}:<digits>");
    }

    #[test]
    fn ends_of_a_shape_are_those_of_its_text() {
        for key in ["user:profile:17", "user:17:name", "17", "a:b", "", "cart:{shop-7:1001}:items", "::1::", &"1:x".repeat(20)] {
            let mut shape = Shape::default();
            shape.take(key.as_bytes(), &Separators::default());
            let text = String::from_utf8_lossy(shape.text()).replace("x<**>", "x:<**>");
            assert_eq!(shape.ends(), Ends::of_pattern(&text, b":"), "{key}");
        }
    }

    #[test]
    fn a_run_of_separators_is_one() {
        for key in ["f::1", "f:::2", "f:3"] {
            assert_eq!(of(key, b":"), "f:<digits>");
        }
        assert_eq!(of(":a:", b":"), ":a:");
        assert_eq!(of("", b":"), "");
    }

    #[test]
    fn a_separator_among_binary_bytes_is_an_accident() {
        let mut shape = Shape::default();
        shape.take(b"\x00\xff:\x07:a", &Separators::default());
        assert_eq!(shape.text(), b"<*>");
        shape.take(b"user:\x00\xff:profile", &Separators::default());
        assert_eq!(shape.text(), b"user:<*>:profile");
    }

    #[test]
    fn a_key_named_as_the_sum_of_classes() {
        assert_eq!(of("(other)", b":"), "\\x28other)");
        assert_eq!(of("(other):1", b":"), "(other):<digits>");
    }

    #[test]
    fn other_separators() {
        assert_eq!(of("XYZ/abc:1", b":/"), "XYZ/abc:<digits>");
        assert_eq!(of("a-b-1", b":"), "a-b-<digits>");
    }

    #[test]
    fn a_key_of_separators_has_a_bounded_shape() {
        assert_eq!(of(&"a:".repeat(1000), b":"), "a:".repeat(16) + "<**>");
    }
}
