//! A bucket whose ledger is ahead of it. An old row was put back, or somebody changed it: the bucket's next entry would
//! meet one that is there, so nothing can be written in it, and its balances are not what was sold.

use std::collections::BTreeSet;

use holdfast_core::case::Case;
use holdfast_core::id::{Operator, PoolId};
use holdfast_core::stock::PoolSwitch;
use holdfast_store::{Error, LedgerAhead, Store, SwitchPool};

/// Who freezes, in the trail.
const WHO: &str = "holdfast";

/// Looks for such buckets in pools, opens a case for each and freezes its pool, so that new holds are refused instead
/// of failing. Whether there was one.
pub(crate) async fn freeze(store: &dyn Store, pools: BTreeSet<PoolId>) -> bool {
    match look(store, pools).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "pools that could not be written were not looked at");
            false
        }
    }
}

/// Whether a pool has such a bucket.
pub(crate) async fn is_found(store: &dyn Store, pool: PoolId) -> bool {
    store.ledgers_ahead(vec![pool]).await.is_ok_and(|found| !found.is_empty())
}

async fn look(store: &dyn Store, pools: BTreeSet<PoolId>) -> Result<bool, Error> {
    let found = store.ledgers_ahead(pools.into_iter().collect()).await?;
    for LedgerAhead { bucket, first, last_seq } in &found {
        let pool = bucket.key.pool;
        // The case first: a pool that is frozen gets no new hold that would lead here again.
        store.open_case(Case::ledger_ahead(bucket, first, *last_seq, store.now())).await?;
        let operator = Operator::new(WHO).map_err(|error| Error::Data(error.to_string()))?;
        let reason = format!("the ledger of bucket {} goes on beyond its row", bucket.key.number);
        let freeze = SwitchPool { id: pool, switch: PoolSwitch::Freeze, operator, reason, via: None };
        if let Err(refusal) = store.switch_pool(freeze).await? {
            tracing::error!(%pool, ?refusal, "a bucket whose ledger is ahead of it has no pool to freeze");
        }
        tracing::error!(%pool, bucket = bucket.key.number, "its ledger is ahead of it: the pool is frozen");
    }
    Ok(!found.is_empty())
}
