//! A store in memory, with faults on request: what the suite is checked against and the engine's tests run on.

mod audit;
mod cache;
mod cases;
mod catalog;
mod commit;
mod ends;
mod evidence;
mod queue;
mod reconcile;
mod settlement;
mod sinks;
mod trail;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use holdfast_core::approval::{Approval, ApprovalKey};
use holdfast_core::audit::Report;
use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::campaign::Campaign;
use holdfast_core::case::Case;
use holdfast_core::command::{Adjust, Command, How, Transfer};
use holdfast_core::decide::decide;
use holdfast_core::id::{
    AdjustmentId, CampaignId, CaseId, EventId, ImportId, OrderId, OrderKey, PaymentId, PoolId, Provider,
    TransferId,
};
use holdfast_core::import::Imported;
use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, Usage};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::{PaymentRow, UsageKey};
use holdfast_core::stock::{Bucket, BucketKey, Pool};
use holdfast_core::time::Timestamp;
use holdfast_metrics::StoreMetrics;
use tokio::sync::Notify;

use crate::acts::{Act, ActFilter, ActId, ActRow};
use crate::approvals::ApprovalFilter;
use crate::assortment::PutAssortment;
use crate::authority::{Authority, CaseFilter, NewIncarnation, ResolveCase};
use crate::cache::Credits;
use crate::catalog::CatalogChanges;
use crate::clock::Clock;
use crate::contract::{Balance, Batch, Committed, PutCampaign, Store, SwitchCampaign, SwitchPool};
use crate::error::Error;
use crate::keys::{CreateKey, KeyId, KeyRefusal, KeyRow, RevokeKey, Scope};
use crate::queue::{Lease, QueuePlace};
use crate::read::{
    CampaignTotals, DueOrder, LedgerAhead, LedgerFilter, LedgerPosition, OpenEnds, OrderFilter, Page,
    PoolFilter, PoolRow, page_of, page_of_orders,
};
use crate::settlement::Settlement;

/// What a commit does wrong on request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It fails and writes nothing.
    Before(Error),
    /// It writes, and its answer is lost.
    AnswerLost,
    /// It waits until it is notified, then does what it should.
    Wait(Arc<Notify>),
    /// It fails for data that cannot be stored while it holds this order's place.
    Unstorable(OrderKey),
}

/// The rows.
#[derive(Default)]
struct Rows {
    campaigns: BTreeMap<CampaignId, Arc<Campaign>>,
    pools: BTreeMap<PoolId, Pool>,
    buckets: BTreeMap<BucketKey, Bucket>,
    orders: BTreeMap<OrderId, Arc<Order>>,
    order_keys: BTreeMap<OrderKey, OrderId>,
    ledger: BTreeMap<LedgerPosition, Entry>,
    usage: BTreeMap<UsageKey, Usage>,
    payments: BTreeMap<(Provider, EventId), PaymentRow>,
    claims: BTreeMap<(Provider, PaymentId), OrderId>,
    adjustments: BTreeMap<AdjustmentId, Adjust>,
    transfers: BTreeMap<TransferId, Transfer>,
    imports: BTreeMap<ImportId, Imported>,
    approvals: BTreeMap<ApprovalKey, Arc<Approval>>,
    caches: BTreeMap<BucketKey, CacheBucket>,
    catalog: catalog::Versions,
    trail: trail::Trail,
    own: cases::Own,
    leases: queue::Leases,
    sinks: sinks::Sinks,
    reconciled: reconcile::Reconciled,
}

/// The model store.
pub struct ModelStore {
    rows: Mutex<Rows>,
    clock: Arc<dyn Clock>,
    faults: Mutex<BTreeMap<u64, Fault>>,
    commits: AtomicU64,
    metrics: Arc<StoreMetrics>,
}

