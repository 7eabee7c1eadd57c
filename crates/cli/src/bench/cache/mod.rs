//! `holdfast bench cache`: what a cache before the authority is worth here, beside the batched path.

mod measure;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use self::measure::Load;
use super::floor;
use super::report::{Environment, Length, Spread, Taken, rounded};
use super::stage::{Choice, Stage};
use crate::output::{self, Format};

/// How orders are spread.
const DISTRIBUTION: &str = "one hot pool; random order numbers, 128 bits";
/// What the answers of a slow authority are delayed by.
const DELAY: Duration = Duration::from_millis(20);
/// Landing while a burst is accepted, as a share of what is accepted.
const PACED_TO: f64 = 0.1;
/// What is accepted, as a share of constant answers, before anything was measured: only landing's pace is made of it.
const GUESS: f64 = 0.5;
/// Arrivals at which the lag is measured, as shares of what is landed in a second.
const ARRIVALS: [f64; 3] = [0.25, 0.5, 0.75];
/// How much faster accepting must be before a cache is worth its server.
const WORTH: f64 = 1.5;

/// Measure what a cache before the authority accepts, lands, and is worth
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every turn has a server, a Redis and an empty store of its own; rounds take turns and figures are \
                  medians.\nNeeds redis-server. A slow authority is measured on PostgreSQL only.\n\n\
                  Example:\n  holdfast bench cache --store postgres"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    length: Length,
    /// Connections, one order a request
    #[arg(long, default_value_t = 256)]
    connections: usize,
    /// Buckets of the pool, each with a cache of its own
    #[arg(long, default_value_t = 1)]
    buckets: u32,
    /// Let the cache flush each write before it answers: killed, it then loses nobody
    #[arg(long)]
    durable_cache: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result; the names are those that others compare by.
#[derive(Debug, Serialize)]
struct Report {
    environment: Environment,
    cache: &'static str,
    buckets: u32,
    constant_http_rps: f64,
    engine_holds_rps: f64,
    batched_holds_rps: f64,
    batched_p99_ms: f64,
    accepted_rps: f64,
    accepted_p99_ms: f64,
    landed_rps: f64,
    arrivals: Vec<Arrival>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_authority: Option<Slow>,
    spread: BTreeMap<&'static str, Spread>,
    advice: String,
}

/// How long an order waits to be landed.
#[derive(Debug, Serialize)]
struct Arrival {
    arrival_rps: f64,
    lag_p50_ms: f64,
    lag_p99_ms: f64,
}

