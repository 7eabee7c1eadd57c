//! Placing: cheap checks first, then the lane; a miss tries other buckets, and at last the whole pool.
//!
//! The key is looked up before every refusal, so the holder of the last unit who lost the answer gets it
//! again, also when the shelf is empty.

use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::assortment::SOURCES_MAX;
use holdfast_core::campaign::Campaign;
use holdfast_core::command::{Command, How, Outcome, Place, PlaceLine};
use holdfast_core::decide::{refusal_of_status, repeated};
use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::limit::LimitKeys;
use holdfast_core::order::{Order, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_metrics::Overload;

use crate::cache::{Admission, Wish as CacheWish};
use crate::catalog::PoolEntry;
use crate::change::lane_of;
use crate::engine::Engine;
use crate::error::Error;
use crate::inflight::Entered;
use crate::keys::stable_hash;
use crate::lanes::{Class, LaneKey};
use crate::offers::Served;
use crate::refusals::Reserved;
use crate::request::PlaceRequest;
use crate::routing;
use crate::verdicts::Wish;
use crate::wanted::{Asking, ServedLines, Wanted};

/// Beyond so many lines an order goes by the wide lane: it would hold up the others of its bucket.
const LANE_LINES_MAX: usize = 50;
/// How often an order over several pools may miss before it locks all of them, how often a pool may grow
/// while all of it is being locked, and how often an assortment may change while an order is made up by it.
const WIDE_ROUNDS_MAX: usize = 3;

/// A request with its keys hashed.
#[derive(Debug, Clone, Copy)]
struct Asked<'r> {
    request: &'r PlaceRequest,
    limit_keys: &'r LimitKeys,
}

