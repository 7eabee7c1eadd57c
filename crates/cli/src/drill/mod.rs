//! `holdfast drill`: load, faults, and every answer held against the ledger.

mod private;
mod stage;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// What to drill.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stage(stage::Args),
}

/// Does it.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Stage(args) => stage::run(args).await,
    }
}
