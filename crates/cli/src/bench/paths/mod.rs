//! `holdfast bench paths`: every path beside the others, in one run, on one hot pool and on many even ones.

mod advice;
mod html;
pub(super) mod measure;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use holdfast_core::campaign::Policy;
use serde::Serialize;

use self::measure::{Load, Recovery, Turn, Variant, Waits};
use super::load::Pace;
use super::report::{Environment, Length, Rounds, Spread, Taken, rounded};
use super::stage::{Choice, Stage, directory};
use super::{engine, floor};
use crate::database::Url;
use crate::output::{self, Format};
use crate::serve::random_id;

/// Pools of the even traffic, which nobody should take for hot capacity.
const EVEN_POOLS: u32 = 1_000;
/// What is measured, in the order of the report.
const VARIANTS: &[Variant] = &[
    Variant::new("direct", 1, 1),
    Variant::new("direct", 16, 1),
    BATCHED,
    Variant { nodes: 2, ..BATCHED },
    Variant::new("batched", 4, 1),
    Variant::new("queued", 1, 1),
    Variant::new("batched", 1, EVEN_POOLS),
];
/// The default path, which is looked at more closely.
const BATCHED: Variant = Variant::new("batched", 1, 1);
/// How long a database may take to be filled.
const FILL_MAX: Duration = Duration::from_secs(1_200);

/// Measure the paths side by side, where each one queues, and what a crash leaves to do
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every turn has a server and an empty store of its own; rounds take turns and figures are \
                        medians.\n\nExample:\n  holdfast bench paths --store postgres --html paths.html"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    length: Length,
    /// Connections, one order a request
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Only these paths
    #[arg(long = "path", value_name = "PATH", value_parser = ["direct", "batched", "queued"])]
    paths: Vec<String>,
    /// Also measure the batched path on a database that holds so many orders
    #[arg(long, value_name = "ORDERS", default_value_t = 0)]
    stored: u64,
    /// Also write the result as one page with charts, which loads nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result; the names are those that others compare by.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    environment: Environment,
    ceilings: Ceilings,
    paths: Vec<Figures>,
    advice: String,
}

/// What the database and HTTP do alone.
#[derive(Debug, Serialize)]
struct Ceilings {
    constant_http_rps: f64,
    bare_insert_rps: f64,
    one_row_transaction_tps: f64,
    direct_transaction_tps: f64,
    /// From 16 rows; none where only one connection can write.
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_transaction_spread_tps: Option<f64>,
    bare_commit_p99_ms: f64,
    engine_holds_rps: f64,
    spread: BTreeMap<&'static str, Spread>,
}

/// The figures of one path.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figures {
    pub(super) path: &'static str,
    pub(super) buckets: u32,
    nodes: u32,
    pub(super) hot: bool,
    pools: u32,
    /// Orders that the database held before.
    stored_orders: u64,
    pub(super) holds_rps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_rps: Option<f64>,
    p50_ms: f64,
    pub(super) p99_ms: f64,
    p999_ms: f64,
    pub(super) lock_wait_p99_ms: f64,
    pub(super) batch_size_mean: f64,
    pub(super) queues_at: &'static str,
    pub(super) waits_ms: Waits,
    /// Bytes of the database's log for one hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_bytes: Option<f64>,
    /// Open loop at half of the measured rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    half_load_p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<Recovery>,
    pub(super) spread: Spread,
    #[serde(skip)]
    name: String,
}

