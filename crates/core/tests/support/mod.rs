//! A tiny authority in memory: it loads the rows that a batch names, lets the core decide, and writes
//! the changes under the conditions that a database would check.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod build;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::campaign::{Campaign, Policy, Switches};
use holdfast_core::case::Case;
use holdfast_core::command::{Adjust, Command, How, OpenPool, Outcome, Transfer};
use holdfast_core::decide::decide;
use holdfast_core::id::*;
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Ceilings;
use holdfast_core::order::{Order, State, Usage};
use holdfast_core::reconcile::Discrepancy;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::{Changes, LockSet, Needs, PaymentClaim, PaymentRow, Snapshot, UsageKey};
use holdfast_core::stock::{Bucket, BucketKey, Path, Pool, Routing};
use holdfast_core::time::Timestamp;

use build::{campaign_id, location, signed, sku};

/// When every test begins.
pub(crate) const START: Timestamp = Timestamp(1_700_000_000_000_000);

/// All rows of an authority, and its clock.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Authority {
    pub(crate) clock: Timestamp,
    pub(crate) campaign: Campaign,
    pub(crate) pools: BTreeMap<PoolId, Pool>,
    pub(crate) buckets: BTreeMap<BucketKey, Bucket>,
    pub(crate) entries: BTreeMap<BucketKey, Vec<Entry>>,
    pub(crate) orders: BTreeMap<OrderId, Arc<Order>>,
    pub(crate) usage: BTreeMap<UsageKey, Usage>,
    pub(crate) payments: Vec<PaymentRow>,
    pub(crate) claims: BTreeMap<(Provider, PaymentId), OrderId>,
    pub(crate) adjustments: BTreeMap<AdjustmentId, Adjust>,
    pub(crate) cases: BTreeMap<CaseId, Case>,
    pub(crate) transfers: BTreeMap<TransferId, Transfer>,
    pub(crate) caches: BTreeMap<BucketKey, CacheBucket>,
    pub(crate) discrepancies: BTreeMap<DiscrepancyId, Arc<Discrepancy>>,
}

impl Authority {
    /// An authority with one open campaign and no pools.
    pub(crate) fn new(policy: Policy) -> Self {
        let ceilings = Ceilings::default().after(None, &policy);
        Self {
            clock: START,
            campaign: Campaign {
                id: campaign_id(),
                name: "a sale".to_owned(),
                starts_at: None,
                ends_at: None,
                policy,
                switches: Switches { opened: true, ..Switches::default() },
                ceilings,
                assortment: Default::default(),
                unsold_to: None,
                warm_asked_at: None,
                created_at: START,
                updated_at: START,
            },
            pools: BTreeMap::new(),
            buckets: BTreeMap::new(),
            entries: BTreeMap::new(),
            orders: BTreeMap::new(),
            usage: BTreeMap::new(),
            payments: Vec::new(),
            claims: BTreeMap::new(),
            adjustments: BTreeMap::new(),
            cases: BTreeMap::new(),
            transfers: BTreeMap::new(),
            caches: BTreeMap::new(),
            discrepancies: BTreeMap::new(),
        }
    }

    /// Opens the pool of a SKU.
    pub(crate) fn open_pool(&mut self, name: &str, supply: u64, buckets: u32) -> PoolId {
        self.open_pool_at(name, name, location().as_str(), supply, buckets)
    }

    /// Opens a pool of a SKU at a location.
    pub(crate) fn open_pool_at(
        &mut self,
        name: &str,
        of: &str,
        at: &str,
        supply: u64,
        buckets: u32,
    ) -> PoolId {
        let open = OpenPool {
            id: build::pool_id(name),
            campaign: campaign_id(),
            sku: sku(of),
            location: Location::new(at).unwrap(),
            supply,
            buckets,
            path: Path::Batched,
            routing: Routing::OrderHash,
            signed: signed(),
        };
        let outcome = self.send(&Command::OpenPool(open));
        assert!(matches!(outcome, Outcome::Pool { how: How::Created, .. }), "{outcome:?}");
        build::pool_id(name)
    }

    /// Locks everything.
    pub(crate) fn all_pools(&self) -> LockSet {
        LockSet { buckets: Default::default(), pools: self.pools.keys().copied().collect() }
    }

    /// One command under the lock of everything; every invariant must hold afterwards.
    pub(crate) fn send(&mut self, command: &Command) -> Outcome {
        let locks = self.all_pools();
        let mut outcomes = self.commit(&locks, std::slice::from_ref(command));
        let report = self.audit();
        assert!(report.is_clean(), "after {command:?}: {:#?}", report.breaches);
        outcomes.pop().unwrap()
    }

