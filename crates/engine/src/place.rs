//! Placing: cheap checks first, then the lane; a miss tries other buckets, and at last the whole pool.
//!
//! The key is looked up before every refusal, so the holder of the last unit who lost the answer gets it
//! again, also when the shelf is empty.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::campaign::Campaign;
use holdfast_core::command::{Command, How, Outcome, Place, PlaceLine};
use holdfast_core::decide::{refusal_of_status, repeated};
use holdfast_core::id::{Location, OrderId, PoolId, Sku};
use holdfast_core::limit::LimitKeys;
use holdfast_core::order::{Order, Shortage, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_metrics::Overload;

use crate::catalog::PoolEntry;
use crate::engine::Engine;
use crate::error::Error;
use crate::inflight::Entered;
use crate::keys::stable_hash;
use crate::lanes::{Class, LaneKey};
use crate::refusals::Reserved;
use crate::request::PlaceRequest;
use crate::routing;
use crate::verdicts::Wish;

/// Beyond so many lines an order goes by the wide lane: it would hold up the others of its bucket.
const LANE_LINES_MAX: usize = 50;
/// How often an order over several pools may miss before it locks all of them, and how often a pool may grow
/// while all of it is being locked.
const WIDE_ROUNDS_MAX: usize = 3;

/// The pools that an order's lines name.
type Pools<'r> = BTreeMap<(&'r Sku, &'r Location), Arc<PoolEntry>>;

/// A request with its keys hashed.
#[derive(Debug, Clone, Copy)]
struct Asked<'r> {
    request: &'r PlaceRequest,
    limit_keys: &'r LimitKeys,
}

impl<'r> Asked<'r> {
    fn wish<'a>(&'a self, campaign: &'a Campaign) -> Wish<'a> {
        let units = self.request.lines.iter().map(|line| u64::from(line.quantity)).sum();
        Wish { campaign, account: &self.request.account, keys: self.limit_keys, units }
    }
}

/// What an order asks of one pool.
#[derive(Debug)]
struct Wanted {
    entry: Arc<PoolEntry>,
    /// What draws its bucket.
    ticket: u64,
    units: u64,
    /// The pool's last line, from 1.
    line: u32,
}

impl Engine {
    /// Places an order. A repeat of the key answers with the order as it stands now.
    pub async fn place(&self, request: PlaceRequest) -> Result<Outcome, Error> {
        self.place_measured(request, false).await
    }

    /// Places an order for somebody who does not want to wait for stock: it goes into a queue whatever the
    /// path of its pools.
    pub async fn place_queued(&self, request: PlaceRequest) -> Result<Outcome, Error> {
        self.place_measured(request, true).await
    }

    async fn place_measured(&self, request: PlaceRequest, wants_queue: bool) -> Result<Outcome, Error> {
        let begun = Instant::now();
        let placed = self.place_or_join(request, wants_queue).await;
        self.shared.metrics.place.observe(begun.elapsed());
        self.counted(placed)
    }

    async fn place_or_join(&self, request: PlaceRequest, wants_queue: bool) -> Result<Outcome, Error> {
        self.check_running()?;
        let shared = &self.shared;
        let campaign = &request.key.campaign;
        if let Some(known) = shared.catalog.campaign(self.store(), campaign).await? {
            let admitted = shared.rates.admit(&known, &request.account, self.store().now());
            admitted.map_err(|retry_after| Error::RateLimited { retry_after })?;
        }
        let limit_keys = shared.hashing.keys(self.store(), campaign, &request.limit_keys).await?;
        let asked = Asked { request: &request, limit_keys: &limit_keys };
        loop {
            let mut guard = match shared.in_flight.enter(&request.key, shared.config.joined_max) {
                Entered::First(guard) => guard,
                Entered::Full => {
                    shared.metrics.overloads.of(Overload::Joins).inc();
                    return Err(Error::Overloaded);
                }
                Entered::Joined(first) => {
                    shared.metrics.joins.inc();
                    let wait = tokio::time::timeout(shared.config.answer_deadline, first).await;
                    match wait.map_err(|_| Error::OutcomeUnknown)? {
                        Ok(Some(order)) => return self.repeat(asked, order).await,
                        // The first left no order; this one tries for itself.
                        Ok(None) | Err(_) => continue,
                    }
                }
            };
            let outcome = self.place_first(asked, wants_queue).await?;
            if let Some(order) = outcome.order() {
                guard.found(order);
            }
            return Ok(outcome);
        }
    }

