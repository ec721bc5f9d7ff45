//! The contracts file: TOML, validated with the line and column of each mistake.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::ends::Ends;
use super::matcher::{self, Matcher};
use super::pattern::{Definition, Definitions, Pattern};
use super::quantity;
use crate::classify::Separators;
use crate::key_text;
use crate::measure::{Allocator, Server};

/// What a team has agreed on its keys.
#[derive(Debug)]
pub struct Contracts {
    /// Bytes that separate segments; the colon unless the file says otherwise.
    pub separators: Vec<u8>,
    /// Limits of every class that has none of its own.
    pub limits: Limits,
    /// Databases that keys may be in.
    pub databases: Option<Vec<u64>>,
    /// Classes in file order.
    pub classes: Vec<Class>,
    /// The server's capacity.
    pub capacity: Option<Capacity>,
    /// The server that the keys are in.
    pub server: Option<ServerTable>,
    matcher: Matcher,
}

/// The contract of one class.
#[derive(Debug, Clone)]
pub struct Class {
    /// Name, unique in the file.
    pub name: String,
    /// Pattern as it was written.
    pub pattern: String,
    /// Its literal ends.
    pub ends: Ends,
    /// Team that owns the data.
    pub owner: Option<String>,
    /// Where the data is from.
    pub source: Option<String>,
    /// Types that its keys may have.
    pub types: Vec<String>,
    /// Agreed lifetime.
    pub ttl: Option<Ttl>,
    /// Current version of the key's version segment or of the value.
    pub version: Option<u64>,
    /// Whether it can be rebuilt after loss.
    pub rebuild: Option<bool>,
    /// How its keys are deleted.
    pub delete: Option<String>,
    /// Whether it is backed up.
    pub backup: Option<bool>,
    /// Agreed size.
    pub budget: Option<Budget>,
    /// Limits of its own.
    pub limits: Limits,
}

/// Agreed lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// No expiry.
    Permanent,
    /// An expiry within a range.
    Range {
        /// Shortest.
        min: Option<Duration>,
        /// Longest.
        max: Option<Duration>,
    },
}

/// Agreed size of a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Expected keys.
    pub keys: Option<u64>,
    /// Factor between the usual and the peak number of keys.
    pub peak_factor: f64,
}

/// Limits of a class; `None` where the next wider ones apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key's name.
    pub key_bytes: Option<u64>,
    /// Bytes of a string value.
    pub string_bytes: Option<u64>,
    /// Bytes of one element.
    pub member_bytes: Option<u64>,
    /// Elements.
    pub elements: Option<u64>,
    /// Bytes in memory.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// These limits, and those of `wider` where there are none.
    pub fn or(self, wider: Self) -> Self {
        Self {
            key_bytes: self.key_bytes.or(wider.key_bytes),
            string_bytes: self.string_bytes.or(wider.string_bytes),
            member_bytes: self.member_bytes.or(wider.member_bytes),
            elements: self.elements.or(wider.elements),
            memory_bytes: self.memory_bytes.or(wider.memory_bytes),
        }
    }
}

/// The server's capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// `maxmemory` in bytes.
    pub maxmemory: u64,
    /// `maxmemory-policy`.
    pub policy: Option<String>,
    /// Share of memory kept free for a rewrite.
    pub rewrite_margin: f64,
    /// Resident memory over used memory.
    pub fragmentation: f64,
}

/// The server that the keys are in, as far as the file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTable {
    /// Product and version.
    pub version: Option<Server>,
    /// Allocator.
    pub allocator: Option<Allocator>,
    /// Path of its `redis.conf`, from the folder of this file.
    pub config: Option<String>,
    /// Whether it runs in cluster mode.
    pub cluster: Option<bool>,
}

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    separator: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    segments: BTreeMap<String, Spanned<OneOrMany>>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    class: Vec<RawClass>,
    capacity: Option<RawCapacity>,
    server: Option<RawServer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    version: Option<Spanned<String>>,
    allocator: Option<Spanned<String>>,
    config: Option<String>,
    cluster: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a text, or a list of texts such as [\"a\", \"b\"]")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a size such as 512, \"10KB\" or \"1mb\"")]
