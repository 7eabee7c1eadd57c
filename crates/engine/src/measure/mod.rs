//! What the node shows of itself: numbers that are put together when somebody asks, and a bounded look at the
//! authority now and then. By pool only for the busiest; the rest are summed. Everything by pool is a gauge:
//! a counter that moved between the shown and the summed would seem to run backwards.

mod busiest;
mod counts;
mod samples;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::case::CaseState;
use holdfast_core::id::PoolId;
use holdfast_core::time::Timestamp;
use holdfast_metrics::{Class, Exposed, Exposition, Kind, Label, NodeMetrics, Rows};
use holdfast_store::{CaseFilter, Error, OpenEnds, Page};
use tokio::time::MissedTickBehavior;

pub(crate) use busiest::{Busiest, Busy};
pub use counts::Counts;
pub(crate) use samples::Samples;
pub use samples::{Sample, Times};

use crate::engine::Engine;
use crate::shelf::{PoolSeen, Units};

/// How often the authority is looked at for what no node knows by itself.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Most ends of orders that are counted in one look.
const OPEN_ENDS_MAX: u64 = 100_000;
/// Most cases that are counted in one look.
const CASES_MAX: usize = 500;
/// Most buckets that are shown one by one, over all pools that are shown.
const BUCKETS_SHOWN_MAX: usize = 512;
/// The label of the sum of those that are not shown one by one.
const REST: &str = "rest";

/// What the engine keeps for those who look at it.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    pub(crate) busiest: Busiest,
    pub(crate) samples: Samples,
    ends: Mutex<Option<OpenEnds>>,
}

