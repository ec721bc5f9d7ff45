//! The server whose loaded data is described: product and version.

use std::fmt;

use crate::rdb::{Dialect, Family};

/// Product and version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    /// Redis or Valkey.
    pub family: Family,
    /// Major, minor, patch.
    pub version: [u16; 3],
}

impl Server {
    /// Version `major.minor.patch` of Redis.
    pub const fn redis(major: u16, minor: u16, patch: u16) -> Self {
        Self { family: Family::Redis, version: [major, minor, patch] }
    }

    /// Version `major.minor.patch` of Valkey.
    pub const fn valkey(major: u16, minor: u16, patch: u16) -> Self {
        Self { family: Family::Valkey, version: [major, minor, patch] }
    }

    /// The server that an AUX version names; `None` where the text is no release (255.255.255, an odd minor above 2 as
    /// development builds have).
    pub fn release(family: Family, text: &str) -> Option<Self> {
        let mut parts = text.split(['.', '-']);
        let mut part = || parts.next().and_then(|p| p.parse::<u16>().ok());
        let version = [part()?, part()?, part().unwrap_or(0)];
        let [major, minor, _] = version;
        // Valkey releases odd minors too.
        let released = major < 100 && minor < 100 && (family == Family::Valkey || minor % 2 == 0);
        released.then_some(Self { family, version })
    }

    /// This server, or `least` where it is an older one of Redis.
    pub fn at_least(self, least: Self) -> Self {
        if self.family == Family::Redis && self.version < least.version { least } else { self }
    }

    /// The first server that wrote an RDB version.
    pub fn first_of(dialect: Dialect) -> Self {
        match (dialect.family, dialect.version) {
            (Family::Valkey, _) => Self::valkey(9, 0, 0),
            (Family::Redis, 0 | 1) => Self::redis(2, 2, 0),
            (Family::Redis, 2) => Self::redis(2, 4, 0),
            (Family::Redis, 3..=6) => Self::redis(2, 6, 0),
            (Family::Redis, 7) => Self::redis(3, 2, 0),
            (Family::Redis, 8) => Self::redis(4, 0, 0),
            (Family::Redis, 9) => Self::redis(5, 0, 0),
            (Family::Redis, 10) => Self::redis(7, 0, 0),
            (Family::Redis, 11) => Self::redis(7, 2, 0),
            (Family::Redis, 12) => Self::redis(7, 4, 0),
            (Family::Redis, 13) => Self::redis(8, 6, 0),
            (Family::Redis, 14) => Self::redis(8, 8, 0),
            (Family::Redis, 15) => Self::redis(8, 10, 0),
            (Family::Redis, _) => Self::redis(8, 12, 0),
        }
    }

    /// True for Redis from `major.minor` on, and for Valkey, which branched off after 7.2, where that is at most 7.2.
    pub fn is_redis_from(&self, major: u16, minor: u16) -> bool {
        match self.family {
            Family::Redis => self.version >= [major, minor, 0],
            Family::Valkey => [major, minor] <= [7, 2],
        }
    }

    /// True for Valkey from `major.minor` on.
    pub fn is_valkey_from(&self, major: u16, minor: u16) -> bool {
        self.family == Family::Valkey && self.version >= [major, minor, 0]
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = match self.family {
            Family::Redis => "Redis",
            Family::Valkey => "Valkey",
        };
        let [major, minor, patch] = self.version;
        write!(f, "{product} {major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_what_is_none() {
        assert_eq!(Server::release(Family::Redis, "7.0.15"), Some(Server::redis(7, 0, 15)));
        assert_eq!(Server::release(Family::Valkey, "8.1.0-rc1"), Some(Server::valkey(8, 1, 0)));
        for text in ["255.255.255", "8.9.240", "999", "", "seven"] {
            assert_eq!(Server::release(Family::Redis, text), None, "{text}");
        }
    }

    #[test]
    fn valkey_has_what_redis_had_before_it_branched_off() {
        assert!(Server::valkey(9, 1, 0).is_redis_from(7, 2));
        assert!(!Server::valkey(9, 1, 0).is_redis_from(7, 4));
        assert!(Server::redis(8, 2, 0).is_redis_from(7, 4));
    }
}
