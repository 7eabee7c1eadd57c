//! The scenarios: each a sale, what breaks in it, and what must be true afterwards. They are data; what is
//! done with them is the same for all.

mod breaking;
mod buying;
mod caching;
mod expected;
mod lasting;
mod paying;
mod shop;

use holdfast_core::invariant::Invariant;

pub use shop::{Buyers, Fates, Path, Pool, Shop, Tide};

use crate::deployment::Kind;
use crate::fault::Fault;

/// One scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name in commands and reports.
    pub name: &'static str,
    /// What it shows.
    pub goal: &'static str,
    /// The same in Chinese.
    pub goal_zh: &'static str,
    /// The deployments that it concerns.
    pub kinds: &'static [Kind],
    /// What must hold afterwards.
    pub invariants: &'static [Invariant],
    /// Answers that may come, as the outcome counts them: any other is a breach. `*` stands for whatever was asked.
    pub expected: &'static [&'static [&'static str]],
    /// What is broken, and when.
    pub steps: &'static [Step],
    /// What is sold, and how.
    pub shop: Shop,
    /// Who buys, and what they do.
    pub buyers: Buyers,
    /// How long orders come, if nobody says how long, in seconds.
    pub seconds: u32,
    /// How many orders come in a second, if nobody says how many.
    pub orders_a_second: u32,
}

/// A fault of a scenario. Moments are shares of the load's time, so that a short form and a long one are the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What.
    pub fault: Fault,
    /// When it first begins, in thousandths of the load's time.
    pub from: u16,
    /// How long it lasts, in thousandths of the load's time.
    pub lasts: u16,
    /// How long after its beginning it begins again, in thousandths; none: it comes once.
    pub every: Option<u16>,
}

impl Step {
    /// A fault that comes once.
    const fn once(fault: Fault, from: u16, lasts: u16) -> Self {
        Self { fault, from, lasts, every: None }
    }

    /// A fault that comes again and again.
    const fn again(fault: Fault, from: u16, lasts: u16, every: u16) -> Self {
        Self { fault, from, lasts, every: Some(every) }
    }
}

impl Scenario {
    /// No sale at all: buyers who place and go, to see what the load itself can do.
    pub(crate) const PLACING: Self = lasting::PLACING;

    /// Every scenario.
    pub const ALL: &'static [Self] = &[
        buying::HOT_POOL,
        buying::SKEWED_BUCKETS,
        buying::LAST_UNITS,
        buying::DUPLICATES,
        paying::CONFIRM_VS_EXPIRY,
        paying::DUPLICATE_DELIVERY,
        paying::CONSUMER_PAUSE,
        caching::CACHE_WIPE,
        caching::CACHE_STALE_RESTORE,
        caching::CACHE_FAILOVER,
        breaking::AUTHORITY_OUTAGE,
        breaking::AUTHORITY_FAILOVER,
        breaking::CONNECTION_CUT,
        breaking::NODE_KILL,
        breaking::NODE_PAUSE,
        breaking::CLOCK_STEP,
        breaking::SLOW_DISK_FULL,
        lasting::OVERLOAD_AND_DRAIN,
        lasting::SALE_DAY,
        lasting::SOAK,
    ];

    /// The scenario with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|scenario| scenario.name == name)
    }

    /// What is broken on a deployment of this kind: there is no cache to break where there is none. Nobody has said
    /// what it is: everything.
    pub fn steps_on(&self, kind: Option<Kind>) -> Vec<Step> {
        let is_there = |step: &&Step| kind.is_none_or(|kind| step.fault.is_of(kind));
        self.steps.iter().filter(is_there).copied().collect()
    }

    /// Whether an answer, as the outcome counts it, may come.
    pub fn expects(&self, label: &str) -> bool {
        let of_any = label.split_once(' ').map_or("", |(_, answer)| answer);
        self.expected
            .iter()
            .flat_map(|group| group.iter())
            .any(|pattern| *pattern == label || pattern.strip_prefix("* ").is_some_and(|p| p == of_any))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_scenario_of_the_contract_is_there_once() {
        let names: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), 20);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| Scenario::named(name).is_some_and(|found| found.name == *name)));
    }

    #[test]
    fn every_scenario_is_whole() {
        for scenario in Scenario::ALL {
            let name = scenario.name;
            assert!(!scenario.goal.is_empty() && !scenario.goal_zh.is_ascii(), "{name}");
            assert!(!scenario.kinds.is_empty() && !scenario.invariants.is_empty(), "{name}");
            assert!(scenario.seconds > 0 && scenario.orders_a_second > 0, "{name}");
            scenario.buyers.assert_whole(name);
            for kind in scenario.kinds {
                assert!(
                    !scenario.shop.pools_on(Some(*kind)).is_empty(),
                    "{name} sells nothing on {}",
                    kind.name()
                );
                if !scenario.steps.is_empty() {
                    assert!(
                        !scenario.steps_on(Some(*kind)).is_empty(),
                        "{name} breaks nothing on {}",
                        kind.name()
                    );
                }
            }
            for step in scenario.steps {
                // What was broken must be whole again while orders still come: that is what shows the recovery.
                assert!(step.from + step.lasts <= 900, "{name}: {}", step.fault.name());
                assert!(step.every.is_none_or(|every| every > step.lasts), "{name}: {}", step.fault.name());
            }
        }
    }

    #[test]
    fn every_fault_is_in_a_scenario() {
        for fault in Fault::ALL {
            assert!(
                Scenario::ALL.iter().any(|scenario| scenario.steps.iter().any(|step| step.fault == fault)),
                "{}",
                fault.name()
            );
        }
    }

    #[test]
    fn answers_are_expected_by_their_whole_label() {
        let scenario = Scenario::named("node-kill").unwrap();
        assert!(
            scenario.expects("place 201") && scenario.expects("pay lost") && scenario.expects("look lost")
        );
        assert!(!scenario.expects("place 20") && !scenario.expects("place 500 internal"));
        assert!(!scenario.expects("alter 201"));
    }
}