/// Both paths on an authority whose answers come late.
#[derive(Debug, Serialize)]
struct Slow {
    delay_ms: u128,
    batched_holds_rps: f64,
    accepted_rps: f64,
    landed_rps: f64,
    backlog_orders: f64,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate far below 2^32")]
fn paced(accepted_rps: f64) -> u32 {
    (accepted_rps * PACED_TO) as u32
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let is_slow_too = stage.port().is_some();
    let steps = if is_slow_too { 6 } else { 4 };
    let bar = output::progress(args.length.rounds * steps + ARRIVALS.len(), "bench cache");
    let mut taken = Taken::default();
    for round in 0..args.length.rounds {
        let load = args.load(round)?;
        let constant = floor::constant_http_rps(stage, load.connections, load.seconds, load.seed).await?;
        taken.add("constant_http_rps", constant);
        taken.add("engine_holds_rps", floor::engine_holds_rps(stage, load.seconds, load.seed).await?);
        let batched = measure::batched(stage, load).await?;
        taken.add("batched_holds_rps", batched.rps);
        taken.add("batched_p99_ms", batched.percentile_ms(99.0));
        bar.inc(3);
        let burst = measure::burst(stage, load, paced(constant * GUESS)).await?;
        taken.add("accepted_rps", burst.accepted.rps);
        taken.add("accepted_p99_ms", burst.accepted.percentile_ms(99.0));
        taken.add("landed_rps", burst.landed_rps);
        bar.inc(1);
        if is_slow_too {
            let load = Load { delay: Some(DELAY), ..load };
            taken.add("slow_batched_holds_rps", measure::batched(stage, load).await?.rps);
            let slow = measure::burst(stage, load, paced(burst.accepted.rps)).await?;
            taken.add("slow_accepted_rps", slow.accepted.rps);
            taken.add("slow_landed_rps", slow.landed_rps);
            taken.add("slow_backlog_orders", slow.backlog);
            bar.inc(2);
        }
    }
    let mut arrivals = Vec::new();
    for share in ARRIVALS {
        let rate = taken.figure("landed_rps") * share;
        let [p50, p99] = measure::lag(stage, args.load(args.length.rounds)?, rate).await?;
        arrivals.push(Arrival {
            arrival_rps: rounded(rate),
            lag_p50_ms: rounded(p50),
            lag_p99_ms: rounded(p99),
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let slow_authority = is_slow_too.then(|| Slow {
        delay_ms: DELAY.as_millis(),
        batched_holds_rps: taken.figure("slow_batched_holds_rps"),
        accepted_rps: taken.figure("slow_accepted_rps"),
        landed_rps: taken.figure("slow_landed_rps"),
        backlog_orders: taken.figure("slow_backlog_orders"),
    });
    Ok(Report {
        environment: stage.environment(&args.length, args.connections, DISTRIBUTION).await?,
        cache: if args.durable_cache { "Redis, flushes each write" } else { "Redis, keeps nothing on disk" },
        buckets: args.buckets,
        constant_http_rps: taken.figure("constant_http_rps"),
        engine_holds_rps: taken.figure("engine_holds_rps"),
        batched_holds_rps: taken.figure("batched_holds_rps"),
        batched_p99_ms: taken.figure("batched_p99_ms"),
        accepted_rps: taken.figure("accepted_rps"),
        accepted_p99_ms: taken.figure("accepted_p99_ms"),
        landed_rps: taken.figure("landed_rps"),
        arrivals,
        slow_authority,
        advice: advice(taken.figure("accepted_rps"), taken.figure("batched_holds_rps")),
        spread: taken.spread(),
    })
}

impl Args {
    fn load(&self, round: usize) -> Result<Load> {
        Ok(Load {
            connections: self.connections,
            seconds: self.length.duration(),
            seed: self.length.seed_of(round)?,
            buckets: self.buckets,
            is_durable: self.durable_cache,
            delay: None,
        })
    }
}

/// Whether it is worth it, by what was measured here.
fn advice(accepted: f64, batched: f64) -> String {
    let times = accepted / batched;
    let costs = "an accepted order is queued, not held, and landing it costs the authority the same";
    if times >= WORTH {
        format!(
            "The cache accepts {times:.1} times what the batched path holds, and {costs}. It is worth its server for a \
             peak that is shorter than buyers' patience and higher than {batched:.0}/s."
        )
    } else {
        format!(
            "The cache accepts {times:.1} times what the batched path holds, and {costs}. It is not worth its server \
             here: stay on batched, the default."
        )
    }
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    let Environment { store, connections, rounds, processors, .. } = &report.environment;
    writeln!(
        out,
        "{store}, {}, {processors} processors, {connections} connections, medians of {rounds} rounds\n",
        report.cache
    )?;
    for (what, rate, p99) in [
        ("constant answers over HTTP", report.constant_http_rps, None),
        ("holds at the engine", report.engine_holds_rps, None),
        ("batched, held", report.batched_holds_rps, Some(report.batched_p99_ms)),
        ("cached, accepted", report.accepted_rps, Some(report.accepted_p99_ms)),
        ("cached, landed afterwards", report.landed_rps, None),
    ] {
        let p99 = p99.map_or_else(String::new, |p99| format!("   p99 {p99:.1} ms"));
        writeln!(out, "{what:<32} {rate:>10.0}/s{p99}")?;
    }
    if let Some(slow) = &report.slow_authority {
        writeln!(out, "\nThe authority's answers {} ms late:", slow.delay_ms)?;
        writeln!(out, "{:<32} {:>10.0}/s", "batched, held", slow.batched_holds_rps)?;
        writeln!(out, "{:<32} {:>10.0}/s", "cached, accepted", slow.accepted_rps)?;
        writeln!(
            out,
            "{:<32} {:>10.0}/s   of {:.0} that waited",
            "cached, landed afterwards", slow.landed_rps, slow.backlog_orders
        )?;
    }
    writeln!(out, "\n{:<32} {:>10} {:>10}", "landed as they come", "p50 ms", "p99 ms")?;
    for of in &report.arrivals {
        let what = format!("{:.0} orders/s", of.arrival_rps);
        writeln!(out, "{what:<32} {:>10.1} {:>10.1}", of.lag_p50_ms, of.lag_p99_ms)?;
    }
    writeln!(out, "\n{}", report.advice)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_advised_where_it_takes_much_more() {
        assert!(
            advice(30_000.0, 10_000.0).contains("3.0 times")
                && advice(30_000.0, 10_000.0).contains("It is worth")
        );
        assert!(advice(12_000.0, 10_000.0).contains("stay on batched"));
    }
}
