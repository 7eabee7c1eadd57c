//! `holdfast import stock`: opens pools from a file, all of it or nothing.

mod stock_file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Subcommand, ValueEnum};
use holdfast_client::{Client, Error};
use holdfast_wire::OpenPoolRequest;
use serde::Serialize;
use tokio::task::JoinSet;

use self::stock_file::{Fault, StockRow};
use crate::output::{self, Format, Target};

/// Pools that are opened at once.
const OPENING_MAX: usize = 16;

/// Faults that are shown to people; programs get all.
const SHOWN_MAX: usize = 100;

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What to import.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stock(StockArgs),
}

/// What the quantities mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Pools open with them
    Open,
    /// They come in on top of what is there
    Inbound,
    /// They were counted
    Count,
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Inbound => "inbound",
            Self::Count => "count",
        }
    }
}

/// Open pools from a CSV file: columns sku, location (may be absent: main), quantity
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The whole file is checked first; a fault anywhere, and nothing is done. Importing the \
                        same file again\nchanges nothing. Exit status 1 if the file has faults or a pool was \
                        refused.\n\n\
                        Example:\n  holdfast import stock stock.csv --campaign spring --target \
                        http://127.0.0.1:8080"
)]
pub(crate) struct StockArgs {
    /// The file: CSV in UTF-8 with a header
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The campaign that the pools belong to
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: String,
    /// What the quantities mean
    #[arg(long, value_enum, default_value_t = Mode::Open)]
    mode: Mode,
    /// Only check the file
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What came of it; the names are those of the JSON.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    campaign_id: String,
    mode: &'static str,
    dry_run: bool,
    ok: bool,
    rows: usize,
    units: u64,
    /// Pools that are new.
    opened: u64,
    /// Pools that had been opened just so before.
    unchanged: u64,
    errors: Vec<Fault>,
}

/// Checks, imports, prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let Command::Stock(args) = command;
    match args.mode {
        Mode::Open => {}
        Mode::Inbound | Mode::Count => {
            bail!("--mode {} is not built yet; only --mode open is", args.mode.as_str())
        }
    }
    let mut report = Report {
        file: args.file.display().to_string(),
        campaign_id: args.campaign.clone(),
        mode: args.mode.as_str(),
        dry_run: args.dry_run,
        ok: false,
        rows: 0,
        units: 0,
        opened: 0,
        unchanged: 0,
        errors: Vec::new(),
    };
    // A target that cannot be used is known before the file is read.
    let client = if args.dry_run { None } else { Some(args.target.client()?) };
    match stock_file::read(&load(&args.file)?) {
        Ok(rows) => {
            report.rows = rows.len();
            report.units = rows.iter().fold(0, |sum, row| row.quantity.saturating_add(sum));
            if let Some(client) = client {
                open(&client, &args.campaign, rows, &mut report).await?;
            }
        }
        Err(faults) => report.errors = faults,
    }
    report.errors.sort_by_key(|fault| fault.line);
    report.ok = report.errors.is_empty();
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report))?,
    }
    Ok(output::verdict(report.ok))
}

fn load(path: &Path) -> Result<Vec<u8>> {
    let name = || path.display().to_string();
    let length = std::fs::metadata(path).with_context(name)?.len();
    if length > FILE_BYTES_MAX {
        bail!("{} is larger than {FILE_BYTES_MAX} bytes", name());
    }
    std::fs::read(path).with_context(name)
}

/// Opens the pools. What is refused is reported by line; without an answer the import stops, and may be
/// repeated whole.
async fn open(client: &Client, campaign: &str, rows: Vec<StockRow>, report: &mut Report) -> Result<()> {
    client.campaign(campaign).await.with_context(|| format!("the campaign {campaign:?} cannot be read"))?;
    let bar = output::progress(rows.len(), "opening pools");
    let mut tasks = JoinSet::new();
    for row in rows {
        if tasks.len() >= OPENING_MAX {
            note(tasks.join_next().await, report)?;
            bar.inc(1);
        }
        let request = OpenPoolRequest {
            campaign_id: campaign.to_owned(),
            sku: row.sku,
            location: Some(row.location),
            supply: row.quantity,
            buckets: None,
            path: None,
            routing: None,
        };
        let client = client.clone();
        tasks.spawn(async move { (row.line, client.open_pool(&request).await.map(|answer| answer.status)) });
    }
    while let Some(joined) = tasks.join_next().await {
        note(Some(joined), report)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

type Joined = Result<(u64, Result<u16, Error>), tokio::task::JoinError>;

fn note(joined: Option<Joined>, report: &mut Report) -> Result<()> {
    let Some(joined) = joined else { return Ok(()) };
    let (line, answer) = joined.context("an opening was cut off")?;
    match answer {
        Ok(201) => report.opened = report.opened.saturating_add(1),
        Ok(_) => report.unchanged = report.unchanged.saturating_add(1),
        Err(Error::Problem(problem)) if matches!(problem.status, 400 | 404 | 409 | 413 | 422) => {
            let code = problem.code.into_owned();
            report.errors.push(Fault { line, column: None, code, detail: problem.detail });
        }
        Err(error) => {
            let done = report.opened.saturating_add(report.unchanged);
            return Err(anyhow!(error).context(format!(
                "line {line}: no answer; {done} pools are open, and the import may be repeated"
            )));
        }
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let mut lines: Vec<_> = report
        .errors
        .iter()
        .take(SHOWN_MAX)
        .map(|fault| {
            let column = fault.column.as_deref().map_or(String::new(), |column| format!(", {column}"));
            format!("line {}{column}: {}: {}", fault.line, fault.code, fault.detail)
        })
        .collect();
    let more = report.errors.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let done = report.opened.saturating_add(report.unchanged);
    lines.push(match (report.ok, report.dry_run) {
        (true, true) => format!("{} rows, {} units: the file is good", report.rows, report.units),
        (true, false) => format!(
            "{} rows, {} units: {} pools opened, {} had been opened before",
            report.rows, report.units, report.opened, report.unchanged
        ),
        (false, _) if done > 0 => format!("faults: {}; {done} pools are open", report.errors.len()),
        (false, _) => format!("faults: {}; nothing was done", report.errors.len()),
    });
    lines.join("\n")
}
