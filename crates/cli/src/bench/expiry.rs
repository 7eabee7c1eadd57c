//! `holdfast bench expiry`: what a crowd of holds that end together does to whoever is buying then.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use holdfast_client::{Client, Switch};
use holdfast_wire::{
    OpenPoolRequest, PlaceBatchRequest, PlaceLine, PlaceOrderRequest, PolicyRequest, PutCampaignRequest,
    SwitchRequest,
};
use serde::Serialize;

use super::beside::Buyers;
use super::report::{Environment, processors, rounded};
use super::stage::{Choice, Sale, Stage};
use crate::output::{self, Format};
use crate::private::PrivateServer;

const CROWD: &str = "crowd";
const QUIET: &str = "quiet";
/// Holds of one request.
const BATCH: u64 = 500;
/// Requests under way at once.
const PLACERS: u64 = 8;
/// How long the crowd may take to go, before it is called stuck.
const GONE_MAX: Duration = Duration::from_secs(600);
/// One look at the crowd's stock after another.
const LOOK: Duration = Duration::from_millis(50);

/// Measure what holds that end in the same second do to those who buy then
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Places the holds, measures placing in another campaign at a steady rate while nothing ends, and again \
                        from the\nmoment when all of them end until every unit is back.\n\n\
                        Example:\n  holdfast bench expiry --store postgres --holds 200000"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Holds that end in the same second
    #[arg(long, default_value_t = 200_000)]
    holds: u64,
    /// Seconds from the first of them to their end: they must be placed by then, and the quiet be measured
    #[arg(long, default_value_t = 90)]
    within: u64,
    /// Buckets of their pool
    #[arg(long, default_value_t = 1)]
    buckets: u32,
    /// Orders a second that are placed meanwhile
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Seconds for which the quiet is measured
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
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
    holds: u64,
    placed_rps: f64,
    /// Orders a second that were placed meanwhile.
    rate: f64,
    quiet_p50_ms: f64,
    quiet_p99_ms: f64,
    expiry_p50_ms: f64,
    expiry_p99_ms: f64,
    p99_ratio: f64,
    /// From the end of the last hold until every unit was back.
    all_back_ms: f64,
    released_rps: f64,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let bar = output::progress(3, "bench expiry");
    let server = stage.server().await?;
    let sale = Sale { campaign: QUIET, sku: "CUP", pools: 1, path: "batched", buckets: 1 };
    sale.open(&server).await?;
    let requests = sale.requests(vec![server.host().to_owned()], args.seed);
    let buyers = Buyers { requests, connections: args.connections, rate: args.rate };
    let pool = open_crowd(args, &server).await?;
    let begun = Instant::now();
    let end = begun + Duration::from_secs(args.within);
    place_crowd(args, &server, end).await?;
    let placing = begun.elapsed();
    bar.inc(1);
    let quiet = buyers.buy(Duration::from_secs_f64(args.seconds), 0).await?;
    let rest = end.saturating_duration_since(Instant::now());
    ensure!(!rest.is_zero(), "the holds ended before the quiet was measured: give more time with --within");
    bar.inc(1);
    tokio::time::sleep_until(end.into()).await;
    let going = tokio::spawn(gone(Client::new(server.address(), None)?, pool, Instant::now()));
    let (meanwhile, gone) = buyers.buy_beside(going, 1).await?;
    bar.finish_and_clear();
    server.stop().await?;
    // The last hold ends within a second after the first: deadlines are whole seconds after placing.
    let all_back = gone.saturating_sub(Duration::from_secs(1));
    let (store, durability) = stage.describe().await?;
    let (quiet_p99, expiry_p99) = (quiet.percentile_ms(99.0), meanwhile.percentile_ms(99.0));
    #[expect(clippy::cast_precision_loss, reason = "a count of holds, far below 2^52")]
    let holds = args.holds as f64;
    Ok(Report {
        environment: environment(args, store, durability),
        holds: args.holds,
        placed_rps: rounded(holds / placing.as_secs_f64()),
        rate: args.rate,
        quiet_p50_ms: rounded(quiet.percentile_ms(50.0)),
        quiet_p99_ms: rounded(quiet_p99),
        expiry_p50_ms: rounded(meanwhile.percentile_ms(50.0)),
        expiry_p99_ms: rounded(expiry_p99),
        p99_ratio: rounded(expiry_p99 / quiet_p99),
        all_back_ms: rounded(all_back.as_secs_f64() * 1_000.0),
        released_rps: rounded(holds / gone.as_secs_f64()),
    })
}

