//! What reconciliation reads, in short transactions of reading connections, and keeps in small writes.

mod kept;
mod ledger;
mod orders;

use std::collections::BTreeMap;

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
use holdfast_store::rows::{self, Row, corrupt};
use holdfast_store::{
    BucketHead, Checkpoint, DiscrepancyFilter, Dispose, Error, OrdersAsked, Page, ReconcileStore, Run,
    Suspects, Unapplied, page_of,
};

use crate::call::transaction;
use crate::row::{all, first};
use crate::store::PostgresStore;

pub(crate) use kept::{add, ask, take};

#[async_trait]
impl ReconcileStore for PostgresStore {
    async fn ask_run(&self, run: Run) -> Result<bool, Error> {
        transaction(&self.inner, kept::Ask(run)).await
    }

    async fn save_run(&self, run: Run) -> Result<(), Error> {
        transaction(&self.inner, kept::Save(run)).await
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        first(&self.inner.read(kept::run(id)).await?, rows::run)
    }

    async fn runs(&self, page: Page<RunId>) -> Result<(Vec<Run>, bool), Error> {
        Ok(page_of(all(&self.inner.read(kept::runs(&page)).await?, rows::run)?, page.limit))
    }

    async fn unfinished_run(&self) -> Result<Option<Run>, Error> {
        first(&self.inner.read(kept::unfinished_run()).await?, rows::run)
    }

    async fn last_run_at(&self, scope: RunScope) -> Result<Option<Timestamp>, Error> {
        let at = |row: &dyn Row| rows::number(row, "started_at").map(Timestamp);
        first(&self.inner.read(kept::last_run(scope)).await?, at)
    }

    async fn bucket_heads(&self, page: Page<BucketKey>) -> Result<Vec<BucketHead>, Error> {
        all(&self.inner.read(ledger::bucket_heads(&page)).await?, rows::bucket_head)
    }

    async fn odd_pools(&self, most: usize) -> Result<Vec<PoolFacts>, Error> {
        all(&self.inner.read(ledger::odd_pools(most)).await?, rows::odd_pool)
    }

    async fn sum_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<LedgerSums, Error> {
        let sums = first(&self.inner.read(ledger::sum_entries(bucket, after, to)?).await?, rows::sums)?;
        sums.ok_or_else(|| corrupt("a sum without a row"))
    }

    async fn missing_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Range>, Error> {
        all(&self.inner.read(ledger::missing_entries(bucket, after, to)?).await?, rows::range)
    }

    async fn repairs(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        all(&self.inner.read(ledger::repairs(bucket)).await?, rows::entry)
    }

    async fn doubled_supplies(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        all(&self.inner.read(ledger::doubled_supplies(bucket)).await?, rows::entry)
    }

    async fn moves(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Entry>, Error> {
        all(&self.inner.read(ledger::moves(bucket, after, to)?).await?, rows::entry)
    }

    async fn halves(&self, of: Entry) -> Result<Vec<Entry>, Error> {
        all(&self.inner.read(ledger::halves(&of)).await?, rows::entry)
    }

    async fn orders_in(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<OrderId>, Error> {
        let of = |row: &dyn Row| rows::number_id(row, "order_id").map(OrderId);
        all(&self.inner.read(ledger::orders_in(bucket, after, to)?).await?, of)
    }

    async fn suspects(&self, asked: OrdersAsked) -> Result<Suspects, Error> {
        self.inner.read(orders::Look(asked)).await
    }

    async fn unapplied(&self, page: Page<(Provider, EventId)>) -> Result<Unapplied, Error> {
        self.inner.read(orders::Payments(page)).await
    }

    async fn usage_rows(&self, page: Page<UsageKey>) -> Result<(Vec<(UsageKey, Usage)>, bool), Error> {
        self.inner.read(orders::UsageRows(page)).await
    }

    async fn count_usage(&self, key: UsageKey) -> Result<UsageFacts, Error> {
        self.inner.read(orders::Count(key)).await
    }

    async fn save_checkpoints(&self, checkpoints: Vec<Checkpoint>) -> Result<(), Error> {
        transaction(&self.inner, kept::Checkpoints(checkpoints)).await
    }

    async fn note_findings(&self, run: RunId, findings: Vec<Finding>) -> Result<Vec<Discrepancy>, Error> {
        transaction(&self.inner, kept::Note { run, findings }).await
    }

    async fn dispose(&self, dispose: Vec<Dispose>) -> Result<(), Error> {
        transaction(&self.inner, kept::Disposed(dispose)).await
    }

    async fn discrepancy(&self, id: DiscrepancyId) -> Result<Option<Discrepancy>, Error> {
        first(&self.inner.read(kept::discrepancy(id)).await?, rows::discrepancy)
    }

    async fn discrepancies(
        &self,
        filter: DiscrepancyFilter,
        page: Page<DiscrepancyId>,
    ) -> Result<(Vec<Discrepancy>, bool), Error> {
        let found = self.inner.read(kept::discrepancies(filter, &page)).await?;
        Ok(page_of(all(&found, rows::discrepancy)?, page.limit))
    }

    async fn open_discrepancies(&self) -> Result<BTreeMap<Class, u64>, Error> {
        let read = |row: &dyn Row| Ok((rows::word(row, "class", Class::parse)?, rows::number(row, "open")?));
        Ok(all(&self.inner.read(kept::open_discrepancies()).await?, read)?.into_iter().collect())
    }
}
