//! What reconciliation reads, in short statements of reading connections, and keeps through the writer.

mod kept;
mod ledger;
mod orders;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::id::{DiscrepancyId, EventId, OrderId, Provider, RunId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Usage;
use holdfast_core::reconcile::{
    Class, Discrepancy, Finding, LedgerSums, PoolFacts, Range, RunScope, UsageFacts,
};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{
    BucketHead, Checkpoint, DiscrepancyFilter, Dispose, Error, OrdersAsked, Page, ReconcileStore, Run,
    Suspects, Unapplied,
};

use crate::store::SqliteStore;

pub(crate) use kept::{load, write};

#[async_trait]
impl ReconcileStore for SqliteStore {
    async fn ask_run(&self, run: Run) -> Result<bool, Error> {
        self.writer.call(move |db| kept::ask_run(db, &run)).await
    }

    async fn save_run(&self, run: Run) -> Result<(), Error> {
        self.writer.call(move |db| kept::save_run(db, &run)).await
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        self.readers.read(move |db| kept::run(db, id)).await
    }

    async fn runs(&self, page: Page<RunId>) -> Result<(Vec<Run>, bool), Error> {
        self.readers.read(move |db| kept::runs(db, &page)).await
    }

    async fn unfinished_run(&self) -> Result<Option<Run>, Error> {
        self.readers.read(kept::unfinished_run).await
    }

    async fn last_run_at(&self, scope: RunScope) -> Result<Option<Timestamp>, Error> {
        self.readers.read(move |db| kept::last_run_at(db, scope)).await
    }

    async fn bucket_heads(&self, page: Page<BucketKey>) -> Result<Vec<BucketHead>, Error> {
        self.readers.read(move |db| ledger::bucket_heads(db, &page)).await
    }

    async fn odd_pools(&self, most: usize) -> Result<Vec<PoolFacts>, Error> {
        self.readers.read(move |db| ledger::odd_pools(db, most)).await
    }

    async fn sum_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<LedgerSums, Error> {
        self.readers.read(move |db| ledger::sum_entries(db, bucket, after, to)).await
    }

    async fn missing_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Range>, Error> {
        self.readers.read(move |db| ledger::missing_entries(db, bucket, after, to)).await
    }

    async fn repairs(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        self.readers.read(move |db| ledger::repairs(db, bucket)).await
    }

    async fn doubled_supplies(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        self.readers.read(move |db| ledger::doubled_supplies(db, bucket)).await
    }

    async fn moves(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Entry>, Error> {
        self.readers.read(move |db| ledger::moves(db, bucket, after, to)).await
    }

    async fn halves(&self, of: Entry) -> Result<Vec<Entry>, Error> {
        self.readers.read(move |db| ledger::halves(db, &of)).await
    }

    async fn orders_in(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<OrderId>, Error> {
        self.readers.read(move |db| ledger::orders_in(db, bucket, after, to)).await
    }

    async fn suspects(&self, asked: OrdersAsked) -> Result<Suspects, Error> {
        self.readers.read(move |db| orders::suspects(db, &asked)).await
    }

    async fn unapplied(&self, page: Page<(Provider, EventId)>) -> Result<Unapplied, Error> {
        self.readers.read(move |db| orders::unapplied(db, &page)).await
    }

    async fn usage_rows(&self, page: Page<UsageKey>) -> Result<(Vec<(UsageKey, Usage)>, bool), Error> {
        self.readers.read(move |db| orders::usage_rows(db, &page)).await
    }

    async fn count_usage(&self, key: UsageKey) -> Result<UsageFacts, Error> {
        self.readers.read(move |db| orders::count_usage(db, &key)).await
    }

    async fn save_checkpoints(&self, checkpoints: Vec<Checkpoint>) -> Result<(), Error> {
        self.writer.call(move |db| kept::save_checkpoints(db, &checkpoints)).await
    }

    async fn note_findings(&self, run: RunId, findings: Vec<Finding>) -> Result<Vec<Discrepancy>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| kept::note(db, run, findings, clock.now())).await
    }

    async fn dispose(&self, dispose: Vec<Dispose>) -> Result<(), Error> {
        self.writer.call(move |db| kept::dispose(db, &dispose)).await
    }

    async fn discrepancy(&self, id: DiscrepancyId) -> Result<Option<Discrepancy>, Error> {
        self.readers.read(move |db| kept::discrepancy(db, id)).await
    }

    async fn discrepancies(
        &self,
        filter: DiscrepancyFilter,
        page: Page<DiscrepancyId>,
    ) -> Result<(Vec<Discrepancy>, bool), Error> {
        self.readers.read(move |db| kept::discrepancies(db, filter, &page)).await
    }

    async fn open_discrepancies(&self) -> Result<BTreeMap<Class, u64>, Error> {
        self.readers.read(kept::open_discrepancies).await
    }
}
