//! Contracts that a key nearly keeps: it lacks a segment, or has a value that one does not allow, or has its hash tag elsewhere.

use hashbrown::HashMap;

use super::automaton::SegmentSet;
use super::file::Contracts;
use super::pattern::{Pattern, Segment, Tail, texts};
use crate::classify::Separators;

/// Most segments that may be missing or wrong.
const MOST_APART: usize = 2;

/// Most segments of a key that is looked at.
const MOST_SEGMENTS: usize = 64;

/// Finds the contract that a key without one comes near to.
#[derive(Debug)]
pub struct Near<'c> {
    separators: Separators,
    patterns: Vec<NearPattern<'c>>,
    sets: HashMap<String, SegmentSet>,
}

#[derive(Debug)]
struct NearPattern<'c> {
    class: usize,
    pattern: &'c Pattern,
    /// Each segment as it was written.
    texts: Vec<&'c str>,
}

/// What keeps a key from a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// Index of the class.
    pub class: usize,
    /// What is wrong, from the left.
    pub faults: Vec<Fault>,
}

/// One thing wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A segment, as the pattern has it, is not there.
    Missing(String),
    /// The segment, as the pattern has it, does not allow this value.
    Unknown(String, Vec<u8>),
}

impl<'c> Near<'c> {
    /// Over all patterns but those that take any number of segments.
    pub fn new(contracts: &'c Contracts) -> Self {
        let mut sets = HashMap::new();
        let mut patterns = Vec::new();
        for (class, pattern) in contracts.patterns.iter().enumerate() {
            if matches!(pattern.tail, Tail::Rest | Tail::Repeated) {
                continue;
            }
            let is_tagged = contracts.classes[class].pattern.contains('{');
            for segment in &pattern.segments {
                for regex in [Some(segment.regex()), is_tagged.then(|| untagged(segment))].into_iter().flatten() {
                    if !sets.contains_key(&regex)
                        && let Ok(set) = SegmentSet::new(std::slice::from_ref(&regex))
                    {
                        sets.insert(regex, set);
                    }
                }
            }
            let texts = texts(&contracts.classes[class].pattern, &contracts.separators);
            patterns.push(NearPattern { class, pattern, texts });
        }
        Self { separators: Separators::new(&contracts.separators), patterns, sets }
    }

    /// The class that `key`, which no pattern takes, comes nearest to: with the fewest faults, the first of the file among equals.
    pub fn find(&self, key: &[u8]) -> Option<Miss> {
        let segments = self.segments(key)?;
        let found = self.patterns.iter().filter_map(|near| {
            let mut faults = Vec::new();
            let apart = self.apart(near, 0, &segments, MOST_APART, &mut faults)?;
            let literals = near.pattern.segments.iter().filter(|segment| segment.literal().is_some()).count();
            // What has little text in common with a pattern is none of its keys.
            (apart > 0 && literals >= apart).then_some((apart, near.class, faults))
        });
        let (_, class, mut faults) = found.min_by_key(|(apart, class, _)| (*apart, *class))?;
        faults.reverse();
        Some(Miss { class, faults })
    }

    /// The class whose pattern takes `key` once the braces of hash tags are left out on both sides.
    pub fn find_untagged(&self, key: &[u8]) -> Option<usize> {
        let plain: Vec<u8> = key.iter().copied().filter(|byte| !matches!(byte, b'{' | b'}')).collect();
        let segments = self.segments(&plain)?;
        self.patterns
            .iter()
            .filter(|near| near.texts.iter().any(|text| text.contains('{')))
            .find(|near| {
                near.pattern.segments.len() == segments.len()
                    && near.pattern.segments.iter().zip(&segments).all(|(segment, text)| self.matches(&untagged(segment), text))
            })
            .map(|near| near.class)
    }

