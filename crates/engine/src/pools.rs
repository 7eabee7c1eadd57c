//! Pools and stock, as operators change them: commands of the wide lanes, which lock what they need whole.

use std::sync::Arc;

use holdfast_core::command::{Adjust, ChangePool, Command, OpenPool, Outcome, Sweep, Transfer};
use holdfast_core::id::{PoolId, SweepId};
use holdfast_core::import::Import;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_metrics::Overload;
use holdfast_store::{PoolRow, SwitchPool};

use crate::change::lane_of;
use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::{Class, LaneKey};

/// How often a pool may grow between the choice of the locks and the locks.
const ROUNDS_MAX: usize = 3;

impl Engine {
    /// Opens a pool; the engine sets its id. The same again is a repeat.
    pub async fn open_pool(&self, mut open: OpenPool) -> Result<Outcome, Error> {
        if let Some(refusal) = self.no_cache_for(Some(open.path)) {
            return self.counted(Ok(Outcome::refused(refusal)));
        }
        open.id = PoolId(self.shared.ids.next());
        let outcome = self.settle(LaneKey::Node, Command::OpenPool(open), LockSet::default()).await;
        self.catalog_changed().await;
        outcome
    }

    /// Applies a stock file, whole or not at all; the engine sets the ids of new pools. Which pools are there is
    /// learnt without locks; then they are locked, and judged.
    pub async fn import(&self, mut import: Import) -> Result<Outcome, Error> {
        for row in &mut import.rows {
            row.new_pool = PoolId(self.shared.ids.next());
        }
        let command = Command::Import(Arc::new(import));
        let outcome = self.settle(LaneKey::Files, command, LockSet::default()).await;
        self.catalog_changed().await;
        outcome
    }

    /// Changes how orders come to a pool. Takes effect on this node at once, on others within a second.
    pub async fn change_pool(&self, change: ChangePool) -> Result<Outcome, Error> {
        if let Some(refusal) = self.no_cache_for(change.path) {
            return self.counted(Ok(Outcome::refused(refusal)));
        }
        let pool = change.pool;
        let outcome =
            self.settle(LaneKey::Pool(pool), Command::ChangePool(change), LockSet::pool(pool)).await;
        self.catalog_changed().await;
        outcome
    }

    /// A path that this node could not serve: nobody would notice that nothing is cached.
    fn no_cache_for(&self, path: Option<Path>) -> Option<Refusal> {
        let is_missing = path == Some(Path::Cached) && !self.has_cache();
        let why = "no cache is configured on this node";
        is_missing.then(|| Refusal::InvalidValue { pointer: "/path".into(), why })
    }

    /// Sets a switch on a pool. From its answer on it holds exactly.
    pub async fn switch_pool(&self, switch: SwitchPool) -> Result<Result<PoolRow, Refusal>, Error> {
        self.check_running()?;
        let switched = self.shared.store.switch_pool(switch).await?;
        self.catalog_changed().await;
        Ok(switched)
    }

    /// Changes a pool's supply.
    pub async fn adjust(&self, adjust: Adjust) -> Result<Outcome, Error> {
        let pool = adjust.pool;
        self.settle(LaneKey::Pool(pool), Command::Adjust(adjust), LockSet::pool(pool)).await
    }

    /// Moves stock to another pool or bucket. Only the buckets that are named are locked, else their pools.
    pub async fn transfer(&self, transfer: Transfer) -> Result<Outcome, Error> {
        let locks = locks_of_transfer(&transfer);
        self.settle(lane_of(&locks), Command::Transfer(transfer), locks).await
    }

    /// Gathers a pool's available stock in one bucket; the engine sets the sweep's id.
    pub async fn sweep(&self, mut sweep: Sweep) -> Result<Outcome, Error> {
        sweep.id = SweepId(self.shared.ids.next());
        let pool = sweep.pool;
        self.settle(LaneKey::Pool(pool), Command::Sweep(sweep), LockSet::pool(pool)).await
    }

    /// Runs a command that locks what it needs, once more if a pool grew before the locks were there.
    pub(crate) async fn settle(
        &self,
        lane: LaneKey,
        command: Command,
        mut locks: LockSet,
    ) -> Result<Outcome, Error> {
        self.check_running()?;
        for _ in 0..ROUNDS_MAX {
            let settled = self.shared.lanes.run(lane, Class::Settling, command.clone(), locks.clone()).await;
            let Ok(Outcome::Elsewhere(pools)) = settled else { return self.counted(settled) };
            locks.pools.extend(pools);
        }
        self.shared.metrics.overloads.of(Overload::Rounds).inc();
        self.counted(Err(Error::Overloaded))
    }
}

/// What a transfer locks: the buckets that are named, else their pools.
pub(crate) fn locks_of_transfer(transfer: &Transfer) -> LockSet {
    let mut locks = LockSet::default();
    for end in [transfer.from, transfer.to] {
        match end.bucket {
            Some(number) => drop(locks.buckets.insert(BucketKey { pool: end.pool, number })),
            None => drop(locks.pools.insert(end.pool)),
        }
    }
    locks
}
