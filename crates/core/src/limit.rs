//! Limits: what an account, or another named key that orders carry, may hold and buy in a campaign.

use std::collections::BTreeMap;

use crate::campaign::Policy;
use crate::id::{Account, HashedKey, LimitName};
use crate::order::{Order, Shortage, Usage};
use crate::refusal::Refusal;

/// Most names that a policy may limit, and most keys that an order may carry.
pub const LIMIT_KEYS_MAX: usize = 16;

/// The named keys that an order carries besides its account, hashed.
pub type LimitKeys = BTreeMap<LimitName, HashedKey>;

/// What one account, or one key of a name, may have; none = as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most units held, in review or sold.
    pub units: Option<u64>,
    /// Most orders held or in review.
    pub open_holds: Option<u64>,
}

/// A limit that an order would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// One more open hold than this.
    OpenHolds {
        /// How many there may be.
        limit: u64,
    },
    /// More units than are left.
    Units {
        /// How many it may still have.
        available: u64,
    },
}

impl Limits {
    /// Whether anything is limited.
    pub const fn any(self) -> bool {
        self.units.is_some() || self.open_holds.is_some()
    }

    /// The limit that an order of so many units would exceed, if there is one.
    pub fn reached(self, used: Usage, units: u64, opens_hold: bool) -> Option<Reached> {
        if let Some(limit) = self.open_holds
            && opens_hold
            && used.open_holds >= limit
        {
            return Some(Reached::OpenHolds { limit });
        }
        let limit = self.units?;
        let left = limit.saturating_sub(used.units);
        (units > left).then_some(Reached::Units { available: left })
    }

    /// Whether a usage is more than this allows.
    pub fn exceeded_by(self, used: Usage) -> bool {
        self.units.is_some_and(|most| used.units > most)
            || self.open_holds.is_some_and(|most| used.open_holds > most)
    }

    /// The ceilings after `self` is the ceiling so far and a policy sets `limits` instead of `before`. A
    /// limit that is new begins at itself; what was there is counted and raises it.
    #[must_use]
    pub fn ceiling_after(self, before: Self, limits: Self) -> Self {
        let after = |ceiling: Option<u64>, before: Option<u64>, limit: Option<u64>| match before {
            Some(_) => ceiling.zip(limit).map(|(ceiling, limit)| ceiling.max(limit)),
            None => limit,
        };
        Self {
            units: after(self.units, before.units, limits.units),
            open_holds: after(self.open_holds, before.open_holds, limits.open_holds),
        }
    }

    /// Raises ceilings to what was counted.
    pub fn raise(&mut self, counted: Usage) {
        self.units = self.units.map(|most| most.max(counted.units));
        self.open_holds = self.open_holds.map(|most| most.max(counted.open_holds));
    }

    /// Whether `self` limits something that `before` did not.
    pub const fn adds_to(self, before: Self) -> bool {
        (self.units.is_some() && before.units.is_none())
            || (self.open_holds.is_some() && before.open_holds.is_none())
    }
}

/// The most that limits ever allowed since they are in force: against these INV8 is checked, since a
/// lowered limit does not undo what was sold before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ceilings {
    /// Of an account.
    pub account: Limits,
    /// Of a key of each name.
    pub keys: BTreeMap<LimitName, Limits>,
}

impl Ceilings {
    /// The ceilings after a policy that comes after another; none before: the campaign is new.
    #[must_use]
    pub fn after(&self, before: Option<&Policy>, policy: &Policy) -> Self {
        let account = before.map(Policy::account_limits).unwrap_or_default();
        let of_key = |name: &LimitName, limits: Limits| {
            let known = before.and_then(|before| before.key_limits.get(name)).copied().unwrap_or_default();
            self.keys.get(name).copied().unwrap_or_default().ceiling_after(known, limits)
        };
        Self {
            account: self.account.ceiling_after(account, policy.account_limits()),
            keys: policy
                .key_limits
                .iter()
                .map(|(name, limits)| (name.clone(), of_key(name, *limits)))
                .collect(),
        }
    }

