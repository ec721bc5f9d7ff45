//! Permanent, volatile, expired: an expiry judged against the snapshot time, never against the wall clock.

/// The moment that a dump describes, in Unix milliseconds, and where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// Where the moment is from.
    pub source: SnapshotSource,
}

/// Where a snapshot time is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotSource {
    /// The AUX field `ctime`: whole seconds, so the true moment is up to 999 ms later.
    Ctime,
    /// The file's modification time, where the dump has no `ctime`.
    Mtime,
    /// Given by the user.
    AsOf,
}

impl SnapshotSource {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ctime => "ctime",
            Self::Mtime => "mtime",
            Self::AsOf => "as-of",
        }
    }
}

/// State of a key at the snapshot time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// No expiry.
    Permanent,
    /// An expiry still to come.
    Volatile {
        /// Milliseconds left, at least 1; `None` without a snapshot time.
        left_ms: Option<u64>,
    },
    /// An expiry at or before the snapshot time: still in the file, dropped at load.
    Expired {
        /// Milliseconds since.
        since_ms: u64,
    },
}

impl Lifetime {
    /// Judges an expiry.
    #[inline]
    pub fn of(expires_at_ms: Option<i64>, snapshot: Option<Snapshot>) -> Self {
        let Some(expiry) = expires_at_ms else { return Self::Permanent };
        let Some(snapshot) = snapshot else { return Self::Volatile { left_ms: None } };
        if expiry > snapshot.at_ms {
            Self::Volatile { left_ms: Some(expiry.abs_diff(snapshot.at_ms)) }
        } else {
            Self::Expired { since_ms: snapshot.at_ms.abs_diff(expiry) }
        }
    }

    /// True for a key that a server drops while it loads.
    #[inline]
    pub fn is_expired(self) -> bool {
        matches!(self, Self::Expired { .. })
    }

    /// Seconds left: floored, 0 in the last second, negative when expired; `None` without an expiry or a snapshot time.
    pub fn ttl_seconds(self) -> Option<i64> {
        match self {
            Self::Permanent | Self::Volatile { left_ms: None } => None,
            Self::Volatile { left_ms: Some(left) } => Some((left / 1000) as i64),
            Self::Expired { since_ms } => Some(-(since_ms.div_ceil(1000).max(1) as i64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges() {
        let snapshot = Some(Snapshot { at_ms: 10_000, source: SnapshotSource::AsOf });
        let ttl = |expiry| Lifetime::of(Some(expiry), snapshot).ttl_seconds();
        assert_eq!([ttl(10_001), ttl(10_999), ttl(11_000), ttl(12_999)], [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!([ttl(10_000), ttl(9_999), ttl(9_000), ttl(8_999)], [Some(-1), Some(-1), Some(-1), Some(-2)]);
        assert_eq!(Lifetime::of(None, snapshot), Lifetime::Permanent);
        // The whole range of the format, without overflow.
        assert!(ttl(i64::MIN).is_some_and(|ttl| ttl < 0));
        assert!(
            Lifetime::of(Some(i64::MAX), Some(Snapshot { at_ms: i64::MIN, source: SnapshotSource::AsOf })).ttl_seconds()
                > Some(0)
        );
    }
}
