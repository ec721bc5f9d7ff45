//! The commands: each joins library stages and decides what is printed.

mod check;
mod contract;
mod info;
mod keys;
mod report;
mod verify;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rdbscope::analyse::{self, Dump, Options, Outcome, ServerOptions};
use rdbscope::contract::Contracts;
use rdbscope::input::{self, Capture, Change, Input, STANDARD_INPUT};
use rdbscope::key_text;
use rdbscope::measure::ServerConfig;
use rdbscope::recover::Recovery;
use rdbscope::render;
use rdbscope::scan::{ChecksumState, ScanEnd, ScanOptions, Stretch};
use rdbscope::tables::Table;

use crate::cli::{Cli, Command, Global, InputArgs};
use crate::output::{self, Folder, WholeFile, same_file};
use crate::terminal::plural;

/// How a run ended; the worst of what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A rule that the user set is broken.
    Broken = 1,
    /// The command line is wrong.
    Usage = 2,
    /// An input cannot be opened or is damaged.
    Input = 3,
    /// An output could not be written.
    Output = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs the command on as many threads as were asked for.
pub fn run(cli: &Cli) -> Exit {
    let threads = cli.global.threads.map_or(0, usize::from);
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => {
            complain(&format!("cannot start {threads} threads: {error}"));
            return Exit::Usage;
        }
    };
    pool.install(|| match &cli.command {
        Command::Report(args) => report::run(&cli.global, args),
        Command::Info(args) => info::run(&cli.global, args),
        Command::Keys(args) => keys::run(&cli.global, args),
        Command::Check(args) => check::run(&cli.global, args),
        Command::Contract(command) => contract::run(&cli.global, command),
        Command::Verify(args) => verify::run(&cli.global, args),
    })
}

/// Prints an error.
pub fn complain(message: &str) {
    say(&format!("rdbscope: {message}"));
}

/// Prints a warning, unless told to be quiet.
fn warn(global: &Global, message: &str) {
    if !global.quiet {
        say(&format!("rdbscope: warning: {message}"));
    }
}

/// Prints a note, unless told to be quiet.
fn note(global: &Global, message: &str) {
    if !global.quiet {
        say(&format!("rdbscope: {message}"));
    }
}

/// Prints a line on standard error, whatever bytes a file name or file has brought into it. There is nobody to tell where that
/// fails.
fn say(line: &str) {
    let printable: String =
        line.chars().map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() }).collect();
    let _ = writeln!(io::stderr(), "{printable}");
}

/// A path as messages show it.
pub fn shown(path: &Path) -> String {
    key_text::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// What the flags ask for; complains where the contracts file is wrong.
fn options(global: &Global, input: &InputArgs) -> Result<Options, Exit> {
    let scan = scan_options(global, input.no_checksum);
    let contracts = input.contracts.as_deref().map(contracts).transpose()?;
    let server = server(input, contracts.as_deref())?;
    Ok(Options { as_of_ms: input.as_of, contracts, filter: input.filter.filter(), scan, server, ..Options::default() })
}

/// How dumps are scanned.
fn scan_options(global: &Global, no_checksum: bool) -> ScanOptions {
    let default = ScanOptions::default();
    ScanOptions {
        piece_bytes: global.piece_bytes.unwrap_or(default.piece_bytes),
        window_bytes: global.window_bytes.unwrap_or(default.window_bytes),
        checksum: !no_checksum,
    }
}

/// The server that is asked for: the command line goes before `--server-config`, that before `[server]` of the contracts.
fn server(input: &InputArgs, contracts: Option<&Contracts>) -> Result<ServerOptions, Exit> {
    let args = &input.server;
    let given = ServerOptions {
        version: args.server_version,
        allocator: args.allocator,
        config: None,
        cluster: args.cluster.then_some(true),
    };
    let of_file = |path: Option<&Path>| {
        let config = path.map(server_config).transpose()?;
        Ok(config.map_or_else(ServerOptions::default, |config| ServerOptions {
            config: Some(config.load),
            cluster: config.cluster,
            ..ServerOptions::default()
        }))
    };
    let server = given.or(of_file(args.server_config.as_deref())?);
    let Some(table) = contracts.and_then(|contracts| contracts.server.as_ref()) else { return Ok(server) };
    let table_options =
        ServerOptions { version: table.version, allocator: table.allocator, config: None, cluster: table.cluster };
    // A path in the contracts file begins where that file is.
    let folder = input.contracts.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let path = table.config.as_ref().filter(|_| args.server_config.is_none()).map(|config| folder.join(config));
    Ok(server.or(table_options).or(of_file(path.as_deref())?))
}

/// Reads a `redis.conf`; complains of every mistake in it.
fn server_config(path: &Path) -> Result<ServerConfig, Exit> {
    let text = fs::read(path).map_err(|error| {
        complain(&format!("{}: {error}", path.display()));
        Exit::Usage
    })?;
    ServerConfig::parse(&String::from_utf8_lossy(&text)).map_err(|mistakes| {
        for mistake in mistakes {
            complain(&format!("{}:{mistake}", path.display()));
        }
        Exit::Usage
    })
}

/// Reads a contracts file; complains of every mistake in it.
fn contracts(path: &Path) -> Result<Arc<Contracts>, Exit> {
    let text = fs::read_to_string(path).map_err(|error| {
        complain(&format!("{}: {error}", shown(path)));
        Exit::Usage
    })?;
    Contracts::parse(&text).map(Arc::new).map_err(|mistakes| {
        for mistake in mistakes {
            complain(&format!("{}:{mistake}", shown(path)));
        }
        Exit::Usage
    })
}

/// Opens the dumps in the order of their content; what is none is complained of and left out.
fn open(global: &Global, paths: &[PathBuf], options: &Options) -> (Vec<Dump>, Exit) {
    let mut opening = Opening { global, options, dumps: Vec::new(), exit: Exit::Done };
    if paths.iter().filter(|path| path.as_os_str() == STANDARD_INPUT).count() > 1 {
        opening.fail("standard input", "it can be read once: give - once");
        return (Vec::new(), opening.exit);
    }
    for path in paths {
        if path.is_dir() {
            opening.folder(path);
        } else {
            opening.file(path);
        }
    }
    let Opening { mut dumps, mut exit, .. } = opening;
    match analyse::sort(&mut dumps, options) {
        Ok(None) => return (dumps, exit),
        Ok(Some((first, second))) => {
            let (first, second) = (dumps[first].name(), dumps[second].input.full_name());
            complain(&format!("{second}: the same dump as {first}, byte for byte: give each once"));
        }
        Err(error) => complain(&format!("standard input: {error}")),
    }
    exit = Exit::Input;
    (Vec::new(), exit)
}

/// The dumps that were opened so far.
struct Opening<'o> {
    global: &'o Global,
    options: &'o Options,
    dumps: Vec<Dump>,
    exit: Exit,
}

