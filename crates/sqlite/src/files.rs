//! Imported stock files, and what the ledger says of the time of a count.

use holdfast_core::id::PoolId;
use holdfast_core::import::{Imported, Since};
use holdfast_core::snapshot::{Needs, Snapshot};
use holdfast_core::stock::Delta;
use holdfast_core::time::Timestamp;
use holdfast_store::Error;
use holdfast_store::rows::{self, Row, integer};
use rusqlite::{Connection, params};

use crate::apply::exactly_one;
use crate::codec::bytes;
use crate::load::{many, one};

/// The stock files that a batch names.
pub(crate) fn load(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    for id in &needs.imports {
        let sql = "SELECT * FROM stock_import WHERE id = ?1";
        if let Some(known) = one(db, sql, params![id.as_str()], rows::imported)? {
            rows.imports.insert(known.id.clone(), known);
        }
    }
    Ok(())
}

/// What happened to a pool after a moment. Times rise with the numbers of a bucket's entries, so the log is read
/// from its end and no further than to the moment.
pub(crate) fn since(db: &Connection, pool: PoolId, at: Timestamp) -> Result<Since, Error> {
    let buckets = many(db, "SELECT number FROM bucket WHERE pool = ?1", params![bytes(pool.0)], |row| {
        rows::number::<u32>(row, "number")
    })?;
    let mut since = Since::default();
    for number in buckets {
        let sql =
            "SELECT seq FROM ledger WHERE pool = ?1 AND bucket = ?2 AND at <= ?3 ORDER BY seq DESC LIMIT 1";
        let seq = |row: &dyn Row| rows::number::<u64>(row, "seq");
        let last = one(db, sql, params![bytes(pool.0), number, at.0], seq)?;
        let sql = "SELECT ?4 AS was_open, coalesce(sum(delta_available), 0) AS available, \
                   coalesce(sum(delta_held), 0) AS held, coalesce(sum(delta_sold), 0) AS sold, \
                   max(CASE WHEN action IN ('adjust', 'repair') THEN at END) AS corrected_at \
                   FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3";
        let after = integer(last.unwrap_or(0))?;
        let later = one(db, sql, params![bytes(pool.0), number, after, last.is_some()], rows::since)?;
        let later = later.unwrap_or_default();
        since = Since {
            was_open: since.was_open || later.was_open,
            change: Delta::and(since.change, later.change),
            corrected_at: since.corrected_at.max(later.corrected_at),
        };
    }
    Ok(since)
}

/// Keeps a stock file that is imported.
pub(crate) fn insert(db: &Connection, import: &Imported) -> Result<(), Error> {
    let sql = "INSERT INTO stock_import (id, campaign_id, mode, digest, row_count, units, opened, unchanged, \
               adjusted, at, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let counts = &import.counts;
    exactly_one(
        db,
        sql,
        params![
            import.id.as_str(),
            import.campaign.as_str(),
            import.mode.as_str(),
            import.digest.as_slice(),
            integer(counts.rows)?,
            integer(counts.units)?,
            integer(counts.opened)?,
            integer(counts.unchanged)?,
            integer(counts.adjusted)?,
            import.at.0,
            &*import.signed.actor,
            &*import.signed.reason,
        ],
    )
}
