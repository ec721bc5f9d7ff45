//! What would save memory, by the same model that says what is taken: limits to raise, strings that one hash could hold, names to shorten.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::census::{Entities, Fallbacks, Savings};
use crate::contract::{Ends, shortened};
use crate::measure::{Model, StringsAsHash};
use crate::report::{OTHER, ReportClass};

/// In place of a class: all keys.
pub const ALL: &str = "(all)";

/// What could be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Raise a limit, so that keys fall back to their compact encoding.
    RaiseLimit,
    /// Keep the small strings of an entity as fields of one hash.
    OneHash,
    /// Shorten each word in front of a name to one letter.
    ShorterPrefix,
}

impl Kind {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RaiseLimit => "raise limit",
            Self::OneHash => "one hash per entity",
            Self::ShorterPrefix => "shorter prefix",
        }
    }
}

/// One piece of advice, for keys that a server loads: expired ones are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What could be done.
    pub kind: Kind,
    /// Class of the keys, or pattern of the entities.
    pub class: String,
    /// The class is named by a contract, and no pattern.
    pub registered: bool,
    /// How it is.
    pub from: String,
    /// How it would be.
    pub to: String,
    /// Keys that it concerns.
    pub keys: u64,
    /// Memory that they take.
    pub memory_bytes: u64,
    /// Bytes of their names.
    pub name_bytes: Option<u64>,
    /// Memory that they would take less.
    pub saved_bytes: u64,
    /// The figures are those of one entity in so many, times that number; 1 where all were counted.
    pub sampled_one_in: u64,
}

