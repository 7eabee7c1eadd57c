//! Floors and ceilings, in the same run: what the database alone does with the same rows, and what HTTP alone
//! does with the same requests.

use std::time::Duration;

use anyhow::Result;

use super::engine;
use super::load::{self, Pace, Requests};
use super::stage::{Stage, directory};

/// The route that parses the same body behind the same middleware and answers with a fixed order.
pub(crate) const CONSTANT_PATH: &str = "/v1/bench/constant";
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
pub(crate) fn bare(stage: &Stage, seconds: Duration, seed: u64) -> Result<(f64, f64)> {
    let directory = directory()?;
    let Stage::Sqlite = stage;
    tokio::task::block_in_place(|| {
        let inserts = engine::bare_insert_rps(directory.path(), seconds, seed)?;
        Ok((inserts, engine::one_row_tps(directory.path(), seconds)?))
    })
}
