//! Holds one key after another against the rules that a key breaks by itself.

use std::sync::Arc;

use super::name::{self, Name};
use super::policy::Policy;
use super::tally::{Breaches, Mark, Place};
use super::{Rule, lifetime, placement, size, types, version};
use crate::classify::Shape;
use crate::measure::{Fact, Lifetime, hash_tag};

/// Judges keys by a policy.
#[derive(Debug, Clone)]
pub struct Inspector {
    policy: Arc<Policy>,
    shape: Shape,
}

impl Inspector {
    /// By this policy.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { policy, shape: Shape::default() }
    }

    /// Nothing found yet.
    pub fn fresh(&self) -> Breaches {
        Breaches::new(self.policy.examples)
    }

    /// Puts what a key of a class breaks among `found`.
    #[inline]
    pub fn inspect(&mut self, fact: &Fact<'_>, registered: Option<usize>, found: &mut Breaches) {
        let policy = &*self.policy;
        let class = policy.of(registered);
        let mut broken = |rule: Rule, place: Place| found.add(Mark::Broken(rule), place, fact);
        match fact.lifetime {
            Lifetime::Permanent => {}
            Lifetime::Expired { .. } => broken(Rule::ExpiredKeys, Place::Whole),
            Lifetime::Volatile { left_ms } => {
                if class.permanent {
                    broken(Rule::TtlUnexpected, Place::Whole);
                }
                if let Some((left, max)) = left_ms.zip(class.max_left_ms) {
                    if lifetime::is_thousandfold(left, max) {
                        broken(Rule::TtlUnit, Place::Whole);
                    } else if lifetime::is_above_max(left, max) {
                        broken(Rule::TtlAboveMax, Place::Whole);
                    }
                }
            }
        }
        for rule in size::broken_by(fact, policy.limits.of(registered), class) {
            broken(rule, Place::Whole);
        }
        if types::is_unexpected(fact.key_type, &class.types) {
            broken(Rule::TypeUnexpected, Place::Type(fact.key_type));
        }
        if types::is_just_converted(fact) {
            broken(Rule::EncodingConverted, Place::Type(fact.key_type));
        }
        if placement::is_unexpected_db(fact.db, &policy.databases) {
            broken(Rule::DbUnexpected, Place::Db(fact.db));
        }
        let name = Name::new(fact.key, &policy.bytes);
        if !name.is_plain() || name::too_long(&name, class.key_bytes) {
            of_name(&name, policy, class.key_bytes, &mut self.shape, &mut broken);
        }
        if fact.lifetime == Lifetime::Permanent && !class.permanent {
            found.add(Mark::Permanent, Place::Whole, fact);
        }
        if let Some(number) = version::of(fact.key, class.version_segment, &policy.separators) {
            found.add_version(number, fact);
        }
        if class.types.is_empty() {
            found.add(Mark::OfType, Place::Type(fact.key_type), fact);
        }
        if name::may_be_tagged(&name)
            && let Some(tag) = hash_tag(fact.key)
        {
            found.add_tagged(tag, fact);
        }
        if let (Lifetime::Volatile { left_ms }, Some(expiry)) = (fact.lifetime, fact.expires_at_ms) {
            found.expiries.offer(fact, expiry);
            found.last_expiry_ms = found.last_expiry_ms.max(Some(expiry));
            if let Some(left) = left_ms {
                found.timeline.add(left, fact.memory_bytes.unwrap_or(0));
            }
        }
    }
}

/// Tells `broken` what a name breaks by itself.
pub fn of_name(name: &Name<'_>, policy: &Policy, key_bytes: Option<u64>, shape: &mut Shape, broken: &mut dyn FnMut(Rule, Place)) {
    let rules = [
        (Rule::NameSpace, name::space(name)),
        (Rule::NameControl, name::control(name)),
        (Rule::NameQuote, name::quote(name)),
        (Rule::NameUppercase, name::uppercase(name, &policy.separators, shape)),
        (Rule::NameNonAscii, name::non_ascii(name)),
        (Rule::NameTooLong, name::too_long(name, key_bytes)),
        (Rule::SegmentEmpty, name::empty_segment(name)),
        (Rule::NameNoNamespace, name::no_namespace(name)),
        (Rule::BracesUnbalanced, name::unbalanced_braces(name)),
    ];
    for (rule, _) in rules.into_iter().filter(|(_, found)| *found) {
        broken(rule, Place::Whole);
    }
    if let Some(kind) = name::personal_data(name) {
        broken(Rule::PersonalData, Place::Sensitive(kind));
    }
}