impl Opening<'_> {
    fn fail(&mut self, name: &str, why: &str) {
        complain(&format!("{name}: {why}"));
        self.exit = Exit::Input;
    }

    /// Warns of what was left out of a folder or an archive.
    fn leave_out(&self, name: &str, temporary: &[String], others: u64, are: [&str; 2]) {
        for temporary in temporary {
            warn(self.global, &format!("{temporary}: left out: a save was writing it, or broke off"));
        }
        if others > 0 {
            let others = plural(others, are[0], are[1]);
            warn(self.global, &format!("{name}: {others} left out: no dumps"));
        }
    }

    /// Warns of the parts of append-only files that are commands.
    fn leave_out_commands(&self, name: &str, bytes: u64, missing: &[String]) {
        if bytes > 0 {
            let bytes = plural(bytes, "byte", "bytes");
            let what = "of commands behind the base of the append-only file (AOF increments) not analysed";
            warn(self.global, &format!("{name}: {bytes} {what}"));
        }
        for missing in missing {
            warn(
                self.global,
                &format!("{missing}: named by the manifest of the append-only file, and not there: the copy is not complete"),
            );
        }
    }

    /// Opens the dumps in a folder.
    fn folder(&mut self, path: &Path) {
        let name = shown(path);
        match input::dumps_in(path) {
            Ok(found) => {
                let all = |paths: &[PathBuf]| paths.iter().map(|path| shown(path)).collect::<Vec<_>>();
                self.leave_out(&name, &all(&found.temporary), found.others, ["other file", "other files"]);
                if found.folders > 0 {
                    let folders = plural(found.folders, "folder", "folders");
                    warn(self.global, &format!("{name}: {folders} in it not looked into: give those that hold dumps, too"));
                }
                self.leave_out_commands(&name, found.command_bytes, &all(&found.missing));
                if found.dumps.is_empty() {
                    self.fail(&name, "no dump is in this folder");
                }
                for path in found.dumps {
                    self.file(&path);
                }
            }
            Err(error) => self.fail(&name, &error.to_string()),
        }
    }

    /// Opens a file, or the dumps in an archive.
    fn file(&mut self, path: &Path) {
        let name = if path.as_os_str() == STANDARD_INPUT { "standard input".into() } else { shown(path) };
        let options = self.options;
        let opened = Input::open_all(path, &mut |input| {
            let name = input.full_name();
            Dump::new(input, options).map_err(|fault| (name, fault.to_string()))
        });
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return self.fail(&name, &error.to_string()),
        };
        let in_archive = |members: &[String]| members.iter().map(|member| format!("{name}:{member}")).collect::<Vec<_>>();
        self.leave_out(&name, &in_archive(&opened.temporary), opened.others, ["other member", "other members"]);
        for replaced in in_archive(&opened.replaced) {
            warn(self.global, &format!("{replaced}: left out: a later member of the same name replaces it"));
        }
        self.leave_out_commands(&name, opened.command_bytes, &in_archive(&opened.missing));
        let is_empty = opened.dumps.is_empty() && opened.unread.is_empty();
        for (member, why) in &opened.unread {
            self.fail(&format!("{name}:{member}"), why);
        }
        for dump in opened.dumps {
            match dump {
                Ok(mut dump) => {
                    dump.is_of_cut_archive = opened.fault.is_some();
                    self.dumps.push(dump);
                }
                Err((name, why)) => self.fail(&name, &why),
            }
        }
        match opened.fault {
            Some(fault) => self.fail(&name, &fault.to_string()),
            None if is_empty => self.fail(&name, "no dump is in this archive"),
            None => {}
        }
    }
}

