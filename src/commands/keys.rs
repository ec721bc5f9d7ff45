//! `rdbscope keys`.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Mutex;

use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::classify::{Separators, Shape};
use rdbscope::measure::Fact;
use rdbscope::render::{RowFormat, RowWriter};
use rdbscope::tables::{KEY_COLUMNS, KeyColumn, RDBTOOLS_COLUMNS, key_column};

use super::{Exit, complain, explain, open, options};
use crate::cli::{Global, KeysArgs, KeysFormat, Preset};
use crate::output::WholeFile;
use crate::progress::Progress;

pub fn run(global: &Global, args: &KeysArgs) -> Exit {
    let Some((columns, deep)) = columns(args) else { return Exit::Usage };
    let options = options(global, &args.input);
    let mut out = match args.output.as_deref() {
        None => Out::Stdout(io::stdout()),
        Some(path) => match WholeFile::create(path) {
            Ok(file) => Out::File(file),
            Err(error) => {
                complain(&format!("{}: {error}", path.display()));
                return Exit::Output;
            }
        },
    };
    let (dumps, mut exit) = open(&args.input, &options);
    if dumps.is_empty() {
        return exit;
    }
    let format = match args.format {
        KeysFormat::Csv => RowFormat::Csv,
        KeysFormat::Jsonl => RowFormat::Jsonl,
    };
    let rows = Rows { global, columns: &columns, format, options: &options };
    let written = if deep { rows.write::<true>(&dumps, &mut out) } else { rows.write::<false>(&dumps, &mut out) };
    let (keys, walked) = match written.and_then(|written| out.finish().map(|()| written)) {
        Ok(written) => written,
        // Whoever read the rows has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return exit,
        Err(error) => {
            complain(&format!("cannot write the keys: {error}"));
            return exit.max(Exit::Output);
        }
    };
    exit = exit.max(walked);
    if !global.quiet {
        eprintln!("rdbscope: {keys} keys; their names are exact, personal data in them included");
    }
    exit
}

/// The columns asked for, and whether one of them needs a look into packed values.
fn columns(args: &KeysArgs) -> Option<(Vec<KeyColumn>, bool)> {
    if args.preset == Some(Preset::Rdbtools) {
        return Some((RDBTOOLS_COLUMNS.to_vec(), true));
    }
    if args.columns.is_empty() {
        let jsonl = args.format == KeysFormat::Jsonl;
        let default = |column: &&KeyColumn| column.default || (jsonl && column.column.name == "key_b64");
        return Some((KEY_COLUMNS.iter().filter(default).copied().collect(), false));
    }
    let mut columns = Vec::new();
    for name in &args.columns {
        match key_column(name) {
            Some(column) => columns.push(*column),
            None => {
                let known: Vec<&str> = KEY_COLUMNS.iter().map(|column| column.column.name).collect();
                complain(&format!("no column '{name}'; there are {}", known.join(", ")));
                return None;
            }
        }
    }
    let deep = columns.iter().any(|column| column.deep);
    Some((columns, deep))
}

struct Rows<'r> {
    global: &'r Global,
    columns: &'r [KeyColumn],
    format: RowFormat,
    options: &'r Options,
}

impl Rows<'_> {
    /// Writes a row for every key of the dumps and returns how many there were.
    fn write<const DEEP: bool>(&self, dumps: &[Dump], out: &mut Out) -> io::Result<(u64, Exit)> {
        let mut header = self.writer();
        header.header()?;
        out.write_all(&header.take())?;
        let bytes = dumps.iter().map(|dump| dump.input.bytes().len() as u64).sum();
        let progress = Progress::new(bytes, self.global.quiet);
        let workers = Mutex::new(Vec::<RowWorker<'_, DEEP>>::new());
        let mut keys = 0;
        let mut exit = Exit::Done;
        for dump in dumps {
            let mut failed = None;
            let outcome = analyse::walk_dump(
                dump,
                self.options,
                &workers,
                || RowWorker {
                    columns: self.columns,
                    separators: &self.options.separators,
                    shape: Shape::default(),
                    writer: self.writer(),
                    failed: None,
                },
                |worker| worker.failed.take().map_or_else(|| Ok(worker.writer.take()), Err),
                |rows: io::Result<Vec<u8>>, advance| {
                    progress.advance(advance);
                    match rows.and_then(|rows| out.write_all(&rows)) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(error) => {
                            failed = Some(error);
                            ControlFlow::Break(())
                        }
                    }
                },
            );
            if let Some(error) = failed {
                return Err(error);
            }
            keys += outcome.passed.keys;
            exit = exit.max(explain(self.global, dump, &outcome));
        }
        Ok((keys, exit))
    }

    fn writer(&self) -> RowWriter {
        RowWriter::new(self.columns.iter().map(|column| column.column).collect(), self.format)
    }
}

struct RowWorker<'r, const DEEP: bool> {
    columns: &'r [KeyColumn],
    separators: &'r Separators,
    shape: Shape,
    writer: RowWriter,
    failed: Option<io::Error>,
}

impl<const DEEP: bool> PieceSink for RowWorker<'_, DEEP> {
    const DEEP: bool = DEEP;

    fn fact(&mut self, fact: &Fact<'_>) {
        self.shape.take(fact.key, self.separators);
        let shape = self.shape.text();
        if let Err(error) = self.writer.row(self.columns.iter().map(|column| (column.cell)(fact, shape))) {
            self.failed = Some(error);
        }
    }
}

enum Out {
    Stdout(io::Stdout),
    File(WholeFile),
}

impl Out {
    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::File(file) => file.finish(),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(file) => file.flush(),
        }
    }
}
