//! Rules of lifetimes. A dump shows what is left of a TTL, not what was set: keys of all ages are no breach.

use super::tally::Mark;
use super::view::{ClassView, Draft, Where, decimal, duration, keys, percent};
use super::{Finding, Place, Rule};
use crate::contract::Ttl;
use crate::skew;

/// The clock of a dump has whole seconds.
const CLOCK_MS: u64 = 1000;

/// Fewest volatile keys of a class of which something can be said as a whole.
const FEWEST_VOLATILE: u64 = 100;

/// Shortest lifetime, in seconds, of which a thousandth can be told.
const SHORTEST_UNIT: u64 = 60;

/// Fewest keys that expire together to be worth a word.
const FEWEST_TOGETHER: u64 = 100;

/// Share of a class that expires together.
const SHARE_TOGETHER: f64 = 0.1;

/// So many times the expected busiest moment is more than chance.
const BEYOND_CHANCE: f64 = 4.0;

/// `ttl-above-max`: of one key.
#[inline]
pub fn is_above_max(left_ms: u64, max_ms: u64) -> bool {
    left_ms > max_ms.saturating_add(CLOCK_MS)
}

/// `ttl-unit`, seconds where milliseconds are meant: of one key, about a thousand times what was agreed.
#[inline]
pub fn is_thousandfold(left_ms: u64, max_ms: u64) -> bool {
    left_ms > max_ms.saturating_mul(500) && left_ms <= max_ms.saturating_mul(2000)
}

/// `ttl-unit`, milliseconds where seconds are meant: of a class none of whose many keys has more left than about a thousandth of what was
/// agreed.
pub fn thousandth(view: &ClassView<'_>) -> Option<Finding> {
    let (_, max) = range(view)?;
    let (longest, max) = longest_left(view).zip(max)?;
    let message = || format!("no key has more than {} left; agreed are up to {}", duration(longest + 1), duration(max));
    // Time left is known in whole seconds: of short lifetimes a thousandth cannot be told.
    (max >= SHORTEST_UNIT && longest.saturating_mul(1000) < max.saturating_mul(2))
        .then(|| view.finding(Rule::TtlUnit, Draft::of_volatile(view, message())))
}

/// `ttl-below-min`: of a class.
pub fn below_min(view: &ClassView<'_>) -> Option<Finding> {
    let (min, _) = range(view)?;
    let (longest, min) = longest_left(view).zip(min)?;
    let message = || format!("no key has more than {} left; agreed are at least {}", duration(longest + 1), duration(min));
    (longest < min && thousandth(view).is_none()).then(|| view.finding(Rule::TtlBelowMin, Draft::of_volatile(view, message())))
}

/// `ttl-lost`: keys without expiry where most have one, unless that is agreed.
pub fn lost(view: &ClassView<'_>) -> Option<Finding> {
    let (_, tally) = *view.breaches?.of(Mark::Permanent).first()?;
    let others = view.stats.counts.keys - tally.keys;
    let message = || {
        format!(
            "{} of {} never expire, {}",
            tally.keys,
            keys(view.stats.counts.keys),
            percent(tally.keys, view.stats.counts.keys)
        )
    };
    (others > tally.keys).then(|| view.finding(Rule::TtlLost, Draft::of_tally(Place::Whole, tally, message())))
}

/// `permanent-unregistered`: keys without expiry where that is neither agreed nor an exception.
pub fn permanent_unregistered(view: &ClassView<'_>) -> Option<Finding> {
    let (_, tally) = *view.breaches?.of(Mark::Permanent).first()?;
    let others = view.stats.counts.keys - tally.keys;
    let agreed = match view.contract {
        None => "no contract names the class",
        Some(contract) if contract.ttl.is_none() => "its contract says nothing of ttl",
        Some(_) => "its contract asks for a TTL",
    };
    let message = || format!("{} of {} never expire, and {agreed}", tally.keys, keys(view.stats.counts.keys));
    (view.policy.contracts.is_some() && others <= tally.keys)
        .then(|| view.finding(Rule::PermanentUnregistered, Draft::of_tally(Place::Whole, tally, message())))
}