/// Says what is to be said of a dump that changed while it was read.
fn explain_change(dump: &Dump) -> Exit {
    let name = dump.name();
    let change = dump.input.change();
    let is_cut_off = dump.input.is_cut_off();
    let what = match change {
        Some(Change { was_bytes, bytes }) if bytes < was_bytes => {
            format!("it was truncated while it was read, from {was_bytes} bytes to {bytes}")
        }
        Some(Change { was_bytes, bytes }) if bytes > was_bytes => {
            format!("it grew while it was read, from {was_bytes} bytes to {bytes}")
        }
        Some(_) => "it was written to while it was read".into(),
        None if is_cut_off => {
            "a part of it could not be read, and counts as zeros: it was truncated for a while, or the disk is failing".into()
        }
        None => return Exit::Done,
    };
    let cause = if name.starts_with("temp-") {
        "a save is still writing it, and gives it its name when it is complete: read that file"
    } else {
        "a save or a copy is still writing it, most likely: wait for its end, or copy the file first, and run this again"
    };
    complain(&format!("{name}: {what}; the figures may be of neither state. {cause}"));
    Exit::Input
}

/// Says what is to be said of a dump after its walk, and of what was recovered of it where that was tried.
fn explain(global: &Global, dump: &Dump, outcome: &Outcome, recovery: Option<&Recovery>) -> Exit {
    let name = dump.name();
    let mut exit = explain_change(dump);
    if let Some(fault) = &outcome.end.fault {
        complain(&format!("{name}: {fault}"));
        if !outcome.end.is_whole {
            let keys = plural(outcome.passed.keys, "key", "keys");
            let were = if outcome.passed.keys == 1 { "was" } else { "were" };
            let at = outcome.end.stored_bytes;
            let rest = dump.input.whole().map(|bytes| (bytes.len() as u64).saturating_sub(at));
            let hint = if name.starts_with("temp-") {
                "; a save was writing it, or broke off: read the file that it becomes when it is complete".into()
            } else if fault.is_end_of_file() {
                String::new()
            } else if recovery.is_some() {
                ", and the last of them may be damaged itself".into()
            } else if let Some(rest) = rest {
                let rest = plural(rest, "byte", "bytes");
                format!(", and the last of them may be damaged itself; --recover searches the {rest} behind them")
            } else {
                ", and the last of them may be damaged itself; decompressed into a file, --recover searches what is behind them"
                    .into()
            };
            complain(&format!("{name}: partial: {keys} before byte {at} {were} read{hint}"));
            recovery.into_iter().for_each(|recovery| explain_recovery(&name, recovery));
        }
        exit = Exit::Input;
    }
    let damaged = &outcome.passed.value_faults;
    if damaged.count > 0 {
        for fault in &damaged.first {
            complain(&format!("{name}: {fault}"));
        }
        let values = plural(damaged.count, "value is", "values are");
        complain(&format!("{name}: partial: {values} damaged inside and not counted whole"));
        exit = Exit::Input;
    }
    for fault in &outcome.passed.doubtful_sizes.first {
        warn(global, &format!("{name}: {fault}; its size is taken from its header"));
    }
    explain_end(global, dump, &outcome.end);
    exit
}

/// Most skipped ranges that are told one by one.
const RANGES_TOLD: usize = 10;

