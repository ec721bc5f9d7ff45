//! The literal segments that may follow at one place of the tree of patterns.

use std::hash::{Hash, Hasher};

use hashbrown::{Equivalent, HashMap};

/// Longest text that is kept in place, in bytes.
const INLINE: usize = 22;

/// Where each literal segment leads.
#[derive(Debug)]
pub(super) enum Literals {
    /// Nothing is literal here.
    None,
    /// One segment, as at most places below the first few.
    One(Text, u32),
    /// Several.
    Many(HashMap<Text, u32>),
}

impl Literals {
    /// The places that literal segments lead to.
    pub(super) fn new(all: impl ExactSizeIterator<Item = (Box<[u8]>, usize)>) -> Self {
        // As many as fit the memory of a table of patterns.
        let mut all = all.map(|(text, next)| (Text::new(text), next as u32));
        match all.len() {
            0 | 1 => all.next().map_or(Self::None, |(text, next)| Self::One(text, next)),
            _ => Self::Many(all.collect()),
        }
    }

    /// The segments, in no order.
    pub(super) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(text, _) => (Some(text), None),
            Self::Many(table) => (None, Some(table)),
        };
        one.into_iter().chain(many.into_iter().flat_map(HashMap::keys)).map(Text::as_bytes)
    }

    /// Where `segment` leads.
    #[inline]
    pub(super) fn get(&self, segment: &[u8]) -> Option<usize> {
        match self {
            Self::None => None,
            Self::One(text, next) => (text.as_bytes() == segment).then_some(*next as usize),
            Self::Many(table) => table.get(segment).map(|next| *next as usize),
        }
    }
}

/// A text that needs no look elsewhere unless it is long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    Short(u8, [u8; INLINE]),
    Long(Box<[u8]>),
}

impl Text {
    fn new(text: Box<[u8]>) -> Self {
        if text.len() > INLINE {
            return Self::Long(text);
        }
        let mut bytes = [0; INLINE];
        bytes[..text.len()].copy_from_slice(&text);
        Self::Short(text.len() as u8, bytes)
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Self::Long(bytes) => bytes,
        }
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Equivalent<Text> for [u8] {
    #[inline]
    fn equivalent(&self, text: &Text) -> bool {
        text.as_bytes() == self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_one_and_many_of_any_length() {
        let long = "x".repeat(40);
        for n in 0..4 {
            let texts = ["user", &long, "", "0123456789abcdef012345"];
            let literals = Literals::new(texts.iter().take(n).enumerate().map(|(at, text)| (text.as_bytes().into(), at)));
            for (at, text) in texts.iter().enumerate() {
                assert_eq!(literals.get(text.as_bytes()), (at < n).then_some(at), "{text} of {n}");
            }
            assert_eq!(literals.get(b"use"), None);
        }
    }
}
