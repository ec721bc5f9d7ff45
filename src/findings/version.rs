//! Rules of versions in names.

use std::collections::BTreeMap;

use super::tally::Place;
use super::view::{ClassView, Draft, duration, keys, percent};
use super::{Finding, Rule};
use crate::classify::Separators;
use crate::contract::{texts, version_number};

/// `version-old` by the contract: the version in the segment that the contract names, where it is below the current one.
#[inline]
pub fn older(key: &[u8], current: Option<(usize, u64)>, separators: &Separators) -> Option<u64> {
    let (at, current) = current?;
    let text = std::str::from_utf8(separators.segments(key).nth(at)?.text).ok()?;
    let major = text.trim_start_matches(['v', 'V']).split('.').next()?;
    major.parse().ok().filter(|version| *version < current)
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

/// The old ones among patterns, each with the version that its contract says is current: the highest of those, else the highest number, counts.
pub fn older_patterns(patterns: &[(&str, Option<u64>)], separators: &[u8]) -> Vec<Old> {
    // Patterns by what is left without the version, and by where that was.
    let mut groups: BTreeMap<Versionless<'_>, Vec<(u64, usize)>> = BTreeMap::new();
    for (index, (pattern, _)) in patterns.iter().enumerate() {
        let segments = texts(pattern, separators);
        for (at, number) in segments.iter().enumerate().filter_map(|(at, text)| Some((at, version_number(text)?))) {
            // What a placeholder is called tells no classes apart: a discovered one has other names.
            let rest = segments.iter().enumerate().map(|(n, text)| match text {
                _ if n == at => "",
                text if text.contains('<') => "<>",
                text => *text,
            });
            groups.entry((rest.collect(), at)).or_default().push((number, index));
        }
    }
    let mut found = Vec::new();
    for group in groups.values() {
        let agreed = group.iter().filter_map(|(_, index)| patterns[*index].1).max();
        let current = agreed.or_else(|| group.iter().map(|(number, _)| *number).max()).unwrap_or(0);
        let all: Vec<usize> = group.iter().map(|(_, index)| *index).collect();
        let old = group.iter().filter(|(number, _)| *number < current);
        found.extend(old.map(|(number, at)| Old { at: *at, number: *number, current, group: all.clone() }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_the_current_one() {
        let of = |key: &str| older(key.as_bytes(), Some((1, 3)), &Separators::default());
        assert_eq!(of("cache:v1:x"), Some(1));
        assert_eq!(of("cache::V2"), Some(2));
        assert_eq!(of("cache:2.9.1:x"), Some(2));
        assert_eq!((of("cache:v3:x"), of("cache:v10:x"), of("cache"), of("cache:vx")), (None, None, None, None));
    }

    #[test]
    fn patterns_that_differ_in_the_version_only() {
        let of = |patterns: &[(&str, Option<u64>)]| -> Vec<(usize, u64, u64)> {
            older_patterns(patterns, b":").into_iter().map(|old| (old.at, old.number, old.current)).collect()
        };
        assert_eq!(of(&[("a:v1:<digits>", None), ("a:v2:<user>", None), ("b:v1:<digits>", None)]), [(0, 1, 2)]);
        assert_eq!(of(&[("a:v1:<digits>", Some(1)), ("a:v2:<digits>", Some(2)), ("a:v3:<digits>", None)]), [(0, 1, 2)]);
        assert_eq!(of(&[("a:v1:b", None), ("a:v2:c", None), ("v3:a:b", None)]), []);
    }
}
