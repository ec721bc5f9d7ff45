//! Rules of versions in names.

use std::collections::BTreeMap;

use super::tally::{Place, Tally};
use super::view::{ClassView, Draft, duration, keys, percent};
use super::{Finding, Rule};
use crate::classify::Separators;
use crate::contract::{Class, texts, version_number};
use crate::measure::Fact;
use crate::values::{self, ValueRow};

/// What stands for any version in a pattern.
const PLACEHOLDER: &str = "<version>";

/// Versions of one class that are counted by themselves: the highest.
const MOST_VERSIONS: usize = 256;

/// Keys of a class whose name has a segment for the version, by that. What is counted by itself is a function of the set of keys alone: a
/// version that is among the highest of all keys is among the highest of any part of them.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    highest: BTreeMap<u64, Tally>,
    /// All below these, and the highest of them.
    lower: Option<(u64, Tally)>,
}

impl Versions {
    /// Adds a key of a version, and keeps it among `most` examples of that where it is one of the largest.
    #[inline]
    pub fn add(&mut self, number: u64, fact: &Fact<'_>, most: usize) {
        self.tally(number, most).add(fact, most);
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: Self, most: usize) {
        for (number, tally) in other.highest {
            self.tally(number, most).merge(tally, most);
        }
        if let Some((number, tally)) = other.lower {
            self.lower(number).merge(tally, most);
        }
    }

    /// The versions in order, each with its keys; the first stands for lower ones too, where that is true.
    pub fn iter(&self) -> impl Iterator<Item = (u64, bool, &Tally)> {
        let lower = self.lower.iter().map(|(number, tally)| (*number, true, tally));
        lower.chain(self.highest.iter().map(|(number, tally)| (*number, false, tally)))
    }

    /// Where a key of a version is counted.
    fn tally(&mut self, number: u64, most: usize) -> &mut Tally {
        let is_full = self.highest.len() >= MOST_VERSIONS && !self.highest.contains_key(&number);
        if is_full {
            match self.highest.first_entry() {
                Some(lowest) if *lowest.key() < number => {
                    let (lowest, tally) = lowest.remove_entry();
                    self.lower(lowest).merge(tally, most);
                }
                _ => return self.lower(number),
            }
        }
        self.highest.entry(number).or_default()
    }

    fn lower(&mut self, number: u64) -> &mut Tally {
        let (highest, tally) = self.lower.get_or_insert_default();
        *highest = number.max(*highest);
        tally
    }
}

/// The version of a key in the segment that the pattern of its class has for it.
#[inline]
pub fn of(key: &[u8], segment: Option<usize>, separators: &Separators) -> Option<u64> {
    let text = std::str::from_utf8(separators.segments(key).nth(segment?)?.text).ok()?;
    text.trim_start_matches(['v', 'V']).split('.').next()?.parse().ok()
}

/// `version-old` by the contract: the versions in the segment that the contract names, where they are below the current one.
pub fn older(view: &ClassView<'_>) -> Vec<Finding> {
    let Some((breaches, current)) = view.breaches.zip(view.contract.and_then(|class| class.version)) else { return Vec::new() };
    let finding = |(number, and_lower, tally): (u64, bool, &Tally)| {
        let old = tally.keys;
        let longest = duration(tally.longest_left_ms / 1000);
        let gone = match tally.permanent_keys {
            0 => format!("gone by themselves in {longest}"),
            never => format!("{never} of them never expire"),
        };
        let place = Place::Version(number);
        let which = if and_lower { format!("v{number} and below") } else { format!("v{number}") };
        let all = view.stats.counts.keys;
        let message = format!("{old} of {} are of {which}, {}; current is v{current}: {gone}", keys(all), percent(old, all));
        view.finding(Rule::VersionOld, Draft::of_tally(place, tally, message))
    };
    breaches.versions.iter().filter(|(number, ..)| *number < current).map(finding).collect()
}

/// Whether the version that a contract says is current is that of values: its names have none.
pub fn is_of_values(class: &Class, separators: &[u8]) -> bool {
    let has_version = |text: &&str| version_number(text).is_some() || text.contains(PLACEHOLDER);
    class.version.is_some() && !texts(&class.pattern, separators).iter().any(has_version)
}

