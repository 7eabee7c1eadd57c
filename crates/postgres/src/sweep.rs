//! Passing once through the lock of every bucket concerned. A batch reads switches after its locks, so whoever
//! still stands on the old ones holds a lock; when all were passed, the new ones hold exactly, on every node.

use std::sync::Arc;

use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_store::Error;
use holdfast_store::rows::{Row, number, number_id};

use crate::call::{Work, transaction};
use crate::connection::Connection;
use crate::error::Fault;
use crate::load;
use crate::query::Query;
use crate::row::all;
use crate::store::Inner;

/// Buckets whose locks are held at the same time: few, because while one of them is waited for the others are held.
const STEP: usize = 16;

/// Whose buckets.
#[derive(Debug)]
pub(crate) enum Swept {
    /// One pool's.
    Pool(PoolId),
    /// A campaign's.
    Campaign(CampaignId),
    /// All.
    All,
}

struct Step(LockSet);

impl Work for Step {
    type Output = ();

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<(), Fault> {
        load::lock(connection, &self.0).await
    }
}

/// Passes through the locks.
pub(crate) async fn sweep(inner: &Arc<Inner>, of: Swept) -> Result<(), Error> {
    let mut query =
        Query::new("SELECT bucket.pool, bucket.number FROM bucket JOIN pool ON pool.id = bucket.pool");
    match of {
        Swept::Pool(pool) => query.and_id("pool.id =", Some(pool.0)),
        Swept::Campaign(campaign) => query.and_text("pool.campaign_id =", Some(campaign.as_str())),
        Swept::All => {}
    }
    let key = |row: &dyn Row| {
        Ok(BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "number")? })
    };
    let mut keys = all(&inner.read(query).await?, key)?;
    keys.sort_unstable();
    for step in keys.chunks(STEP) {
        let locks = LockSet { buckets: step.iter().copied().collect(), ..LockSet::default() };
        transaction(inner, Step(locks)).await?;
    }
    Ok(())
}
