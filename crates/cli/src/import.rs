//! `holdfast import stock`: sends a stock file, and prints what became of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Subcommand, ValueEnum};
use holdfast_client::{Error, ImportQuery};
use holdfast_wire::{ImportLineView, ImportView, ProblemItem};
use serde::Serialize;

use crate::output::{self, Format, Target};

/// Faults that are shown to people; programs get all.
const SHOWN_MAX: usize = 100;

/// Longest file that is read: what the server takes.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// What to import.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stock(StockArgs),
}

/// What the quantities mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Pools open with them; a pool that is there is never changed
    Open,
    /// They come in on top of what is there
    Inbound,
    /// They were counted: what differs from the ledger as of the count is adjusted
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

/// Import a CSV file: columns sku, location (may be absent: main), quantity; for counts also counted_at, basis
/// (unsold or on_hand) and, with on_hand, shipped
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The whole file is applied, or nothing of it: a fault anywhere, and nothing is done. The same \
                        rows again\nchange nothing; a second delivery of just the same rows needs an --import-id \
                        of its own. Exit status 1 if the\nfile was refused.\n\n\
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
    /// Only have the file judged, against the stock that there is
    #[arg(long)]
    dry_run: bool,
    /// The key of the file; without it a hash of what its rows say
    #[arg(long, value_name = "ID")]
    import_id: Option<String>,
    /// Who imports it, for the ledger; without it the name of the key
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Why, for the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One fault, by its place.
#[derive(Debug, Serialize)]
struct Fault {
    /// The line, from 1; none if the file is not the reason.
    line: Option<u64>,
    /// The column's name; none where the whole line is meant.
    column: Option<String>,
    /// What, as a word for programs.
    code: String,
    /// What, for people.
    detail: String,
}

/// What came of it; the names are those of the JSON.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    campaign_id: String,
    mode: &'static str,
    dry_run: bool,
    ok: bool,
    import_id: Option<String>,
    /// It had been imported before.
    replayed: bool,
    rows: u64,
    units: u64,
    /// Pools that are new.
    opened: u64,
    /// Rows that changed nothing.
    unchanged: u64,
    /// Pools of which the supply changed.
    adjusted: u64,
    lines: Vec<ImportLineView>,
    errors: Vec<Fault>,
}

/// Imports, prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let Command::Stock(args) = command;
    // A target that cannot be used is known before the file is read.
    let client = args.target.client()?;
    let file = load(&args.file)?;
    let query = ImportQuery {
        campaign_id: args.campaign.clone(),
        mode: Some(args.mode.as_str().to_owned()),
        dry_run: args.dry_run,
        import_id: args.import_id.clone(),
        operator: args.operator.clone(),
        reason: args.reason.clone(),
    };
    let report = match client.import_stock(&query, file).await {
        Ok(answer) => of_view(&args, answer.value),
        Err(Error::Problem(problem)) if is_of_the_file(&problem.errors, problem.status) => {
            let errors = match problem.errors.as_slice() {
                [] => vec![Fault {
                    line: None,
                    column: None,
                    code: problem.code.into(),
                    detail: problem.detail,
                }],
                items => items.iter().map(fault).collect(),
            };
            Report { errors, ..empty(&args) }
        }
        Err(error) => {
            let what = if error.outcome_is_unknown() {
                "the answer was lost; import the file again: it is applied once"
            } else {
                "the file was not imported"
            };
            return Err(anyhow!(error).context(what));
        }
    };
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report))?,
    }
    Ok(output::verdict(report.ok))
}

/// Whether the answer speaks of the file; else it could not be asked.
fn is_of_the_file(errors: &[ProblemItem], status: u16) -> bool {
    errors.iter().any(|item| item.line.is_some()) || matches!(status, 409 | 413 | 422)
}

fn load(path: &Path) -> Result<Vec<u8>> {
    let name = || path.display().to_string();
    let length = std::fs::metadata(path).with_context(name)?.len();
    if length > FILE_BYTES_MAX {
        bail!("{} is larger than {FILE_BYTES_MAX} bytes", name());
    }
    std::fs::read(path).with_context(name)
}

fn empty(args: &StockArgs) -> Report {
    Report {
        file: args.file.display().to_string(),
        campaign_id: args.campaign.clone(),
        mode: args.mode.as_str(),
        dry_run: args.dry_run,
        ok: false,
        import_id: args.import_id.clone(),
        replayed: false,
        rows: 0,
        units: 0,
        opened: 0,
        unchanged: 0,
        adjusted: 0,
        lines: Vec::new(),
        errors: Vec::new(),
    }
}

fn of_view(args: &StockArgs, view: ImportView) -> Report {
    Report {
        ok: true,
        import_id: Some(view.import_id),
        replayed: view.replayed,
        rows: view.rows,
        units: view.units,
        opened: view.opened,
        unchanged: view.unchanged,
        adjusted: view.adjusted,
        lines: view.lines,
        ..empty(args)
    }
}

fn fault(item: &ProblemItem) -> Fault {
    let code = item.fault.as_ref().unwrap_or(&item.code).to_string();
    Fault { line: item.line, column: item.column.clone(), code, detail: item.detail.clone() }
}

fn text(report: &Report) -> String {
    let mut lines: Vec<_> = report
        .errors
        .iter()
        .take(SHOWN_MAX)
        .map(|fault| {
            let line = fault.line.map_or(String::new(), |line| format!("line {line}"));
            let column = fault.column.as_deref().map_or(String::new(), |column| format!(", {column}"));
            let place = format!("{line}{column}");
            let place = if place.is_empty() { place } else { format!("{place}: ") };
            format!("{place}{}: {}", fault.code, fault.detail)
        })
        .collect();
    let more = report.errors.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let Report { rows, units, opened, unchanged, adjusted, .. } = report;
    let done =
        format!("{rows} rows, {units} units: {opened} opened, {adjusted} adjusted, {unchanged} unchanged");
    lines.push(match report {
        Report { ok: false, errors, .. } => format!("faults: {}; nothing was done", errors.len()),
        Report { replayed: true, .. } => format!("{done}; it had been imported before, nothing was done now"),
        Report { dry_run: true, .. } => format!("{done}; nothing was done, the file is good"),
        Report { .. } => done,
    });
    lines.join("\n")
}
