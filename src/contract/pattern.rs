//! The pattern of a class: segments of literal text and placeholders.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::placeholder::{Narrowness, Type};

/// Most segments of a pattern.
const MOST_SEGMENTS: usize = 64;

/// A compiled pattern, not yet joined with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Its segments; none has a separator in it.
    pub segments: Vec<Segment>,
    /// What its last segment may do.
    pub tail: Tail,
}

/// What follows, or may follow, the segments of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tail {
    /// Nothing.
    None,
    /// The last segment may be missing.
    Optional,
    /// The last segment may be there again and again.
    Repeated,
    /// Any number of any segments.
    Rest,
}

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment(Vec<Atom>);

/// A piece of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Atom {
    /// Text that stands as it is.
    Literal(String),
    /// One of a list.
    OneOf(Vec<String>),
    /// A typed placeholder.
    Typed(Type),
}

/// What the file says that a placeholder may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// One of a list.
    OneOf(Vec<String>),
    /// Literal text and typed placeholders.
    Pattern(Vec<Atom>),
}

/// The order among patterns that match the same key: the smallest wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence {
    is_rest: bool,
    literals: Reverse<usize>,
    segments: Vec<Narrowness>,
    tail: Tail,
    /// Of two that repeat the same segment, the one that asks for more of them is narrower.
    least: Reverse<usize>,
}

/// Names that a file defines for placeholders.
pub type Definitions = BTreeMap<String, Definition>;

impl Pattern {
    /// Reads a pattern whose keys are split at `separators`.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    pub fn parse(text: &str, separators: &[u8], definitions: &Definitions) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern is empty: write the text of a key, with <placeholders> for what varies".into());
        }
        let texts = split(text, separators)?;
        if texts.len() > MOST_SEGMENTS {
            return Err(format!("a pattern has more than {MOST_SEGMENTS} segments"));
        }
        let last = texts.len() - 1;
        let mut segments = Vec::new();
        let mut tail = Tail::None;
        for (at, text) in texts.into_iter().enumerate() {
            if text.is_empty() && (1..last).contains(&at) {
                return Err("a segment is empty: a run of separators counts as one, so write one".into());
            }
            let whole = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
            let special = match whole {
                Some("**") => Some((Tail::Rest, None)),
                Some(name) if name.ends_with('?') => Some((Tail::Optional, Some(&name[..name.len() - 1]))),
                Some(name) if name.ends_with('+') => Some((Tail::Repeated, Some(&name[..name.len() - 1]))),
                _ => None,
            };
            if special.is_some() && at != last {
                return Err(format!("'{text}' can only be the last segment"));
            }
            match special {
                None => segments.push(Segment(atoms(text, definitions)?)),
                Some((special, name)) => {
                    tail = special;
                    if let Some(name) = name {
                        segments.push(Segment(atoms(&format!("<{name}>"), definitions)?));
                    }
                }
            }
        }
        Ok(Self { segments, tail })
    }

    /// Where the pattern stands among those that match the same key.
    pub fn precedence(&self) -> Precedence {
        let mut segments: Vec<Narrowness> = self.segments.iter().map(Segment::narrowness).collect();
        let literals = Reverse(segments.iter().filter(|narrow| **narrow == Narrowness::Literal).count());
        // What may follow counts as well: else a pattern that takes more would be the shorter one, and win.
        match (self.tail, segments.last()) {
            (Tail::Rest, _) => segments.push(Narrowness::Rest),
            (Tail::Repeated, Some(&last)) => segments.resize(MOST_SEGMENTS + 1, last),
            _ => {}
        }
        Precedence { is_rest: self.tail == Tail::Rest, literals, segments, tail: self.tail, least: Reverse(self.segments.len()) }
    }
}

