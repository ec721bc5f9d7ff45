//! The contracts file: TOML, validated with the line and column of each mistake.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::check::Check;
use super::ends::Ends;
use super::matcher::Matcher;
use super::pattern::Pattern;
use super::raw;
use super::routes::Routes;
use crate::classify::Separators;
use crate::findings::Severities;
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
    /// How grave breaches are, where that is said.
    pub rules: Severities,
    /// The patterns of `classes`, in their order.
    pub patterns: Vec<Pattern>,
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
    /// How grave breaches are in this class, where that is said.
    pub rules: Severities,
    /// Line of the file that has its name, from 1.
    pub line: usize,
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
    /// Expected memory in bytes.
    pub memory_bytes: Option<u64>,
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
    /// Entries that the consumer groups of a stream have pending.
    pub pending: Option<u64>,
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
            pending: self.pending.or(wider.pending),
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

impl Contracts {
    /// Reads a contracts file.
    ///
    /// # Errors
    /// Every mistake that was found, in the order of the file.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let Some(raw) = raw::read(text, &mut mistakes) else {
            mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
            return Err(mistakes);
        };
        let mut check = Check { text, mistakes };
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
        let rules = check.rules(&raw.rules);
        // Only whole patterns can be held against one another.
        if patterns.len() == classes.len() {
            check.ambiguities(&raw.class, &patterns, &separators);
        }
        let whole_file = 0..0;
        let matcher = Matcher::new(&patterns, Separators::new(&separators)).map_err(|why| check.wrong(whole_file, why)).ok();
        match matcher {
            Some(matcher) if check.mistakes.is_empty() => {
                Ok(Self { separators, limits, databases, classes, capacity, server, rules, patterns, matcher })
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

    /// The same, by `routes`, which belong to these contracts and remember the ways of keys.
    #[inline]
    pub fn class_by(&self, routes: &mut Routes, key: &[u8]) -> Option<usize> {
        routes.class(&self.matcher, key)
    }
}

/// A mistake at the beginning of a place in `text`.
pub(super) fn mistake(text: &str, at: &Range<usize>, message: String) -> Mistake {
    let before = text.get(..at.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Mistake { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, message }
}
