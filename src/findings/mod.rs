//! Findings: what keys, classes and contracts break of what is agreed.
//!
//! An [`Inspector`] holds each key against the rules that a key breaks by itself, in the pass that makes the census; [`judge`] adds the rules that
//! look at a class as a whole. Each rule is one function, in the file of its kind.

mod inspector;
mod lifetime;
mod lint;
mod name;
mod placement;
mod policy;
mod register;
mod rule;
mod size;
mod tally;
mod timeline;
mod types;
mod unregistered;
mod verdict;
mod version;
mod view;

use std::cmp::Reverse;

use crate::census::{Census, ClassStats};
use crate::contract::Near;
use crate::report::Population;
use crate::values::{self, ValueRow};

pub use inspector::Inspector;
pub use lint::{LintFinding, Linted, Linter, Value};
pub use policy::Policy;
pub use register::RegisterRow;
pub use rule::{Kind, Rule, Severities, Severity};
pub use tally::{Breaches, Place, Tally};
pub use timeline::{Span, Timeline};
pub use verdict::{Baseline, Entry, Id, Shown, Status, Verdict};
pub use version::{VersionRow, Versions};
pub use view::Where;

use tally::Mark;
use view::{ClassView, Draft};

/// Name of the class that stands for the whole input.
pub const ALL: &str = "(all)";

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub rule: Rule,
    /// How grave it is.
    pub severity: Severity,
    /// Class in which it is broken.
    pub class: String,
    /// Index of the contract of that class.
    pub registered: Option<usize>,
    /// Owner of that class.
    pub owner: Option<String>,
    /// Line of the contracts file that names that class.
    pub line: Option<usize>,
    /// Where in the class.
    pub place: Where,
    /// Keys that break it.
    pub keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Some of them.
    pub examples: Vec<Box<[u8]>>,
    /// What is wrong, with figures. May hold parts of names.
    pub message: String,
}

/// What there is to say of a census that was held against rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Findings, the gravest first.
    pub findings: Vec<Finding>,
    /// The permanent register.
    pub register: Vec<RegisterRow>,
    /// When keys will be gone: of all classes together under [`ALL`], then by class.
    pub timelines: Vec<(String, Timeline)>,
    /// Versions in names.
    pub versions: Vec<VersionRow>,
    /// Sampled values, those of the class with most memory first.
    pub values: Vec<ValueRow>,
}

/// Judges a census that was inspected by `policy`. Whether patterns match nothing can only be told where all keys were looked at.
pub fn judge(mut census: Census, policy: &Policy, population: &Population, all_keys: bool) -> Judgement {
    census.discovered.widen();
    let memory = census.total().memory_bytes;
    let slots = std::mem::take(&mut census.slots).into_counts();
    let registered = std::mem::take(&mut census.registered);
    let mut discovered = std::mem::take(&mut census.discovered).into_classes();
    discovered.sort_by(|(a, _), (b, _)| a.cmp(b));
    let views = views(policy, &registered, &discovered);
    let near = policy.contracts.as_deref().map(Near::new);
    let mut found: Vec<Finding> =
        views.iter().flat_map(|view| of_class(view, near.as_ref(), memory, population, all_keys)).collect();
    found.extend(version::beside(&views));
    for (slot, counts, expected) in placement::hot_slots(&slots, population.len(), &views) {
        found.push(Finding {
            rule: Rule::SlotHot,
            severity: Rule::SlotHot.severity(),
            class: ALL.into(),
            registered: None,
            owner: None,
            line: None,
            place: Where::Slot(slot),
            keys: counts.keys,
            memory_bytes: counts.memory_bytes,
            examples: Vec::new(),
            message: format!("{} keys in slot {slot}; by chance the fullest would hold {}", counts.keys, view::decimal(expected)),
        });
    }
    found.retain_mut(|finding| match policy.severity(finding.rule, finding.registered) {
        Some(severity) => {
            finding.severity = severity;
            true
        }
        None => false,
    });
    found.sort_by(|a, b| {
        let order = |f: &Finding| (Reverse(f.severity), f.rule, Reverse(f.memory_bytes), Reverse(f.keys));
        order(a).cmp(&order(b)).then_with(|| (&a.class, &a.place).cmp(&(&b.class, &b.place)))
    });
    let mut all = Timeline::default();
    let of_views = views.iter().filter_map(|view| Some((view.name, &view.breaches?.timeline)));
    let mut timelines: Vec<(String, Timeline)> = Vec::new();
    for (name, timeline) in of_views {
        all.merge(timeline);
        timelines.push((name.into(), timeline.clone()));
    }
    timelines.insert(0, (ALL.into(), all));
    let mut by_memory: Vec<&ClassView<'_>> = views.iter().collect();
    by_memory.sort_by(|a, b| b.stats.counts.memory_bytes.cmp(&a.stats.counts.memory_bytes).then_with(|| a.name.cmp(b.name)));
    let values = by_memory.iter().flat_map(|view| values::rows(view.name, view.stats)).collect();
    Judgement { findings: found, register: register::rows(&views), timelines, versions: version::rows(&views), values }
}

