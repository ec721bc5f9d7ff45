//! The JSON Schema for editors and the parser know the same fields, values and rules.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use rdbscope::contract::Contracts;
use rdbscope::findings::{Kind, Rule};
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../docs/contracts.schema.json")).unwrap()
}

/// Names that a schema gives to properties.
fn properties(schema: &Value) -> BTreeSet<String> {
    assert_eq!(schema["additionalProperties"], false);
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

/// Names that the parser says it knows where `text` has one, `zzz`, that it does not.
fn known(text: &str) -> BTreeSet<String> {
    let mistakes = Contracts::parse(text).unwrap_err();
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    let mut names = mistake.message.split('`').skip(1).step_by(2).map(String::from);
    assert_eq!(names.next().as_deref(), Some("zzz"), "{mistake}");
    names.collect()
}

#[test]
fn the_same_fields() {
    let schema = schema();
    let defs = &schema["$defs"];
    let class = "[[class]]\nname = 'a'\npattern = 'a'\n";
    assert_eq!(properties(&schema), known("zzz = 1"));
    assert_eq!(properties(&defs["limits"]), known("[limits]\nzzz = 1"));
    assert_eq!(properties(&defs["limits"]), known(&format!("{class}limits = {{ zzz = 1 }}")));
    assert_eq!(properties(&defs["class"]), known(&format!("{class}zzz = 1")));
    assert_eq!(properties(&defs["class"]["properties"]["budget"]), known(&format!("{class}budget = {{ zzz = 1 }}")));
    assert_eq!(properties(&defs["capacity"]), known("[capacity]\nmaxmemory = 1\nzzz = 1"));
    assert_eq!(properties(&defs["server"]), known("[server]\nzzz = 1"));
    // The parser does not name what a range may hold: each is taken, and nothing else.
    let range = properties(&defs["class"]["properties"]["ttl"]["anyOf"][1]);
    assert_eq!(range, BTreeSet::from(["max".to_string(), "min".to_string()]));
    for (name, taken) in [("min", true), ("max", true), ("zzz", false)] {
        assert_eq!(Contracts::parse(&format!("{class}ttl = {{ {name} = '1h' }}")).is_ok(), taken, "{name}");
    }
}

#[test]
fn the_same_required_fields() {
    let schema = schema();
    let required = |def: &str| {
        schema["$defs"][def]["required"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(required("class"), ["name", "pattern"]);
    assert_eq!(required("capacity"), ["maxmemory"]);
    for (text, missing) in
        [("[[class]]\npattern = 'a'", "name"), ("[[class]]\nname = 'a'", "pattern"), ("[capacity]", "maxmemory")]
    {
        let mistakes = Contracts::parse(text).unwrap_err();
        assert_eq!(mistakes[0].message, format!("missing field `{missing}`"));
    }
}

#[test]
fn the_same_values() {
    let schema = schema();
    let texts =
        |value: &Value| value["enum"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_string()).collect::<Vec<_>>();
    for policy in texts(&schema["$defs"]["capacity"]["properties"]["policy"]) {
        assert!(Contracts::parse(&format!("[capacity]\nmaxmemory = 1\npolicy = '{policy}'")).is_ok(), "{policy}");
    }
    let rules: BTreeSet<String> = texts(&schema["$defs"]["rules"]["propertyNames"]).into_iter().collect();
    let known = Rule::ALL.iter().map(|rule| rule.id()).chain(Kind::ALL.iter().map(|kind| kind.name()));
    assert_eq!(rules, known.map(String::from).collect());
    for rule in &rules {
        for severity in texts(&schema["$defs"]["rules"]["additionalProperties"]) {
            assert!(Contracts::parse(&format!("[rules]\n{rule} = '{severity}'")).is_ok(), "{rule} {severity}");
        }
    }
}
