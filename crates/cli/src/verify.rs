//! `holdfast verify`: the invariants, from the authority alone.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::output::Format;

/// Check the invariants INV1 to INV12 of a database, pool by pool
#[derive(Debug, clap::Args)]
#[command(after_help = "It only reads, and may run beside a server. Exit status 1 on any breach.\n\n\
                        Example:\n  holdfast verify --database sqlite:holdfast.db --format json")]
pub(crate) struct Args {
    /// The authority
    #[arg(long, env = "HOLDFAST_DATABASE", value_name = "URL")]
    pub(crate) database: String,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Checks, prints, and says by the exit status whether all is well.
#[expect(clippy::unused_async, reason = "not wired yet")]
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    bail!("not wired yet: {args:?}")
}
