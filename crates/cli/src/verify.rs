//! `holdfast verify`: the invariants, from the authority alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use holdfast_core::audit::Report;
use holdfast_core::invariant::Invariant;
use holdfast_core::ledger::Entry;
use holdfast_core::time::Timestamp;
use holdfast_store::AuditWatch;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::chain::{Chain, Chained};
use crate::database;
use crate::output::{self, Format};

/// Entries after which the progress is drawn anew.
const ENTRIES_A_STEP: u64 = 1_000;
/// Most pools that are printed as text; all are in the JSON.
const POOLS_SHOWN_MAX: usize = 50;

/// Check the invariants INV1 to INV12 of a database, pool by pool
#[derive(Debug, clap::Args)]
#[command(after_help = "It only reads, and may run beside a server. Exit status 1 on any breach.\n\n\
                        Example:\n  holdfast verify --database sqlite:holdfast.db --format json")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) authority: database::Named,
    /// Judge the ledger as of this time, such as 2026-11-27T10:00:00Z: the balances that its entries up to then add up
    /// to, without what stands only for now
    #[arg(long, value_name = "TIME", value_parser = output::time)]
    pub(crate) as_of: Option<Timestamp>,
    /// Hold the ledger against the hash chain in this file, whatever else is right, and seal what is new in it; best kept
    /// where nobody who may write the database may write
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "holdfast.chain",
        conflicts_with = "as_of"
    )]
    pub(crate) chain: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Serialize)]
struct Verdict {
    ok: bool,
    /// Only where the ledger was judged as of a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    invariants: Vec<InvariantVerdict>,
    pools: Vec<PoolVerdict>,
    orders: BTreeMap<&'static str, u64>,
    ledger_entries: u64,
    payments: u64,
    /// How many entries repair something: they show for ever.
    repairs: u64,
    breaches: Vec<BreachVerdict>,
    /// Only where the ledger was held against a hash chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<Chained>,
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
        let is_shown = |invariant: &Invariant| match report.as_of {
            Some(_) => invariant.shown_by_past(),
            None => invariant.shown_by_authority(),
        };
        Self {
            ok: report.is_clean(),
            as_of: report.as_of.map(holdfast_server::time_text),
            invariants: Invariant::ALL
                .iter()
                .map(|invariant| InvariantVerdict {
                    code: invariant.code(),
                    name: invariant.name(),
                    breaches: is_shown(invariant).then(|| count(invariant)),
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
            repairs: report.repairs,
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
            chain: None,
        }
    }
}

/// Shows how far an audit has come, and goes on with the chain.
struct Watch {
    bar: ProgressBar,
    chain: Option<Chain>,
}

impl AuditWatch for Watch {
    fn progress(&mut self, read: u64, of: u64) {
        // Drawing costs more than an entry.
        if read.is_multiple_of(ENTRIES_A_STEP) {
            self.bar.set_length(of);
            self.bar.set_position(read);
        }
    }

    fn entry(&mut self, entry: &Entry) {
        if let Some(chain) = &mut self.chain {
            chain.add(entry);
        }
    }
}

/// Checks, prints, and says by the exit status whether all is well.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let database = args.authority.url()?;
    let as_of = args.as_of.map(Timestamp::end_of_millisecond);
    let chain = args.chain.as_deref().map(Chain::open).transpose()?;
    let watch = Watch { bar: output::progress(0, "entries"), chain };
    let (report, watch) = database.audit_as_of(as_of, watch).await?;
    watch.bar.finish_and_clear();
    let mut verdict = Verdict::from(report);
    verdict.chain = watch.chain.map(Chain::finish).transpose()?;
    verdict.ok &= verdict.chain.as_ref().is_none_or(Chained::is_whole);
    output::show(args.format, &verdict, text)?;
    Ok(output::verdict(verdict.ok))
}

/// The same of any authority, for the drill.
pub(crate) async fn verdicts(database: &str) -> Result<Vec<holdfast_drill::InvariantVerdict>> {
    let verdict = Verdict::from(database::Url::parse(database)?.audit().await?);
    let verdicts = verdict.invariants.into_iter().map(|of| holdfast_drill::InvariantVerdict {
        code: of.code.to_owned(),
        name: of.name.to_owned(),
        breaches: of.breaches,
    });
    Ok(verdicts.collect())
}

fn text(verdict: &Verdict) -> Result<String> {
    let mut out = String::new();
    for invariant in &verdict.invariants {
        let found = match invariant.breaches {
            Some(0) => "ok".to_owned(),
            Some(breaches) => format!("{breaches} BREACHES"),
            None if verdict.as_of.is_some() => "only as of now".to_owned(),
            None => "needs what clients or sinks saw".to_owned(),
        };
        writeln!(out, "{:<6} {:<30} {found}", invariant.code, invariant.name)?;
    }
    writeln!(out)?;
    if let Some(at) = &verdict.as_of {
        writeln!(out, "as of {at}:")?;
    }
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
    if verdict.repairs > 0 {
        writeln!(out, "{} repairs, which show for ever", verdict.repairs)?;
    }
    for breach in &verdict.breaches {
        writeln!(
            out,
            "{} {}: expected {}, found {}",
            breach.code, breach.subject, breach.expected, breach.actual
        )?;
    }
    if let Some(chain) = &verdict.chain {
        out.push_str(&chain.text());
    }
    Ok(out)
}