    /// One batch as a store commits it.
    pub(crate) fn commit(&mut self, locks: &LockSet, commands: &[Command]) -> Vec<Outcome> {
        let snapshot = self.snapshot(locks, commands);
        let locked: Vec<_> = snapshot.buckets.keys().copied().collect();
        let decision = decide(self.clock, snapshot, commands);
        assert_eq!(decision.outcomes.len(), commands.len(), "one outcome a command");
        self.write(&locked, decision.changes);
        decision.outcomes
    }

    fn snapshot(&self, locks: &LockSet, commands: &[Command]) -> Snapshot {
        let needs = Needs::of(commands);
        let mut snapshot = Snapshot::default();
        snapshot.campaigns.insert(self.campaign.id.clone(), Arc::new(self.campaign.clone()));
        let locked = |key: &BucketKey| locks.buckets.contains(key) || locks.pools.contains(&key.pool);
        snapshot.buckets =
            self.buckets.iter().filter(|(key, _)| locked(key)).map(|(k, b)| (*k, *b)).collect();
        let by_key = self.orders.values().filter(|order| needs.order_keys.contains(&order.key));
        for order in by_key.chain(needs.orders.iter().filter_map(|id| self.orders.get(id))) {
            snapshot.order_keys.insert(order.key.clone(), order.id);
            snapshot.orders.insert(order.id, Arc::clone(order));
        }
        let of_orders = snapshot.orders.values().flat_map(|order| order.pools());
        let of_locks = snapshot.buckets.keys().map(|key| key.pool);
        let named: Vec<_> = of_orders.chain(of_locks).chain(needs.pools.iter().copied()).collect();
        snapshot.pools =
            named.iter().filter_map(|id| self.pools.get(id)).map(|pool| (pool.id, pool.clone())).collect();
        for pool in self.pools.values() {
            if needs.pool_addresses.contains(&(&pool.campaign, &pool.sku, &pool.location)) {
                let address = (pool.campaign.clone(), pool.sku.clone(), pool.location.clone());
                snapshot.pool_addresses.insert(address, pool.id);
                snapshot.pools.insert(pool.id, pool.clone());
            }
        }
        let wanted = snapshot.usage_of(commands).into_iter();
        snapshot.usage =
            wanted.filter_map(|key| self.usage.get_key_value(&key)).map(|(k, u)| (k.clone(), *u)).collect();
        for row in &self.payments {
            if needs.events.contains(&(&row.provider, &row.event_id)) {
                snapshot.events.insert((row.provider.clone(), row.event_id.clone()), row.order);
            }
        }
        // Those that nobody names change nothing.
        snapshot.claims.clone_from(&self.claims);
        for pool in &needs.queues {
            let waits = |order: &&Arc<Order>| {
                order.state == State::Queued && order.home.is_some_and(|home| home.pool == *pool)
            };
            let length = self.orders.values().filter(waits).count();
            snapshot.queue_lengths.insert(*pool, u64::try_from(length).unwrap());
        }
        let known = |id: &&AdjustmentId| self.adjustments.get(*id).map(|row| ((*id).clone(), row.clone()));
        snapshot.adjustments = needs.adjustments.iter().filter_map(known).collect();
        let known = |id: &&TransferId| self.transfers.get(*id).map(|row| ((*id).clone(), row.clone()));
        snapshot.transfers = needs.transfers.iter().filter_map(known).collect();
        let known = |key: &BucketKey| self.caches.get(key).map(|row| (*key, row.clone()));
        snapshot.caches = needs.caches.iter().filter_map(known).collect();
        let settling = self.entries.values().flatten().filter(|entry| entry.settled > 0);
        let known = settling
            .filter_map(|entry| Some((LandingKey::of_source(entry.bucket, &entry.source)?, entry.order_id)));
        snapshot.landed = known.filter(|(key, _)| needs.landings.contains(key)).collect();
        let known = |id: &DiscrepancyId| self.discrepancies.get(id).map(|row| (*id, Arc::clone(row)));
        snapshot.discrepancies = needs.discrepancies.iter().filter_map(known).collect();
        snapshot.cases.clone_from(&self.cases);
        let ends = self.entries.iter().filter_map(|(key, entries)| Some((*key, entries.last()?.seq)));
        snapshot.ledger_ends = ends.filter(|_| !needs.discrepancies.is_empty()).collect();
        snapshot
    }

