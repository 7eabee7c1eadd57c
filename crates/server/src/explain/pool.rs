//! The chain of a pool.

use holdfast_core::command::Transfer;
use holdfast_core::id::PoolId;
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::stock::Bucket;
use holdfast_core::time::Timestamp;
use holdfast_store::{ActionSum, BucketSums, Owner, PoolEvidence, PoolRow};
use holdfast_wire::{ActionSumView, BucketExplanationView, OwnerView, PoolExplanationView};

use super::left_off;
use super::steps::{Steps, step};
use crate::view;

/// A pool with everything that is known of it, as of a time if one was asked for.
pub fn pool(evidence: &PoolEvidence, as_of: Option<Timestamp>) -> PoolExplanationView {
    let PoolEvidence { row, buckets, actions, owners, entries, transfers, caches, cases, acts } = evidence;
    let is_before = |at: Timestamp| as_of.is_none_or(|as_of| at <= as_of);
    let mut ledger: Vec<&Entry> = entries.0.iter().collect();
    ledger.sort_by_key(|entry| (entry.at, entry.bucket, entry.seq));
    let mut steps = Steps::default();
    ledger.iter().for_each(|entry| steps.entry(entry, true, &other_end(entry, row.pool.id, transfers)));
    for cache in caches.iter().filter(|cache| is_before(cache.changed_at)) {
        let (epoch, state) = (cache.epoch, cache.state.as_str());
        let text = format!(
            "the cache of bucket {}: epoch {epoch} is {state}, begun after entry {} with {} available",
            cache.key.number, cache.base_seq, cache.base_available
        );
        steps.add(cache.changed_at, step("cache", text));
    }
    let told: Vec<_> = acts.0.iter().filter(|act| is_before(act.at)).cloned().collect();
    steps.acts(&told);
    let found: Vec<_> = cases.0.iter().filter(|case| is_before(case.opened_at)).cloned().collect();
    steps.cases(&found);
    let (owning, more_own) =
        owners.as_ref().map_or((&[][..], false), |(told, more)| (told.as_slice(), *more));
    PoolExplanationView {
        pool: view::pool(row),
        as_of: as_of.map(view::time),
        buckets: buckets.iter().map(|sums| bucket(row, sums, owners.is_some())).collect(),
        actions: actions.iter().map(|(word, sum)| action(*word, *sum)).collect(),
        owners: owning.iter().map(owner).collect(),
        timeline: steps.finish(),
        ledger: ledger.into_iter().map(view::entry).collect(),
        left_off: left_off([
            ("ledger", entries.1),
            ("cases", cases.1),
            ("acts", acts.1),
            ("owners", more_own),
            ("sums", owners.is_none()),
        ]),
    }
}

/// Where units of a transfer went, or came from.
fn other_end(entry: &Entry, pool: PoolId, transfers: &[Transfer]) -> String {
    let named = transfers.iter().find(|transfer| *transfer.transfer_id.as_str() == *entry.business_no);
    let Some(transfer) = named.filter(|_| &*entry.source == "transfer") else { return String::new() };
    let (word, other) = if entry.action == Action::TransferOut {
        ("to", transfer.to.pool)
    } else {
        ("from", transfer.from.pool)
    };
    if other == pool { " within the pool".to_owned() } else { format!(" {word} pool {other}") }
}

fn bucket(row: &PoolRow, sums: &BucketSums, is_summed: bool) -> BucketExplanationView {
    let stored = row.buckets.iter().find(|bucket| bucket.key == sums.bucket);
    // No entry at all adds up to nothing.
    let delta = is_summed.then(|| sums.sums.unwrap_or_default());
    let is_same = |stored: &Bucket| {
        let signed = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        let delta = delta?;
        let row = (signed(stored.available), signed(stored.held), signed(stored.sold));
        (stored.ledger_seq == sums.seq).then_some(row == (delta.available, delta.held, delta.sold))
    };
    BucketExplanationView {
        number: sums.bucket.number,
        seq: sums.seq,
        available: delta.map(|delta| delta.available),
        held: delta.map(|delta| delta.held),
        sold: delta.map(|delta| delta.sold),
        agrees: stored.and_then(is_same),
    }
}

fn action(action: Action, sum: ActionSum) -> ActionSumView {
    ActionSumView {
        action: action.as_str().into(),
        entries: sum.entries,
        delta_available: sum.delta.available,
        delta_held: sum.delta.held,
        delta_sold: sum.delta.sold,
    }
}

fn owner(owner: &Owner) -> OwnerView {
    OwnerView {
        order_id: owner.order.to_string(),
        order_no: owner.order_no.to_string(),
        held: owner.held,
        sold: owner.sold,
    }
}
