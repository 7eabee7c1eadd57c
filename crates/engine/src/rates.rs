//! How many orders a second the node lets in, of an account and of a campaign. Checked before anything else,
//! so that a flood costs a look into memory. The generic cell rate algorithm: of each key only the time is kept
//! at which it will have used up nothing, so a key that is quiet for a second need not be kept at all.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::campaign::Campaign;
use holdfast_core::id::Account;
use holdfast_core::time::Timestamp;

/// Parts of the table, so that those who come at the same time seldom wait for each other.
const PARTS: usize = 64;
/// Most keys of a part that are not quiet: over a million in all, some 30 MiB. Who comes beyond it is refused.
const PART_KEYS_MAX: usize = 16_384;
/// How often a full part is looked through for keys that are quiet, in nanoseconds.
const SWEEP_NS: i64 = 100_000_000;
/// A key may use a second's worth at once.
const BURST_NS: i64 = 1_000_000_000;

#[derive(Default)]
struct Part {
    /// By the key's hash: when it will have used up nothing.
    free_at_ns: HashMap<u64, i64>,
    swept_at_ns: i64,
}

/// The rates of a node.
pub(crate) struct Rates {
    parts: Vec<Mutex<Part>>,
    hasher: RandomState,
}

impl Default for Rates {
    fn default() -> Self {
        let parts = (0..PARTS).map(|_| Mutex::default()).collect();
        Self { parts, hasher: RandomState::new() }
    }
}

impl Rates {
    /// Lets one order in, or says when to come back.
    pub(crate) fn admit(
        &self,
        campaign: &Campaign,
        account: &Account,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let now_ns = now.0.saturating_mul(1_000);
        let of_account = campaign.policy.order_rate_per_account;
        let key = (&campaign.id, Some(account));
        if let Some(rate) = of_account {
            self.take(&key, rate, now_ns)?;
        }
        let Some(rate) = campaign.policy.order_rate else { return Ok(()) };
        let taken = self.take(&(&campaign.id, None::<&Account>), rate, now_ns);
        if let (Err(_), Some(rate)) = (&taken, of_account) {
            // Who was not let in has used up nothing.
            self.give_back(&key, rate);
        }
        taken
    }

