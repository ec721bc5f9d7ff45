//! The command line of rdbscope: parse, run, exit code.

mod cli;
mod commands;
mod output;
mod progress;
#[cfg_attr(unix, path = "signals.rs")]
#[cfg_attr(not(unix), path = "no_signals.rs")]
mod signals;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    signals::handle();
    commands::run(&cli).into()
}