    /// Answers a repeat from an order that is safely committed. Other content for an order with stock goes by
    /// the order's lane like any place, where it raises a case.
    async fn repeat(&self, asked: Asked<'_>, order: Arc<Order>) -> Result<Outcome, Error> {
        let campaign = self.shared.catalog.campaign(self.store(), &asked.request.key.campaign).await?;
        let policy = campaign.map(|c| c.policy.clone()).unwrap_or_default();
        let place = self.to_place(asked, &BTreeMap::new(), false);
        let outcome = repeated(&place, Arc::clone(&order), &policy);
        let is_mismatch = matches!(outcome, Outcome::Refused { refusal: Refusal::OrderMismatch(_), .. });
        match order.home.filter(|_| is_mismatch && order.has_stock()) {
            Some(home) => {
                let (lane, locks) = (LaneKey::Bucket(home), LockSet::bucket(home));
                self.shared.lanes.run(lane, Class::Placing, Command::Place(Arc::new(place)), locks).await
            }
            None => Ok(outcome),
        }
    }

    async fn place_first(&self, asked: Asked<'_>, wants_queue: bool) -> Result<Outcome, Error> {
        let request = asked.request;
        let Some(campaign) = self.shared.catalog.campaign(self.store(), &request.key.campaign).await? else {
            return Ok(Outcome::refused(Refusal::UnknownCampaign));
        };
        let mut pools = BTreeMap::new();
        for (line, number) in request.lines.iter().zip(1_u32..) {
            let address = (&line.sku, &line.location);
            if pools.contains_key(&address) {
                continue;
            }
            let found =
                self.shared.catalog.pool(self.store(), &campaign.id, &line.sku, &line.location).await?;
            match found {
                Some(entry) if !entry.retired => pools.insert(address, entry),
                Some(_) | None => {
                    return self.refuse_early(asked, Refusal::UnknownSku { line: number }).await;
                }
            };
        }
        let (wanted, wish) = (self.wanted(request, &pools), asked.wish(&campaign));
        if let Some(refusal) = self.early_refusal(&wish, &wanted) {
            if matches!(refusal, Refusal::SoldOut(_)) {
                self.shared.metrics.hint_refusals.inc();
            }
            return self.refuse_early(asked, refusal).await;
        }
        let enter = |want: &Wanted| want.entry.traffic.enter(want.entry.max_concurrency);
        let Some(_placing) = wanted.iter().map(enter).collect::<Option<Vec<_>>>() else {
            self.shared.metrics.overloads.of(Overload::PoolConcurrency).inc();
            return self.known_or(asked, Err(Error::Overloaded)).await;
        };
        self.shared.keys.keep(&request.key);
        let reserved = self.shared.refusals.reserve(
            &request.key.campaign,
            &request.account,
            self.store().now(),
            self.shared.config.recorded_refusals_per_minute,
        );
        let mut place = self.to_place(asked, &pools, reserved.is_some());
        place.intake = self.intake(&wanted, wants_queue);
        let verdict = self.shared.verdicts.ask(&wish);
        // Without an outcome it may have been recorded: then the reservation stays.
        let outcome = self.take(Arc::new(place), &wanted).await?;
        if let Outcome::Refused { refusal, repeated: false, .. } = &outcome {
            self.shared.verdicts.keep(&wish, &verdict, refusal, self.store().now());
        } else if let Outcome::Order { how: How::Created, .. } = &outcome {
            self.shared.verdicts.outdate(&wish);
        }
        self.after_place(&outcome, reserved);
        Ok(outcome)
    }

    /// What can be refused without a transaction, if the key is new: the window, a limit that was just reached,
    /// and the sold-out hint.
    fn early_refusal(&self, wish: &Wish<'_>, wanted: &[Wanted]) -> Option<Refusal> {
        let now = self.store().now();
        let refusal = refusal_of_status(wish.campaign.status(now));
        if let Some(refusal) = refusal.or_else(|| self.shared.verdicts.refusal(wish, now)) {
            return Some(refusal);
        }
        let mut short: Option<Shortage> = None;
        for want in wanted {
            let Some((available, as_of)) = self.shared.shelf.remaining(want.entry.id, want.entry.buckets())
            else {
                continue;
            };
            if available >= want.units || short.is_some_and(|known| known.line < want.line) {
                continue;
            }
            // Somebody is being refused by what was seen: it is read anew, once, and never lapses into
            // letting orders through to find out.
            if self.is_old(as_of, now) && self.shared.shelf.begin_refresh(want.entry.id) {
                let (engine, pool) = (self.clone(), want.entry.id);
                tokio::spawn(async move { engine.refresh(pool).await });
            }
            short = Some(Shortage { line: want.line, requested: want.units, available });
        }
        short.map(Refusal::SoldOut)
    }

