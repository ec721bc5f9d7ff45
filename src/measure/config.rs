//! Configuration that decides how a loading server holds values.

use std::fmt;

use crate::rdb::KeyType;

/// Limits up to which a collection stays packed: elements, and bytes of the longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedLimits {
    /// Most elements.
    pub entries: u64,
    /// Longest element in bytes.
    pub value: u64,
}

/// Configuration that decides encodings at load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadConfig {
    /// `hash-max-listpack-entries` and `-value` (`ziplist`, `zipmap` before).
    pub hash: PackedLimits,
    /// `zset-max-listpack-entries` and `-value`.
    pub zset: PackedLimits,
    /// `set-max-listpack-entries` and `-value`; Redis 7.2 and later.
    pub set: PackedLimits,
    /// `list-max-ziplist-entries` and `-value`; before Redis 3.2.
    pub list: PackedLimits,
    /// `set-max-intset-entries`.
    pub intset_entries: u64,
    /// `list-max-listpack-size`: elements of a list node, or, negative, its bytes in steps: -1 is 4 KiB, -5 is 64 KiB.
    pub list_size: i64,
}

impl LoadConfig {
    /// What every version from 2.4 to 9.1 is compiled with (`config.c`; for Redis 2.2 the 64 entries of `redis.h`).
    pub const DEFAULT: Self = Self {
        hash: PackedLimits { entries: 512, value: 64 },
        zset: PackedLimits { entries: 128, value: 64 },
        set: PackedLimits { entries: 128, value: 64 },
        list: PackedLimits { entries: 512, value: 64 },
        intset_entries: 512,
        list_size: -2,
    };

    /// Most bytes of a list node, or without such a limit most elements.
    #[inline]
    pub fn list_node(&self) -> (Option<u64>, u64) {
        match self.list_size {
            0 => (None, 1),
            1.. => (None, self.list_size.unsigned_abs()),
            _ => (Some(4096 << (self.list_size.unsigned_abs().min(5) - 1)), u64::MAX),
        }
    }
}

/// A limit above which a collection is no longer packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Fields of a hash.
    HashEntries,
    /// Bytes of a field or value.
    HashValue,
    /// Members of a set of integers.
    IntsetEntries,
    /// Members of another set; Redis 7.2 and later.
    SetEntries,
    /// Bytes of a member of a set; likewise.
    SetValue,
    /// Members of a sorted set.
    ZsetEntries,
    /// Bytes of a member of a sorted set.
    ZsetValue,
}

impl Limit {
    /// By how much a limit is thought to be raised.
    pub const STEPS: [u64; 3] = [2, 4, Self::HIGHEST_STEP];

    pub(super) const HIGHEST_STEP: u64 = 8;

    /// Limits of collections of a type.
    pub fn of(key_type: KeyType) -> &'static [Self] {
        match key_type {
            KeyType::Hash => &[Self::HashEntries, Self::HashValue],
            KeyType::Set => &[Self::IntsetEntries, Self::SetEntries, Self::SetValue],
            KeyType::Zset => &[Self::ZsetEntries, Self::ZsetValue],
            _ => &[],
        }
    }

    /// Its directive in a `redis.conf`; before Redis 7.0 it spoke of ziplists.
    pub fn directive(self, listpacks: bool) -> &'static str {
        match (self, listpacks) {
            (Self::HashEntries, true) => "hash-max-listpack-entries",
            (Self::HashEntries, false) => "hash-max-ziplist-entries",
            (Self::HashValue, true) => "hash-max-listpack-value",
            (Self::HashValue, false) => "hash-max-ziplist-value",
            (Self::IntsetEntries, _) => "set-max-intset-entries",
            (Self::SetEntries, _) => "set-max-listpack-entries",
            (Self::SetValue, _) => "set-max-listpack-value",
            (Self::ZsetEntries, true) => "zset-max-listpack-entries",
            (Self::ZsetEntries, false) => "zset-max-ziplist-entries",
            (Self::ZsetValue, true) => "zset-max-listpack-value",
            (Self::ZsetValue, false) => "zset-max-ziplist-value",
        }
    }

    /// True where it is the longest element that counts, not their number.
    pub fn is_of_length(self) -> bool {
        matches!(self, Self::HashValue | Self::SetValue | Self::ZsetValue)
    }

    /// Its value.
    pub fn get(self, config: &LoadConfig) -> u64 {
        *self.place(&mut { *config })
    }

    /// `config` with this limit raised by the step of that index in [`Limit::STEPS`].
    pub fn raised(self, config: &LoadConfig, step: usize) -> LoadConfig {
        let mut raised = *config;
        let limit = self.place(&mut raised);
        *limit = limit.saturating_mul(Self::STEPS.get(step).copied().unwrap_or(1));
        raised
    }

    fn place(self, config: &mut LoadConfig) -> &mut u64 {
        match self {
            Self::HashEntries => &mut config.hash.entries,
            Self::HashValue => &mut config.hash.value,
            Self::IntsetEntries => &mut config.intset_entries,
            Self::SetEntries => &mut config.set.entries,
            Self::SetValue => &mut config.set.value,
            Self::ZsetEntries => &mut config.zset.entries,
            Self::ZsetValue => &mut config.zset.value,
        }
    }
}

