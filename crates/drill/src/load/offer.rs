//! What the load itself can offer: buyers who only place, against an answer that costs the server next to nothing.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::{Load, Share, Way};
use crate::history::Answered;
use crate::sale::Sale;
use crate::scenario::Scenario;

/// The route of the constant answer: a server has it that was started with `--constant-answer`.
const CONSTANT: &str = "/v1/bench/constant";

/// How many buyers wait for each connection: enough that none is idle, and few enough that they cost nothing themselves.
const BUYERS_A_CONNECTION: usize = 2;

/// What is tried.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The base address of each node.
    pub nodes: Vec<String>,
    /// The key, where they want one.
    pub key: Option<String>,
    /// Whom nodes behind `https://` may be vouched for by, in PEM form.
    pub ca_pem: Option<Vec<u8>>,
    /// Most connections.
    pub connections: usize,
    /// How long, in seconds.
    pub seconds: u32,
    /// How many orders in a second.
    pub orders_a_second: f64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Offered {
    /// Orders that were due in a second.
    pub due_rps: f64,
    /// Orders that were answered in a second.
    pub answered_rps: f64,
    /// Of those, answers that were not what they should be.
    pub failed: u64,
    /// By how much 99 of 100 orders were late for want of the load itself, in microseconds.
    pub late_p99_us: u64,
    /// Whether the load was itself the limit.
    pub is_limit: bool,
}

impl Offer {
    /// Tries it.
    pub async fn run(self) -> Result<Offered> {
        let pace = (self.seconds, self.orders_a_second);
        let sale = Sale::new(&Scenario::PLACING, None, "offer".to_owned(), 1, pace);
        let way = Way {
            nodes: self.nodes,
            key: self.key,
            ca_pem: self.ca_pem,
            connections: self.connections,
            buyers_max: self.connections.saturating_mul(BUYERS_A_CONNECTION),
            place_path: CONSTANT,
        };
        let load = Load::new(sale, &way, Share::WHOLE)?;
        let time = Duration::from_secs(self.seconds.into());
        let pace = {
            let mut run = std::pin::pin!(load.run());
            tokio::select! {
                pace = &mut run => pace?,
                () = tokio::time::sleep_until((std::time::Instant::now() + time).into()) => {
                    load.stop();
                    load.end();
                    run.await?
                }
            }
        };
        let history = load.into_history();
        let end_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let in_time = history.iter().filter(|exchange| exchange.ended_ns <= end_ns);
        let failed =
            history.iter().filter(|exchange| !matches!(exchange.answered, Answered::Order(_))).count();
        let a_second =
            |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64();
        Ok(Offered {
            due_rps: a_second(usize::try_from(pace.due)?),
            answered_rps: a_second(in_time.count()),
            failed: u64::try_from(failed)?,
            late_p99_us: pace.late_p99_us,
            is_limit: pace.is_limit(),
        })
    }
}
