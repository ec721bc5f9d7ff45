//! What a contracts file means, and every mistake in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use super::ends::Ends;
use super::file::{Budget, Capacity, Class, Limits, Mistake, ServerTable, Ttl, mistake};
use super::matcher;
use super::pattern::{Definition, Definitions, Pattern, distance};
use super::quantity;
use super::raw::{OneOrMany, RawBudget, RawCapacity, RawClass, RawLimits, RawServer, RawSize, RawTtl};
use crate::findings::{Rule, Severities};
use crate::key_text;

const CORE_TYPES: [&str; 7] = ["string", "list", "set", "zset", "hash", "stream", "array"];

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

pub(super) struct Check<'t> {
    pub(super) text: &'t str,
    pub(super) mistakes: Vec<Mistake>,
}

impl Check<'_> {
    pub(super) fn wrong(&mut self, at: Range<usize>, message: String) {
        self.mistakes.push(mistake(self.text, &at, message));
    }

    /// The value, or a mistake at `at` and none.
    fn take<T>(&mut self, at: Range<usize>, value: Result<T, String>) -> Option<T> {
        value.map_err(|why| self.wrong(at, why)).ok()
    }

    pub(super) fn server(&mut self, raw: &RawServer) -> ServerTable {
        let version = raw.version.as_ref().and_then(|text| self.take(text.span(), text.get_ref().parse()));
        let allocator = raw.allocator.as_ref().and_then(|text| self.take(text.span(), text.get_ref().parse()));
        ServerTable { version, allocator, config: raw.config.clone(), cluster: raw.cluster }
    }

    pub(super) fn separators(&mut self, raw: Option<&Spanned<OneOrMany>>) -> Vec<u8> {
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

    pub(super) fn definitions(&mut self, raw: &BTreeMap<String, Spanned<OneOrMany>>, separators: &[u8]) -> Definitions {
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

    pub(super) fn limits(&mut self, raw: &RawLimits) -> Limits {
        Limits {
            key_bytes: self.size(raw.key_bytes.as_ref()),
            string_bytes: self.size(raw.string_bytes.as_ref()),
            member_bytes: self.size(raw.member_bytes.as_ref()),
            elements: raw.elements,
            memory_bytes: self.size(raw.memory_bytes.as_ref()),
            pending: raw.pending,
        }
    }

    /// Reads a table of rules or kinds of rules with their severities.
    pub(super) fn rules(&mut self, raw: &BTreeMap<Spanned<String>, Spanned<String>>) -> Severities {
        let mut severities = Severities::default();
        for (name, value) in raw {
            let severity = match value.get_ref().as_str() {
                "off" => Ok(None),
                text => text.parse().map(Some).map_err(|_| format!("no severity '{text}': use error, warning, note or off")),
            };
            let Some(severity) = self.take(value.span(), severity) else { continue };
            if severities.set(name.get_ref(), severity).is_err() {
                let near = Rule::ALL.iter().map(|rule| (distance(name.get_ref(), rule.id()), rule.id())).min();
                let mend = match near {
                    Some((away, near)) if away <= 4 => format!("did you mean '{near}'?"),
                    _ => "docs/rules.md lists them, and the kinds that stand for several".into(),
                };
                self.wrong(name.span(), format!("no rule '{}': {mend}", name.get_ref()));
            }
        }
        severities
    }

    pub(super) fn size(&mut self, raw: Option<&Spanned<RawSize>>) -> Option<u64> {
        let raw = raw?;
        match raw.get_ref() {
            RawSize::Number(bytes) => Some(*bytes),
            RawSize::Text(text) => self.take(raw.span(), quantity::size(text)),
        }
    }

    pub(super) fn class(&mut self, raw: &RawClass, separators: &[u8], definitions: &Definitions) -> (Class, Option<Pattern>) {
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
            let RawBudget { keys, memory_bytes, peak_factor } = budget.get_ref();
            let peak_factor = peak_factor.unwrap_or(1.0);
            if !(peak_factor.is_finite() && peak_factor >= 1.0) {
                self.wrong(budget.span(), "peak_factor is the peak over the usual: 1 or more".into());
            }
            Budget { keys: *keys, memory_bytes: self.size(memory_bytes.as_ref()), peak_factor }
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
            rules: self.rules(&raw.rules),
            line: mistake(self.text, &raw.name.span(), String::new()).line,
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

    pub(super) fn capacity(&mut self, raw: &RawCapacity) -> Capacity {
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

    pub(super) fn ambiguities(&mut self, raw: &[RawClass], patterns: &[Pattern], separators: &[u8]) {
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
