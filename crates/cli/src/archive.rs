//! `holdfast archive`: a closed campaign in a file of its own, with proof of its balance.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use holdfast_core::id::{CampaignId, Incarnation};
use holdfast_sqlite::{Archive, Archived};
use holdfast_store::{Cell, Clock, Error, SystemClock};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::database::{self, Url};
use crate::output::{self, Format};

/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Write a closed campaign to a file of its own, with proof of its balance
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It only reads, and may run beside a server; nothing is removed from the authority. The file is read \
                        again and\naudited before it gets its name. It is a database that is read as any other: \
                        holdfast verify and holdfast explain\ntake it with --database sqlite:FILE. No server sells \
                        from it.\n\n\
                        Example:\n  holdfast archive spring --database sqlite:holdfast.db --to spring.archive"
)]
pub(crate) struct Args {
    /// The campaign
    #[arg(value_name = "CAMPAIGN")]
    campaign: String,
    #[command(flatten)]
    authority: database::Named,
    /// The file to write; it must not be there yet
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Serialize)]
struct Proof {
    campaign_id: String,
    file: String,
    bytes: u64,
    /// Keep it elsewhere: it shows that the file is still the one that was written.
    sha256: String,
    incarnation: String,
    taken_at: String,
    ledger_entries: u64,
    payments: u64,
    pools: Vec<Balance>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Balance {
    pool_id: String,
    sku: String,
    location: String,
    supply: i64,
    available: u64,
    held: u64,
    sold: u64,
}

#[derive(Serialize)]
struct Table {
    table: &'static str,
    rows: u64,
    digest: String,
}

/// Takes rows for an archive.
struct Into<'a>(&'a mut Archive);

impl holdfast_postgres::Rows for Into<'_> {
    fn begin(&mut self, table: &'static str) -> Result<Vec<String>, Error> {
        self.0.begin(table)
    }

    fn take(&mut self, columns: &[String], cells: &[Cell]) -> Result<(), Error> {
        self.0.take(columns, cells)
    }
}

/// Reads, writes, reads again, prints.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let database = args.authority.url()?;
    let campaign = CampaignId::new(&args.campaign).context("the campaign's id")?;
    let mut archive = Archive::create(&args.to, campaign)?;
    let incarnation: Incarnation = match &database {
        Url::Sqlite(path) => {
            let path = path.clone();
            let fill = move || (holdfast_sqlite::archive_file(&path, &mut archive), archive);
            let (filled, back) = tokio::task::spawn_blocking(fill).await?;
            archive = back;
            filled.with_context(|| database.to_string())?
        }
        Url::Postgres(address) => {
            let campaign = archive.campaign().clone();
            let mut into = Into(&mut archive);
            let rows = holdfast_postgres::campaign_rows(address, &campaign, &mut into);
            Box::pin(rows).await.with_context(|| database.to_string())?
        }
    };
    let taken_at = SystemClock.now();
    let archived = tokio::task::spawn_blocking(move || archive.finish(incarnation, taken_at)).await??;
    let proof = Proof {
        campaign_id: args.campaign,
        file: args.to.display().to_string(),
        bytes: archived.bytes,
        sha256: sha256_of(&args.to)?,
        incarnation: incarnation.to_string(),
        taken_at: holdfast_server::time_text(taken_at),
        ledger_entries: archived.report.entries,
        payments: archived.report.payments,
        pools: balances(&archived),
        tables: archived
            .tables
            .iter()
            .map(|table| Table { table: table.name, rows: table.digest.rows, digest: table.digest.text() })
            .collect(),
    };
    output::show(args.format, &proof, text)?;
    Ok(ExitCode::SUCCESS)
}

fn balances(archived: &Archived) -> Vec<Balance> {
    let balance = |pool: &holdfast_core::audit::PoolFigures| Balance {
        pool_id: pool.id.to_string(),
        sku: pool.sku.to_string(),
        location: pool.location.to_string(),
        supply: pool.supply,
        available: pool.available,
        held: pool.held,
        sold: pool.sold,
    };
    archived.report.pools.iter().map(balance).collect()
}

/// What the file is, to the byte.
fn sha256_of(path: &Path) -> Result<String> {
    let name = || path.display().to_string();
    let mut file = std::fs::File::open(path).with_context(name)?;
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut piece).with_context(name)?;
        if read == 0 {
            break;
        }
        hash.update(piece.get(..read).unwrap_or_default());
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn text(proof: &Proof) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "campaign {} as of {}", proof.campaign_id, proof.taken_at)?;
    writeln!(out, "  in {}, {} bytes", proof.file, proof.bytes)?;
    writeln!(out, "  sha256 {}", proof.sha256)?;
    for pool in &proof.pools {
        writeln!(
            out,
            "  {} at {}: supply {} = available {} + held {} + sold {}",
            pool.sku, pool.location, pool.supply, pool.available, pool.held, pool.sold
        )?;
    }
    for table in proof.tables.iter().filter(|table| table.rows > 0) {
        writeln!(out, "  {:<16} {:>10} rows, digest {}", table.table, table.rows, table.digest)?;
    }
    writeln!(out, "every row was read again from the file, and its invariants hold; nothing was removed")?;
    Ok(out)
}
