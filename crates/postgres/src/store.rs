//! Opening the database, and the contract on top of the two pools of connections.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::approval::{Approval, ApprovalKey};
use holdfast_core::audit::Report;
use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::campaign::{Campaign, Switch};
use holdfast_core::case::Case;
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, CaseId, OrderId, OrderKey, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_metrics::StoreMetrics;
use holdfast_store::{
    ActFilter, ActId, ActRow, ApprovalFilter, AuditWatch, Authority, Batch, CampaignTotals, CaseFilter,
    CatalogChanges, Clock, Committed, CreateKey, Credits, DueOrder, Error, Failpoints, KeyId, KeyRefusal,
    KeyRow, Lease, LedgerAhead, LedgerFilter, LedgerPosition, NewIncarnation, OpenEnds, OrderFilter, Page,
    PoolFilter, PoolRow, PutAssortment, PutCampaign, QueuePlace, ResolveCase, RevokeKey, Scope, Settlement,
    Store, SwitchCampaign, SwitchPool, page_of,
};
use tokio::runtime::Handle;
use tokio_postgres::types::Type;

use crate::address::Address;
use crate::call::transaction;
use crate::clock::{AuthorityClock, Hints};
use crate::connection::{Connection, Mode, Timeouts};
use crate::error::{Driver, Fault, of_driver};
use crate::pools::Pools;
use crate::row::{all, first, uuid};
use crate::sweep::{Swept, sweep};
use crate::threads::Threads;
use crate::{
    acts, ahead, approvals, cache, cases, catalog, commit, keys, load, migrate, query, queue, settlement, tls,
};

/// How to open a store.
#[derive(Clone, Default)]
pub struct Options {
    /// The authority's clock; none: the server's.
    pub clock: Option<Arc<dyn Clock>>,
    /// The incarnation's id, if the authority has none yet.
    pub incarnation: u128,
    /// Points at which a test build dies.
    pub failpoints: Failpoints,
}

/// What every transaction needs.
pub(crate) struct Inner {
    pub(crate) pools: Pools,
    pub(crate) clock: AuthorityClock,
    pub(crate) hints: Hints,
    pub(crate) metrics: Arc<StoreMetrics>,
    pub(crate) failpoints: Failpoints,
    pub(crate) threads: Handle,
}

impl Inner {
    /// Doubles from 2 ms to 128 ms, with jitter, so that those who collided do not collide again.
    #[expect(
        clippy::disallowed_methods,
        reason = "a backoff between tries whose number, or whose deadline, is bounded"
    )]
    pub(crate) async fn backoff(&self, tries: u32) {
        let base_us = 1_000_u64 << tries.min(7);
        tokio::time::sleep(Duration::from_micros(base_us + fastrand::u64(..base_us))).await;
    }

    /// The time of a transaction, read inside it.
    pub(crate) async fn time(&self, connection: &Connection) -> Result<Timestamp, Fault> {
        let read = load::clock(connection).await.map_err(|error| of_driver(&error))?;
        Ok(self.clock.at(read))
    }
}

/// PostgreSQL as the authority.
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
    address: Address,
    _threads: Threads,
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.inner.pools.close();
    }
}

impl PostgresStore {
    /// Connects, creates or migrates the schema, and makes one durable write.
    pub async fn open(address: &Address, options: Options) -> Result<Self, Error> {
        let tls = tls::connector(&address.trust)?;
        let timeouts = Timeouts::default();
        let lock = Connection::open(address, tls.clone(), timeouts).await?;
        let migrating = Connection::open(address, tls, timeouts).await?;
        migrate::run(migrating, &lock).await?;
        begin_first(&lock, options.incarnation).await?;
        drop(lock);
        let threads = Threads::start()?;
        let inner = Inner {
            pools: Pools::new(address, timeouts, &threads.handle)?,
            clock: AuthorityClock::new(options.clock),
            hints: Hints::default(),
            metrics: Arc::default(),
            failpoints: options.failpoints,
            threads: threads.handle.clone(),
        };
        // What is wrong with the pools is found now, and the clock is known from the beginning.
        let connection = inner.pools.writer().await?;
        inner.time(&connection).await.map_err(Fault::into_error)?;
        drop(connection);
        Ok(Self { inner: Arc::new(inner), address: address.clone(), _threads: threads })
    }
}

/// Gives an authority that was never served from its incarnation.
async fn begin_first(connection: &Connection, incarnation: u128) -> Result<(), Error> {
    connection.begin(Mode::Write).await.store()?;
    let sql = "UPDATE authority SET incarnation = $1 WHERE incarnation = $2";
    let (new, none) = (uuid(incarnation), uuid(0));
    connection.rows_typed(sql, &[&new, &none], &[Type::UUID, Type::UUID]).await.store()?;
    connection.commit().await.store()
}

/// A connection to the database of somebody else's servers, to read what this binary can read.
pub(crate) async fn beside(address: &Address) -> Result<Connection, Error> {
    let connection = Connection::open(address, tls::connector(&address.trust)?, Timeouts::default()).await?;
    migrate::schema_of(&connection).await?.check_readable()?;
    Ok(connection)
}

