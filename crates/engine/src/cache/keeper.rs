//! The keeper of a bucket's cache: one node has its lease, and does what nobody asks for. It looks at the cache
//! and the authority, takes the next step of the epoch, credits what came back or went, and lands what was
//! accepted. A keeper that lost its lease and does not know it yet does no harm: epochs and entries are judged
//! under the bucket's lock, and a credit applies only at its position.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::cache::{CacheBucket, Epoch, EpochState, Turn, TurnEpoch};
use holdfast_core::command::{Command, How, Outcome, Signed};
use holdfast_core::id::PoolId;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_metrics::{CacheMetrics, Drained};
use holdfast_store::{Credits, Page, PoolFilter};

use super::contract::{Cache, CacheError, Credit, Delivery, Position, Seed};
use super::shown::{Figures, Shown};
use super::steer::{Seen, Sight, Step, next_step};
use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::{Class, LaneKey};

/// How long after an epoch was closed it is still seen to that its cache forgets it: a week.
const CLEARED_WITHIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Buckets that this node keeps.
#[derive(Default)]
pub(crate) struct Kept(Mutex<BTreeSet<BucketKey>>);

impl Kept {
    fn buckets(&self) -> MutexGuard<'_, BTreeSet<BucketKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a bucket free for the next keeper, also when this one panics.
struct Keeping {
    engine: Engine,
    bucket: BucketKey,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.engine.shared.kept.buckets().remove(&self.bucket);
    }
}

/// The sum of credits of an epoch, from its base to a ledger position.
#[derive(Debug, Clone, Copy)]
struct Sum {
    epoch: Epoch,
    at: u64,
    units: i64,
}

/// What a keeper remembers between two passes.
pub(super) struct Memory {
    pub(super) bucket: BucketKey,
    /// Since when the cache has not answered.
    silent_since: Option<Instant>,
    sum: Option<Sum>,
    /// Whether the server may be relied on, and until when that is believed.
    fitness: Option<(bool, Instant)>,
    /// What was delivered and could not be landed yet.
    pub(super) held_back: Vec<Delivery>,
    /// When abandoned deliveries are looked for again.
    pub(super) claim_at: Option<Instant>,
    /// When the next batch may be landed, where landing is paced.
    pub(super) paced_until: Option<Instant>,
    shown: Shown,
}

impl Memory {
    fn new(bucket: BucketKey, metrics: &Arc<CacheMetrics>) -> Self {
        Self {
            bucket,
            silent_since: None,
            sum: None,
            fitness: None,
            held_back: Vec::new(),
            claim_at: None,
            paced_until: None,
            shown: Shown::new(metrics),
        }
    }
}

/// Whether the keeper goes on.
enum Next {
    /// Something was done: look again at once.
    Again,
    /// Nothing to do for a while.
    Rest,
    /// The bucket needs no keeper.
    Leave,
}

impl Engine {
    /// Takes a cache into use. Pools on the cached path stay with the authority until then.
    pub fn use_cache(&self, cache: Arc<dyn Cache>) {
        self.shared.caches.begin(cache);
    }

    /// Whether a cache is in use.
    pub fn has_cache(&self) -> bool {
        self.shared.caches.cache().is_some()
    }

    /// The worker: learns of caches, and on a node that works in the background sees to it that every bucket that
    /// needs a keeper has one, here or on another node.
    pub(crate) async fn run_caches(&self) {
        if self.shared.caches.cache().is_none() {
            return;
        }
        while !self.is_draining() {
            // Told before it is read: what is forgotten meanwhile is read once more.
            let is_known = &self.shared.caches.is_known;
            if !is_known.swap(true, Ordering::SeqCst) && !self.read_epochs().await {
                is_known.store(false, Ordering::SeqCst);
            }
            if self.shared.config.is_worker {
                self.buckets_to_keep().into_iter().for_each(|bucket| self.keep(bucket));
            }
            self.shared.caches.woken_within(self.shared.config.cache_poll).await;
        }
    }

