//! `holdfast drill`: load, faults, and every answer held against the ledger.

mod boundary;
mod check;
mod drive;
mod list;
mod offer;
mod owned;
mod place;
mod private;
mod result;
mod run;
mod share;
mod stage;
mod target;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// What to drill.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Run(run::Args),
    Boundary(boundary::Args),
    Check(check::Args),
    Offer(offer::Args),
    #[command(hide = true)]
    Share(share::Args),
    Stage(stage::Args),
}

/// Does it.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::List(args) => list::run(&args),
        Command::Run(args) => run::run(args).await,
        Command::Boundary(args) => boundary::run(args).await,
        Command::Check(args) => check::run(args).await,
        Command::Offer(args) => offer::run(args).await,
        Command::Share(args) => share::run(args).await,
        Command::Stage(args) => stage::run(args).await,
    }
}