/// `version-old` by the contract, where names have no version: the one that sampled values carry, where it is below the current one.
pub fn in_values(view: &ClassView<'_>) -> Vec<Finding> {
    let contract = view.contract.filter(|class| is_of_values(class, &view.policy.separator_bytes()));
    let Some(current) = contract.and_then(|class| class.version) else { return Vec::new() };
    let mut old = BTreeMap::<u64, Vec<ValueRow>>::new();
    for row in values::rows(view.name, view.stats) {
        let text = row.schema_version.as_deref().unwrap_or_default().trim_start_matches('v');
        if let Some(number) = text.split('.').next().and_then(|major| major.parse().ok()).filter(|number| *number < current) {
            old.entry(number).or_default().push(row);
        }
    }
    let finding = |(number, rows): (u64, Vec<ValueRow>)| {
        let sampled: u64 = rows.iter().map(|row| row.sampled).sum();
        let (of_class, strings) = rows.first().map_or((0, 0), |row| (row.sampled_of_class, row.strings));
        let share = percent(sampled, of_class);
        let found = rows.iter().map(|row| row.of_all(row.sampled)).sum();
        let message = if of_class < strings {
            format!(
                "{sampled} of a sample of {of_class} values carry v{number}, {share}, so about {found} of {strings}; current is v{current}"
            )
        } else {
            format!("{sampled} of {strings} values carry v{number}, {share}; current is v{current}")
        };
        let memory_bytes = rows.iter().map(|row| row.of_all(row.memory_bytes)).fold(0, u64::saturating_add);
        let place = Place::Version(number).into();
        view.finding(Rule::VersionOld, Draft { place, keys: found, memory_bytes, examples: Vec::new(), message })
    };
    old.into_iter().map(finding).collect()
}

/// `version-old` by comparison: classes whose patterns differ in the number of a version only.
pub fn beside(views: &[ClassView<'_>]) -> Vec<Finding> {
    let there: Vec<&ClassView<'_>> = views.iter().filter(|view| view.stats.counts.keys > 0).collect();
    let Some(separators) = there.first().map(|view| view.policy.separator_bytes()) else { return Vec::new() };
    let patterns: Vec<_> = there.iter().map(|view| (view.pattern, view.contract.and_then(|class| class.version))).collect();
    let finding = |old: Old| {
        let view = there[old.at];
        let counts = &view.stats.counts;
        let all = old.group.iter().map(|at| there[*at].stats.counts.keys).sum();
        let share = percent(counts.keys, all);
        let gone = match (counts.permanent_keys, view.stats.ttl_seconds.max()) {
            (0, Some(left)) => format!("gone by themselves in {}", duration(left + 1)),
            (never, Some(left)) if never < counts.keys => {
                format!("{never} of them never expire, the others are gone in {}", duration(left + 1))
            }
            (0, None) => "all of them expired".into(),
            _ => "none of them expires".into(),
        };
        let message = format!("{} of v{} beside v{}, {share} of all: {gone}", keys(counts.keys), old.number, old.current);
        view.finding(Rule::VersionOld, Draft { place: Place::Version(old.number).into(), ..Draft::of_class(view, message) })
    };
    older_patterns(&patterns, &separators).into_iter().map(finding).collect()
}

/// The segments of a pattern without its version, and which segment that is.
type Versionless<'p> = (Vec<&'p str>, usize);

/// A pattern of an old version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// Its index.
    pub at: usize,
    /// Its version.
    pub number: u64,
    /// The version that is current.
    pub current: u64,
    /// Indices of all patterns that differ from it in the version only, its own among them.
    pub group: Vec<usize>,
}

/// A pattern among those that differ from it in the version only.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member<'p> {
    /// Its index.
    at: usize,
    /// Its version; `None` where that is a placeholder.
    number: Option<u64>,
    /// The segment that is its version.
    segment: &'p str,
}

/// Patterns by what is left without the version, and by where that was.
fn groups<'p>(patterns: &[&'p str], separators: &[u8]) -> BTreeMap<Versionless<'p>, Vec<Member<'p>>> {
    let mut groups: BTreeMap<Versionless<'_>, Vec<Member<'_>>> = BTreeMap::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let segments = texts(pattern, separators);
        for (at, segment) in segments.iter().enumerate() {
            let number = version_number(segment);
            if number.is_none() && *segment != PLACEHOLDER {
                continue;
            }
            // What a placeholder is called tells no classes apart: a discovered one has other names.
            let rest = segments.iter().enumerate().map(|(n, text)| match text {
                _ if n == at => "",
                text if text.contains('<') => "<>",
                text => *text,
            });
            groups.entry((rest.collect(), at)).or_default().push(Member { at: index, number, segment });
        }
    }
    groups
}

