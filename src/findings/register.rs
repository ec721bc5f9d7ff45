//! The permanent register: what is agreed on classes without expiry beside what is there, and what is there without being agreed.

use super::unregistered;
use super::view::ClassView;
use crate::contract::Ttl;

/// A class with permanent keys, or one that is agreed to have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterRow {
    /// Class.
    pub class: String,
    /// Agreed to be permanent.
    pub registered: bool,
    /// Its owner.
    pub owner: Option<String>,
    /// Where its data is from.
    pub source: Option<String>,
    /// How its keys are deleted.
    pub delete: Option<String>,
    /// Whether it is backed up.
    pub backup: Option<bool>,
    /// Whether it can be rebuilt.
    pub rebuild: Option<bool>,
    /// Keys that are agreed on.
    pub budget_keys: Option<u64>,
    /// Keys that are there, permanent or not.
    pub keys: u64,
    /// Permanent keys.
    pub permanent_keys: u64,
    /// Their memory.
    pub permanent_memory_bytes: u64,
    /// Fields that the register asks for and the contract lacks.
    pub lacking: Vec<&'static str>,
}

/// Registered classes first; in each part those with most permanent memory.
pub fn rows(views: &[ClassView<'_>]) -> Vec<RegisterRow> {
    let mut rows: Vec<RegisterRow> = views.iter().filter_map(row).collect();
    rows.sort_by(|a, b| {
        let order = |row: &RegisterRow| (!row.registered, std::cmp::Reverse((row.permanent_memory_bytes, row.permanent_keys)));
        order(a).cmp(&order(b)).then_with(|| a.class.cmp(&b.class))
    });
    rows
}

fn row(view: &ClassView<'_>) -> Option<RegisterRow> {
    let counts = &view.stats.counts;
    let contract = view.contract;
    let registered = contract.is_some_and(|contract| contract.ttl == Some(Ttl::Permanent));
    (registered || counts.permanent_keys > 0).then(|| RegisterRow {
        class: view.name.into(),
        registered,
        owner: contract.and_then(|contract| contract.owner.clone()),
        source: contract.and_then(|contract| contract.source.clone()),
        delete: contract.and_then(|contract| contract.delete.clone()),
        backup: contract.and_then(|contract| contract.backup),
        rebuild: contract.and_then(|contract| contract.rebuild),
        budget_keys: contract.and_then(|contract| contract.budget).and_then(|budget| budget.keys),
        keys: counts.keys,
        permanent_keys: counts.permanent_keys,
        permanent_memory_bytes: counts.permanent_memory_bytes,
        lacking: contract.filter(|_| registered).map(unregistered::lacking).unwrap_or_default(),
    })
}
