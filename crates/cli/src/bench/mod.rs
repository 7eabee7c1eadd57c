//! `holdfast bench`: what this machine can do, with floors and ceilings measured in the same run.

mod engine;
mod limits;
mod load;
mod report;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Limits(limits::Args),
}

/// Measures and prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Limits(args) => limits::run(args).await,
    }
}
