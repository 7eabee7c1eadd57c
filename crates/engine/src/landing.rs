//! Landing: queued orders go through the lanes in the order in which they were taken in, one consumer a
//! bucket. What is next is told by the orders' state and never by a cursor, so whatever breaks off between
//! two steps is found again. A lease keeps the consumers of several nodes apart; one who lost it and does
//! not know it yet does no harm, because an order's state lets it land once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use holdfast_core::command::{Command, OrderAction, OrderCommand, Outcome, Signed};
use holdfast_core::id::{Location, OrderId, OrderKey, Sku};
use holdfast_core::order::{Line, State};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_store::{Lease, Page};
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::error::Error;
use crate::keys::stable_hash;
use crate::lanes::{Class, LaneKey};

/// What one pass over a queue did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LandingPass {
    /// Orders that left the queue: held, sold or failed.
    pub landed: usize,
    /// Orders that wait for a freeze to end.
    pub waiting: usize,
    /// Orders that could not be landed and are set aside.
    pub failed: usize,
}

impl LandingPass {
    fn add(&mut self, other: Self) {
        self.landed = self.landed.saturating_add(other.landed);
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// What the node remembers of the queues that it consumes.
#[derive(Default)]
pub(crate) struct Consumers {
    busy: Mutex<BTreeSet<BucketKey>>,
    /// Leases of this node, and when each is renewed.
    leases: Mutex<HashMap<String, Instant>>,
    /// Buckets whose stock was frozen in their last pass.
    resting: Mutex<BTreeSet<BucketKey>>,
}

impl Consumers {
    fn busy(&self) -> MutexGuard<'_, BTreeSet<BucketKey>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resting(&self) -> MutexGuard<'_, BTreeSet<BucketKey>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a bucket free again for the next consumer, also when this one panics.
struct Busy {
    engine: Engine,
    bucket: BucketKey,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.engine.shared.consumers.busy().remove(&self.bucket);
        // Somebody may have come after the last look.
        self.engine.shared.queues.wake();
    }
}

impl Engine {
    /// The worker: lands what this node takes in at once, and what others take in within one poll.
    pub(crate) async fn run_landing(&self) {
        let mut poll_at = monotonic();
        while !self.is_draining() {
            let now = monotonic();
            let mut buckets = self.shared.queues.take_woken(|bucket| self.is_busy(bucket));
            if now >= poll_at {
                buckets.extend(self.waiting_buckets().await);
                poll_at = monotonic().checked_add(self.shared.config.queue_poll).unwrap_or(now);
            }
            for bucket in buckets {
                self.consume(bucket);
            }
            self.shared.queues.woken_within(poll_at.saturating_duration_since(monotonic())).await;
        }
    }

    fn is_busy(&self, bucket: &BucketKey) -> bool {
        let busy = self.shared.consumers.busy();
        busy.contains(bucket) || busy.len() >= self.shared.config.landing_buckets_max
    }

    /// Buckets in whose queue somebody waits, by the authority.
    async fn waiting_buckets(&self) -> Vec<BucketKey> {
        let page = Page { after: None, limit: self.shared.config.landing_buckets_max };
        let mut found: Vec<BucketKey> = Vec::new();
        loop {
            let page = Page { after: found.last().copied(), ..page };
            match self.store().queues(page.clone()).await {
                Ok(buckets) => {
                    let full = buckets.len() >= page.limit;
                    found.extend(buckets);
                    if !full {
                        return found;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the queues could not be read");
                    return found;
                }
            }
        }
    }

    /// Starts the consumer of a bucket, unless it is at work.
    fn consume(&self, bucket: BucketKey) {
        if self.is_busy(&bucket) || !self.shared.consumers.busy().insert(bucket) {
            return;
        }
        let busy = Busy { engine: self.clone(), bucket };
        tokio::spawn(async move {
            let pass = busy.engine.land_bucket(busy.bucket).await;
            if pass.failed > 0 {
                tracing::warn!(failed = pass.failed, "queued orders could not be landed and are set aside");
            }
        });
    }

    /// Lands what waits in every queue, one pass.
    pub async fn land_queued(&self) -> LandingPass {
        let mut pass = LandingPass::default();
        for bucket in self.waiting_buckets().await {
            pass.add(self.land_bucket(bucket).await);
        }
        pass
    }

    /// One pass over a bucket's queue, from its front. Who cannot land yet is stepped over, and met again by
    /// the next pass.
    async fn land_bucket(&self, bucket: BucketKey) -> LandingPass {
        let mut pass = LandingPass::default();
        if self.shared.consumers.resting().contains(&bucket) && self.is_frozen(bucket).await {
            return pass;
        }
        self.shared.consumers.resting().remove(&bucket);
        let mut after = None;
        while !self.is_draining() && self.has_lease(format!("queue {}/{}", bucket.pool, bucket.number)).await
        {
            let limit = self.shared.config.landing_batch_max;
            let page = match self.store().queued(bucket, Page { after, limit }).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "a queue could not be read");
                    break;
                }
            };
            let Some(last) = page.last().copied() else { break };
            let now = self.store().now();
            let waiting = page.iter().map(|(_, id)| *id).filter(|id| !self.shared.timer.is_aside(*id, now));
            let round = self.land_all(bucket, waiting.collect()).await;
            pass.add(round);
            if round.waiting > 0 && self.is_frozen(bucket).await {
                self.shared.consumers.resting().insert(bucket);
                break;
            }
            if round.landed < page.len() {
                after = Some(last);
            }
        }
        pass
    }

