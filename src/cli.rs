//! Every flag, and nothing else.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};
use rdbscope::contract;
use rdbscope::filter::{Filter, LifetimeKind, NamePattern};
use rdbscope::findings::Severity;
use rdbscope::measure::{Allocator, Server};
use rdbscope::time;

use crate::commands;

/// Offline analyser of Redis and Valkey snapshots.
#[derive(Debug, Parser)]
#[command(name = "rdbscope", version, about, max_term_width = 100, arg_required_else_help = true, subcommand_required = true)]
#[command(after_help = "\
Exit codes: 0 done · 1 a rule is broken (`check`, `contract lint`) · 2 the command line or the contracts file is wrong · 3 an input cannot be opened or is damaged (what could be read is
reported) · 4 an output could not be written · 130 interrupted")]
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
    /// Bytes of a window of a stream; results do not depend on it
    #[arg(long, global = true, hide = true, value_name = "BYTES")]
    pub window_bytes: Option<usize>,
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
    /// Judge: what breaks the contracts, and a gate for it (exit code 1)
    Check(CheckArgs),
    /// Judge: the contracts file itself, and names without any dump
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Judge: is a dump whole and sound, to the last element
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub struct InputArgs {
    /// RDB files, also compressed or in tar archives; folders of them; - for standard input
    #[arg(required = true, value_name = "DUMP")]
    pub dumps: Vec<PathBuf>,
    /// Judge expiries against this moment (2026-01-31T06:00:00Z or Unix seconds) instead of the dump's own
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    pub as_of: Option<i64>,
    /// Do not verify the checksum
    #[arg(long)]
    pub no_checksum: bool,
    /// Contracts: what is agreed on the classes of keys (TOML)
    #[arg(long, short, value_name = "FILE")]
    pub contracts: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// The server whose memory and encodings are described.
#[derive(Debug, Args)]
#[command(next_help_heading = "The server that loads the dump")]
pub struct ServerArgs {
    /// Its version instead of the dump's own: 8.2, 7.0.15, valkey-9.1
    #[arg(long, value_name = "VERSION")]
    pub server_version: Option<Server>,
    /// Its allocator: jemalloc (bundled, the default), system (jemalloc of Debian and Ubuntu) or libc
    #[arg(long, value_name = "NAME")]
    pub allocator: Option<Allocator>,
    /// Its redis.conf, for the limits of compact encodings
    #[arg(long, value_name = "FILE")]
    pub server_config: Option<PathBuf>,
    /// It runs in cluster mode; slot records in the dump say so too
    #[arg(long)]
    pub cluster: bool,
}

/// Which keys are looked at.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Filters (all that are given must hold)")]
pub struct FilterArgs {
    /// Keys in these databases
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub db: Vec<u64>,
    /// Keys of these types, as TYPE names them
    #[arg(long, value_name = "TYPE", value_delimiter = ',', value_parser = type_name)]
    pub r#type: Vec<String>,
    /// Keys whose name matches a glob, as KEYS reads it; given again, any of them
    #[arg(long = "match", value_name = "GLOB", value_parser = NamePattern::glob)]
    pub matching: Vec<NamePattern>,
    /// Keys in whose name a regular expression matches; given again, any of them
    #[arg(long, value_name = "RE", value_parser = NamePattern::regex)]
    pub regex: Vec<NamePattern>,
    /// No keys whose name matches a glob
    #[arg(long, value_name = "GLOB", value_parser = NamePattern::glob)]
    pub exclude: Vec<NamePattern>,
    /// Keys of a class, by the name that a report gives it; given again, any of them
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<String>,
    /// Keys without expiry
    #[arg(long, group = "lifetime")]
    pub permanent: bool,
    /// Keys with an expiry still to come
    #[arg(long, group = "lifetime")]
    pub volatile: bool,
    /// Keys whose expiry has passed at the snapshot time
    #[arg(long, group = "lifetime")]
    pub expired: bool,
    /// Keys of at least so many bytes of memory (512, 10KB, 1mb)
    #[arg(long, value_name = "SIZE", value_parser = contract::size)]
    pub min_memory: Option<u64>,
}

impl FilterArgs {
    /// The filter that was asked for.
    pub fn filter(&self) -> Filter {
        let lifetime = match (self.permanent, self.volatile, self.expired) {
            (true, _, _) => Some(LifetimeKind::Permanent),
            (_, true, _) => Some(LifetimeKind::Volatile),
            (_, _, true) => Some(LifetimeKind::Expired),
            _ => None,
        };
        Filter {
            databases: self.db.clone(),
            types: self.r#type.clone(),
            matching: self.matching.clone(),
            finding: self.regex.clone(),
            excluding: self.exclude.clone(),
            classes: self.class.clone(),
            lifetime,
            min_memory: self.min_memory,
        }
    }
}

impl fmt::Display for FilterArgs {
    /// The flags as they could be given again; nothing without any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: String| flags.push(format!("{flag} {value}"));
        self.db.iter().for_each(|db| add("--db", db.to_string()));
        self.r#type.iter().for_each(|name| add("--type", name.clone()));
        self.matching.iter().for_each(|glob| add("--match", glob.to_string()));
        self.regex.iter().for_each(|regex| add("--regex", regex.to_string()));
        self.exclude.iter().for_each(|glob| add("--exclude", glob.to_string()));
        self.class.iter().for_each(|class| add("--class", class.clone()));
        if let Some(least) = self.min_memory {
            add("--min-memory", least.to_string());
        }
        for (given, flag) in [(self.permanent, "--permanent"), (self.volatile, "--volatile"), (self.expired, "--expired")] {
            if given {
                flags.push(flag.into());
            }
        }
        f.write_str(&flags.join(" "))
    }
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Search for keys behind the first fault of a damaged dump; they are in no total, and their database may be ?
    #[arg(long)]
    pub recover: bool,
    /// Look at a few hundred string values of each class, and write value_formats.csv; no value is shown
    #[arg(long, requires = "output")]
    pub values: bool,
    /// Folder to write the tables to, as CSV; it must be empty or new
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Write into a folder that is not empty; files of the same names are replaced
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Show key names as they are, personal data in them included
    #[arg(long)]
    pub show_sensitive: bool,
    /// Big keys for each type, by memory and by elements
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub top: u32,
    /// Permanent keys that are listed
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub permanent_limit: u32,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Findings from this severity on end the run with exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Warning, value_name = "SEVERITY")]
    pub fail_on: FailOn,
    /// Accepted findings: they fail nothing until their keys grow by more than 10 % and more than 10
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write all findings to a file that --baseline reads; fails nothing
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub write_baseline: Option<PathBuf>,
    /// Format of the findings
    #[arg(long, value_enum, default_value_t = CheckFormat::Terminal)]
    pub format: CheckFormat,
    /// File to write to instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Folder to write findings, permanent register, timeline of expiry, versions and formats of values to, as CSV; it must be empty or new
    #[arg(long, value_name = "DIR")]
    pub tables: Option<PathBuf>,
    /// Write into a folder that is not empty; files of the same names are replaced
    #[arg(long, requires = "tables")]
    pub force: bool,
    /// Example keys of each finding
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub examples: u16,
    /// Show key names as they are, personal data in them included
    #[arg(long)]
    pub show_sensitive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Error,
    Warning,
    Note,
    Never,
}

