//! The contracts file as TOML has it, before anything of it is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Mistake, mistake};
use super::pattern::distance;

/// Most mistakes of form that are looked for.
const MOST_MISTAKES: usize = 100;

/// Reads the form of a file. What is wrong is put among `mistakes` and left out, so that the rest can be checked too; `None` where nothing can
/// be told of the rest.
pub(super) fn read(text: &str, mistakes: &mut Vec<Mistake>) -> Option<RawFile> {
    let (mut table, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        mistakes.extend(faults.iter().map(|fault| of_error(text, fault)));
        return None;
    }
    for _ in 0..MOST_MISTAKES {
        let error = match RawFile::deserialize(toml::Deserializer::from(table.clone())) {
            Ok(file) => return Some(file),
            Err(error) => error,
        };
        mistakes.push(of_error(text, &error));
        let removed = error.span().is_some_and(|span| remove(table.get_mut(), &|place| *place == span));
        if !removed {
            return None;
        }
    }
    None
}

/// Takes out the first entry whose name or value stands at a place that `is_there` names.
fn remove(table: &mut DeTable<'_>, is_there: &dyn Fn(&std::ops::Range<usize>) -> bool) -> bool {
    let found = table.iter().find(|(key, value)| is_there(&key.span()) || is_there(&value.span())).map(|(key, _)| key.clone());
    match found {
        Some(key) => table.remove(&key).is_some(),
        None => table.iter_mut().any(|(_, value)| remove_in(value.get_mut(), is_there)),
    }
}

fn remove_in(value: &mut DeValue<'_>, is_there: &dyn Fn(&std::ops::Range<usize>) -> bool) -> bool {
    match value {
        DeValue::Table(table) => remove(table, is_there),
        DeValue::Array(array) => match array.iter().position(|element| is_there(&element.span())) {
            Some(at) => {
                *array = array.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, element)| element.clone()).collect();
                true
            }
            None => array.iter_mut().any(|element| remove_in(element.get_mut(), is_there)),
        },
        _ => false,
    }
}

fn of_error(text: &str, error: &toml::de::Error) -> Mistake {
    let message = error.message().trim_end();
    let near = nearest(message).map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    mistake(text, &error.span().unwrap_or(0..0), format!("{message}{near}"))
}

/// The name that was meant, where a message says that one is unknown and which are known.
fn nearest(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown field `")?.split('`').step_by(2);
    let unknown = names.next()?;
    let (away, near) = names.map(|known| (distance(unknown, known), known)).filter(|(_, known)| !known.is_empty()).min()?;
    (away <= 2 && away < near.len()).then_some(near)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) separator: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    pub(super) segments: BTreeMap<String, Spanned<OneOrMany>>,
    #[serde(default)]
    pub(super) limits: RawLimits,
    #[serde(default)]
    pub(super) class: Vec<RawClass>,
    pub(super) capacity: Option<RawCapacity>,
    pub(super) server: Option<RawServer>,
    #[serde(default)]
    pub(super) rules: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawServer {
    pub(super) version: Option<Spanned<String>>,
    pub(super) allocator: Option<Spanned<String>>,
    pub(super) config: Option<String>,
    pub(super) cluster: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a text, or a list of texts such as [\"a\", \"b\"]")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a size such as 512, \"10KB\" or \"1mb\"")]
pub(super) enum RawSize {
    Number(u64),
    Text(String),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub(super) key_bytes: Option<Spanned<RawSize>>,
    pub(super) string_bytes: Option<Spanned<RawSize>>,
    pub(super) member_bytes: Option<Spanned<RawSize>>,
    pub(super) elements: Option<u64>,
    pub(super) memory_bytes: Option<Spanned<RawSize>>,
    pub(super) pending: Option<u64>,
    pub(super) databases: Option<Spanned<Vec<u64>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClass {
    pub(super) name: Spanned<String>,
    pub(super) pattern: Spanned<String>,
    pub(super) owner: Option<String>,
    pub(super) source: Option<String>,
    pub(super) r#type: Option<Spanned<OneOrMany>>,
    pub(super) ttl: Option<Spanned<RawTtl>>,
    pub(super) version: Option<u64>,
    pub(super) rebuild: Option<bool>,
    pub(super) delete: Option<String>,
    pub(super) backup: Option<bool>,
    pub(super) budget: Option<Spanned<RawBudget>>,
    #[serde(default)]
    pub(super) limits: RawLimits,
    #[serde(default)]
    pub(super) rules: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write \"permanent\", or a table such as { min = \"120s\", max = \"150s\" }")]
pub(super) enum RawTtl {
    Word(String),
    Range(RawRange),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRange {
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBudget {
    pub(super) keys: Option<u64>,
    pub(super) memory_bytes: Option<Spanned<RawSize>>,
    pub(super) peak_factor: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCapacity {
    pub(super) maxmemory: Spanned<RawSize>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) rewrite_margin: Option<Spanned<f64>>,
    pub(super) fragmentation: Option<Spanned<f64>>,
}

impl OneOrMany {
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}
