//! `rdbscope contract`.

use std::fmt::Write as _;
use std::io::{self, Read as _};

use rdbscope::discover;
use rdbscope::findings::{Linted, Linter, Policy};

use super::{Exit, complain, contracts, explain, finish, new_file, open, options, print, shown};
use crate::cli::{ContractCommand, DiscoverArgs, Global, LintArgs, LintFormat, ValidateArgs};
use crate::output::{self, WholeFile};
use crate::progress::Progress;
use crate::terminal::plural;

pub fn run(global: &Global, command: &ContractCommand) -> Exit {
    match command {
        ContractCommand::Validate(args) => validate(args),
        ContractCommand::Discover(args) => draft(global, args),
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

fn draft(global: &Global, args: &DiscoverArgs) -> Exit {
    if args.input.contracts.is_some() {
        complain("contract discover writes contracts and reads none: leave out --contracts");
        return Exit::Usage;
    }
    let options = match options(global, &args.input) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let file = match args.output.as_deref().filter(|path| path.as_os_str() != "-").map(|path| new_file(path, &args.input)) {
        None => None,
        Some(Ok(file)) => Some(file),
        Some(Err(why)) => {
            complain(&why);
            return Exit::Output;
        }
    };
    let is_gone = file.as_ref().is_some_and(WholeFile::is_named);
    let (dumps, mut exit) = open(global, &args.input.dumps, &options);
    if dumps.is_empty() {
        return exit;
    }
    if let Some(dump) = dumps.iter().find(|dump| dump.input.whole().is_none()) {
        complain(&format!("{}: a draft takes more than one look at a dump; decompress it into a file first", dump.name()));
        return Exit::Input;
    }
    let bytes: Option<u64> = dumps.iter().map(|dump| dump.input.progress_bytes()).sum();
    let progress = Progress::new(bytes.map(|bytes| bytes.saturating_mul(discover::PASSES)), global.quiet);
    let drafted = discover::draft(&dumps, &options, |advance| progress.advance(advance));
    drop(progress);
    let (text, outcomes) = match drafted {
        Ok(drafted) => drafted,
        Err(why) => {
            complain(&why);
            return Exit::Output;
        }
    };
    for (dump, outcome) in dumps.iter().zip(&outcomes) {
        exit = exit.max(explain(global, dump, outcome, None));
    }
    match file.map(|file| finish(file, text.as_bytes())) {
        None => exit.max(print(text.as_bytes())),
        Some(Ok(())) => exit,
        Some(Err(error)) => {
            complain(&format!("cannot write the draft: {error}{}", output::advice(&error, is_gone)));
            exit.max(Exit::Output)
        }
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
