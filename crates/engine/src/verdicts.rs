//! The verdicts of limits that the node remembers: who was just told that there is no more for them is told
//! again without a transaction, until what they have changes. What is remembered is a refusal that the
//! authority gave; it can keep somebody out a moment too long, never let anybody in.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::campaign::{Campaign, Capture};
use holdfast_core::id::CampaignId;
use holdfast_core::limit::{LimitKeys, Limited, Reached, limited_of, refusal_of_limit};
use holdfast_core::order::Order;
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;

/// Most verdicts remembered; beyond it the authority is asked.
const VERDICTS_MAX: usize = 100_000;
/// Counters of changes; several of those who are limited share one.
const COUNTERS: usize = 1_024;

type Key = (CampaignId, Limited);

/// What somebody may still have.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    /// Units that are left, where too few were.
    units: Option<u64>,
    /// How many open holds there may be, where there are as many.
    open_holds: Option<u64>,
    at: Timestamp,
}

struct Memory {
    verdicts: HashMap<Key, Verdict>,
    /// How often something changed: a verdict that was asked for before a change is not remembered after it.
    changes: Vec<u64>,
}

/// Verdicts of limits.
pub(crate) struct Verdicts {
    memory: Mutex<Memory>,
    hasher: RandomState,
    age_max: Duration,
}

/// When the authority was asked about somebody, in changes.
pub(crate) struct Asked(Vec<(Limited, usize, u64)>);

/// Who wants what, as far as limits are concerned.
pub(crate) struct Wish<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) account: &'a holdfast_core::id::Account,
    pub(crate) keys: &'a LimitKeys,
    pub(crate) units: u64,
}

impl Wish<'_> {
    fn limited(&self) -> impl Iterator<Item = Limited> + '_ {
        limited_of(&self.campaign.policy, self.account, self.keys).map(|(limited, _)| limited)
    }
}

