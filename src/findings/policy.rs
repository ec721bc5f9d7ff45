//! What the contracts ask of each key, ready to be held against millions of them.

use std::sync::Arc;

use super::name::Bytes;
use super::{Rule, Severity, version};
use crate::census::ClassLimits;
use crate::classify::Separators;
use crate::contract::{Atom, Contracts, Pattern, Ttl, Type};

/// Pending entries of a stream above which its backlog is long, unless the contracts say otherwise.
const MOST_PENDING: u64 = 10_000;

/// What is asked of keys.
#[derive(Debug)]
pub struct Policy {
    /// The contracts.
    pub contracts: Option<Arc<Contracts>>,
    /// Keys that are shown of each finding.
    pub examples: usize,
    /// What separates segments.
    pub separators: Separators,
    /// What bytes of names are.
    pub bytes: Bytes,
    /// When keys are big.
    pub limits: Arc<ClassLimits>,
    /// Databases that keys may be in.
    pub databases: Vec<u64>,
    registered: Vec<ClassPolicy>,
    other: ClassPolicy,
}

/// What is asked of the keys of one class.
#[derive(Debug, Clone, Default)]
pub struct ClassPolicy {
    /// Bytes of a name.
    pub key_bytes: Option<u64>,
    /// Entries that a stream may have pending.
    pub pending: u64,
    /// Longest time left, in milliseconds.
    pub max_left_ms: Option<u64>,
    /// Keys are agreed to have no expiry.
    pub permanent: bool,
    /// Types by name; empty where none are agreed.
    pub types: Vec<String>,
    /// Which segment holds the version, where the pattern leaves that open.
    pub version_segment: Option<usize>,
    /// The version that is current.
    pub version: Option<u64>,
}

impl Policy {
    /// By `contracts`, with so many examples of each finding.
    pub fn new(contracts: Option<Arc<Contracts>>, examples: usize) -> Self {
        let separators = contracts.as_ref().map_or_else(Separators::default, |contracts| Separators::new(&contracts.separators));
        let wide = contracts.as_ref().map_or_else(Default::default, |contracts| contracts.limits);
        let other =
            ClassPolicy { key_bytes: wide.key_bytes, pending: wide.pending.unwrap_or(MOST_PENDING), ..Default::default() };
        let registered = contracts.as_ref().map_or_else(Vec::new, |contracts| {
            let class = |(class, pattern): (&crate::contract::Class, &Pattern)| {
                let limits = class.limits.or(wide);
                let max = match class.ttl {
                    Some(Ttl::Range { max, .. }) => max,
                    _ => None,
                };
                ClassPolicy {
                    key_bytes: limits.key_bytes,
                    pending: limits.pending.unwrap_or(MOST_PENDING),
                    max_left_ms: max.map(|max| u64::try_from(max.as_millis()).unwrap_or(u64::MAX)),
                    permanent: class.ttl == Some(Ttl::Permanent),
                    types: class.types.clone(),
                    version_segment: version_segment(pattern),
                    version: class.version,
                }
            };
            contracts.classes.iter().zip(&contracts.patterns).map(class).collect()
        });
        Self {
            examples,
            bytes: Bytes::new(&separators),
            separators,
            limits: Arc::new(ClassLimits::new(contracts.as_deref())),
            databases: contracts.as_ref().and_then(|contracts| contracts.databases.clone()).unwrap_or_else(|| vec![0]),
            registered,
            other,
            contracts,
        }
    }

    /// The bytes that separate segments.
    pub fn separator_bytes(&self) -> Vec<u8> {
        self.contracts.as_ref().map_or_else(|| b":".to_vec(), |contracts| contracts.separators.clone())
    }

    /// Whether a contract asks for the version that values carry.
    pub fn asks_for_values(&self) -> bool {
        let classes = self.contracts.iter().flat_map(|contracts| &contracts.classes);
        classes.into_iter().any(|class| version::is_of_values(class, &self.separator_bytes()))
    }

    /// What is asked of a class.
    #[inline]
    pub fn of(&self, registered: Option<usize>) -> &ClassPolicy {
        registered.and_then(|class| self.registered.get(class)).unwrap_or(&self.other)
    }

    /// How grave a breach of `rule` is in a class; `None` where the rule is switched off.
    pub fn severity(&self, rule: Rule, registered: Option<usize>) -> Option<Severity> {
        let contracts = self.contracts.as_ref();
        let class = registered.and_then(|at| contracts?.classes.get(at)).and_then(|class| class.rules.of(rule));
        class.or_else(|| contracts?.rules.of(rule)).unwrap_or(Some(rule.severity()))
    }
}

/// The one segment that is a version and nothing else.
fn version_segment(pattern: &Pattern) -> Option<usize> {
    let is_version = |segment: &crate::contract::Segment| matches!(segment.atoms(), [Atom::Typed(Type::Version)]);
    let mut found = pattern.segments.iter().enumerate().filter(|(_, segment)| is_version(segment)).map(|(at, _)| at);
    found.next().filter(|_| found.next().is_none())
}
