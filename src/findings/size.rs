//! Rules of size: of one key, and of a class against its budget.

use super::policy::ClassPolicy;
use super::view::{ClassView, Draft};
use super::{Finding, Rule};
use crate::census::BigLimits;
use crate::measure::Fact;

/// `memory-too-large`, `elements-too-many`, `string-too-long`, `member-too-long` by the limits that reports list big keys by, and
/// `backlog-too-long`.
#[inline]
pub fn broken_by(fact: &Fact<'_>, limits: &BigLimits, class: &ClassPolicy) -> impl Iterator<Item = Rule> {
    const RULES: [Rule; 4] = [Rule::MemoryTooLarge, Rule::ElementsTooMany, Rule::StringTooLong, Rule::MemberTooLong];
    let backlog = fact.stream.is_some_and(|stream| stream.pending > class.pending);
    let above = limits.above_of(fact);
    RULES.into_iter().zip(above).chain([(Rule::BacklogTooLong, backlog)]).filter_map(|(rule, broken)| broken.then_some(rule))
}

/// `budget-keys`: keys that a server loads, above the peak.
pub fn budget_keys(view: &ClassView<'_>) -> Option<Finding> {
    let budget = view.contract?.budget?;
    let keys = view.loaded_keys();
    let peak = peak(budget.keys?, budget.peak_factor);
    let message = || format!("{keys} keys; the budget is {} with a peak of {peak}", budget.keys.unwrap_or(0));
    (keys > peak).then(|| view.finding(Rule::BudgetKeys, Draft::of_class(view, message())))
}

/// `budget-memory`: memory of keys that a server loads, above the peak.
pub fn budget_memory(view: &ClassView<'_>) -> Option<Finding> {
    let budget = view.contract?.budget?;
    let bytes = view.stats.counts.memory_bytes.saturating_sub(view.stats.counts.expired_memory_bytes);
    let peak = peak(budget.memory_bytes?, budget.peak_factor);
    let message = || format!("{bytes} bytes; the budget is {} with a peak of {peak}", budget.memory_bytes.unwrap_or(0));
    (bytes > peak).then(|| view.finding(Rule::BudgetMemory, Draft::of_class(view, message())))
}

/// The peak of a usual figure, rounded down.
fn peak(usual: u64, factor: f64) -> u64 {
    // Above what a float has, the factor is of no matter.
    (usual as f64 * factor) as u64
}

/// What is said of keys above a limit.
pub fn message(rule: Rule, view: &ClassView<'_>) -> String {
    let limits = view.policy.limits.of(view.registered);
    let class = view.policy.of(view.registered);
    match rule {
        Rule::MemoryTooLarge => format!("above {} bytes in memory", limits.memory_bytes),
        Rule::ElementsTooMany => format!("above {} elements", limits.elements),
        Rule::StringTooLong => format!("values above {} bytes", limits.string_bytes),
        Rule::MemberTooLong => format!("elements above {} bytes", limits.member_bytes),
        Rule::BacklogTooLong => format!("above {} entries pending", class.pending),
        Rule::NameTooLong => format!("names above {} bytes", class.key_bytes.unwrap_or(0)),
        _ => String::new(),
    }
}