impl Ord for Advice {
    /// What saves most first.
    fn cmp(&self, other: &Self) -> Ordering {
        fn rest(advice: &Advice) -> impl Ord + '_ {
            (advice.kind, &advice.class, &advice.from, &advice.to, advice.keys)
        }
        other.saved_bytes.cmp(&self.saved_bytes).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for Advice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Limits and names of classes.
pub fn of_classes(classes: &[ReportClass], model: &Model, separators: &[u8]) -> Vec<Advice> {
    let mut advice = raised_limits(classes, model);
    advice.extend(classes.iter().filter_map(|class| shorter_prefix(class, separators)));
    advice
}

/// For each limit and step: all keys that the step lets in, and those of each class.
fn raised_limits(classes: &[ReportClass], model: &Model) -> Vec<Advice> {
    let mut advice = Vec::new();
    let mut everywhere = Savings::default();
    let mut of_class = |class: &str, registered: bool, fallbacks: &[Fallbacks]| {
        for last in fallbacks {
            // A higher limit lets in what a lower one does.
            let mut sum = Fallbacks { keys: 0, memory_bytes: 0, saved_bytes: 0, ..*last };
            fallbacks.iter().filter(|one| one.limit == last.limit && one.step <= last.step).for_each(|one| sum.add(one));
            let Some(saved_bytes) = positive(sum.saved_bytes) else { continue };
            advice.push(Advice {
                kind: Kind::RaiseLimit,
                class: class.into(),
                registered,
                from: model.limit_text(sum.limit, None),
                to: model.limit_text(sum.limit, Some(sum.step)),
                keys: sum.keys,
                memory_bytes: sum.memory_bytes,
                name_bytes: None,
                saved_bytes,
                sampled_one_in: 1,
            });
        }
    };
    for class in classes {
        let savings = &class.stats.savings;
        of_class(&class.name, class.registered, &savings.fallbacks);
        everywhere.merge(savings.clone());
    }
    of_class(ALL, true, &everywhere.fallbacks);
    advice
}

/// Sums over the entities of one pattern.
#[derive(Default)]
struct Group {
    strings: u64,
    memory_bytes: u64,
    as_hashes: u64,
}

/// Entities of two strings or more by pattern, where hashes would take less; `pattern_of` names the pattern of a
/// key's class.
pub fn hashes(entities: Entities, model: &Model, separators: &[u8], mut pattern_of: impl FnMut(&[u8]) -> String) -> Vec<Advice> {
    let weight = entities.weight();
    let hash = StringsAsHash::new(model);
    let mut groups = BTreeMap::<String, Group>::new();
    for entity in entities.into_kept() {
        let (figures, key_len) = (entity.figures, entity.key.len() - entity.figures.tail);
        // A single string is better left alone.
        if figures.strings < 2 {
            continue;
        }
        let Some(as_hash) = hash.memory_bytes(key_len as u64, figures.strings, figures.entry_bytes) else { continue };
        let field_segments = runs(&entity.key[key_len..], separators);
        let pattern = pattern_of(&entity.key);
        let group = groups.entry(without_last(&pattern, field_segments, separators).into()).or_default();
        group.strings += figures.strings;
        group.memory_bytes = group.memory_bytes.saturating_add(figures.memory_bytes);
        group.as_hashes = group.as_hashes.saturating_add(as_hash);
    }
    let advice = |(pattern, group): (String, Group)| {
        let saved = group.memory_bytes.checked_sub(group.as_hashes).filter(|saved| *saved > 0)?;
        Some(Advice {
            kind: Kind::OneHash,
            class: pattern,
            registered: false,
            from: "string for each field".into(),
            to: "hash for each entity".into(),
            keys: group.strings.saturating_mul(weight),
            memory_bytes: group.memory_bytes.saturating_mul(weight),
            name_bytes: None,
            saved_bytes: saved.saturating_mul(weight),
            sampled_one_in: weight,
        })
    };
    groups.into_iter().filter_map(advice).collect()
}

/// What the names of a class take, and what shorter words in front of them would save.
fn shorter_prefix(class: &ReportClass, separators: &[u8]) -> Option<Advice> {
    let counts = &class.stats.counts;
    let savings = &class.stats.savings;
    let ends = Ends::of_pattern(&class.pattern, separators);
    let prefix = &class.pattern[..ends.prefix];
    // Where the words themselves were many and became one class, none of them is in front of all its keys.
    let collapsed = class.name == OTHER || (!class.registered && class.pattern[ends.prefix..].starts_with("<*>"));
    let saved_bytes = positive(savings.short_prefix_bytes).filter(|_| !collapsed);
    (counts.keys > counts.expired_keys).then(|| Advice {
        kind: Kind::ShorterPrefix,
        class: class.name.clone(),
        registered: class.registered,
        from: if saved_bytes.is_some() { prefix.into() } else { String::new() },
        to: if saved_bytes.is_some() { shortened_prefix(prefix, separators) } else { String::new() },
        keys: counts.keys - counts.expired_keys,
        memory_bytes: counts.memory_bytes - counts.expired_memory_bytes,
        name_bytes: Some(savings.name_bytes),
        saved_bytes: saved_bytes.unwrap_or(0),
        sampled_one_in: 1,
    })
}

/// The prefix with each of its segments cut short.
fn shortened_prefix(prefix: &str, separators: &[u8]) -> String {
    let cut = |segment: &str| String::from_utf8_lossy(shortened(segment.as_bytes())).into_owned();
    prefix
        .split_inclusive(|c: char| u8::try_from(c).is_ok_and(|byte| separators.contains(&byte)))
        .map(|part| {
            let (segment, separator) = part.split_at(part.len() - 1);
            cut(segment) + separator
        })
        .collect()
}

/// How many runs of separators there are.
fn runs(text: &[u8], separators: &[u8]) -> usize {
    let is = |at: usize| separators.contains(&text[at]);
    (0..text.len()).filter(|&at| is(at) && (at == 0 || !is(at - 1))).count()
}

/// A pattern without its last segments.
fn without_last<'p>(pattern: &'p str, segments: usize, separators: &[u8]) -> &'p str {
    let mut rest = pattern;
    for _ in 0..segments {
        let end = rest.bytes().rposition(|byte| separators.contains(&byte)).unwrap_or(0);
        rest = &rest[..end];
    }
    rest
}

fn positive(bytes: i64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}
