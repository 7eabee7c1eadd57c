//! Which class is proved how, and what is done about it: one table, from which the documents are written.

use crate::case::CaseAction;

use super::{Class, Disposition};

/// One class of differences.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The class.
    pub class: Class,
    /// By what it is proved, while stock is sold.
    pub proof: &'static str,
    /// What is done.
    pub disposition: Disposition,
    /// How.
    pub remedy: &'static str,
    /// What a person may decide, the suggested first.
    pub actions: &'static [CaseAction],
}

use CaseAction::{AcceptBalance, AcceptLedger, Acknowledge, Compensate};

/// Every class, the deepest first.
pub const RULES: [Rule; 15] = [
    Rule {
        class: Class::EntryMissing,
        proof: "a number between 1 and the last of a bucket is not in its ledger, or the last is below the bucket's own",
        disposition: Disposition::Freeze,
        remedy: "`accept_balance` appends what the ledger lacks: an entry that covers the gap and carries the order's event, if it was one",
        actions: &[AcceptBalance, Acknowledge],
    },
    Rule {
        class: Class::EntryDuplicate,
        proof: "two entries carry the same version of an order, or the same adjustment in the same bucket, or an entry that explains by how much an order's entries are too many",
        disposition: Disposition::Freeze,
        remedy: "`accept_balance` appends the opposite of the later one, and covers it",
        actions: &[AcceptBalance, Acknowledge],
    },
    Rule {
        class: Class::BalanceDrift,
        proof: "row and last entry in one statement, the entries up to it summed: the sum is another, and no entry is missing or doubled that explains it",
        disposition: Disposition::Freeze,
        remedy: "`accept_ledger` makes the balance what the ledger says; `accept_balance`, where only available units differ, appends the difference",
        actions: &[AcceptLedger, AcceptBalance, Acknowledge],
    },
    Rule {
        class: Class::BucketSumOff,
        proof: "pool and its buckets in one statement: their number is not what the pool says",
        disposition: Disposition::Freeze,
        remedy: "a person finds out which row is gone or was added",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::TransferUnpaired,
        proof: "all entries of one transfer (source, number, time) in one statement: one has no counterpart of as many units",
        disposition: Disposition::Freeze,
        remedy: "`compensate` appends the opposite of the half that stands alone",
        actions: &[Compensate, Acknowledge],
    },
    Rule {
        class: Class::OrderWithoutStock,
        proof: "order and its entries in one view: the order says that it has stock, and has no entry",
        disposition: Disposition::Freeze,
        remedy: "`accept_ledger` fails the order: it never held anything",
        actions: &[AcceptLedger, Acknowledge],
    },
    Rule {
        class: Class::StockWithoutOrder,
        proof: "entries that name an order, and no such order, in one view",
        disposition: Disposition::Freeze,
        remedy: "`compensate` gives the units that still stand for it back to the shelf",
        actions: &[Compensate, Acknowledge],
    },
    Rule {
        class: Class::AllocationDrift,
        proof: "order and its entries in one view: state, version or units differ, and no entry is missing or doubled",
        disposition: Disposition::Freeze,
        remedy: "`accept_ledger` makes the order's row what its entries say",
        actions: &[AcceptLedger, Acknowledge],
    },
    Rule {
        class: Class::PaidNotApplied,
        proof: "a success in the table of payments, and its order in the same statement neither has it nor is sold",
        disposition: Disposition::Repair,
        remedy: "the notice is applied again, as it would be if the provider sent it again",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::HoldOverdue,
        proof: "held, and its end with all grace is past by more than a minute",
        disposition: Disposition::Repair,
        remedy: "it is expired as the timer would have expired it",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::UsageDrift,
        proof: "a usage row and all orders of its key in one view",
        disposition: Disposition::Repair,
        remedy: "the row is changed by the difference, under its lock",
        actions: &[AcceptLedger, Acknowledge],
    },
    Rule {
        class: Class::CacheAhead,
        proof: "the law of the cache at its own ledger position: it had more than base and credits less what it took",
        disposition: Disposition::Repair,
        remedy: "its epoch is drained and a new one begins from the balance of the authority",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::CacheBehind,
        proof: "the law of the cache: it had less",
        disposition: Disposition::Repair,
        remedy: "as above",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::EntryUnlanded,
        proof: "accepted entries are neither settled nor in the stream",
        disposition: Disposition::Repair,
        remedy: "as above; who was accepted and not landed is told `admission_lost`",
        actions: &[Acknowledge],
    },
    Rule {
        class: Class::EventStuck,
        proof: "a sink that delivers has not looked at an event that is older than a minute, and that it stands before",
        disposition: Disposition::Watch,
        remedy: "the sink delivers again by itself; if it is there at the next look, a person must see to the receiver",
        actions: &[Acknowledge],
    },
];

/// The rule of a class.
pub fn rule_of(class: Class) -> &'static Rule {
    // Every class has one, which a test holds.
    let [.., last] = &RULES;
    RULES.iter().find(|rule| rule.class == class).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_rule_in_its_place() {
        let ruled: Vec<Class> = RULES.iter().map(|rule| rule.class).collect();
        assert_eq!(ruled, Class::ALL);
        for rule in &RULES {
            assert_eq!(rule_of(rule.class).class, rule.class);
            let kind = rule.class.case_kind();
            assert_eq!(kind.as_str(), rule.class.as_str());
            assert!(rule.actions.iter().all(|action| kind.allows(*action)), "{rule:?}");
            assert_eq!(rule.actions.first(), Some(&kind.suggested()));
        }
    }
}
