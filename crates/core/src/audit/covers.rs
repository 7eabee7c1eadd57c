//! What repairs cover, and the pairs of transfers: what is covered is missing in neither.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::invariant::Invariant;
use crate::ledger::{Action, Covers, Entry};
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

use super::{Auditor, BREACHES_MAX, add, step};

/// What the entries of one transfer have in common: source, business number, and the time of their one
/// transaction.
pub(super) type TransferKey = (Arc<str>, Arc<str>, Timestamp);

/// The entries of one transfer, with where they stand.
#[derive(Debug, Default)]
pub(super) struct Moved {
    entries: Vec<(BucketKey, u64, Action, Delta)>,
}

impl Moved {
    pub(super) fn add(&mut self, entry: &Entry) {
        self.entries.push((entry.bucket, entry.seq, entry.action, entry.delta));
    }

    /// A repair that stands for a half that is missing.
    pub(super) fn mend(&mut self, repair: &Entry) {
        let is_out = repair.delta.available < 0;
        let action = if is_out { Action::TransferOut } else { Action::TransferIn };
        self.entries.push((repair.bucket, repair.seq, action, repair.delta));
    }

    /// What is wrong with it, if something is. What a repair covers is in no pair.
    pub(super) fn breach(&self, covered: &BTreeMap<BucketKey, Vec<Covers>>) -> Option<String> {
        // Outs and ins by their units: an out waits for its in, and the other way round.
        let mut unpaired: BTreeMap<u64, i64> = BTreeMap::new();
        let mut is_odd = false;
        for (bucket, seq, action, Delta { available, held, sold }) in &self.entries {
            let is_in = |covers: &Covers| (covers.first..=covers.last).contains(seq);
            if covered.get(bucket).is_some_and(|all| all.iter().any(is_in)) {
                continue;
            }
            let (expected, step) = if *action == Action::TransferOut { (-1, 1) } else { (1, -1) };
            is_odd |= available.signum() != expected || *held != 0 || *sold != 0;
            add(unpaired.entry(available.unsigned_abs()).or_default(), step);
        }
        let alone: Vec<_> = unpaired.iter().filter(|(_, count)| **count != 0).collect();
        if !alone.is_empty() {
            return Some(format!("outs less ins, by units: {alone:?}"));
        }
        is_odd.then(|| "an entry that moves no available units its way".to_owned())
    }
}

impl Auditor {
    pub(super) fn missing(&mut self, bucket: BucketKey, next: u64, seq: u64) {
        self.bucket_breach(
            bucket,
            Invariant::LedgerIsBalance,
            format!("entry {next}"),
            format!("entry {seq}"),
        );
    }

    /// A repair shows, and what it covers is no breach.
    pub(super) fn repair(&mut self, entry: &Entry) {
        step(&mut self.report.repairs);
        if self.report.repaired.len() < BREACHES_MAX {
            self.report.repaired.push(entry.clone());
        }
        let Some(covers) = entry.covers else { return };
        if entry.order_id.is_none() {
            self.mended.push(entry.clone());
        }
        self.covered.entry(entry.bucket).or_default().push(covers);
        let is_left = |gap: &Covers| gap.first < covers.first || gap.last > covers.last;
        let rest = |gap: Covers| {
            let before = Covers { first: gap.first, last: gap.last.min(covers.first.saturating_sub(1)) };
            let after = Covers { first: gap.first.max(covers.last.saturating_add(1)), last: gap.last };
            [before, after].into_iter().filter(|part| part.first <= part.last)
        };
        self.gaps = std::mem::take(&mut self.gaps).into_iter().filter(is_left).flat_map(rest).collect();
    }
}
