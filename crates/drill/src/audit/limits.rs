//! No account ever has more than it may.

use std::collections::{BTreeMap, HashMap};

use holdfast_core::invariant::Invariant;
use uuid::Uuid;

use super::Case;
use super::findings::{Check, Findings};

/// Counts each account's units through the ledger, by the authority's clock.
pub(super) fn judge(case: &Case<'_>, findings: &mut Findings) {
    let Some(limit) = case.sale.shop.account_limit else { return };
    findings.looks_at(&[Check::Law(Invariant::LimitsHold)]);
    let accounts: HashMap<Uuid, &str> =
        case.facts.orders.iter().map(|order| (order.id, order.account.as_ref())).collect();
    let mut changes: Vec<(i64, i64, &str)> = case
        .facts
        .entries
        .iter()
        .filter_map(|entry| {
            let taken = entry.change.held.saturating_add(entry.change.sold);
            Some((entry.at_ms, taken, *accounts.get(&entry.order?)?)).filter(|_| taken != 0)
        })
        .collect();
    // What is given back in the same millisecond may have been given back before.
    changes.sort_unstable();
    let mut units: BTreeMap<&str, i64> = BTreeMap::new();
    for (_, taken, account) in changes {
        let has = units.entry(account).or_default();
        let before = *has;
        *has = has.saturating_add(taken);
        if *has > i64::from(limit) && before <= i64::from(limit) {
            findings.breach(
                Check::Law(Invariant::LimitsHold),
                account,
                format!("at most {limit} units"),
                has.to_string(),
            );
        }
    }
}