fn environment(args: &Args, store: String, durability: String) -> Environment {
    Environment {
        processors: processors(),
        store,
        durability,
        stock: args.holds,
        limits: "none",
        stored_orders: args.holds,
        connections: args.connections,
        distribution: "the holds on one pool, the buyers on another; random order numbers, 128 bits",
        rounds: 1,
        seconds_a_round: args.seconds,
        seed: args.seed,
    }
}

/// Opens the pool of the holds that end; its id.
async fn open_crowd(args: &Args, server: &PrivateServer) -> Result<String> {
    let client = Client::new(server.address(), None)?;
    let policy = PolicyRequest {
        hold_seconds: Some(args.within),
        hold_seconds_max: Some(args.within.max(3_600)),
        release_grace_ms: Some(0),
        ..PolicyRequest::default()
    };
    let put =
        PutCampaignRequest { name: CROWD.to_owned(), policy: Some(policy), ..PutCampaignRequest::default() };
    client.put_campaign(CROWD, &put).await?;
    let open = OpenPoolRequest {
        campaign_id: CROWD.to_owned(),
        sku: "CUP".to_owned(),
        location: None,
        supply: args.holds,
        buckets: Some(args.buckets),
        path: None,
        routing: None,
    };
    let pool = client.open_pool(&open).await?.value.id;
    let words = SwitchRequest { reason: "bench".to_owned(), operator: "bench".to_owned() };
    client.switch_campaign(CROWD, Switch::Open, &words).await?;
    Ok(pool)
}

/// Places all holds, each to end in the second after `end`.
async fn place_crowd(args: &Args, server: &PrivateServer, end: Instant) -> Result<()> {
    let mut placers = tokio::task::JoinSet::new();
    for placer in 0..PLACERS {
        let client = Client::new(server.address(), None)?;
        let numbers = (0..args.holds).step_by(usize::try_from(BATCH)?).skip(usize::try_from(placer)?);
        let batches: Vec<(u64, u64)> = numbers
            .step_by(usize::try_from(PLACERS)?)
            .map(|first| (first, args.holds.min(first + BATCH)))
            .collect();
        placers.spawn(async move {
            for (first, after) in batches {
                let left = end.saturating_duration_since(Instant::now()).as_secs();
                if left == 0 {
                    bail!("the holds end before all are placed: give more time with --within");
                }
                let orders = (first..after).map(|number| hold(number, left + 1)).collect();
                let placed = client.place_orders(&PlaceBatchRequest { orders }).await?;
                ensure!(placed.results.iter().all(|result| result.status == 201), "a hold was refused");
            }
            Ok(())
        });
    }
    while let Some(done) = placers.join_next().await {
        done??;
    }
    Ok(())
}

fn hold(number: u64, hold_seconds: u64) -> PlaceOrderRequest {
    PlaceOrderRequest {
        campaign_id: CROWD.to_owned(),
        order_no: format!("crowd-{number}"),
        account: format!("account-{number}"),
        lines: vec![PlaceLine { sku: "CUP".to_owned(), location: None, quantity: 1 }],
        hold_seconds: Some(hold_seconds),
        amount_due: None,
        limit_keys: None,
        metadata: None,
    }
}

/// Waits until every unit of the crowd is back; how long that took.
async fn gone(client: Client, pool: String, begun: Instant) -> Result<Duration> {
    while begun.elapsed() < GONE_MAX {
        if client.pool(&pool).await?.held == 0 {
            return Ok(begun.elapsed());
        }
        tokio::time::sleep_until((Instant::now() + LOOK).into()).await;
    }
    bail!("holds are left after {GONE_MAX:?}")
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    let rows = [
        ("holds placed", report.placed_rps, "/s"),
        ("placing in the quiet, p50", report.quiet_p50_ms, " ms"),
        ("placing in the quiet, p99", report.quiet_p99_ms, " ms"),
        ("placing while they end, p50", report.expiry_p50_ms, " ms"),
        ("placing while they end, p99", report.expiry_p99_ms, " ms"),
        ("p99, while they end / quiet", report.p99_ratio, ""),
        ("all back after their end", report.all_back_ms, " ms"),
        ("released", report.released_rps, "/s"),
    ];
    for (what, value, unit) in rows {
        writeln!(out, "{what:<36} {value:>12.1}{unit}")?;
    }
    writeln!(
        out,
        "{} holds, {} orders/s meanwhile over {} connections, {}",
        report.holds, report.rate, report.environment.connections, report.environment.store
    )?;
    Ok(out)
}