impl Measures {
    fn ends(&self) -> Option<OpenEnds> {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// What the node counts.
    pub fn metrics(&self) -> &Arc<NodeMetrics> {
        &self.shared.metrics
    }

    /// Every part of the engine and of its store that shows metrics.
    pub fn exposed(&self) -> Vec<Arc<dyn Exposed>> {
        let store: Arc<dyn Exposed> = Arc::clone(self.store().metrics()) as _;
        let node: Arc<dyn Exposed> = Arc::clone(&self.shared.metrics) as _;
        let caches: Arc<dyn Exposed> = Arc::clone(&self.shared.caches.metrics) as _;
        let reconciling: Arc<dyn Exposed> = Arc::clone(&self.shared.reconciling.metrics) as _;
        vec![node, store, caches, reconciling, Arc::new(View(self.clone()))]
    }

    /// The worker: one bounded look at a time, ends when the engine drains.
    pub(crate) async fn run_looking(&self) {
        let mut every = tokio::time::interval(LOOK_INTERVAL);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_draining() {
            every.tick().await;
            if let Err(error) = self.look().await {
                tracing::debug!(%error, "the authority could not be looked at");
            }
        }
    }

    /// Looks at what no node knows by itself: open holds of all nodes, open cases.
    pub async fn look(&self) -> Result<(), Error> {
        let ends = self.store().open_ends(self.store().now(), OPEN_ENDS_MAX).await?;
        *self.shared.measures.ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(ends);
        let open = CaseFilter { state: Some(CaseState::Open), ..CaseFilter::default() };
        let (cases, _) = self.store().cases(open, Page { after: None, limit: CASES_MAX }).await?;
        self.shared.metrics.cases_open.set(cases.len());
        Ok(())
    }
}

/// The engine as it is when somebody asks.
struct View(Engine);

fn one(value: f64) -> Rows<f64> {
    let mut rows = Rows::new(Kind::Gauge, &[]);
    rows.add(&[], value);
    rows
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn of_count(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn of_units(units: u64) -> f64 {
    units as f64
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn seconds_between(earlier: Timestamp, later: Timestamp) -> f64 {
    later.0.saturating_sub(earlier.0).max(0) as f64 / 1e6
}

impl Exposed for View {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        self.expose_queues(out)?;
        self.expose_ends(out)?;
        self.0.shared.couriers.figures.expose(self.0.store().now(), out)?;
        self.expose_pools(out)
    }
}

impl View {
    fn expose_queues(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let shared = &self.0.shared;
        let seen = shared.lanes.seen();
        let mut depth = Rows::new(Kind::Gauge, &[Class::NAME]);
        let mut age = Rows::new(Kind::Gauge, &[Class::NAME]);
        for (class, (commands, oldest)) in Class::VALUES.iter().zip(seen.depth.iter().zip(seen.oldest)) {
            depth.add(&[class.text()], of_count(*commands));
            age.add(&[class.text()], oldest.as_secs_f64());
        }
        out.add("holdfast_lanes_alive", "Lanes with work.", &one(of_count(seen.alive)))?;
        out.add("holdfast_lane_depth_commands", "Commands that wait in lanes.", &depth)?;
        out.add("holdfast_lane_oldest_age_seconds", "How long the oldest command of any lane waits.", &age)?;
        let queues = shared.queues.seen();
        out.add(
            "holdfast_queue_depth_orders",
            "Orders that wait in queues, as far as this node knows them.",
            &one(of_count(queues.depth)),
        )?;
        let oldest = queues.oldest.map_or(0.0, |taken_in| seconds_between(taken_in, self.0.store().now()));
        out.add("holdfast_queue_oldest_age_seconds", "How long the oldest of them waits.", &one(oldest))?;
        out.add(
            "holdfast_entry_keys_in_flight",
            "Order keys that are being placed now.",
            &one(of_count(shared.in_flight.count())),
        )?;
        out.add(
            "holdfast_watchers",
            "Requests that wait for an order to change.",
            &one(of_count(self.0.watchers())),
        )?;
        out.add(
            "holdfast_expiry_timer_orders",
            "Ends of orders that the timer of this node remembers.",
            &one(of_count(shared.timer.count())),
        )?;
        out.add(
            "holdfast_expiry_set_aside_orders",
            "Orders whose expiry failed or had nothing to do, and is not tried again yet.",
            &one(of_count(shared.timer.aside_count())),
        )
    }

    fn expose_ends(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let ends = self.0.shared.measures.ends();
        let mut open = Rows::new(Kind::Gauge, &["ends_within"]);
        let mut before = 0;
        let steps = ["overdue", "1m", "5m", "15m", "1h"];
        if let Some(ends) = ends {
            for (step, count) in steps.iter().zip(ends.within) {
                open.add(&[step], of_units(count.saturating_sub(before)));
                before = count;
            }
            open.add(&["later"], of_units(ends.all.saturating_sub(before)));
        }
        out.add(
            "holdfast_holds_open_orders",
            "Orders of all nodes that are held, in review or queued, by when that ends; read every 5 s, counted up \
             to 100,000.",
            &open,
        )?;
        let overdue = ends.and_then(|ends| ends.earliest);
        let overdue = overdue.map_or(0.0, |earliest| seconds_between(earliest, self.0.store().now()));
        out.add(
            "holdfast_expiry_overdue_seconds",
            "How long the longest overdue order of all nodes is; read every 5 s.",
            &one(overdue),
        )
    }

    fn expose_pools(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let shared = &self.0.shared;
        let now = self.0.store().now();
        let busy = shared.measures.busiest.most(shared.config.metrics_pools_max, now);
        let ids: Vec<PoolId> = busy.iter().map(|busy| busy.pool).collect();
        let (seen, all) = shared.shelf.seen(&ids);
        let campaigns = shared.catalog.campaigns_of(&ids);
        let depths = shared.lanes.seen().of_pools;
        let mut rows = PoolRows::default();
        let mut shown = Units::default();
        for Busy { pool, rate } in busy {
            let campaign = campaigns.get(&pool).map_or("", |campaign| campaign.as_str());
            let depth = depths.get(&pool).copied().unwrap_or(0);
            let Some(seen) = seen.get(&pool) else { continue };
            shown.add(&seen.units());
            rows.add(campaign, pool, seen, now, rate, depth);
        }
        rows.add_rest(&all.units.less(&shown), all.pools.saturating_sub(rows.pools));
        rows.expose(out)
    }
}

const BY_POOL: &[&str] = &["campaign", "pool"];
const BY_POOL_AND_KIND: &[&str] = &["campaign", "pool", "kind"];

/// The rows of the pools that are shown.
struct PoolRows {
    pools: usize,
    unseen: usize,
    units: Rows<f64>,
    rate: Rows<f64>,
    depth: Rows<f64>,
    age: Rows<f64>,
    skew: Rows<f64>,
    buckets: Rows<f64>,
    buckets_shown: usize,
}

impl Default for PoolRows {
    fn default() -> Self {
        let by_pool = || Rows::new(Kind::Gauge, BY_POOL);
        Self {
            pools: 0,
            unseen: 0,
            units: Rows::new(Kind::Gauge, BY_POOL_AND_KIND),
            rate: by_pool(),
            depth: by_pool(),
            age: by_pool(),
            skew: by_pool(),
            buckets: Rows::new(Kind::Gauge, &["pool", "bucket", "kind"]),
            buckets_shown: 0,
        }
    }
}

impl PoolRows {
    fn add(
        &mut self,
        campaign: &str,
        pool: PoolId,
        seen: &PoolSeen,
        now: Timestamp,
        rate: f64,
        depth: usize,
    ) {
        let pool = pool.to_string();
        let labels = [campaign, &pool];
        for (kind, units) in seen.units().named() {
            self.units.add(&[campaign, &pool, kind], of_units(units));
        }
        self.rate.add(&labels, rate);
        self.depth.add(&labels, of_count(depth));
        self.age.add(&labels, seconds_between(seen.as_of, now));
        self.skew.add(&labels, skew(seen));
        if self.buckets_shown.saturating_add(seen.buckets.len()) <= BUCKETS_SHOWN_MAX {
            self.buckets_shown += seen.buckets.len();
            for (number, units) in &seen.buckets {
                for (kind, units) in units.named() {
                    self.buckets.add(&[&pool, &number.to_string(), kind], of_units(units));
                }
            }
        }
        self.pools += 1;
    }

    fn add_rest(&mut self, units: &Units, pools: usize) {
        self.unseen = pools;
        for (kind, units) in units.named() {
            self.units.add(&[REST, REST, kind], of_units(units));
        }
    }

    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_pool_units",
            "Units of the busiest pools as this node last saw them, by what they are; the other pools that it \
             has seen are summed under `rest`.",
            &self.units,
        )?;
        out.add(
            "holdfast_pool_rest_pools",
            "Pools that this node has seen and that are not shown one by one.",
            &one(of_count(self.unseen)),
        )?;
        out.add(
            "holdfast_pool_commands_per_second",
            "Committed commands of the busiest pools on this node, over the last ten seconds or so.",
            &self.rate,
        )?;
        out.add("holdfast_pool_lane_depth_commands", "Commands that wait in the pool's lanes.", &self.depth)?;
        out.add(
            "holdfast_pool_seen_age_seconds",
            "How old that is what the node knows of all the pool's buckets.",
            &self.age,
        )?;
        out.add(
            "holdfast_pool_bucket_skew_ratio",
            "The fullest bucket over the mean of the pool's buckets: 1 is even, 0 is empty.",
            &self.skew,
        )?;
        out.add(
            "holdfast_bucket_units",
            "Units of the buckets of the busiest pools, at most 512 buckets.",
            &self.buckets,
        )
    }
}

/// The fullest bucket over the mean.
fn skew(seen: &PoolSeen) -> f64 {
    let fullest = seen.buckets.iter().map(|(_, units)| units.available).max().unwrap_or(0);
    let sum = seen.units().available;
    if sum == 0 { 0.0 } else { of_units(fullest) * of_count(seen.buckets.len()) / of_units(sum) }
}
