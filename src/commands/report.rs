//! `rdbscope report`.

use std::io::{self, Write};

use rdbscope::analyse::{self, Dump, Options};
use rdbscope::census::ListLimits;
use rdbscope::measure::LoadConfig;
use rdbscope::privacy::Names;
use rdbscope::recover;
use rdbscope::report::{RecoveredKeys, Report};
use rdbscope::tables::{self, RECOVERED_TABLES, Table, VALUES_TABLE};
use rdbscope::time;
use serde_json::{Value, json};

use super::{Exit, colours, complain, explain, folder, open, options, print, table_files, warn};
use crate::cli::{Global, ReportArgs};
use crate::output::{self, Folder, WholeFile};
use crate::progress::Progress;
use crate::terminal;

pub fn run(global: &Global, args: &ReportArgs) -> Exit {
    let mut options = match options(global, &args.input) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    options.values = args.values;
    options.lists = ListLimits { top: args.top as usize, permanent: args.permanent_limit as usize, ..ListLimits::default() };
    let names = if args.show_sensitive { Names::Exact } else { Names::Masked };
    // Before the long run: a path that cannot be written to is found at once.
    let folder = match folder(args.output.as_deref(), args.force) {
        Ok(folder) => folder,
        Err(exit) => return exit,
    };
    let (dumps, mut exit) = open(global, &args.input.dumps, &options);
    if dumps.is_empty() {
        return exit;
    }
    let bytes = dumps.iter().map(|dump| dump.input.progress_bytes()).sum();
    let progress = Progress::new(bytes, global.quiet);
    let (census, outcomes) = analyse::census(&dumps, &options, |advance| progress.advance(advance));
    let recovered = args.recover.then(|| recover::census(&dumps, &outcomes, &options, |advance| progress.advance(advance)));
    let mut report = Report::new(census, &dumps, outcomes, options.contracts.as_ref());
    report.recovered = recovered.map(|recovered| RecoveredKeys::new(recovered, options.contracts.as_ref()));
    drop(progress);
    for (at, (dump, outcome)) in dumps.iter().zip(&report.outcomes).enumerate() {
        let recovery = report.recovered.as_ref().map(|recovered| &recovered.recoveries[at]);
        exit = exit.max(explain(global, dump, outcome, recovery));
    }
    for (first, second, slots) in analyse::shared_slots(&report.outcomes) {
        let (first, second) = (dumps[first].name(), dumps[second].name());
        warn(global, &format!("{first} and {second} both hold {slots} slots: keys in them may be counted twice"));
    }
    if options.filter.is_empty() && !report.is_partial() {
        for class in report.classes.iter().filter(|class| class.registered && class.stats.counts.keys == 0) {
            warn(global, &format!("class '{}': no key matches its pattern {}", class.name, class.pattern));
        }
    }
    // A name that was asked for is a name that is shown.
    let filter = args.input.filter.to_string();
    let filter = names.of_text(&filter);
    let summary = terminal::summary(&report, &dumps, &names, &filter, colours(global));
    exit = exit.max(print(summary.as_bytes()));
    if let Some(folder) = folder {
        let tables = tables::report_tables(&report, &dumps, &names);
        let manifest = manifest(args, &options, &dumps, &filter, &tables);
        if let Err(error) = write(&folder, &tables, &manifest) {
            complain(&format!("cannot write the report: {error}{}", output::advice(&error, true)));
            exit = exit.max(Exit::Output);
        }
    }
    exit
}

fn write(folder: &Folder, tables: &[Table], manifest: &Value) -> io::Result<()> {
    // All are written before any gets its name.
    let mut files = table_files(folder, tables)?;
    let mut file = folder.file("manifest.json")?;
    writeln!(file, "{manifest:#}")?;
    files.push(file);
    WholeFile::finish(files)?;
    // An earlier report may have had them.
    let stale = RECOVERED_TABLES.iter().chain([&VALUES_TABLE]).filter(|name| tables.iter().all(|table| table.name != **name));
    stale.into_iter().try_for_each(|name| folder.remove(&format!("{name}.csv")))
}

/// What the report was made of and with: the one file that names files.
fn manifest(args: &ReportArgs, options: &Options, dumps: &[Dump], filter: &str, tables: &[Table]) -> Value {
    let inputs: Vec<Value> =
        (1..).zip(dumps).map(|(input, dump): (u32, _)| json!({ "input": input, "name": dump.name() })).collect();
    let columns =
        |table: &Table| table.columns.iter().map(|c| json!({ "name": c.name, "unit": c.unit.name() })).collect::<Vec<_>>();
    let tables: Vec<Value> =
        tables.iter().map(|table| json!({ "name": table.name, "rows": table.rows.len(), "columns": columns(table) })).collect();
    let contracts =
        args.input.contracts.as_deref().map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned());
    json!({
        "rdbscope": env!("CARGO_PKG_VERSION"),
        "inputs": inputs,
        "options": {
            "allocator": options.server.allocator.map(|allocator| allocator.name()),
            "as_of": args.input.as_of.and_then(time::rfc3339),
            "checksum": !args.input.no_checksum,
            "cluster": options.server.cluster,
            "contracts": contracts,
            "filter": if filter.is_empty() { Value::Null } else { filter.into() },
            "permanent_limit": args.permanent_limit,
            "recover": args.recover,
            "server_config": options.server.config.map(limits),
            "server_version": options.server.version.map(|server| server.to_string()),
            "show_sensitive": args.show_sensitive,
            "top": args.top,
            "values": args.values,
        },
        "tables": tables,
    })
}

/// Limits by the names of the directives that set them.
fn limits(config: LoadConfig) -> Value {
    json!({
        "hash-max-listpack-entries": config.hash.entries,
        "hash-max-listpack-value": config.hash.value,
        "list-max-listpack-size": config.list_size,
        "set-max-intset-entries": config.intset_entries,
        "set-max-listpack-entries": config.set.entries,
        "set-max-listpack-value": config.set.value,
        "zset-max-listpack-entries": config.zset.entries,
        "zset-max-listpack-value": config.zset.value,
    })
}
