//! Buckets of hash tables: chained ones that double (Redis, Valkey 8.0), and those of Valkey 8.1 with seven entries a bucket.

/// Buckets that a table never has fewer of.
const FEWEST: u64 = 4;

/// Buckets of a table that was sized for `n` entries before they came.
#[inline]
pub(super) fn presized(n: u64) -> u64 {
    n.max(FEWEST).checked_next_power_of_two().unwrap_or(n)
}

/// A chained table while it is filled: it doubles when full and moves one bucket with each further insertion; until all are moved, the old
/// buckets count too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Table {
    buckets: u64,
    next: u64,
    used: u64,
    to_move: u64,
}

impl Table {
    /// Asks for room for `n` entries, as loaders do: ignored while buckets are being moved.
    pub fn expand(&mut self, n: u64) {
        let buckets = presized(n);
        if self.next != 0 || self.used > n || buckets == self.buckets {
            return;
        }
        if self.used == 0 {
            self.buckets = buckets;
        } else {
            self.begin_move(buckets);
        }
    }

    /// Inserts `n` entries.
    pub fn insert(&mut self, mut n: u64) {
        while n > 0 {
            let step = if self.next != 0 {
                let step = n.min(self.to_move);
                self.to_move -= step;
                if self.to_move == 0 {
                    self.buckets = self.next;
                    self.next = 0;
                }
                step
            } else if self.used >= self.buckets {
                if self.buckets == 0 {
                    self.buckets = FEWEST;
                    0
                } else {
                    self.begin_move(self.buckets.saturating_mul(2));
                    1
                }
            } else {
                n.min(self.buckets - self.used)
            };
            self.used = self.used.saturating_add(step);
            n -= step;
        }
    }

    /// Buckets of both halves.
    pub fn buckets(&self) -> u64 {
        self.buckets.saturating_add(self.next)
    }

    fn begin_move(&mut self, next: u64) {
        self.next = next;
        // Only buckets that hold anything take a step: of as many entries as buckets, about 1 - 1/e of them are expected to.
        let (buckets, used) = (self.buckets as f64, self.used as f64);
        self.to_move = (buckets * (1.0 - (1.0 - 1.0 / buckets).powf(used))).round().max(1.0) as u64;
    }
}

/// Buckets that a loader gets by inserting one by one, without a word on how many will come.
pub(super) fn grown(n: u64) -> u64 {
    let mut table = Table::default();
    table.insert(n);
    table.buckets().max(FEWEST)
}

/// Bytes of the entries of a table whose buckets hold the first key themselves: only further ones, sixteen bytes each, have any. How many
/// are expected.
pub(super) fn chained(n: u64) -> u64 {
    let buckets = presized(n) as f64;
    let used = buckets * (1.0 - (-(n as f64) / buckets).exp());
    ((n as f64 - used).max(0.0).round() as u64).saturating_mul(16)
}

/// Bytes of one bucket of Valkey's table.
const VALKEY_BUCKET: u64 = 64;

/// Entries that it holds.
const VALKEY_ENTRIES: u64 = 7;

/// Expected bytes of the buckets of a table of Valkey 8.1 and later that was sized for `n` entries.
pub(super) fn valkey_buckets(n: u64) -> u64 {
    ValkeyTable { buckets: valkey_room(n), used: n, ..ValkeyTable::default() }.bytes()
}

/// Buckets with room for `n` entries: filled to some 90 % they are made twice as many.
fn valkey_room(n: u64) -> u64 {
    n.saturating_mul(5).div_ceil(32).max(1).checked_next_power_of_two().unwrap_or(n)
}

/// A table of Valkey 8.1 and later while it is filled: it doubles when full and moves one bucket with each further insertion, empty or not;
/// until all are moved, the old buckets count too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValkeyTable {
    buckets: u64,
    used: u64,
    next: u64,
    /// Entries that were there when the move began, and buckets that were moved since.
    before: u64,
    moved: u64,
}

impl ValkeyTable {
    /// Asks for room for `n` entries, as loaders do: ignored while buckets are being moved.
    pub fn expand(&mut self, n: u64) {
        if self.next == 0 && self.used <= n {
            self.resize(n);
        }
    }

    /// Inserts `n` entries.
    pub fn insert(&mut self, n: u64) {
        for _ in 0..n {
            if self.next != 0 {
                self.moved += 1;
                if self.moved == self.buckets {
                    (self.buckets, self.next) = (self.next, 0);
                }
            }
            if self.next == 0 && self.used >= self.buckets.saturating_mul(VALKEY_ENTRIES) {
                self.resize(self.used.saturating_add(1));
            }
            self.used = self.used.saturating_add(1);
        }
    }

