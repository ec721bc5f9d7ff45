//! What the sampled values of a class come to.

use std::collections::{BTreeMap, BTreeSet};

use super::{Format, OTHER_VERSION, Verdict};
use crate::census::ClassStats;
use crate::rdb::KeyType;

/// Distinct schema versions of a class above which they are none, but data.
const MOST_VERSIONS: usize = 16;

/// The sampled values of one class, format and schema version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRow {
    /// Class.
    pub class: String,
    /// Strings in the class, sampled or not.
    pub strings: u64,
    /// Strings that were sampled.
    pub sampled_of_class: u64,
    /// Format.
    pub format: Format,
    /// Schema version, where the values carry one.
    pub schema_version: Option<String>,
    /// Sampled values.
    pub sampled: u64,
    /// Of these, values that begin as their format does and are not well-formed.
    pub not_parsed: u64,
    /// Memory of their keys.
    pub memory_bytes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were compressed.
    pub plain_bytes: u64,
    /// What these took then.
    pub compressed_bytes: u64,
}

impl ValueRow {
    /// What a figure of these values comes to over all strings of the class.
    pub fn of_all(&self, sampled: u64) -> u64 {
        let all = u128::from(sampled) * u128::from(self.strings) / u128::from(self.sampled_of_class.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

/// The rows of a class, those of most values first.
pub fn rows(class: &str, stats: &ClassStats) -> Vec<ValueRow> {
    let verdicts = stats.values.as_ref().map_or_else(Vec::new, |sample| sample.verdicts());
    let distinct: BTreeSet<&str> = verdicts.iter().filter_map(|(verdict, _)| verdict.schema_version.as_deref()).collect();
    let are_versions = distinct.len() <= MOST_VERSIONS;
    let strings = stats.types.iter().filter(|(key_type, _)| *key_type == KeyType::String).map(|(_, keys)| keys).sum();
    let fresh = |format: Format, schema_version: Option<&str>| ValueRow {
        class: class.into(),
        strings,
        sampled_of_class: verdicts.len() as u64,
        format,
        schema_version: schema_version.map(Into::into),
        sampled: 0,
        not_parsed: 0,
        memory_bytes: 0,
        bytes: 0,
        plain_bytes: 0,
        compressed_bytes: 0,
    };
    let mut rows = BTreeMap::<(Format, Option<&str>), ValueRow>::new();
    for (verdict, memory_bytes) in verdicts.iter().copied() {
        let Verdict { format, is_parsed, schema_version, bytes, plain_bytes, compressed_bytes } = verdict;
        let version = schema_version.as_deref().map(|version| if are_versions { version } else { OTHER_VERSION });
        let row = rows.entry((*format, version)).or_insert_with(|| fresh(*format, version));
        row.sampled += 1;
        row.not_parsed += u64::from(!is_parsed);
        row.memory_bytes = row.memory_bytes.saturating_add(memory_bytes);
        row.bytes = row.bytes.saturating_add(*bytes);
        row.plain_bytes += plain_bytes;
        row.compressed_bytes += compressed_bytes;
    }
    let mut rows: Vec<ValueRow> = rows.into_values().collect();
    // The sort is stable: by format and version among equals.
    rows.sort_by_key(|row| std::cmp::Reverse(row.sampled));
    rows
}
