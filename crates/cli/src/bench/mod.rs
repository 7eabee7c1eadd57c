//! `holdfast bench`: what this machine can do, with floors and ceilings measured in the same run.

mod beside;
mod buckets;
mod cache;
mod engine;
mod expiry;
mod floor;
mod imports;
mod limits;
mod load;
mod paths;
mod reconcile;
mod report;
mod scrape;
mod sinks;
mod stage;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Paths(paths::Args),
    Buckets(buckets::Args),
    Limits(limits::Args),
    Expiry(expiry::Args),
    Imports(imports::Args),
    Cache(cache::Args),
    Reconcile(reconcile::Args),
    Sinks(sinks::Args),
}

/// Measures and prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Paths(args) => paths::run(args).await,
        Command::Buckets(args) => buckets::run(args).await,
        Command::Limits(args) => limits::run(args).await,
        Command::Expiry(args) => expiry::run(args).await,
        Command::Imports(args) => imports::run(args).await,
        Command::Cache(args) => cache::run(args).await,
        Command::Reconcile(args) => reconcile::run(args).await,
        Command::Sinks(args) => sinks::run(args).await,
    }
}
