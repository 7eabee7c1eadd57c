//! `holdfast bench reconcile`: what comparing a long ledger takes, and does to whoever is buying then.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use holdfast_client::{Client, Switch};
use holdfast_store::{Clock as _, Fill, SystemClock};
use holdfast_wire::{
    OpenPoolRequest, PolicyRequest, PutCampaignRequest, ReconcileRequest, ReconciliationView, SwitchRequest,
};
use serde::Serialize;

use super::beside::Buyers;
use super::report::{Environment, processors, rounded};
use super::stage::{self, Choice, Sale, Stage};
use crate::database::Url;
use crate::output::{self, Format};
use crate::private::PrivateServer;

const LONG: &str = "long";
const BUYING: &str = "buying";
/// How long a run may take, before it is called stuck.
const RUN_MAX: Duration = Duration::from_secs(1_800);
/// One look at a run after another.
const LOOK: Duration = Duration::from_millis(100);

/// Measure what reconciliation of a long ledger takes, and does to those who buy then
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes sold orders past every decision, measures placing in another campaign at a steady rate alone, \
                        again\nwhile a full run compares everything, and then how long an incremental run takes.\n\n\
                        Example:\n  holdfast bench reconcile --store postgres --entries 10000000"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Entries of the ledger, two an order
    #[arg(long, default_value_t = 1_000_000)]
    entries: u64,
    /// Orders a second that are placed meanwhile
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Seconds for which placing alone is measured
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// How much of its time a run may spend asking; 100: it never rests
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    share: u8,
    /// Connections, one order a request
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Where the random order numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    environment: Environment,
    entries: u64,
    /// Orders a second that were placed meanwhile.
    rate: f64,
    alone_p50_ms: f64,
    alone_p99_ms: f64,
    full_p50_ms: f64,
    full_p99_ms: f64,
    p99_ratio: f64,
    full_seconds: f64,
    full_entries: u64,
    full_orders: u64,
    full_entries_rps: f64,
    incremental_seconds: f64,
    incremental_entries: u64,
    incremental_orders: u64,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let bar = output::progress(4, "bench reconcile");
    let server = server(args, stage).await?;
    let client = Client::new(server.address(), None)?;
    let sale = Sale { campaign: BUYING, sku: "CUP", pools: 1, path: "batched", buckets: 1 };
    sale.open(&server).await?;
    let requests = sale.requests(vec![server.host().to_owned()], args.seed);
    let buyers = Buyers { requests, connections: args.connections, rate: args.rate };
    fill(args, &server, &client).await?;
    bar.inc(1);
    let alone = buyers.buy(Duration::from_secs_f64(args.seconds), 0).await?;
    bar.inc(1);
    let run = tokio::spawn(run_of(Client::new(server.address(), None)?, "full"));
    let (meanwhile, (full, full_took)) = buyers.buy_beside(run, 1).await?;
    bar.inc(1);
    // What was bought meanwhile is what an incremental run has to read.
    let run = tokio::spawn(run_of(client, "incremental"));
    let (_, (incremental, incremental_took)) = buyers.buy_beside(run, 1 << 20).await?;
    bar.finish_and_clear();
    server.stop().await?;
    let (store, durability) = stage.describe().await?;
    let (alone_p99, full_p99) = (alone.percentile_ms(99.0), meanwhile.percentile_ms(99.0));
    #[expect(clippy::cast_precision_loss, reason = "a count of entries, far below 2^52")]
    let read = full.entries_read as f64;
    Ok(Report {
        environment: environment(args, store, durability),
        entries: args.entries,
        rate: args.rate,
        alone_p50_ms: rounded(alone.percentile_ms(50.0)),
        alone_p99_ms: rounded(alone_p99),
        full_p50_ms: rounded(meanwhile.percentile_ms(50.0)),
        full_p99_ms: rounded(full_p99),
        p99_ratio: rounded(full_p99 / alone_p99),
        full_seconds: rounded(full_took.as_secs_f64()),
        full_entries: full.entries_read,
        full_orders: full.orders_read,
        full_entries_rps: rounded(read / full_took.as_secs_f64()),
        incremental_seconds: rounded(incremental_took.as_secs_f64()),
        incremental_entries: incremental.entries_read,
        incremental_orders: incremental.orders_read,
    })
}

