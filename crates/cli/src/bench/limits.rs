//! `holdfast bench limits`: how fast holds can be had here, beside what the database and HTTP can do at all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use holdfast_core::campaign::Policy;
use serde::Serialize;
use tempfile::TempDir;

use super::engine::{self, Sale};
use super::floor::CONSTANT_PATH;
use super::load::{self, Measured, Pace, Requests};
use super::report::{Environment, SQLITE_DURABILITY, Spread, Taken, processors, rounded};
use super::stage::directory;
use crate::output::{self, Format};
use crate::private::{DATABASE, PrivateServer};

/// The units that an account may have where limits are measured.
const LIMIT: u64 = 2;

/// Measure the limits: constant HTTP answers, bare inserts, holds at the engine and over HTTP, refusals
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everything is measured in one run, in rounds that take turns; figures are medians. It uses \
                        temporary\ndatabases and servers of its own.\n\n\
                        Example:\n  holdfast bench limits --rounds 3 --format json"
)]
pub(crate) struct Args {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections, one order a request
    #[arg(long, default_value_t = 256)]
    connections: usize,
    /// Orders that are stored before the last measurements
    #[arg(long, default_value_t = 1_000_000)]
    stored: u64,
    /// Where the random order numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result; the names are those that others compare by.
#[derive(Serialize)]
struct Limits {
    environment: Environment,
    constant_http_rps: f64,
    bare_insert_rps: f64,
    bare_commit_p99_ms: f64,
    engine_holds_rps: f64,
    engine_holds_limited_rps: f64,
    http_holds_rps: f64,
    http_holds_p99_ms: f64,
    http_sold_out_rps: f64,
    http_half_load_p99_ms: f64,
    rss_mib_at_1m_orders: f64,
    holds_rps_at_1m_orders: f64,
    ratios: BTreeMap<&'static str, f64>,
    spread: BTreeMap<&'static str, Spread>,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let mut taken = Taken::default();
    let bar = output::progress(args.rounds + 2, "bench limits");
    for round in 0..args.rounds {
        let seed = args.seed.wrapping_add(u64::try_from(round)? << 32);
        one_round(&args, seed, &mut taken).await?;
        bar.inc(1);
    }
    half_load(&args, &mut taken).await?;
    bar.inc(1);
    let rss = with_stored_orders(&args, &mut taken).await?;
    bar.finish_and_clear();
    let limits = limits(&args, &taken, rss);
    output::show(args.format, &limits, text)?;
    Ok(ExitCode::SUCCESS)
}

/// A server on a store with the campaign and the hot pool.
async fn server(directory: TempDir) -> Result<PrivateServer> {
    Sale::open(&directory.path().join(DATABASE), &Policy::default()).await?.close().await?;
    PrivateServer::start_in(directory, &["--constant-answer"]).await
}

async fn load(args: &Args, server: &PrivateServer, what: Requests, pace: Pace) -> Result<Measured> {
    let addresses = vec![server.host().to_owned()];
    let seconds = Duration::from_secs_f64(args.seconds);
    load::run(Requests { addresses, ..what }, args.connections, pace, seconds).await
}

fn requests(path: &'static str, sku: &'static str, status: u16, seed: u64) -> Requests {
    let addresses = Vec::new();
    Requests { addresses, path, campaign: "bench".to_owned(), sku, skus: 1, status, instead: None, seed }
}

/// One turn of every measurement, each on an empty store.
async fn one_round(args: &Args, seed: u64, taken: &mut Taken) -> Result<()> {
    let seconds = Duration::from_secs_f64(args.seconds);
    let bare = directory()?;
    let rps = tokio::task::block_in_place(|| engine::bare_insert_rps(bare.path(), seconds, seed))?;
    taken.add("bare_insert_rps", rps);
    let commits =
        tokio::task::block_in_place(|| engine::bare_commits(bare.path(), engine::BARE_COMMITS, seed))?;
    taken.add("bare_commit_p99_ms", load::percentile(&commits, 99.0) / 1_000.0);
    drop(bare);

    let limited = Policy { account_limit: Some(LIMIT), ..Policy::default() };
    for (name, policy) in [("engine_holds_rps", Policy::default()), ("engine_holds_limited_rps", limited)] {
        let engine = directory()?;
        let sale = Sale::open(&engine.path().join(DATABASE), &policy).await?;
        taken.add(name, sale.place(u64::MAX - engine::CALLERS, seconds, seed).await?);
        sale.close().await?;
    }

    let server = server(directory()?).await?;
    let constant = load(args, &server, requests(CONSTANT_PATH, "CUP", 201, seed), Pace::Closed).await?;
    taken.add("constant_http_rps", constant.rps);
    let holds = load(args, &server, requests("/v1/orders", "CUP", 201, seed), Pace::Closed).await?;
    taken.add("http_holds_rps", holds.rps);
    taken.add("http_holds_p99_ms", holds.percentile_ms(99.0));
    let sold_out = load(args, &server, requests("/v1/orders", "NONE", 409, !seed), Pace::Closed).await?;
    taken.add("http_sold_out_rps", sold_out.rps);
    server.stop().await
}

/// Open loop at half of the measured rate.
async fn half_load(args: &Args, taken: &mut Taken) -> Result<()> {
    let half = taken.median("http_holds_rps").context("no holds were measured")? / 2.0;
    for round in 0..args.rounds {
        let seed = args.seed.wrapping_add(0x1000 + u64::try_from(round)?);
        let server = server(directory()?).await?;
        let measured =
            load(args, &server, requests("/v1/orders", "CUP", 201, seed), Pace::Open(half)).await?;
        taken.add("http_half_load_p99_ms", measured.percentile_ms(99.0));
        server.stop().await?;
    }
    Ok(())
}

/// Stores orders, then measures the engine and the memory of a server that has them.
async fn with_stored_orders(args: &Args, taken: &mut Taken) -> Result<f64> {
    let directory = directory()?;
    let sale = Sale::open(&directory.path().join(DATABASE), &Policy::default()).await?;
    sale.place(args.stored, Duration::from_secs(600), args.seed ^ 0xff).await?;
    for round in 0..args.rounds {
        let seed = args.seed.wrapping_add(0x2000 + u64::try_from(round)?);
        let seconds = Duration::from_secs_f64(args.seconds);
        taken.add("holds_rps_at_1m_orders", sale.place(u64::MAX - engine::CALLERS, seconds, seed).await?);
    }
    sale.close().await?;
    let server = PrivateServer::start_in(directory, &["--constant-answer"]).await?;
    // Holds and refusals, so that every cache that grows with the orders has grown.
    load(args, &server, requests("/v1/orders", "CUP", 201, args.seed ^ 0xfe00), Pace::Closed).await?;
    load(args, &server, requests("/v1/orders", "NONE", 409, args.seed ^ 0xfd00), Pace::Closed).await?;
    let rss = resident_mib(server.pid().context("the server has ended")?)?;
    server.stop().await?;
    Ok(rss)
}

/// The resident memory of a process.
fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1_024.0)
}

