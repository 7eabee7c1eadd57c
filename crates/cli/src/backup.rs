//! `holdfast backup` and `holdfast restore`: a copy from which somebody may sell again, and a server that
//! knows that it was restored.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_engine::{IdSource, UuidV7};
use holdfast_server::time_text;
use holdfast_sqlite::{Check, Contents, Copied};
use holdfast_store::{Clock, NewIncarnation, SystemClock};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::json;

use crate::output::{self, Format};
use crate::state_file::{self, Seen};
use crate::{database, serve};

/// Copy a database as it stands now, beside a running server
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The copy is checked (SQLite's own check, then the invariants), flushed, and only then \
                        gets its name.\nNothing is overwritten. While it runs the server's log cannot be \
                        shortened.\n\n\
                        Example:\n  holdfast backup /backup/shop-monday.db --database sqlite:shop.db"
)]
pub(crate) struct BackupArgs {
    /// The copy to make
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    authority: database::Named,
    /// Do not check the copy
    #[arg(long)]
    no_verify: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Make a database of a copy; it sells nothing until somebody acknowledges the loss
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What was sold after the copy was taken is not in it. The restored database is a new \
                        incarnation:\na server on it refuses sales until the case `incarnation` is resolved \
                        (POST /v1/cases/ID/resolve).\nHolds, payments and releases go on.\n\n\
                        Example:\n  holdfast restore /backup/shop-monday.db --database sqlite:shop.db"
)]
pub(crate) struct RestoreArgs {
    /// The copy, made by `holdfast backup`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The database to make; nothing may be there
    #[arg(long, value_name = "URL")]
    database: String,
    /// The state file of the server that is lost, to tell how much is missing; without it the one beside the
    /// database to make is read, if there is one
    #[arg(long, env = "HOLDFAST_STATE_FILE", value_name = "FILE")]
    state_file: Option<PathBuf>,
    /// Do not check the copy
    #[arg(long)]
    no_verify: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A copy that was made.
#[derive(Debug, Serialize)]
struct Made {
    file: String,
    bytes: u64,
    duration_ms: u128,
    verified: bool,
    incarnation: String,
    orders: u64,
    ledger_entries: u64,
    buckets: u64,
    positions: u64,
    positions_sha256: String,
    last_ledger_at: Option<String>,
}

impl Made {
    fn of(copied: &Copied, file: String, check: Check, begin: Instant) -> Result<Self> {
        let Copied { contents, bytes } = copied;
        let mut hash = String::new();
        for byte in contents.positions_sha256 {
            write!(hash, "{byte:02x}")?;
        }
        Ok(Self {
            file,
            bytes: *bytes,
            duration_ms: begin.elapsed().as_millis(),
            verified: check == Check::Full,
            incarnation: contents.incarnation.to_string(),
            orders: contents.orders,
            ledger_entries: contents.entries,
            buckets: contents.buckets,
            positions: contents.positions,
            positions_sha256: hash,
            last_ledger_at: contents.last_ledger_at.map(time_text),
        })
    }

