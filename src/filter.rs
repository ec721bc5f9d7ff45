//! Which keys a command looks at.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use std::fmt;
use std::sync::Arc;

use crate::classify::{self, Class, Classifier};
use crate::contract::Contracts;
use crate::measure::{Fact, Lifetime};

/// What keys must be; every condition that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// In one of these databases.
    pub databases: Vec<u64>,
    /// Of one of these types, by name.
    pub types: Vec<String>,
    /// Names that match one of these globs.
    pub matching: Vec<NamePattern>,
    /// Names in which one of these expressions matches.
    pub finding: Vec<NamePattern>,
    /// Names that match none of these.
    pub excluding: Vec<NamePattern>,
    /// In one of these classes.
    pub classes: Vec<String>,
    /// Permanent, volatile or expired.
    pub lifetime: Option<LifetimeKind>,
    /// At least so many bytes of memory; a key whose memory is not modelled has none.
    pub min_memory: Option<u64>,
}

/// A kind of lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifetimeKind {
    /// No expiry.
    Permanent,
    /// An expiry still to come.
    Volatile,
    /// An expiry that has passed.
    Expired,
}

/// A glob or a regular expression over the bytes of key names.
#[derive(Debug, Clone)]
pub struct NamePattern {
    text: String,
    regex: Regex,
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl NamePattern {
    /// A glob as the `KEYS` command reads it: `*`, `?`, `[a-c]`, `[^a]`, and `\` before a character that is meant as such.
    ///
    /// # Errors
    /// A glob that cannot be compiled.
    pub fn glob(glob: &str) -> Result<Self, String> {
        let regex = format!("^(?:{})$", glob_to_regex(glob.as_bytes()));
        Self::compile(glob, &regex).map_err(|why| format!("'{glob}' is no glob: {why}"))
    }

    /// A regular expression; it may match anywhere in the name.
    ///
    /// # Errors
    /// An expression that cannot be compiled.
    pub fn regex(text: &str) -> Result<Self, String> {
        Self::compile(text, text).map_err(|why| format!("'{text}' is no regular expression: {why}"))
    }

    /// True where the name matches.
    pub fn matches(&self, key: &[u8]) -> bool {
        self.regex.is_match(key)
    }

    fn compile(text: &str, regex: &str) -> Result<Self, String> {
        let bytes = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
        let built = Regex::builder().syntax(bytes).configure(Regex::config().utf8_empty(false)).build(regex);
        built.map(|regex| Self { text: text.into(), regex }).map_err(|error| match error.syntax_error() {
            Some(error) => error.to_string().lines().last().unwrap_or_default().to_string(),
            None => error.to_string(),
        })
    }
}

impl Filter {
    /// True where nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.databases.is_empty()
            && self.types.is_empty()
            && self.matching.is_empty()
            && self.finding.is_empty()
            && self.excluding.is_empty()
            && self.classes.is_empty()
            && self.lifetime.is_none()
            && self.min_memory.is_none()
    }

    /// The same, unless nothing is asked for: to be found out once, not for every key.
    pub fn active(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }

    /// The class of a key that is asked for; `None` where it is not.
    #[inline(never)]
    pub fn admit<'c>(&self, classifier: &'c mut Classifier, fact: &Fact<'c>) -> Option<Class<'c>> {
        let contracts = classifier.contracts().map(Arc::clone);
        let mut class = classifier.classify(fact.key);
        self.takes(fact, &mut class, contracts.as_deref()).then_some(class)
    }

    /// True where the key, of `class` by `contracts`, is asked for.
    fn takes(&self, fact: &Fact<'_>, class: &mut Class<'_>, contracts: Option<&Contracts>) -> bool {
        let lifetime = match fact.lifetime {
            Lifetime::Permanent => LifetimeKind::Permanent,
            Lifetime::Volatile { .. } => LifetimeKind::Volatile,
            Lifetime::Expired { .. } => LifetimeKind::Expired,
        };
        (self.databases.is_empty() || self.databases.contains(&fact.db))
            && self.lifetime.is_none_or(|wanted| wanted == lifetime)
            && self.min_memory.is_none_or(|least| fact.memory_bytes.is_some_and(|bytes| bytes >= least))
            && (self.types.is_empty() || self.types.contains(&fact.key_type.to_string()))
            && (self.matching.is_empty() || self.matching.iter().any(|pattern| pattern.matches(fact.key)))
            && (self.finding.is_empty() || self.finding.iter().any(|pattern| pattern.matches(fact.key)))
            && !self.excluding.iter().any(|pattern| pattern.matches(fact.key))
            && (self.classes.is_empty() || self.classes.iter().any(|name| is_class(name, class, contracts)))
    }
}