    fn write(&mut self, locked: &[BucketKey], changes: Changes) {
        for pool in changes.pools {
            assert!(self.pools.insert(pool.id, pool).is_none(), "a pool was opened twice");
        }
        for pool in changes.changed_pools {
            assert!(self.pools.insert(pool.id, pool).is_some(), "a pool that changes is there");
        }
        for (key, weight) in changes.weights {
            assert!(locked.contains(&key), "only locked buckets are written");
            self.buckets.get_mut(&key).unwrap().weight = weight;
        }
        for entry in changes.entries {
            let ledger = self.entries.entry(entry.bucket).or_default();
            let counted = self.buckets.get(&entry.bucket).map_or(0, |bucket| bucket.ledger_seq);
            let last = ledger.last().map_or(0, |e| e.seq).max(counted);
            assert_eq!(entry.seq, last + 1, "a sequence has no gap and no second write");
            ledger.push(entry);
        }
        let mut added = Vec::new();
        for change in changes.buckets {
            if change.base_seq.is_none() {
                added.push(change.bucket.key);
            }
            let key = change.bucket.key;
            let known = self.buckets.get(&key).map(|bucket| bucket.ledger_seq);
            assert_eq!(known, change.base_seq, "the bucket row is as it was read");
            assert!(known.is_none() || locked.contains(&key), "only locked buckets are written");
            assert!(self.pools.contains_key(&key.pool), "a bucket has a pool");
            let weight = known.and(self.buckets.get(&key)).map_or(change.bucket.weight, |b| b.weight);
            assert_eq!(change.bucket.weight, weight, "a weight is written as such");
            self.buckets.insert(key, change.bucket);
        }
        for change in changes.orders {
            let order = change.order;
            let known = self.orders.get(&order.id).map(|known| known.version);
            assert_eq!(known, change.base_version, "the order row is as it was read");
            let same_key = self.orders.values().find(|known| known.key == order.key);
            assert!(same_key.is_none_or(|known| known.id == order.id), "one order a key");
            let taken_in = order.state == State::Queued && change.base_version.is_none();
            let is_locked = order.home.is_none_or(|home| locked.contains(&home));
            assert!(is_locked || taken_in, "home is the order's lock");
            self.orders.insert(order.id, order);
        }
        self.usage.extend(changes.usage);
        for case in changes.cases {
            self.cases.entry(case.id).or_insert(case);
        }
        self.write_payments(changes.payments, changes.claims);
        self.write_repaired(changes.repaired, changes.resolved_cases);
        for row in changes.adjustments {
            assert!(
                self.adjustments.insert(row.adjustment_id.clone(), row).is_none(),
                "one row an adjustment"
            );
        }
        for row in changes.transfers {
            assert!(self.transfers.insert(row.transfer_id.clone(), row).is_none(), "one row a transfer");
        }
        for change in changes.caches {
            // A bucket that the batch has added was there to be locked by nobody.
            let is_locked = locked.contains(&change.row.key) || added.contains(&change.row.key);
            assert!(is_locked, "a cache row is written under its bucket's lock");
            let before = self.caches.insert(change.row.key, change.row);
            assert_eq!(before, change.base, "the cache row is as it was read");
        }
    }

    fn write_repaired(&mut self, repaired: Vec<Arc<Discrepancy>>, cases: Vec<Arc<Case>>) {
        for row in repaired {
            assert!(self.discrepancies.insert(row.id, row).is_some(), "what is mended was found");
        }
        for case in cases {
            assert!(self.cases.insert(case.id, Case::clone(&case)).is_some(), "what is decided was open");
        }
    }

    fn write_payments(&mut self, payments: Vec<PaymentRow>, claims: BTreeSet<PaymentClaim>) {
        for row in payments {
            let same =
                |known: &PaymentRow| (&known.provider, &known.event_id) == (&row.provider, &row.event_id);
            assert!(!self.payments.iter().any(same), "one row an event");
            self.payments.push(row);
        }
        for claim in claims {
            let payment = (claim.provider, claim.payment_id);
            assert!(self.claims.insert(payment, claim.order).is_none(), "one order a payment");
        }
    }

    /// Reads every row as `verify` does.
    pub(crate) fn audit(&self) -> Report {
        let mut auditor = Auditor::new();
        auditor.campaign(&self.campaign);
        self.pools.values().for_each(|pool| auditor.pool(pool));
        self.caches.values().for_each(|row| auditor.cache(row));
        for bucket in self.buckets.values() {
            auditor.bucket(bucket);
            self.entries.get(&bucket.key).into_iter().flatten().for_each(|entry| auditor.entry(entry));
        }
        for order in self.orders.values() {
            auditor.order(order, &self.entries_of(order.id));
        }
        self.usage.iter().for_each(|(key, usage)| auditor.usage(key, *usage));
        self.payments.iter().for_each(|row| auditor.payment(row));
        for ((provider, payment_id), order) in &self.claims {
            let (provider, payment_id) = (provider.clone(), payment_id.clone());
            auditor.claim(&PaymentClaim { provider, payment_id, order: *order });
        }
        auditor.finish()
    }

    /// The ledger entries of one order, by (bucket, sequence).
    pub(crate) fn entries_of(&self, order: OrderId) -> Vec<Entry> {
        self.entries.values().flatten().filter(|e| e.order_id == Some(order)).cloned().collect()
    }

