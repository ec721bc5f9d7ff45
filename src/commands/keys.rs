//! `rdbscope keys`.

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Mutex;

use rdbscope::analyse::{self, Advance, Dump, Options, Outcome, PieceSink};
use rdbscope::classify::{Classifier, Separators};
use rdbscope::measure::Fact;
use rdbscope::privacy::Names;
use rdbscope::recover::{self, Recovery};
use rdbscope::render::{RowFormat, RowWriter};
use rdbscope::scan::Stretch;
use rdbscope::tables::{KEY_COLUMNS, KeyColumn, KeySource, RDBTOOLS_COLUMNS, key_column};

use super::{Exit, complain, explain, note, open, options, shown};
use crate::cli::{Global, KeysArgs, KeysFormat, Preset};
use crate::output::{self, WholeFile, same_file};
use crate::progress::Progress;

/// Fewest bytes of the secret of `--redact`: below, it can be guessed.
const SHORTEST_SECRET: usize = 16;

pub fn run(global: &Global, args: &KeysArgs) -> Exit {
    let Some((columns, deep)) = columns(args) else { return Exit::Usage };
    let options = match options(global, &args.input) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let names = match names(args, &options) {
        Ok(names) => names,
        Err(exit) => return exit,
    };
    let mut out = match args.output.as_deref() {
        None => Out::Stdout(io::stdout()),
        Some(path) if path.as_os_str() == "-" => Out::Stdout(io::stdout()),
        Some(path) if args.input.dumps.iter().any(|dump| same_file(dump, path)) => {
            complain(&format!("{}: is one of the dumps: name another file", shown(path)));
            return Exit::Output;
        }
        Some(path) => match WholeFile::create(path) {
            Ok(file) => Out::File(file),
            Err(error) => {
                complain(&format!("{}: {error}{}", shown(path), output::advice(&error, true)));
                return Exit::Output;
            }
        },
    };
    let is_gone = matches!(&out, Out::File(file) if file.is_named());
    let (dumps, mut exit) = open(global, &args.input.dumps, &options);
    if dumps.is_empty() {
        return exit;
    }
    let format = match args.format {
        KeysFormat::Csv => RowFormat::Csv,
        KeysFormat::Jsonl => RowFormat::Jsonl,
    };
    let rows = Rows { global, columns: &columns, format, options: &options, names: &names, recover: args.recover };
    let written = if deep { rows.write::<true>(&dumps, &mut out) } else { rows.write::<false>(&dumps, &mut out) };
    let (written, keys, walked) = match written.and_then(|written| out.finish().map(|()| written)) {
        Ok(written) => written,
        // Whoever read the rows has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return exit,
        Err(error) => {
            complain(&format!("cannot write the keys: {error}{}", output::advice(&error, is_gone)));
            return exit.max(Exit::Output);
        }
    };
    exit = exit.max(walked);
    {
        let how = match names {
            Names::Exact => "names are exact, personal data in them included",
            Names::Masked => "what looks like personal data in names is masked",
            Names::Redacted(_) => "identifiers in names are hashed; words stay",
        };
        let keys = if keys == 1 { "1 key".into() } else { format!("{keys} keys") };
        let which = if options.filter.is_empty() { keys } else { format!("{written} of {keys} matched") };
        note(global, &format!("{which}; {how}"));
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
    let mut columns: Vec<KeyColumn> = Vec::new();
    for name in args.columns.iter().map(|name| name.trim()) {
        if columns.iter().any(|column| column.column.name == name) {
            complain(&format!("column '{name}' is named twice"));
            return None;
        }
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

/// How names appear.
fn names(args: &KeysArgs, options: &Options) -> Result<Names, Exit> {
    if args.mask {
        return Ok(Names::Masked);
    }
    let Some(path) = args.redact.as_deref() else { return Ok(Names::Exact) };
    match fs::read(path) {
        Ok(secret) if secret.trim_ascii().len() >= SHORTEST_SECRET => {
            let separators =
                options.contracts.as_ref().map_or_else(Separators::default, |contracts| Separators::new(&contracts.separators));
            Ok(Names::redacted(secret.trim_ascii(), separators))
        }
        Ok(_) => {
            complain(&format!(
                "{}: a secret needs {SHORTEST_SECRET} bytes or more: fill the file from a random source",
                shown(path)
            ));
            Err(Exit::Usage)
        }
        Err(error) => {
            complain(&format!("{}: {error}", shown(path)));
            Err(Exit::Usage)
        }
    }
}

struct Rows<'r> {
    global: &'r Global,
    columns: &'r [KeyColumn],
    format: RowFormat,
    options: &'r Options,
    names: &'r Names,
    recover: bool,
}

impl Rows<'_> {
    /// Writes a row for every key of the dumps that is asked for, and returns how many rows and keys there were.
    fn write<const DEEP: bool>(&self, dumps: &[Dump], out: &mut Out) -> io::Result<(u64, u64, Exit)> {
        let mut header = self.writer();
        header.header()?;
        out.write_all(&header.take())?;
        let bytes = dumps.iter().map(|dump| dump.input.progress_bytes()).sum();
        let progress = Progress::new(bytes, self.global.quiet);
        let mut sums = (0, 0, Exit::Done);
        for dump in dumps {
            let mut wanted = Wanted { rows: self, dump, out: &mut *out, progress: &progress, written: 0, failed: None };
            let outcome = wanted.rows_of::<DEEP>();
            let recovery = (self.recover && wanted.failed.is_none()).then(|| {
                recover::search(dump, &outcome.end, self.options.scan, |stretch| wanted.rows_of_stretch::<DEEP>(stretch))
            });
            if let Some(error) = wanted.failed {
                return Err(error);
            }
            sums.0 += wanted.written;
            sums.1 += outcome.passed.keys + recovery.as_ref().map_or(0, Recovery::keys);
            sums.2 = sums.2.max(explain(self.global, dump, &outcome, recovery.as_ref()));
        }
        Ok(sums)
    }

    fn worker<const DEEP: bool>(&self, recovered: bool) -> RowWorker<'_, DEEP> {
        RowWorker {
            rows: self,
            recovered,
            classifier: Classifier::new(self.options.contracts.clone()),
            writer: self.writer(),
            written: 0,
            failed: None,
        }
    }

    fn writer(&self) -> RowWriter {
        RowWriter::new(self.columns.iter().map(|column| column.column).collect(), self.format)
    }
}