impl Verdicts {
    /// Nothing is remembered longer than `age_max`: other nodes change usage too.
    pub(crate) fn new(age_max: Duration) -> Self {
        let memory = Memory { verdicts: HashMap::new(), changes: vec![0; COUNTERS] };
        Self { memory: Mutex::new(memory), hasher: RandomState::new(), age_max }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counter(&self, campaign: &CampaignId, limited: &Limited) -> usize {
        let hash = self.hasher.hash_one((campaign, limited));
        usize::try_from(hash % COUNTERS as u64).unwrap_or(0)
    }

    /// The refusal that is remembered for this wish.
    pub(crate) fn refusal(&self, wish: &Wish<'_>, now: Timestamp) -> Option<Refusal> {
        if !wish.campaign.policy.limits_anything() {
            return None;
        }
        let memory = self.memory();
        if memory.verdicts.is_empty() {
            return None;
        }
        let opens_hold = wish.campaign.policy.capture == Capture::Hold;
        wish.limited().find_map(|limited| {
            let key = (wish.campaign.id.clone(), limited);
            let verdict = memory.verdicts.get(&key).filter(|known| now <= known.at.plus(self.age_max))?;
            let open = verdict.open_holds.filter(|_| opens_hold).map(|limit| Reached::OpenHolds { limit });
            let units = verdict.units.filter(|left| wish.units > *left);
            let reached = open.or(units.map(|available| Reached::Units { available }))?;
            Some(refusal_of_limit(wish.keys, &key.1, reached, wish.units))
        })
    }

    /// Before the authority is asked.
    pub(crate) fn ask(&self, wish: &Wish<'_>) -> Asked {
        if !wish.campaign.policy.limits_anything() {
            return Asked(Vec::new());
        }
        let memory = self.memory();
        let asked = wish.limited().map(|limited| {
            let counter = self.counter(&wish.campaign.id, &limited);
            (limited, counter, memory.changes.get(counter).copied().unwrap_or(0))
        });
        Asked(asked.collect())
    }

    /// Remembers what the authority said, unless something changed since it was asked.
    pub(crate) fn keep(&self, wish: &Wish<'_>, asked: &Asked, refusal: &Refusal, now: Timestamp) {
        let Some((name, units, open_holds)) = said(refusal, wish.campaign) else { return };
        let is_named = |limited: &Limited| match limited {
            Limited::Account(_) => name.is_none(),
            Limited::Key(known, _) => name == Some(known),
        };
        let Some((limited, counter, changes)) = asked.0.iter().find(|(limited, ..)| is_named(limited)) else {
            return;
        };
        let mut memory = self.memory();
        if memory.changes.get(*counter) != Some(changes) {
            return;
        }
        if memory.verdicts.len() >= VERDICTS_MAX {
            memory.verdicts.retain(|_, known| now <= known.at.plus(self.age_max));
        }
        let key = (wish.campaign.id.clone(), limited.clone());
        if memory.verdicts.len() < VERDICTS_MAX || memory.verdicts.contains_key(&key) {
            memory.verdicts.insert(key, Verdict { units, open_holds, at: now });
        }
    }

    /// What an order counts for has changed: nothing that is remembered of its account and keys holds.
    pub(crate) fn forget(&self, order: &Order) {
        let account = Limited::Account(order.account.clone());
        let keys = order.limit_keys.iter().map(|(name, key)| Limited::Key(name.clone(), *key));
        let mut memory = self.memory();
        for limited in std::iter::once(account).chain(keys) {
            let counter = self.counter(&order.key.campaign, &limited);
            if let Some(changes) = memory.changes.get_mut(counter) {
                *changes = changes.wrapping_add(1);
            }
            if !memory.verdicts.is_empty() {
                memory.verdicts.remove(&(order.key.campaign.clone(), limited));
            }
        }
    }

    /// An order was placed: what is remembered says more than is left.
    pub(crate) fn outdate(&self, wish: &Wish<'_>) {
        if !wish.campaign.policy.limits_anything() {
            return;
        }
        let mut memory = self.memory();
        if !memory.verdicts.is_empty() {
            for limited in wish.limited() {
                memory.verdicts.remove(&(wish.campaign.id.clone(), limited));
            }
        }
    }

    /// The limits themselves may have changed.
    pub(crate) fn forget_all(&self) {
        let mut memory = self.memory();
        memory.verdicts = HashMap::new();
        memory.changes.iter_mut().for_each(|changes| *changes = changes.wrapping_add(1));
    }
}

/// Whose limit a refusal is about (none: the account's), the units left, and the open holds that there may be.
fn said<'r>(
    refusal: &'r Refusal,
    campaign: &Campaign,
) -> Option<(Option<&'r holdfast_core::id::LimitName>, Option<u64>, Option<u64>)> {
    match refusal {
        Refusal::AccountLimit(shortage) => Some((None, Some(shortage.available), None)),
        Refusal::AccountOpenHolds { limit } => Some((None, None, Some(*limit))),
        Refusal::KeyLimit(name, shortage) => Some((Some(name), Some(shortage.available), None)),
        Refusal::KeyOpenHolds(name, _) => {
            let limit = campaign.policy.key_limits.get(name).and_then(|limits| limits.open_holds);
            Some((Some(name), None, Some(limit.unwrap_or(0))))
        }
        Refusal::OrderMismatch(_)
        | Refusal::KeyMismatch(_)
        | Refusal::UnknownCampaign
        | Refusal::UnknownOrder
        | Refusal::UnknownPool
        | Refusal::UnknownCase
        | Refusal::UnknownApproval
        | Refusal::SamePerson
        | Refusal::UnknownSku { .. }
        | Refusal::InvalidValue { .. }
        | Refusal::CampaignClosed
        | Refusal::Halted
        | Refusal::Frozen
        | Refusal::LineFrozen { .. }
        | Refusal::CampaignPaused
        | Refusal::CampaignNotOpen
        | Refusal::QueueFull { .. }
        | Refusal::SoldOut(_)
        | Refusal::QueueTimeout
        | Refusal::AdmissionLost
        | Refusal::Cancelled
        | Refusal::AlreadySold
        | Refusal::AlreadyReleased
        | Refusal::AlreadyFailed
        | Refusal::AlreadyRefunded
        | Refusal::NotHeld
        | Refusal::NotSold
        | Refusal::HoldExpired
        | Refusal::InReview
        | Refusal::RefundExceedsSold(_)
        | Refusal::StockInUse(_)
        | Refusal::Rows(_)
        | Refusal::Conflict(_) => None,
    }
}