    /// Available, held and sold of a pool.
    pub(crate) fn totals(&self, pool: PoolId) -> (u64, u64, u64) {
        self.buckets
            .values()
            .filter(|bucket| bucket.key.pool == pool)
            .fold((0, 0, 0), |sum, b| (sum.0 + b.available, sum.1 + b.held, sum.2 + b.sold))
    }

    /// The one order with this id.
    pub(crate) fn order(&self, id: OrderId) -> &Order {
        self.orders.get(&id).unwrap()
    }

    /// How many entries there are in all.
    pub(crate) fn ledger_len(&self) -> usize {
        self.entries.values().map(Vec::len).sum()
    }
}

/// An outcome in words: what happened, then the disposition of a notice or the code of a refusal.
pub(crate) fn answer(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Order { how, disposition, .. } => {
            let how = match how {
                How::Created => "created",
                How::Changed => "changed",
                How::Repeated => "repeated",
            };
            disposition.map_or(how.to_owned(), |d| format!("{how} {}", d.as_str()))
        }
        Outcome::Refused { refusal, recorded, repeated, .. } => {
            let recorded = if *recorded { " recorded" } else { "" };
            let repeated = if *repeated { " repeated" } else { "" };
            format!("refused {}{recorded}{repeated}", code(refusal))
        }
        Outcome::Pool { how: How::Created, .. } => "pool opened".to_owned(),
        Outcome::Pool { how: How::Changed, .. } => "pool changed".to_owned(),
        Outcome::Pool { how: How::Repeated, .. } => "pool as it was".to_owned(),
        Outcome::Adjusted { repeated, .. } => {
            if *repeated { "adjusted before" } else { "adjusted" }.to_owned()
        }
        Outcome::Transferred { repeated } => {
            if *repeated { "transferred before" } else { "transferred" }.to_owned()
        }
        Outcome::Imported { repeated, .. } => {
            if *repeated { "imported before" } else { "imported" }.to_owned()
        }
        Outcome::Repaired { repeated, .. } => if *repeated { "mended before" } else { "mended" }.to_owned(),
        Outcome::Proposed { repeated, .. } => if *repeated { "asked before" } else { "asked" }.to_owned(),
        Outcome::Epoch { row, how } => {
            let how = match how {
                How::Created | How::Changed => "",
                How::Repeated => " as it was",
            };
            format!("epoch {} {}{how}", row.epoch, row.state.as_str())
        }
        Outcome::Miss(_) => "miss".to_owned(),
        Outcome::Elsewhere(_) => "elsewhere".to_owned(),
        Outcome::Outdated => "outdated".to_owned(),
        Outcome::NotDue(_) => "not due".to_owned(),
    }
}

/// The code of a refusal as the contract spells it.
pub(crate) fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::OrderMismatch(_) => "order_mismatch",
        Refusal::KeyMismatch(_) => "key_mismatch",
        Refusal::UnknownCampaign | Refusal::UnknownOrder | Refusal::UnknownPool | Refusal::UnknownCase => {
            "not_found"
        }
        Refusal::UnknownApproval => "not_found",
        Refusal::SamePerson => "forbidden",
        Refusal::UnknownSku { .. } => "unknown_sku",
        Refusal::InvalidValue { .. } => "invalid_value",
        Refusal::CampaignClosed => "campaign_closed",
        Refusal::Halted | Refusal::Frozen | Refusal::LineFrozen { .. } => "frozen",
        Refusal::CampaignPaused => "campaign_paused",
        Refusal::CampaignNotOpen => "campaign_not_open",
        Refusal::AccountOpenHolds { .. } => "account_open_holds",
        Refusal::AccountLimit(_) => "account_limit",
        Refusal::QueueFull { .. } => "queue_full",
        Refusal::KeyLimit(..) | Refusal::KeyOpenHolds(..) => "key_limit",
        Refusal::SoldOut(_) => "sold_out",
        Refusal::QueueTimeout => "queue_timeout",
        Refusal::AdmissionLost => "admission_lost",
        Refusal::Cancelled => "cancelled",
        Refusal::AlreadySold => "already_sold",
        Refusal::AlreadyReleased => "already_released",
        Refusal::AlreadyFailed => "already_failed",
        Refusal::AlreadyRefunded => "already_refunded",
        Refusal::NotHeld => "not_held",
        Refusal::NotSold => "not_sold",
        Refusal::HoldExpired => "hold_expired",
        Refusal::InReview => "in_review",
        Refusal::RefundExceedsSold(_) => "refund_exceeds_sold",
        Refusal::StockInUse(_) => "stock_in_use",
        Refusal::Rows(_) => "rows",
        Refusal::Conflict(_) => "conflict",
    }
}