    async fn refuse_early(&self, asked: Asked<'_>, refusal: Refusal) -> Result<Outcome, Error> {
        self.known_or(asked, Ok(Outcome::refused(refusal))).await
    }

    /// Turns a place away, unless the key is known: then the order as it stands now. A key that is provably
    /// new needs no look-up.
    async fn known_or(
        &self,
        asked: Asked<'_>,
        turned_away: Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let key = &asked.request.key;
        if self.shared.keys.is_provably_new(key) {
            return turned_away;
        }
        self.shared.metrics.lookups.inc();
        match self.store().order_by_key(key.clone()).await? {
            Some(order) => self.repeat(asked, order).await,
            None => turned_away,
        }
    }

    fn to_place(&self, asked: Asked<'_>, pools: &Pools<'_>, record_refusals: bool) -> Place {
        let (shared, request) = (&self.shared, asked.request);
        Place {
            id: OrderId(shared.ids.next()),
            key: request.key.clone(),
            account: request.account.clone(),
            lines: request
                .lines
                .iter()
                .map(|line| PlaceLine {
                    sku: line.sku.clone(),
                    location: line.location.clone(),
                    pool: pools.get(&(&line.sku, &line.location)).map_or(PoolId(0), |entry| entry.id),
                    quantity: line.quantity,
                })
                .collect(),
            hold_seconds: request.hold_seconds,
            amount_due: request.amount_due.clone(),
            limit_keys: asked.limit_keys.clone(),
            metadata: request.metadata.clone(),
            route: stable_hash(request.key.order_no.as_str()),
            record_refusals,
            intake: None,
        }
    }

    /// Takes stock through the lanes.
    async fn take(&self, place: Arc<Place>, wanted: &[Wanted]) -> Result<Outcome, Error> {
        if let Some(intake) = place.intake {
            return self.take_in(place, intake.pool).await;
        }
        match wanted {
            [want] if place.lines.len() <= LANE_LINES_MAX => self.take_from_one(place, want).await,
            [want] => {
                self.take_whole(place, LaneKey::Pool(want.entry.id), LockSet::pool(want.entry.id)).await
            }
            _ => self.take_from_many(place, wanted).await,
        }
    }

    /// The bucket into whose queue an order goes, if it goes into one: of its first pool that queues.
    fn intake(&self, wanted: &[Wanted], wants_queue: bool) -> Option<BucketKey> {
        let queues = |want: &&Wanted| match want.entry.path {
            Path::Queued => true,
            Path::Direct | Path::Batched | Path::Cached => wants_queue,
        };
        let want = wanted.iter().find(queues)?;
        let PoolEntry { id: pool, weights, .. } = &*want.entry;
        let pool = *pool;
        let routed = || routing::choose(weights, want.ticket, &[], |_| true);
        let number = self.shared.shelf.choose(pool, weights, want.units, want.ticket, &[]).or_else(routed)?;
        Some(BucketKey { pool, number })
    }

    /// Takes an order into a queue. It is on disk when this returns, and holds nothing yet.
    async fn take_in(&self, place: Arc<Place>, pool: PoolId) -> Result<Outcome, Error> {
        let (lane, command) = (LaneKey::Intake(pool), Command::Place(place));
        match self.shared.lanes.run(lane, Class::Placing, command, LockSet::default()).await? {
            // The pool is not as this node knew it. Nothing was done.
            Outcome::Elsewhere(_) | Outcome::Miss(_) => Err(Error::Overloaded),
            outcome @ (Outcome::Order { .. }
            | Outcome::Refused { .. }
            | Outcome::Pool { .. }
            | Outcome::Adjusted { .. }
            | Outcome::Transferred { .. }
            | Outcome::Imported { .. }
            | Outcome::Proposed { .. }
            | Outcome::NotDue(_)) => Ok(outcome),
        }
    }

