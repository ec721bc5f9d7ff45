//! The command line of rdbscope: parse, run, exit code.

mod cli;
mod commands;
mod output;
mod progress;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    commands::run(&cli).into()
}