/// `expiry-aligned`: the busiest second, else the busiest minute, against an even spread over the jitter that the range of the TTL leaves, or
/// over the whole time left where no range is agreed.
pub fn aligned(view: &ClassView<'_>) -> Option<Finding> {
    if thousandth(view).is_some() {
        return None;
    }
    let (moments, weight) = view.breaches?.expiries.sorted();
    let longest = view.stats.ttl_seconds.max()?;
    let spread = match range(view) {
        Some((Some(min), Some(max))) => max.saturating_sub(min).max(1),
        Some((_, Some(max))) => max.max(1),
        _ => longest.max(1),
    };
    let all = (moments.len() as u64).saturating_mul(weight);
    [(1i64, "second"), (60, "minute")].into_iter().find_map(|(seconds, unit)| {
        let (moment, sampled) = busiest(&moments, seconds * 1000)?;
        let keys = sampled.saturating_mul(weight);
        let buckets = (spread as f64 / seconds as f64).max(1.0);
        let expected = skew::expected_poisson_max(all as f64 / buckets, buckets);
        if keys < FEWEST_TOGETHER || (keys as f64) < all as f64 * SHARE_TOGETHER || keys as f64 <= BEYOND_CHANCE * expected {
            return None;
        }
        let at = crate::time::rfc3339(moment).unwrap_or_else(|| moment.to_string());
        let about = if weight > 1 { "about " } else { "" };
        let message = format!(
            "{about}{keys} of {all} keys expire in the {unit} from {at}; spread over {} the busiest would have {}",
            duration(spread),
            decimal(expected),
        );
        // Bytes of so many keys of the class, since those that expire then are not told apart.
        let memory = u128::from(view.stats.counts.memory_bytes) * u128::from(keys) / u128::from(view.stats.counts.keys.max(1));
        let draft = Draft { keys, memory_bytes: u64::try_from(memory).unwrap_or(u64::MAX), ..Draft::of_class(view, message) };
        Some(view.finding(Rule::ExpiryAligned, Draft { place: Where::Nothing, ..draft }))
    })
}

/// The first of the fullest spans of `width_ms` that begin at its multiples, and how many of the sorted moments are in it.
fn busiest(moments: &[i64], width_ms: i64) -> Option<(i64, u64)> {
    let spans = moments.chunk_by(|a, b| a.div_euclid(width_ms) == b.div_euclid(width_ms));
    let fullest = spans.min_by_key(|span| std::cmp::Reverse(span.len()))?;
    Some((fullest.first()?.div_euclid(width_ms).saturating_mul(width_ms), fullest.len() as u64))
}

/// Seconds of the agreed range.
fn range(view: &ClassView<'_>) -> Option<(Option<u64>, Option<u64>)> {
    match view.contract?.ttl? {
        Ttl::Permanent => None,
        Ttl::Range { min, max } => Some((min.map(|min| min.as_secs()), max.map(|max| max.as_secs()))),
    }
}

/// The longest time that any of many keys has left, in whole seconds.
fn longest_left(view: &ClassView<'_>) -> Option<u64> {
    view.stats.ttl_seconds.max().filter(|_| view.stats.counts.volatile_keys() >= FEWEST_VOLATILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges() {
        // The clock of a dump may be a second early.
        assert!(!is_above_max(151_000, 150_000) && is_above_max(151_001, 150_000));
        assert!(!is_thousandfold(75_000_000, 150_000) && is_thousandfold(75_000_001, 150_000));
        assert!(is_thousandfold(300_000_000, 150_000) && !is_thousandfold(300_000_001, 150_000));
        assert!(!is_above_max(u64::MAX, u64::MAX) && !is_thousandfold(u64::MAX, u64::MAX));
    }

    #[test]
    fn the_fullest_span() {
        assert_eq!(busiest(&[], 1000), None);
        assert_eq!(busiest(&[999, 1000, 1999, 2000], 1000), Some((1000, 2)));
        assert_eq!(busiest(&[-1, 0, 1], 1000), Some((0, 2)));
        assert_eq!(busiest(&[1, 1001], 1000), Some((0, 1)), "the first among equals");
    }
}