    /// The hash of a key, and the part that has it.
    fn part(&self, key: &impl Hash) -> Option<(u64, std::sync::MutexGuard<'_, Part>)> {
        let hash = self.hasher.hash_one(key);
        // The table takes its buckets from the lower half.
        let number = usize::try_from(hash >> 32).unwrap_or(0) % PARTS;
        let part = self.parts.get(number)?;
        Some((hash, part.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn take(&self, key: &impl Hash, rate: u32, now_ns: i64) -> Result<(), Duration> {
        let Some((hash, mut part)) = self.part(key) else { return Ok(()) };
        part.take(hash, step_ns(rate), now_ns)
    }

    fn give_back(&self, key: &impl Hash, rate: u32) {
        let Some((hash, mut part)) = self.part(key) else { return };
        if let Some(free_at) = part.free_at_ns.get_mut(&hash) {
            *free_at = free_at.saturating_sub(step_ns(rate));
        }
    }
}

impl Part {
    fn take(&mut self, hash: u64, step: i64, now_ns: i64) -> Result<(), Duration> {
        let most = now_ns.saturating_add(BURST_NS);
        let known = self.free_at_ns.get(&hash).copied();
        // Later than that no key is ever free: the clock was set back, and keeps nobody out.
        let free_at = known.filter(|at| *at <= most).unwrap_or(now_ns).max(now_ns);
        let after = free_at.saturating_add(step);
        if after > most {
            return Err(Duration::from_nanos(u64::try_from(after.saturating_sub(most)).unwrap_or(0)));
        }
        if known.is_none() && self.is_full(now_ns) {
            return Err(Duration::from_secs(1));
        }
        self.free_at_ns.insert(hash, after);
        Ok(())
    }

    /// Whether there is no room for another key, after those that are quiet were dropped.
    fn is_full(&mut self, now_ns: i64) -> bool {
        if self.free_at_ns.len() < PART_KEYS_MAX {
            return false;
        }
        if now_ns.saturating_sub(self.swept_at_ns).unsigned_abs() < SWEEP_NS.unsigned_abs() {
            return true;
        }
        self.swept_at_ns = now_ns;
        self.free_at_ns.retain(|_, free_at| *free_at > now_ns);
        self.free_at_ns.len() >= PART_KEYS_MAX
    }
}

/// What one order uses up of the second.
fn step_ns(rate: u32) -> i64 {
    BURST_NS.checked_div(i64::from(rate)).unwrap_or(BURST_NS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::campaign::{Policy, Switches};
    use holdfast_core::id::CampaignId;
    use holdfast_core::limit::Ceilings;

    fn campaign(rate: Option<u32>, per_account: Option<u32>) -> Campaign {
        let policy = Policy { order_rate: rate, order_rate_per_account: per_account, ..Policy::default() };
        Campaign {
            id: CampaignId::new("c").unwrap(),
            name: "c".into(),
            starts_at: None,
            ends_at: None,
            policy,
            switches: Switches::default(),
            ceilings: Ceilings::default(),
            assortment: Default::default(),
            unsold_to: None,
            warm_asked_at: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_700_000_000_000_000 + ms * 1_000)
    }

    fn let_in(rates: &Rates, campaign: &Campaign, account: &str, ms: i64, times: usize) -> usize {
        let account = Account::new(account).unwrap();
        (0..times).filter(|_| rates.admit(campaign, &account, at(ms)).is_ok()).count()
    }

    #[test]
    fn a_second_s_worth_at_once_and_then_the_rate() {
        let (rates, campaign) = (Rates::default(), campaign(None, Some(4)));
        assert_eq!(let_in(&rates, &campaign, "a", 0, 9), 4);
        let ann = Account::new("a").unwrap();
        assert_eq!(rates.admit(&campaign, &ann, at(0)), Err(Duration::from_millis(250)));
        assert_eq!(let_in(&rates, &campaign, "a", 249, 9), 0);
        assert_eq!(let_in(&rates, &campaign, "a", 250, 9), 1);
        assert_eq!(let_in(&rates, &campaign, "a", 1_000, 9), 3);
        assert_eq!(let_in(&rates, &campaign, "b", 1_000, 9), 4, "others have their own");
        assert_eq!(let_in(&rates, &campaign, "a", 9_000, 9), 4, "what is not used does not add up");
    }

    #[test]
    fn whom_the_campaign_does_not_let_in_has_used_up_nothing() {
        let (rates, campaign) = (Rates::default(), campaign(Some(1), Some(2)));
        assert_eq!(let_in(&rates, &campaign, "a", 0, 1), 1);
        assert_eq!(let_in(&rates, &campaign, "b", 0, 5), 0);
        let without = super::tests::campaign(None, Some(2));
        assert_eq!(let_in(&rates, &without, "b", 0, 5), 2);
    }

    #[test]
    fn a_clock_set_back_keeps_nobody_out() {
        let (rates, campaign) = (Rates::default(), campaign(None, Some(2)));
        assert_eq!(let_in(&rates, &campaign, "a", 3_600_000, 2), 2);
        assert_eq!(let_in(&rates, &campaign, "a", 0, 3), 2);
        assert_eq!(let_in(&rates, &campaign, "a", 499, 3), 0);
    }

    #[test]
    fn quiet_keys_are_dropped_and_loud_ones_bounded() {
        let mut part = Part::default();
        part.free_at_ns.extend((0..PART_KEYS_MAX as u64).map(|key| (key, 5 * SWEEP_NS)));
        assert!(part.is_full(2 * SWEEP_NS));
        assert!(part.is_full(2 * SWEEP_NS + 1), "it is not looked through for every order");
        assert!(!part.is_full(6 * SWEEP_NS));
        assert!(part.free_at_ns.is_empty());
    }
}
