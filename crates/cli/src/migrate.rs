//! `holdfast migrate`: from the embedded store to PostgreSQL, with proof that nothing changed.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use holdfast_core::audit::Report;
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_postgres::{Address, Column, Target};
use holdfast_sqlite::Source;
use holdfast_store::{Authority, Digest, NewIncarnation, Store};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::database::Url;
use crate::output::{self, Format};
use crate::serve::random_id;

/// Bytes of rows that are sent at a time.
const PIECE_BYTES: usize = 64 * 1_024;
/// Pieces that wait to be sent.
const PIECES_MAX: usize = 8;

/// Move an authority from SQLite to PostgreSQL, and prove that nothing changed
#[derive(Debug, clap::Args)]
#[command(
    after_help = "No server may run on either. Every row is copied in one transaction and read again before it is \
                        committed;\nthen both are audited and compared. The old file stays as it is, but sells nothing \
                        any more: a case stops it,\nso that the same stock is never sold from two places. Exit status 1 \
                        if anything differs.\n\n\
                        Example:\n  holdfast migrate --from sqlite:shop.db --to postgres://holdfast@db/shop"
)]
pub(crate) struct Args {
    /// The authority that is left: sqlite:PATH
    #[arg(long, value_name = "URL")]
    from: String,
    /// The authority that takes over: an empty PostgreSQL database
    #[arg(long, value_name = "URL")]
    to: String,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One table, on both sides.
#[derive(Debug, Serialize)]
struct Moved {
    table: String,
    rows: u64,
    /// The same sum on both sides.
    digest: String,
}

#[derive(Debug, Serialize)]
struct Outcome {
    from: String,
    to: String,
    incarnation: String,
    /// The sum of the last ledger positions of all buckets, the same on both sides.
    positions: u64,
    tables: Vec<Moved>,
    /// Whether both authorities were audited without a breach and show the same pools.
    ok: bool,
    /// What differs.
    differences: Vec<String>,
}

/// Moves, compares and prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let (from, to) = (Url::parse(&args.from)?, Url::parse(&args.to)?);
    let (Url::Sqlite(path), Url::Postgres(address)) = (&from, &to) else {
        bail!("it goes from sqlite:PATH to postgres://…");
    };
    if !path.exists() {
        bail!("{}: there is no such file", path.display());
    }
    // Open for as long as this takes: it is brought up to date, and no server can start on it.
    let source = from.open(random_id()?).await?;
    let before = source.authority().await?;
    let tables = Box::pin(transfer(path.clone(), address, &*source, &before)).await?;
    let (left, taken) = (from.audit().await?, to.audit().await?);
    let differences = differences(&left, &taken);
    let outcome = Outcome {
        from: from.to_string(),
        to: to.to_string(),
        incarnation: before.incarnation.to_string(),
        positions: before.positions,
        tables,
        ok: differences.is_empty(),
        differences,
    };
    output::show(args.format, &outcome, text)?;
    Ok(if outcome.ok { ExitCode::SUCCESS } else { ExitCode::from(output::CHECK_FAILED) })
}

/// Copies every table, stops the old authority, and commits the new one: in this order, so that there is a moment
/// without any and never one with two.
async fn transfer(
    path: PathBuf,
    address: &Address,
    source: &dyn Store,
    before: &Authority,
) -> Result<Vec<Moved>> {
    let target = Target::begin(address).await.with_context(|| address.to_string())?;
    let copied = match copy_all(path, &target).await {
        Ok(copied) => copied,
        Err(error) => {
            target.give_up().await;
            return Err(error);
        }
    };
    let evidence = json!({"moved_to": address.to_string(), "positions": before.positions});
    let stop = NewIncarnation {
        incarnation: Incarnation(random_id()?),
        case: CaseId(random_id()?),
        evidence: evidence.to_string().into(),
    };
    source.begin_incarnation(stop).await?;
    target.finish(before.incarnation, copied.starts).await.context(
        "whether PostgreSQL has committed is unknown; the old database is stopped by a case: look at the new one, and \
         resolve the case only if it is empty",
    )?;
    Ok(copied.tables)
}

struct Copied {
    tables: Vec<Moved>,
    starts: i64,
}

