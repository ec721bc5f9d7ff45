//! A class as rules see it once all keys have passed, and the findings that they draft of it.

use std::time::Duration;

use super::policy::Policy;
use super::tally::{Breaches, Place, Tally};
use super::{Finding, Rule};
use crate::census::ClassStats;
use crate::contract::Class;
use crate::key_text;
use crate::privacy::Sensitive;

/// A class with its contract and figures.
#[derive(Debug, Clone, Copy)]
pub struct ClassView<'a> {
    /// Index of its contract.
    pub registered: Option<usize>,
    /// Its name.
    pub name: &'a str,
    /// The pattern of its keys.
    pub pattern: &'a str,
    /// Its contract.
    pub contract: Option<&'a Class>,
    /// Its figures.
    pub stats: &'a ClassStats,
    /// What its keys break by themselves.
    pub breaches: Option<&'a Breaches>,
    /// What is asked of keys.
    pub policy: &'a Policy,
}

/// Where in a class a finding is, as it is shown and remembered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Where {
    /// Anywhere.
    Nothing,
    /// In keys of this kind: a database, a type, personal data, a version.
    Place(Place),
    /// Under a hash tag.
    Tag(Box<[u8]>),
    /// In a slot.
    Slot(u16),
}

impl From<Place> for Where {
    fn from(place: Place) -> Self {
        if place == Place::Whole { Self::Nothing } else { Self::Place(place) }
    }
}

impl Where {
    /// As tables and baselines name it; empty where there is nothing to name.
    pub fn text(&self) -> String {
        match self {
            Self::Nothing | Self::Place(Place::Whole) => String::new(),
            Self::Place(Place::Db(db)) => format!("db {db}"),
            Self::Place(Place::Type(key_type)) => format!("type {key_type}"),
            Self::Place(Place::Sensitive(kind)) => sensitive(*kind).into(),
            Self::Place(Place::Version(number)) => format!("v{number}"),
            Self::Tag(tag) => format!("tag {}", key_text::escape(tag)),
            Self::Slot(slot) => format!("slot {slot}"),
        }
    }
}

/// What a kind of personal data is called.
fn sensitive(kind: Sensitive) -> &'static str {
    match kind {
        Sensitive::Phone => "phone number",
        Sensitive::Email => "e-mail address",
        Sensitive::Identity => "identity number",
        Sensitive::Card => "card number",
        Sensitive::Token => "token",
    }
}

/// What a finding says beside its rule and class.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Where in the class.
    pub place: Where,
    /// Keys that break the rule.
    pub keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Some of them.
    pub examples: Vec<Box<[u8]>>,
    /// What is wrong.
    pub message: String,
}

impl Draft {
    /// All keys of a class.
    pub fn of_class(view: &ClassView<'_>, message: String) -> Self {
        let counts = &view.stats.counts;
        let examples = [view.stats.largest_key.as_deref(), view.stats.example_key.get()];
        let mut examples: Vec<Box<[u8]>> = examples.into_iter().flatten().map(Into::into).collect();
        examples.dedup();
        examples.truncate(view.policy.examples);
        Self { place: Where::Nothing, keys: counts.keys, memory_bytes: counts.memory_bytes, examples, message }
    }

    /// The volatile keys of a class; none stands for all of them.
    pub fn of_volatile(view: &ClassView<'_>, message: String) -> Self {
        let counts = &view.stats.counts;
        let memory =
            counts.memory_bytes.saturating_sub(counts.permanent_memory_bytes).saturating_sub(counts.expired_memory_bytes);
        Self { place: Where::Nothing, keys: counts.volatile_keys(), memory_bytes: memory, examples: Vec::new(), message }
    }

    /// Keys that were tallied.
    pub fn of_tally(place: Place, tally: &Tally, message: String) -> Self {
        let examples = tally.examples.keys().map(Into::into).collect();
        Self { place: place.into(), keys: tally.keys, memory_bytes: tally.memory_bytes, examples, message }
    }
}

impl ClassView<'_> {
    /// A finding in this class.
    pub fn finding(&self, rule: Rule, draft: Draft) -> Finding {
        let Draft { place, keys, memory_bytes, examples, message } = draft;
        Finding {
            rule,
            severity: rule.severity(),
            class: self.name.into(),
            registered: self.registered,
            owner: self.contract.and_then(|contract| contract.owner.clone()),
            line: self.contract.map(|contract| contract.line),
            place,
            keys,
            memory_bytes,
            examples,
            message,
        }
    }

    /// Keys that a server loads.
    pub fn loaded_keys(&self) -> u64 {
        self.stats.counts.keys - self.stats.counts.expired_keys
    }
}

/// `12.5 %`.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    format!("{:.1} %", share * 100.0)
}

/// `3.2`.
pub fn decimal(x: f64) -> String {
    format!("{x:.1}")
}

/// `1h 30m`.
pub fn duration(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

/// `1 key`, `2 keys`.
pub fn keys(n: u64) -> String {
    format!("{n} {}", if n == 1 { "key" } else { "keys" })
}