impl ModelStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            rows: Mutex::default(),
            clock,
            faults: Mutex::default(),
            commits: AtomicU64::new(0),
            metrics: Arc::default(),
        }
    }

    /// Makes the commit with this number (from 1) go wrong.
    pub fn fail_commit(&self, number: u64, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).insert(number, fault);
    }

    /// Changes a balance as no command can: past the ledger.
    pub fn set_available(&self, bucket: BucketKey, available: u64) {
        if let Some(row) = self.rows().buckets.get_mut(&bucket) {
            row.available = available;
        }
    }

    /// How many commits were asked for.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    fn totals(&self, campaign: &Arc<Campaign>) -> CampaignTotals {
        let mut totals = CampaignTotals {
            campaign: Arc::clone(campaign),
            pools: 0,
            available: 0,
            held: 0,
            sold: 0,
            halted: self.own.halted(),
        };
        for pool in self.pools.values().filter(|pool| pool.campaign == campaign.id) {
            totals.pools += 1;
            for bucket in self.buckets_of(pool.id) {
                totals.available += bucket.available;
                totals.held += bucket.held;
                totals.sold += bucket.sold;
            }
        }
        totals
    }

    fn buckets_of(&self, pool: PoolId) -> Vec<Bucket> {
        self.buckets.values().filter(|bucket| bucket.key.pool == pool).copied().collect()
    }

    fn pool_row(&self, id: PoolId) -> Option<PoolRow> {
        self.pools.get(&id).map(|pool| PoolRow { pool: pool.clone(), buckets: self.buckets_of(id) })
    }
}