/// What a `redis.conf` says of encodings, and whether the server is a cluster's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerConfig {
    /// Limits; those of the defaults where the file has none.
    pub load: LoadConfig,
    /// `cluster-enabled`, where the file says.
    pub cluster: Option<bool>,
}

/// A line of a `redis.conf` that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMistake {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ConfigMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl ServerConfig {
    /// Reads a `redis.conf`; directives that decide nothing here are passed over, and of one that is given twice the last counts, as for
    /// the server.
    ///
    /// # Errors
    /// Every line whose value the server would refuse.
    pub fn parse(text: &str) -> Result<Self, Vec<ConfigMistake>> {
        let mut config = Self { load: LoadConfig::DEFAULT, cluster: None };
        let mut mistakes = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
            let values: Vec<&str> = words.collect();
            if let Err(message) = config.set(&name.to_ascii_lowercase(), &values) {
                mistakes.push(ConfigMistake { line, message });
            }
        }
        if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
    }

    fn set(&mut self, name: &str, values: &[&str]) -> Result<(), String> {
        let load = &mut self.load;
        let number = match name {
            "hash-max-listpack-entries" | "hash-max-ziplist-entries" | "hash-max-zipmap-entries" => &mut load.hash.entries,
            "hash-max-listpack-value" | "hash-max-ziplist-value" | "hash-max-zipmap-value" => &mut load.hash.value,
            "zset-max-listpack-entries" | "zset-max-ziplist-entries" => &mut load.zset.entries,
            "zset-max-listpack-value" | "zset-max-ziplist-value" => &mut load.zset.value,
            "set-max-listpack-entries" => &mut load.set.entries,
            "set-max-listpack-value" => &mut load.set.value,
            "set-max-intset-entries" => &mut load.intset_entries,
            "list-max-ziplist-entries" => &mut load.list.entries,
            "list-max-ziplist-value" => &mut load.list.value,
            "list-max-listpack-size" | "list-max-ziplist-size" => {
                let size = one(name, values)?;
                load.list_size = size
                    .parse()
                    .ok()
                    .filter(|size| (-5..=i64::from(i32::MAX)).contains(size))
                    .ok_or_else(|| format!("{name}: {size:?} is neither a number of elements nor -1 to -5"))?;
                return Ok(());
            }
            "cluster-enabled" => {
                self.cluster = match one(name, values)?.to_ascii_lowercase().as_str() {
                    "yes" => Some(true),
                    "no" => Some(false),
                    other => return Err(format!("{name}: {other:?} is neither yes nor no")),
                };
                return Ok(());
            }
            _ => return Ok(()),
        };
        let value = one(name, values)?;
        // The server reads some of these as sizes.
        *number = crate::contract::size(value).map_err(|why| format!("{name}: {why}"))?;
        Ok(())
    }
}

fn one<'a>(name: &str, values: &[&'a str]) -> Result<&'a str, String> {
    match values {
        [value] => Ok(value.trim_matches(['"', '\''])),
        _ => Err(format!("{name} takes one value, not {}", values.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_redis_conf_says() {
        let text = "# hash-max-listpack-entries 1\nport 6379\nhash-max-ziplist-entries 128\nHASH-MAX-LISTPACK-VALUE 1kb\n\
            list-max-listpack-size -3\ncluster-enabled yes\nsave 900 1 300 10\nzset-max-listpack-entries 7\nzset-max-ziplist-entries 8\n";
        let config = ServerConfig::parse(text).expect("a configuration");
        assert_eq!(config.load.hash, PackedLimits { entries: 128, value: 1024 });
        assert_eq!(config.load.zset, PackedLimits { entries: 8, value: 64 });
        assert_eq!(config.load.list_node(), (Some(16_384), u64::MAX));
        assert_eq!(config.cluster, Some(true));
        assert_eq!(config.load.set, LoadConfig::DEFAULT.set);
    }

    #[test]
    fn mistakes_name_their_line() {
        let text =
            "hash-max-listpack-entries many\n\nlist-max-listpack-size -6\ncluster-enabled maybe\nset-max-intset-entries 1 2\n";
        let mistakes = ServerConfig::parse(text).expect_err("mistakes");
        assert_eq!(mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
