//! `holdfast drill share`: what a drill starts to share its load.

use std::process::ExitCode;

use anyhow::Result;
use tokio::io::{BufReader, stdin, stdout};

use crate::serve::Hidden;

/// Take a share of a drill's load; a drill starts this itself
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  holdfast drill run hot-pool --target http://127.0.0.1:8080 --processes 2"
)]
pub(crate) struct Args {
    /// The key for the deployment
    #[arg(long, env = "HOLDFAST_KEY", hide_env_values = true)]
    key: Option<Hidden>,
}

/// Does what it is told.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let key = args.key.map(|Hidden(key)| key).filter(|key| !key.is_empty());
    holdfast_drill::help(BufReader::new(stdin()), stdout(), key).await?;
    Ok(ExitCode::SUCCESS)
}
