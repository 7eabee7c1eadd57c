//! The contract.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::approval::{Approval, ApprovalKey};
use holdfast_core::audit::Report;
use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::campaign::{Campaign, Policy, Switch, Switches};
use holdfast_core::case::Case;
use holdfast_core::command::{Command, How, Outcome, Via};
use holdfast_core::id::{CampaignId, CaseId, Operator, OrderId, OrderKey, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{Bucket, BucketKey, PoolSwitch};
use holdfast_core::time::Timestamp;
use holdfast_metrics::StoreMetrics;

use crate::acts::{ActFilter, ActId, ActRow};
use crate::approvals::ApprovalFilter;
use crate::assortment::PutAssortment;
use crate::authority::{Authority, CaseFilter, NewIncarnation, ResolveCase};
use crate::cache::Credits;
use crate::catalog::CatalogChanges;
use crate::error::Error;
use crate::evidence::Evidence;
use crate::keys::{CreateKey, KeyId, KeyRefusal, KeyRow, RevokeKey, Scope};
use crate::queue::{Lease, QueuePlace};
use crate::read::{
    CampaignTotals, DueOrder, LedgerAhead, LedgerFilter, LedgerPosition, OpenEnds, OrderFilter, Page,
    PoolFilter, PoolRow,
};
use crate::reconcile::ReconcileStore;
use crate::settlement::Settlement;
use crate::sinks::SinkStore;

/// Commands that share their locks and are decided in one transaction, in arrival order.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The buckets to lock, in the one global order.
    pub locks: LockSet,
    /// What to decide.
    pub commands: Arc<Vec<Command>>,
}

/// A bucket's stock as it was when a batch was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// The bucket.
    pub bucket: BucketKey,
    /// Units that could be taken.
    pub available: u64,
    /// Units that open orders held.
    pub held: u64,
    /// Units that were sold.
    pub sold: u64,
    /// The bucket's last entry then.
    pub ledger_seq: u64,
}

impl From<&Bucket> for Balance {
    fn from(bucket: &Bucket) -> Self {
        let Bucket { key, available, held, sold, ledger_seq, .. } = *bucket;
        Self { bucket: key, available, held, sold, ledger_seq }
    }
}

/// What a commit gives back.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// One a command.
    pub outcomes: Vec<Outcome>,
    /// Every bucket that was locked, as it stands after the batch.
    pub balances: Vec<Balance>,
}

/// A campaign to create or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutCampaign {
    /// Its id.
    pub id: CampaignId,
    /// Its name.
    pub name: String,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
    /// When it ends.
    pub ends_at: Option<Timestamp>,
    /// What it means.
    pub policy: Policy,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

impl PutCampaign {
    /// The campaign that it makes of the one before, the same in every store.
    pub fn onto(self, before: Option<&Campaign>, now: Timestamp) -> Campaign {
        let ceilings = before.map(|known| known.ceilings.clone()).unwrap_or_default();
        Campaign {
            ceilings: ceilings.after(before.map(|known| &known.policy), &self.policy),
            id: self.id,
            name: self.name,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            policy: self.policy,
            switches: before.map_or_else(Switches::default, |known| known.switches),
            assortment: before.map(|known| known.assortment.clone()).unwrap_or_default(),
            unsold_to: before.and_then(|known| known.unsold_to),
            warm_asked_at: before.and_then(|known| known.warm_asked_at),
            created_at: before.map_or(now, |known| known.created_at),
            updated_at: now,
        }
    }
}

/// A switch to set on a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchCampaign {
    /// Which campaign.
    pub id: CampaignId,
    /// Which switch.
    pub switch: Switch,
    /// With [`Switch::Close`]: where stock goes that is not sold, or comes back later.
    pub unsold_to: Option<PoolId>,
    /// Who.
    pub operator: Operator,
    /// Why.
    pub reason: String,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

/// A switch to set on a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchPool {
    /// Which pool.
    pub id: PoolId,
    /// Which switch.
    pub switch: PoolSwitch,
    /// Who.
    pub operator: Operator,
    /// Why.
    pub reason: String,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

/// An authority.
///
/// Every write is one transaction that is on disk when the call returns. A future that is dropped does
/// not stop a write that has begun. Reads see what is committed and on disk.
#[async_trait]
pub trait Store: Evidence + ReconcileStore + SinkStore {
    /// Locks, reads, decides, writes and commits a batch: order rows, balances and ledger together.
    async fn commit(&self, batch: Batch) -> Result<Committed, Error>;