/// Rows of one dump on their way.
struct Wanted<'w> {
    rows: &'w Rows<'w>,
    dump: &'w Dump,
    out: &'w mut Out,
    progress: &'w Progress,
    written: u64,
    failed: Option<io::Error>,
}

/// The rows of a piece, and how many there are.
type PieceRows = (io::Result<Vec<u8>>, u64);

impl<'w> Wanted<'w> {
    fn rows_of<const DEEP: bool>(&mut self) -> Outcome {
        let (rows, dump) = (self.rows, self.dump);
        let collect = |rows, advance| self.take(rows, advance);
        analyse::walk_dump(dump, rows.options, &Mutex::default(), || rows.worker::<DEEP>(false), RowWorker::finish, collect)
    }

    fn rows_of_stretch<const DEEP: bool>(&mut self, stretch: &Stretch) {
        let (rows, dump) = (self.rows, self.dump);
        if self.failed.is_some() {
            return;
        }
        let collect = |rows, advance| self.take(rows, advance);
        let new_worker = || rows.worker::<DEEP>(true);
        analyse::walk_stretch(dump, stretch, rows.options, &Mutex::default(), new_worker, RowWorker::finish, collect);
    }

    fn take(&mut self, (rows, count): PieceRows, advance: Advance) -> ControlFlow<()> {
        self.progress.advance(advance);
        self.written += count;
        match rows.and_then(|rows| self.out.write_all(&rows)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

struct RowWorker<'r, const DEEP: bool> {
    rows: &'r Rows<'r>,
    recovered: bool,
    classifier: Classifier,
    writer: RowWriter,
    written: u64,
    failed: Option<io::Error>,
}

impl<const DEEP: bool> RowWorker<'_, DEEP> {
    fn finish(&mut self) -> PieceRows {
        let rows = self.failed.take().map_or_else(|| Ok(self.writer.take()), Err);
        (rows, std::mem::take(&mut self.written))
    }
}

impl<const DEEP: bool> PieceSink for RowWorker<'_, DEEP> {
    const DEEP: bool = DEEP;
    const ADVICE: bool = false;

    fn fact(&mut self, fact: &Fact<'_>) {
        let Rows { columns, options, names, .. } = self.rows;
        let Some(mut class) = options.filter.admit(&mut self.classifier, fact) else { return };
        // A shape is made of key text and placeholders.
        let shape = String::from_utf8_lossy(class.key.shape().text());
        let registered = class.registered.zip(options.contracts.as_ref()).and_then(|(at, contracts)| contracts.classes.get(at));
        let source = KeySource {
            fact,
            name: &names.of(fact.key),
            class: registered.map(|class| class.name.as_str()),
            shape: &names.of_text(&shape),
            recovered: self.recovered,
        };
        if let Err(error) = self.writer.row(columns.iter().map(|column| (column.cell)(source))) {
            self.failed = Some(error);
        }
        self.written += 1;
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
            Self::File(file) => WholeFile::finish([file]),
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