    /// One pool: the routed bucket, a bounded number of others, then the whole pool.
    async fn take_from_one(&self, place: Arc<Place>, want: &Wanted) -> Result<Outcome, Error> {
        let PoolEntry { id: pool, path, weights, .. } = &*want.entry;
        let pool = *pool;
        let mut tried = Vec::new();
        for _ in 0..=self.shared.config.probes_max {
            let Some(number) = self.shared.shelf.choose(pool, weights, want.units, want.ticket, &tried)
            else {
                break;
            };
            let bucket = BucketKey { pool, number };
            let command = Command::Place(Arc::clone(&place));
            let lane = match path {
                Path::Direct => LaneKey::Direct(bucket),
                Path::Batched | Path::Queued | Path::Cached => LaneKey::Bucket(bucket),
            };
            let outcome =
                self.shared.lanes.run(lane, Class::Placing, command, LockSet::bucket(bucket)).await?;
            if !matches!(outcome, Outcome::Miss(_) | Outcome::Elsewhere(_)) {
                return Ok(outcome);
            }
            self.shared.metrics.misses.inc();
            tried.push(number);
        }
        self.take_whole(place, LaneKey::Pool(pool), LockSet::pool(pool)).await
    }

    /// Several pools: the routed bucket of each first, then all buckets of the pools that missed.
    async fn take_from_many(&self, place: Arc<Place>, wanted: &[Wanted]) -> Result<Outcome, Error> {
        let mut locks = LockSet::default();
        for want in wanted {
            let pool = want.entry.id;
            match self.shared.shelf.choose(pool, &want.entry.weights, want.units, want.ticket, &[]) {
                Some(number) => locks.buckets.insert(BucketKey { pool, number }),
                None => locks.pools.insert(pool),
            };
        }
        for _ in 0..WIDE_ROUNDS_MAX {
            let outcome = self.take_wide(Arc::clone(&place), LaneKey::Node, locks.clone()).await?;
            let (Outcome::Miss(pools) | Outcome::Elsewhere(pools)) = outcome else { return Ok(outcome) };
            locks.pools.extend(pools);
        }
        locks.pools.extend(wanted.iter().map(|want| want.entry.id));
        self.take_whole(place, LaneKey::Node, locks).await
    }

    /// Takes from pools that are locked whole. One that grew while it was being locked is missed once more.
    async fn take_whole(&self, place: Arc<Place>, lane: LaneKey, locks: LockSet) -> Result<Outcome, Error> {
        for _ in 0..WIDE_ROUNDS_MAX {
            let outcome = self.take_wide(Arc::clone(&place), lane, locks.clone()).await?;
            if !matches!(outcome, Outcome::Miss(_) | Outcome::Elsewhere(_)) {
                return Ok(outcome);
            }
        }
        self.shared.metrics.overloads.of(Overload::Rounds).inc();
        Err(Error::Overloaded)
    }

    async fn take_wide(&self, place: Arc<Place>, lane: LaneKey, locks: LockSet) -> Result<Outcome, Error> {
        self.shared.lanes.run(lane, Class::Placing, Command::Place(place), locks).await
    }

    /// What an order asks of each pool. Lines of one pool count together.
    fn wanted(&self, request: &PlaceRequest, pools: &Pools<'_>) -> Vec<Wanted> {
        let mut wanted: BTreeMap<PoolId, Wanted> = BTreeMap::new();
        for (line, number) in request.lines.iter().zip(1_u32..) {
            if let Some(entry) = pools.get(&(&line.sku, &line.location)) {
                let want = wanted.entry(entry.id).or_insert_with(|| Wanted {
                    entry: Arc::clone(entry),
                    ticket: self.ticket(entry, request),
                    units: 0,
                    line: 0,
                });
                want.units = want.units.saturating_add(u64::from(line.quantity));
                want.line = number;
            }
        }
        wanted.into_values().collect()
    }

    /// What the node remembers of a placed order.
    fn after_place(&self, outcome: &Outcome, reserved: Option<Reserved>) {
        let has_recorded = matches!(outcome, Outcome::Refused { recorded: true, repeated: false, .. });
        if let Some(reserved) = reserved.filter(|_| !has_recorded) {
            self.shared.refusals.give_back(&reserved);
        }
        if let Outcome::Order { order, .. } = outcome
            && order.state != State::Queued
        {
            self.shared.timer.remember(order);
        }
    }
}
