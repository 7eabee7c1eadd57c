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
use serde::Serialize;

use self::measure::{Load, Recovery, Turn, Variant, Waits};
use super::report::{Environment, Rounds, Spread, rounded};
use super::stage::{Choice, Stage};
use super::{engine, floor};
use crate::output::{self, Format};

/// Pools of the even traffic, which nobody should take for hot capacity.
const EVEN_POOLS: u32 = 1_000;
/// What is measured, in the order of the report.
const VARIANTS: &[Variant] = &[
    Variant { path: "batched", buckets: 1, pools: 1 },
    Variant { path: "batched", buckets: 4, pools: 1 },
    Variant { path: "queued", buckets: 1, pools: 1 },
    Variant { path: "batched", buckets: 1, pools: EVEN_POOLS },
];

/// Measure the paths side by side, where each one queues, and what a crash leaves to do
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every turn has a server and an empty store of its own; rounds take turns and figures are \
                        medians.\n\nExample:\n  holdfast bench paths --store postgres --html paths.html"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections, one order a request
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Where the random order numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
            nodes: 1,
            hot: variant.is_hot(),
            pools: variant.pools,
            holds_rps: median(&|turn| turn.holds_rps),
            accepted_rps: is_queued.then(|| median(&|turn| turn.accepted_rps.unwrap_or(f64::NAN))),
            p50_ms: median(&|turn| turn.p50_ms),
            p99_ms: median(&|turn| turn.p99_ms),
            p999_ms: median(&|turn| turn.p999_ms),
            lock_wait_p99_ms: median(&|turn| turn.lock_wait_p99_ms),
            batch_size_mean: median(&|turn| turn.batch_size_mean),
            queues_at: waits_ms.queues_at(),
            waits_ms,
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
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(text(&report)?.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let bar = output::progress(args.rounds * (VARIANTS.len() + 2), "bench paths");
    let seconds = Duration::from_secs_f64(args.seconds);
    let mut ceilings: BTreeMap<&'static str, Rounds> = BTreeMap::new();
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); VARIANTS.len()];
    for round in 0..args.rounds {
        let seed = args.seed.wrapping_add(u64::try_from(round)? << 32);
        let (inserts, updates) = floor::bare(stage, seconds, seed).await?;
        let constant = floor::constant_http_rps(stage, args.connections, seconds, seed).await?;
        for (name, value) in [
            ("bare_insert_rps", inserts),
            ("one_row_transaction_tps", updates),
            ("constant_http_rps", constant),
        ] {
            ceilings.entry(name).or_default().add(value);
        }
        bar.inc(2);
        for (variant, turns) in VARIANTS.iter().zip(&mut turns) {
            // The last round's servers are killed, to see what that leaves.
            let crash = round + 1 == args.rounds;
            let load = Load { connections: args.connections, seconds, seed, crash };
            turns.push(measure::turn(stage, *variant, load).await.with_context(|| variant.name())?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let paths: Vec<Figures> =
        VARIANTS.iter().zip(&turns).map(|(variant, of)| Figures::of(*variant, of)).collect();
    let median = |name: &str| ceilings.get(name).map_or(f64::NAN, |rounds| rounded(rounds.median()));
    let ceilings = Ceilings {
        constant_http_rps: median("constant_http_rps"),
        bare_insert_rps: median("bare_insert_rps"),
        one_row_transaction_tps: median("one_row_transaction_tps"),
        spread: ceilings.iter().map(|(name, rounds)| (*name, rounds.spread())).collect(),
    };
    Ok(Report {
        advice: advice::of_paths(&paths),
        environment: environment(args, stage).await?,
        ceilings,
        paths,
    })
}

async fn environment(args: &Args, stage: &Stage) -> Result<Environment> {
    let (store, durability) = stage.describe().await?;
    Ok(Environment {
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        store,
        durability,
        stock: engine::SUPPLY,
        limits: "no account limits",
        stored_orders: 0,
        connections: args.connections,
        distribution: "one hot pool, and 1,000 even pools beside it; random order numbers, 128 bits",
        rounds: args.rounds,
        seconds_a_round: args.seconds,
        seed: args.seed,
    })
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    let Environment { store, connections, rounds, processors, .. } = &report.environment;
    writeln!(
        out,
        "{store}, {processors} processors, {connections} connections, medians of {rounds} rounds\n"
    )?;
    for (what, value) in [
        ("constant answers over HTTP", report.ceilings.constant_http_rps),
        ("bare inserts of the same rows", report.ceilings.bare_insert_rps),
        ("one row, a transaction an order", report.ceilings.one_row_transaction_tps),
    ] {
        writeln!(out, "{what:<34} {value:>10.0}/s")?;
    }
    writeln!(
        out,
        "\n{:<24} {:>10} {:>8} {:>8} {:>8} {:>9} {:>7}  {:<9} {:>8}",
        "path", "holds/s", "p50 ms", "p99 ms", "p99.9", "lock p99", "batch", "queues at", "restart"
    )?;
    for of in &report.paths {
        let restart =
            of.recovery.map_or_else(String::new, |recovery| format!("{:.0} ms", recovery.restart_ms));
        writeln!(
            out,
            "{:<24} {:>10.0} {:>8.1} {:>8.1} {:>8.1} {:>9.1} {:>7.1}  {:<9} {:>8}",
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
            writeln!(out, "{:<24} {accepted:>10.0} taken in a second, decided later", "")?;
        }
    }
    writeln!(out, "\n{}", report.advice)?;
    Ok(out)
}
