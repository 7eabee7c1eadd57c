//! `holdfast reconcile`, `holdfast case` and `holdfast discrepancy`: a running server compares itself, and people decide
//! what it may not mend by itself.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};
use holdfast_client::{CasesQuery, Client, DiscrepanciesQuery};
use holdfast_wire::{CaseView, DiscrepancyView, ReconcileRequest, ReconciliationView, ResolveCaseRequest};
use serde::Serialize;

use crate::output::{self, Format, Target};

/// Between two looks at a run.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Compare balances, ledger, orders, payments and usage of a running server
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It runs beside the sales. What is safe to mend is mended; the rest freezes its pool and waits as \
                        a case.\nWith --wait: exit status 1 if a difference is open afterwards.\n\n\
                        Example:\n  holdfast reconcile --full --wait --target http://127.0.0.1:8080"
)]
pub(crate) struct ReconcileArgs {
    /// Everything; without it every balance, and the entries and orders since the last run
    #[arg(long)]
    full: bool,
    /// Wait for the end, and list what is open then
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What to do with differences.
#[derive(Debug, Subcommand)]
pub(crate) enum DiscrepancyCommand {
    List(DiscrepanciesArgs),
}

/// Whether something is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiscrepancyState {
    /// It is there
    Open,
    /// A command mended it
    Repaired,
    /// It was gone when it was looked for again
    Resolved,
}

/// List differences that reconciliation found
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast discrepancy list --target http://127.0.0.1:8080")]
pub(crate) struct DiscrepanciesArgs {
    /// How they stand
    #[arg(long, value_enum, default_value_t = DiscrepancyState::Open)]
    state: DiscrepancyState,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What to do with cases.
#[derive(Debug, Subcommand)]
pub(crate) enum CaseCommand {
    List(CasesArgs),
    Resolve(ResolveArgs),
}

/// Whether somebody still has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CaseState {
    /// It waits for a person
    Open,
    /// A person has decided
    Resolved,
}

/// List what needs a person
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast case list --target http://127.0.0.1:8080")]
pub(crate) struct CasesArgs {
    /// How they stand
    #[arg(long, value_enum, default_value_t = CaseState::Open)]
    state: CaseState,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// It is known, and nothing is to be done
    Acknowledge,
    /// The ledger holds: rows are made what it says
    AcceptLedger,
    /// The rows hold: the ledger gets what it lacks
    AcceptBalance,
    /// What has no other half is moved back
    Compensate,
}

/// Decide on a case
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The same again changes nothing. Above the campaign's approval threshold a second person must \
                        agree.\n\n\
                        Example:\n  holdfast case resolve 01937a5e-0000-7000-8000-0000000000ff --action \
                        accept-ledger --operator pia --reason 'the row was edited' --target http://127.0.0.1:8080"
)]
pub(crate) struct ResolveArgs {
    /// The case, as `case list` shows it
    #[arg(value_name = "CASE_ID")]
    id: String,
    /// What is decided: one of the case's actions
    #[arg(long, value_enum)]
    action: Action,
    /// Who decides
    #[arg(long, value_name = "NAME")]
    operator: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A run and what is open after it.
#[derive(Serialize)]
struct Seen {
    #[serde(flatten)]
    run: ReconciliationView,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Vec<DiscrepancyView>>,
}

/// The word that JSON has for a value.
fn spelled(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().replace('-', "_")).unwrap_or_default()
}

/// Asks for a run.
pub(crate) async fn reconcile(args: ReconcileArgs) -> Result<ExitCode> {
    let client = args.target.client()?;
    let scope = if args.full { "full" } else { "incremental" };
    let asked = client.reconcile(&ReconcileRequest { scope: Some(scope.to_owned()) }).await?;
    let seen = if args.wait {
        let run = ended(&client, asked).await?;
        let query = DiscrepanciesQuery { state: Some("open".to_owned()), class: None };
        Seen { run, open: Some(client.every_discrepancy(&query).await?) }
    } else {
        Seen { run: asked, open: None }
    };
    match args.format {
        Format::Json => output::print_json(&seen)?,
        Format::Text => {
            output::print(&run_text(&seen.run))?;
            seen.open.iter().flatten().try_for_each(|open| output::print(&discrepancy_text(open)))?;
        }
    }
    if let Some(failure) = &seen.run.failure {
        bail!("the reconciliation failed: {failure}");
    }
    Ok(output::verdict(seen.open.is_none_or(|open| open.is_empty())))
}