    fn resize(&mut self, n: u64) {
        let buckets = valkey_room(n);
        if self.used == 0 {
            self.buckets = buckets;
        } else if buckets != self.buckets {
            (self.next, self.before, self.moved) = (buckets, self.used, 0);
        }
    }

    /// Expected bytes of both halves. A bucket of more than seven entries gets a chain of further ones, so that the number depends on
    /// the hash seed.
    pub fn bytes(&self) -> u64 {
        let [buckets, used, next, before, moved] =
            [self.buckets, self.used, self.next, self.before, self.moved].map(|count| count as f64);
        let chained = if self.next == 0 {
            chained_buckets(buckets, used / buckets)
        } else {
            // New buckets hold what came since; those whose old one was moved hold its entries too.
            let (share, came) = (moved / buckets, (used - before) / next);
            let filled = chained_buckets(next * share, before / next + came) + chained_buckets(next * (1.0 - share), came);
            chained_buckets(buckets - moved, before / buckets) + filled
        };
        // Where less than one is expected, none is what is found most of the time.
        let chained = if chained < 1.0 { 0 } else { chained.round() as u64 };
        self.buckets.saturating_add(self.next).saturating_add(chained).saturating_mul(VALKEY_BUCKET)
    }
}

/// Expected chained buckets behind `buckets` that hold `load` entries each in the mean: all but the last of a chain hold six and a link.
fn chained_buckets(buckets: f64, load: f64) -> f64 {
    // Entries of a bucket follow a Poisson distribution.
    let mut probability = (-load).exp();
    let mut chained = 0.0;
    for entries in 1..40u32 {
        probability *= load / f64::from(entries);
        if entries > 7 {
            chained += probability * f64::from((entries - 7).div_ceil(6));
        }
    }
    buckets * chained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_were_sized_before() {
        assert_eq!([1, 4, 5, 512, 513].map(presized), [4, 4, 8, 512, 1024]);
    }

    #[test]
    fn tables_that_grew() {
        // Redis 4.0.14 and 7.4.1 after loading: elements, buckets.
        for (n, buckets) in [(1, 4), (4, 4), (10, 24), (600, 1536), (3000, 6144), (1000, 1024), (2000, 2048)] {
            assert_eq!(grown(n), buckets, "{n}");
        }
    }

    #[test]
    fn a_table_sized_for_all_but_the_first_entry() {
        // Redis 7.0.15: hashes whose first field is too long for a listpack.
        for (n, buckets) in [(1, 4), (5, 12), (10, 16), (65, 192), (64, 64), (513, 1536)] {
            let mut table = Table::default();
            table.expand(0);
            table.insert(1);
            if n - 1 > 4 {
                table.expand(n - 1);
            }
            table.insert(n - 1);
            assert_eq!(table.buckets(), buckets, "{n}");
        }
    }

    #[test]
    fn chains_of_valkey() {
        // Measured on 9.1.2: 11 to 15 chained buckets for 600 entries in 128, 110 to 134 for 3,000 in 512.
        let children = |n: u64, buckets: u64| valkey_buckets(n) / 64 - buckets;
        assert!((11..=15).contains(&children(600, 128)));
        assert!((110..=134).contains(&children(3000, 512)));
        assert_eq!(valkey_buckets(1), 64);
    }

    #[test]
    fn tables_of_valkey_that_grew() {
        // Valkey 9.1.2: hashes of so many fields, of which one, at the place named, is too long for a listpack; buckets of both halves, as
        // DEBUG HTSTATS-KEY answers.
        for (n, at, buckets, next) in [
            (7, 0, 1, 0),
            (7, 6, 1, 0),
            (8, 0, 2, 0),
            (8, 4, 1, 2),
            (8, 7, 2, 0),
            (15, 7, 2, 4),
            (16, 8, 2, 4),
            (29, 14, 4, 8),
            (29, 28, 8, 0),
            (100, 50, 16, 0),
            (232, 0, 64, 0),
            (232, 116, 32, 64),
            (512, 256, 64, 128),
            (512, 511, 128, 0),
        ] {
            let mut table = ValkeyTable::default();
            table.expand(at);
            table.insert(at + 1);
            table.expand(n - at - 1);
            table.insert(n - at - 1);
            assert_eq!((table.buckets, table.next), (buckets, next), "{n} fields, the long one at {at}");
        }
    }
}
