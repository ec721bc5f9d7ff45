//! The server whose loaded data is described: product and version.

use std::fmt;
use std::str::FromStr;

use crate::rdb::{Dialect, Family};

/// Patch level of the newest release of a line, whichever that is.
const NEWEST_PATCH: u16 = u16::MAX;

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

    /// The newest release of the line `major.minor`.
    pub const fn line(family: Family, major: u16, minor: u16) -> Self {
        Self { family, version: [major, minor, NEWEST_PATCH] }
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
        let (family, major, minor) = match (dialect.family, dialect.version) {
            (Family::Valkey, _) => (Family::Valkey, 9, 0),
            (Family::Redis, 0 | 1) => (Family::Redis, 2, 2),
            (Family::Redis, 2) => (Family::Redis, 2, 4),
            (Family::Redis, 3..=6) => (Family::Redis, 2, 6),
            (Family::Redis, 7) => (Family::Redis, 3, 2),
            (Family::Redis, 8) => (Family::Redis, 4, 0),
            (Family::Redis, 9) => (Family::Redis, 5, 0),
            (Family::Redis, 10) => (Family::Redis, 7, 0),
            (Family::Redis, 11) => (Family::Redis, 7, 2),
            (Family::Redis, 12) => (Family::Redis, 7, 4),
            (Family::Redis, 13) => (Family::Redis, 8, 6),
            (Family::Redis, 14) => (Family::Redis, 8, 8),
            (Family::Redis, 15) => (Family::Redis, 8, 10),
            (Family::Redis, _) => (Family::Redis, 8, 12),
        };
        Self::line(family, major, minor)
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
        match self.version {
            [major, minor, NEWEST_PATCH] => write!(f, "{product} {major}.{minor}"),
            [major, minor, patch] => write!(f, "{product} {major}.{minor}.{patch}"),
        }
    }
}

impl FromStr for Server {
    type Err = String;

    /// Reads `8.2`, `7.0.15` or `valkey-9.1`; without a patch level it is the newest release of the line.
    fn from_str(text: &str) -> Result<Self, String> {
        let (family, version) = match text.split_once('-') {
            Some(("valkey", version)) => (Family::Valkey, version),
            Some(("redis", version)) => (Family::Redis, version),
            _ => (Family::Redis, text),
        };
        let numbers: Option<Vec<u16>> = version.split('.').map(|part| part.parse().ok()).collect();
        let server = match numbers.as_deref() {
            Some([major, minor]) => Some(Self::line(family, *major, *minor)),
            Some([major, minor, patch]) => Some(Self { family, version: [*major, *minor, *patch] }),
            _ => None,
        };
        // Valkey begins with 7.2.
        server
            .filter(|server| (family == Family::Redis) || server.version >= [7, 2, 0])
            .filter(|server| server.version[0] < 100)
            .ok_or_else(|| format!("{text:?} is no server version: write it as 8.2, 7.0.15 or valkey-9.1"))
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
    fn versions_as_they_are_given() {
        assert_eq!("7.0.15".parse(), Ok(Server::redis(7, 0, 15)));
        assert_eq!("valkey-9.1".parse(), Ok(Server::line(Family::Valkey, 9, 1)));
        assert_eq!("redis-8.2".parse::<Server>().map(|server| server.to_string()), Ok("Redis 8.2".into()));
        for text in ["8", "", "eight", "valkey-6.2", "keydb-6.3", "255.255.255"] {
            assert!(text.parse::<Server>().is_err(), "{text}");
        }
    }

    #[test]
    fn valkey_has_what_redis_had_before_it_branched_off() {
        assert!(Server::valkey(9, 1, 0).is_redis_from(7, 2));
        assert!(!Server::valkey(9, 1, 0).is_redis_from(7, 4));
        assert!(Server::redis(8, 2, 0).is_redis_from(7, 4));
    }
}