enum RawSize {
    Number(u64),
    Text(String),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    key_bytes: Option<Spanned<RawSize>>,
    string_bytes: Option<Spanned<RawSize>>,
    member_bytes: Option<Spanned<RawSize>>,
    elements: Option<u64>,
    memory_bytes: Option<Spanned<RawSize>>,
    databases: Option<Spanned<Vec<u64>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    name: Spanned<String>,
    pattern: Spanned<String>,
    owner: Option<String>,
    source: Option<String>,
    r#type: Option<Spanned<OneOrMany>>,
    ttl: Option<Spanned<RawTtl>>,
    version: Option<u64>,
    rebuild: Option<bool>,
    delete: Option<String>,
    backup: Option<bool>,
    budget: Option<Spanned<RawBudget>>,
    #[serde(default)]
    limits: RawLimits,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write \"permanent\", or a table such as { min = \"120s\", max = \"150s\" }")]
enum RawTtl {
    Word(String),
    Range(RawRange),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    min: Option<String>,
    max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBudget {
    keys: Option<u64>,
    peak_factor: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCapacity {
    maxmemory: Spanned<RawSize>,
    policy: Option<Spanned<String>>,
    rewrite_margin: Option<Spanned<f64>>,
    fragmentation: Option<Spanned<f64>>,
}

const CORE_TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

impl Contracts {
    /// Reads a contracts file.
    ///
    /// # Errors
    /// Every mistake that was found, in the order of the file.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            vec![mistake(text, &at, error.message().trim_end().to_string())]
        })?;
        let mut check = Check { text, mistakes: Vec::new() };
        let separators = check.separators(raw.separator.as_ref());
        let definitions = check.definitions(&raw.segments, &separators);
        let limits = check.limits(&raw.limits);
        let databases = raw.limits.databases.map(|databases| databases.into_inner());
        let mut names = HashMap::new();
        let mut classes = Vec::new();
        let mut patterns = Vec::new();
        for raw in &raw.class {
            let (class, pattern) = check.class(raw, &separators, &definitions);
            if let Some(before) = names.insert(class.name.clone(), raw.name.span()) {
                let line = mistake(text, &before, String::new()).line;
                check.wrong(
                    raw.name.span(),
                    format!("a class named '{}' is there already, in line {line}: give it another name", class.name),
                );
            }
            classes.push(class);
            patterns.extend(pattern);
        }
        let capacity = raw.capacity.as_ref().map(|raw| check.capacity(raw));
        let server = raw.server.as_ref().map(|raw| check.server(raw));
        // Only whole patterns can be held against one another.
        if patterns.len() == classes.len() {
            check.ambiguities(&raw.class, &patterns, &separators);
        }
        let whole_file = 0..0;
        let matcher = Matcher::new(&patterns, Separators::new(&separators)).map_err(|why| check.wrong(whole_file, why)).ok();
        match matcher {
            Some(matcher) if check.mistakes.is_empty() => {
                Ok(Self { separators, limits, databases, classes, capacity, server, matcher })
            }
            _ => {
                check.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
                Err(check.mistakes)
            }
        }
    }

    /// Index in `classes` of the class of `key`.
    #[inline]
    pub fn class_of(&self, key: &[u8]) -> Option<usize> {
        self.matcher.class(key)
    }
}

struct Check<'t> {
    text: &'t str,
    mistakes: Vec<Mistake>,
}

