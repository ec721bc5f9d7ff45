//! When keys will be gone: the next hour by the minute, the next day by the hour, the next ninety days by the day.

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

const MINUTES: usize = 60;
const HOURS: usize = 24;
const DAYS: usize = 90;

/// Minutes of the first hour, the hours after it, the days after the first.
const CELLS: usize = MINUTES + HOURS - 1 + DAYS - 1;

/// Keys and bytes that expiry frees, by the time from the snapshot on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Keys and their memory; empty until there is one.
    cells: Vec<(u64, u64)>,
}

/// A span of time and what it frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// `minute`, `hour` or `day`.
    pub unit: &'static str,
    /// Seconds from the snapshot to its beginning.
    pub from_seconds: u64,
    /// Keys.
    pub keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
}

impl Timeline {
    /// Adds a key that has so many milliseconds left, at least one.
    #[inline]
    pub fn add(&mut self, left_ms: u64, memory_bytes: u64) {
        if let Some(cell) = cell(left_ms) {
            self.add_to(cell, 1, memory_bytes);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (cell, (keys, bytes)) in other.cells.iter().enumerate().filter(|(_, (keys, _))| *keys > 0) {
            self.add_to(cell, *keys, *bytes);
        }
    }

    /// Every span, those of nothing included: 60 minutes, 24 hours, 90 days. The first hour is the sum of the minutes, the first day that of the
    /// hours.
    pub fn spans(&self) -> Vec<Span> {
        let at = |cell: usize| self.cells.get(cell).copied().unwrap_or_default();
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
        let minutes: Vec<_> = (0..MINUTES).map(at).collect();
        let first_hour = minutes.iter().copied().fold((0, 0), sum);
        let hours: Vec<_> = std::iter::once(first_hour).chain((MINUTES..MINUTES + HOURS - 1).map(at)).collect();
        let first_day = hours.iter().copied().fold((0, 0), sum);
        let days: Vec<_> = std::iter::once(first_day).chain((MINUTES + HOURS - 1..CELLS).map(at)).collect();
        let span = |unit, seconds: u64, cells: Vec<(u64, u64)>| {
            let spans = (0..).zip(cells);
            spans.map(move |(n, (keys, memory_bytes)): (u64, _)| Span { unit, from_seconds: n * seconds, keys, memory_bytes })
        };
        span("minute", 60, minutes).chain(span("hour", 3600, hours)).chain(span("day", 86_400, days)).collect()
    }

    fn add_to(&mut self, cell: usize, keys: u64, bytes: u64) {
        if self.cells.is_empty() {
            self.cells.resize(CELLS, (0, 0));
        }
        let (sum_keys, sum_bytes) = &mut self.cells[cell];
        *sum_keys += keys;
        *sum_bytes = sum_bytes.saturating_add(bytes);
    }
}

/// The span in which a key with so much left will be gone; the end of a span belongs to it.
fn cell(left_ms: u64) -> Option<usize> {
    let before = left_ms.saturating_sub(1);
    let whole = |unit: u64| usize::try_from(before / unit).unwrap_or(usize::MAX);
    match (whole(MINUTE_MS), whole(HOUR_MS), whole(DAY_MS)) {
        (minute @ 0..MINUTES, _, _) => Some(minute),
        (_, hour @ 1..HOURS, _) => Some(MINUTES + hour - 1),
        (_, _, day @ 1..DAYS) => Some(MINUTES + HOURS - 1 + day - 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_spans() {
        assert_eq!([cell(1), cell(60_000), cell(60_001), cell(HOUR_MS)], [Some(0), Some(0), Some(1), Some(59)]);
        assert_eq!([cell(HOUR_MS + 1), cell(DAY_MS), cell(DAY_MS + 1)], [Some(60), Some(82), Some(83)]);
        assert_eq!([cell(90 * DAY_MS), cell(90 * DAY_MS + 1), cell(u64::MAX)], [Some(171), None, None]);
        assert_eq!(CELLS, 172);
    }

    #[test]
    fn an_hour_holds_its_minutes_and_a_day_its_hours() {
        let mut timeline = Timeline::default();
        for left in [1, 60_000, HOUR_MS, HOUR_MS + 1, DAY_MS, DAY_MS + 1] {
            timeline.add(left, 10);
        }
        let spans = timeline.spans();
        assert_eq!(spans.len(), 174);
        let filled: Vec<_> =
            spans.iter().filter(|span| span.keys > 0).map(|s| (s.unit, s.from_seconds, s.keys, s.memory_bytes)).collect();
        let expected = [
            ("minute", 0, 2, 20),
            ("minute", 3540, 1, 10),
            ("hour", 0, 3, 30),
            ("hour", 3600, 1, 10),
            ("hour", 82_800, 1, 10),
            ("day", 0, 5, 50),
            ("day", 86_400, 1, 10),
        ];
        assert_eq!(filled, expected);
        let mut sum = timeline.clone();
        sum.merge(&timeline);
        sum.merge(&Timeline::default());
        assert_eq!(sum.spans()[0].keys, 4);
    }
}