impl FailOn {
    /// The severity; `None` where nothing fails.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Note => Some(Severity::Note),
            Self::Never => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    Terminal,
    Csv,
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
    /// JUnit XML, for build servers
    Junit,
}

#[derive(Debug, Subcommand)]
pub enum ContractCommand {
    /// Look for mistakes in a contracts file
    Validate(ValidateArgs),
    /// Draft a contracts file from what dumps hold
    Discover(Box<DiscoverArgs>),
    /// Hold names of keys against the contracts, without any dump: for tests of the code that builds them
    Lint(LintArgs),
}

#[derive(Debug, Args)]
pub struct DiscoverArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// File to write to instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LintArgs {
    /// Names of keys; read from standard input, one a line, where none is given
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,
    /// Contracts: what is agreed on the classes of keys (TOML)
    #[arg(long, short, value_name = "FILE")]
    pub contracts: PathBuf,
    /// Names on standard input end in a zero byte, as `find -print0` writes them
    #[arg(short = '0', long, conflicts_with = "names")]
    pub null: bool,
    /// Format
    #[arg(long, value_enum, default_value_t = LintFormat::Text)]
    pub format: LintFormat,
    /// Findings from this severity on end the run with exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Warning, value_name = "SEVERITY")]
    pub fail_on: FailOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// For people
    Text,
    /// A list of objects, one for each name
    Json,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Contracts file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// RDB files, also compressed or in tar archives; folders of them; - for standard input
    #[arg(required = true, value_name = "DUMP")]
    pub dumps: Vec<PathBuf>,
    /// Do not verify the checksum
    #[arg(long)]
    pub no_checksum: bool,
    /// Look for records behind a fault, and verify on
    #[arg(long)]
    pub recover: bool,
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// RDB file, also compressed or in a tar archive; - for standard input
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
    /// Search for keys behind the first fault of a damaged dump; they are in no total, and their database may be ?
    #[arg(long)]
    pub recover: bool,
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
    /// Mask what looks like personal data or a token in names
    #[arg(long)]
    pub mask: bool,
    /// Replace every identifier in names by a hash keyed with the content of this file: joins still work
    #[arg(long, value_name = "SECRET_FILE", conflicts_with = "mask")]
    pub redact: Option<PathBuf>,
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

/// The name of a type: one of the core types in any case, or that of a module's.
fn type_name(text: &str) -> Result<String, String> {
    const CORE: [&str; 7] = ["string", "list", "set", "zset", "hash", "stream", "array"];
    let lower = text.to_ascii_lowercase();
    match CORE.iter().find(|name| **name == lower) {
        Some(name) => Ok((*name).into()),
        // Names of module types have nine characters; servers that add types of their own use shorter ones.
        None if text.len() == 9 || ["cron", "gcra", "path-hash"].contains(&text) => Ok(text.into()),
        None => Err(format!("no type '{text}': there are {}, and the nine characters of a module's type", CORE.join(", "))),
    }
}

/// Parses the command line; help and mistakes are printed here.
pub fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
            && Path::new(name).exists()
        {
            commands::complain(&format!("did you mean `rdbscope report {}`?", commands::shown(Path::new(name))));
            return ExitCode::from(2);
        }
        // A closed pipe is no reason to say anything.
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    })
}