    fn text(&self) -> String {
        let checked = if self.verified { "checked" } else { "NOT checked" };
        let last = self.last_ledger_at.as_deref().unwrap_or("none");
        format!(
            "{}: {} bytes in {} ms, {checked}\n\
             incarnation {}\n{} orders, {} ledger entries, {} buckets, last entry {last}\n\
             positions {} sha256 {}",
            self.file,
            self.bytes,
            self.duration_ms,
            self.incarnation,
            self.orders,
            self.ledger_entries,
            self.buckets,
            self.positions,
            self.positions_sha256
        )
    }
}

/// What a restore did.
#[derive(Debug, Serialize)]
struct Restored {
    /// What the copy held.
    #[serde(flatten)]
    made: Made,
    previous_incarnation: String,
    case_id: String,
    /// Ledger entries that the state file knew of and the copy has not; none without a state file of the same
    /// incarnation.
    entries_missing_at_least: Option<u64>,
}

const fn check_of(no_verify: bool) -> Check {
    if no_verify { Check::None } else { Check::Full }
}

/// Copies, checks, prints.
pub(crate) async fn backup(args: BackupArgs) -> Result<ExitCode> {
    let begin = Instant::now();
    let database = args.authority.url()?;
    let check = check_of(args.no_verify);
    let file = args.file.clone();
    let copied = tokio::task::spawn_blocking(move || {
        let bar = output::progress(0, "copying");
        database.backup(&file, check, |done, total| show(&bar, done, total))
    })
    .await??;
    let made = Made::of(&copied, args.file.display().to_string(), check, begin)?;
    match args.format {
        Format::Json => output::print_json(&made)?,
        Format::Text => output::print(&made.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

/// Restores, prints what is missing.
pub(crate) async fn restore(args: RestoreArgs) -> Result<ExitCode> {
    let begin = Instant::now();
    let database = database::Url::parse(&args.database)?;
    let seen = state_file::read(&args.state_file.unwrap_or_else(|| database.state_file()))?;
    let check = check_of(args.no_verify);
    let (incarnation, case) = (Incarnation(serve::random_id()?), CaseId(UuidV7.next()));
    let now = SystemClock.now();
    let file = args.file.clone();
    let source = file.display().to_string();
    let witness = seen.clone();
    let copied = tokio::task::spawn_blocking(move || {
        let bar = output::progress(0, "restoring");
        let new = |contents: &Contents| NewIncarnation {
            incarnation,
            case,
            evidence: evidence(contents, incarnation, &source, witness.as_ref()).into(),
        };
        database.restore(&file, check, now, new, |done, total| show(&bar, done, total))
    })
    .await??;
    let previous = copied.contents.incarnation.to_string();
    let mut made = Made::of(&copied, args.database, check, begin)?;
    made.incarnation = incarnation.to_string();
    let restored = Restored {
        entries_missing_at_least: missing(&copied.contents, seen.as_ref()),
        previous_incarnation: previous,
        case_id: case.to_string(),
        made,
    };
    match args.format {
        Format::Json => output::print_json(&restored)?,
        Format::Text => output::print(&told(&restored))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn told(restored: &Restored) -> String {
    let last = restored.made.last_ledger_at.as_deref().unwrap_or("its beginning");
    let loss = match restored.entries_missing_at_least {
        Some(missing) => format!("at least {missing} ledger entries are missing"),
        None => {
            "how much is missing is not known here: there is no state file of that incarnation".to_owned()
        }
    };
    format!(
        "{}\nbefore it was incarnation {}\nwhat happened after {last} is not in it; {loss}\n\
         nothing is sold until case {} is resolved",
        restored.made.text(),
        restored.previous_incarnation,
        restored.case_id
    )
}

/// Entries that the state file knew of and the copy has not. Each entry is one position.
fn missing(contents: &Contents, seen: Option<&Seen>) -> Option<u64> {
    let seen = seen.filter(|seen| seen.incarnation == contents.incarnation.to_string())?;
    Some(seen.positions.saturating_sub(contents.positions))
}

fn evidence(contents: &Contents, incarnation: Incarnation, source: &str, seen: Option<&Seen>) -> String {
    json!({
        "found_by": "restore",
        "why": "the database was restored: what was sold after the copy was taken is not in it",
        "file": source,
        "previous_incarnation": contents.incarnation.to_string(),
        "incarnation": incarnation.to_string(),
        "positions": contents.positions,
        "last_ledger_at": contents.last_ledger_at.map(time_text),
        "state_file": seen,
        "entries_missing_at_least": missing(contents, seen),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_counted_only_in_the_same_incarnation() {
        let contents = Contents {
            incarnation: Incarnation(1),
            orders: 0,
            entries: 0,
            buckets: 1,
            positions: 5,
            positions_sha256: [0; 32],
            last_ledger_at: None,
        };
        let seen = |incarnation| Seen {
            incarnation: Incarnation(incarnation).to_string(),
            positions: 7,
            at: "T".into(),
        };
        assert_eq!(missing(&contents, None), None);
        assert_eq!(missing(&contents, Some(&seen(1))), Some(2));
        assert_eq!(missing(&contents, Some(&seen(2))), None);
        let evidence = evidence(&contents, Incarnation(9), "x.db", Some(&seen(1)));
        let read: serde_json::Value = serde_json::from_str(&evidence).unwrap();
        assert_eq!(read["entries_missing_at_least"], 2);
    }
}
