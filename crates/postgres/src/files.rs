//! Imported stock files, and what the ledger says of the times of counts.

use std::collections::BTreeSet;

use holdfast_core::id::PoolId;
use holdfast_core::import::{Imported, Since};
use holdfast_core::time::Timestamp;
use holdfast_store::Error;
use holdfast_store::rows::{self, Row, integer};
use tokio_postgres::types::Type;

use crate::apply::{column, try_column};
use crate::flight::{Flight, Owned};
use crate::row::uuid;
use crate::statement::Sql;

pub(crate) static IMPORTS: Sql =
    Sql::new("SELECT * FROM stock_import WHERE id = ANY ($1)", &[Type::TEXT_ARRAY]);

/// Times rise with the numbers of a bucket's entries, so the log is read from its end and no further than to the
/// moment.
static SINCE: Sql = Sql::new(
    "SELECT wanted.pool, wanted.at, bool_or(last.seq IS NOT NULL) AS was_open, \
     CAST(coalesce(sum(later.available), 0) AS BIGINT) AS available, \
     CAST(coalesce(sum(later.held), 0) AS BIGINT) AS held, CAST(coalesce(sum(later.sold), 0) AS BIGINT) AS sold, \
     max(later.corrected_at) AS corrected_at \
     FROM UNNEST($1, $2) AS wanted (pool, at) JOIN bucket ON bucket.pool = wanted.pool \
     LEFT JOIN LATERAL (SELECT ledger.seq FROM ledger WHERE ledger.pool = bucket.pool \
     AND ledger.bucket = bucket.number AND ledger.at <= wanted.at ORDER BY ledger.seq DESC LIMIT 1) AS last ON TRUE \
     LEFT JOIN LATERAL (SELECT sum(delta_available) AS available, sum(delta_held) AS held, sum(delta_sold) AS sold, \
     max(CASE WHEN action IN ('adjust', 'repair') THEN ledger.at END) AS corrected_at FROM ledger \
     WHERE ledger.pool = bucket.pool AND ledger.bucket = bucket.number AND ledger.seq > coalesce(last.seq, 0)) \
     AS later ON TRUE GROUP BY wanted.pool, wanted.at",
    &[Type::UUID_ARRAY, Type::INT8_ARRAY],
);

static INSERT_IMPORTS: Sql = Sql::new(
    "INSERT INTO stock_import (id, campaign_id, mode, digest, row_count, units, opened, unchanged, adjusted, at, \
     actor, reason) SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
);

/// Asks what happened to pools after moments.
pub(crate) fn ask_since(flight: &mut Flight<'_>, counts: &BTreeSet<(PoolId, Timestamp)>) -> usize {
    let pools: Owned<'_> = Box::new(counts.iter().map(|(pool, _)| uuid(pool.0)).collect::<Vec<_>>());
    let times: Owned<'_> = Box::new(counts.iter().map(|(_, at)| at.0).collect::<Vec<_>>());
    flight.add(&SINCE, vec![pools, times])
}

/// Reads one answer.
pub(crate) fn since(row: &dyn Row) -> Result<((PoolId, Timestamp), Since), Error> {
    let at = Timestamp(rows::number(row, "at")?);
    Ok(((PoolId(rows::number_id(row, "pool")?), at), rows::since(row)?))
}

/// Adds the stock files that a batch imports.
pub(crate) fn add<'f>(flight: &mut Flight<'f>, imports: &'f [Imported]) -> Result<(), Error> {
    if imports.is_empty() {
        return Ok(());
    }
    let params = vec![
        column(imports, |import| import.id.as_str()),
        column(imports, |import| import.campaign.as_str()),
        column(imports, |import| import.mode.as_str()),
        column(imports, |import| import.digest.as_slice()),
        try_column(imports, |import| integer(import.counts.rows))?,
        try_column(imports, |import| integer(import.counts.units))?,
        try_column(imports, |import| integer(import.counts.opened))?,
        try_column(imports, |import| integer(import.counts.unchanged))?,
        try_column(imports, |import| integer(import.counts.adjusted))?,
        column(imports, |import| import.at.0),
        column(imports, |import| &*import.signed.actor),
        column(imports, |import| &*import.signed.reason),
    ];
    flight.add(&INSERT_IMPORTS, params);
    Ok(())
}
