//! Floors and ceilings, in the same run: what the database alone does with the same rows, and what HTTP alone
//! does with the same requests.

use std::time::{Duration, Instant};

use anyhow::Result;
use holdfast_core::campaign::Policy;
use holdfast_postgres::{Address, BareTables};

use super::engine::{self, BARE_COMMITS, Sale};
use super::load::{self, Pace, Requests};
use super::stage::{Stage, directory};
use crate::database::Url;
use crate::serve::random_id;

/// The route that parses the same body behind the same middleware and answers with a fixed order.
pub(crate) const CONSTANT_PATH: &str = "/v1/bench/constant";
/// Connections that take from the one row at the same time, where the database lets more than one write.
const TAKERS: usize = 16;
/// Most connections of direct transactions: a server lets about a hundred in, and more would only wait.
const DIRECT_CONNECTIONS_MAX: usize = 64;
/// Rows that direct transactions are spread over.
const SPREAD_ROWS: i32 = 16;
/// More holds a second than direct transactions can do.
const DIRECT_MAX: f64 = 20_000.0;

/// Answers a second, with nothing behind them.
pub(crate) async fn constant_http_rps(
    stage: &Stage,
    connections: usize,
    seconds: Duration,
    seed: u64,
) -> Result<f64> {
    let server = stage.server().await?;
    let requests = Requests {
        addresses: vec![server.host().to_owned()],
        path: CONSTANT_PATH,
        campaign: "bench".to_owned(),
        sku: "CUP",
        skus: 1,
        status: 201,
        instead: None,
        seed,
    };
    let measured = load::run(requests, connections, Pace::Closed, seconds).await?;
    server.stop().await?;
    Ok(measured.rps)
}

/// Holds a second at the engine, by callers that are no clients.
pub(crate) async fn engine_holds_rps(stage: &Stage, seconds: Duration, seed: u64) -> Result<f64> {
    let directory = directory()?;
    let store = Url::parse(&stage.empty(&directory).await?)?.open(random_id()?).await?;
    let sale = Sale::open_on(store, &Policy::default()).await?;
    let rps = sale.place(u64::MAX - engine::CALLERS, seconds, seed).await?;
    sale.close().await?;
    Ok(rps)
}

/// What the database does by itself.
pub(crate) struct Bare {
    /// Holds a second, 1,000 a transaction, on one connection.
    pub(crate) inserts: f64,
    /// Conditional updates of one row a second, each its own transaction.
    pub(crate) one_row: f64,
    /// Holds a second, each its own transaction as an application would write it, all from one row.
    pub(crate) direct: f64,
    /// The same from 16 rows; none where only one can write.
    pub(crate) direct_spread: Option<f64>,
    /// One hold in one transaction, alone.
    pub(crate) commit_p99_ms: f64,
}

/// Measures it; direct transactions over so many connections.
pub(crate) async fn bare(stage: &Stage, connections: usize, seconds: Duration, seed: u64) -> Result<Bare> {
    let directory = directory()?;
    match stage {
        Stage::Sqlite => tokio::task::block_in_place(|| {
            let commits = engine::bare_commits(directory.path(), BARE_COMMITS, seed)?;
            let total = Duration::from_micros(commits.iter().sum());
            Ok(Bare {
                inserts: engine::bare_insert_rps(directory.path(), seconds, seed)?,
                one_row: engine::one_row_tps(directory.path(), seconds)?,
                direct: f64::from(u32::try_from(commits.len())?) / total.as_secs_f64(),
                direct_spread: None,
                commit_p99_ms: load::percentile(&commits, 99.0) / 1e3,
            })
        }),
        Stage::Private(..) | Stage::Given(_) => {
            let address = Address::parse(&stage.empty(&directory).await?)?;
            let mut tables = BareTables::create(&address, random_id()?).await?;
            let mut random = fastrand::Rng::with_seed(seed);
            let mut commits = Vec::with_capacity(BARE_COMMITS);
            for _ in 0..BARE_COMMITS {
                let hold = engine::holds(&mut random, 1);
                commits.push(u64::try_from(tables.insert(&hold, 1).await?.as_micros())?);
            }
            commits.sort_unstable();
            let (mut count, start) = (0_u32, Instant::now());
            while start.elapsed() < seconds {
                let holds = engine::holds(&mut random, engine::BARE_BATCH);
                tables.insert(&holds, 1).await?;
                count += u32::try_from(holds.len())?;
            }
            let inserts = f64::from(count) / start.elapsed().as_secs_f64();
            let connections = connections.min(DIRECT_CONNECTIONS_MAX);
            let mut direct = [0.0; 2];
            for (rate, rows) in direct.iter_mut().zip([1, SPREAD_ROWS]) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
                let most = (DIRECT_MAX * seconds.as_secs_f64()) as usize;
                let holds = engine::holds(&mut random, most);
                *rate = tables.direct_tps(&address, connections, rows, holds, seconds).await?;
            }
            let [direct, spread] = direct;
            Ok(Bare {
                inserts,
                one_row: tables.one_row_tps(&address, TAKERS, seconds).await?,
                direct,
                direct_spread: Some(spread),
                commit_p99_ms: load::percentile(&commits, 99.0) / 1e3,
            })
        }
    }
}
