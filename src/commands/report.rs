//! `rdbscope report`.

use std::io;

use rdbscope::analyse::{self, Dump};
use rdbscope::census::ListLimits;
use rdbscope::render;
use rdbscope::report::Report;
use rdbscope::tables;

use super::{Exit, colours, complain, explain, open, options, print};
use crate::cli::{Global, ReportArgs};
use crate::output::Folder;
use crate::progress::Progress;
use crate::terminal;

pub fn run(global: &Global, args: &ReportArgs) -> Exit {
    let mut options = options(global, &args.input);
    options.lists = ListLimits { top: args.top as usize, permanent: args.permanent_limit as usize, ..ListLimits::default() };
    // Before the long run: a path that cannot be written to is found at once.
    let folder = match args.output.as_deref().map(|path| (path, Folder::prepare(path, args.force))) {
        None => None,
        Some((_, Ok(folder))) => Some(folder),
        Some((path, Err(error))) => {
            complain(&format!("{}: {error}", path.display()));
            return Exit::Output;
        }
    };
    let (dumps, mut exit) = open(&args.input, &options);
    if dumps.is_empty() {
        return exit;
    }
    let bytes = dumps.iter().map(|dump| dump.input.bytes().len() as u64).sum();
    let progress = Progress::new(bytes, global.quiet);
    let (census, outcomes) = analyse::census(&dumps, &options, |advance| progress.advance(advance));
    let report = Report::new(census, &dumps, outcomes);
    drop(progress);
    for (dump, outcome) in dumps.iter().zip(&report.outcomes) {
        exit = exit.max(explain(global, dump, outcome));
    }
    exit = exit.max(print(terminal::summary(&report, &dumps, colours(global)).as_bytes()));
    if let Some(folder) = folder
        && let Err(error) = write_tables(&folder, &report, &dumps)
    {
        complain(&format!("cannot write the report: {error}"));
        exit = exit.max(Exit::Output);
    }
    exit
}

fn write_tables(folder: &Folder, report: &Report, dumps: &[Dump]) -> io::Result<()> {
    // All are written before any gets its name.
    let files = tables::report_tables(report, dumps)
        .iter()
        .map(|table| {
            let mut file = folder.file(&format!("{}.csv", table.name))?;
            render::csv_table(table, &mut file)?;
            Ok(file)
        })
        .collect::<io::Result<Vec<_>>>()?;
    files.into_iter().try_for_each(|file| file.finish())
}
