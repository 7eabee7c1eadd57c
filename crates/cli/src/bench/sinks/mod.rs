//! `holdfast bench sinks`: how soon events are delivered, how fast a backlog drains, and what that costs who sells.

mod receiver;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use holdfast_client::Client;
use holdfast_testkit::Nats;
use holdfast_wire::{ChangeSinkRequest, PutSinkRequest};
use serde::Serialize;

use self::receiver::Receiver;
use super::load::{self, Pace};
use super::report::{Environment, Length, Spread, Taken, rounded};
use super::scrape::Scrape;
use super::stage::{Choice, Sale, Stage, directory};
use crate::output::{self, Format};
use crate::private::PrivateServer;

const DISTRIBUTION: &str = "one hot pool; random order numbers, 128 bits";
/// Events of one delivery.
const BATCH_MAX: u32 = 100;
/// How long a backlog may take to drain, and how often it is looked at.
const WAIT_MAX: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(20);
const NAME: &str = "bench";

/// Measure how soon order events are delivered, and what that costs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every turn has a server and an empty store of its own; rounds take turns and figures are medians. The\n\
                  receiver is on this machine too. NATS is measured where nats-server is installed and --nats is said.\n\n\
                  Example:\n  holdfast bench sinks --store postgres --nats"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    length: Length,
    /// Connections, one order a request
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Buckets of the pool
    #[arg(long, default_value_t = 1)]
    buckets: u32,
    /// Orders a second at which the lag of a webhook is measured
    #[arg(long, default_value_t = 1_000.0)]
    webhook_rate: f64,
    /// Orders a second at which the lag of NATS is measured
    #[arg(long, default_value_t = 5_000.0)]
    nats_rate: f64,
    /// Events of the backlog that is drained
    #[arg(long, default_value_t = 100_000)]
    backlog: u64,
    /// Measure NATS too
    #[arg(long)]
    nats: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result.
#[derive(Debug, Serialize)]
struct Report {
    environment: Environment,
    holds_rps_without: f64,
    holds_rps_with_webhook: f64,
    /// What is left of the rate while a webhook is delivered to.
    kept: f64,
    webhook: Lag,
    #[serde(skip_serializing_if = "Option::is_none")]
    nats: Option<Lag>,
    backlog_events: f64,
    drained_eps: f64,
    spread: BTreeMap<&'static str, Spread>,
}

/// From the ledger entry to the receiver's yes.
#[derive(Debug, Serialize)]
struct Lag {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let bar = output::progress(args.length.rounds * 2 + 3, "bench sinks");
    let mut taken = Taken::default();
    for round in 0..args.length.rounds {
        // Interleaved: what else the machine does meets both.
        let seed = args.length.seed_of(round)?;
        taken.add("holds_rps_without", args.turn(stage, None, Pace::Closed, seed).await?.rps);
        bar.inc(1);
        let receiver = Receiver::start().await?;
        let webhook = webhook(&receiver);
        taken.add("holds_rps_with_webhook", args.turn(stage, Some(&webhook), Pace::Closed, seed).await?.rps);
        bar.inc(1);
    }
    let seed = args.length.seed_of(args.length.rounds)?;
    let receiver = Receiver::start().await?;
    let of_webhook =
        args.turn(stage, Some(&webhook(&receiver)), Pace::Open(args.webhook_rate), seed).await?.lag;
    bar.inc(1);
    let of_nats = if args.nats {
        let nats = Nats::start().await?;
        let sink = Sink { arguments: vec!["--nats".into(), nats.url()], put: subject() };
        Some(args.turn(stage, Some(&sink), Pace::Open(args.nats_rate), seed).await?.lag)
    } else {
        None
    };
    bar.inc(1);
    let (backlog_events, drained_eps) = args.drained(stage, &webhook(&receiver), seed).await?;
    bar.finish_and_clear();
    let (without, with) = (taken.figure("holds_rps_without"), taken.figure("holds_rps_with_webhook"));
    Ok(Report {
        environment: stage.environment(&args.length, args.connections, DISTRIBUTION).await?,
        holds_rps_without: without,
        holds_rps_with_webhook: with,
        kept: rounded(with / without),
        webhook: of_webhook.told(args.webhook_rate),
        nats: of_nats.map(|lag| lag.told(args.nats_rate)),
        backlog_events,
        drained_eps: rounded(drained_eps),
        spread: taken.spread(),
    })
}

/// A sink to measure, and what its server is started with.
struct Sink {
    arguments: Vec<String>,
    put: PutSinkRequest,
}

fn webhook(receiver: &Receiver) -> Sink {
    let put = PutSinkRequest {
        kind: "webhook".to_owned(),
        url: Some(receiver.url.clone()),
        batch_max: Some(BATCH_MAX),
        ..PutSinkRequest::default()
    };
    let arguments = ["--sink-private-addresses", "allow"].map(String::from).to_vec();
    Sink { arguments, put }
}