fn after<K: Ord + Clone, V: Clone>(map: &BTreeMap<K, V>, page: Option<&K>) -> Vec<(K, V)> {
    let from = page.map_or(Bound::Unbounded, Bound::Excluded);
    map.range((from, Bound::Unbounded)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[async_trait]
impl Store for ModelStore {
    async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.faults.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        let answer_lost = matches!(fault, Some(Fault::AnswerLost));
        match fault {
            Some(Fault::Before(error)) => return Err(error),
            Some(Fault::Wait(signal)) => signal.notified().await,
            Some(Fault::Unstorable(key)) => {
                // The culprit goes wrong every time, until it is alone and after.
                self.fail_commit(number + 1, Fault::Unstorable(key.clone()));
                let is_culprit = |command: &Command| matches!(command, Command::Place(p) if p.key == key);
                if batch.commands.iter().any(is_culprit) {
                    return Err(Error::Data("on request".into()));
                }
            }
            Some(Fault::AnswerLost) | None => {}
        }
        self.metrics.batch_commands.observe_count(batch.commands.len());
        let mut rows = self.rows();
        let snapshot = rows.snapshot(&batch.locks, &batch.commands);
        let locked: Vec<BucketKey> = snapshot.buckets.keys().copied().collect();
        let now = self.clock.now();
        let decision = decide(now, snapshot, batch.commands.iter());
        let changed: Vec<BucketKey> = decision.changes.buckets.iter().map(|c| c.bucket.key).collect();
        rows.apply(decision.changes)?;
        for (command, outcome) in batch.commands.iter().zip(&decision.outcomes) {
            if let Some(act) = Act::of_command(command, outcome) {
                rows.record(&act, now);
            }
        }
        if answer_lost {
            return Err(Error::OutcomeUnknown("on request".into()));
        }
        let keys: std::collections::BTreeSet<_> = locked.into_iter().chain(changed).collect();
        let balances = keys.iter().filter_map(|key| rows.buckets.get(key)).map(Balance::from).collect();
        Ok(Committed { outcomes: decision.outcomes, balances })
    }

    async fn put_campaign(&self, put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error> {
        let now = self.clock.now();
        let mut rows = self.rows();
        let before = rows.campaigns.get(&put.id).cloned();
        let (id, via) = (put.id.clone(), put.via.clone());
        let mut campaign = put.onto(before.as_deref(), now);
        if let Some(before) = &before {
            rows.recount(&before.policy, &mut campaign);
        }
        let campaign = Arc::new(campaign);
        rows.catalog.campaign_changed(&id);
        rows.campaigns.insert(id, Arc::clone(&campaign));
        if let Some(act) = Act::put_campaign(before.as_deref(), &campaign, via.as_ref()) {
            rows.record(&act, now);
        }
        Ok((campaign, before.is_none()))
    }

    async fn switch_campaign(&self, switch: SwitchCampaign) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
        let now = self.clock.now();
        let mut rows = self.rows();
        Ok(rows.switch_campaign(&switch, now))
    }

    async fn put_assortment(
        &self,
        put: PutAssortment,
    ) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error> {
        Ok(self.rows().put_assortment(&put, self.clock.now()))
    }

    async fn switch_pool(&self, switch: SwitchPool) -> Result<Result<PoolRow, Refusal>, Error> {
        Ok(self.rows().switch_pool(&switch, self.clock.now()))
    }

    async fn create_key(&self, create: CreateKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        let now = self.clock.now();
        Ok(self.rows().trail.create(create, now))
    }

    async fn create_first_key(&self, create: CreateKey) -> Result<bool, Error> {
        let now = self.clock.now();
        Ok(self.rows().trail.create_first(create, now))
    }

    async fn revoke_key(&self, revoke: RevokeKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        let now = self.clock.now();
        Ok(self.rows().trail.revoke(&revoke, now))
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, Error> {
        Ok(self.rows().trail.key(&id))
    }

    async fn keys(&self, page: Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error> {
        Ok(self.rows().trail.keys(&page))
    }

    async fn live_keys(&self) -> Result<Vec<KeyRow>, Error> {
        Ok(self.rows().trail.live(self.clock.now()))
    }

    async fn acts(&self, filter: ActFilter, page: Page<ActId>) -> Result<(Vec<ActRow>, bool), Error> {
        Ok(self.rows().trail.acts(&filter, &page))
    }

    async fn approval(&self, key: ApprovalKey) -> Result<Option<Arc<Approval>>, Error> {
        Ok(self.rows().approvals.get(&key).cloned())
    }

    async fn approvals(
        &self,
        filter: ApprovalFilter,
        page: Page<ApprovalKey>,
    ) -> Result<(Vec<Arc<Approval>>, bool), Error> {
        let found = after(&self.rows().approvals, page.after.as_ref()).into_iter().map(|(_, found)| found);
        Ok(page_of(found.filter(|approval| filter.shows(approval)).collect(), page.limit))
    }

    async fn limit_salt(&self) -> Result<[u8; 32], Error> {
        Ok([7; 32])
    }

    async fn authority(&self) -> Result<Authority, Error> {
        let rows = self.rows();
        let positions = rows.buckets.values().map(|bucket| bucket.ledger_seq).sum();
        let last = rows.buckets.values().map(|bucket| bucket.last_at).max();
        Ok(rows.own.authority(positions, last))
    }

    async fn begin_incarnation(&self, begin: NewIncarnation) -> Result<(), Error> {
        let now = self.clock.now();
        self.rows().begin_incarnation(&begin, now);
        Ok(())
    }

    async fn cases(&self, filter: CaseFilter, page: Page<CaseId>) -> Result<(Vec<Case>, bool), Error> {
        Ok(self.rows().own.cases(filter, &page))
    }

    async fn open_case(&self, case: Case) -> Result<(), Error> {
        self.rows().own.open(case);
        Ok(())
    }

    async fn resolve_case(&self, resolve: ResolveCase) -> Result<Result<Case, Refusal>, Error> {
        let now = self.clock.now();
        let mut rows = self.rows();
        Ok(rows.own.resolve(&resolve, now).map(|(case, changed)| {
            if changed {
                rows.record(&Act::resolve_case(&resolve), now);
            }
            case
        }))
    }

    async fn catalog(&self, since: Option<u64>) -> Result<CatalogChanges, Error> {
        Ok(self.rows().catalog_since(since))
    }

    async fn campaign(&self, id: CampaignId) -> Result<Option<CampaignTotals>, Error> {
        let rows = self.rows();
        Ok(rows.campaigns.get(&id).map(|campaign| rows.totals(campaign)))
    }

    async fn campaigns(
        &self,
        scope: Scope,
        page: Page<CampaignId>,
    ) -> Result<(Vec<CampaignTotals>, bool), Error> {
        let rows = self.rows();
        let found = after(&rows.campaigns, page.after.as_ref());
        let found = found.into_iter().filter(|(id, _)| scope.allows(id));
        let (found, more) = page_of(found.collect(), page.limit);
        Ok((found.iter().map(|(_, campaign)| rows.totals(campaign)).collect(), more))
    }

    async fn closed_into(
        &self,
        campaign: Option<CampaignId>,
        page: Page<CampaignId>,
    ) -> Result<Vec<(CampaignId, PoolId)>, Error> {
        Ok(self.rows().closed_into(campaign.as_ref(), &page))
    }

    async fn warm(&self) -> Result<usize, Error> {
        Ok(0)
    }

    async fn pool(&self, id: PoolId) -> Result<Option<PoolRow>, Error> {
        Ok(self.rows().pool_row(id))
    }

    async fn pools(&self, filter: PoolFilter, page: Page<PoolId>) -> Result<(Vec<PoolRow>, bool), Error> {
        let rows = self.rows();
        let shown = |pool: &Pool| {
            filter.scope.allows(&pool.campaign)
                && filter.campaign.as_ref().is_none_or(|c| *c == pool.campaign)
                && filter.sku.as_ref().is_none_or(|s| *s == pool.sku)
                && filter.location.as_ref().is_none_or(|l| *l == pool.location)
        };
        let found = after(&rows.pools, page.after.as_ref()).into_iter().filter(|(_, pool)| shown(pool));
        let (found, more) = page_of(found.collect(), page.limit);
        Ok((found.into_iter().filter_map(|(id, _)| rows.pool_row(id)).collect(), more))
    }

    async fn order(&self, id: OrderId) -> Result<Option<Arc<Order>>, Error> {
        Ok(self.rows().orders.get(&id).cloned())
    }

    async fn order_by_key(&self, key: OrderKey) -> Result<Option<Arc<Order>>, Error> {
        let rows = self.rows();
        Ok(rows.order_keys.get(&key).and_then(|id| rows.orders.get(id)).cloned())
    }

    async fn order_keys(&self, page: Page<OrderKey>) -> Result<(Vec<OrderKey>, bool), Error> {
        let found = after(&self.rows().order_keys, page.after.as_ref());
        Ok(page_of(found.into_iter().map(|(key, _)| key).collect(), page.limit))
    }

    async fn orders(
        &self,
        filter: OrderFilter,
        page: Page<OrderId>,
    ) -> Result<(Vec<Arc<Order>>, bool), Error> {
        let rows = self.rows();
        let found = after(&rows.orders, page.after.as_ref());
        let found = found.into_iter().map(|(_, order)| order).filter(|order| filter.shows(order));
        page_of_orders(found.map(Ok), page.limit)
    }

    async fn ledger(
        &self,
        filter: LedgerFilter,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<Entry>, bool), Error> {
        let rows = self.rows();
        let shown = |entry: &Entry| {
            rows.pools.get(&entry.bucket.pool).is_some_and(|pool| filter.scope.allows(&pool.campaign))
                && filter.pool.is_none_or(|pool| pool == entry.bucket.pool)
                && filter.order.is_none_or(|order| Some(order) == entry.order_id)
        };
        let found = after(&rows.ledger, page.after.as_ref());
        let found = found.into_iter().map(|(_, entry)| entry).filter(shown);
        Ok(page_of(found.collect(), page.limit))
    }

    async fn order_position(&self, order: OrderId, version: u32) -> Result<Option<LedgerPosition>, Error> {
        Ok(self.rows().order_position(order, version))
    }

    async fn ledgers_ahead(&self, pools: Vec<PoolId>) -> Result<Vec<LedgerAhead>, Error> {
        Ok(self.rows().ledgers_ahead(&pools))
    }

    async fn settlement(&self, campaign: CampaignId) -> Result<Option<Settlement>, Error> {
        Ok(self.rows().settlement(campaign, self.clock.now()))
    }

    async fn open_ends(&self, now: Timestamp, most: u64) -> Result<OpenEnds, Error> {
        Ok(self.rows().open_ends(now, most))
    }

    async fn due(&self, now: Timestamp, page: Page<(Timestamp, OrderId)>) -> Result<Vec<DueOrder>, Error> {
        Ok(self.rows().due(now, &page))
    }

    async fn queued(&self, bucket: BucketKey, page: Page<QueuePlace>) -> Result<Vec<QueuePlace>, Error> {
        Ok(self.rows().queued(bucket, &page))
    }

    async fn queues(&self, page: Page<BucketKey>) -> Result<Vec<BucketKey>, Error> {
        Ok(self.rows().queues(&page))
    }

    async fn cache_buckets(&self, page: Page<BucketKey>) -> Result<(Vec<CacheBucket>, bool), Error> {
        Ok(self.rows().cache_buckets(&page))
    }

    async fn cache_bucket(&self, bucket: BucketKey) -> Result<Option<CacheBucket>, Error> {
        Ok(self.rows().caches.get(&bucket).cloned())
    }

    async fn credits(&self, bucket: BucketKey, after: u64, entries_max: u32) -> Result<Credits, Error> {
        Ok(self.rows().credits(bucket, after, entries_max))
    }

    async fn landed(&self, key: LandingKey) -> Result<Option<Entry>, Error> {
        Ok(self.rows().landed(key))
    }

    async fn take_lease(&self, lease: Lease) -> Result<bool, Error> {
        Ok(self.rows().take_lease(lease, self.clock.now()))
    }

    async fn give_up_leases(&self, holder: u128) -> Result<(), Error> {
        self.rows().give_up_leases(holder, self.clock.now());
        Ok(())
    }

    async fn audit(&self) -> Result<Report, Error> {
        Ok(self.rows().audit())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn health(&self) -> Result<(), Error> {
        Ok(())
    }

    fn outage(&self) -> Option<Error> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn metrics(&self) -> &Arc<StoreMetrics> {
        &self.metrics
    }
}
