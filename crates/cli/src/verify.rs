//! `holdfast verify`: the invariants, from the authority alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use holdfast_core::audit::Report;
use holdfast_core::invariant::Invariant;
use serde::Serialize;

use crate::database;
use crate::output::{self, Format};

/// Most pools that are printed as text; all are in the JSON.
const POOLS_SHOWN_MAX: usize = 50;

/// Check the invariants INV1 to INV12 of a database, pool by pool
#[derive(Debug, clap::Args)]
#[command(after_help = "It only reads, and may run beside a server. Exit status 1 on any breach.\n\n\
                        Example:\n  holdfast verify --database sqlite:holdfast.db --format json")]
pub(crate) struct Args {
    /// The authority
    #[arg(
        long,
        env = "HOLDFAST_DATABASE",
        hide_env_values = true,
        default_value = "sqlite:holdfast.db",
        value_name = "URL"
    )]
    pub(crate) database: String,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Serialize)]
struct Verdict {
    ok: bool,
    invariants: Vec<InvariantVerdict>,
    pools: Vec<PoolVerdict>,
    orders: BTreeMap<&'static str, u64>,
    ledger_entries: u64,
    payments: u64,
    breaches: Vec<BreachVerdict>,
}

#[derive(Serialize)]
struct InvariantVerdict {
    code: &'static str,
    name: &'static str,
    /// None: the rows alone cannot show it.
    breaches: Option<u64>,
}

#[derive(Serialize)]
struct PoolVerdict {
    pool_id: String,
    campaign_id: String,
    sku: String,
    location: String,
    supply: i64,
    available: u64,
    held: u64,
    sold: u64,
    ledger_entries: u64,
    breaches: u64,
}

#[derive(Serialize)]
struct BreachVerdict {
    code: &'static str,
    subject: String,
    expected: String,
    actual: String,
}

impl From<Report> for Verdict {
    fn from(report: Report) -> Self {
        let count = |invariant: &Invariant| report.counts.get(invariant).copied().unwrap_or(0);
        Self {
            ok: report.is_clean(),
            invariants: Invariant::ALL
                .iter()
                .map(|invariant| InvariantVerdict {
                    code: invariant.code(),
                    name: invariant.name(),
                    breaches: invariant.shown_by_authority().then(|| count(invariant)),
                })
                .collect(),
            pools: report
                .pools
                .iter()
                .map(|pool| PoolVerdict {
                    pool_id: pool.id.to_string(),
                    campaign_id: pool.campaign.to_string(),
                    sku: pool.sku.to_string(),
                    location: pool.location.to_string(),
                    supply: pool.supply,
                    available: pool.available,
                    held: pool.held,
                    sold: pool.sold,
                    ledger_entries: pool.entries,
                    breaches: pool.breaches,
                })
                .collect(),
            orders: report.orders.clone(),
            ledger_entries: report.entries,
            payments: report.payments,
            breaches: report
                .breaches
                .iter()
                .map(|breach| BreachVerdict {
                    code: breach.invariant.code(),
                    subject: breach.subject.clone(),
                    expected: breach.expected.clone(),
                    actual: breach.actual.clone(),
                })
                .collect(),
        }
    }
}

/// Checks, prints, and says by the exit status whether all is well.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let database = database::Url::parse(&args.database)?;
    let report = database.audit().await?;
    let verdict = Verdict::from(report);
    match args.format {
        Format::Json => output::print_json(&verdict)?,
        Format::Text => output::print(text(&verdict)?.trim_end())?,
    }
    Ok(output::verdict(verdict.ok))
}

fn text(verdict: &Verdict) -> Result<String> {
    let mut out = String::new();
    for invariant in &verdict.invariants {
        let found = match invariant.breaches {
            Some(0) => "ok".to_owned(),
            Some(breaches) => format!("{breaches} BREACHES"),
            None => "needs what clients or sinks saw".to_owned(),
        };
        writeln!(out, "{:<6} {:<30} {found}", invariant.code, invariant.name)?;
    }
    writeln!(out)?;
    let shown = verdict.pools.iter().take(POOLS_SHOWN_MAX);
    for pool in shown {
        writeln!(
            out,
            "{} {} at {}: supply {} = available {} + held {} + sold {}, {} entries",
            pool.campaign_id,
            pool.sku,
            pool.location,
            pool.supply,
            pool.available,
            pool.held,
            pool.sold,
            pool.ledger_entries
        )?;
    }
    if verdict.pools.len() > POOLS_SHOWN_MAX {
        writeln!(out, "and {} more pools", verdict.pools.len() - POOLS_SHOWN_MAX)?;
    }
    let orders: Vec<String> =
        verdict.orders.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let orders = if orders.is_empty() { "none".to_owned() } else { orders.join(", ") };
    writeln!(
        out,
        "orders: {orders}; {} ledger entries, {} payment notices",
        verdict.ledger_entries, verdict.payments
    )?;
    for breach in &verdict.breaches {
        writeln!(
            out,
            "{} {}: expected {}, found {}",
            breach.code, breach.subject, breach.expected, breach.actual
        )?;
    }
    Ok(out)
}