impl Figures {
    /// The medians of a variant's turns.
    pub(super) fn of(variant: Variant, turns: &[Turn]) -> Self {
        let rounds = |figure: &dyn Fn(&Turn) -> f64| {
            let mut rounds = Rounds::default();
            turns.iter().for_each(|turn| rounds.add(figure(turn)));
            rounds
        };
        let median = |figure: &dyn Fn(&Turn) -> f64| rounded(rounds(figure).median());
        let waits_ms = Waits {
            entry: median(&|turn| turn.waits.entry),
            lane: median(&|turn| turn.waits.lane),
            lock: median(&|turn| turn.waits.lock),
            commit: median(&|turn| turn.waits.commit),
            flush: median(&|turn| turn.waits.flush),
        };
        let is_queued = turns.iter().any(|turn| turn.accepted_rps.is_some());
        Self {
            path: variant.path,
            buckets: variant.buckets,
            nodes: variant.nodes,
            hot: variant.is_hot(),
            pools: variant.pools,
            stored_orders: 0,
            holds_rps: median(&|turn| turn.holds_rps),
            accepted_rps: is_queued.then(|| median(&|turn| turn.accepted_rps.unwrap_or(f64::NAN))),
            p50_ms: median(&|turn| turn.p50_ms),
            p99_ms: median(&|turn| turn.p99_ms),
            p999_ms: median(&|turn| turn.p999_ms),
            lock_wait_p99_ms: median(&|turn| turn.lock_wait_p99_ms),
            batch_size_mean: median(&|turn| turn.batch_size_mean),
            queues_at: waits_ms.queues_at(),
            waits_ms,
            log_bytes: turns.iter().find_map(|turn| turn.log_bytes).map(rounded),
            half_load_p99_ms: None,
            recovery: turns.iter().find_map(|turn| turn.recovery),
            spread: rounds(&|turn| turn.holds_rps).spread(),
            name: variant.name(),
        }
    }
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    if let Some(path) = &args.html {
        std::fs::write(path, html::page(&report)).with_context(|| path.display().to_string())?;
    }
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

/// The variants that are asked for and possible.
fn variants(args: &Args, stage: &Stage) -> Vec<Variant> {
    let is_asked =
        |variant: &&Variant| args.paths.is_empty() || args.paths.iter().any(|path| *path == variant.path);
    let is_possible = |variant: &&Variant| variant.nodes == 1 || stage.is_shared();
    VARIANTS.iter().filter(is_asked).filter(is_possible).copied().collect()
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let variants = variants(args, stage);
    let bar = output::progress(args.length.rounds * (variants.len() + 3), "bench paths");
    let seconds = args.length.duration();
    let mut taken = Taken::default();
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); variants.len()];
    for round in 0..args.length.rounds {
        let load = args.load(round)?;
        let bare = floor::bare(stage, args.connections, seconds, load.seed).await?;
        let constant = floor::constant_http_rps(stage, args.connections, seconds, load.seed).await?;
        let engine = floor::engine_holds_rps(stage, seconds, load.seed).await?;
        for (name, value) in [
            ("constant_http_rps", Some(constant)),
            ("bare_insert_rps", Some(bare.inserts)),
            ("one_row_transaction_tps", Some(bare.one_row)),
            ("direct_transaction_tps", Some(bare.direct)),
            ("direct_transaction_spread_tps", bare.direct_spread),
            ("bare_commit_p99_ms", Some(bare.commit_p99_ms)),
            ("engine_holds_rps", Some(engine)),
        ] {
            value.into_iter().for_each(|value| taken.add(name, value));
        }
        bar.inc(3);
        for (variant, turns) in variants.iter().zip(&mut turns) {
            // The last round's servers are killed, to see what that leaves.
            let load = Load { crash: round + 1 == args.length.rounds, ..load };
            turns.push(measure::turn(stage, *variant, load).await.with_context(|| variant.name())?);
            bar.inc(1);
        }
    }
    let mut paths: Vec<Figures> =
        variants.iter().zip(&turns).map(|(variant, of)| Figures::of(*variant, of)).collect();
    let is_batched = |(variant, _): &(&Variant, &mut Figures)| **variant == BATCHED;
    if let Some((_, figures)) = variants.iter().zip(&mut paths).find(is_batched) {
        figures.half_load_p99_ms = Some(half_load(args, stage, figures.holds_rps / 2.0).await?);
        if args.stored > 0 {
            paths.push(with_stored_orders(args, stage).await?);
        }
    }
    bar.finish_and_clear();
    let ceiling = |name: &str| taken.figure(name);
    let ceilings = Ceilings {
        constant_http_rps: ceiling("constant_http_rps"),
        bare_insert_rps: ceiling("bare_insert_rps"),
        one_row_transaction_tps: ceiling("one_row_transaction_tps"),
        direct_transaction_tps: ceiling("direct_transaction_tps"),
        direct_transaction_spread_tps: taken.median("direct_transaction_spread_tps").map(rounded),
        bare_commit_p99_ms: ceiling("bare_commit_p99_ms"),
        engine_holds_rps: ceiling("engine_holds_rps"),
        spread: taken.spread(),
    };
    let distribution = "one hot pool, and 1,000 even pools beside it; random order numbers, 128 bits";
    let environment = stage.environment(&args.length, args.connections, distribution).await?;
    Ok(Report { advice: advice::of_paths(&paths), environment, ceilings, paths })
}