fn limits(args: &Args, taken: &Taken, rss: f64) -> Limits {
    let median = |name: &str| taken.figure(name);
    let ratio = |a: &str, b: &str| {
        let both = taken.median(a).zip(taken.median(b));
        rounded(both.map_or(f64::NAN, |(a, b)| a / b))
    };
    Limits {
        environment: Environment {
            processors: processors(),
            store: format!("SQLite {}", holdfast_sqlite::version()),
            durability: SQLITE_DURABILITY.to_owned(),
            stock: engine::SUPPLY,
            limits: "none, but for the measurement with limits: account_limit 2",
            stored_orders: args.stored,
            connections: args.connections,
            distribution: "one hot pool of one bucket; random order numbers, 128 bits",
            rounds: args.rounds,
            seconds_a_round: args.seconds,
            seed: args.seed,
        },
        constant_http_rps: median("constant_http_rps"),
        bare_insert_rps: median("bare_insert_rps"),
        bare_commit_p99_ms: median("bare_commit_p99_ms"),
        engine_holds_rps: median("engine_holds_rps"),
        engine_holds_limited_rps: median("engine_holds_limited_rps"),
        http_holds_rps: median("http_holds_rps"),
        http_holds_p99_ms: median("http_holds_p99_ms"),
        http_sold_out_rps: median("http_sold_out_rps"),
        http_half_load_p99_ms: median("http_half_load_p99_ms"),
        rss_mib_at_1m_orders: rounded(rss),
        holds_rps_at_1m_orders: median("holds_rps_at_1m_orders"),
        ratios: BTreeMap::from([
            ("engine_holds / bare_insert", ratio("engine_holds_rps", "bare_insert_rps")),
            ("engine_holds_limited / engine_holds", ratio("engine_holds_limited_rps", "engine_holds_rps")),
            ("http_holds / constant_http", ratio("http_holds_rps", "constant_http_rps")),
            ("http_sold_out / constant_http", ratio("http_sold_out_rps", "constant_http_rps")),
            ("half_load_p99 / bare_commit_p99", ratio("http_half_load_p99_ms", "bare_commit_p99_ms")),
            ("holds_at_1m / engine_holds", ratio("holds_rps_at_1m_orders", "engine_holds_rps")),
        ]),
        spread: taken.spread(),
    }
}

fn text(limits: &Limits) -> Result<String> {
    let mut out = String::new();
    let rows = [
        ("constant answers over HTTP", limits.constant_http_rps, "/s"),
        ("bare inserts of the same rows", limits.bare_insert_rps, "/s"),
        ("one bare commit, p99", limits.bare_commit_p99_ms, " ms"),
        ("holds at the engine", limits.engine_holds_rps, "/s"),
        ("holds at the engine, account limit 2", limits.engine_holds_limited_rps, "/s"),
        ("holds over HTTP", limits.http_holds_rps, "/s"),
        ("holds over HTTP, p99", limits.http_holds_p99_ms, " ms"),
        ("sold-out refusals over HTTP", limits.http_sold_out_rps, "/s"),
        ("holds at half load, p99", limits.http_half_load_p99_ms, " ms"),
        ("holds at the engine, orders stored", limits.holds_rps_at_1m_orders, "/s"),
        ("resident memory, orders stored", limits.rss_mib_at_1m_orders, " MiB"),
    ];
    for (what, value, unit) in rows {
        writeln!(out, "{what:<36} {value:>12.1}{unit}")?;
    }
    for (what, value) in &limits.ratios {
        writeln!(out, "{what:<36} {value:>12.2}")?;
    }
    writeln!(
        out,
        "{} connections, {} rounds, {} orders stored",
        limits.environment.connections, limits.environment.rounds, limits.environment.stored_orders
    )?;
    Ok(out)
}
