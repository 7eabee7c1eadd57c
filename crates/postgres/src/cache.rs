//! Caches of buckets, as the authority knows them.

use std::collections::BTreeSet;

use holdfast_core::cache::{CacheBucket, EpochState, LandingKey};
use holdfast_core::snapshot::{CacheChange, Changes};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_metrics::Conflict;
use holdfast_store::rows::{self, integer};
use holdfast_store::{Error, Page};
use tokio_postgres::types::Type;

use crate::apply::{count, short};
use crate::call::rows as ask;
use crate::connection::Connection;
use crate::error::Fault;
use crate::flight::{Flight, Owned};
use crate::query::Query;
use crate::row::{all, uuid};
use crate::statement::{Sql, exactly};

static CACHES: Sql = Sql::new(
    "SELECT cache_bucket.* FROM UNNEST($1, $2) AS wanted (pool, number) JOIN cache_bucket \
     ON cache_bucket.pool = wanted.pool AND cache_bucket.number = wanted.number",
    &[Type::UUID_ARRAY, Type::INT4_ARRAY],
);
// The first at or after what is wanted, in the order of the one index that has the sources: by mere equality a planner
// that knows nothing of the table yet would as soon walk through the bucket's whole ledger, for every landing.
static LANDED: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2, $3) AS wanted (pool, bucket, source), LATERAL (SELECT pool, bucket, source, order_id \
     FROM ledger WHERE (ledger.pool, ledger.bucket, ledger.source) >= (wanted.pool, wanted.bucket, wanted.source) \
     AND ledger.settled > 0 ORDER BY ledger.pool, ledger.bucket, ledger.source LIMIT 1) AS found \
     WHERE found.pool = wanted.pool AND found.bucket = wanted.bucket AND found.source = wanted.source",
    &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::TEXT_ARRAY],
);
const LANDED_ONE: &str = "SELECT * FROM (SELECT * FROM ledger WHERE (pool, bucket, source) >= ($1, $2, $3) AND settled > 0 \
     ORDER BY pool, bucket, source LIMIT 1) AS found WHERE pool = $1 AND bucket = $2 AND source = $3";
static INSERT_CACHES: Sql = Sql::new(
    "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + $11 RETURNING catalog_version) \
     INSERT INTO cache_bucket (pool, number, epoch, state, identity, base_seq, base_available, landed, changed_at, \
     catalog_version) SELECT new.pool, new.number, new.epoch, new.state, new.identity, new.base_seq, \
     new.base_available, new.landed, new.changed_at, counted.catalog_version - new.later \
     FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS new (pool, number, epoch, state, identity, base_seq, \
     base_available, landed, changed_at, later), counted",
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
static TURN_CACHES: Sql = Sql::new(
    concat!(
        "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + $14 RETURNING catalog_version), \
         done AS (UPDATE cache_bucket SET epoch = new.epoch, state = new.state, identity = new.identity, \
         base_seq = new.base_seq, base_available = new.base_available, landed = new.landed, \
         changed_at = new.changed_at, catalog_version = counted.catalog_version - new.later \
         FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS new (pool, number, epoch, state, \
         identity, base_seq, base_available, landed, changed_at, later, was_epoch, was_state, was_landed), counted \
         WHERE cache_bucket.pool = new.pool AND cache_bucket.number = new.number \
         AND cache_bucket.epoch = new.was_epoch AND cache_bucket.state = new.was_state \
         AND cache_bucket.landed = new.was_landed RETURNING 1)",
        exactly!("$14")
    ),
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
static LAND_CACHES: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE cache_bucket SET landed = new.landed \
         FROM UNNEST($1, $2, $3, $4, $5, $6) AS new (pool, number, landed, was_epoch, was_state, was_landed) \
         WHERE cache_bucket.pool = new.pool AND cache_bucket.number = new.number \
         AND cache_bucket.epoch = new.was_epoch AND cache_bucket.state = new.was_state \
         AND cache_bucket.landed = new.was_landed RETURNING 1)",
        exactly!("$7")
    ),
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);

/// What batches of landings ask and write.
pub(crate) static HOT: &[&Sql] = &[&CACHES, &LANDED, &LAND_CACHES];

/// Asks for the rows of buckets, behind their locks.
pub(crate) fn ask_rows(flight: &mut Flight<'_>, wanted: &BTreeSet<BucketKey>) -> usize {
    flight.add(&CACHES, vec![pools(wanted), numbers(wanted)])
}

/// Asks which landings are in the ledger, behind the locks of their buckets.
pub(crate) fn ask_landed(flight: &mut Flight<'_>, wanted: &BTreeSet<LandingKey>) -> usize {
    let buckets: Vec<BucketKey> = wanted.iter().map(|key| key.bucket).collect();
    let sources: Vec<String> = wanted.iter().map(|key| key.source().to_string()).collect();
    flight.add(&LANDED, vec![pools(&buckets), numbers(&buckets), Box::new(sources)])
}