async fn copy_all(path: PathBuf, target: &Target) -> Result<Copied> {
    let names = target.tables().await?;
    let mut jobs = Vec::with_capacity(names.len());
    for name in names {
        jobs.push((name.clone(), target.columns(&name).await?));
    }
    // One reader in one view, a table after the other; the pieces of each come through a channel of its own.
    let (mut feeds, mut wells) = (Vec::new(), Vec::new());
    for (name, columns) in &jobs {
        let (feed, well) = mpsc::channel::<Bytes>(PIECES_MAX);
        let (sum, digest) = oneshot::channel();
        feeds.push(Feed { table: name.clone(), columns: columns.clone(), feed, sum });
        wells.push((well, digest));
    }
    let reading = tokio::task::spawn_blocking(move || read_all(&path, feeds));
    let mut tables = Vec::with_capacity(jobs.len());
    for ((table, columns), (mut well, digest)) in jobs.into_iter().zip(wells) {
        target.take(&table, &columns, &mut well).await.with_context(|| format!("the table {table}"))?;
        // A reader that failed says why below.
        let Ok(sent) = digest.await else { break };
        let kept = target.digest(&table, &columns).await?;
        if sent != kept {
            bail!("{table}: {} rows were sent and {} are there, or they differ", sent.rows, kept.rows);
        }
        tables.push(Moved { table, rows: kept.rows, digest: kept.text() });
    }
    let starts = reading.await.context("the reader died")??;
    Ok(Copied { tables, starts })
}

/// Where the rows of a table go.
struct Feed {
    table: String,
    columns: Vec<Column>,
    feed: mpsc::Sender<Bytes>,
    sum: oneshot::Sender<Digest>,
}

/// Reads every table; how often a server has started on the file.
fn read_all(path: &std::path::Path, feeds: Vec<Feed>) -> Result<i64> {
    let mut source = Source::open(path)?;
    let view = source.view()?;
    let mut known = view.tables()?;
    let mut wanted: Vec<_> = feeds.iter().map(|feed| feed.table.clone()).collect();
    known.sort();
    wanted.sort();
    if known != wanted {
        bail!("the two stores do not have the same tables: {known:?} and {wanted:?}");
    }
    for Feed { table, columns, feed, sum } in feeds {
        let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
        let (mut digest, mut piece, mut row) = (Digest::default(), Vec::new(), Vec::new());
        view.rows(&table, &names, |cells| {
            row.clear();
            holdfast_postgres::line(&columns, cells, &mut row)?;
            digest.add(&row);
            piece.extend_from_slice(&row);
            if piece.len() >= PIECE_BYTES {
                // Nobody takes it any more: whoever took it has failed, and says so.
                let _ = feed.blocking_send(std::mem::take(&mut piece).into());
            }
            Ok(())
        })?;
        let _ = feed.blocking_send(piece.into());
        drop(feed);
        let _ = sum.send(digest);
    }
    Ok(view.starts()?)
}

/// What two audits say differently.
fn differences(left: &Report, taken: &Report) -> Vec<String> {
    let mut found = Vec::new();
    for (side, report) in [("the old one", left), ("the new one", taken)] {
        for (invariant, count) in &report.counts {
            found.push(format!("{side}: {count} breaches of {}", invariant.code()));
        }
    }
    let pairs = [
        ("ledger entries", left.entries, taken.entries),
        ("payments", left.payments, taken.payments),
        ("pools", left.pools.len() as u64, taken.pools.len() as u64),
    ];
    for (what, old, new) in pairs {
        if old != new {
            found.push(format!("{what}: {old} and {new}"));
        }
    }
    if left.orders != taken.orders {
        found.push(format!("orders: {:?} and {:?}", left.orders, taken.orders));
    }
    for (old, new) in left.pools.iter().zip(&taken.pools) {
        if old != new {
            found.push(format!("a pool: {old:?} and {new:?}"));
        }
    }
    found
}

fn text(outcome: &Outcome) -> Result<String> {
    let mut out = String::new();
    for Moved { table, rows, digest } in &outcome.tables {
        writeln!(out, "{table:<18} {rows:>12} rows  {digest}")?;
    }
    for difference in &outcome.differences {
        writeln!(out, "DIFFERENT: {difference}")?;
    }
    let verdict = if outcome.ok {
        "the same rows on both sides, both audited without a breach"
    } else {
        "NOT the same: do not serve from the new one"
    };
    writeln!(
        out,
        "{} -> {}\nincarnation {}, positions {}\n{verdict}",
        outcome.from, outcome.to, outcome.incarnation, outcome.positions
    )?;
    if outcome.ok {
        writeln!(out, "{} sells nothing any more: a case stops it", outcome.from)?;
    }
    Ok(out)
}
