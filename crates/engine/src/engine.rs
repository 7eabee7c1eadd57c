//! What the server may ask of the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_core::campaign::{Campaign, Switch};
use holdfast_core::case::Case;
use holdfast_core::command::{How, Outcome};
use holdfast_core::id::PoolId;
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;
use holdfast_metrics::NodeMetrics;
use holdfast_store::{
    CreateKey, KeyRefusal, KeyRow, Page, PoolRow, PutAssortment, PutCampaign, ResolveCase, RevokeKey, Store,
    SwitchCampaign,
};
use tokio::sync::Semaphore;

use crate::asking::StatusSource;
use crate::cache::{Caches, Kept};
use crate::catalog::Catalog;
use crate::config::Config;
use crate::error::Error;
use crate::hashing::Hashing;
use crate::ids::IdSource;
use crate::inflight::InFlight;
use crate::keys::KnownKeys;
use crate::landing::Consumers;
use crate::lanes::{Lanes, Measured, Told};
use crate::measure::Measures;
use crate::queue::Queues;
use crate::rates::Rates;
use crate::reconcile::Reconciling;
use crate::refusals::RecordedRefusals;
use crate::request::Availability;
use crate::shelf::Shelf;
use crate::sinks::{Couriers, Outbox};
use crate::timer::Timer;
use crate::verdicts::Verdicts;
use crate::warm::Warmed;
use crate::watch::Watch;

/// How long couriers may take to write down how far they have come, when the node stops.
const COURIERS_REST: Duration = Duration::from_secs(2);

/// What the engine's parts share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Arc<Config>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) catalog: Catalog,
    pub(crate) in_flight: InFlight,
    pub(crate) keys: KnownKeys,
    pub(crate) rates: Rates,
    pub(crate) hashing: Hashing,
    pub(crate) verdicts: Verdicts,
    pub(crate) refusals: RecordedRefusals,
    pub(crate) timer: Arc<Timer>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) consumers: Consumers,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) couriers: Couriers,
    pub(crate) warmed: Warmed,
    pub(crate) caches: Caches,
    pub(crate) kept: Kept,
    pub(crate) reconciling: Reconciling,
    /// Who can be asked what became of a payment.
    pub(crate) status: OnceLock<Arc<dyn StatusSource>>,
    pub(crate) asking: Arc<Semaphore>,
    /// This run of this node: the holder of its leases, and its own number in routing.
    pub(crate) run: u128,
    draining: AtomicBool,
}

/// The engine. A cheap handle.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

