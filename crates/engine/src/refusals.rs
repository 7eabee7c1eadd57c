//! How many refusals are recorded for an account: what a flood of fresh keys may write is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use holdfast_core::id::{Account, CampaignId};
use holdfast_core::time::Timestamp;

/// Most accounts counted in a minute; beyond it nothing is recorded.
const ACCOUNTS_MAX: usize = 100_000;
const MINUTE_US: i64 = 60_000_000;

#[derive(Default)]
struct Counts {
    minute: i64,
    recorded: HashMap<(CampaignId, Account), u32>,
}

/// Counts recorded refusals in minutes of the clock.
#[derive(Default)]
pub(crate) struct RecordedRefusals(Mutex<Counts>);

impl RecordedRefusals {
    fn counts(&self, now: Timestamp) -> std::sync::MutexGuard<'_, Counts> {
        let minute = now.0.div_euclid(MINUTE_US);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.minute != minute {
            *counts = Counts { minute, recorded: HashMap::new() };
        }
        counts
    }

    /// Whether one more may be recorded.
    pub(crate) fn may_record(
        &self,
        campaign: &CampaignId,
        account: &Account,
        now: Timestamp,
        max: u32,
    ) -> bool {
        let counts = self.counts(now);
        let key = (campaign.clone(), account.clone());
        match counts.recorded.get(&key) {
            Some(recorded) => *recorded < max,
            None => max > 0 && counts.recorded.len() < ACCOUNTS_MAX,
        }
    }

    /// One more was recorded.
    pub(crate) fn count(&self, campaign: &CampaignId, account: &Account, now: Timestamp) {
        let mut counts = self.counts(now);
        let recorded = counts.recorded.entry((campaign.clone(), account.clone())).or_insert(0);
        *recorded = recorded.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_may_record_so_many_a_minute() {
        let refusals = RecordedRefusals::default();
        let (campaign, account) = (CampaignId::new("c").unwrap(), Account::new("a").unwrap());
        let now = Timestamp(MINUTE_US);
        for _ in 0..2 {
            assert!(refusals.may_record(&campaign, &account, now, 2));
            refusals.count(&campaign, &account, now);
        }
        assert!(!refusals.may_record(&campaign, &account, now, 2));
        assert!(refusals.may_record(&campaign, &Account::new("b").unwrap(), now, 2));
        assert!(refusals.may_record(&campaign, &account, Timestamp(2 * MINUTE_US), 2));
    }
}
