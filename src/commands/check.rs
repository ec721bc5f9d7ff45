//! `rdbscope check`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use rdbscope::analyse::{self, Outcome};
use rdbscope::findings::{self, Baseline, Judgement, Policy, Verdict};
use rdbscope::privacy::Names;
use rdbscope::report::Population;
use rdbscope::{render, tables};

use super::{Exit, colours, complain, explain, folder, new_file, note, open, options, print, shown, table_files};
use crate::cli::{CheckArgs, CheckFormat, Global};
use crate::output::{self, WholeFile};
use crate::progress::Progress;
use crate::terminal::{self, plural};

pub fn run(global: &Global, args: &CheckArgs) -> Exit {
    let mut options = match options(global, &args.input) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let baseline = match args.baseline.as_deref().map(baseline).transpose() {
        Ok(baseline) => baseline,
        Err(exit) => return exit,
    };
    let policy = Arc::new(Policy::new(options.contracts.clone(), usize::from(args.examples)));
    options.policy = Some(Arc::clone(&policy));
    options.values = args.tables.is_some() || policy.asks_for_values();
    // Before the long run: a path that cannot be written to is found at once.
    let mut files = Vec::new();
    for path in [args.output.as_deref().filter(|path| path.as_os_str() != "-"), args.write_baseline.as_deref()] {
        let file = path.map(|path| new_file(path, &args.input)).transpose();
        match file {
            Ok(file) => files.push(file),
            Err(why) => {
                complain(&why);
                return Exit::Output;
            }
        }
    }
    let folder = match folder(args.tables.as_deref(), args.force) {
        Ok(folder) => folder,
        Err(exit) => return exit,
    };
    let [out, accepted] = <[_; 2]>::try_from(files).unwrap_or_default();
    let (dumps, mut exit) = open(global, &args.input.dumps, &options);
    if dumps.is_empty() {
        return exit;
    }
    let bytes = dumps.iter().map(|dump| dump.input.progress_bytes()).sum();
    let progress = Progress::new(bytes, global.quiet);
    let (census, outcomes) = analyse::census(&dumps, &options, |advance| progress.advance(advance));
    drop(progress);
    for (dump, outcome) in dumps.iter().zip(&outcomes) {
        exit = exit.max(explain(global, dump, outcome, None));
    }
    let keys = census.total().keys;
    let walked = outcomes.iter().map(|outcome| outcome.passed.keys).sum::<u64>();
    let all_keys = options.filter.is_empty() && !outcomes.iter().any(Outcome::is_partial);
    let names = if args.show_sensitive { Names::Exact } else { Names::Masked };
    let Judgement { findings, register, timelines, versions, values } =
        findings::judge(census, &policy, &Population::of(&outcomes), all_keys);
    let verdict = Verdict::new(findings, &names, baseline.as_ref());
    let filter = args.input.filter.to_string();
    let filter = names.of_text(&filter);
    if !filter.is_empty() {
        note(global, &format!("filtered: {keys} of {walked} keys matched {filter}"));
    }
    let file = args.input.contracts.as_deref().map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
    let text = match args.format {
        CheckFormat::Terminal => Ok(terminal::findings(&verdict, keys, colours(global) && out.is_none()).into_bytes()),
        CheckFormat::Csv => {
            let mut out = Vec::new();
            render::csv_table(&tables::findings_table(&verdict), &mut out).map(|()| out)
        }
        CheckFormat::Json => Ok(format!("{:#}\n", render::findings_json(&verdict)).into_bytes()),
        CheckFormat::Sarif => Ok(format!("{:#}\n", render::sarif(&verdict, file.as_deref())).into_bytes()),
        CheckFormat::Junit => Ok(render::junit(&verdict, args.fail_on.severity()).into_bytes()),
    };
    let (prints, accepts) = (out.is_none(), accepted.is_some());
    let is_gone = out.iter().chain(&accepted).all(WholeFile::is_named);
    // All of them or none: whoever finds one may rely on the others.
    let stage = |text: &[u8]| -> io::Result<Vec<WholeFile>> {
        let mut files = Vec::new();
        if let Some(folder) = &folder {
            let tables = [
                tables::findings_table(&verdict),
                tables::permanent_register(&register, &names),
                tables::expiry_timeline(&timelines, &names),
                tables::versions(&versions, &names),
                tables::value_formats(values, &names),
            ];
            files.extend(table_files(folder, &tables)?);
        }
        let baseline = accepted.map(|file| (file, Baseline::of(&verdict.findings).to_json().into_bytes()));
        for (mut file, text) in out.map(|file| (file, text.to_vec())).into_iter().chain(baseline) {
            file.write_all(&text)?;
            files.push(file);
        }
        Ok(files)
    };
    let staged = text.and_then(|text| stage(&text).map(|files| (files, text)));
    let written = staged.and_then(|(files, text)| {
        let printed = if prints { print(&text) } else { Exit::Done };
        if printed == Exit::Done { WholeFile::finish(files).map(|()| printed) } else { Ok(printed) }
    });
    match written {
        Ok(Exit::Done) if accepts => {
            note(global, &format!("{} accepted", plural(verdict.findings.len() as u64, "finding", "findings")));
            return exit;
        }
        Ok(printed) => exit = exit.max(printed),
        Err(error) => {
            complain(&format!("cannot write the findings: {error}{}", output::advice(&error, is_gone)));
            exit = exit.max(Exit::Output);
        }
    }
    let is_broken = args.fail_on.severity().is_some_and(|fail_on| verdict.is_broken(fail_on));
    exit.max(if is_broken { Exit::Broken } else { Exit::Done })
}

/// Reads a baseline; complains of what is wrong with it.
fn baseline(path: &Path) -> Result<Baseline, Exit> {
    let read = fs::read_to_string(path).map_err(|error| error.to_string());
    read.and_then(|text| Baseline::parse(&text)).map_err(|why| {
        complain(&format!("{}: {why}", shown(path)));
        Exit::Usage
    })
}
