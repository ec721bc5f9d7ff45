//! Rules of types and encodings.

use super::tally::{Mark, Place};
use super::view::{ClassView, Draft};
use super::{Finding, Rule};
use crate::measure::{Encoding, Fact};
use crate::rdb::KeyType;

/// `type-unexpected`: a type that is not among those agreed.
#[inline]
pub fn is_unexpected(key_type: KeyType, agreed: &[String]) -> bool {
    !agreed.is_empty() && !agreed.iter().any(|name| is_named(key_type, name))
}

fn is_named(key_type: KeyType, name: &str) -> bool {
    match key_type {
        KeyType::String => name == "string",
        KeyType::List => name == "list",
        KeyType::Set => name == "set",
        KeyType::Zset => name == "zset",
        KeyType::Hash => name == "hash",
        KeyType::Stream => name == "stream",
        KeyType::Array => name == "array",
        KeyType::Other(own) => name == own,
        KeyType::Module(id) => id.name() == *name.as_bytes(),
    }
}

/// `encoding-converted`: a hash table or skip list that twice the limit would keep compact.
#[inline]
pub fn is_just_converted(fact: &Fact<'_>) -> bool {
    matches!(fact.encoding, Encoding::Hashtable | Encoding::Skiplist)
        && fact.what_if.and_then(|what_if| what_if.fallback()).is_some_and(|fallback| fallback.step == 0)
}

/// `type-mixed`: a finding for each type but the most frequent one.
pub fn mixed(view: &ClassView<'_>) -> Vec<Finding> {
    let mut types = view.breaches.map_or_else(Vec::new, |breaches| breaches.of(Mark::OfType));
    // The sort is stable: by type among equals.
    types.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.keys));
    let Some(((most, main), others)) = types.split_first() else { return Vec::new() };
    let name = |place: &Place| if let Place::Type(key_type) = place { key_type.to_string() } else { String::new() };
    let finding = |(place, tally): &(Place, &super::Tally)| {
        let message = format!("{} of type {}, {} of type {}", main.keys, name(most), tally.keys, name(place));
        view.finding(Rule::TypeMixed, Draft::of_tally(*place, tally, message))
    };
    others.iter().map(finding).collect()
}