impl Check<'_> {
    fn wrong(&mut self, at: Range<usize>, message: String) {
        self.mistakes.push(mistake(self.text, &at, message));
    }

    /// The value, or a mistake at `at` and none.
    fn take<T>(&mut self, at: Range<usize>, value: Result<T, String>) -> Option<T> {
        value.map_err(|why| self.wrong(at, why)).ok()
    }

    fn server(&mut self, raw: &RawServer) -> ServerTable {
        let version = raw.version.as_ref().and_then(|text| self.take(text.span(), text.get_ref().parse()));
        let allocator = raw.allocator.as_ref().and_then(|text| self.take(text.span(), text.get_ref().parse()));
        ServerTable { version, allocator, config: raw.config.clone(), cluster: raw.cluster }
    }

    fn separators(&mut self, raw: Option<&Spanned<OneOrMany>>) -> Vec<u8> {
        let Some(raw) = raw else { return b":".to_vec() };
        let mut separators = BTreeSet::new();
        for text in raw.get_ref().texts() {
            match text.as_bytes() {
                [byte] if byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && !b"<>{}\\".contains(byte) => {
                    separators.insert(*byte);
                }
                _ => self.wrong(
                    raw.span(),
                    format!("'{text}' is no separator: use one ASCII punctuation character such as \":\", \"/\" or \"|\""),
                ),
            }
        }
        if raw.get_ref().texts().is_empty() {
            self.wrong(raw.span(), "the list of separators is empty: name one, or leave it out for \":\"".into());
        }
        if separators.is_empty() {
            separators.insert(b':');
        }
        separators.into_iter().collect()
    }

    fn definitions(&mut self, raw: &BTreeMap<String, Spanned<OneOrMany>>, separators: &[u8]) -> Definitions {
        let mut definitions = Definitions::new();
        for (name, value) in raw {
            let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
            if !plain(name) {
                self.wrong(value.span(), format!("'{name}' is no name for a placeholder: use letters, digits, - and _"));
            }
            let separator = |text: &String| text.bytes().any(|byte| separators.contains(&byte));
            if let Some(text) = value.get_ref().texts().iter().find(|text| separator(text)) {
                self.wrong(value.span(), format!("'{text}' holds a separator: a placeholder is one segment or a part of one"));
                continue;
            }
            let definition = match value.get_ref() {
                OneOrMany::One(text) => Definition::pattern(text),
                OneOrMany::Many(values) if values.is_empty() || values.iter().any(String::is_empty) => {
                    Err(format!("the list of '{name}' is empty or has an empty value: list what the segment may be"))
                }
                OneOrMany::Many(values) => Ok(Definition::OneOf(values.clone())),
            };
            if let Some(definition) = self.take(value.span(), definition) {
                definitions.insert(name.clone(), definition);
            }
        }
        definitions
    }

    fn limits(&mut self, raw: &RawLimits) -> Limits {
        Limits {
            key_bytes: self.size(raw.key_bytes.as_ref()),
            string_bytes: self.size(raw.string_bytes.as_ref()),
            member_bytes: self.size(raw.member_bytes.as_ref()),
            elements: raw.elements,
            memory_bytes: self.size(raw.memory_bytes.as_ref()),
        }
    }

    fn size(&mut self, raw: Option<&Spanned<RawSize>>) -> Option<u64> {
        let raw = raw?;
        match raw.get_ref() {
            RawSize::Number(bytes) => Some(*bytes),
            RawSize::Text(text) => self.take(raw.span(), quantity::size(text)),
        }
    }

    fn class(&mut self, raw: &RawClass, separators: &[u8], definitions: &Definitions) -> (Class, Option<Pattern>) {
        let name = raw.name.get_ref();
        if name.is_empty() || name.starts_with('(') || name.chars().any(char::is_control) {
            self.wrong(raw.name.span(), "a class needs a printable name that does not begin with '('".into());
        }
        let pattern = self.take(raw.pattern.span(), Pattern::parse(raw.pattern.get_ref(), separators, definitions));
        if let Some(databases) = &raw.limits.databases {
            self.wrong(databases.span(), "databases belong into [limits] of the whole file".into());
        }
        let types = raw.r#type.as_ref().map_or_else(Vec::new, |types| {
            for name in types.get_ref().texts() {
                // Names of module types have nine characters.
                if !CORE_TYPES.contains(&name.as_str()) && name.len() != 9 {
                    let why =
                        format!("no type '{name}': use {}, or the nine characters of a module's type", CORE_TYPES.join(", "));
                    self.wrong(types.span(), why);
                }
            }
            types.get_ref().texts().to_vec()
        });
        let ttl = raw.ttl.as_ref().and_then(|ttl| self.ttl(ttl));
        let budget = raw.budget.as_ref().map(|budget| {
            let RawBudget { keys, peak_factor } = budget.get_ref();
            let peak_factor = peak_factor.unwrap_or(1.0);
            if !(peak_factor.is_finite() && peak_factor >= 1.0) {
                self.wrong(budget.span(), "peak_factor is the peak over the usual: 1 or more".into());
            }
            Budget { keys: *keys, peak_factor }
        });
        let class = Class {
            name: name.clone(),
            pattern: raw.pattern.get_ref().clone(),
            ends: Ends::of_pattern(raw.pattern.get_ref(), separators),
            owner: raw.owner.clone(),
            source: raw.source.clone(),
            types,
            ttl,
            version: raw.version,
            rebuild: raw.rebuild,
            delete: raw.delete.clone(),
            backup: raw.backup,
            budget,
            limits: self.limits(&raw.limits),
        };
        (class, pattern)
    }

    fn ttl(&mut self, raw: &Spanned<RawTtl>) -> Option<Ttl> {
        let range = match raw.get_ref() {
            RawTtl::Word(word) if word == "permanent" => return Some(Ttl::Permanent),
            RawTtl::Word(word) => {
                self.wrong(
                    raw.span(),
                    format!("ttl '{word}' is neither \"permanent\" nor a range: write ttl = {{ max = \"{word}\" }}"),
                );
                return None;
            }
            RawTtl::Range(range) => range,
        };
        let mut bound = |text: &Option<String>| text.as_ref().and_then(|text| self.take(raw.span(), quantity::duration(text)));
        let (min, max) = (bound(&range.min), bound(&range.max));
        if range.min.is_none() && range.max.is_none() {
            self.wrong(raw.span(), "a ttl range needs min, max or both".into());
        }
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            self.wrong(raw.span(), "ttl min is above max: the shorter one is min".into());
        }
        Some(Ttl::Range { min, max })
    }

    fn capacity(&mut self, raw: &RawCapacity) -> Capacity {
        if let Some(policy) = &raw.policy
            && !POLICIES.contains(&policy.get_ref().as_str())
        {
            self.wrong(policy.span(), format!("no policy '{}': use {}", policy.get_ref(), POLICIES.join(", ")));
        }
        let mut number = |name: &str, raw: &Option<Spanned<f64>>, default: f64, least: f64, most: f64| {
            let Some(raw) = raw else { return default };
            if !(least..=most).contains(raw.get_ref()) {
                self.wrong(raw.span(), format!("{name} must be from {least} to {most}"));
            }
            *raw.get_ref()
        };
        let rewrite_margin = number("rewrite_margin", &raw.rewrite_margin, 0.0, 0.0, 10.0);
        let fragmentation = number("fragmentation", &raw.fragmentation, 1.0, 1.0, 10.0);
        Capacity {
            maxmemory: self.size(Some(&raw.maxmemory)).unwrap_or(0),
            policy: raw.policy.as_ref().map(|policy| policy.get_ref().clone()),
            rewrite_margin,
            fragmentation,
        }
    }

    fn ambiguities(&mut self, raw: &[RawClass], patterns: &[Pattern], separators: &[u8]) {
        let found = match matcher::ambiguities(patterns, separators) {
            Ok(found) => found,
            Err(why) => return self.wrong(0..0, why),
        };
        for ambiguity in found {
            let (first, second) = (&raw[ambiguity.first], &raw[ambiguity.second]);
            let line = mistake(self.text, &first.pattern.span(), String::new()).line;
            self.wrong(
                second.pattern.span(),
                format!(
                    "the pattern of '{}' and that of '{}' in line {line} both take the key '{}', and neither is narrower: put literal text or a narrower placeholder into one of them",
                    second.name.get_ref(),
                    first.name.get_ref(),
                    key_text::escape(&ambiguity.example),
                ),
            );
        }
    }
}

impl OneOrMany {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

fn mistake(text: &str, at: &Range<usize>, message: String) -> Mistake {
    let before = text.get(..at.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Mistake { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, message }
}
