//! `holdfast replay`: a real order export as load, with a check of every answer against the stock.

mod book;
mod http;
mod law;
mod plan;
mod rows;
mod run;
mod shop;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, ValueEnum};
use holdfast_client::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::http::HttpShop;
use self::law::{Opening, Summary, Tally};
use self::plan::{Plan, Rules};
use self::rows::Columns;
use self::shop::Shop;
use crate::output::{self, Format, Target};
use crate::private::PrivateServer;

/// Failures that are shown one by one.
const SHOWN_MAX: usize = 20;

/// Exports whose columns are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// The Online Retail data set: invoices that begin with C are returns, negative quantities elsewhere
    /// are write-offs
    OnlineRetail,
}

/// Replay an order export as load and check every answer against the stock
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("reading").required(true).args(["preset", "columns"])))]
#[command(after_help = "Without --target it runs against a private server on a free port with a temporary \
                        store. Each run makes a\ncampaign of its own. Exit status 1 if the law is broken, or \
                        an order was neither sold nor sold out.\n\n\
                        Example:\n  holdfast replay samples/retail-sample.csv --preset online-retail\n  \
                        holdfast replay orders.csv --columns order=No,sku=Item,quantity=Qty,account=Buyer \
                        --concurrency 8")]
pub(crate) struct Args {
    /// The export: CSV with a header
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An export whose columns are known
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// Which columns say what: order=…,sku=…,quantity=…[,account=…][,at=…]; rows whose quantity is not above 0
    /// are skipped
    #[arg(long, value_name = "KEY=COLUMN,…")]
    columns: Option<Columns>,
    #[command(flatten)]
    target: Target,
    /// How much of what is ordered there is, in percent
    #[arg(long, default_value_t = 100, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    supply_percent: u32,
    /// How many invoices are in flight; with 1 the outcome is exact
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    concurrency: u16,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Reads the file, replays it, prints the result.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let plan = read_plan(&args)?;
    let mut interruption = Interruption::watch()?;
    if args.target.named().is_some() {
        let client = args.target.client()?;
        return interruption.unless(replay(client, &args, plan)).await;
    }
    let server = interruption.unless(PrivateServer::start()).await?;
    let result = match Client::new(server.address(), None) {
        Ok(client) => interruption.unless(replay(client, &args, plan)).await,
        Err(error) => Err(error.into()),
    };
    let stopped = server.stop().await;
    let code = result?;
    stopped?;
    Ok(code)
}

/// Signals that end the work: an interrupted replay still stops its server and removes what it left.
struct Interruption {
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    fn watch() -> Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate })
    }

    async fn unless<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            result = work => result,
            _ = self.interrupt.recv() => bail!("interrupted"),
            _ = self.terminate.recv() => bail!("terminated"),
        }
    }
}

fn read_plan(args: &Args) -> Result<Plan> {
    let (columns, rules) = match (args.preset, &args.columns) {
        (None, Some(columns)) => (columns.clone(), Rules::Plain),
        (Some(Preset::OnlineRetail), Some(_) | None) | (None, None) => {
            (Columns::online_retail(), Rules::OnlineRetail)
        }
    };
    let name = || args.file.display().to_string();
    let rows = rows::read(&std::fs::read(&args.file).with_context(name)?, &columns).with_context(name)?;
    let plan = Plan::new(rows, rules, args.supply_percent).with_context(name)?;
    if plan.invoices.iter().all(|invoice| invoice.order.is_none()) {
        bail!("{} has no order", name());
    }
    Ok(plan)
}

async fn replay(client: Client, args: &Args, plan: Plan) -> Result<ExitCode> {
    let target = client.base_url().to_owned();
    let opening = Opening::new(&plan);
    let Plan { pools, invoices, skipped_rows } = plan;

    let bar = output::progress(pools.len(), "opening pools");
    let campaign = campaign_id(&args.file);
    let shop = Arc::new(HttpShop::open(client, campaign.clone(), &pools, &bar).await?);
    bar.finish_and_clear();

    let bar = output::progress(invoices.len(), "replaying");
    let start = Instant::now();
    let tally = run::replay(Arc::clone(&shop), invoices, usize::from(args.concurrency), &bar).await?;
    let took = start.elapsed();
    bar.finish_and_clear();

    complain("not expected", &tally.strange)?;
    complain("not answered", &tally.unanswered)?;
    let stock = shop.stock().await.context("the stock cannot be read after the replay")?;
    let summary = Summary::new(&opening, &tally, &stock);
    match args.format {
        Format::Json => output::print_json(&summary)?,
        Format::Text => {
            output::print(&text(&summary, &tally, skipped_rows, &format!("{campaign} at {target}"), took))?
        }
    }
    Ok(output::verdict(summary.passed() && tally.strange.is_empty()))
}

fn complain(what: &str, failures: &[String]) -> Result<()> {
    for failure in failures.iter().take(SHOWN_MAX) {
        output::complain(&format!("{what}: {failure}"))?;
    }
    let more = failures.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        output::complain(&format!("{what}: and {more} more"))?;
    }
    Ok(())
}

fn text(summary: &Summary, tally: &Tally, skipped: u64, place: &str, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let other = tally.orders.saturating_sub(tally.sold_orders.saturating_add(tally.sold_out_orders));
    let rows = [
        ("campaign", place.to_owned()),
        ("pools", format!("{} with {} units", summary.pools, summary.opening_units)),
        ("orders", format!("{} in {seconds:.2} s", summary.orders)),
        ("  sold", summary.sold_orders.to_string()),
        ("  sold out", summary.sold_out_orders.to_string()),
        ("  other", other.to_string()),
        (
            "adjustments",
            format!(
                "{} applied ({} units), {} refused",
                summary.adjustments_applied, summary.adjusted_units, summary.adjustments_refused
            ),
        ),
        ("refunds", format!("{} ({} units)", summary.refunds, summary.refunded_units)),
        ("unmatched returns", format!("{} units", summary.unmatched_return_units)),
        (
            "stock now",
            format!(
                "{} available, {} held, {} sold",
                summary.available_units, summary.held_units, summary.sold_units
            ),
        ),
        ("skipped rows", skipped.to_string()),
        ("law", summary.law.clone()),
    ];
    let lines: Vec<_> = rows.iter().map(|(name, value)| format!("{name:<18} {value}")).collect();
    lines.join("\n")
}

/// A campaign that no other run has: the file's name for people, and chance.
fn campaign_id(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = stem.chars().take(40).map(plain).collect();
    format!("replay-{name}-{:016x}", fastrand::u64(..))
}