async fn ended(client: &Client, asked: ReconciliationView) -> Result<ReconciliationView> {
    let bar = output::progress(0, "entries");
    let mut run = asked;
    while run.state == "running" {
        rest().await;
        run = client.reconciliation(&run.id).await?;
        bar.set_position(run.entries_read);
    }
    bar.finish_and_clear();
    Ok(run)
}

#[expect(clippy::disallowed_methods, reason = "between two looks at a run; nothing depends on its length")]
async fn rest() {
    tokio::time::sleep(LOOK_EVERY).await;
}

/// Lists differences.
pub(crate) async fn discrepancies(command: DiscrepancyCommand) -> Result<ExitCode> {
    let DiscrepancyCommand::List(args) = command;
    let query = DiscrepanciesQuery { state: Some(spelled(&args.state)), class: None };
    let found = args.target.client()?.every_discrepancy(&query).await?;
    match args.format {
        Format::Json => output::print_json(&found)?,
        Format::Text if found.is_empty() => output::print("there is none")?,
        Format::Text => found.iter().try_for_each(|found| output::print(&discrepancy_text(found)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists cases, or decides on one.
pub(crate) async fn cases(command: CaseCommand) -> Result<ExitCode> {
    match command {
        CaseCommand::List(args) => {
            let query = CasesQuery { state: Some(spelled(&args.state)), kind: None };
            let found = args.target.client()?.every_case(&query).await?;
            match args.format {
                Format::Json => output::print_json(&found)?,
                Format::Text if found.is_empty() => output::print("there is none")?,
                Format::Text => found.iter().try_for_each(|case| output::print(&case_text(case)))?,
            }
        }
        CaseCommand::Resolve(args) => {
            let request = ResolveCaseRequest {
                action: spelled(&args.action),
                reason: args.reason,
                operator: args.operator,
            };
            let decided = args.target.client()?.decide_case(&args.id, &request).await?.value;
            match args.format {
                Format::Json => output::print_json(&decided)?,
                Format::Text => {
                    let state = decided.get("state").and_then(|state| state.as_str()).unwrap_or_default();
                    output::print(&format!("case {}: {state}", args.id))?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_text(run: &ReconciliationView) -> String {
    let ReconciliationView { id, state, scope, buckets_read, entries_read, orders_read, found, .. } = run;
    let found: Vec<_> = found.iter().map(|(class, count)| format!("{class} {count}")).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    format!(
        "reconciliation {id}  {scope}  {state}: {buckets_read} buckets, {entries_read} entries, {orders_read} orders; found {found}"
    )
}

fn discrepancy_text(found: &DiscrepancyView) -> String {
    let DiscrepancyView { id, class, state, disposition, expected, actual, cycles, .. } = found;
    let place = [
        found.pool_id.as_ref().map(|pool| format!("pool {pool}")),
        found.bucket.map(|bucket| format!("bucket {bucket}")),
        found.order_id.as_ref().map(|order| format!("order {order}")),
    ];
    let place: Vec<_> = place.into_iter().flatten().collect();
    format!(
        "{id}  {class}  {state}  {disposition}  {}\n  expected {expected}, found {actual}; seen {cycles} times since {}",
        place.join(", "),
        found.first_seen_at
    )
}

fn case_text(case: &CaseView) -> String {
    let CaseView { id, kind, state, evidence, opened_at, .. } = case;
    let end = match &case.resolution {
        Some(decided) => {
            format!("{} by {} at {}: {}", decided.action, decided.operator, decided.at, decided.reason)
        }
        None => format!("suggested {}, possible {}", case.suggested, case.actions.join(", ")),
    };
    format!("{id}  {kind}  {state}  since {opened_at}\n  {evidence}\n  {end}")
}