    fn segments<'k>(&self, key: &'k [u8]) -> Option<Vec<&'k [u8]>> {
        let segments: Vec<_> = self.separators.segments(key).map(|segment| segment.text).take(MOST_SEGMENTS + 1).collect();
        (segments.len() <= MOST_SEGMENTS).then_some(segments)
    }

    /// How many faults keep `key` from the segments of a pattern from `at` on, where they are at most `most`; puts them last first.
    fn apart(&self, near: &NearPattern<'_>, at: usize, key: &[&[u8]], most: usize, faults: &mut Vec<Fault>) -> Option<usize> {
        let Some(segment) = near.pattern.segments.get(at) else { return key.is_empty().then_some(0) };
        let is_last = at + 1 == near.pattern.segments.len();
        if key.is_empty() && is_last && near.pattern.tail == Tail::Optional {
            return Some(0);
        }
        let text = near.texts.get(at).copied().unwrap_or_default();
        if let Some((first, rest)) = key.split_first()
            && self.takes(segment, first)
        {
            return self.apart(near, at + 1, rest, most, faults);
        }
        // Text is what makes the key one of this class; only a version can be left out.
        let is_text = segment.literal().is_some();
        if most == 0 || (is_text && !is_version(text)) {
            return None;
        }
        let mut missing = Vec::new();
        let without = self.apart(near, at + 1, key, most - 1, &mut missing).map(|n| n + 1);
        let mut unknown = Vec::new();
        let replaced = key.split_first().filter(|_| !is_text).and_then(|(first, rest)| {
            let apart = self.apart(near, at + 1, rest, most - 1, &mut unknown)?;
            // An empty segment is one that is not there.
            unknown.push(if first.is_empty() {
                Fault::Missing(text.into())
            } else {
                Fault::Unknown(text.into(), first.to_vec())
            });
            Some(apart + 1)
        });
        missing.push(Fault::Missing(text.into()));
        let (apart, found) = match (without, replaced) {
            (Some(a), Some(b)) if b <= a => (b, unknown),
            (None, Some(b)) => (b, unknown),
            (Some(a), _) => (a, missing),
            (None, None) => return None,
        };
        faults.extend(found);
        Some(apart)
    }

    fn takes(&self, segment: &Segment, text: &[u8]) -> bool {
        if let Some(literal) = segment.literal() {
            return literal.as_bytes() == text;
        }
        self.matches(&segment.regex(), text)
    }

    fn matches(&self, regex: &str, text: &[u8]) -> bool {
        let mut matched = false;
        if let Some(set) = self.sets.get(regex) {
            set.matches(text, |_| matched = true);
        }
        matched
    }
}

/// A regular expression for what a segment matches, the braces of hash tags left out.
fn untagged(segment: &Segment) -> String {
    segment.regex().replace("\\x7b", "").replace("\\x7d", "")
}

/// `v1`, as patterns write it.
pub fn is_version(text: &str) -> bool {
    version_number(text).is_some()
}

/// The number of `v1` or `V01`.
pub fn version_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['v', 'V'])?;
    ((1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
[segments]
env = ['prod', 'dev']
tenant = 'shop-<digits>'
[[class]]
name = 'profile'
pattern = '<env>:<tenant>:user:profile:<digits>'
[[class]]
name = 'cart'
pattern = 'cart:{<tenant>:<digits>}:items'
[[class]]
name = 'cache'
pattern = 'cache:v2:user:<digits>'
[[class]]
name = 'login'
pattern = 'login:<phone>'
";

    fn miss(key: &str) -> Option<(String, Vec<String>)> {
        let contracts = Contracts::parse(FILE).expect("a good file");
        assert_eq!(contracts.class_of(key.as_bytes()), None, "{key}");
        let miss = Near::new(&contracts).find(key.as_bytes())?;
        let fault = |fault: &Fault| match fault {
            Fault::Missing(segment) => format!("no {segment}"),
            Fault::Unknown(segment, value) => format!("{segment} is {}", String::from_utf8_lossy(value)),
        };
        Some((contracts.classes[miss.class].name.clone(), miss.faults.iter().map(fault).collect()))
    }

    #[test]
    fn what_is_missing_or_unknown() {
        let found = |class: &str, faults: &[&str]| Some((class.to_string(), faults.iter().map(ToString::to_string).collect()));
        assert_eq!(miss("prod::user:profile:4"), found("profile", &["no <tenant>"]));
        assert_eq!(miss("prod:user:profile:4"), found("profile", &["no <tenant>"]));
        assert_eq!(miss("user:profile:1005"), found("profile", &["no <env>", "no <tenant>"]));
        assert_eq!(miss("prod:shop-7:user:profile"), found("profile", &["no <digits>"]));
        assert_eq!(miss("prod:shop-7:user:profile:"), found("profile", &["no <digits>"]));
        assert_eq!(miss("qa:shop-7:user:profile:4"), found("profile", &["<env> is qa"]));
        assert_eq!(miss("qa:shop7:user:profile:4"), found("profile", &["<env> is qa", "<tenant> is shop7"]));
        assert_eq!(miss("cache:user:1"), found("cache", &["no v2"]));
        assert_eq!(miss("login:not-a-phone"), found("login", &["<phone> is not-a-phone"]));
        assert_eq!(miss("login"), found("login", &["no <phone>"]));
    }

    #[test]
    fn what_is_no_key_of_any_pattern() {
        for key in ["prod:shop-7:user:profile:1:copy", "prod:shop-7:users:profile:1", "1:2:3", "", "a:b", "cache:v1:user:1"] {
            assert_eq!(miss(key), None, "{key}");
        }
        assert_eq!(miss(&"a:".repeat(1000)), None);
    }

    #[test]
    fn another_hash_tag() {
        let contracts = Contracts::parse(FILE).expect("a good file");
        let near = Near::new(&contracts);
        for (key, class) in [
            ("cart:shop-7:1001:items", Some(1)),
            ("cart:{shop-7}:1001:items", Some(1)),
            ("cart:{shop-7}:x:items", None),
            ("{prod}:shop-7:user:profile:1", None),
        ] {
            assert_eq!(near.find_untagged(key.as_bytes()), class, "{key}");
        }
    }
}
