//! `holdfast bench imports`: how fast stock files are applied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::value_parser;
use holdfast_client::{Client, ImportQuery};
use holdfast_server::time_text;
use holdfast_store::{Clock, SystemClock};
use holdfast_wire::{ImportView, PutCampaignRequest};
use serde::Serialize;

use super::report::{Spread, Taken, processors, rounded};
use super::stage::{Choice, Stage};
use crate::output::{self, Format};

/// Units that each row brings.
const UNITS: u64 = 100;

/// Measure how fast stock files are applied: new pools, counts, and units on top of what is there
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every round is a campaign of its own. Each file is sent over HTTP as a shop would send it, and timed \
                  until its\nanswer, when all of it is on disk.\n\n\
                  Example:\n  holdfast bench imports --store postgres --rows 100000 --format json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Rows of a file
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=100_000))]
    rows: u64,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u64).range(1..))]
    rounds: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What the figures were measured in.
#[derive(Serialize)]
struct Environment {
    processors: usize,
    store: String,
    durability: String,
    rows: u64,
    rounds: u64,
}

/// Medians of the rounds.
#[derive(Serialize)]
struct Report {
    environment: Environment,
    open_rows_per_second: f64,
    count_rows_per_second: f64,
    inbound_rows_per_second: f64,
    open_seconds: f64,
    count_seconds: f64,
    inbound_seconds: f64,
    /// Of the seconds.
    spread: BTreeMap<&'static str, Spread>,
}

/// Measures and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let stage = Stage::prepare(&args.choice).await?;
    let server = stage.server().await?;
    let client = Client::new(server.address(), None)?;
    let bar = output::progress(usize::try_from(args.rounds)?, "bench imports");
    let mut seconds = Taken::default();
    for round in 0..args.rounds {
        one_round(&client, &format!("bench-{round}"), args.rows, &mut seconds).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    server.stop().await?;
    let (store, durability) = stage.describe().await?;
    let (rows, rounds) = (args.rows, args.rounds);
    let environment = Environment { processors: processors(), store, durability, rows, rounds };
    let report = report(environment, &seconds);
    output::show(args.format, &report, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens, counts one less of each, and brings more of each.
async fn one_round(client: &Client, campaign: &str, rows: u64, seconds: &mut Taken) -> Result<()> {
    let put = PutCampaignRequest { name: "bench".to_owned(), ..PutCampaignRequest::default() };
    client.put_campaign(campaign, &put).await?;
    let plain = file("sku,quantity", rows, &format!("{UNITS}"));
    let opened = import(client, campaign, "open", plain.clone(), seconds).await?;
    ensure!(opened.opened == rows, "{} of {rows} pools are new", opened.opened);
    // The files that follow come a while later: a database whose clock is a little behind has come to this by then.
    let now = time_text(SystemClock.now());
    let counted = file("sku,quantity,counted_at,basis", rows, &format!("{},{now},unsold", UNITS - 1));
    let counted = import(client, campaign, "count", counted, seconds).await?;
    ensure!(counted.adjusted == rows, "{} of {rows} pools were adjusted", counted.adjusted);
    let brought = import(client, campaign, "inbound", plain, seconds).await?;
    ensure!(brought.adjusted == rows, "{} of {rows} pools got more", brought.adjusted);
    Ok(())
}

fn file(header: &str, rows: u64, rest: &str) -> Vec<u8> {
    let mut text = format!("{header}\n");
    for number in 0..rows {
        let _ = writeln!(text, "SKU-{number:06},{rest}");
    }
    text.into_bytes()
}

async fn import(
    client: &Client,
    campaign: &str,
    mode: &'static str,
    file: Vec<u8>,
    seconds: &mut Taken,
) -> Result<ImportView> {
    let query = ImportQuery {
        campaign_id: campaign.to_owned(),
        mode: Some(mode.to_owned()),
        ..ImportQuery::default()
    };
    let begun = Instant::now();
    let answer = client.import_stock(&query, file).await.with_context(|| format!("a file to {mode}"))?;
    seconds.add(mode, begun.elapsed().as_secs_f64());
    ensure!(!answer.value.replayed, "a file was applied before its answer was lost: measure again");
    Ok(answer.value)
}

fn report(environment: Environment, seconds: &Taken) -> Report {
    #[expect(clippy::cast_precision_loss, reason = "at most 100,000 rows")]
    let rows = environment.rows as f64;
    let rate = |mode: &str| rounded(rows / seconds.median(mode).unwrap_or(f64::NAN));
    Report {
        open_rows_per_second: rate("open"),
        count_rows_per_second: rate("count"),
        inbound_rows_per_second: rate("inbound"),
        open_seconds: seconds.figure("open"),
        count_seconds: seconds.figure("count"),
        inbound_seconds: seconds.figure("inbound"),
        spread: seconds.spread(),
        environment,
    }
}

fn text(report: &Report) -> Result<String> {
    let mut out = String::new();
    for (what, rate, seconds) in [
        ("new pools", report.open_rows_per_second, report.open_seconds),
        ("counts that differ", report.count_rows_per_second, report.count_seconds),
        ("more of what there is", report.inbound_rows_per_second, report.inbound_seconds),
    ] {
        writeln!(out, "{what:<24} {rate:>12.0} rows/s {seconds:>9.2} s")?;
    }
    let Environment { store, rows, rounds, .. } = &report.environment;
    writeln!(out, "{rows} rows a file, {rounds} rounds, {store}")?;
    Ok(out)
}