impl Args {
    /// As fast as answers come, on an empty store.
    fn load(&self, round: usize) -> Result<Load<'static>> {
        Ok(Load {
            database: None,
            connections: self.connections,
            pace: Pace::Closed,
            seconds: self.length.duration(),
            seed: self.length.seed_of(round)?,
            crash: false,
        })
    }
}

/// The batched path at so many orders a second, whether answered or not; the p99.
async fn half_load(args: &Args, stage: &Stage, rate: f64) -> Result<f64> {
    let mut rounds = Rounds::default();
    for round in 0..args.length.rounds {
        let load = Load { pace: Pace::Open(rate), ..args.load(round)? };
        rounds.add(measure::turn(stage, BATCHED, load).await.context("half load")?.p99_ms);
    }
    Ok(rounded(rounds.median()))
}

/// The batched path on a database that the engine has filled.
async fn with_stored_orders(args: &Args, stage: &Stage) -> Result<Figures> {
    let directory = directory()?;
    let database = stage.empty(&directory).await?;
    let sale =
        engine::Sale::open_on(Url::parse(&database)?.open(random_id()?).await?, &Policy::default()).await?;
    sale.place(args.stored, FILL_MAX, args.length.seed ^ 0xff).await?;
    sale.close().await?;
    let mut turns = Vec::new();
    for round in 0..args.length.rounds {
        let load = Load { database: Some(&database), ..args.load(round)? };
        turns.push(measure::turn(stage, BATCHED, load).await.context("with stored orders")?);
    }
    let figures = Figures::of(BATCHED, &turns);
    let name = format!("{}, {} stored", figures.name, args.stored);
    Ok(Figures { stored_orders: args.stored, name, ..figures })
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    let Environment { store, connections, rounds, processors, .. } = &report.environment;
    writeln!(
        out,
        "{store}, {processors} processors, {connections} connections, medians of {rounds} rounds\n"
    )?;
    let ceilings = &report.ceilings;
    for (what, value) in [
        ("constant answers over HTTP", Some(ceilings.constant_http_rps)),
        ("bare inserts of the same rows", Some(ceilings.bare_insert_rps)),
        ("one statement on one row", Some(ceilings.one_row_transaction_tps)),
        ("bare transaction an order, one row", Some(ceilings.direct_transaction_tps)),
        ("bare transaction an order, 16 rows", ceilings.direct_transaction_spread_tps),
        ("holds at the engine", Some(ceilings.engine_holds_rps)),
    ] {
        if let Some(value) = value {
            writeln!(out, "{what:<36} {value:>10.0}/s")?;
        }
    }
    writeln!(out, "{:<36} {:>10.2} ms", "one bare commit, p99", ceilings.bare_commit_p99_ms)?;
    writeln!(
        out,
        "\n{:<32} {:>10} {:>8} {:>8} {:>8} {:>9} {:>7}  {:<9} {:>8}",
        "path", "holds/s", "p50 ms", "p99 ms", "p99.9", "lock p99", "batch", "queues at", "restart"
    )?;
    for of in &report.paths {
        let restart =
            of.recovery.map_or_else(String::new, |recovery| format!("{:.0} ms", recovery.restart_ms));
        writeln!(
            out,
            "{:<32} {:>10.0} {:>8.1} {:>8.1} {:>8.1} {:>9.1} {:>7.1}  {:<9} {:>8}",
            of.name,
            of.holds_rps,
            of.p50_ms,
            of.p99_ms,
            of.p999_ms,
            of.lock_wait_p99_ms,
            of.batch_size_mean,
            of.queues_at,
            restart
        )?;
        if let Some(accepted) = of.accepted_rps {
            writeln!(out, "{:<32} {accepted:>10.0} taken in a second, decided later", "")?;
        }
        if let Some(half) = of.half_load_p99_ms {
            writeln!(out, "{:<32} {half:>10.1} ms p99 at half of that rate", "")?;
        }
        if let Some(bytes) = of.log_bytes {
            writeln!(out, "{:<32} {bytes:>10.0} bytes of log a hold", "")?;
        }
    }
    writeln!(out, "\n{}", report.advice)?;
    Ok(out)
}
