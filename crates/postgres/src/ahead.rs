//! Buckets whose ledgers are ahead of them, in one view.

use holdfast_core::id::PoolId;
use holdfast_store::rows::{self as row, corrupt, integer, number};
use holdfast_store::{LEDGERS_AHEAD_MAX, LedgerAhead};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::rows;
use crate::connection::Connection;
use crate::error::Fault;
use crate::read::View;
use crate::row::{all, first, uuid};

const AHEAD: &str = "SELECT bucket.*, last.seq AS last_seq FROM bucket, LATERAL (SELECT max(seq) AS seq FROM ledger \
    WHERE ledger.pool = bucket.pool AND ledger.bucket = bucket.number) AS last \
    WHERE bucket.pool = ANY ($1) AND last.seq > bucket.ledger_seq ORDER BY bucket.pool, bucket.number LIMIT $2";
const FIRST: &str = "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 ORDER BY seq LIMIT 1";

/// Finds them in these pools.
pub(crate) struct LedgersAhead(pub(crate) Vec<PoolId>);

impl View for LedgersAhead {
    type Output = Vec<LedgerAhead>;

    async fn see(&self, connection: &Connection) -> Result<Vec<LedgerAhead>, Fault> {
        let pools: Vec<Uuid> = self.0.iter().map(|pool| uuid(pool.0)).collect();
        let most = i64::try_from(LEDGERS_AHEAD_MAX).unwrap_or(i64::MAX);
        let buckets = rows(connection, AHEAD, &[&pools, &most], &[Type::UUID_ARRAY, Type::INT8]).await?;
        let read = |row: &dyn row::Row| Ok((row::bucket(row)?, number(row, "last_seq")?));
        let mut found = Vec::with_capacity(buckets.len());
        for (bucket, last_seq) in all(&buckets, read).map_err(Fault::Refused)? {
            let pool = uuid(bucket.key.pool.0);
            let number = i64::from(bucket.key.number);
            let after = integer(bucket.ledger_seq).map_err(Fault::Refused)?;
            let types = [Type::UUID, Type::INT8, Type::INT8];
            let beyond = rows(connection, FIRST, &[&pool, &number, &after], &types).await?;
            let entry = first(&beyond, row::entry).map_err(Fault::Refused)?;
            let entry = entry.ok_or_else(|| Fault::Refused(corrupt("no entry beyond its bucket")))?;
            found.push(LedgerAhead { bucket, first: entry, last_seq });
        }
        Ok(found)
    }
}