/// True where a key of `class` belongs to the class called `name`: by contract, else by its shape. In the name, `<*>` stands for the words that
/// a report has collapsed, and a kind of identifier for the narrower ones that it has taken in.
fn is_class(name: &str, class: &mut Class<'_>, contracts: Option<&Contracts>) -> bool {
    if let Some(registered) = class.registered.zip(contracts).and_then(|(at, contracts)| contracts.classes.get(at)) {
        return registered.name == name;
    }
    let mut rest = name.as_bytes();
    for (part, literal) in class.key.shape().parts() {
        // The separator in front of a part belongs to it.
        let start = part.first().filter(|first| rest.first() == Some(first)).map_or(0, |_| 1);
        let collapsed = || rest.get(start..).and_then(|rest| rest.strip_prefix(b"<*>")).filter(|_| literal);
        let after = classify::wider(part).find_map(|part| rest.strip_prefix(&*part)).or_else(collapsed);
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

fn glob_to_regex(glob: &[u8]) -> String {
    let escape = |byte: u8| format!("\\x{byte:02x}");
    let mut out = String::new();
    let mut at = 0;
    while let Some(&byte) = glob.get(at) {
        at += 1;
        match byte {
            b'*' => out.push_str(".*"),
            b'?' => out.push('.'),
            b'\\' if at < glob.len() => {
                out.push_str(&escape(glob[at]));
                at += 1;
            }
            b'[' => at += class_to_regex(&glob[at..], &mut out),
            _ => out.push_str(&escape(byte)),
        }
    }
    out
}

/// Appends a bracket expression whose `[` was taken, and returns how many bytes it takes. One that is not closed ends with the glob.
fn class_to_regex(glob: &[u8], out: &mut String) -> usize {
    let negated = glob.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut ranges = String::new();
    while let Some(&byte) = glob.get(at) {
        if byte == b']' {
            break;
        }
        let (low, after) = if byte == b'\\' && at + 1 < glob.len() { (glob[at + 1], at + 2) } else { (byte, at + 1) };
        let high = match (glob.get(after), glob.get(after + 1)) {
            (Some(b'-'), Some(&high)) if high != b']' => Some(high),
            _ => None,
        };
        let (from, to) = high.map_or((low, low), |high| (low.min(high), low.max(high)));
        ranges.push_str(&format!("\\x{from:02x}-\\x{to:02x}"));
        at = after + if high.is_some() { 2 } else { 0 };
    }
    match (ranges.is_empty(), negated) {
        (true, true) => out.push('.'),
        // Nothing is in an empty list.
        (true, false) => out.push_str("[^\\x00-\\xff]"),
        (false, negated) => out.push_str(&format!("[{}{ranges}]", if negated { "^" } else { "" })),
    }
    at + usize::from(at < glob.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_as_the_keys_command_reads_them() {
        let is = |glob: &str, key: &str| NamePattern::glob(glob).is_ok_and(|glob| glob.matches(key.as_bytes()));
        assert!(is("h?llo", "hello") && is("h?llo", "hallo") && !is("h?llo", "hllo"));
        assert!(is("h*llo", "hllo") && is("h*llo", "heeeello") && is("*", ""));
        assert!(is("h[ae]llo", "hello") && !is("h[ae]llo", "hillo"));
        assert!(is("h[^e]llo", "hallo") && !is("h[^e]llo", "hello"));
        assert!(is("h[a-b]llo", "hbllo") && !is("h[a-b]llo", "hcllo"));
        assert!(is("a\\*", "a*") && !is("a\\*", "ab"));
        assert!(is("user:{*}:x", "user:{1}:x") && !is("user:1", "user:12"));
        assert!(is("a*c", "a\n:c"));
        assert!(NamePattern::glob("a\u{ff}*").is_ok_and(|glob| glob.matches("a\u{ff}b".as_bytes())));
    }

    #[test]
    fn a_regular_expression_matches_anywhere() {
        assert!(NamePattern::regex("^user:\\d+").is_ok_and(|regex| regex.matches(b"user:12:x")));
        assert!(NamePattern::regex("(").is_err_and(|why| why.contains("'('")));
    }
}