/// Says which bytes were skipped, and what was recovered behind them.
fn explain_recovery(name: &str, recovery: &Recovery) {
    if let Some(from) = recovery.needs_file {
        let how = "--recover needs a file that is no stream: decompress the dump into one, and give that";
        complain(&format!("{name}: nothing behind byte {from} was searched; {how}"));
    }
    for (at, range) in recovery.skipped.iter().enumerate().take(RANGES_TOLD) {
        let skipped = format!("{name}: skipped bytes {} to {}", range.start, range.end.saturating_sub(1));
        complain(&match recovery.stretches.get(at) {
            Some(Stretch { bytes, keys, fault }) => {
                let keys = plural(*keys, "key", "keys");
                let until = fault.as_ref().map_or_else(|| ", the end mark".into(), |fault| format!("; next fault: {fault}"));
                format!("{skipped}; recovered {keys} behind them, up to byte {}{until}", bytes.end)
            }
            None if recovery.gave_up => format!("{skipped}: too much in them looks like records, the search was given up"),
            None => format!("{skipped}: no records that can be relied on are in them"),
        });
    }
    if recovery.skipped.len() > RANGES_TOLD {
        let more = plural((recovery.skipped.len() - RANGES_TOLD) as u64, "more range was skipped", "more ranges were skipped");
        complain(&format!("{name}: {more}; recovered {} in all", plural(recovery.keys(), "key", "keys")));
    }
}

/// Warns of what is not wrong with the end of a dump, and yet to be known.
fn explain_end(global: &Global, dump: &Dump, end: &ScanEnd) {
    let name = dump.name();
    if dump.head.dialect().is_newer_than_known() {
        let header = dump.head.dialect().header();
        let header = String::from_utf8_lossy(&header);
        let read = if end.is_whole { "its content was understood all the same" } else { "and could not be read to its end" };
        warn(global, &format!("{name}: {header} is newer than this version knows; {read}"));
    }
    match end.checksum {
        ChecksumState::Disabled => {
            warn(global, &format!("{name}: the server wrote no checksum (rdbchecksum no): bytes were not verified"))
        }
        ChecksumState::Absent => {
            warn(global, &format!("{name}: this version of the format has no checksum: bytes were not verified"))
        }
        _ => {}
    }
    if dump.input.is_payload() {
        note(global, &format!("{name}: the answer to DUMP: one key, whose name it does not hold"));
    }
    match dump.input.capture() {
        Some(Capture::Length(announced)) if end.is_whole && announced != end.stored_bytes => {
            let read = plural(end.stored_bytes, "byte", "bytes");
            warn(global, &format!("{name}: the replication stream announced {announced} bytes, the dump in it takes {read}"));
        }
        _ if analyse::has_mark(dump, end) == Some(false) => {
            warn(
                global,
                &format!("{name}: the mark that ends the transfer does not follow the dump: its last bytes are missing"),
            );
        }
        _ => {}
    }
    let trailing = analyse::trailing_bytes(dump, end);
    if trailing > 0 {
        let n = plural(trailing, "byte", "bytes");
        let is_aof = end.rest.first.first() == Some(&b'*') || dump.head.aux("aof-preamble") == Some("1");
        let what = match (dump.input.capture(), is_aof) {
            (Some(_), _) => "(replication stream) not analysed",
            (None, true) => "(AOF tail) not analysed",
            (None, false) => "not analysed",
        };
        warn(global, &format!("{name}: {n} after the RDB end {what}"));
    }
}

/// Prepares the folder for tables, where one is named; complains where that fails.
fn folder(path: Option<&Path>, force: bool) -> Result<Option<Folder>, Exit> {
    path.map(|path| {
        Folder::prepare(path, force).map_err(|error| {
            complain(&format!("{}: {error}{}", shown(path), output::advice(&error, true)));
            Exit::Output
        })
    })
    .transpose()
}

/// Begins a file that must be none of the inputs.
fn new_file(path: &Path, input: &InputArgs) -> Result<WholeFile, String> {
    if input.dumps.iter().chain(&input.contracts).any(|input| same_file(input, path)) {
        return Err(format!("{}: is one of the inputs: name another file", shown(path)));
    }
    WholeFile::create(path).map_err(|error| format!("{}: {error}", shown(path)))
}

/// Writes tables as CSV to files that get their names when they are finished.
fn table_files(folder: &Folder, tables: &[Table]) -> io::Result<Vec<WholeFile>> {
    let mut files = Vec::new();
    for table in tables {
        let mut file = folder.file(&format!("{}.csv", table.name))?;
        render::csv_table(table, &mut file)?;
        files.push(file);
    }
    Ok(files)
}

/// Writes all of a file.
fn finish(mut file: WholeFile, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    WholeFile::finish([file])
}

/// Prints to standard output; a closed pipe ends quietly.
fn print(text: &[u8]) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("standard output: {error}{}", output::advice(&error, false)));
            Exit::Output
        }
        _ => Exit::Done,
    }
}

/// True where standard output shows colours.
fn colours(global: &Global) -> bool {
    match global.color {
        crate::cli::ColorChoice::Always => true,
        crate::cli::ColorChoice::Never => false,
        crate::cli::ColorChoice::Auto => {
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}