    /// What bounds this usage row.
    pub fn of(&self, limited: &Limited) -> Limits {
        match limited {
            Limited::Account(_) => self.account,
            Limited::Key(name, _) => self.keys.get(name).copied().unwrap_or_default(),
        }
    }
}

/// Whose usage is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limited {
    /// An account.
    Account(Account),
    /// A key of this name.
    Key(LimitName, HashedKey),
}

/// Everything that an order counts against under a policy, with its limits: the account first.
pub fn limited_of<'a>(
    policy: &'a Policy,
    account: &'a Account,
    keys: &'a LimitKeys,
) -> impl Iterator<Item = (Limited, Limits)> + use<'a> {
    let of_account = policy.account_limits();
    let account = of_account.any().then(|| (Limited::Account(account.clone()), of_account));
    let of_keys = keys.iter().filter_map(|(name, key)| {
        policy.key_limits.get(name).map(|limits| (Limited::Key(name.clone(), *key), *limits))
    });
    account.into_iter().chain(of_keys)
}

/// What an order of so many units is answered that a limit does not let in. A shortage of the account names
/// the first line, one of a key its place among the order's keys.
pub fn refusal_of_limit(keys: &LimitKeys, limited: &Limited, reached: Reached, units: u64) -> Refusal {
    let short = |line, requested, available| Shortage { line, requested, available };
    match (limited, reached) {
        (Limited::Account(_), Reached::OpenHolds { limit }) => Refusal::AccountOpenHolds { limit },
        (Limited::Account(_), Reached::Units { available }) => {
            Refusal::AccountLimit(short(1, units, available))
        }
        (Limited::Key(name, _), reached) => {
            let place = (1_u32..).zip(keys.keys()).find(|(_, known)| *known == name);
            let place = place.map_or(1, |(place, _)| place);
            match reached {
                Reached::OpenHolds { limit: _ } => Refusal::KeyOpenHolds(name.clone(), short(place, 1, 0)),
                Reached::Units { available } => {
                    Refusal::KeyLimit(name.clone(), short(place, units, available))
                }
            }
        }
    }
}

/// Usage counted from a campaign's orders, for limits that are added or changed in kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recount {
    /// The limits to count for: the new policy with only these in it.
    policy: Policy,
    counted: BTreeMap<Limited, Usage>,
}

/// Which usage rows a change of policy makes void: those that are counted anew or not needed any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Void {
    /// Those of accounts.
    pub accounts: bool,
    /// Those of keys of these names.
    pub names: Vec<LimitName>,
}

impl Void {
    /// Whether it makes this row void.
    pub fn covers(&self, limited: &Limited) -> bool {
        match limited {
            Limited::Account(_) => self.accounts,
            Limited::Key(name, _) => self.names.contains(name),
        }
    }
}

impl Recount {
    /// What must be counted when a campaign's policy changes, and which rows it makes void. None: no order
    /// need be read.
    pub fn of(before: &Policy, after: &Policy) -> (Option<Self>, Void) {
        let (old, new) = (before.account_limits(), after.account_limits());
        let mut void = Void { accounts: old.any() && !new.any(), names: Vec::new() };
        let mut policy = Policy::default();
        if new.adds_to(old) {
            void.accounts = true;
            (policy.account_limit, policy.account_open_holds) = (new.units, new.open_holds);
        }
        for (name, limits) in &after.key_limits {
            if limits.adds_to(before.key_limits.get(name).copied().unwrap_or_default()) {
                void.names.push(name.clone());
                policy.key_limits.insert(name.clone(), *limits);
            }
        }
        void.names
            .extend(before.key_limits.keys().filter(|name| !after.key_limits.contains_key(*name)).cloned());
        let counts = policy.limits_anything();
        (counts.then(|| Self { policy, counted: BTreeMap::new() }), void)
    }