/// The version that contracts say is current: the highest of them.
fn agreed<'v>(versions: impl Iterator<Item = &'v Option<u64>>) -> Option<u64> {
    versions.copied().max().flatten()
}

/// The old ones among patterns, each with the version that its contract says is current: the highest of those, else the highest number, counts.
pub fn older_patterns(patterns: &[(&str, Option<u64>)], separators: &[u8]) -> Vec<Old> {
    let texts: Vec<&str> = patterns.iter().map(|(pattern, _)| *pattern).collect();
    let mut found = Vec::new();
    for group in groups(&texts, separators).values() {
        let agreed = agreed(group.iter().map(|member| &patterns[member.at].1));
        let current = agreed.or_else(|| group.iter().filter_map(|member| member.number).max()).unwrap_or(0);
        let all: Vec<usize> = group.iter().map(|member| member.at).collect();
        let old = group.iter().filter_map(|member| Some((member.at, member.number.filter(|number| *number < current)?)));
        found.extend(old.map(|(at, number)| Old { at, number, current, group: all.clone() }));
    }
    found
}

/// The keys of one version of one class, beside those of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// The pattern, `<version>` in place of the version.
    pub pattern: String,
    /// The version; `None` where the pattern of a discovered class leaves it open.
    pub version: Option<u64>,
    /// Lower versions are counted here too.
    pub and_lower: bool,
    /// Class.
    pub class: String,
    /// It is the version that the contracts say is current, or the highest where they say nothing.
    pub is_current: bool,
    /// Keys.
    pub keys: u64,
    /// Keys of all versions of this pattern.
    pub group_keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Of these, keys that never expire.
    pub permanent_keys: u64,
    /// Of these, keys whose expiry has passed at the snapshot time.
    pub expired_keys: u64,
    /// When all of them will be gone, in Unix milliseconds; `None` where some are permanent, or none are volatile.
    pub gone_at_ms: Option<i64>,
}