    /// Reads what the catalog does not tell, because it was there before: pools on the cached path and epochs.
    async fn read_epochs(&self) -> bool {
        let read = async {
            let limit = self.shared.config.key_page_max;
            // What changes from now on is told.
            self.shared.catalog.begin(self.store()).await?;
            let mut after = None;
            loop {
                let (rows, more) = self.store().cache_buckets(Page { after, limit }).await?;
                after = rows.last().map(|row| row.key);
                self.shared.caches.keep(rows);
                if !more {
                    break;
                }
            }
            let mut after = None;
            loop {
                let (rows, more) = self.store().pools(PoolFilter::default(), Page { after, limit }).await?;
                after = rows.last().map(|row| row.pool.id);
                rows.iter()
                    .filter(|row| row.pool.path == Path::Cached)
                    .for_each(|row| self.shared.catalog.keep_pool(row));
                if !more {
                    return Ok::<_, Error>(());
                }
            }
        };
        match read.await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "what is cached could not be read; asking on");
                false
            }
        }
    }

    fn buckets_to_keep(&self) -> BTreeSet<BucketKey> {
        let mut buckets = self.shared.catalog.cached_buckets();
        buckets.extend(self.shared.caches.unclosed());
        buckets.extend(self.shared.caches.uncleared(self.store().now().minus(CLEARED_WITHIN)));
        buckets
    }

    fn keep(&self, bucket: BucketKey) {
        let mut kept = self.shared.kept.buckets();
        if kept.len() >= self.shared.config.landing_buckets_max || !kept.insert(bucket) {
            return;
        }
        drop(kept);
        let keeping = Keeping { engine: self.clone(), bucket };
        tokio::spawn(async move { keeping.engine.keep_bucket(keeping.bucket).await });
    }

    async fn keep_bucket(&self, bucket: BucketKey) {
        let Some(cache) = self.shared.caches.cache().cloned() else { return };
        let mut memory = Memory::new(bucket, &self.shared.caches.metrics);
        while !self.is_draining() && self.has_lease(format!("cache {}/{}", bucket.pool, bucket.number)).await
        {
            match self.keep_once(&*cache, &mut memory).await {
                Ok(Next::Again) => {}
                Ok(Next::Rest) => self.shared.caches.rest(self.shared.config.cache_poll).await,
                Ok(Next::Leave) => return,
                Err(error) => {
                    tracing::warn!(%error, pool = %bucket.pool, bucket = bucket.number, "a cache could not be kept; trying on");
                    self.shared.caches.rest(self.shared.config.cache_retry).await;
                }
            }
        }
    }

    /// One pass: look, step, credit, land.
    async fn keep_once(&self, cache: &dyn Cache, memory: &mut Memory) -> Result<Next, Error> {
        let bucket = memory.bucket;
        let row = self.store().cache_bucket(bucket).await?;
        self.shared.caches.keep(row.clone());
        let seen = self.look_at(cache, memory).await;
        let is_fit = self.is_fit(cache, memory).await;
        let (mut is_credited, mut lawful) = (false, None);
        if let (Some(row), Some(position)) = (&row, seen.as_ref().and_then(|seen| seen.position.as_ref()))
            && row.state != EpochState::Closed
            && row.epoch == position.epoch
        {
            lawful = Some(self.lawful(row, position, memory).await?);
            let uncredited = self.credit(cache, row, position, memory).await?;
            is_credited = uncredited < u64::from(self.shared.config.credit_entries_max);
            memory.shown.show(Figures::of(position, uncredited, lawful));
        } else if row.as_ref().is_some_and(|row| row.state != EpochState::Closed) {
            memory.shown.show_silence();
        } else {
            memory.shown.show_nothing();
        }
        let is_cached = self.is_cached(bucket).await?;
        let has_none = row.as_ref().is_none_or(|row| row.state == EpochState::Closed);
        let is_wanted = is_cached && !(has_none && self.begins_nothing(bucket).await?);
        let sight = Sight {
            row: row.as_ref(),
            is_wanted,
            seen: seen.as_ref(),
            is_given_up: memory
                .silent_since
                .is_some_and(|since| since.elapsed() > self.shared.config.cache_patience),
            is_fit,
            is_credited,
            lawful,
        };
        let step = next_step(&sight);
        if let (Step::Drain(doubt), Some(row)) = (&step, row.as_ref()) {
            let position = seen.as_ref().and_then(|seen| seen.position.as_ref());
            self.note_doubt(row, *doubt, position, lawful).await;
        }
        let is_still = step == Step::Rest;
        self.take_step(cache, row.as_ref(), step, memory).await?;
        if !is_still {
            return Ok(Next::Again);
        }
        let (is_given_up, is_seen) = (sight.is_given_up, seen.is_some());
        let can_land = row.as_ref().is_some_and(|row| row.state != EpochState::Closed);
        if can_land && seen.is_some_and(|seen| seen.position.is_some()) {
            return Ok(match self.land_accepted(cache, memory).await {
                Ok(()) => Next::Again,
                // The next look tells what is wrong.
                Err(_) => Next::Rest,
            });
        }
        if is_cached || can_land || !(is_seen || is_given_up) {
            return Ok(Next::Rest);
        }
        if let Some(row) = &row {
            self.shared.caches.clear(row);
        }
        Ok(Next::Leave)
    }

    /// Whether the bucket is on the cached path and its campaign not closed, as far as the node knows.
    async fn is_cached(&self, bucket: BucketKey) -> Result<bool, Error> {
        let Some(campaign) = self.shared.catalog.cached_of(bucket) else { return Ok(false) };
        let known = self.shared.catalog.campaign(self.store(), &campaign).await?;
        Ok(known.is_some_and(|known| !known.switches.closed))
    }

    /// Whether no cache may begin to accept: all sales are stopped, so that nothing could land, or the campaign is
    /// closed and the node does not know it yet. Asked of the authority: only it knows in time.
    async fn begins_nothing(&self, bucket: BucketKey) -> Result<bool, Error> {
        let Some(campaign) = self.shared.catalog.cached_of(bucket) else { return Ok(true) };
        let totals = self.store().campaign(campaign).await?;
        Ok(totals.is_none_or(|totals| totals.halted || totals.campaign.switches.closed))
    }

    /// What the cache says; none: it does not answer.
    async fn look_at(&self, cache: &dyn Cache, memory: &mut Memory) -> Option<Seen> {
        let seen = async {
            let identity = cache.identity(memory.bucket).await?;
            Ok::<_, CacheError>(Seen { identity, position: cache.position(memory.bucket).await? })
        };
        match seen.await {
            Ok(seen) => {
                memory.silent_since = None;
                if let Some(position) = &seen.position {
                    self.shared.caches.note_position(memory.bucket, position, self.store().now());
                }
                Some(seen)
            }
            Err(error) => {
                if memory.silent_since.is_none() {
                    tracing::warn!(%error, pool = %memory.bucket.pool, "a cache does not answer");
                }
                memory.silent_since.get_or_insert_with(Instant::now);
                None
            }
        }
    }

    async fn is_fit(&self, cache: &dyn Cache, memory: &mut Memory) -> bool {
        if let Some((is_fit, until)) = memory.fitness
            && Instant::now() < until
        {
            return is_fit;
        }
        // A server that does not answer is silent, not unfit.
        let is_fit = match cache.examine(memory.bucket).await {
            Ok(()) | Err(CacheError::Unavailable(_) | CacheError::Unknown(_)) => true,
            Err(CacheError::Unfit(why)) => {
                tracing::warn!(%why, "the cache cannot be relied on; its pools stay with the authority");
                false
            }
        };
        memory.fitness =
            Instant::now().checked_add(self.shared.config.cache_examined).map(|until| (is_fit, until));
        is_fit
    }

    /// What the law says must be available where the cache is.
    async fn lawful(
        &self,
        row: &CacheBucket,
        position: &Position,
        memory: &mut Memory,
    ) -> Result<i64, Error> {
        let known = memory.sum.filter(|sum| sum.epoch == row.epoch && sum.at <= position.applied);
        let from = known.unwrap_or(Sum { epoch: row.epoch, at: row.base_seq, units: 0 });
        let Some(since) = self.credits_between(memory.bucket, from.at, position.applied).await? else {
            // The cache is ahead of the ledger: no sum makes that lawful.
            return Ok(i64::MIN);
        };
        let sum = Sum { at: from.at.max(position.applied), units: from.units.saturating_add(since), ..from };
        memory.sum = Some(sum);
        Ok(row.lawful(sum.units, position.accepted_units))
    }

    /// What a bucket's entries after one position, up to another, credit its cache with; none: the ledger ends
    /// before.
    pub(super) async fn credits_between(
        &self,
        bucket: BucketKey,
        after: u64,
        last: u64,
    ) -> Result<Option<i64>, Error> {
        let (mut at, mut sum) = (after, 0_i64);
        while at < last {
            let left = u32::try_from(last.saturating_sub(at)).unwrap_or(u32::MAX);
            let most = self.shared.config.credit_entries_max.min(left);
            let Credits { to, units } = self.store().credits(bucket, at, most).await?;
            if to <= at {
                return Ok(None);
            }
            (at, sum) = (to, sum.saturating_add(units));
        }
        Ok(Some(sum))
    }

    /// Credits what the ledger has after the cache's position; how many entries that was.
    async fn credit(
        &self,
        cache: &dyn Cache,
        row: &CacheBucket,
        position: &Position,
        memory: &Memory,
    ) -> Result<u64, Error> {
        let (bucket, from) = (memory.bucket, position.applied);
        let Credits { to, units } =
            self.store().credits(bucket, from, self.shared.config.credit_entries_max).await?;
        if to > from {
            // Whatever comes of it, the next pass reads the position.
            let _ = cache.credit(Credit { bucket, epoch: row.epoch, from, to, units }).await;
        }
        Ok(to.saturating_sub(from))
    }

    async fn take_step(
        &self,
        cache: &dyn Cache,
        row: Option<&CacheBucket>,
        step: Step,
        memory: &mut Memory,
    ) -> Result<(), Error> {
        let bucket = memory.bucket;
        let epoch = row.map(|row| row.epoch).unwrap_or_default();
        match step {
            Step::Rest => {}
            Step::Open(epoch, identity) => {
                let turned = self.turn(bucket, epoch, Turn::Open { identity }, by_node("")).await?;
                // Only who opened it seeds it: seeded again after a loss, it would sell again what it had taken.
                let Some((row, How::Created | How::Changed)) = turned else { return Ok(()) };
                let CacheBucket { base_seq, base_available, .. } = row;
                // If the answer is lost, the next pass finds the epoch there or gives it up.
                let _ = cache.seed(Seed { bucket, epoch, base_seq, base_available }).await;
                memory.sum = None;
            }
            Step::Accept => {
                let opened = cache.open(bucket, epoch).await;
                tracing::info!(pool = %bucket.pool, bucket = bucket.number, %epoch, ?opened, "a cache accepts");
            }
            Step::Drain(doubt) => {
                tracing::warn!(pool = %bucket.pool, bucket = bucket.number, %epoch, why = doubt.as_str(), "a cache is drained");
                self.shared.caches.metrics.drained.of(doubt.label()).inc();
                self.turn(bucket, epoch, Turn::Drain, by_node(doubt.as_str())).await?;
            }
            Step::Stop => drop(cache.drain(bucket, epoch).await),
            Step::Close => {
                self.turn(bucket, epoch, Turn::Close, by_node("")).await?;
                memory.held_back.clear();
            }
            Step::Forget(epoch) => drop(cache.forget(bucket, epoch).await),
        }
        Ok(())
    }

    /// Turns an epoch; none: it is not where it was thought to be.
    async fn turn(
        &self,
        bucket: BucketKey,
        epoch: Epoch,
        turn: Turn,
        signed: Signed,
    ) -> Result<Option<(CacheBucket, How)>, Error> {
        let command = Command::TurnEpoch(TurnEpoch { bucket, epoch, turn, signed });
        let (lane, locks) = (LaneKey::Bucket(bucket), LockSet::bucket(bucket));
        let outcome = self.shared.lanes.run(lane, Class::Settling, command, locks).await?;
        // Refused: another keeper was faster, and the next pass sees where it stands.
        let Outcome::Epoch { row, how } = outcome else { return Ok(None) };
        self.shared.caches.keep([row.clone()]);
        Ok(Some((row, how)))
    }

    /// Gives up the epochs of a pool's caches: what was accepted is landed, and new ones begin from the authority's
    /// balances. The same again does it again. The epochs that were open.
    pub async fn rebuild_caches(&self, pool: PoolId, signed: Signed) -> Result<Option<usize>, Error> {
        self.check_running()?;
        let Some(known) = self.store().pool(pool).await? else { return Ok(None) };
        let mut drained = 0;
        for bucket in known.buckets {
            let row = self.store().cache_bucket(bucket.key).await?;
            let Some(row) = row.filter(|row| row.state == EpochState::Open) else { continue };
            if self.turn(bucket.key, row.epoch, Turn::Drain, signed.clone()).await?.is_some() {
                self.shared.caches.metrics.drained.of(Drained::Operator).inc();
                drained += 1;
            }
        }
        Ok(Some(drained))
    }

    /// An order met a cache that went back or is another one: nobody waits for the keeper to notice.
    pub(super) fn doubt(&self, bucket: BucketKey, epoch: Epoch) {
        let engine = self.clone();
        tokio::spawn(async move {
            let why = by_node("an order met a cache that went back");
            match engine.turn(bucket, epoch, Turn::Drain, why).await {
                Ok(Some((_, How::Changed))) => {
                    engine.shared.caches.metrics.drained.of(Drained::WentBack).inc();
                }
                // Its keeper, or another order, was faster.
                Ok(Some((_, How::Created | How::Repeated)) | None) => {}
                Err(error) => {
                    tracing::warn!(%error, "a doubtful cache could not be drained; its keeper will");
                }
            }
        });
    }
}

fn by_node(reason: &str) -> Signed {
    Signed::new("cache", reason)
}

impl super::Caches {
    /// One beat of a keeper that has nothing to do, or nothing to do it with.
    #[expect(
        clippy::disallowed_methods,
        reason = "between two looks at servers that tell nothing by themselves"
    )]
    pub(super) async fn rest(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }
}