fn views<'a>(policy: &'a Policy, registered: &'a [ClassStats], discovered: &'a [(String, ClassStats)]) -> Vec<ClassView<'a>> {
    let contracts = policy.contracts.as_ref().map_or(&[][..], |contracts| &contracts.classes);
    let registered = contracts.iter().zip(registered).enumerate().map(|(at, (class, stats))| ClassView {
        registered: Some(at),
        name: &class.name,
        pattern: &class.pattern,
        contract: Some(class),
        stats,
        breaches: stats.breaches.as_deref(),
        policy,
    });
    let discovered = discovered.iter().map(|(name, stats)| ClassView {
        registered: None,
        name,
        pattern: name,
        contract: None,
        stats,
        breaches: stats.breaches.as_deref(),
        policy,
    });
    registered.chain(discovered).collect()
}

fn of_class(view: &ClassView<'_>, near: Option<&Near<'_>>, memory: u64, population: &Population, all_keys: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(breaches) = view.breaches {
        for &rule in Rule::ALL {
            for (place, tally) in breaches.of(Mark::Broken(rule)) {
                found.push(view.finding(rule, Draft::of_tally(place, tally, message(rule, place, tally, view))));
            }
        }
    }
    found.extend(types::mixed(view));
    found.extend(version::older(view));
    found.extend(version::in_values(view));
    let of_whole_class: [fn(&ClassView<'_>) -> Option<Finding>; 10] = [
        lifetime::lost,
        lifetime::permanent_unregistered,
        lifetime::thousandth,
        lifetime::below_min,
        lifetime::aligned,
        unregistered::register,
        unregistered::todo,
        unregistered::abbreviated,
        size::budget_keys,
        size::budget_memory,
    ];
    found.extend(of_whole_class.iter().filter_map(|rule| rule(view)));
    found.extend(placement::hot_tag(view, population.len()));
    if let Some(near) = near {
        // The braces of a hash tag are a part of segments: where they alone are wrong, nothing else is.
        let other_tag = placement::other_tag(view, near);
        found.extend(if other_tag.is_some() { other_tag } else { unregistered::near(view, near) });
        found.extend(unregistered::class(view, memory));
        if all_keys {
            found.extend(unregistered::unmatched(view));
        }
    }
    found
}

/// What is said of keys that break a rule by themselves.
fn message(rule: Rule, place: Place, tally: &Tally, view: &ClassView<'_>) -> String {
    let keys = tally.keys;
    let all = view::keys(view.stats.counts.keys);
    let place = Where::from(place).text();
    let agreed = || match view.contract.and_then(|contract| contract.ttl) {
        Some(crate::contract::Ttl::Range { max: Some(max), .. }) => view::duration(max.as_secs()),
        _ => String::new(),
    };
    let longest = view::duration(tally.longest_left_ms / 1000);
    match rule {
        Rule::TtlAboveMax | Rule::TtlUnit => {
            format!("{keys} of {all} have up to {longest} left; agreed are up to {}", agreed())
        }
        Rule::TypeUnexpected => {
            let types = view.contract.map_or_else(String::new, |contract| contract.types.join(", "));
            format!("{keys} of {all} are of {place}; agreed: {types}")
        }
        Rule::DbUnexpected | Rule::PersonalData => format!("{keys} of {all}: {place}"),
        _ if rule.kind() == Kind::Size || rule == Rule::NameTooLong => {
            format!("{keys} of {all}: {}", size::message(rule, view))
        }
        _ => format!("{keys} of {all}: {}", rule.title()),
    }
}
