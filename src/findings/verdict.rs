//! Findings as they are shown, and held against those that were accepted before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Finding, Rule, Severity};
use crate::key_text;
use crate::privacy::Names;

/// Version of the baseline file.
const BASELINE_VERSION: u32 = 1;

/// Keys by which a finding may grow before it is new again.
const GROWTH_KEYS: u64 = 10;

/// A finding in text that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Id of the rule.
    pub rule: &'static str,
    /// What the rule is about.
    pub kind: &'static str,
    /// How grave it is.
    #[serde(serialize_with = "name_of")]
    pub severity: Severity,
    /// Whether it was accepted before.
    pub status: Status,
    /// Class.
    pub class: String,
    /// Owner of the class.
    pub owner: Option<String>,
    /// Where in the class; empty where there is nothing to name.
    pub place: String,
    /// Keys that break the rule.
    pub keys: u64,
    /// Their memory.
    pub memory_bytes: u64,
    /// Some of them, as key text.
    pub examples: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: &'static str,
    /// Line of the contracts file that names the class.
    #[serde(skip)]
    pub line: Option<usize>,
}

fn name_of<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}

/// Whether a finding was accepted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was not, or has grown since.
    New,
    /// It is in the baseline.
    Known,
}

impl Status {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Known => "known",
        }
    }
}

/// What tells a finding from the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id {
    /// Id of the rule.
    pub rule: String,
    /// Class.
    pub class: String,
    /// Where in the class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// An accepted finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Which.
    #[serde(flatten)]
    pub id: Id,
    /// Keys that broke the rule.
    pub keys: u64,
}

#[derive(Serialize, Deserialize)]
struct BaselineFile {
    rdbscope_baseline: u32,
    findings: Vec<Entry>,
}

/// Findings that were accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline(BTreeMap<Id, u64>);

/// Findings with their status, and what is there no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The findings, the gravest first.
    pub findings: Vec<Shown>,
    /// Entries of the baseline that no finding has.
    pub gone: Vec<Entry>,
    /// There was a baseline.
    pub has_baseline: bool,
}

impl Shown {
    fn new(finding: Finding, names: &Names) -> Self {
        let Finding { rule, severity, class, owner, line, place, keys, memory_bytes, examples, message, .. } = finding;
        let text = |text: &str| names.of_text(text).into_owned();
        Self {
            rule: rule.id(),
            kind: rule.kind().name(),
            severity,
            status: Status::New,
            class: text(&class),
            owner,
            place: text(&place.text()),
            keys,
            memory_bytes,
            examples: examples.iter().map(|key| key_text::escape(&names.of(key)).into_owned()).collect(),
            message: text(&message),
            fix: rule.fix(),
            line,
        }
    }

    /// What tells it from the others.
    pub fn id(&self) -> Id {
        Id { rule: self.rule.into(), class: self.class.clone(), place: self.place.clone() }
    }
}

impl Verdict {
    /// Findings with names as `names` says, held against a baseline.
    pub fn new(findings: Vec<Finding>, names: &Names, baseline: Option<&Baseline>) -> Self {
        let mut findings: Vec<Shown> = findings.into_iter().map(|finding| Shown::new(finding, names)).collect();
        let now = Baseline::of(&findings);
        let mut gone = Vec::new();
        if let Some(Baseline(accepted)) = baseline {
            for finding in &mut findings {
                let id = finding.id();
                let (keys, before) = (now.0.get(&id), accepted.get(&id));
                if keys.zip(before).is_some_and(|(keys, before)| !has_grown(*keys, *before)) {
                    finding.status = Status::Known;
                }
            }
            gone = accepted
                .iter()
                .filter(|(id, _)| !now.0.contains_key(*id))
                .map(|(id, keys)| Entry { id: id.clone(), keys: *keys })
                .collect();
        }
        Self { findings, gone, has_baseline: baseline.is_some() }
    }

    /// True where a new finding is at least as grave.
    pub fn is_broken(&self, fail_on: Severity) -> bool {
        self.findings.iter().any(|finding| finding.status == Status::New && finding.severity >= fail_on)
    }
}

/// By more than a tenth and by more than [`GROWTH_KEYS`].
fn has_grown(keys: u64, before: u64) -> bool {
    let more = keys.saturating_sub(before);
    more > GROWTH_KEYS && u128::from(more) * 10 > u128::from(before)
}

impl Baseline {
    /// Accepts all of these.
    pub fn of(findings: &[Shown]) -> Self {
        let mut entries: BTreeMap<Id, u64> = BTreeMap::new();
        for finding in findings {
            // Classes may have the same name once it is masked.
            let keys = entries.entry(finding.id()).or_default();
            *keys = keys.saturating_add(finding.keys);
        }
        Self(entries)
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: BaselineFile =
            serde_json::from_str(text).map_err(|error| format!("no baseline: {error}; write one with --write-baseline"))?;
        if file.rdbscope_baseline != BASELINE_VERSION {
            return Err(format!("a baseline of version {}, and this program reads {BASELINE_VERSION}", file.rdbscope_baseline));
        }
        if let Some(entry) = file.findings.iter().find(|entry| entry.id.rule.parse::<Rule>().is_err()) {
            return Err(format!("no rule '{}': write the baseline again with --write-baseline", entry.id.rule));
        }
        Ok(Self(file.findings.into_iter().map(|entry| (entry.id, entry.keys)).collect()))
    }

    /// The baseline file: JSON, an entry a line, so that changes are easy to review.
    pub fn to_json(&self) -> String {
        let lines: Vec<String> = self
            .0
            .iter()
            .map(|(id, keys)| {
                let entry = Entry { id: id.clone(), keys: *keys };
                format!("    {}", serde_json::to_string(&entry).unwrap_or_default())
            })
            .collect();
        format!("{{\n  \"rdbscope_baseline\": {BASELINE_VERSION},\n  \"findings\": [\n{}\n  ]\n}}\n", lines.join(",\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grown_by_more_than_a_tenth_and_by_more_than_ten() {
        for (before, keys, grown) in [
            (5, 15, false),
            (5, 16, true),
            (0, 11, true),
            (100, 110, false),
            (100, 111, true),
            (1000, 1100, false),
            (1000, 1101, true),
            (9, 2, false),
        ] {
            assert_eq!(has_grown(keys, before), grown, "from {before} to {keys}");
        }
        assert!(!has_grown(u64::MAX, u64::MAX) && has_grown(u64::MAX, 0));
    }

    #[test]
    fn a_baseline_file_and_back() {
        let id = |rule: &str, place: &str| Id { rule: rule.into(), class: "a \"b\"".into(), place: place.into() };
        let baseline = Baseline(BTreeMap::from([(id("ttl-lost", ""), 3), (id("db-unexpected", "db 3"), 1)]));
        let text = baseline.to_json();
        assert_eq!(Baseline::parse(&text), Ok(baseline));
        assert!(text.contains("\n    {\"rule\":\"ttl-lost\",\"class\":\"a \\\"b\\\"\",\"keys\":3}\n"), "{text}");
        assert_eq!(Baseline::parse(&Baseline::default().to_json()), Ok(Baseline::default()));
        assert!(Baseline::parse("{}").is_err_and(|why| why.contains("rdbscope_baseline")));
        assert!(Baseline::parse(&text.replace("ttl-lost", "ttl-gone")).is_err_and(|why| why.contains("ttl-gone")));
        assert!(Baseline::parse(&text.replace(": 1", ": 2")).is_err_and(|why| why.contains("version 2")));
    }
}
