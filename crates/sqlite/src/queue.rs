//! Queues and leases.

use std::collections::BTreeMap;

use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{Error, Lease, Page, QueuePlace, rows};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};

/// How many orders wait in the queues of a pool.
pub(crate) fn length(db: &Connection, pool: PoolId) -> Result<u64, Error> {
    let sql = "SELECT count(*) AS length FROM orders WHERE state = 'queued' AND home_pool = ?1";
    let count = one(db, sql, params![bytes(pool.0)], |row| rows::number(row, "length"))?;
    Ok(count.unwrap_or(0))
}

pub(crate) fn queued(
    db: &Connection,
    bucket: BucketKey,
    page: &Page<QueuePlace>,
) -> Result<Vec<QueuePlace>, Error> {
    let (after, id) = page.after.map_or((i64::MIN, 0), |(taken_in, id)| (taken_in.0, id.0));
    let sql = "SELECT created_at, id FROM orders WHERE state = 'queued' AND home_pool = ?1 AND home_bucket = ?2 \
               AND (created_at, id) > (?3, ?4) ORDER BY created_at, id LIMIT ?5";
    let most = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let values = params![bytes(bucket.pool.0), bucket.number, after, bytes(id), most];
    many(db, sql, values, rows::queue_place)
}

/// One seek a bucket, however many wait in it.
pub(crate) fn queues(db: &Connection, page: &Page<BucketKey>) -> Result<Vec<BucketKey>, Error> {
    let sql = "SELECT home_pool, home_bucket FROM orders WHERE state = 'queued' \
               AND (home_pool, home_bucket) > (?1, ?2) ORDER BY home_pool, home_bucket LIMIT 1";
    let mut found: Vec<BucketKey> = Vec::new();
    let mut after = page.after;
    while found.len() < page.limit {
        let (pool, number) = after.map_or((0, -1), |key| (key.pool.0, i64::from(key.number)));
        let Some(next) = one(db, sql, params![bytes(pool), number], rows::home)? else { break };
        found.push(next);
        after = Some(next);
    }
    Ok(found)
}

pub(crate) fn take_lease(db: &Connection, lease: &Lease, now: Timestamp) -> Result<bool, Error> {
    let sql = "INSERT INTO lease (name, holder, ends_at) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE \
               SET holder = excluded.holder, ends_at = excluded.ends_at \
               WHERE lease.holder = excluded.holder OR lease.ends_at <= ?4";
    let values = params![lease.name, bytes(lease.holder), now.plus(lease.lasts).0, now.0];
    Ok(db.prepare_cached(sql).store()?.execute(values).store()? == 1)
}

pub(crate) fn give_up_leases(db: &Connection, holder: u128, now: Timestamp) -> Result<(), Error> {
    let sql = "UPDATE lease SET ends_at = ?2 WHERE holder = ?1 AND ends_at > ?2";
    db.prepare_cached(sql).store()?.execute(params![bytes(holder), now.0]).store()?;
    Ok(())
}

/// The file has one server: whatever the server before held is free when this one starts.
pub(crate) fn end_leases(db: &Connection) -> Result<(), Error> {
    db.execute("UPDATE lease SET ends_at = 0 WHERE ends_at <> 0", []).store()?;
    Ok(())
}

/// The lengths of these pools' queues.
pub(crate) fn lengths(
    db: &Connection,
    pools: impl IntoIterator<Item = PoolId>,
) -> Result<BTreeMap<PoolId, u64>, Error> {
    pools.into_iter().map(|pool| Ok((pool, length(db, pool)?))).collect()
}