    /// Whether nothing of this bucket's pool can be taken now. If it cannot be read, it is not tried either.
    async fn is_frozen(&self, bucket: BucketKey) -> bool {
        let Ok(Some(row)) = self.store().pool(bucket.pool).await else { return true };
        let Ok(Some(totals)) = self.store().campaign(row.pool.campaign.clone()).await else { return true };
        row.pool.frozen || totals.halted || totals.campaign.switches.frozen
    }

    /// Whether this node has a lease. It is renewed long before its end.
    pub(crate) async fn has_lease(&self, name: String) -> bool {
        let now = monotonic();
        let renew_at = self.shared.consumers.leases().get(&name).copied();
        if renew_at.is_some_and(|renew_at| now < renew_at) {
            return true;
        }
        let lasts = self.shared.config.lease;
        let taken =
            self.store().take_lease(Lease { name: name.clone(), holder: self.shared.run, lasts }).await;
        let mut leases = self.shared.consumers.leases();
        // What nobody renewed has ended.
        leases.retain(|_, renew_at| now < renew_at.checked_add(lasts).unwrap_or(now));
        match (taken, now.checked_add(lasts / 3)) {
            (Ok(true), Some(renew_at)) => {
                leases.insert(name, renew_at);
                true
            }
            (Ok(_), _) => {
                leases.remove(&name);
                false
            }
            (Err(error), _) => {
                tracing::warn!(%error, "a lease could not be taken");
                false
            }
        }
    }

    /// Believes no more that this node has a lease: the authority said that it has not.
    pub(crate) fn forget_lease(&self, name: &str) {
        self.shared.consumers.leases().remove(name);
    }

    /// Ends this node's leases, so that others go on at once.
    pub(crate) async fn give_up_leases(&self) {
        let has_any = !std::mem::take(&mut *self.shared.consumers.leases()).is_empty();
        if has_any && let Err(error) = self.store().give_up_leases(self.shared.run).await {
            tracing::warn!(%error, "leases could not be given up; they end by themselves");
        }
    }

    /// Lands orders of one queue in their order: as one batch where the bucket has enough, the others by
    /// themselves.
    async fn land_all(&self, bucket: BucketKey, orders: Vec<OrderId>) -> LandingPass {
        let commands = orders.iter().map(|order| landing(*order)).collect();
        let locks = LockSet::bucket(bucket);
        let outcomes =
            self.shared.lanes.run_all(LaneKey::Bucket(bucket), Class::Settling, commands, &locks).await;
        let mut pass = LandingPass::default();
        let mut missed = JoinSet::new();
        for (order, outcome) in orders.into_iter().zip(outcomes) {
            if matches!(outcome, Ok(Outcome::Elsewhere(_) | Outcome::Miss(_))) {
                let engine = self.clone();
                missed.spawn(async move { (order, engine.land_elsewhere(order, bucket).await) });
            } else {
                pass.add(self.after_landing(order, outcome));
            }
        }
        while let Some(done) = missed.join_next().await {
            match done {
                Ok((order, outcome)) => pass.add(self.after_landing(order, outcome)),
                Err(_) => pass.failed = pass.failed.saturating_add(1),
            }
        }
        pass
    }

