//! Rules of versions in names.

use std::collections::BTreeMap;

use super::tally::Place;
use super::view::{ClassView, Draft, duration, percent};
use super::{Finding, Rule};
use crate::classify::Separators;
use crate::contract::{texts, version_number};

/// `version-old` by the contract: the version in the segment that the contract names, where it is below the current one.
#[inline]
pub fn older(key: &[u8], current: Option<(usize, u64)>, separators: &Separators) -> Option<u64> {
    let (at, current) = current?;
    let mut rest = Some(key);
    let mut segment = None;
    for _ in 0..=at {
        let (text, after) = separators.split(rest?);
        (segment, rest) = (Some(text), after);
    }
    let text = std::str::from_utf8(segment?).ok()?;
    let major = text.trim_start_matches(['v', 'V']).split('.').next()?;
    major.parse().ok().filter(|version| *version < current)
}

/// `version-old` by comparison: classes whose patterns differ in the number of a version only.
pub fn beside(views: &[ClassView<'_>]) -> Vec<Finding> {
    let mut groups: BTreeMap<(Vec<String>, usize), Vec<(u64, &ClassView<'_>)>> = BTreeMap::new();
    for view in views.iter().filter(|view| view.stats.counts.keys > 0) {
        let segments: Vec<String> = texts(view.pattern, &view.policy.separator_bytes()).into_iter().map(String::from).collect();
        for (at, number) in segments.iter().enumerate().filter_map(|(at, text)| Some((at, version_number(text)?))) {
            let mut rest = segments.clone();
            rest[at].clear();
            // What a placeholder is called tells no classes apart: a discovered one has other names.
            rest.iter_mut().filter(|text| text.contains('<')).for_each(|text| *text = "<>".into());
            groups.entry((rest, at)).or_default().push((number, view));
        }
    }
    let mut found = Vec::new();
    for group in groups.values() {
        let current = group.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let all = group.iter().map(|(_, view)| view.stats.counts.keys).sum();
        for (number, view) in group.iter().filter(|(number, _)| *number < current) {
            let counts = &view.stats.counts;
            let share = percent(counts.keys, all);
            let gone = match (counts.permanent_keys, view.stats.ttl_seconds.max()) {
                (0, Some(left)) => format!("gone by themselves in {}", duration(left + 1)),
                (never, Some(left)) if never < counts.keys => {
                    format!("{never} of them never expire, the others are gone in {}", duration(left + 1))
                }
                (0, None) => "all of them expired".into(),
                _ => "none of them expires".into(),
            };
            let message = format!("{} keys of v{number} beside v{current}, {share} of all: {gone}", counts.keys);
            found.push(
                view.finding(Rule::VersionOld, Draft { place: Place::Version(*number).into(), ..Draft::of_class(view, message) }),
            );
        }
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
}
