//! Landing what a cache accepted: in batches, through the bucket's lane, each entry with its own result. An
//! entry leaves the stream only after its result is committed; delivered twice, it is found in the ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::cache::{Accepted, EntryId, Landing, SetAside};
use holdfast_core::command::{Command, Outcome};
use holdfast_core::id::Location;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use tokio::task::JoinSet;

use super::contract::{Cache, CacheError, Delivery};
use super::keeper::Memory;
use crate::engine::Engine;
use crate::error::Error;
use crate::landing::Probe;
use crate::lanes::{Class, LaneKey};

/// What became of one delivery.
enum Landed {
    /// Its result is committed: the entry may go.
    Settled(EntryId),
    /// It can never land: the entry may go.
    Lost(Accepted),
    /// It waits for a freeze to end, or failed: it is tried again.
    Later(Delivery),
    /// The authority will never take it.
    Impossible(SetAside),
}

/// What came of one batch.
#[derive(Default)]
struct Batch {
    settled: Vec<EntryId>,
    held_back: Vec<Delivery>,
}

impl Engine {
    /// Lands what was accepted until it is time to look at both sides again. While one batch is committed, the last
    /// one's entries are removed and the next is fetched. An error of the cache ends it and no more: what was
    /// delivered is claimed again.
    pub(super) async fn land_accepted(
        &self,
        cache: &dyn Cache,
        memory: &mut Memory,
    ) -> Result<(), CacheError> {
        if let Some(rest) = memory.paced_until.and_then(|until| until.checked_duration_since(Instant::now()))
        {
            self.shared.caches.rest(rest).await;
        }
        let (bucket, begun) = (memory.bucket, Instant::now());
        let mut deliveries = self.next_deliveries(cache, memory).await?;
        memory.paced_until = self.paced_until(deliveries.len());
        let (mut settled, mut fetched) = (Vec::new(), Ok(()));
        while !deliveries.is_empty() {
            let goes_on = memory.paced_until.is_none()
                && memory.held_back.is_empty()
                && begun.elapsed() < self.shared.config.cache_look;
            let next = async {
                if goes_on { self.fetch(cache, bucket, Duration::ZERO).await } else { Ok(Vec::new()) }
            };
            let land = self.land_or_set_aside(bucket, deliveries);
            let (batch, (), next) = tokio::join!(land, self.remove(cache, bucket, &settled), next);
            settled = batch.settled;
            memory.held_back.extend(batch.held_back);
            (deliveries, fetched) = match next {
                Ok(deliveries) => (deliveries, fetched),
                Err(error) => (Vec::new(), Err(error)),
            };
        }
        self.remove(cache, bucket, &settled).await;
        if !memory.held_back.is_empty() {
            self.shared.caches.rest(self.shared.config.cache_retry).await;
        }
        fetched
    }

    /// When the next batch may be landed after one of so many; none: at once.
    fn paced_until(&self, count: usize) -> Option<Instant> {
        let (rate, count) =
            (self.shared.config.cache_landing_rate?, u32::try_from(count).unwrap_or(u32::MAX));
        Instant::now().checked_add(Duration::from_secs(1).saturating_mul(count).checked_div(rate)?)
    }

    /// Removes entries that have landed. What cannot be removed now is delivered once more.
    async fn remove(&self, cache: &dyn Cache, bucket: BucketKey, settled: &[EntryId]) {
        if settled.is_empty() {
            return;
        }
        if let Err(error) = cache.settle(bucket, settled).await {
            tracing::warn!(%error, "landed entries could not be removed from a stream");
        }
    }

    /// New entries of a stream, waited for if there are none.
    async fn fetch(
        &self,
        cache: &dyn Cache,
        bucket: BucketKey,
        wait: Duration,
    ) -> Result<Vec<Delivery>, CacheError> {
        cache.deliver(bucket, &self.consumer(), self.batch_max(), wait).await
    }