    fn after_landing(&self, id: OrderId, outcome: Result<Outcome, Error>) -> LandingPass {
        match outcome {
            Ok(Outcome::Order { order, .. }) if order.state == State::Queued => {
                LandingPass { waiting: 1, ..LandingPass::default() }
            }
            Ok(outcome @ Outcome::Order { .. }) => {
                self.after_change(&outcome);
                LandingPass { landed: 1, ..LandingPass::default() }
            }
            Ok(
                Outcome::Refused { .. }
                | Outcome::Pool { .. }
                | Outcome::Adjusted { .. }
                | Outcome::Transferred { .. }
                | Outcome::Imported { .. }
                | Outcome::Proposed { .. }
                | Outcome::Epoch { .. }
                | Outcome::Repaired { .. }
                | Outcome::Miss(_)
                | Outcome::Elsewhere(_)
                | Outcome::Outdated
                | Outcome::NotDue(_),
            )
            | Err(_) => {
                let until = self.store().now().plus(self.shared.config.landing_set_aside);
                self.shared.timer.set_aside(id, until);
                LandingPass { failed: 1, ..LandingPass::default() }
            }
        }
    }

    /// The bucket had too little: a bounded number of others, then all of the pools, as for a place.
    async fn land_elsewhere(&self, id: OrderId, home: BucketKey) -> Result<Outcome, Error> {
        let Some(order) = self.store().order(id).await? else { return Err(Error::OutcomeUnknown) };
        let in_one_pool = order.pools().all(|pool| pool == home.pool);
        let first = order.lines.first().filter(|_| in_one_pool);
        let address = first.and_then(|line| match &line.made_of {
            None => Some((line.sku.clone(), line.location.clone().unwrap_or_else(Location::main))),
            Some(made_of) => {
                made_of.source_of(home.pool).map(|(part, source)| (part.sku.clone(), source.location.clone()))
            }
        });
        if let Some((sku, location)) = address {
            let units = order.lines.iter().map(Line::units).sum();
            let probe = Probe { home, key: &order.key, sku: &sku, location: &location, units };
            if let Some(outcome) = self.probe(probe, || landing(id)).await? {
                return Ok(outcome);
            }
        }
        let pools = order.pools().collect();
        let all = LockSet { pools, ..LockSet::default() };
        self.change_under(land(id), all).await
    }

    /// Tries a bounded number of other buckets together with the home; none: all of the pool must be locked.
    pub(crate) async fn probe(
        &self,
        probe: Probe<'_>,
        command: impl Fn() -> Command,
    ) -> Result<Option<Outcome>, Error> {
        let Probe { home, key, sku, location, units } = probe;
        let Some(entry) = self.shared.catalog.pool(self.store(), &key.campaign, sku, location).await? else {
            return Ok(None);
        };
        let ticket = stable_hash(key.order_no.as_str());
        let mut tried = vec![home.number];
        for _ in 0..self.shared.config.probes_max {
            let chosen = self.shared.shelf.choose(home.pool, &entry.weights, units, ticket, &tried);
            let Some(number) = chosen else { break };
            let other = BucketKey { pool: home.pool, number };
            let locks = LockSet { buckets: [home, other].into(), ..LockSet::default() };
            let lane = LaneKey::Pool(home.pool);
            let outcome = self.shared.lanes.run(lane, Class::Settling, command(), locks).await?;
            if !matches!(outcome, Outcome::Miss(_) | Outcome::Elsewhere(_)) {
                return Ok(Some(outcome));
            }
            tried.push(number);
        }
        Ok(None)
    }
}

/// What an order whose home has too little asks of its one pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe<'p> {
    pub(crate) home: BucketKey,
    pub(crate) key: &'p OrderKey,
    pub(crate) sku: &'p Sku,
    pub(crate) location: &'p Location,
    pub(crate) units: u64,
}

fn queue() -> Signed {
    Signed::new("queue", "")
}

fn land(order: OrderId) -> OrderCommand {
    OrderCommand::new(order, OrderAction::Land, queue())
}

fn landing(order: OrderId) -> Command {
    Command::Order(land(order))
}

fn monotonic() -> Instant {
    Instant::now()
}