fn subject() -> PutSinkRequest {
    let (kind, subject) = ("nats".to_owned(), Some(NAME.to_owned()));
    PutSinkRequest { kind, subject, batch_max: Some(BATCH_MAX), ..PutSinkRequest::default() }
}

/// What one turn came to.
struct Turn {
    rps: f64,
    lag: Quantiles,
}

struct Quantiles {
    p50: f64,
    p99: f64,
}

impl Quantiles {
    fn told(&self, rate: f64) -> Lag {
        Lag { rate, p50_ms: rounded(self.p50 * 1_000.0), p99_ms: rounded(self.p99 * 1_000.0) }
    }
}

impl Args {
    async fn server(&self, stage: &Stage, sink: Option<&Sink>) -> Result<PrivateServer> {
        let directory = directory()?;
        let database = stage.empty(&directory).await?;
        let arguments = sink.map(|sink| sink.arguments.iter().map(String::as_str).collect::<Vec<_>>());
        PrivateServer::start_at(directory, &database, &arguments.unwrap_or_default()).await
    }

    /// Opens a sale and sells for a while, with a sink or without.
    async fn turn(&self, stage: &Stage, sink: Option<&Sink>, pace: Pace, seed: u64) -> Result<Turn> {
        let server = self.server(stage, sink).await?;
        let campaign = format!("bench-{seed}");
        let sale = Sale { campaign: &campaign, sku: "HOT", pools: 1, path: "batched", buckets: self.buckets };
        sale.open(&server).await?;
        let client = Client::new(server.address(), None)?;
        if let Some(sink) = sink {
            client.put_sink(NAME, &sink.put).await?;
        }
        let before = Scrape::take(server.address()).await?;
        let requests = sale.requests(vec![server.host().to_owned()], seed);
        let measured = load::run(requests, self.connections, pace, self.length.duration()).await?;
        if sink.is_some() {
            drains(&client).await?;
        }
        let after = Scrape::take(server.address()).await?;
        let times = after.times(&before, "holdfast_sink_lag_seconds", &format!("sink=\"{NAME}\""));
        server.stop().await?;
        Ok(Turn { rps: measured.rps, lag: Quantiles { p50: times.quantile(0.5), p99: times.quantile(0.99) } })
    }

    /// How many events waited, and how many of them were delivered in a second once they might be.
    async fn drained(&self, stage: &Stage, sink: &Sink, seed: u64) -> Result<(f64, f64)> {
        let server = self.server(stage, Some(sink)).await?;
        let campaign = format!("bench-backlog-{seed}");
        let sale = Sale { campaign: &campaign, sku: "HOT", pools: 1, path: "batched", buckets: self.buckets };
        sale.open(&server).await?;
        let client = Client::new(server.address(), None)?;
        client.put_sink(NAME, &sink.put).await?;
        client.pause_sink(NAME, &ChangeSinkRequest::default()).await?;
        let mut waiting = 0;
        for round in 0.. {
            let requests = sale.requests(vec![server.host().to_owned()], seed.wrapping_add(round << 16));
            load::run(requests, self.connections, Pace::Closed, self.length.duration()).await?;
            waiting = client.sink(NAME).await?.backlog.entries;
            if waiting >= self.backlog {
                break;
            }
        }
        let begun = Instant::now();
        client.resume_sink(NAME, &ChangeSinkRequest::default()).await?;
        drains(&client).await?;
        #[expect(clippy::cast_precision_loss, reason = "a count of events, far below 2^52")]
        let waiting = waiting as f64;
        let rate = waiting / begun.elapsed().as_secs_f64();
        server.stop().await?;
        Ok((waiting, rate))
    }
}

/// Waits until a sink has nothing to look at.
#[expect(clippy::disallowed_methods, reason = "between two looks at what is; nothing depends on its length")]
async fn drains(client: &Client) -> Result<()> {
    let begun = Instant::now();
    while client.sink(NAME).await?.backlog.entries > 0 {
        if begun.elapsed() > WAIT_MAX {
            bail!("the backlog did not drain in {WAIT_MAX:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "holds without a sink     {:>10.0}/s", report.holds_rps_without)?;
    let (with, kept) = (report.holds_rps_with_webhook, report.kept);
    writeln!(out, "holds with a webhook     {with:>10.0}/s  ({kept:.2} of it)")?;
    for (name, lag) in [("webhook", Some(&report.webhook)), ("NATS", report.nats.as_ref())] {
        if let Some(Lag { rate, p50_ms, p99_ms }) = lag {
            writeln!(out, "lag of {name:<17} p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms at {rate:.0} events/s")?;
        }
    }
    let (waited, rate) = (report.backlog_events, report.drained_eps);
    writeln!(out, "a backlog of {waited:.0} events drains at {rate:.0}/s")?;
    let Environment { store, connections, rounds, .. } = &report.environment;
    writeln!(out, "{store}, {connections} connections, {rounds} rounds")?;
    Ok(out)
}