impl Engine {
    /// An engine on a store. Its workers start with [`Engine::start_workers`].
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn IdSource>, config: Config) -> Self {
        let config = Arc::new(config);
        let shelf = Arc::new(Shelf::default());
        let watch = Arc::new(Watch::default());
        let (metrics, measures) = (Arc::<NodeMetrics>::default(), Arc::<Measures>::default());
        let timer = Arc::new(Timer::new(if config.is_worker { config.timer_max } else { 0 }));
        let queues = Arc::new(Queues::new(Arc::clone(&timer)));
        let outbox = Arc::<Outbox>::default();
        let lanes = Lanes::new(
            Arc::clone(&store),
            Arc::clone(&shelf),
            Told { watch: Arc::clone(&watch), queues: Arc::clone(&queues), outbox: Arc::clone(&outbox) },
            Arc::clone(&config),
            Arc::clone(&ids),
            Measured { metrics: Arc::clone(&metrics), measures: Arc::clone(&measures) },
        );
        let shared = Shared {
            store,
            lanes: Arc::new(lanes),
            shelf,
            catalog: Catalog::default(),
            in_flight: InFlight::default(),
            keys: KnownKeys::default(),
            rates: Rates::default(),
            hashing: Hashing::default(),
            verdicts: Verdicts::new(config.verdict_age_max),
            refusals: RecordedRefusals::default(),
            timer,
            watch,
            metrics,
            measures,
            queues,
            consumers: Consumers::default(),
            outbox,
            couriers: Couriers::default(),
            warmed: Warmed::default(),
            caches: Caches::default(),
            kept: Kept::default(),
            reconciling: Reconciling::default(),
            status: OnceLock::new(),
            asking: Arc::new(Semaphore::new(config.asking_max)),
            run: ids.next(),
            ids,
            draining: AtomicBool::new(false),
            config,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Reads every stored key, so that new ones can be told from known ones without asking. Until it is
    /// done they are looked up. Where other nodes write too it is never done: nobody here has seen their keys.
    pub async fn learn_keys(&self) -> Result<(), Error> {
        if self.shared.store.is_shared() {
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = Page { after: after.take(), limit: self.shared.config.key_page_max };
            let (keys, more) = self.shared.store.order_keys(page).await?;
            self.shared.keys.keep_all(&keys);
            after = keys.into_iter().last();
            if !more {
                self.shared.keys.complete();
                return Ok(());
            }
        }
    }

    /// Reads: lists, single rows, the ledger. They never change anything.
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    pub(crate) fn check_running(&self) -> Result<(), Error> {
        if self.is_draining() { Err(Error::ShuttingDown) } else { Ok(()) }
    }

    /// Counts how a command was answered.
    pub(crate) fn counted(&self, answer: Result<Outcome, Error>) -> Result<Outcome, Error> {
        match &answer {
            Ok(outcome) => self.shared.metrics.answered(outcome),
            Err(error) => self.shared.metrics.failed.of(error.into()).inc(),
        }
        answer
    }

    /// Creates or changes a campaign; whether it is new.
    pub async fn put_campaign(&self, put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error> {
        self.check_running()?;
        let put = self.shared.store.put_campaign(put).await?;
        self.catalog_changed().await;
        Ok(put)
    }

    /// Changes a campaign's location order or a bundle: from its answer on no node sells by what was before.
    pub async fn put_assortment(
        &self,
        put: PutAssortment,
    ) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error> {
        self.check_running()?;
        let put = self.shared.store.put_assortment(put).await?;
        self.catalog_changed().await;
        Ok(put)
    }

    /// Sets a switch on a campaign. From its answer on it holds exactly.
    pub async fn switch_campaign(
        &self,
        switch: SwitchCampaign,
    ) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
        self.check_running()?;
        let is_close = switch.switch == Switch::Close;
        let switched = self.shared.store.switch_campaign(switch).await?;
        self.catalog_changed().await;
        if let Ok(campaign) = &switched
            && is_close
            && campaign.unsold_to.is_some()
        {
            self.move_after_closing(&campaign.id).await;
        }
        Ok(switched)
    }

    /// Decides on a case. From its answer on it holds exactly.
    pub(crate) async fn resolve_case(&self, resolve: ResolveCase) -> Result<Result<Case, Refusal>, Error> {
        self.check_running()?;
        Ok(self.shared.store.resolve_case(resolve).await?)
    }

    /// Makes a key.
    pub async fn create_key(&self, create: CreateKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        self.check_running()?;
        Ok(self.shared.store.create_key(create).await?)
    }

    /// Revokes a key. From its answer on it opens nothing, where the store is asked.
    pub async fn revoke_key(&self, revoke: RevokeKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        self.check_running()?;
        Ok(self.shared.store.revoke_key(revoke).await?)
    }

    /// A pool's stock for display; `None` if there is no such pool. Reads the authority at most once in
    /// `shelf_age_max` a pool, however many ask.
    pub async fn availability(&self, pool: PoolId) -> Result<Option<Availability>, Error> {
        let now = self.shared.store.now();
        let seen = self.shared.shelf.remaining_of_known(pool);
        if let Some((available, as_of)) = seen
            && (!self.is_old(as_of, now) || !self.shared.shelf.begin_refresh(pool))
        {
            return Ok(Some(availability(available, as_of, now, "node")));
        }
        let Some(row) = self.refresh(pool).await? else { return Ok(None) };
        let available = row.buckets.iter().map(|b| b.available).sum();
        Ok(Some(availability(available, now, self.shared.store.now(), "authority")))
    }

    /// Whether what the shelf saw then must be read anew.
    pub(crate) fn is_old(&self, as_of: Timestamp, now: Timestamp) -> bool {
        now > as_of.plus(self.shared.config.shelf_age_max)
    }

    /// Reads a pool anew for the shelf.
    pub(crate) async fn refresh(&self, pool: PoolId) -> Result<Option<PoolRow>, Error> {
        let now = self.shared.store.now();
        match self.shared.store.pool(pool).await {
            Ok(Some(row)) => {
                self.keep_on_shelf(&row, now);
                Ok(Some(row))
            }
            Ok(None) => {
                self.shared.shelf.forget(pool);
                Ok(None)
            }
            Err(error) => {
                self.shared.shelf.end_refresh(pool);
                Err(error.into())
            }
        }
    }

    /// Whether the node takes new work now; else why not.
    pub fn readiness(&self) -> Result<(), Error> {
        self.check_running()?;
        self.shared.store.health()?;
        self.shared.store.outage().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Stops taking new work and lets the lanes finish. Returns when they have, or at the deadline.
    pub async fn drain(&self, deadline: Duration) -> Result<(), Error> {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.shared.timer.wake();
        self.shared.queues.wake();
        self.shared.caches.wake();
        self.shared.reconciling.wake();
        self.shared.watch.close();
        let drained = self.shared.lanes.drained(deadline).await;
        self.shared.outbox.wake();
        self.couriers_rest(COURIERS_REST).await;
        self.give_up_leases().await;
        drained
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }
}

fn availability(available: u64, as_of: Timestamp, now: Timestamp, source: &'static str) -> Availability {
    let age_us = u64::try_from(now.0.saturating_sub(as_of.0)).unwrap_or(0);
    Availability { available, as_of, age_ms: age_us / 1_000, source }
}
