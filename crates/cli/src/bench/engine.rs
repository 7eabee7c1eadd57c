//! Measurements below HTTP: the engine on the embedded store, and bare inserts into the same tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{OpenPool, Outcome, Signed};
use holdfast_core::id::{Account, CampaignId, Location, Operator, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::stock;
use holdfast_engine::{Config, Engine, PlaceRequest, RequestedLine, UuidV7};
use holdfast_sqlite::{BareTables, Options, SqliteStore};
use holdfast_store::{BareHold, PutCampaign, Store, SwitchCampaign};
use tokio::task::JoinSet;

/// Callers that place at the same time at the engine.
pub(crate) const CALLERS: u64 = 2_048;
/// Bare commits that are timed.
pub(crate) const BARE_COMMITS: usize = 500;
/// Holds of one bare transaction.
pub(crate) const BARE_BATCH: usize = 1_000;
/// The hot pool's stock, which no run exhausts.
pub(crate) const SUPPLY: u64 = 1_000_000_000;

/// Holds a second of the bare tables, in batches on one thread.
pub(crate) fn bare_insert_rps(directory: &Path, duration: Duration, seed: u64) -> Result<f64> {
    let mut tables = BareTables::create(&directory.join("bare.db"))?;
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut count, start) = (0_u32, Instant::now());
    while start.elapsed() < duration {
        let holds = holds(&mut random, BARE_BATCH);
        tables.insert(&holds, 1)?;
        count += u32::try_from(holds.len())?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Latencies of single holds, each in a transaction of its own, in microseconds, sorted.
pub(crate) fn bare_commits(directory: &Path, count: usize, seed: u64) -> Result<Vec<u64>> {
    let mut tables = BareTables::create(&directory.join("commits.db"))?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        let hold = holds(&mut random, 1);
        latencies.push(u64::try_from(tables.insert(&hold, 1)?.as_micros())?);
    }
    latencies.sort_unstable();
    Ok(latencies)
}

/// Conditional updates of one row a second, each in a transaction of its own: what one row gives by itself.
pub(crate) fn one_row_tps(directory: &Path, duration: Duration) -> Result<f64> {
    let mut tables = BareTables::create(&directory.join("row.db"))?;
    let (mut count, start) = (0_u32, Instant::now());
    while start.elapsed() < duration {
        tables.take_one()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// Holds with ids that rise and order numbers that are random, as the store's are.
pub(crate) fn holds(random: &mut fastrand::Rng, count: usize) -> Vec<BareHold> {
    (0..count)
        .map(|_| {
            let number = random.u128(..);
            let id = holdfast_engine::IdSource::next(&UuidV7);
            BareHold {
                id,
                order_no: format!("{number:032x}"),
                account: format!("account-{:08x}", number >> 96),
            }
        })
        .collect()
}

/// An engine on a store with an open campaign and one hot pool.
pub(crate) struct Sale {
    engine: Engine,
    campaign: CampaignId,
    sku: Sku,
    location: Location,
}

impl Sale {
    /// Opens the sale on a database file, new or known, under a policy that holds for a day.
    pub(crate) async fn open(database: &Path, limits: &Policy) -> Result<Self> {
        Self::open_on(Arc::new(SqliteStore::open(database, Options::default())?), limits).await
    }

    /// The same on any store.
    pub(crate) async fn open_on(store: Arc<dyn Store>, limits: &Policy) -> Result<Self> {
        let engine = Engine::new(store, Arc::new(UuidV7), Config::default());
        engine.learn_keys().await?;
        let sale = Self {
            engine,
            campaign: CampaignId::new("bench")?,
            sku: Sku::new("CUP")?,
            location: Location::new("main")?,
        };
        let operator = Operator::new("bench")?;
        let put = PutCampaign {
            id: sale.campaign.clone(),
            name: "bench".into(),
            starts_at: None,
            ends_at: None,
            policy: Policy { hold_seconds: 86_400, hold_seconds_max: 86_400, ..limits.clone() },
            via: None,
        };
        sale.engine.put_campaign(put).await?;
        let switch = SwitchCampaign {
            unsold_to: None,
            id: sale.campaign.clone(),
            switch: Switch::Open,
            operator,
            reason: "bench".into(),
            via: None,
        };
        if sale.engine.switch_campaign(switch).await?.is_err() {
            bail!("the campaign does not open");
        }
        sale.pool(sale.sku.clone(), SUPPLY).await?;
        sale.pool(Sku::new("NONE")?, 0).await?;
        Ok(sale)
    }

    async fn pool(&self, sku: Sku, supply: u64) -> Result<()> {
        let signed = Signed::new("bench", "bench");
        let open = OpenPool {
            id: PoolId(0),
            campaign: self.campaign.clone(),
            sku,
            location: self.location.clone(),
            supply,
            buckets: 1,
            path: stock::Path::Batched,
            routing: stock::Routing::OrderHash,
            signed,
        };
        let outcome = self.engine.open_pool(open).await?;
        if !matches!(outcome, Outcome::Pool { .. }) {
            bail!("the pool does not open: {outcome:?}");
        }
        Ok(())
    }

    /// Places orders by many callers at once, until there are as many or the time is over; holds a second.
    pub(crate) async fn place(&self, most: u64, duration: Duration, seed: u64) -> Result<f64> {
        let (placed, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (engine, placed) = (self.engine.clone(), Arc::clone(&placed));
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(caller));
            let (campaign, sku, location) = (self.campaign.clone(), self.sku.clone(), self.location.clone());
            callers.spawn(async move {
                while placed.fetch_add(1, Ordering::Relaxed) < most && start.elapsed() < duration {
                    let number = random.u128(..);
                    let request = PlaceRequest {
                        key: OrderKey {
                            campaign: campaign.clone(),
                            order_no: OrderNo::new(&format!("{number:032x}"))?,
                        },
                        account: Account::new(&format!("account-{:08x}", number >> 96))?,
                        lines: vec![RequestedLine {
                            sku: sku.clone(),
                            location: Some(location.clone()),
                            quantity: 1,
                        }],
                        hold_seconds: None,
                        amount_due: None,
                        limit_keys: BTreeMap::new(),
                        metadata: None,
                    };
                    let outcome = engine.place(request).await?;
                    if !matches!(outcome, Outcome::Order { .. }) {
                        bail!("an order was not held: {outcome:?}");
                    }
                }
                Ok(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        // Every caller counts once more than it places when it stops.
        let count = placed.load(Ordering::Relaxed).saturating_sub(CALLERS);
        let count = u32::try_from(count).context("too many orders for one measurement")?;
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    }

    /// Finishes what waits and closes the store.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.engine.drain(Duration::from_secs(30)).await?)
    }
}
