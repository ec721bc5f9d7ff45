//! `rdbscope contract`.

use std::fmt::Write as _;
use std::io::{self, Read as _};

use rdbscope::findings::{Linted, Linter, Policy};

use super::{Exit, complain, contracts, print, shown};
use crate::cli::{ContractCommand, Global, LintArgs, LintFormat, ValidateArgs};
use crate::terminal::plural;

pub fn run(_global: &Global, command: &ContractCommand) -> Exit {
    match command {
        ContractCommand::Validate(args) => validate(args),
        ContractCommand::Lint(args) => lint(args),
    }
}

fn validate(args: &ValidateArgs) -> Exit {
    match contracts(&args.file) {
        Ok(contracts) => {
            let classes = plural(contracts.classes.len() as u64, "class", "classes");
            print(format!("{}: ok, {classes}\n", shown(&args.file)).as_bytes())
        }
        Err(exit) => exit,
    }
}

fn lint(args: &LintArgs) -> Exit {
    let policy = match contracts(&args.contracts) {
        Ok(contracts) => Policy::new(Some(contracts), 0),
        Err(exit) => return exit,
    };
    let names = if args.names.is_empty() {
        match read_names(if args.null { 0 } else { b'\n' }) {
            Ok(names) => names,
            Err(error) => {
                complain(&format!("standard input: {error}"));
                return Exit::Input;
            }
        }
    } else {
        args.names.iter().map(|name| name.as_encoded_bytes().to_vec()).collect()
    };
    let mut linter = Linter::new(&policy);
    let linted: Vec<Linted> = names.iter().map(|name| linter.lint(name)).collect();
    let text = match args.format {
        LintFormat::Json => serde_json::to_string_pretty(&linted).unwrap_or_default() + "\n",
        LintFormat::Text => linted.iter().map(text).collect(),
    };
    let is_broken = args.fail_on.severity().is_some_and(|fail_on| linted.iter().any(|name| name.is_broken(fail_on)));
    print(text.as_bytes()).max(if is_broken { Exit::Broken } else { Exit::Done })
}

/// Names that each end in `end`; the last may do without.
fn read_names(end: u8) -> io::Result<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let bytes = bytes.strip_suffix(&[end]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let line = |line: &[u8]| if end == b'\n' { line.strip_suffix(b"\r").unwrap_or(line).to_vec() } else { line.to_vec() };
    Ok(bytes.split(|byte| *byte == end).map(line).collect())
}

/// A name for people: its class, slot and placeholders in one line, each finding in another.
fn text(linted: &Linted) -> String {
    let mut text = String::new();
    let class = linted.class.as_deref().unwrap_or("no class");
    let values: String = linted
        .segments
        .iter()
        .filter_map(|value| value.segment.as_ref().filter(|segment| segment.contains('<')).map(|segment| (segment, &value.value)))
        .map(|(segment, value)| format!(", {segment} = {value}"))
        .collect();
    // Writing to a String does not fail.
    let _ = writeln!(text, "{}: {class}{values}, slot {}", linted.name, linted.slot);
    for finding in &linted.findings {
        let _ = writeln!(text, "  {} {}: {}", finding.severity, finding.rule, finding.message);
    }
    text
}
