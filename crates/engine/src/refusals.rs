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

/// Leave to record one refusal.
pub(crate) struct Reserved {
    minute: i64,
    key: (CampaignId, Account),
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

    /// Reserves one more record, so that orders under way at the same time cannot record more together;
    /// none if there is none left.
    pub(crate) fn reserve(
        &self,
        campaign: &CampaignId,
        account: &Account,
        now: Timestamp,
        max: u32,
    ) -> Option<Reserved> {
        let mut counts = self.counts(now);
        let key = (campaign.clone(), account.clone());
        let known = counts.recorded.get(&key).copied();
        let fits = known.unwrap_or(0) < max && (known.is_some() || counts.recorded.len() < ACCOUNTS_MAX);
        if !fits {
            return None;
        }
        let reserved = Reserved { minute: counts.minute, key: key.clone() };
        counts.recorded.insert(key, known.unwrap_or(0).saturating_add(1));
        Some(reserved)
    }

    /// Gives back what was reserved and not used. In another minute it is gone already.
    pub(crate) fn give_back(&self, reserved: &Reserved) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.minute != reserved.minute {
            return;
        }
        match counts.recorded.get_mut(&reserved.key) {
            Some(recorded) if *recorded > 1 => *recorded = recorded.saturating_sub(1),
            Some(_) => drop(counts.recorded.remove(&reserved.key)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_may_record_so_many_a_minute() {
        let refusals = RecordedRefusals::default();
        let campaign = CampaignId::new("c").unwrap();
        let now = Timestamp(MINUTE_US);
        let reserve =
            |account: &str, now| refusals.reserve(&campaign, &Account::new(account).unwrap(), now, 2);
        let (first, second) = (reserve("a", now).unwrap(), reserve("a", now));
        assert!(second.is_some() && reserve("a", now).is_none());
        assert!(reserve("b", now).is_some());
        refusals.give_back(&first);
        assert!(reserve("a", now).is_some() && reserve("a", now).is_none());
        // What was reserved in a minute that is over gives nothing to the next.
        let next = Timestamp(2 * MINUTE_US);
        assert!(reserve("a", next).is_some() && reserve("a", next).is_some());
        refusals.give_back(&first);
        assert!(reserve("a", next).is_none());
    }
}
