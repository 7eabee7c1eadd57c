//! The rows that a batch names, loaded under lock, and the changes that a decision makes to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::approval::{Approval, ApprovalKey};
use crate::cache::{Accepted, CacheBucket, LandingKey};
use crate::campaign::Campaign;
use crate::case::Case;
use crate::command::{Adjust, Command, OrderAction, Place, Transfer};
use crate::id::{
    Account, AdjustmentId, CampaignId, CaseId, DiscrepancyId, EventId, ImportId, Location, OrderId, OrderKey,
    PaymentId, PoolId, Provider, Sku, TransferId,
};
use crate::import::{Import, ImportRow, Imported, Since};
use crate::ledger::Entry;
use crate::limit::{LimitKeys, Limited, limited_of};
use crate::order::{Order, PaymentOutcome, Usage};
use crate::reconcile::Discrepancy;
use crate::stock::{Bucket, BucketKey, Pool};
use crate::time::Timestamp;

/// Which buckets a batch locks. The lock set of a command is its home and every bucket whose balance
/// may change; nothing takes a second round of locks in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockSet {
    /// Single buckets.
    pub buckets: BTreeSet<BucketKey>,
    /// Pools with all their buckets: only under such a lock may *sold out* be said.
    pub pools: BTreeSet<PoolId>,
}

impl LockSet {
    /// One bucket.
    pub fn bucket(key: BucketKey) -> Self {
        Self { buckets: BTreeSet::from([key]), pools: BTreeSet::new() }
    }

    /// One pool with all its buckets.
    pub fn pool(pool: PoolId) -> Self {
        Self { buckets: BTreeSet::new(), pools: BTreeSet::from([pool]) }
    }

    /// Adds what another set locks.
    pub fn extend(&mut self, other: &Self) {
        self.buckets.extend(other.buckets.iter().copied());
        self.pools.extend(other.pools.iter().copied());
    }
}

/// A usage row: kept only for what its campaign limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// The campaign.
    pub campaign: CampaignId,
    /// Whose usage.
    pub limited: Limited,
}

/// Where a provider's event was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRow {
    /// The provider.
    pub provider: Provider,
    /// Its event.
    pub event_id: EventId,
    /// Its payment.
    pub payment_id: PaymentId,
    /// The order that keeps the evidence.
    pub order: OrderId,
    /// What the event said.
    pub outcome: PaymentOutcome,
}

/// Which order a payment is for: the first on which it succeeded. It pays no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PaymentClaim {
    /// The provider.
    pub provider: Provider,
    /// Its payment.
    pub payment_id: PaymentId,
    /// The order.
    pub order: OrderId,
}

/// The rows that a batch names.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Campaigns of the pools and orders.
    pub campaigns: BTreeMap<CampaignId, Arc<Campaign>>,
    /// Pools of the locked buckets, and those that lines name, read after the locks: a pool of which as many
    /// buckets are locked as its row says is *complete*, and only then may *sold out* be said.
    pub pools: BTreeMap<PoolId, Pool>,
    /// Which pool an address names, for opening.
    pub pool_addresses: BTreeMap<(CampaignId, Sku, Location), PoolId>,
    /// The locked buckets.
    pub buckets: BTreeMap<BucketKey, Bucket>,
    /// Orders.
    pub orders: BTreeMap<OrderId, Arc<Order>>,
    /// Orders by key.
    pub order_keys: BTreeMap<OrderKey, OrderId>,
    /// Usage of what is limited; absent = none.
    pub usage: BTreeMap<UsageKey, Usage>,
    /// Events known.
    pub events: BTreeMap<(Provider, EventId), OrderId>,
    /// Payments that succeeded, and which order each is for.
    pub claims: BTreeMap<(Provider, PaymentId), OrderId>,
    /// Adjustments known.
    pub adjustments: BTreeMap<AdjustmentId, Adjust>,
    /// How many orders wait in the queues that the batch takes orders into, by the pool of their intake.
    pub queue_lengths: BTreeMap<PoolId, u64>,
    /// Transfers known.
    pub transfers: BTreeMap<TransferId, Transfer>,
    /// Stock files known.
    pub imports: BTreeMap<ImportId, Imported>,
    /// Requests for a second person.
    pub approvals: BTreeMap<ApprovalKey, Arc<Approval>>,
    /// What happened to pools after the times of [`Snapshot::counts_of`].
    pub since: BTreeMap<(PoolId, Timestamp), Since>,
    /// The caches of buckets that commands land in, turn or empty, as the authority knows them.
    pub caches: BTreeMap<BucketKey, CacheBucket>,
    /// Landings that are in the ledger, with the orders that their entries tell of; none: it was set aside.
    pub landed: BTreeMap<LandingKey, Option<OrderId>>,
    /// Differences that are mended, and their cases.
    pub discrepancies: BTreeMap<DiscrepancyId, Arc<Discrepancy>>,
    /// Cases that are decided with them.
    pub cases: BTreeMap<CaseId, Case>,
    /// Where a difference is mended: the last number in the ledger of each locked bucket, whatever its row says.
    pub ledger_ends: BTreeMap<BucketKey, u64>,
    /// Whether an open case stops all sales: nothing is placed and nothing taken again until it is resolved.
    pub halted: bool,
}

