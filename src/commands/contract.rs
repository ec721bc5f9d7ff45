//! `rdbscope contract`.

use super::{Exit, contracts, print, shown};
use crate::cli::{ContractCommand, Global, ValidateArgs};
use crate::terminal::plural;

pub fn run(_global: &Global, command: &ContractCommand) -> Exit {
    match command {
        ContractCommand::Validate(args) => validate(args),
    }
}

fn validate(args: &ValidateArgs) -> Exit {
    match contracts(&args.file) {
        Ok(contracts) => {
            let classes = plural(contracts.classes.len() as u64, "class", "classes");
            print(format!("{}: ok, {classes}\n", shown(&args.file)).as_bytes())
        }
        Err(exit) => exit,
    }
}