impl Segment {
    /// Its text, where it has no placeholder.
    pub fn literal(&self) -> Option<String> {
        self.0
            .iter()
            .map(|atom| match atom {
                Atom::Literal(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// A regular expression over bytes for what it matches.
    pub fn regex(&self) -> String {
        let atom = |atom: &Atom| match atom {
            Atom::Literal(text) => escape(text),
            Atom::OneOf(values) => format!("(?:{})", values.iter().map(|v| escape(v)).collect::<Vec<_>>().join("|")),
            Atom::Typed(kind) => kind.regex(),
        };
        self.0.iter().map(atom).collect()
    }

    /// The atoms.
    pub fn atoms(&self) -> &[Atom] {
        &self.0
    }

    fn narrowness(&self) -> Narrowness {
        match &self.0[..] {
            _ if self.literal().is_some() => Narrowness::Literal,
            [Atom::OneOf(_)] => Narrowness::Enumeration,
            [Atom::Typed(kind)] => kind.narrowness(),
            atoms => {
                let text = atoms.iter().map(|atom| if let Atom::Literal(text) = atom { text.len() } else { 0 }).sum();
                Narrowness::Mixed(Reverse(text))
            }
        }
    }
}

impl Definition {
    /// Reads a definition that is a pattern: literal text and typed placeholders.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    pub fn pattern(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a placeholder cannot be empty: write the text or the type of the segment".into());
        }
        Ok(Self::Pattern(atoms(text, &Definitions::new())?))
    }
}

fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("\\x{byte:02x}") })
        .collect()
}

/// The segments of a pattern as they were written; nothing where it is no pattern.
pub(crate) fn texts<'t>(pattern: &'t str, separators: &[u8]) -> Vec<&'t str> {
    split(pattern, separators).unwrap_or_default()
}

/// Splits at separators that stand outside placeholders.
fn split<'t>(text: &'t str, separators: &[u8]) -> Result<Vec<&'t str>, String> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut inside = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' if inside => return Err("'<' inside a placeholder: close the one before with '>'".into()),
            b'<' => inside = true,
            b'>' if !inside => return Err("'>' without '<': escape literal brackets as \\x3c and \\x3e".into()),
            b'>' => inside = false,
            byte if !inside && separators.contains(&byte) => {
                segments.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("a placeholder is not closed: write '>' after its name".into());
    }
    segments.push(&text[start..]);
    Ok(segments)
}

/// Reads the atoms of one segment. Literal text is key text, so that a discovered shape is a pattern.
fn atoms(text: &str, definitions: &Definitions) -> Result<Vec<Atom>, String> {
    let mut atoms: Vec<Atom> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('<') {
            let (name, after) = after.split_once('>').ok_or("a placeholder is not closed: write '>' after its name")?;
            rest = after;
            match definitions.get(name) {
                Some(Definition::OneOf(values)) => atoms.push(Atom::OneOf(values.clone())),
                Some(Definition::Pattern(inner)) => atoms.extend(inner.iter().cloned()),
                None => atoms.push(Atom::Typed(Type::named(name).ok_or_else(|| unknown(name, definitions))?)),
            }
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            let (literal, after) = rest.split_at(end);
            rest = after;
            atoms.push(Atom::Literal(unescape(literal)?));
        }
    }
    // Two pieces of text in a row, which a definition can bring, are one.
    let mut joined: Vec<Atom> = Vec::new();
    for atom in atoms {
        match (joined.last_mut(), atom) {
            (Some(Atom::Literal(before)), Atom::Literal(text)) => before.push_str(&text),
            (_, atom) => joined.push(atom),
        }
    }
    Ok(joined)
}

fn unescape(literal: &str) -> Result<String, String> {
    if !literal.contains('\\') {
        return Ok(literal.into());
    }
    // Brackets are escaped in shapes though they are plain key text.
    let plain = literal.replace("\\x3c", "<").replace("\\x3e", ">");
    let bytes =
        crate::key_text::unescape(&plain).map_err(|_| format!("'{literal}' has an escape that key text does not have"))?;
    String::from_utf8(bytes).map_err(|_| format!("'{literal}' is no UTF-8; use <*> for binary segments"))
}

fn unknown(name: &str, definitions: &Definitions) -> String {
    let what = match name {
        "" => "a placeholder has no name".to_string(),
        _ => format!("no placeholder '<{name}>'"),
    };
    let known = definitions.keys().map(String::as_str).chain(Type::EXAMPLES);
    let near = known.map(|known| (distance(name, known), known)).min();
    match near {
        Some((away, near)) if away <= 2 && away < near.len() && !name.is_empty() => format!("{what}: did you mean '<{near}>'?"),
        _ => format!("{what}: define it under [segments], or use {}", Type::NAMES),
    }
}

/// How many letters are to be put in, taken out or changed between two names, whatever their case.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}
