//! `holdfast drill boundary`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use holdfast_drill::boundary::{Boundary, Stair, boundary, stair};
use holdfast_drill::{Outcome, Scenario, report};
use serde::Serialize;

use super::drive::{Drive, Extent};
use super::place::Places;
use super::run::write;
use crate::output::{self, Format};

/// Most loads of one row.
const STAIRS_MAX: usize = 40;
/// So many loads after the first at which waiting accumulates are still driven: they show whether it recovers.
const BEYOND: usize = 2;

/// Find where waiting begins and does not end any more: the same sale with more and more orders a second
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It ends two loads after waiting has begun to accumulate, at --to, or where the load itself cannot \
                  keep its\nschedule. Exit status 1 if an answer was false or an invariant broke on the way; 2 if it \
                  cannot be run.\n\n\
                  Example:\n  holdfast drill boundary --private sqlite --report boundary.html\n  \
                  holdfast drill boundary --target http://10.0.0.1:8080 --scenario skewed-buckets --from 500 --to 20000"
)]
pub(crate) struct Args {
    #[command(flatten)]
    places: Places,
    /// The sale: a scenario that breaks nothing
    #[arg(long, value_name = "NAME", default_value = "hot-pool", value_parser = unbroken)]
    scenario: &'static Scenario,
    /// The first load, in orders a second
    #[arg(long, value_name = "ORDERS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    from: u32,
    /// The last load, in orders a second
    #[arg(long, value_name = "ORDERS", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    to: u32,
    /// By how many percent each load is larger than the one before
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(5..=400))]
    step: u32,
    /// How long each lasts, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(5..=3_600))]
    seconds: u32,
    #[command(flatten)]
    drive: Drive,
    /// Where the boundary and every run go as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the boundary and every run go as a page for people, with their charts
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn unbroken(name: &str) -> Result<&'static Scenario, String> {
    let names =
        || Scenario::ALL.iter().filter(|of| of.steps.is_empty()).map(|of| of.name).collect::<Vec<_>>();
    Scenario::named(name)
        .filter(|scenario| scenario.steps.is_empty())
        .ok_or_else(|| format!("use a scenario that breaks nothing: {}", names().join(", ")))
}

/// What is written beside the page.
#[derive(Serialize)]
struct Found<'f> {
    boundary: &'f Boundary,
    runs: &'f [Outcome],
}

/// Steps the load up, prints what it shows.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    ensure!(args.from <= args.to, "--from is more than --to");
    let mut places = args.places.all()?;
    let (Some(place), true) = (places.pop(), places.is_empty()) else {
        bail!("a boundary is one deployment's: name one kind")
    };
    let scenario = args.scenario;
    if let Some(why) = place.refuses(scenario).await {
        bail!("{} cannot be run on {}: {why}", scenario.name, place.name());
    }
    let driver = args.drive.begin()?;
    let deployment = place.deployment(scenario).await?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut beyond = 0;
    for rate in rates(args.from, args.to, args.step) {
        let extent = Extent { seconds: Some(args.seconds), rate: Some(rate) };
        let drilled = driver.run_on(std::sync::Arc::clone(&deployment), scenario, &place, extent).await?;
        let stair = stair(&drilled.outcome);
        output::complain(&line(&stair))?;
        outcomes.push(drilled.outcome);
        beyond += usize::from(stair.accumulates);
        if stair.is_generator_limit || beyond > BEYOND || driver.is_stopped() {
            break;
        }
    }
    drop(deployment);
    let found = boundary(&outcomes);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&Found { boundary: &found, runs: &outcomes })?;
        write(path, &text)?;
    }
    if let Some(path) = &args.report {
        write(path, &report::boundary_page(&found, &outcomes))?;
    }
    match args.format {
        Format::Json => output::print_json(&Found { boundary: &found, runs: &outcomes })?,
        Format::Text => output::print(&text(&found, outcomes.first().context("nothing was driven")?))?,
    }
    Ok(output::verdict(outcomes.iter().all(|outcome| outcome.ok)))
}

/// The loads, each larger by the same share, the last one as it is named.
fn rates(from: u32, to: u32, step_percent: u32) -> Vec<u32> {
    let mut rates = vec![from];
    while let Some(last) = rates.last().copied().filter(|last| *last < to && rates.len() < STAIRS_MAX) {
        let more = (u64::from(last) * u64::from(step_percent) / 100).max(1);
        rates.push(u32::try_from(u64::from(last) + more).unwrap_or(to).min(to));
    }
    rates
}

fn line(stair: &Stair) -> String {
    let verdict = match stair {
        Stair { is_generator_limit: true, .. } => "the load was itself the limit",
        Stair { is_stuck: true, .. } => "drains longer than it lasted",
        Stair { accumulates: true, .. } => "waiting accumulates",
        _ => "carried",
    };
    let hottest = stair
        .hottest
        .as_ref()
        .map_or_else(String::new, |of| format!(", {:.0} % from {} #{}", of.share * 100.0, of.sku, of.bucket));
    let p99 = stair.p99_us.map_or_else(|| "–".to_owned(), |micros| format!("{} ms", micros.div_ceil(1_000)));
    format!(
        "  {:>7.0}/s due, {:>7.0}/s landed, {:>4.1} % turned away, p99 {p99}, waiting {:.0} to {:.0}, drained after {} ms{hottest}: {verdict}",
        stair.offered_rps,
        stair.landed_rps,
        stair.turned_away * 100.0,
        stair.waiting_early,
        stair.waiting_late,
        stair.drained_after_ms
    )
}

fn text(found: &Boundary, first: &Outcome) -> String {
    let rate = |rate: Option<f64>| {
        rate.map_or_else(|| "at no load that was driven".to_owned(), |rate| format!("{rate:.0}/s"))
    };
    let parameters = &first.parameters;
    let mut lines = vec![format!(
        "{} on {}, {} node(s): {} units, {} pool(s) ({}), {} buckets, {:.0} % for the first, {} accounts, {} stored before, {} s each, seed {}",
        first.scenario,
        first.environment.deployment,
        first.environment.nodes,
        parameters.stock,
        parameters.pools,
        parameters.path,
        parameters.buckets,
        parameters.hot_share * 100.0,
        parameters.accounts,
        parameters.stored_orders,
        parameters.seconds,
        parameters.seed
    )];
    lines.extend(found.stairs.iter().map(line));
    lines.push(format!("carries {}", rate(found.carries_rps)));
    lines.push(format!("waiting accumulates: {}", rate(found.waits_from_rps)));
    lines.push(format!("drains longer than it lasted: {}", rate(found.stuck_from_rps)));
    if found.ends_at_generator {
        lines.push(format!(
            "the load could not be more: nothing is known beyond {:.0}/s",
            found.measured_to_rps
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_grow_by_a_share_and_end_where_they_are_told() {
        assert_eq!(rates(100, 400, 50), [100, 150, 225, 337, 400]);
        assert_eq!(rates(1, 3, 5), [1, 2, 3]);
        assert_eq!(rates(500, 500, 50), [500]);
        assert_eq!(rates(1, 1_000_000, 5).len(), STAIRS_MAX);
    }

    #[test]
    fn only_a_sale_in_which_nothing_breaks_has_a_boundary() {
        assert_eq!(unbroken("hot-pool").unwrap().name, "hot-pool");
        let why = unbroken("node-kill").unwrap_err();
        assert!(why.contains("hot-pool") && !why.contains("node-kill"), "{why}");
    }
}
