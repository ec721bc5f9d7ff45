//! Rules of databases, hash tags and slots.

use super::view::{ClassView, Draft, Where, decimal};
use super::{Finding, Policy, Rule, name};
use crate::census::PlaceCounts;
use crate::contract::Near;
use crate::measure::{SLOTS, hash_tag};
use crate::skew;

/// Fewest keys in a slot that are worth a word.
const FEWEST_KEYS: u64 = 100;

/// So many times the expected largest number of keys in any slot is more than chance.
const BEYOND_CHANCE: f64 = 4.0;

/// `db-unexpected`.
#[inline]
pub fn is_unexpected_db(db: u64, agreed: &[u64]) -> bool {
    !agreed.contains(&db)
}

/// `tag-hot`: the fullest slot of a class, where all keys in it have one tag.
pub fn hot_tag(view: &ClassView<'_>, population: usize) -> Option<Finding> {
    let (slot, tagged, all) = view.breaches?.fullest_slot()?;
    let expected = beyond_chance(tagged.tally.keys, all, population).filter(|_| tagged.same_tag)?;
    let tag = tagged.tally.examples.keys().next().and_then(hash_tag)?;
    let message = format!(
        "{} of {all} tagged keys share one tag and with it slot {slot}; by chance the fullest slot would hold {}",
        tagged.tally.keys,
        decimal(expected),
    );
    Some(view.finding(
        Rule::TagHot,
        Draft { place: Where::Tag(tag.into()), ..Draft::of_tally(super::Place::Whole, &tagged.tally, message) },
    ))
}

/// Slots of the whole input that hold far more keys than chance explains, with their number of keys and the expected largest number. Those
/// that hot tags explain are left out.
pub fn hot_slots(slots: &[PlaceCounts], population: usize, views: &[ClassView<'_>]) -> Vec<(u16, PlaceCounts, f64)> {
    let all = slots.iter().map(|counts| counts.keys).sum();
    let explained = |slot: u16| {
        let tagged = views
            .iter()
            .filter_map(|view| view.breaches?.fullest_slot())
            .filter(|(number, tagged, _)| *number == slot && tagged.same_tag);
        tagged.map(|(_, tagged, _)| tagged.tally.keys).max().unwrap_or(0)
    };
    (0..SLOTS)
        .zip(slots)
        .filter_map(|(slot, counts)| {
            let expected = beyond_chance(counts.keys, all, population)?;
            (explained(slot).saturating_mul(2) < counts.keys).then_some((slot, *counts, expected))
        })
        .collect()
}

/// The largest number of keys that chance would put into one of the slots, where `keys` of `all` in one are far more.
fn beyond_chance(keys: u64, all: u64, population: usize) -> Option<f64> {
    let slots = population as f64;
    if keys < FEWEST_KEYS || population < 2 {
        return None;
    }
    let expected = skew::expected_poisson_max(all as f64 / slots, slots);
    (keys as f64 > BEYOND_CHANCE * expected).then_some(expected)
}

/// `tag-differs`: the contract that would take the keys of the class, by its smallest key, if the braces were where it has them.
pub fn other_tag(view: &ClassView<'_>, near: &Near<'_>) -> Option<Finding> {
    let key = view.stats.example_key.get().filter(|_| view.registered.is_none())?;
    let message = other_tag_of(key, near, view.policy)?;
    Some(view.finding(Rule::TagDiffers, Draft::of_class(view, message)))
}

/// The same for a key that no pattern takes.
pub fn other_tag_of(key: &[u8], near: &Near<'_>, policy: &Policy) -> Option<String> {
    if name::unbalanced_braces(&name::Name::new(key, &policy.bytes)) {
        return None;
    }
    let contract = policy.contracts.as_ref()?.classes.get(near.find_untagged(key)?)?;
    let has = if hash_tag(key).is_some() { "another hash tag than" } else { "no hash tag, unlike" };
    Some(format!("{has} the pattern of {}, {}", contract.name, contract.pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance() {
        // 400 keys over 16,384 slots: hardly two meet.
        assert!(beyond_chance(400, 400, 16_384).is_some_and(|expected| (1.0..3.0).contains(&expected)));
        // A mean of 61 keys and a largest of about 96 is what hashing gives.
        assert_eq!(beyond_chance(130, 1_000_000, 16_384), None);
        assert!(beyond_chance(500, 1_000_000, 16_384).is_some());
        assert_eq!(beyond_chance(99, 99, 16_384), None);
        // A node that owns one slot has all keys there.
        assert_eq!(beyond_chance(1000, 1000, 1), None);
    }
}