/// Every class with a version in its pattern, or every version in it, by the pattern without it; the lowest version first.
pub fn rows(views: &[ClassView<'_>]) -> Vec<VersionRow> {
    let there: Vec<&ClassView<'_>> = views.iter().filter(|view| view.stats.counts.keys > 0).collect();
    let Some(separators) = there.first().map(|view| view.policy.separator_bytes()) else { return Vec::new() };
    let patterns: Vec<&str> = there.iter().map(|view| view.pattern).collect();
    let mut rows = Vec::new();
    for group in groups(&patterns, &separators).values() {
        let mut of_group: Vec<VersionRow> =
            group.iter().flat_map(|member| rows_of(there[member.at], member.number, pattern_of(group, &patterns))).collect();
        let agreed = agreed(group.iter().filter_map(|member| Some(&there[member.at].contract?.version)));
        let current = agreed.or_else(|| of_group.iter().filter_map(|row| row.version).max());
        let group_keys = of_group.iter().map(|row| row.keys).sum();
        for row in &mut of_group {
            row.group_keys = group_keys;
            row.is_current = row.version.is_some() && row.version == current && !row.and_lower;
        }
        rows.extend(of_group);
    }
    rows.sort_by(|a, b| (&a.pattern, a.version, &a.class).cmp(&(&b.pattern, b.version, &b.class)));
    rows
}

/// What the patterns of a group have in common; the smallest, where the names of placeholders differ.
fn pattern_of(group: &[Member<'_>], patterns: &[&str]) -> String {
    let without = |member: &Member<'_>| {
        let pattern = patterns[member.at];
        // A segment is a part of its pattern.
        let from = (member.segment.as_ptr() as usize).saturating_sub(pattern.as_ptr() as usize);
        let (before, behind) = (pattern.get(..from), pattern.get(from + member.segment.len()..));
        format!("{}{PLACEHOLDER}{}", before.unwrap_or_default(), behind.unwrap_or_default())
    };
    group.iter().map(without).min().unwrap_or_default()
}

/// The versions of a class: the one of its pattern, or, where that has a placeholder, those that its keys have there.
fn rows_of(view: &ClassView<'_>, number: Option<u64>, pattern: String) -> Vec<VersionRow> {
    let row = |version: Option<u64>, and_lower: bool| VersionRow {
        pattern: pattern.clone(),
        version,
        and_lower,
        class: view.name.into(),
        is_current: false,
        keys: 0,
        group_keys: 0,
        memory_bytes: 0,
        permanent_keys: 0,
        expired_keys: 0,
        gone_at_ms: None,
    };
    let counted = view.breaches.into_iter().flat_map(|breaches| breaches.versions.iter());
    let of_keys: Vec<VersionRow> = counted
        .filter(|_| number.is_none())
        .map(|(number, and_lower, tally)| VersionRow {
            keys: tally.keys,
            memory_bytes: tally.memory_bytes,
            permanent_keys: tally.permanent_keys,
            expired_keys: tally.expired_keys,
            gone_at_ms: tally.last_expiry_ms.filter(|_| tally.permanent_keys == 0),
            ..row(Some(number), and_lower)
        })
        .collect();
    if !of_keys.is_empty() {
        return of_keys;
    }
    let counts = &view.stats.counts;
    vec![VersionRow {
        keys: counts.keys,
        memory_bytes: counts.memory_bytes,
        permanent_keys: counts.permanent_keys,
        expired_keys: counts.expired_keys,
        gone_at_ms: view.breaches.and_then(|breaches| breaches.last_expiry_ms).filter(|_| counts.permanent_keys == 0),
        ..row(number, false)
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_keys() {
        let of = |key: &str| of(key.as_bytes(), Some(1), &Separators::default());
        assert_eq!(of("cache:v1:x"), Some(1));
        assert_eq!(of("cache::V2"), Some(2));
        assert_eq!(of("cache:2.9.1:x"), Some(2));
        assert_eq!((of("cache"), of("cache:vx")), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn the_highest_versions_of_any_parts(numbers in proptest::collection::vec(0u64..700, 0..2000), cut in 0usize..2000) {
            let one = || Tally { keys: 1, ..Tally::default() };
            let of = |numbers: &[u64]| {
                let mut versions = Versions::default();
                numbers.iter().for_each(|number| versions.tally(*number, 0).merge(one(), 0));
                versions
            };
            let keys = |versions: &Versions| versions.iter().map(|(n, lower, t)| (n, lower, t.keys)).collect::<Vec<_>>();
            // By sorting all of them.
            let mut counts = BTreeMap::<u64, u64>::new();
            numbers.iter().for_each(|number| *counts.entry(*number).or_default() += 1);
            let mut expected: Vec<_> = counts.iter().rev().take(MOST_VERSIONS).map(|(n, keys)| (*n, false, *keys)).collect();
            let lower = counts.iter().rev().skip(MOST_VERSIONS);
            let sum: u64 = lower.clone().map(|(_, keys)| keys).sum();
            expected.extend(lower.map(|(n, _)| (*n, true, sum)).next());
            expected.reverse();
            let (first, second) = numbers.split_at(cut.min(numbers.len()));
            let mut parts = of(second);
            parts.merge(of(first), 0);
            proptest::prop_assert_eq!(keys(&of(&numbers)), &expected[..]);
            proptest::prop_assert_eq!(keys(&parts), &expected[..]);
        }
    }

    #[test]
    fn patterns_that_differ_in_the_version_only() {
        let of = |patterns: &[(&str, Option<u64>)]| -> Vec<(usize, u64, u64)> {
            older_patterns(patterns, b":").into_iter().map(|old| (old.at, old.number, old.current)).collect()
        };
        assert_eq!(of(&[("a:v1:<digits>", None), ("a:v2:<user>", None), ("b:v1:<digits>", None)]), [(0, 1, 2)]);
        assert_eq!(of(&[("a:v1:<digits>", Some(1)), ("a:v2:<digits>", Some(2)), ("a:v3:<digits>", None)]), [(0, 1, 2)]);
        assert_eq!(of(&[("a:v1:b", None), ("a:v2:c", None), ("v3:a:b", None)]), []);
        // What contracts agree on counts for patterns that leave the version open, too.
        assert_eq!(of(&[("a:<version>:b", Some(3)), ("a:v2:b", None)]), [(1, 2, 3)]);
        assert_eq!(of(&[("a:<version>:b", None), ("a:v2:b", None)]), []);
    }
}