    fn consumer(&self) -> String {
        format!("{:032x}", self.shared.run)
    }

    /// A slow pace is kept by small batches: between two of them the keeper looks after the rest.
    fn batch_max(&self) -> usize {
        let config = &self.shared.config;
        let paced =
            config.cache_landing_rate.map(|rate| usize::try_from(rate.div_ceil(10)).unwrap_or(usize::MAX));
        paced.map_or(config.cache_batch_max, |paced| paced.min(config.cache_batch_max))
    }

    /// What was held back, what somebody left, or what is new.
    async fn next_deliveries(
        &self,
        cache: &dyn Cache,
        memory: &mut Memory,
    ) -> Result<Vec<Delivery>, CacheError> {
        if !memory.held_back.is_empty() {
            return Ok(std::mem::take(&mut memory.held_back));
        }
        let (config, bucket, now) = (&self.shared.config, memory.bucket, Instant::now());
        if memory.claim_at.is_none_or(|claim_at| now >= claim_at) {
            // Whoever takes over a bucket takes at once what its last keeper left.
            let idle = if memory.claim_at.is_none() { Duration::ZERO } else { config.claim_idle };
            let claimed = cache.claim(bucket, &self.consumer(), self.batch_max(), idle).await?;
            if !claimed.is_empty() {
                self.shared.caches.metrics.redelivered.add(u64::try_from(claimed.len()).unwrap_or(0));
                return Ok(claimed);
            }
            memory.claim_at = now.checked_add(config.claim_idle);
        }
        self.fetch(cache, bucket, config.cache_wait).await
    }

    /// Lands a batch, and sets aside what never can be.
    async fn land_or_set_aside(&self, bucket: BucketKey, deliveries: Vec<Delivery>) -> Batch {
        let (mut batch, mut lost, mut impossible) = (Batch::default(), Vec::new(), Vec::new());
        for landed in self.land_batch(bucket, deliveries).await {
            match landed {
                Landed::Settled(entry) => batch.settled.push(entry),
                Landed::Lost(accepted) => lost.push(accepted),
                Landed::Later(delivery) => batch.held_back.push(delivery),
                Landed::Impossible(aside) => impossible.push(aside),
            }
        }
        for aside in impossible {
            batch.settled.extend(self.set_aside_entry(aside).await);
        }
        self.doubt_entries_used_again(&lost).await;
        batch.settled.extend(lost.iter().map(|accepted| accepted.entry));
        batch
    }

    /// An entry that cannot land because it has landed as another order proves that its cache went back unnoticed: the
    /// epoch is given up, since nothing else settles what the cache took for the second one.
    async fn doubt_entries_used_again(&self, lost: &[Accepted]) {
        for accepted in lost {
            let landed = self.store().landed(accepted.key()).await;
            if landed.is_ok_and(|entry| entry.is_some_and(|entry| entry.order_id.is_some())) {
                return self.doubt(accepted.bucket, accepted.epoch);
            }
        }
    }

    async fn land_batch(&self, bucket: BucketKey, deliveries: Vec<Delivery>) -> Vec<Landed> {
        let (mut landed, mut landings) = (Vec::with_capacity(deliveries.len()), Vec::new());
        for delivery in deliveries {
            match delivery {
                Delivery::Order(landing) => landings.push(landing),
                Delivery::Poison(aside) => landed.push(Landed::Impossible(aside)),
            }
        }
        let commands = landings.iter().map(|landing| Command::Land(Arc::clone(landing))).collect();
        let locks = LockSet::bucket(bucket);
        let outcomes =
            self.shared.lanes.run_all(LaneKey::Bucket(bucket), Class::Settling, commands, &locks).await;
        let mut missed = JoinSet::new();
        for (landing, outcome) in landings.into_iter().zip(outcomes) {
            if matches!(outcome, Ok(Outcome::Elsewhere(_) | Outcome::Miss(_))) {
                let engine = self.clone();
                missed.spawn(async move {
                    let outcome = engine.land_wide(&landing).await;
                    (landing, outcome)
                });
            } else {
                landed.push(self.judge_landing(landing, outcome));
            }
        }
        while let Some(done) = missed.join_next().await {
            landed.extend(done.map(|(landing, outcome)| self.judge_landing(landing, outcome)));
        }
        landed
    }

