//! Every flag, and nothing else.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rdbscope::time;

/// Offline analyser of Redis and Valkey snapshots.
#[derive(Debug, Parser)]
#[command(name = "rdbscope", version, about, max_term_width = 100, arg_required_else_help = true, subcommand_required = true)]
#[command(after_help = "\
Exit codes: 0 done · 2 the command line is wrong · 3 an input cannot be opened or is damaged (what could be read is reported) · 4 an
output could not be written")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Threads to work with; all cores unless given
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// No progress and no warnings on stderr; errors stay
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Colours on the terminal
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// Bytes of a piece of work; results do not depend on it
    #[arg(long, global = true, hide = true, value_name = "BYTES")]
    pub piece_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look: what is in there, how big, how long it lives, where it lands
    Report(ReportArgs),
    /// Look: the head and the end of a dump, in milliseconds on any size
    Info(InfoArgs),
    /// Look: one row for every key
    Keys(KeysArgs),
}

#[derive(Debug, Args)]
pub struct InputArgs {
    /// RDB files
    #[arg(required = true, value_name = "DUMP")]
    pub dumps: Vec<PathBuf>,
    /// Judge expiries against this moment (2026-01-31T06:00:00Z or Unix seconds) instead of the dump's own
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    pub as_of: Option<i64>,
    /// Do not verify the checksum
    #[arg(long)]
    pub no_checksum: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Folder to write the tables to, as CSV; it must be empty or new
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Write into a folder that is not empty; files of the same names are replaced
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Big keys for each type, by memory and by elements
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub top: u32,
    /// Permanent keys that are listed
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub permanent_limit: u32,
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// RDB file
    #[arg(value_name = "DUMP")]
    pub dump: PathBuf,
    /// Walk the whole file and count
    #[arg(long)]
    pub full: bool,
}

#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// File to write to instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the rows
    #[arg(long, value_enum, default_value_t = KeysFormat::Csv)]
    pub format: KeysFormat,
    /// Columns and their order, as a,b,c; payload_bytes and largest_element_bytes cost a look into packed values
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "preset")]
    pub columns: Vec<String>,
    /// Columns of another tool: rdbtools is the memory report of redis-rdb-tools
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeysFormat {
    Csv,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    Rdbtools,
}

/// Parses the command line; help and mistakes are printed here.
pub fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if error.kind() == clap::error::ErrorKind::InvalidSubcommand
            && let Some(path) = std::env::args_os().skip(1).find(|arg| Path::new(arg).exists())
        {
            let path = path.to_string_lossy();
            eprintln!("rdbscope: did you mean `rdbscope report {path}`?");
            return ExitCode::from(2);
        }
        // A closed pipe is no reason to say anything.
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    })
}
