//! Buyers at a steady rate, beside something that takes as long as it takes.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinHandle;

use super::load::{self, Measured, Pace, Requests};

/// How long placing is measured at a time while something else goes on.
const SLICE: Duration = Duration::from_secs(1);

/// The buyers.
pub(super) struct Buyers {
    pub(super) requests: Requests,
    pub(super) connections: usize,
    /// Orders a second.
    pub(super) rate: f64,
}

impl Buyers {
    /// Buys for a while. Each turn has order numbers of its own.
    pub(super) async fn buy(&self, duration: Duration, turn: u64) -> Result<Measured> {
        let seed = self.requests.seed.wrapping_add(turn << 32);
        let requests = Requests { seed, ..self.requests.clone() };
        load::run(requests, self.connections, Pace::Open(self.rate), duration).await
    }

    /// Buys until a task is over, from this turn on; what was bought, and what the task came to.
    pub(super) async fn buy_beside<T>(
        &self,
        task: JoinHandle<Result<T>>,
        mut turn: u64,
    ) -> Result<(Measured, T)> {
        let mut meanwhile = Measured::default();
        while !task.is_finished() {
            meanwhile.add(self.buy(SLICE, turn).await?);
            turn += 1;
        }
        Ok((meanwhile, task.await.context("the task died")??))
    }
}