    /// Counts one order of the campaign.
    pub fn order(&mut self, order: &Order) {
        let own = order.usage();
        if own == Usage::default() {
            return;
        }
        for (limited, _) in limited_of(&self.policy, &order.account, &order.limit_keys) {
            let sum = self.counted.entry(limited).or_default();
            *sum = sum.and(own);
        }
    }

    /// The rows to write. Ceilings rise to what there is already.
    pub fn finish(self, ceilings: &mut Ceilings) -> BTreeMap<Limited, Usage> {
        for (limited, usage) in &self.counted {
            match limited {
                Limited::Account(_) => ceilings.account.raise(*usage),
                Limited::Key(name, _) => {
                    if let Some(ceiling) = ceilings.keys.get_mut(name) {
                        ceiling.raise(*usage);
                    }
                }
            }
        }
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(units: u64, open_holds: u64) -> Limits {
        let some = |limit| (limit > 0).then_some(limit);
        Limits { units: some(units), open_holds: some(open_holds) }
    }

    fn policy(account: Limits, device: Limits) -> Policy {
        let mut policy = Policy {
            account_limit: account.units,
            account_open_holds: account.open_holds,
            ..Policy::default()
        };
        if device.any() {
            policy.key_limits.insert(LimitName::new("device").unwrap(), device);
        }
        policy
    }

    #[test]
    fn open_holds_are_judged_before_units_and_only_where_one_opens() {
        let used = Usage { units: 2, open_holds: 1 };
        assert_eq!(limits(3, 1).reached(used, 9, true), Some(Reached::OpenHolds { limit: 1 }));
        assert_eq!(limits(3, 1).reached(used, 2, false), Some(Reached::Units { available: 1 }));
        assert_eq!(limits(3, 2).reached(used, 1, true), None);
        assert_eq!(limits(1, 0).reached(used, 1, true), Some(Reached::Units { available: 0 }));
        assert_eq!(limits(0, 0).reached(used, u64::MAX, true), None);
    }

    #[test]
    fn only_what_is_new_is_counted_and_only_what_is_gone_is_dropped() {
        let counted = |before: (u64, u64), after: (u64, u64), keys: (u64, u64), keys_after: (u64, u64)| {
            let before = policy(limits(before.0, before.1), limits(keys.0, keys.1));
            let after = policy(limits(after.0, after.1), limits(keys_after.0, keys_after.1));
            let (recount, void) = Recount::of(&before, &after);
            (recount.is_some(), void.accounts, void.names.len())
        };
        assert_eq!(counted((0, 0), (0, 0), (0, 0), (0, 0)), (false, false, 0));
        assert_eq!(counted((2, 0), (9, 0), (1, 0), (3, 0)), (false, false, 0));
        assert_eq!(counted((0, 0), (2, 0), (0, 0), (0, 0)), (true, true, 0));
        assert_eq!(counted((2, 0), (2, 1), (0, 0), (0, 0)), (true, true, 0));
        assert_eq!(counted((2, 1), (2, 0), (0, 0), (0, 1)), (true, false, 1));
        assert_eq!(counted((2, 1), (0, 0), (1, 1), (0, 0)), (false, true, 1));
    }

    #[test]
    fn a_ceiling_is_the_most_that_was_ever_allowed() {
        let none = Limits::default();
        let first = none.ceiling_after(none, limits(3, 0));
        assert_eq!(first, limits(3, 0));
        let raised = first.ceiling_after(limits(3, 0), limits(5, 1));
        assert_eq!(raised, limits(5, 1));
        assert_eq!(raised.ceiling_after(limits(5, 1), limits(2, 1)), limits(5, 1));
        // A time without a limit begins anew, from what there is.
        let gone = raised.ceiling_after(limits(2, 1), none);
        let mut again = gone.ceiling_after(none, limits(2, 0));
        again.raise(Usage { units: 7, open_holds: 2 });
        assert_eq!(again, limits(7, 0));
        assert!(again.exceeded_by(Usage { units: 8, open_holds: 0 }));
        assert!(!again.exceeded_by(Usage { units: 7, open_holds: 99 }));
    }
}
