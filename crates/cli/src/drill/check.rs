//! `holdfast drill check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::result;
use super::target::Targets;
use crate::output::{self, Format};

/// Judge a history that was kept once more, by what the authority says now
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status 1 on any breach.\n\n\
                        Example:\n  holdfast drill check --history run.jsonl --target http://127.0.0.1:8080")]
pub(crate) struct Args {
    /// The history, as `drill run --history` wrote it
    #[arg(long, value_name = "FILE")]
    history: PathBuf,
    #[command(flatten)]
    targets: Targets,
    /// The certificates, in PEM form, that servers behind https:// may be vouched for by; without it those that the
    /// system trusts
    #[arg(long, env = "HOLDFAST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Judges it.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let ca_pem = args.ca.as_ref().map(|path| std::fs::read(path).with_context(|| path.display().to_string()));
    let (asked, history) = holdfast_drill::read_history(&args.history)?;
    let node = args.targets.nodes()?.into_iter().next().context("name a running deployment with --target")?;
    let outcome =
        holdfast_drill::check(&asked, &history, &node, args.targets.key(), ca_pem.transpose()?).await?;
    match args.format {
        Format::Json => output::print_json(&outcome)?,
        Format::Text => output::print(&result::text(&outcome))?,
    }
    Ok(output::verdict(outcome.ok))
}
