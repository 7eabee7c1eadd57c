//! `holdfast plan`: what a sale needs, from what was measured.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use holdfast_drill::capacity::{Expected, Measured, Plan, plan};
use serde::Serialize;

use crate::output::{self, Format};

/// Say what a sale needs: path, buckets, nodes, queues, sizes, and what gives way first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It plans from measurements of your own, and says what none of them shows. Exit status 1: what was \
                        measured does not carry the sale.\n\n\
                        Example:\n  holdfast bench paths --store postgres --format json > paths.json\n  \
                        holdfast bench cache --store postgres --format json > cache.json\n  \
                        holdfast plan --measured paths.json --measured cache.json --peak 8000 --stock 5000"
)]
pub(crate) struct Args {
    /// The JSON of `bench paths`, `bench buckets`, `bench cache` or `drill boundary`; may be given more than once
    #[arg(long, value_name = "FILE", required = true)]
    measured: Vec<PathBuf>,
    /// Orders that come in a second at the peak
    #[arg(long, value_name = "ORDERS", value_parser = amount)]
    peak: f64,
    /// How long the peak lasts, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = amount)]
    peak_seconds: f64,
    /// How many percent of the orders are for the same pool
    #[arg(long, default_value_t = 100, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    hot: u32,
    /// Units in that pool
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(u64).range(1..))]
    stock: u64,
    /// How many percent of the holds nobody pays
    #[arg(long, default_value_t = 20, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=99))]
    unpaid: u32,
    /// How long a hold lasts, in seconds
    #[arg(long, default_value = "900", value_name = "SECONDS", value_parser = amount)]
    hold_seconds: f64,
    /// How long a buyer may wait in a queue for the answer, in seconds
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = amount)]
    wait_seconds: f64,
    /// How long the database may be away while orders are still taken, in seconds
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = amount)]
    outage_seconds: f64,
    /// Orders that are stored in all; without it those of the peak
    #[arg(long, value_name = "ORDERS")]
    orders: Option<u64>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// An amount that is 0 or more.
fn amount(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if value.is_finite() && (0.0..=1e12).contains(&value) { Ok(value) } else { Err("0 or more".to_owned()) }
}

/// The plan, with what it was made from.
#[derive(Serialize)]
struct Report {
    expected: Expected,
    measured: Measured,
    plan: Plan,
}

/// Reads, plans, prints.
#[expect(clippy::unused_async, reason = "as every command")]
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let mut measured = Measured::default();
    for file in &args.measured {
        let name = || file.display().to_string();
        measured.read(&std::fs::read_to_string(file).with_context(name)?).with_context(name)?;
    }
    let of_peak = args.peak * args.peak_seconds;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1e24, which stays at the top"
    )]
    let orders = args.orders.unwrap_or(of_peak as u64);
    let expected = Expected {
        peak_rps: args.peak,
        peak_seconds: args.peak_seconds,
        hot_share: f64::from(args.hot) / 100.0,
        stock: args.stock,
        unpaid_share: f64::from(args.unpaid) / 100.0,
        hold_seconds: args.hold_seconds,
        wait_seconds: args.wait_seconds,
        outage_seconds: args.outage_seconds,
        orders,
    };
    let plan = plan(&expected, &measured);
    let report = Report { expected, measured, plan };
    output::show(args.format, &report, text)?;
    Ok(output::verdict(report.plan.carries))
}

fn text(report: &Report) -> Result<String> {
    let (plan, expected) = (&report.plan, &report.expected);
    let mut out = String::new();
    match (&plan.path, plan.buckets, plan.nodes) {
        (Some(path), Some(buckets), Some(nodes)) => {
            writeln!(out, "path          {path}, {buckets} buckets, {nodes} nodes")?;
        }
        _ => writeln!(out, "path          none of those that were measured carries the hot pool")?,
    }
    if let Some(rps) = plan.hot_rps_max {
        writeln!(out, "one pool      {rps:.0}/s at most, on the path that answers most")?;
    }
    if let (Some(limit), Some(wait)) = (plan.queue_limit, plan.queue_wait_ms) {
        writeln!(out, "queue         queue_limit {limit}, queue_wait_ms {wait}")?;
    }
    if let Some(seconds) = plan.sold_out_after_seconds {
        writeln!(out, "sold out      first after {seconds:.1} s")?;
    }
    writeln!(
        out,
        "sold through  99 % paid after {:.0} s: holds of {:.0} s, of which {:.0} % go round unpaid",
        plan.sold_through_after_seconds,
        expected.hold_seconds,
        expected.unpaid_share * 100.0
    )?;
    writeln!(out, "held at once  {} units at most", plan.held_units_max)?;
    if let (Some(second), Some(all)) = (plan.log_bytes_a_second, plan.log_bytes) {
        writeln!(
            out,
            "database      {} of log a second at the peak, {} for {} orders",
            bytes(second),
            bytes(all),
            expected.orders
        )?;
    }
    if let Some(cache) = plan.cache_bytes {
        writeln!(out, "cache         {}", bytes(cache))?;
    }
    writeln!(out)?;
    for tier in &plan.tiers {
        writeln!(
            out,
            "{:<26} {:>9.0}/s needed  {:>9.0}/s measured  {:>6.2} times",
            tier.tier, tier.needed_rps, tier.measured_rps, tier.headroom
        )?;
    }
    writeln!(out, "gives way first: {}", plan.breaks_first)?;
    for reason in &plan.reasons {
        writeln!(out, "- {reason}")?;
    }
    writeln!(out, "not measured, and so not promised:")?;
    for line in &plan.beyond {
        writeln!(out, "- {line}")?;
    }
    let verdict = if plan.carries { "carries" } else { "does NOT carry" };
    writeln!(out, "\nwhat was measured {verdict} this sale, with 30 % left at the peak")?;
    Ok(out)
}

/// Bytes in words.
fn bytes(value: u64) -> String {
    match value {
        0..10_000 => format!("{value} bytes"),
        10_000..10_000_000 => format!("{} kB", value / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", value / 1_000_000),
        10_000_000_000.. => format!("{} GB", value / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_0_or_more() {
        assert_eq!(amount("1.5"), Ok(1.5));
        for text in ["-1", "NaN", "inf", "1e13", "many"] {
            assert!(amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_told_in_the_unit_that_is_read_easily() {
        let told = [9_999, 10_000, 12_345_678, 45_000_000_000].map(bytes);
        assert_eq!(told, ["9999 bytes", "10 kB", "12 MB", "45 GB"]);
    }
}