fn pools<'k>(keys: impl IntoIterator<Item = &'k BucketKey>) -> Owned<'static> {
    Box::new(keys.into_iter().map(|key| uuid(key.pool.0)).collect::<Vec<_>>())
}

fn numbers<'k>(keys: impl IntoIterator<Item = &'k BucketKey>) -> Owned<'static> {
    Box::new(keys.into_iter().map(|key| short(key.number)).collect::<Vec<_>>())
}

fn words(words: impl Iterator<Item = EpochState>) -> Owned<'static> {
    Box::new(words.map(EpochState::as_str).collect::<Vec<_>>())
}

fn integers(counts: impl Iterator<Item = u64>) -> Result<Owned<'static>, Error> {
    Ok(Box::new(counts.map(integer).collect::<Result<Vec<_>, _>>()?))
}

/// Every column of rows. By how many the version of each is below the last one: the first row comes first.
fn columns(rows: &[&CacheBucket]) -> Result<Vec<Owned<'static>>, Error> {
    let keys: Vec<BucketKey> = rows.iter().map(|row| row.key).collect();
    let last = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Ok(vec![
        pools(&keys),
        numbers(&keys),
        integers(rows.iter().map(|row| row.epoch.0))?,
        words(rows.iter().map(|row| row.state)),
        Box::new(rows.iter().map(|row| row.identity.to_string()).collect::<Vec<_>>()),
        integers(rows.iter().map(|row| row.base_seq))?,
        integers(rows.iter().map(|row| row.base_available))?,
        integers(rows.iter().map(|row| row.landed))?,
        Box::new(rows.iter().map(|row| row.changed_at.0).collect::<Vec<_>>()),
        Box::new((0..last).rev().collect::<Vec<i64>>()),
    ])
}

/// What rows must be like when they are written.
fn as_read(bases: &[&CacheBucket]) -> Result<Vec<Owned<'static>>, Error> {
    Ok(vec![
        integers(bases.iter().map(|base| base.epoch.0))?,
        words(bases.iter().map(|base| base.state)),
        integers(bases.iter().map(|base| base.landed))?,
    ])
}

/// Adds what landings change of the rows.
pub(crate) fn add_landed(flight: &mut Flight<'_>, changes: &Changes) -> Result<(), Error> {
    let landed = changes.caches.iter().filter(|change| !change.is_turned());
    let (rows, bases): (Vec<_>, Vec<_>) = landed.filter_map(based).unzip();
    if rows.is_empty() {
        return Ok(());
    }
    let keys: Vec<BucketKey> = rows.iter().map(|row| row.key).collect();
    let mut params = vec![pools(&keys), numbers(&keys), integers(rows.iter().map(|row| row.landed))?];
    params.extend(as_read(&bases)?);
    params.push(count(&rows));
    flight.add(&LAND_CACHES, params);
    Ok(())
}

/// Adds epochs that were turned: with the catalog, last.
pub(crate) fn add_turned(flight: &mut Flight<'_>, changes: &Changes) -> Result<(), Error> {
    let turned = || changes.caches.iter().filter(|change| change.is_turned());
    let new: Vec<_> = turned().filter(|change| change.base.is_none()).map(|change| &change.row).collect();
    if !new.is_empty() {
        let mut params = columns(&new)?;
        params.push(count(&new));
        flight.add(&INSERT_CACHES, params);
    }
    let (rows, bases): (Vec<_>, Vec<_>) = turned().filter_map(based).unzip();
    if !rows.is_empty() {
        flight.add(&TURN_CACHES, turn(&rows, &bases)?);
    }
    Ok(())
}

fn based(change: &CacheChange) -> Option<(&CacheBucket, &CacheBucket)> {
    Some((&change.row, change.base.as_ref()?))
}

fn turn(rows: &[&CacheBucket], bases: &[&CacheBucket]) -> Result<Vec<Owned<'static>>, Error> {
    let mut params = columns(rows)?;
    params.extend(as_read(bases)?);
    params.push(count(rows));
    Ok(params)
}

/// Locks the buckets whose epoch is not closed, in the global order, before anything else is locked.
pub(crate) async fn lock_open(connection: &Connection) -> Result<BTreeSet<BucketKey>, Fault> {
    let sql = "SELECT bucket.pool AS home_pool, bucket.number AS home_bucket FROM cache_bucket JOIN bucket \
               ON bucket.pool = cache_bucket.pool AND bucket.number = cache_bucket.number \
               WHERE cache_bucket.state <> 'closed' ORDER BY bucket.pool, bucket.number FOR UPDATE OF bucket";
    let locked = ask(connection, sql, &[], &[]).await?;
    Ok(all(&locked, rows::home).map_err(Fault::Refused)?.into_iter().collect())
}

