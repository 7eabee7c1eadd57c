//! How much of the authority a run takes: a share of the time, so that whoever sells has the rest.

use std::time::{Duration, Instant};

/// Debts below this are carried on: a timer is not finer.
const DEBT_MIN: Duration = Duration::from_millis(5);
/// Longest rest at once: a lease is looked after between two.
const REST_MAX: Duration = Duration::from_secs(1);

/// The pace of a run.
pub(super) struct Pace {
    /// How many percent of the time may be spent asking.
    share_percent: u32,
    debt: Duration,
}

impl Pace {
    pub(super) const fn new(share_percent: u32) -> Self {
        Self { share_percent, debt: Duration::ZERO }
    }

    /// Accounts for a statement that began then, and rests for it.
    pub(super) async fn rest_for(&mut self, begun: Instant) {
        let share = self.share_percent.clamp(1, 100);
        let rest = begun.elapsed().saturating_mul(100_u32.saturating_sub(share)) / share;
        self.debt = self.debt.saturating_add(rest);
        while self.debt >= DEBT_MIN {
            let piece = self.debt.min(REST_MAX);
            self.debt = self.debt.saturating_sub(piece);
            sleep(piece).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a share of the time, measured and paid back")]
async fn sleep(length: Duration) {
    tokio::time::sleep(length).await;
}
