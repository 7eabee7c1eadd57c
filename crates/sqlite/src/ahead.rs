//! Buckets whose ledgers are ahead of them.

use holdfast_core::id::PoolId;
use holdfast_core::stock::Bucket;
use holdfast_store::rows::{self, corrupt, integer, number};
use holdfast_store::{Error, LEDGERS_AHEAD_MAX, LedgerAhead};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};

const AHEAD: &str = "SELECT * FROM (SELECT bucket.*, (SELECT max(seq) FROM ledger \
    WHERE ledger.pool = bucket.pool AND ledger.bucket = bucket.number) AS last_seq FROM bucket WHERE pool = ?1) \
    WHERE last_seq > ledger_seq ORDER BY number";

/// Finds them.
pub(crate) fn ledgers_ahead(db: &Connection, pools: &[PoolId]) -> Result<Vec<LedgerAhead>, Error> {
    // Row and ledger as of one moment, though the server is writing beside us.
    db.execute_batch("BEGIN").store()?;
    let found = find(db, pools);
    db.execute_batch("ROLLBACK").store()?;
    found
}

fn find(db: &Connection, pools: &[PoolId]) -> Result<Vec<LedgerAhead>, Error> {
    let mut found = Vec::new();
    for pool in pools {
        let read = |row: &dyn rows::Row| Ok((rows::bucket(row)?, number(row, "last_seq")?));
        for (bucket, last_seq) in many(db, AHEAD, params![bytes(pool.0)], read)? {
            if found.len() == LEDGERS_AHEAD_MAX {
                return Ok(found);
            }
            found.push(ahead(db, bucket, last_seq)?);
        }
    }
    Ok(found)
}

fn ahead(db: &Connection, bucket: Bucket, last_seq: u64) -> Result<LedgerAhead, Error> {
    let sql = "SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 ORDER BY seq LIMIT 1";
    let after = params![bytes(bucket.key.pool.0), bucket.key.number, integer(bucket.ledger_seq)?];
    let first = one(db, sql, after, rows::entry)?.ok_or_else(|| corrupt("no entry beyond its bucket"))?;
    Ok(LedgerAhead { bucket, first, last_seq })
}
