//! How unevenly keys and memory lie over slots, and how unevenly chance alone would lay them.

use crate::census::PlaceCounts;
use crate::report::Report;

/// How unevenly a measure lies over the slots of a population.
#[derive(Debug, Clone, PartialEq)]
pub struct Skew {
    /// Slots looked at.
    pub population: u64,
    /// Of these, slots with any key.
    pub used: u64,
    /// Mean over the population.
    pub mean: f64,
    /// Largest value.
    pub max: u64,
    /// The smallest slot that has it; `None` without keys.
    pub max_slot: Option<u16>,
    /// Largest value over the mean.
    pub max_over_mean: Option<f64>,
    /// The same where every key went to a slot by chance.
    pub expected_max_over_mean: Option<f64>,
    /// Standard deviation over the mean.
    pub cv: Option<f64>,
    /// The same where every key went to a slot by chance.
    pub expected_cv: Option<f64>,
    /// Gini coefficient: 0 where all are equal, near 1 where one has all.
    pub gini: Option<f64>,
    /// Share of the largest 1 % of slots, rounded up.
    pub top1_share: Option<f64>,
}

impl Skew {
    /// Of the number of keys.
    pub fn of_keys(report: &Report) -> Self {
        let mut skew = Self::measured(report, |counts| counts.keys);
        let keys = report.total.keys as f64;
        let slots = skew.population as f64;
        if keys > 0.0 && slots > 0.0 {
            // Each slot's count is binomial.
            skew.expected_cv = Some(((slots - 1.0) / keys).sqrt());
            skew.expected_max_over_mean = Some(expected_poisson_max(skew.mean, slots) / skew.mean);
        }
        skew
    }

    /// Of the memory of keys.
    pub fn of_memory(report: &Report) -> Self {
        let mut skew = Self::measured(report, |counts| counts.memory_bytes);
        let sum = report.total.memory_bytes as f64;
        let slots = skew.population as f64;
        if sum > 0.0 && slots > 0.0 {
            // The sum of independent keys, each in a slot with the same chance.
            let cv = (report.memory_squares as f64 * (slots - 1.0)).sqrt() / sum;
            skew.expected_cv = Some(cv);
            skew.expected_max_over_mean = Some(1.0 + cv * expected_normal_max(slots));
        }
        skew
    }

    fn measured(report: &Report, measure: fn(&PlaceCounts) -> u64) -> Self {
        let place = |slot: u16| &report.slots[usize::from(slot)];
        let mut values: Vec<u64> = report.population.iter().map(|slot| measure(place(slot))).collect();
        let used = report.population.iter().filter(|slot| place(*slot).keys > 0).count() as u64;
        let max = values.iter().copied().max().unwrap_or(0);
        let max_slot = report.population.iter().find(|slot| max > 0 && measure(place(*slot)) == max);
        let population = values.len() as f64;
        let sum: f64 = values.iter().map(|&v| v as f64).sum();
        let mean = if values.is_empty() { 0.0 } else { sum / population };
        let of_mean = |x: f64| (mean > 0.0).then(|| x / mean);
        let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / population;
        values.sort_unstable();
        // Sum over ranks, of values in ascending order.
        let ranked: f64 = (1..).zip(&values).map(|(rank, &v)| f64::from(rank) * v as f64).sum();
        let top = values.len().div_ceil(100);
        let top_sum: f64 = values.iter().rev().take(top).map(|&v| v as f64).sum();
        Self {
            population: values.len() as u64,
            used,
            mean,
            max,
            max_slot,
            max_over_mean: of_mean(max as f64),
            expected_max_over_mean: None,
            cv: of_mean(variance.sqrt()),
            expected_cv: None,
            gini: (sum > 0.0).then(|| 2.0 * ranked / (population * sum) - (population + 1.0) / population),
            top1_share: (sum > 0.0).then(|| top_sum / sum),
        }
    }
}

/// Mean from which a Poisson distribution is taken for a normal one.
const NORMAL_FROM: f64 = 1e4;

/// Expected largest of `n` counts that are each Poisson with `mean`: the sum over k of the chance that one of them is above k.
pub(crate) fn expected_poisson_max(mean: f64, n: f64) -> f64 {
    if mean >= NORMAL_FROM {
        return mean + mean.sqrt() * expected_normal_max(n);
    }
    let spread = mean.sqrt();
    // Below this a count is above k as good as surely.
    let start = (mean - 7.0 * spread - 20.0).max(0.0).floor();
    let mut expected = start;
    let mut k = start;
    let mut log_chance = k * mean.ln() - mean - log_factorial(k);
    let mut below = 0.0;
    while k <= mean + 12.0 * spread + 40.0 {
        below += log_chance.exp();
        // One minus below^n, also where below is so near to one that it cannot be told from it.
        let above = -(n * (-(1.0 - below).max(0.0)).ln_1p()).exp_m1();
        expected += above.clamp(0.0, 1.0);
        if above < 1e-9 && k > mean {
            break;
        }
        k += 1.0;
        log_chance += mean.ln() - k.ln();
    }
    expected
}

/// Natural logarithm of the factorial of a whole number.
fn log_factorial(n: f64) -> f64 {
    if n < 256.0 {
        return (2..=n as u32).map(|k| f64::from(k).ln()).sum();
    }
    // Stirling's series; the next term is below 1e-12.
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

/// Expected largest of `n` standard normal values, by Blom's quantile.
fn expected_normal_max(n: f64) -> f64 {
    if n < 2.0 {
        return 0.0;
    }
    let upper = 1.0 - (n - 0.375) / (n + 0.25);
    // Rational approximation of the normal quantile (Abramowitz and Stegun 26.2.23), within 0.0005.
    let t = (-2.0 * upper.ln()).sqrt();
    t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_maxima() {
        // Of 2 normal values the expected larger one is 1/sqrt(pi) = 0.564; of 16384 it is 3.96 (tables of order statistics).
        assert!((expected_normal_max(2.0) - 0.564).abs() < 0.03, "{}", expected_normal_max(2.0));
        assert!((expected_normal_max(16_384.0) - 3.96).abs() < 0.03, "{}", expected_normal_max(16_384.0));
        // One count is its own maximum.
        assert!((expected_poisson_max(10.0, 1.0) - 10.0).abs() < 1e-6);
        // Two Poisson counts of mean 1: 1 + E|X - Y| / 2, and E|X - Y| = 2 e^-2 (I0(2) + I1(2)) = 1.0478.
        assert!((expected_poisson_max(1.0, 2.0) - 1.5239).abs() < 1e-3, "{}", expected_poisson_max(1.0, 2.0));
        // The two ways meet, within a twentieth of the spread.
        let [summed, normal] = [NORMAL_FROM - 1.0, NORMAL_FROM].map(|mean| expected_poisson_max(mean, 16_384.0));
        assert!((summed - normal).abs() < NORMAL_FROM.sqrt() / 20.0, "{summed} {normal}");
    }
}
