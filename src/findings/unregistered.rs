//! Rules of classes without a contract, and of contracts without a class.

use super::view::{ClassView, Draft, keys, percent};
use super::{Finding, Rule, name};
use crate::contract::{Class, Contracts, Fault, Near, Ttl};
use crate::key_text;

/// What a field that is still to be filled in begins with.
const TODO: &str = "TODO";

/// `class-unregistered`.
pub fn class(view: &ClassView<'_>, all_memory: u64) -> Option<Finding> {
    let counts = &view.stats.counts;
    let message = || {
        format!(
            "{} with {} bytes, {} of all memory",
            keys(counts.keys),
            counts.memory_bytes,
            percent(counts.memory_bytes, all_memory)
        )
    };
    (view.registered.is_none() && counts.keys > 0)
        .then(|| view.finding(Rule::ClassUnregistered, Draft::of_class(view, message())))
}

/// `segment-missing` and `segment-unknown`: the contract that the class nearly keeps, by its smallest key.
pub fn near(view: &ClassView<'_>, near: &Near<'_>) -> Option<Finding> {
    let key = view.stats.example_key.get().filter(|_| view.registered.is_none())?;
    let (rule, message) = near_of(key, near, view.policy.contracts.as_ref()?)?;
    Some(view.finding(rule, Draft::of_class(view, message)))
}

/// The same for a key that no pattern takes.
pub fn near_of(key: &[u8], near: &Near<'_>, contracts: &Contracts) -> Option<(Rule, String)> {
    let miss = near.find(key)?;
    let contract = contracts.classes.get(miss.class)?;
    let missing: Vec<&str> =
        miss.faults.iter().filter_map(|fault| if let Fault::Missing(text) = fault { Some(&**text) } else { None }).collect();
    let unknown =
        miss.faults.iter().find_map(|fault| if let Fault::Unknown(text, value) = fault { Some((text, value)) } else { None });
    let (rule, what) = match unknown {
        Some((text, value)) => (Rule::SegmentUnknown, format!("'{}' is no {text}", key_text::escape(value))),
        None => (Rule::SegmentMissing, format!("{} missing", missing.join(" and "))),
    };
    Some((rule, format!("{what}: nearly the pattern of {}, {}", contract.name, contract.pattern)))
}

/// `name-abbreviated`: of a class that no contract describes.
pub fn abbreviated(view: &ClassView<'_>) -> Option<Finding> {
    (view.registered.is_none() && name::abbreviated(view.name, &view.policy.separators)).then(|| {
        view.finding(Rule::NameAbbreviated, Draft::of_class(view, format!("no word of {} is longer than two letters", view.name)))
    })
}

/// `contract-todo`.
pub fn todo(view: &ClassView<'_>) -> Option<Finding> {
    let contract = view.contract?;
    let fields = [("owner", &contract.owner), ("source", &contract.source), ("delete", &contract.delete)];
    let open: Vec<&str> = fields.into_iter().filter(|(_, text)| is_todo(text)).map(|(name, _)| name).collect();
    let message = || format!("to be filled in: {}", open.join(", "));
    (!open.is_empty()).then(|| view.finding(Rule::ContractTodo, Draft::of_class(view, message())))
}

/// True for a text that is still to be written.
pub fn is_todo(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| text.starts_with(TODO))
}

/// `pattern-unmatched`.
pub fn unmatched(view: &ClassView<'_>) -> Option<Finding> {
    let contract = view.contract.filter(|_| view.stats.counts.keys == 0)?;
    Some(view.finding(Rule::PatternUnmatched, Draft::of_class(view, format!("no key matches {}", contract.pattern))))
}

/// `register-incomplete`: what a permanent class must say of itself.
pub fn register(view: &ClassView<'_>) -> Option<Finding> {
    let contract = view.contract.filter(|contract| contract.ttl == Some(Ttl::Permanent))?;
    let lacking = lacking(contract);
    let message = || format!("ttl = \"permanent\" without {}", lacking.join(", "));
    (!lacking.is_empty()).then(|| view.finding(Rule::RegisterIncomplete, Draft::of_class(view, message())))
}

/// Fields that the permanent register asks for and a contract lacks.
pub fn lacking(contract: &Class) -> Vec<&'static str> {
    let lacks_text = |text: &Option<String>| text.is_none() || is_todo(text);
    let fields = [
        ("owner", lacks_text(&contract.owner)),
        ("source", lacks_text(&contract.source)),
        ("delete", lacks_text(&contract.delete)),
        ("budget.keys", contract.budget.is_none_or(|budget| budget.keys.is_none())),
        ("backup", contract.backup.is_none()),
        ("rebuild", contract.rebuild.is_none()),
    ];
    fields.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name).collect()
}