    /// The bucket had too little: a bounded number of others, then the whole pool.
    async fn land_wide(&self, landing: &Arc<Landing>) -> Result<Outcome, Error> {
        let (home, place) = (landing.accepted.bucket, &landing.place);
        let command = || Command::Land(Arc::clone(landing));
        if let Some(line) = place.lines.first() {
            let (units, location) = (landing.accepted.units, line.location.clone());
            let location = &location.unwrap_or_else(Location::main);
            let probe = Probe { home, key: &place.key, sku: &line.sku, location, units };
            if let Some(outcome) = self.probe(probe, command).await? {
                return Ok(outcome);
            }
        }
        let (lane, locks) = (LaneKey::Pool(home.pool), LockSet::pool(home.pool));
        self.shared.lanes.run(lane, Class::Settling, command(), locks).await
    }

    fn judge_landing(&self, landing: Arc<Landing>, outcome: Result<Outcome, Error>) -> Landed {
        let (entry, id) = (landing.accepted.entry, landing.place.id);
        match outcome {
            Ok(outcome @ Outcome::Order { .. }) => {
                self.shared.caches.waiting.leave(id);
                let now_ms = u64::try_from(self.store().now().0 / 1_000).unwrap_or(0);
                let waited_ms = now_ms.saturating_sub(entry.millis);
                self.shared.caches.metrics.landed.inc();
                self.shared.caches.metrics.landing_lag.observe(Duration::from_millis(waited_ms));
                self.after_change(&outcome);
                Landed::Settled(entry)
            }
            // A repeat of a key. Who waits asks, and is told.
            Ok(Outcome::Refused { order: Some(_), .. }) => Landed::Settled(entry),
            Ok(Outcome::Refused { refusal: Refusal::AdmissionLost, .. }) => Landed::Lost(landing.accepted),
            Ok(Outcome::Refused { refusal, .. }) => {
                let why = Arc::from(format!("{refusal:?}"));
                Landed::Impossible(SetAside { accepted: landing.accepted, why })
            }
            Ok(
                Outcome::NotDue(_)
                | Outcome::Pool { .. }
                | Outcome::Adjusted { .. }
                | Outcome::Transferred { .. }
                | Outcome::Imported { .. }
                | Outcome::Proposed { .. }
                | Outcome::Epoch { .. }
                | Outcome::Repaired { .. }
                | Outcome::Outdated
                | Outcome::Miss(_)
                | Outcome::Elsewhere(_),
            )
            | Err(_) => Landed::Later(Delivery::Order(landing)),
        }
    }

    /// Settles what an entry took that will never be an order; the entry, if that is committed.
    async fn set_aside_entry(&self, aside: SetAside) -> Option<EntryId> {
        let (bucket, entry) = (aside.accepted.bucket, aside.accepted.entry);
        tracing::warn!(pool = %bucket.pool, bucket = bucket.number, %entry, why = %aside.why, "an entry is set aside");
        let (lane, locks) = (LaneKey::Bucket(bucket), LockSet::bucket(bucket));
        match self.shared.lanes.run(lane, Class::Settling, Command::SetAside(aside), locks).await {
            Ok(Outcome::Epoch { .. } | Outcome::Refused { refusal: Refusal::AdmissionLost, .. }) => {
                self.shared.caches.metrics.poisoned.inc();
                Some(entry)
            }
            // It is claimed and set aside once more.
            Ok(_) | Err(_) => None,
        }
    }
}