/// Closes every epoch, under the locks of their buckets and of the authority's row: it is another authority now, and
/// what a cache took of the one before is nothing to it.
pub(crate) async fn close_epochs(
    connection: &Connection,
    locked: &BTreeSet<BucketKey>,
    now: Timestamp,
) -> Result<(), Fault> {
    let sql = "SELECT * FROM cache_bucket WHERE state <> 'closed' ORDER BY pool, number";
    let bases = ask(connection, sql, &[], &[]).await?;
    let bases = all(&bases, rows::cache_bucket).map_err(Fault::Refused)?;
    if bases.is_empty() {
        return Ok(());
    }
    if bases.iter().any(|row| !locked.contains(&row.key)) {
        return Err(Fault::Raced(Conflict::LockTimeout, "an epoch was opened meanwhile".into()));
    }
    let closed: Vec<CacheBucket> = bases
        .iter()
        .map(|row| CacheBucket { state: EpochState::Closed, changed_at: now, ..row.clone() })
        .collect();
    let mut flight = Flight::default();
    let params = turn(&closed.iter().collect::<Vec<_>>(), &bases.iter().collect::<Vec<_>>());
    flight.add(&TURN_CACHES, params.map_err(Fault::Refused)?);
    flight.send(connection, None).await?.answers().await?;
    Ok(())
}

/// The cache of a bucket.
pub(crate) fn find(key: BucketKey) -> Query {
    Query::whole("SELECT * FROM cache_bucket WHERE pool = $1 AND number = $2")
        .with(uuid(key.pool.0), Type::UUID)
        .with(short(key.number), Type::INT4)
}

pub(crate) fn list(page: &Page<BucketKey>) -> Query {
    let (pool, number) = page.after.map_or((0, -1), |key| (key.pool.0, short(key.number)));
    let most = i64::try_from(page.limit).unwrap_or(i64::MAX).saturating_add(1);
    let sql = "SELECT * FROM cache_bucket WHERE (pool, number) > ($1, $2) ORDER BY pool, number LIMIT $3";
    Query::whole(sql).with(uuid(pool), Type::UUID).with(number, Type::INT4).with(most, Type::INT8)
}

/// What a bucket's entries after a position credit its cache with.
pub(crate) fn credits(bucket: BucketKey, after: u64, entries_max: u32) -> Result<Query, Error> {
    let sql = "SELECT coalesce(max(seq), $3) AS to_seq, \
               CAST(coalesce(sum(delta_available + settled), 0) AS BIGINT) AS units FROM \
               (SELECT seq, delta_available, settled FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 \
               ORDER BY seq LIMIT $4) AS later";
    Ok(Query::whole(sql)
        .with(uuid(bucket.pool.0), Type::UUID)
        .with(short(bucket.number), Type::INT4)
        .with(integer(after)?, Type::INT8)
        .with(i64::from(entries_max), Type::INT8))
}

/// The entry of a landing.
pub(crate) fn landed(key: LandingKey) -> Query {
    Query::whole(LANDED_ONE)
        .with(uuid(key.bucket.pool.0), Type::UUID)
        .with(short(key.bucket.number), Type::INT4)
        .with(key.source().to_string(), Type::TEXT)
}

#[cfg(test)]
mod tests {
    use holdfast_testkit::Database;

    use super::*;
    use crate::{Address, Options, PostgresStore};

    const ENTRIES: &str = "INSERT INTO ledger (pool, bucket, seq, at, business_no, action, delta_available, delta_held, delta_sold, \
         settled, source, actor, reason) SELECT '00000000-0000-0000-0000-000000000001', 0, number, number, \
         CAST(number AS TEXT), 'land', -1, 1, 0, 1, '1-' || CAST(number AS TEXT) || '-0', '', '' \
         FROM generate_series(1, 20000) AS number;";

    /// The table has grown since the server last looked at it, as it has after the first minute of a sale.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn landings_are_found_by_their_own_index_in_a_table_of_which_nothing_is_known() {
        let database = Database::shared().await.expect("a database");
        let address = Address::parse(&database.url()).expect("a good URL");
        drop(PostgresStore::open(&address, Options::default()).await.expect("open"));
        for (types, text, values) in [
            ("uuid[], int4[], text[]", LANDED.text, "NULL, NULL, NULL"),
            ("uuid, int4, text", LANDED_ONE, "NULL, NULL, NULL"),
        ] {
            let asked = format!(
                "BEGIN; {ENTRIES} SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                 SET plan_cache_mode = force_generic_plan; PREPARE plan ({types}) AS {text}; \
                 EXPLAIN EXECUTE plan ({values}); ROLLBACK"
            );
            let plan = database.sql(&asked).await.expect("a plan");
            let is_by_key = plan.contains("ledger_settled") && !plan.contains("ledger_pkey");
            assert!(is_by_key && !plan.contains("Sort"), "{plan}");
        }
    }
}
