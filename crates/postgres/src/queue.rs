//! Queues and leases.

use holdfast_core::stock::BucketKey;
use holdfast_store::rows::{self as row};
use holdfast_store::{Lease, Page, QueuePlace};
use tokio_postgres::types::Type;

use crate::call::{Work, rows};
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::read::View;
use crate::row::{first, uuid};
use crate::store::Inner;

pub(crate) fn queued(bucket: BucketKey, page: &Page<QueuePlace>) -> Query {
    let (after, id) = page.after.map_or((i64::MIN, 0), |(taken_in, id)| (taken_in.0, id.0));
    let sql = "SELECT created_at, id FROM orders WHERE state = 'queued' AND home_pool = $1 AND home_bucket = $2 \
               AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5";
    Query::whole(sql)
        .with(uuid(bucket.pool.0), Type::UUID)
        .with(i32::try_from(bucket.number).unwrap_or(i32::MAX), Type::INT4)
        .with(after, Type::INT8)
        .with(uuid(id), Type::UUID)
        .with(i64::try_from(page.limit).unwrap_or(i64::MAX), Type::INT8)
}

/// Buckets in whose queue somebody waits.
pub(crate) struct Queues(pub(crate) Page<BucketKey>);

impl View for Queues {
    type Output = Vec<BucketKey>;

    /// One seek a bucket, however many wait in it.
    async fn see(&self, connection: &Connection) -> Result<Vec<BucketKey>, Fault> {
        let sql = "SELECT home_pool, home_bucket FROM orders WHERE state = 'queued' \
                   AND (home_pool, home_bucket) > ($1, $2) ORDER BY home_pool, home_bucket LIMIT 1";
        let mut found: Vec<BucketKey> = Vec::new();
        let mut after = self.0.after;
        while found.len() < self.0.limit {
            let (pool, number) = match after {
                Some(key) => (uuid(key.pool.0), i32::try_from(key.number).unwrap_or(i32::MAX)),
                None => (uuid(0), -1),
            };
            let next = rows(connection, sql, &[&pool, &number], &[Type::UUID, Type::INT4]).await?;
            let Some(next) = first(&next, row::home).map_err(Fault::Refused)? else { break };
            found.push(next);
            after = Some(next);
        }
        Ok(found)
    }
}

impl Work for Lease {
    type Output = bool;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<bool, Fault> {
        let now = inner.time(connection).await?;
        let sql = "INSERT INTO lease (name, holder, ends_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE \
                   SET holder = excluded.holder, ends_at = excluded.ends_at \
                   WHERE lease.holder = excluded.holder OR lease.ends_at <= $4 RETURNING name";
        let (holder, ends_at) = (uuid(self.holder), now.plus(self.lasts).0);
        let types = [Type::TEXT, Type::UUID, Type::INT8, Type::INT8];
        let taken = rows(connection, sql, &[&self.name, &holder, &ends_at, &now.0], &types).await?;
        Ok(!taken.is_empty())
    }
}

/// Ends every lease of a holder.
pub(crate) struct GiveUp(pub(crate) u128);

impl Work for GiveUp {
    type Output = ();

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<(), Fault> {
        let now = inner.time(connection).await?;
        let sql = "UPDATE lease SET ends_at = $2 WHERE holder = $1 AND ends_at > $2";
        rows(connection, sql, &[&uuid(self.0), &now.0], &[Type::UUID, Type::INT8]).await?;
        Ok(())
    }
}
