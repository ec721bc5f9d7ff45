//! Names held against the contracts without any dump.

use serde::Serialize;

use super::inspector::of_name;
use super::name::{self, Name};
use super::policy::Policy;
use super::view::Where;
use super::{Place, Rule, Severity, placement, unregistered, version};
use crate::classify::{Classifier, Segment};
use crate::contract::{Near, texts};
use crate::key_text;
use crate::measure::{hash_tag, slot};

/// What is said of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Linted {
    /// The name, as key text.
    pub name: String,
    /// Its class; nothing where no contract takes it.
    pub class: Option<String>,
    /// The pattern of that class.
    pub pattern: Option<String>,
    /// The owner of that class.
    pub owner: Option<String>,
    /// Its segments.
    pub segments: Vec<Value>,
    /// The slot in which a cluster keeps the key.
    pub slot: u16,
    /// Its hash tag.
    pub tag: Option<String>,
    /// What it breaks, the gravest first.
    pub findings: Vec<LintFinding>,
}

/// A segment of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Value {
    /// As the pattern has it; nothing where no contract takes the name.
    pub segment: Option<String>,
    /// As the name has it, as key text.
    pub value: String,
}

/// A rule that a name breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// Id of the rule.
    pub rule: &'static str,
    /// How grave it is.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: &'static str,
    #[serde(skip)]
    grade: Severity,
}

/// Judges names by a policy.
#[derive(Debug)]
pub struct Linter<'p> {
    policy: &'p Policy,
    near: Option<Near<'p>>,
    classifier: Classifier,
}

impl<'p> Linter<'p> {
    /// By this policy.
    pub fn new(policy: &'p Policy) -> Self {
        let near = policy.contracts.as_deref().map(Near::new);
        Self { policy, near, classifier: Classifier::new(policy.contracts.clone()) }
    }

    /// Class, segments, slot and findings of a name.
    pub fn lint(&mut self, key: &[u8]) -> Linted {
        let policy = self.policy;
        let mut class = self.classifier.classify(key);
        let registered = class.registered;
        let mut shape = class.key.shape().clone();
        let shape_text = String::from_utf8_lossy(shape.text()).into_owned();
        let contract = registered.zip(policy.contracts.as_ref()).and_then(|(at, contracts)| contracts.classes.get(at));
        let mut broken: Vec<(Rule, String)> = Vec::new();
        let name = Name::new(key, &policy.bytes);
        let limits = policy.of(registered);
        of_name(&name, policy, limits.key_bytes, &mut shape, &mut |rule, place| {
            let what = match place {
                Place::Whole => rule.title().to_string(),
                place => Where::from(place).text(),
            };
            broken.push((rule, what));
        });
        if let Some((number, current)) = version::of(key, limits.version_segment, &policy.separators).zip(limits.version)
            && number < current
        {
            broken.push((Rule::VersionOld, format!("v{number}; current is v{current}")));
        }
        broken.extend(self.old_pattern(registered, &shape_text));
        if let (None, Some(near), Some(contracts)) = (registered, &self.near, &policy.contracts) {
            match placement::other_tag_of(key, near, policy) {
                Some(message) => broken.push((Rule::TagDiffers, message)),
                None => broken.extend(unregistered::near_of(key, near, contracts)),
            }
            broken.push((Rule::ClassUnregistered, format!("no contract takes it; its shape is {shape_text}")));
            if name::abbreviated(&shape_text, &policy.separators) {
                broken.push((Rule::NameAbbreviated, Rule::NameAbbreviated.title().into()));
            }
        }
        let finding = |(rule, message): (Rule, String)| {
            let grade = policy.severity(rule, registered)?;
            Some(LintFinding { rule: rule.id(), severity: grade.name(), message, fix: rule.fix(), grade })
        };
        let mut findings: Vec<LintFinding> = broken.into_iter().filter_map(finding).collect();
        // The sort is stable: in the order of the rules among equals.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.grade));
        Linted {
            name: key_text::escape(key).into_owned(),
            class: contract.map(|contract| contract.name.clone()),
            pattern: contract.map(|contract| contract.pattern.clone()),
            owner: contract.and_then(|contract| contract.owner.clone()),
            segments: self.segments(key, contract.map(|contract| &*contract.pattern)),
            slot: slot(key),
            tag: hash_tag(key).map(|tag| key_text::escape(tag).into_owned()),
            findings,
        }
    }

    /// The version that the name's class is of, where a contract has a newer one.
    fn old_pattern(&self, registered: Option<usize>, shape: &str) -> Option<(Rule, String)> {
        let contracts = self.policy.contracts.as_ref()?;
        let mut patterns: Vec<(&str, Option<u64>)> =
            contracts.classes.iter().map(|class| (&*class.pattern, class.version)).collect();
        let at = registered.unwrap_or(patterns.len());
        if registered.is_none() {
            patterns.push((shape, None));
        }
        let old = version::older_patterns(&patterns, &contracts.separators).into_iter().find(|old| old.at == at)?;
        Some((Rule::VersionOld, format!("v{}; current is v{}", old.number, old.current)))
    }

    fn segments(&self, key: &[u8], pattern: Option<&str>) -> Vec<Value> {
        let separators = self.policy.separator_bytes();
        let of_pattern = pattern.map(|pattern| texts(pattern, &separators)).unwrap_or_default();
        let value = |(at, segment): (usize, Segment<'_>)| {
            // What is beyond the pattern repeats its last segment.
            let text = of_pattern.get(at).or(of_pattern.last());
            Value { segment: text.map(ToString::to_string), value: key_text::escape(segment.text).into_owned() }
        };
        self.policy.separators.segments(key).enumerate().map(value).collect()
    }
}

impl Linted {
    /// True where a finding is at least as grave.
    pub fn is_broken(&self, fail_on: Severity) -> bool {
        self.findings.iter().any(|finding| finding.grade >= fail_on)
    }
}