fn environment(args: &Args, store: String, durability: String) -> Environment {
    Environment {
        processors: processors(),
        store,
        durability,
        stock: args.entries,
        limits: "none",
        stored_orders: args.entries / 2,
        connections: args.connections,
        distribution: "the long ledger in one bucket, the buyers on another pool; random order numbers, 128 bits",
        rounds: 1,
        seconds_a_round: args.seconds,
        seed: args.seed,
    }
}

/// A server that runs only when it is asked to.
async fn server(args: &Args, stage: &Stage) -> Result<PrivateServer> {
    let directory = stage::directory()?;
    let database = stage.empty(&directory).await?;
    let share = args.share.to_string();
    let own =
        ["--reconcile-seconds", "0", "--reconcile-full-seconds", "0", "--reconcile-share-percent", &share];
    PrivateServer::start_at(directory, &database, &own).await
}

/// Opens the pool of the long ledger and writes its orders.
async fn fill(args: &Args, server: &PrivateServer, client: &Client) -> Result<()> {
    let orders = args.entries / 2;
    let policy = PolicyRequest { hold_seconds: Some(86_400), ..PolicyRequest::default() };
    let put = PutCampaignRequest {
        name: LONG.to_owned(),
        policy: Some(PolicyRequest { hold_seconds_max: Some(86_400), ..policy }),
        ..PutCampaignRequest::default()
    };
    client.put_campaign(LONG, &put).await?;
    let open = OpenPoolRequest {
        campaign_id: LONG.to_owned(),
        sku: "CUP".to_owned(),
        location: None,
        supply: orders,
        buckets: Some(1),
        path: None,
        routing: None,
    };
    let pool = client.open_pool(&open).await?.value.id;
    let words = SwitchRequest { reason: "bench".to_owned(), operator: "bench".to_owned() };
    client.switch_campaign(LONG, Switch::Open, &words).await?;
    let pool = u128::from_str_radix(&pool.replace('-', ""), 16).context("the pool's id")?;
    let fill = Fill { pool, campaign: LONG.to_owned(), sku: "CUP".to_owned(), orders, at: SystemClock.now() };
    Url::parse(server.database())?.fill(fill).await
}

/// Asks for a run and waits until it is over; the run, and how long it took.
async fn run_of(client: Client, scope: &'static str) -> Result<(ReconciliationView, Duration)> {
    let begun = Instant::now();
    let asked = client.reconcile(&ReconcileRequest { scope: Some(scope.to_owned()) }).await?;
    loop {
        let run = client.reconciliation(&asked.id).await?;
        if run.state != "running" {
            ensure!(run.state == "done" && run.found.is_empty(), "the run is not clean: {run:?}");
            return Ok((run, begun.elapsed()));
        }
        ensure!(begun.elapsed() < RUN_MAX, "the run is not over after {RUN_MAX:?}");
        tokio::time::sleep_until((Instant::now() + LOOK).into()).await;
    }
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    let rows = [
        ("placing alone, p50", report.alone_p50_ms, " ms"),
        ("placing alone, p99", report.alone_p99_ms, " ms"),
        ("placing beside a full run, p50", report.full_p50_ms, " ms"),
        ("placing beside a full run, p99", report.full_p99_ms, " ms"),
        ("p99, beside it / alone", report.p99_ratio, ""),
        ("full run", report.full_seconds, " s"),
        ("entries it read", report.full_entries_rps, "/s"),
        ("incremental run", report.incremental_seconds, " s"),
    ];
    for (what, value, unit) in rows {
        writeln!(out, "{what:<36} {value:>12.1}{unit}")?;
    }
    writeln!(
        out,
        "{} entries and {} orders in the full run, {} and {} in the incremental one, {} orders/s meanwhile, {}",
        report.full_entries,
        report.full_orders,
        report.incremental_entries,
        report.incremental_orders,
        report.rate,
        report.environment.store
    )?;
    Ok(out)
}