    /// Creates or changes a campaign; whether it is new. A limit that is added later is counted in the
    /// same transaction. Takes effect for every batch that begins after it returns.
    async fn put_campaign(&self, put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error>;

    /// Sets a switch and records who did it and why. Idempotent. When it returns, it holds exactly.
    async fn switch_campaign(&self, switch: SwitchCampaign) -> Result<Result<Arc<Campaign>, Refusal>, Error>;

    /// Changes a campaign's location order or a bundle. Takes effect for every batch that begins after it
    /// returns: a place that was made up before is outdated.
    async fn put_assortment(
        &self,
        put: PutAssortment,
    ) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error>;

    /// Sets a switch on a pool and records who did it and why. Idempotent. When it returns, it holds exactly.
    async fn switch_pool(&self, switch: SwitchPool) -> Result<Result<PoolRow, Refusal>, Error>;

    /// Makes a key and records who did it.
    async fn create_key(&self, create: CreateKey) -> Result<Result<KeyRow, KeyRefusal>, Error>;

    /// Makes a key if no key of the role admin is live; whether it was made.
    async fn create_first_key(&self, create: CreateKey) -> Result<bool, Error>;

    /// Revokes a key and records who did it. Idempotent. The last live key of the role admin stays.
    async fn revoke_key(&self, revoke: RevokeKey) -> Result<Result<KeyRow, KeyRefusal>, Error>;

    /// A key, live or not.
    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, Error>;

    /// Keys in order of their ids, live or not.
    async fn keys(&self, page: Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error>;

    /// Every key that is live now: at most [`LIVE_KEYS_MAX`](crate::LIVE_KEYS_MAX).
    async fn live_keys(&self) -> Result<Vec<KeyRow>, Error>;

    /// What operators did, the newest first.
    async fn acts(&self, filter: ActFilter, page: Page<ActId>) -> Result<(Vec<ActRow>, bool), Error>;

    /// A request for a second person.
    async fn approval(&self, key: ApprovalKey) -> Result<Option<Arc<Approval>>, Error>;

    /// Requests for a second person, in order of their keys.
    async fn approvals(
        &self,
        filter: ApprovalFilter,
        page: Page<ApprovalKey>,
    ) -> Result<(Vec<Arc<Approval>>, bool), Error>;

    /// What keys that orders carry are hashed with: random, made once with the authority, never changed.
    async fn limit_salt(&self) -> Result<[u8; 32], Error>;

    /// Which authority this is, and how far its ledger has come.
    async fn authority(&self) -> Result<Authority, Error>;

    /// Begins a new incarnation, closes the epoch of every cache and opens the case that stops all sales, in one
    /// transaction. When it returns, nothing is placed until the case is resolved.
    async fn begin_incarnation(&self, begin: NewIncarnation) -> Result<(), Error>;

    /// Cases in order of their ids.
    async fn cases(&self, filter: CaseFilter, page: Page<CaseId>) -> Result<(Vec<Case>, bool), Error>;

    /// Opens a case of something that goes wrong outside of any batch; one that is known stays as it is.
    async fn open_case(&self, case: Case) -> Result<(), Error>;

    /// Decides on a case and records who did it and why. Idempotent.
    async fn resolve_case(&self, resolve: ResolveCase) -> Result<Result<Case, Refusal>, Error>;

    /// What changed since a version of the catalog, oldest first; nothing if none is named: then only which
    /// version it has now. Every write of a campaign or a pool, but not of its balances, and every turn of an
    /// epoch gives the row the next version in its own transaction. A small read where nothing changed: every node asks several times
    /// a second.
    async fn catalog(&self, since: Option<u64>) -> Result<CatalogChanges, Error>;

    /// A campaign with its totals.
    async fn campaign(&self, id: CampaignId) -> Result<Option<CampaignTotals>, Error>;

    /// Campaigns in order of their ids.
    async fn campaigns(
        &self,
        scope: Scope,
        page: Page<CampaignId>,
    ) -> Result<(Vec<CampaignTotals>, bool), Error>;

    /// Closed campaigns whose unsold stock goes to a pool, with that pool, in order of their ids, or one of them.
    /// Left out are those that give nothing now: frozen ones, those in whose queues somebody waits who was let in
    /// before, and those of which a cache has an epoch that is not closed.
    async fn closed_into(
        &self,
        campaign: Option<CampaignId>,
        page: Page<CampaignId>,
    ) -> Result<Vec<(CampaignId, PoolId)>, Error>;

    /// Makes the store ready for load: connections are open, and statements known to them. How many connections.
    async fn warm(&self) -> Result<usize, Error>;

    /// A pool with its buckets.
    async fn pool(&self, id: PoolId) -> Result<Option<PoolRow>, Error>;

    /// Pools in order of their ids.
    async fn pools(&self, filter: PoolFilter, page: Page<PoolId>) -> Result<(Vec<PoolRow>, bool), Error>;

    /// An order.
    async fn order(&self, id: OrderId) -> Result<Option<Arc<Order>>, Error>;

    /// The order of a key.
    async fn order_by_key(&self, key: OrderKey) -> Result<Option<Arc<Order>>, Error>;

    /// The keys of all orders, in order.
    async fn order_keys(&self, page: Page<OrderKey>) -> Result<(Vec<OrderKey>, bool), Error>;

    /// Orders in order of their ids.
    async fn orders(
        &self,
        filter: OrderFilter,
        page: Page<OrderId>,
    ) -> Result<(Vec<Arc<Order>>, bool), Error>;

    /// Ledger entries in order of (bucket, sequence).
    async fn ledger(
        &self,
        filter: LedgerFilter,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<Entry>, bool), Error>;

    /// Where the ledger entry stands that carries this version of an order; none if it has none: an order
    /// that was refused at once moved no stock.
    async fn order_position(&self, order: OrderId, version: u32) -> Result<Option<LedgerPosition>, Error>;

    /// Buckets of these pools whose ledgers are ahead of them, ascending: the first
    /// [`LEDGERS_AHEAD_MAX`](crate::LEDGERS_AHEAD_MAX).
    async fn ledgers_ahead(&self, pools: Vec<PoolId>) -> Result<Vec<LedgerAhead>, Error>;

    /// What became of a campaign's stock, in one view; none if there is no such campaign.
    async fn settlement(&self, campaign: CampaignId) -> Result<Option<Settlement>, Error>;

    /// Counts the orders that have an end, by how far it is from now; it stops counting at `most`.
    async fn open_ends(&self, now: Timestamp, most: u64) -> Result<OpenEnds, Error>;

    /// Orders whose time is over, the longest overdue first, after (due, id) of the page before.
    async fn due(&self, now: Timestamp, page: Page<(Timestamp, OrderId)>) -> Result<Vec<DueOrder>, Error>;

    /// Orders that wait in a bucket's queue, as they were taken in, after the place of the page before. What
    /// waits is told by the orders' state alone.
    async fn queued(&self, bucket: BucketKey, page: Page<QueuePlace>) -> Result<Vec<QueuePlace>, Error>;

    /// Buckets in whose queue somebody waits, ascending.
    async fn queues(&self, page: Page<BucketKey>) -> Result<Vec<BucketKey>, Error>;

    /// Caches of buckets that ever had an epoch, in order of their buckets.
    async fn cache_buckets(&self, page: Page<BucketKey>) -> Result<(Vec<CacheBucket>, bool), Error>;

    /// The cache of a bucket; none if it never had an epoch.
    async fn cache_bucket(&self, bucket: BucketKey) -> Result<Option<CacheBucket>, Error>;

    /// What a bucket's entries after a position credit its cache with, of so many entries at most.
    async fn credits(&self, bucket: BucketKey, after: u64, entries_max: u32) -> Result<Credits, Error>;

    /// The ledger entry of a landing; none if it has not landed.
    async fn landed(&self, key: LandingKey) -> Result<Option<Entry>, Error>;

    /// Takes or renews a lease; whether the holder has it now.
    async fn take_lease(&self, lease: Lease) -> Result<bool, Error>;

    /// Ends every lease of a holder, so that others need not wait for its end.
    async fn give_up_leases(&self, holder: u128) -> Result<(), Error>;

    /// Reads every row in one consistent view and checks the invariants.
    async fn audit(&self) -> Result<Report, Error>;

    /// The authority's clock, for display and for the timers that are only triggers.
    fn now(&self) -> Timestamp;

    /// Whether the store can still write, without asking it.
    fn health(&self) -> Result<(), Error>;

    /// Why nothing can be asked now, though that may heal by itself; without asking.
    fn outage(&self) -> Option<Error>;

    /// Whether other nodes may write to the same authority: then a node has not seen every order that there is.
    fn is_shared(&self) -> bool;

    /// What it measures.
    fn metrics(&self) -> &Arc<StoreMetrics>;
}
