//! Findings: what keys, classes and contracts break of what is agreed.

mod rule;

pub use rule::{Kind, Rule, Severities, Severity};
