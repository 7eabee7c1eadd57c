//! `holdfast export stock`: what a campaign has, as a file that can be imported.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use holdfast_client::Download;
use tempfile::NamedTempFile;

use crate::output::Target;

/// What to export.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stock(StockArgs),
}

/// Write the stock of a campaign as CSV: sku, location, quantity
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The quantity is all that a pool has, held and sold units too. `holdfast import stock` \
                        reads the file as it is.\nA cell that a spreadsheet would take for a formula has an \
                        apostrophe before it; the import takes it away again.\nThe output file appears only \
                        when it is whole.\n\n\
                        Example:\n  holdfast export stock --campaign spring --output stock.csv --target \
                        http://127.0.0.1:8080"
)]
pub(crate) struct StockArgs {
    /// The campaign
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: String,
    /// Where to write; standard output if it is not given
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// Exports.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let Command::Stock(args) = command;
    let client = args.target.client()?;
    let cannot = || format!("the stock of {:?} cannot be exported", args.campaign);
    let download = client.export_stock(&args.campaign).await.with_context(cannot)?;
    match &args.output {
        None => copy(download, &mut stdout().lock()).await.with_context(cannot)?,
        Some(path) => save(download, path).await.with_context(cannot)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that is there whole or not at all.
async fn save(download: Download, path: &Path) -> Result<()> {
    let name = || path.display().to_string();
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).with_context(name)?;
    copy(download, &mut file).await?;
    file.as_file().sync_all().with_context(name)?;
    file.persist(path).with_context(name)?;
    Ok(())
}

async fn copy(mut download: Download, to: &mut impl Write) -> Result<()> {
    while let Some(piece) = download.next().await? {
        to.write_all(&piece)?;
    }
    Ok(to.flush()?)
}