impl Snapshot {
    /// The usage rows that a batch needs once its orders and campaigns are loaded, in order and each once:
    /// those of what it places, and of the orders that it may change.
    pub fn usage_of(&self, commands: &[Command]) -> Vec<UsageKey> {
        let mut keys = Vec::new();
        for command in commands {
            let place = match command {
                // What is queued is judged when it lands.
                Command::Place(place) if place.intake.is_none() => &**place,
                Command::Land(landing) => &landing.place,
                Command::Repair(repair) => {
                    keys.extend(repair.usage.clone());
                    continue;
                }
                Command::Place(_)
                | Command::Order(_)
                | Command::OpenPool(_)
                | Command::ChangePool(_)
                | Command::Adjust(_)
                | Command::Transfer(_)
                | Command::Sweep(_)
                | Command::MoveUnsold(_)
                | Command::Import(_)
                | Command::Decide(_)
                | Command::SetAside(_)
                | Command::TurnEpoch(_) => continue,
            };
            self.add_usage(&mut keys, &place.key.campaign, &place.account, &place.limit_keys);
        }
        for order in self.orders.values() {
            self.add_usage(&mut keys, &order.key.campaign, &order.account, &order.limit_keys);
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Of which pools, and since when, the ledger must be summed up for counts in stock files. Only of pools that are
    /// locked: without the lock more would come.
    pub fn counts_of(&self, commands: &[Command]) -> BTreeSet<(PoolId, Timestamp)> {
        let mut counts = BTreeSet::new();
        for command in commands {
            let Command::Import(import) = command else { continue };
            for row in &import.rows {
                let Some(count) = row.counted else { continue };
                let address = (import.campaign.clone(), row.sku.clone(), row.location.clone());
                let pool = self.pool_addresses.get(&address).copied();
                counts.extend(pool.filter(|pool| self.has_locked(*pool)).map(|pool| (pool, count.at)));
            }
        }
        counts
    }

    /// Whether a bucket of the pool is locked.
    pub fn has_locked(&self, pool: PoolId) -> bool {
        let from = BucketKey { pool, number: 0 };
        self.buckets.range(from..=BucketKey { pool, number: u32::MAX }).next().is_some()
    }

    fn add_usage(
        &self,
        keys: &mut Vec<UsageKey>,
        campaign: &CampaignId,
        account: &Account,
        limit_keys: &LimitKeys,
    ) {
        let Some(known) = self.campaigns.get(campaign) else { return };
        let limited = limited_of(&known.policy, account, limit_keys);
        keys.extend(limited.map(|(limited, _)| UsageKey { campaign: campaign.clone(), limited }));
    }
}

/// What a batch needs to read, worked out once for every store.
#[derive(Debug, Clone, Default)]
pub struct Needs<'a> {
    /// Orders looked up by key.
    pub order_keys: BTreeSet<&'a OrderKey>,
    /// Orders looked up by id.
    pub orders: BTreeSet<OrderId>,
    /// Pools that commands name.
    pub pools: BTreeSet<PoolId>,
    /// Pools looked up by address.
    pub pool_addresses: BTreeSet<(&'a CampaignId, &'a Sku, &'a Location)>,
    /// Those of them that an answer shows with their buckets, locked or not.
    pub opened: BTreeSet<(&'a CampaignId, &'a Sku, &'a Location)>,
    /// Campaigns named by commands.
    pub campaigns: BTreeSet<&'a CampaignId>,
    /// Events.
    pub events: BTreeSet<(&'a Provider, &'a EventId)>,
    /// Payments.
    pub payments: BTreeSet<(&'a Provider, &'a PaymentId)>,
    /// Adjustments.
    pub adjustments: BTreeSet<&'a AdjustmentId>,
    /// Pools whose queued orders are counted.
    pub queues: BTreeSet<PoolId>,
    /// Transfers.
    pub transfers: BTreeSet<&'a TransferId>,
    /// Stock files.
    pub imports: BTreeSet<&'a ImportId>,
    /// Requests for a second person.
    pub approvals: BTreeSet<ApprovalKey>,
    /// Buckets whose cache rows are read.
    pub caches: BTreeSet<BucketKey>,
    /// Landings looked up in the ledger.
    pub landings: BTreeSet<LandingKey>,
    /// Differences that are mended. With them come their cases, and the ends of the ledgers of the locked buckets.
    pub discrepancies: BTreeSet<DiscrepancyId>,
}

impl<'a> Needs<'a> {
    /// What these commands need to read. Campaigns and pools of orders that are looked up by id come on
    /// top, and usage rows ([`Snapshot::usage_of`]): they are known only when the orders are read.
    pub fn of(commands: &'a [Command]) -> Self {
        let mut needs = Self::default();
        commands.iter().for_each(|command| needs.add(command));
        needs
    }

    fn add(&mut self, command: &'a Command) {
        let needs = self;
        match command {
            Command::Place(place) => {
                needs.add_place(place);
                if let Some(intake) = place.intake {
                    needs.queues.insert(intake.pool);
                }
            }
            Command::Order(command) => {
                needs.orders.insert(command.order);
                needs.approvals.extend(command.second.clone());
                if let OrderAction::Notice(notice) = &command.action {
                    needs.events.insert((&notice.provider, &notice.event_id));
                    needs.payments.insert((&notice.provider, &notice.payment_id));
                }
            }
            Command::OpenPool(open) => {
                needs.campaigns.insert(&open.campaign);
                needs.pool_addresses.insert((&open.campaign, &open.sku, &open.location));
                needs.opened.insert((&open.campaign, &open.sku, &open.location));
            }
            Command::ChangePool(change) => drop(needs.pools.insert(change.pool)),
            Command::Adjust(adjust) => {
                needs.pools.insert(adjust.pool);
                needs.adjustments.insert(&adjust.adjustment_id);
                needs.approvals.insert(ApprovalKey::of_adjustment(&adjust.adjustment_id));
            }
            Command::Transfer(transfer) => {
                needs.pools.extend([transfer.from.pool, transfer.to.pool]);
                needs.transfers.insert(&transfer.transfer_id);
                needs.approvals.insert(ApprovalKey::of_transfer(&transfer.transfer_id));
            }
            Command::Sweep(sweep) => drop(needs.pools.insert(sweep.pool)),
            Command::MoveUnsold(unsold) => {
                needs.pools.insert(unsold.to);
                needs.pools.extend(unsold.from.iter().map(|bucket| bucket.pool));
                needs.caches.extend(&unsold.from);
            }
            Command::Decide(decide) => {
                needs.approvals.insert(decide.key.clone());
                needs.add(&decide.work);
            }
            Command::Import(import) => {
                needs.campaigns.insert(&import.campaign);
                needs.imports.insert(&import.id);
                let address = |row| address_of(import, row);
                needs.pool_addresses.extend(import.rows.iter().map(address));
            }
            Command::Land(landing) => {
                needs.add_place(&landing.place);
                needs.add_accepted(&landing.accepted);
            }
            Command::SetAside(aside) => needs.add_accepted(&aside.accepted),
            Command::TurnEpoch(turn) => {
                needs.pools.insert(turn.bucket.pool);
                needs.caches.insert(turn.bucket);
            }
            Command::Repair(repair) => {
                needs.discrepancies.insert(repair.id);
                needs.pools.extend(repair.pool);
                needs.orders.extend(repair.order);
                needs.campaigns.extend(repair.usage.as_ref().map(|key| &key.campaign));
                if repair.decides.is_some() {
                    needs.approvals.insert(ApprovalKey::of_repair(repair.id));
                }
            }
        }
    }

    fn add_place(&mut self, place: &'a Place) {
        self.order_keys.insert(&place.key);
        self.campaigns.insert(&place.key.campaign);
        self.pools.extend(place.lines.iter().map(|line| line.pool));
        let made_of = place.lines.iter().filter_map(|line| line.made_of.as_ref());
        self.pools.extend(made_of.flat_map(|made_of| made_of.pools()));
    }

    fn add_accepted(&mut self, accepted: &Accepted) {
        self.pools.insert(accepted.bucket.pool);
        self.caches.insert(accepted.bucket);
        self.landings.insert(accepted.key());
    }
}

/// The address of the pool that a row of a stock file names.
fn address_of<'a>(import: &'a Import, row: &'a ImportRow) -> (&'a CampaignId, &'a Sku, &'a Location) {
    (&import.campaign, &row.sku, &row.location)
}

/// An order row to write.
#[derive(Debug, Clone)]
pub struct OrderChange {
    /// The order after the batch.
    pub order: Arc<Order>,
    /// The version that the row must have; none: it must not exist.
    pub base_version: Option<u32>,
}

/// A bucket row to write.
#[derive(Debug, Clone)]
pub struct BucketChange {
    /// The bucket after the batch.
    pub bucket: Bucket,
    /// The last entry that the row must have; none: it must not exist.
    pub base_seq: Option<u64>,
}

/// The row of a bucket's cache to write.
#[derive(Debug, Clone)]
pub struct CacheChange {
    /// The row after the batch.
    pub row: CacheBucket,
    /// As it was read; none: it must not exist.
    pub base: Option<CacheBucket>,
}

impl CacheChange {
    /// Whether the epoch was turned, which nodes keep in their catalogs. Otherwise only entries landed.
    pub fn is_turned(&self) -> bool {
        self.base.as_ref().is_none_or(|base| (base.epoch, base.state) != (self.row.epoch, self.row.state))
    }
}

/// What a decision writes, all in one transaction.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Order rows.
    pub orders: Vec<OrderChange>,
    /// Ledger entries, consecutive in each bucket.
    pub entries: Vec<Entry>,
    /// Bucket rows, ascending.
    pub buckets: Vec<BucketChange>,
    /// New pools.
    pub pools: Vec<Pool>,
    /// Pools whose settings or number of buckets changed.
    pub changed_pools: Vec<Pool>,
    /// Weights of buckets that there were before.
    pub weights: BTreeMap<BucketKey, u32>,
    /// Usage rows after the batch.
    pub usage: Vec<(UsageKey, Usage)>,
    /// New payment rows.
    pub payments: Vec<PaymentRow>,
    /// Payments that succeeded for the first time.
    pub claims: BTreeSet<PaymentClaim>,
    /// New adjustments.
    pub adjustments: Vec<Adjust>,
    /// Cases to open; one that is known stays as it is.
    pub cases: Vec<Case>,
    /// New transfers.
    pub transfers: Vec<Transfer>,
    /// New stock files.
    pub imports: Vec<Imported>,
    /// New requests for a second person.
    pub approvals: Vec<Arc<Approval>>,
    /// Requests that were decided.
    pub decided_approvals: Vec<Arc<Approval>>,
    /// Caches whose epoch was turned or in which entries landed, ascending.
    pub caches: Vec<CacheChange>,
    /// Differences that were mended.
    pub repaired: Vec<Arc<Discrepancy>>,
    /// Cases that were decided with them.
    pub resolved_cases: Vec<Arc<Case>>,
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self {
            orders,
            entries,
            buckets,
            usage,
            payments,
            claims,
            adjustments,
            cases,
            transfers,
            imports,
            approvals,
            decided_approvals,
            caches,
            repaired,
            resolved_cases,
            ..
        } = self;
        orders.is_empty()
            && entries.is_empty()
            && buckets.is_empty()
            && !self.changes_catalog()
            && usage.is_empty()
            && payments.is_empty()
            && claims.is_empty()
            && adjustments.is_empty()
            && cases.is_empty()
            && transfers.is_empty()
            && imports.is_empty()
            && approvals.is_empty()
            && decided_approvals.is_empty()
            && caches.is_empty()
            && repaired.is_empty()
            && resolved_cases.is_empty()
    }

    /// Whether something changes that nodes keep in their catalogs: pools and how orders come to them, epochs.
    pub fn changes_catalog(&self) -> bool {
        let is_turned = self.caches.iter().any(CacheChange::is_turned);
        is_turned || !(self.pools.is_empty() && self.changed_pools.is_empty() && self.weights.is_empty())
    }
}
