//! Findings for machines: JSON, SARIF 2.1.0 for code hosts, JUnit XML for build servers.

use std::fmt::Write as _;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::findings::{Entry, Id, Rule, Severity, Status, Verdict};

/// All of a verdict as JSON.
pub fn findings_json(verdict: &Verdict) -> Value {
    json!({ "findings": verdict.findings, "gone": verdict.gone })
}

/// A log of SARIF 2.1.0 with one run; findings point at the lines of `contracts`, the name of the contracts file.
pub fn sarif(verdict: &Verdict, contracts: Option<&str>) -> Value {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id(),
                "shortDescription": { "text": rule.title() },
                "help": { "text": rule.fix() },
                "defaultConfiguration": { "level": rule.severity().name() },
                "properties": { "tags": [rule.kind().name()] },
            })
        })
        .collect();
    let location = |class: &str, line: Option<usize>| {
        let mut location = json!({ "logicalLocations": [{ "fullyQualifiedName": class, "kind": "class" }] });
        if let Some(file) = contracts {
            location["physicalLocation"] = json!({
                "artifactLocation": { "uri": uri(file) },
                "region": { "startLine": line.unwrap_or(1) },
            });
        }
        location
    };
    let index = |id: &str| Rule::ALL.iter().position(|rule| rule.id() == id);
    let fingerprint = |id: &Id| format!("{:016x}", xxh3_64(format!("{}\n{}\n{}", id.rule, id.class, id.place).as_bytes()));
    let found = verdict.findings.iter().map(|finding| {
        let mut result = json!({
            "ruleId": finding.rule,
            "ruleIndex": index(finding.rule),
            "level": finding.severity.name(),
            "message": { "text": format!("{}: {}", finding.class, finding.message) },
            "locations": [location(&finding.class, finding.line)],
            "partialFingerprints": { "rdbscopeFinding/v1": fingerprint(&finding.id()) },
            "properties": {
                "class": finding.class,
                "owner": finding.owner,
                "place": finding.place,
                "keys": finding.keys,
                "memoryBytes": finding.memory_bytes,
                "examples": finding.examples,
            },
        });
        if verdict.has_baseline {
            result["baselineState"] = if finding.status == Status::Known { "unchanged" } else { "new" }.into();
        }
        result
    });
    let gone = verdict.gone.iter().map(|Entry { id, keys }| {
        json!({
            "ruleId": id.rule,
            "ruleIndex": index(&id.rule),
            "level": "none",
            "message": { "text": format!("{}: gone; it had {keys} keys", id.class) },
            "locations": [location(&id.class, None)],
            "partialFingerprints": { "rdbscopeFinding/v1": fingerprint(id) },
            "baselineState": "absent",
        })
    });
    let results: Vec<Value> = found.chain(gone).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "rdbscope", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A name as a relative URI.
fn uri(name: &str) -> String {
    name.bytes().fold(String::new(), |mut uri, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
        uri
    })
}

/// A test suite in which each rule is a test: new findings from `fail_on` on fail it, others stand in its output.
pub fn junit(verdict: &Verdict, fail_on: Option<Severity>) -> String {
    let mut cases = String::new();
    let mut failures = 0;
    for rule in Rule::ALL {
        let of_rule: Vec<_> = verdict.findings.iter().filter(|finding| finding.rule == rule.id()).collect();
        let name = format!("{}.{}", rule.kind().name(), rule.id());
        let line = |finding: &&&crate::findings::Shown| {
            let place = if finding.place.is_empty() { String::new() } else { format!(" ({})", finding.place) };
            let examples: String = finding.examples.iter().map(|key| format!("\n  {key}")).collect();
            format!("{}: {}{place}: {}{examples}\n", finding.severity, finding.class, finding.message)
        };
        let fails = |finding: &&&crate::findings::Shown| {
            finding.status == Status::New && fail_on.is_some_and(|fail_on| finding.severity >= fail_on)
        };
        let failed: Vec<_> = of_rule.iter().filter(fails).collect();
        let others: String = of_rule.iter().filter(|finding| !fails(finding)).map(|finding| line(&finding)).collect();
        let _ = write!(cases, "    <testcase classname=\"rdbscope.{}\" name=\"{}\"", rule.kind().name(), xml(&name));
        if of_rule.is_empty() {
            cases.push_str("/>\n");
            continue;
        }
        cases.push_str(">\n");
        if !failed.is_empty() {
            failures += 1;
            let text: String = failed.iter().map(line).collect();
            let what = format!("{} in {} classes: {}", rule.title(), failed.len(), rule.fix());
            let _ = writeln!(cases, "      <failure type=\"{}\" message=\"{}\">{}</failure>", rule.id(), xml(&what), xml(&text));
        }
        if !others.is_empty() {
            let _ = writeln!(cases, "      <system-out>{}</system-out>", xml(&others));
        }
        cases.push_str("    </testcase>\n");
    }
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", Rule::ALL.len());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rdbscope\" {counts}>\n  <testsuite name=\"rdbscope check\" {counts} skipped=\"0\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// Text that XML 1.0 allows, in content and in attributes.
fn xml(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
        out
    })
}
