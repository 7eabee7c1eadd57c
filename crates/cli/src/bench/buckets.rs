//! `holdfast bench buckets`: how many buckets a hot pool should have on this database, and why.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use super::load::Pace;
use super::paths::Figures;
use super::paths::measure::{self, Load, Turn, Variant};
use super::report::{Environment, Length};
use super::stage::{Choice, Stage};
use crate::output::{self, Format};

/// Numbers of buckets that are tried.
const TRIED: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// From the knee on, more buckets give less than this share more. They would cost whoever must look at all of
/// them, and fragments.
const GAIN_MIN: f64 = 0.05;
/// Servers beside each other, where the store lets them.
const NODES: u32 = 2;

/// The path whose buckets are tried.
const PATH: &str = "batched";

/// Find the number of buckets for a hot pool on this database
#[derive(Debug, clap::Args)]
#[command(
    after_help = "One hot pool over 1, 2, 4 … 32 buckets, on PostgreSQL with one server and with two, in rounds that \
                        take turns; figures are medians.\n\n\
                        Example:\n  holdfast bench buckets --store postgres"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    length: Length,
    /// Connections, one order a request
    #[arg(long, default_value_t = 256)]
    connections: usize,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Serialize)]
struct Report {
    environment: Environment,
    path: &'static str,
    #[serde(flatten)]
    one_node: Tried,
    /// Where several servers may have one store.
    #[serde(skip_serializing_if = "Option::is_none")]
    two_nodes: Option<Tried>,
}

/// What so many servers made of every number of buckets.
#[derive(Serialize)]
struct Tried {
    buckets: Vec<Figures>,
    /// From where more buckets give next to nothing.
    knee: u32,
    reason: String,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let report = measured(&args, &stage).await?;
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &Args, stage: &Stage) -> Result<Report> {
    let one = TRIED.map(|buckets| Variant::new(PATH, buckets, 1));
    let two = one.map(|variant| Variant { nodes: NODES, ..variant });
    let variants: Vec<Variant> =
        one.into_iter().chain(two.into_iter().filter(|_| stage.is_shared())).collect();
    let bar = output::progress(args.length.rounds * variants.len(), "bench buckets");
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); variants.len()];
    for round in 0..args.length.rounds {
        let (seed, seconds) = (args.length.seed_of(round)?, args.length.duration());
        let (connections, pace) = (args.connections, Pace::Closed);
        let load = Load { database: None, connections, pace, seconds, seed, crash: false };
        for (variant, turns) in variants.iter().zip(&mut turns) {
            turns.push(measure::turn(stage, *variant, load).await.with_context(|| variant.name())?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut figures: Vec<Figures> =
        variants.iter().zip(&turns).map(|(variant, of)| Figures::of(*variant, of)).collect();
    let of_two = figures.split_off(TRIED.len());
    let one_node = Tried::of(figures).context("nothing was measured")?;
    let distribution = "one hot pool; random order numbers, 128 bits";
    let environment = stage.environment(&args.length, args.connections, distribution).await?;
    Ok(Report { environment, path: PATH, one_node, two_nodes: Tried::of(of_two) })
}

impl Tried {
    /// None if nothing was tried.
    fn of(buckets: Vec<Figures>) -> Option<Self> {
        let (knee, reason) = knee(&buckets)?;
        Some(Self { buckets, knee, reason })
    }
}

/// The number, and why it is that one.
fn knee(figures: &[Figures]) -> Option<(u32, String)> {
    let best = figures.iter().max_by(|a, b| a.holds_rps.total_cmp(&b.holds_rps))?;
    let more = |than: u32| figures.iter().filter(move |of| of.buckets > than);
    let is_enough =
        |of: &&Figures| more(of.buckets).all(|next| next.holds_rps < of.holds_rps * (1.0 + GAIN_MIN));
    let knee = figures.iter().find(is_enough)?;
    let one = figures.first()?;
    let next = more(knee.buckets).next();
    let mut reason = format!(
        "{} of {} holds/s, the best of all tried (with {})",
        percent(knee.holds_rps / best.holds_rps),
        best.holds_rps.round(),
        best.buckets
    );
    if knee.buckets > one.buckets {
        let _ = write!(reason, ", {:.1} times one bucket", knee.holds_rps / one.holds_rps);
    }
    if let Some(next) = next {
        let gain = next.holds_rps / knee.holds_rps - 1.0;
        let _ = write!(reason, "; {} buckets give {:+.0} %", next.buckets, gain * 100.0);
    }
    let _ = write!(
        reason,
        ". With {} an order waits longest at the {} ({:.1} ms of lane, {:.1} ms for the lock, {:.1} ms under it), with \
         {:.0} orders a transaction.",
        knee.buckets,
        knee.queues_at,
        knee.waits_ms.lane,
        knee.waits_ms.lock,
        knee.waits_ms.commit,
        knee.batch_size_mean
    );
    Some((knee.buckets, reason))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "{}, {}", report.environment.store, report.path)?;
    write(&mut out, &report.one_node, 1)?;
    if let Some(tried) = &report.two_nodes {
        write(&mut out, tried, NODES)?;
    }
    Ok(out)
}

fn write(out: &mut String, tried: &Tried, nodes: u32) -> Result<()> {
    let servers = if nodes == 1 { "server" } else { "servers" };
    writeln!(
        out,
        "\n{nodes} {servers}\n{:>7} {:>10} {:>8} {:>9} {:>7}  {:<9}",
        "buckets", "holds/s", "p99 ms", "lock p99", "batch", "queues at"
    )?;
    for of in &tried.buckets {
        writeln!(
            out,
            "{:>7} {:>10.0} {:>8.1} {:>9.1} {:>7.1}  {:<9}",
            of.buckets, of.holds_rps, of.p99_ms, of.lock_wait_p99_ms, of.batch_size_mean, of.queues_at
        )?;
    }
    writeln!(out, "Use {}: {}", tried.knee, tried.reason)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::paths::measure::Waits;
    use super::*;

    fn figures(rates: &[(u32, f64)]) -> Vec<Figures> {
        let turn = |holds_rps| Turn {
            holds_rps,
            accepted_rps: None,
            p50_ms: 1.0,
            p99_ms: 2.0,
            p999_ms: 3.0,
            lock_wait_p99_ms: 1.0,
            batch_size_mean: 10.0,
            waits: Waits { lane: 2.0, ..Waits::default() },
            log_bytes: None,
            recovery: None,
        };
        let of =
            |(buckets, rate): &(u32, f64)| Figures::of(Variant::new("batched", *buckets, 1), &[turn(*rate)]);
        rates.iter().map(of).collect()
    }

    #[test]
    fn the_knee_is_where_more_buckets_give_less_than_a_twentieth() {
        let (knee, reason) = knee(&figures(&[(1, 100.0), (2, 192.0), (4, 200.0), (8, 195.0)])).unwrap();
        assert_eq!(knee, 2);
        assert!(
            reason.contains("96 % of 200 holds/s") && reason.contains("1.9 times one bucket"),
            "{reason}"
        );
        assert!(reason.contains("4 buckets give +4 %") && reason.contains("at the lane"), "{reason}");
        assert_eq!(super::knee(&figures(&[(1, 100.0), (2, 101.0)])).unwrap().0, 1);
        assert_eq!(super::knee(&figures(&[(1, 100.0), (2, 99.0), (4, 106.0)])).unwrap().0, 4, "beyond a dip");
        assert!(super::knee(&[]).is_none());
    }
}