/// Audits a database beside running servers, or without one.
pub async fn audit(address: &Address) -> Result<Report, Error> {
    audit_as_of(address, None, &mut ()).await
}

/// The same, of its ledger as of a time if one is named, with somebody who watches.
pub async fn audit_as_of(
    address: &Address,
    as_of: Option<Timestamp>,
    watch: &mut dyn AuditWatch,
) -> Result<Report, Error> {
    crate::audit::audit(&beside(address).await?, as_of, watch).await
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        commit::commit(&self.inner, batch).await
    }

    async fn put_campaign(&self, put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error> {
        transaction(&self.inner, put).await
    }

    async fn switch_campaign(&self, switch: SwitchCampaign) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
        let (campaign, is_warm) = (switch.id.clone(), switch.switch == Switch::Warm);
        let switched = transaction(&self.inner, switch).await?;
        // To warm decides nothing that a batch could still stand on.
        if switched.is_ok() && !is_warm {
            sweep(&self.inner, Swept::Campaign(campaign)).await?;
        }
        Ok(switched)
    }

    async fn put_assortment(
        &self,
        put: PutAssortment,
    ) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error> {
        transaction(&self.inner, put).await
    }

    async fn switch_pool(&self, switch: SwitchPool) -> Result<Result<PoolRow, Refusal>, Error> {
        let pool = switch.id;
        let switched = transaction(&self.inner, switch).await?;
        if switched.is_ok() {
            sweep(&self.inner, Swept::Pool(pool)).await?;
        }
        Ok(switched)
    }

    async fn catalog(&self, since: Option<u64>) -> Result<CatalogChanges, Error> {
        self.inner.read(catalog::Since(since)).await
    }

    async fn create_key(&self, create: CreateKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        transaction(&self.inner, create).await
    }

    async fn create_first_key(&self, create: CreateKey) -> Result<bool, Error> {
        transaction(&self.inner, keys::First(create)).await
    }

    async fn revoke_key(&self, revoke: RevokeKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        transaction(&self.inner, revoke).await
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, Error> {
        first(&self.inner.read(keys::key(&id)).await?, holdfast_store::rows::key)
    }

    async fn keys(&self, page: Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error> {
        let found = self.inner.read(keys::list(&page)).await?;
        Ok(page_of(all(&found, holdfast_store::rows::key)?, page.limit))
    }

    async fn live_keys(&self) -> Result<Vec<KeyRow>, Error> {
        let found = self.inner.read(keys::live(self.inner.clock.now())).await?;
        all(&found, holdfast_store::rows::key)
    }

    async fn acts(&self, filter: ActFilter, page: Page<ActId>) -> Result<(Vec<ActRow>, bool), Error> {
        acts::page(&self.inner.read(acts::list(&filter, &page)?).await?, page.limit)
    }

    async fn approval(&self, key: ApprovalKey) -> Result<Option<Arc<Approval>>, Error> {
        let found = self.inner.read(approvals::find(&key)).await?;
        Ok(first(&found, holdfast_store::rows::approval)?.map(Arc::new))
    }

    async fn approvals(
        &self,
        filter: ApprovalFilter,
        page: Page<ApprovalKey>,
    ) -> Result<(Vec<Arc<Approval>>, bool), Error> {
        let found = self.inner.read(approvals::list(&filter, &page)).await?;
        let read = |row: &dyn holdfast_store::rows::Row| holdfast_store::rows::approval(row).map(Arc::new);
        Ok(page_of(all(&found, read)?, page.limit))
    }

    async fn limit_salt(&self) -> Result<[u8; 32], Error> {
        self.inner.read(cases::LimitSalt).await
    }

    async fn authority(&self) -> Result<Authority, Error> {
        self.inner.read(cases::TheAuthority).await
    }

    async fn begin_incarnation(&self, begin: NewIncarnation) -> Result<(), Error> {
        transaction(&self.inner, begin).await?;
        sweep(&self.inner, Swept::All).await
    }

    async fn cases(&self, filter: CaseFilter, page: Page<CaseId>) -> Result<(Vec<Case>, bool), Error> {
        let found = self.inner.read(cases::list(filter, &page)).await?;
        Ok(page_of(all(&found, holdfast_store::rows::case)?, page.limit))
    }

    async fn open_case(&self, case: Case) -> Result<(), Error> {
        transaction(&self.inner, cases::Open(case)).await
    }

    async fn resolve_case(&self, resolve: ResolveCase) -> Result<Result<Case, Refusal>, Error> {
        transaction(&self.inner, resolve).await
    }

    async fn campaign(&self, id: CampaignId) -> Result<Option<CampaignTotals>, Error> {
        first(&self.inner.read(query::campaign(&id)).await?, holdfast_store::rows::totals)
    }

    async fn campaigns(
        &self,
        scope: Scope,
        page: Page<CampaignId>,
    ) -> Result<(Vec<CampaignTotals>, bool), Error> {
        query::totals(&self.inner.read(query::campaigns(&scope, &page)).await?, page.limit)
    }

    async fn closed_into(
        &self,
        campaign: Option<CampaignId>,
        page: Page<CampaignId>,
    ) -> Result<Vec<(CampaignId, PoolId)>, Error> {
        all(
            &self.inner.read(query::closed_into(campaign.as_ref(), &page)).await?,
            holdfast_store::rows::closed_into,
        )
    }

    async fn warm(&self) -> Result<usize, Error> {
        self.inner.pools.warm().await
    }

    async fn pool(&self, id: PoolId) -> Result<Option<PoolRow>, Error> {
        self.inner.read(query::OnePool(id)).await
    }

    async fn pools(&self, filter: PoolFilter, page: Page<PoolId>) -> Result<(Vec<PoolRow>, bool), Error> {
        let (asked, limit) = (query::pools(&filter, &page), page.limit);
        self.inner.read(query::PoolPage { asked, limit }).await
    }

    async fn order(&self, id: OrderId) -> Result<Option<Arc<Order>>, Error> {
        query::one_order(&self.inner.read(query::order(id)).await?)
    }

    async fn order_by_key(&self, key: OrderKey) -> Result<Option<Arc<Order>>, Error> {
        query::one_order(&self.inner.read(query::order_by_key(&key)).await?)
    }

    async fn order_keys(&self, page: Page<OrderKey>) -> Result<(Vec<OrderKey>, bool), Error> {
        let found = self.inner.read(query::order_keys(&page)).await?;
        Ok(page_of(all(&found, holdfast_store::rows::order_key)?, page.limit))
    }

    async fn orders(
        &self,
        filter: OrderFilter,
        page: Page<OrderId>,
    ) -> Result<(Vec<Arc<Order>>, bool), Error> {
        self.inner.read(query::OrderPage { filter, page }).await
    }

    async fn ledger(
        &self,
        filter: LedgerFilter,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<Entry>, bool), Error> {
        query::entries(&self.inner.read(query::ledger(&filter, &page)?).await?, page.limit)
    }

    async fn order_position(&self, order: OrderId, version: u32) -> Result<Option<LedgerPosition>, Error> {
        let found = self.inner.read(settlement::order_position(order, version)).await?;
        first(&found, holdfast_store::rows::position)
    }

    async fn ledgers_ahead(&self, pools: Vec<PoolId>) -> Result<Vec<LedgerAhead>, Error> {
        self.inner.read(ahead::LedgersAhead(pools)).await
    }

    async fn settlement(&self, campaign: CampaignId) -> Result<Option<Settlement>, Error> {
        let now = self.inner.clock.now();
        self.inner.read(settlement::OfCampaign { campaign, now }).await
    }

    async fn due(&self, now: Timestamp, page: Page<(Timestamp, OrderId)>) -> Result<Vec<DueOrder>, Error> {
        query::due_orders(&self.inner.read(query::due(now, &page)).await?)
    }

    async fn open_ends(&self, now: Timestamp, most: u64) -> Result<OpenEnds, Error> {
        query::ends(&self.inner.read(query::open_ends(now, most)).await?)
    }

    async fn queued(&self, bucket: BucketKey, page: Page<QueuePlace>) -> Result<Vec<QueuePlace>, Error> {
        all(&self.inner.read(queue::queued(bucket, &page)).await?, holdfast_store::rows::queue_place)
    }

    async fn queues(&self, page: Page<BucketKey>) -> Result<Vec<BucketKey>, Error> {
        self.inner.read(queue::Queues(page)).await
    }

    async fn cache_buckets(&self, page: Page<BucketKey>) -> Result<(Vec<CacheBucket>, bool), Error> {
        let found = self.inner.read(cache::list(&page)).await?;
        Ok(page_of(all(&found, holdfast_store::rows::cache_bucket)?, page.limit))
    }

    async fn cache_bucket(&self, bucket: BucketKey) -> Result<Option<CacheBucket>, Error> {
        first(&self.inner.read(cache::find(bucket)).await?, holdfast_store::rows::cache_bucket)
    }

    async fn credits(&self, bucket: BucketKey, after: u64, entries_max: u32) -> Result<Credits, Error> {
        let found = self.inner.read(cache::credits(bucket, after, entries_max)?).await?;
        let credits = first(&found, holdfast_store::rows::credits)?;
        credits.ok_or_else(|| holdfast_store::rows::corrupt("a sum without a row"))
    }

    async fn landed(&self, key: LandingKey) -> Result<Option<Entry>, Error> {
        first(&self.inner.read(cache::landed(key)).await?, holdfast_store::rows::entry)
    }

    async fn take_lease(&self, lease: Lease) -> Result<bool, Error> {
        transaction(&self.inner, lease).await
    }

    async fn give_up_leases(&self, holder: u128) -> Result<(), Error> {
        transaction(&self.inner, queue::GiveUp(holder)).await
    }

    async fn audit(&self) -> Result<Report, Error> {
        audit(&self.address).await
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    fn health(&self) -> Result<(), Error> {
        // An outage ends by itself: connections are made anew when they are needed.
        Ok(())
    }

    fn outage(&self) -> Option<Error> {
        self.inner.pools.outage()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn metrics(&self) -> &Arc<StoreMetrics> {
        &self.inner.metrics
    }
}
