//! Floors and ceilings, in the same run: what the database alone does with the same rows, and what HTTP alone
//! does with the same requests.

use std::time::{Duration, Instant};

use anyhow::Result;
use holdfast_postgres::{Address, BareTables};

use super::engine;
use super::load::{self, Pace, Requests};
use super::stage::{Stage, directory};
use crate::serve::random_id;

/// The route that parses the same body behind the same middleware and answers with a fixed order.
pub(crate) const CONSTANT_PATH: &str = "/v1/bench/constant";
/// Connections that take from the one row at the same time, where the database lets more than one write.
const TAKERS: usize = 16;

/// Answers a second, with nothing behind them.
pub(crate) async fn constant_http_rps(
    stage: &Stage,
    connections: usize,
    seconds: Duration,
    seed: u64,
) -> Result<f64> {
    let server = stage.server().await?;
    let requests = Requests {
        address: server.address().trim_start_matches("http://").to_owned(),
        path: CONSTANT_PATH,
        campaign: "bench".to_owned(),
        sku: "CUP",
        skus: 1,
        status: 201,
        seed,
    };
    let measured = load::run(requests, connections, Pace::Closed, seconds).await?;
    server.stop().await?;
    Ok(measured.rps)
}

/// Holds a second of bare inserts, and conditional updates of one row a second, each in its own transaction.
pub(crate) async fn bare(stage: &Stage, seconds: Duration, seed: u64) -> Result<(f64, f64)> {
    let directory = directory()?;
    match stage {
        Stage::Sqlite => tokio::task::block_in_place(|| {
            let inserts = engine::bare_insert_rps(directory.path(), seconds, seed)?;
            Ok((inserts, engine::one_row_tps(directory.path(), seconds)?))
        }),
        Stage::Private(..) | Stage::Given(_) => {
            let address = Address::parse(&stage.empty(&directory).await?)?;
            let mut tables = BareTables::create(&address, random_id()?).await?;
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut count, start) = (0_u32, Instant::now());
            while start.elapsed() < seconds {
                let holds = engine::holds(&mut random, engine::BARE_BATCH);
                tables.insert(&holds, 1).await?;
                count += u32::try_from(holds.len())?;
            }
            let inserts = f64::from(count) / start.elapsed().as_secs_f64();
            Ok((inserts, tables.one_row_tps(&address, TAKERS, seconds).await?))
        }
    }
}