impl<'r> Asked<'r> {
    /// With the units of stock that its lines stand for.
    fn wish<'a>(&'a self, campaign: &'a Campaign, served: &ServedLines<'_>) -> Wish<'a> {
        let units = self.request.lines.iter().map(|line| {
            let each = match served.get(&(&line.sku, line.location.as_ref())) {
                Some(Served::Offer(offer)) => offer.made_of.units(),
                Some(Served::Pool(_)) | None => 1,
            };
            u64::from(line.quantity).saturating_mul(each)
        });
        let units = units.sum();
        Wish { campaign, account: &self.request.account, keys: self.limit_keys, units }
    }
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
            let outcome = self.place_up_to_date(asked, wants_queue).await?;
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
        let place = self.to_place(asked, &ServedLines::new(), false);
        let outcome = repeated(&place, Arc::clone(&order), campaign.as_deref());
        let is_mismatch = matches!(outcome, Outcome::Refused { refusal: Refusal::OrderMismatch(_), .. });
        match order.home.filter(|_| is_mismatch && order.has_stock()) {
            Some(home) => {
                let (lane, locks) = (LaneKey::Bucket(home), LockSet::bucket(home));
                self.shared.lanes.run(lane, Class::Placing, Command::Place(Arc::new(place)), locks).await
            }
            None => Ok(outcome),
        }
    }

    /// Places by the campaign's assortment as it is now: a node that has not heard of a change is told by the
    /// authority, or looks before it says that something is not there.
    async fn place_up_to_date(&self, asked: Asked<'_>, wants_queue: bool) -> Result<Outcome, Error> {
        for _ in 0..WIDE_ROUNDS_MAX {
            let round = self.shared.catalog.offers.round();
            let outcome = self.place_first(asked, wants_queue).await?;
            if matches!(outcome, Outcome::Outdated) {
                self.refresh_catalog().await?;
            } else if matches!(outcome, Outcome::Refused { refusal: Refusal::UnknownSku { .. }, .. }) {
                self.catch_up().await?;
                if self.shared.catalog.offers.round() == round {
                    return Ok(outcome);
                }
            } else {
                return Ok(outcome);
            }
        }
        self.shared.metrics.overloads.of(Overload::Rounds).inc();
        Err(Error::Overloaded)
    }

    /// How each line is served, or why the order cannot be.
    async fn served<'r>(
        &self,
        request: &'r PlaceRequest,
        campaign: &Campaign,
    ) -> Result<Result<ServedLines<'r>, Refusal>, Error> {
        let mut all = ServedLines::new();
        let mut sources = 0_usize;
        for (line, number) in request.lines.iter().zip(1_u32..) {
            let address = (&line.sku, line.location.as_ref());
            let served = match all.entry(address) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let (store, (sku, location)) = (self.store(), address);
                    let found = self.shared.catalog.served(store, campaign, sku, location).await?;
                    let Some(served) = found else { return Ok(Err(Refusal::UnknownSku { line: number })) };
                    new.insert(served)
                }
            };
            if let Served::Offer(offer) = served {
                sources = sources.saturating_add(offer.made_of.pools().count());
            }
        }
        if sources > SOURCES_MAX {
            return Ok(Err(Refusal::InvalidValue {
                pointer: "/lines".into(),
                why: "take from too many pools together; place several orders",
            }));
        }
        Ok(Ok(all))
    }

    async fn place_first(&self, asked: Asked<'_>, wants_queue: bool) -> Result<Outcome, Error> {
        let request = asked.request;
        let Some(campaign) = self.shared.catalog.campaign(self.store(), &request.key.campaign).await? else {
            return Ok(Outcome::refused(Refusal::UnknownCampaign));
        };
        let served = match self.served(request, &campaign).await? {
            Ok(served) => served,
            Err(refusal) => return self.refuse_early(asked, refusal).await,
        };
        let (asking, wish) = (self.asking(request, &served), asked.wish(&campaign, &served));
        if let Some(refusal) = self.early_refusal(&wish, request, &served, &asking) {
            if matches!(refusal, Refusal::SoldOut(_)) {
                self.shared.metrics.hint_refusals.inc();
            }
            return self.refuse_early(asked, refusal).await;
        }
        let enter = |want: &Wanted| want.entry.traffic.enter(want.entry.max_concurrency);
        let Some(_placing) = asking.pools.iter().map(enter).collect::<Option<Vec<_>>>() else {
            self.shared.metrics.overloads.of(Overload::PoolConcurrency).inc();
            return self.known_or(asked, Err(Error::Overloaded)).await;
        };
        let is_met_again = self.shared.keys.keep(&request.key);
        // A cache forgets with each epoch what the authority never does.
        if is_met_again
            && asking.pools.iter().any(Wanted::is_cached)
            && let Some(known) = self.store().order_by_key(request.key.clone()).await?
        {
            return self.repeat(asked, known).await;
        }
        let reserved = self.shared.refusals.reserve(
            &request.key.campaign,
            &request.account,
            self.store().now(),
            self.shared.config.recorded_refusals_per_minute,
        );
        let mut place = self.to_place(asked, &served, reserved.is_some());
        let depends = |line: &PlaceLine| line.location.is_none() || line.made_of.is_some();
        place.assortment = place.lines.iter().any(depends).then_some(campaign.assortment.version);
        place.intake = self.intake(&asking, wants_queue);
        let verdict = self.shared.verdicts.ask(&wish);
        // Without an outcome it may have been recorded: then the reservation stays.
        let outcome = self.take(asked, (&campaign, &served), Arc::new(place), &asking).await?;
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
    fn early_refusal(
        &self,
        wish: &Wish<'_>,
        request: &PlaceRequest,
        served: &ServedLines<'_>,
        asking: &Asking,
    ) -> Option<Refusal> {
        let now = self.store().now();
        let refusal = refusal_of_status(wish.campaign.status(now));
        let refusal = refusal.or_else(|| self.shared.verdicts.refusal(wish, now));
        refusal.or_else(|| self.short(request, served, asking).map(Refusal::SoldOut))
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
        if let Some(order) = self.store().order_by_key(key.clone()).await? {
            return self.repeat(asked, order).await;
        }
        match self.accepted_before(asked.request).await? {
            Some(order) => self.repeat(asked, order).await,
            None => turned_away,
        }
    }

    fn to_place(&self, asked: Asked<'_>, served: &ServedLines<'_>, record_refusals: bool) -> Place {
        let (shared, request) = (&self.shared, asked.request);
        Place {
            id: OrderId(shared.ids.next()),
            key: request.key.clone(),
            account: request.account.clone(),
            lines: request
                .lines
                .iter()
                .map(|line| {
                    let (pool, made_of) = match served.get(&(&line.sku, line.location.as_ref())) {
                        Some(Served::Pool(entry)) => (Some(entry.id), None),
                        Some(Served::Offer(offer)) => (offer.made_of.pools().next(), Some(&offer.made_of)),
                        None => (None, None),
                    };
                    PlaceLine {
                        sku: line.sku.clone(),
                        location: line.location.clone(),
                        pool: pool.unwrap_or(PoolId(0)),
                        made_of: made_of.cloned(),
                        quantity: line.quantity,
                    }
                })
                .collect(),
            hold_seconds: request.hold_seconds,
            amount_due: request.amount_due.clone(),
            limit_keys: asked.limit_keys.clone(),
            metadata: request.metadata.clone(),
            route: stable_hash(request.key.order_no.as_str()),
            record_refusals,
            assortment: None,
            intake: None,
        }
    }

    /// Takes stock from a cache, or through the lanes.
    async fn take(
        &self,
        asked: Asked<'_>,
        (campaign, served): (&Campaign, &ServedLines<'_>),
        place: Arc<Place>,
        asking: &Asking,
    ) -> Result<Outcome, Error> {
        if let Some(intake) = place.intake {
            return self.take_in(place, intake.pool).await;
        }
        match asking.pools.as_slice() {
            _ if !asking.choices.is_empty() => self.take_from_many(place, asking).await,
            [want] if want.is_cached() && place.lines.len() <= LANE_LINES_MAX => {
                let wish = CacheWish { campaign, pool: &want.entry, place: &place, units: want.units };
                match self.admit(wish).await? {
                    Admission::Short(available) => {
                        let refusal = self.short_of(asked.request, served, &want.entry, available);
                        self.refuse_early(asked, refusal).await
                    }
                    Admission::Accepted(order) => {
                        Ok(Outcome::Order { order, how: How::Created, disposition: None })
                    }
                    Admission::Known(order) => self.repeat(asked, order).await,
                    Admission::QueueFull => {
                        let limit = campaign.policy.queue_limit;
                        self.refuse_early(asked, Refusal::QueueFull { limit }).await
                    }
                    Admission::Authority => self.take_from_one(place, want).await,
                }
            }
            [want] if place.lines.len() <= LANE_LINES_MAX => self.take_from_one(place, want).await,
            [want] => {
                self.take_whole(place, LaneKey::Pool(want.entry.id), LockSet::pool(want.entry.id)).await
            }
            _ => self.take_from_many(place, asking).await,
        }
    }

    /// The bucket into whose queue an order goes, if it goes into one: of its first pool that queues.
    fn intake(&self, asking: &Asking, wants_queue: bool) -> Option<BucketKey> {
        let queues = |want: &&Wanted| match want.entry.path {
            Path::Queued => true,
            Path::Direct | Path::Batched | Path::Cached => wants_queue,
        };
        let want = asking.pools.iter().filter(queues).min_by_key(|want| want.place)?;
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
            | Outcome::Epoch { .. }
            | Outcome::Repaired { .. }
            | Outcome::Proposed { .. }
            | Outcome::Outdated
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

    /// Several pools: what may suffice first, then all buckets of the pools that missed.
    async fn take_from_many(&self, place: Arc<Place>, asking: &Asking) -> Result<Outcome, Error> {
        let mut locks = self.first_locks(asking);
        for _ in 0..WIDE_ROUNDS_MAX {
            let mut lane = if place.lines.len() <= LANE_LINES_MAX { lane_of(&locks) } else { LaneKey::Node };
            if let LaneKey::Bucket(bucket) = lane
                && asking.is_direct(bucket.pool)
            {
                lane = LaneKey::Direct(bucket);
            }
            let outcome = self.take_wide(Arc::clone(&place), lane, locks.clone()).await?;
            let (Outcome::Miss(pools) | Outcome::Elsewhere(pools)) = outcome else { return Ok(outcome) };
            locks.pools.extend(pools);
        }
        locks.pools.extend(asking.pools.iter().map(|want| want.entry.id));
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
