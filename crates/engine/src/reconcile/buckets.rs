//! Buckets against their ledgers, and the halves of transfers that stand in these.

use std::collections::BTreeMap;
use std::time::Instant;

use holdfast_core::ledger::{Action, Covers, Entry};
use holdfast_core::reconcile::{BucketFacts, Doubled, FINDINGS_MAX, LedgerSums, Proof, Range};
use holdfast_core::stock::BucketKey;
use holdfast_store::{BucketHead, Checkpoint, Page, SUMMED_ENTRIES_MAX};

use super::pass::{Pass, Since};
use crate::error::Error;

/// Buckets that are read at a time.
const PAGE: usize = 200;
/// Most halves that wait for their others: beyond that each is looked up by itself.
const HALVES_MAX: usize = 100_000;

impl Pass<'_> {
    pub(super) async fn compare_buckets(&mut self) -> Result<bool, Error> {
        let mut after = None;
        loop {
            let begun = Instant::now();
            let heads = self.engine.store().bucket_heads(Page { after, limit: PAGE }).await?;
            after = heads.last().map(|head| head.row.key);
            let is_last = heads.len() < PAGE;
            if !self.step(begun).await? {
                return Ok(false);
            }
            for head in heads {
                self.run.buckets_read = self.run.buckets_read.saturating_add(1);
                if head.frozen {
                    self.frozen.insert(head.row.key.pool);
                }
                if !self.compare_bucket(&head).await? {
                    return Ok(false);
                }
            }
            if !self.checkpoints.is_empty() {
                let proved = std::mem::take(&mut self.checkpoints);
                self.engine.store().save_checkpoints(proved).await?;
            }
            if is_last {
                return Ok(true);
            }
        }
    }

    async fn compare_bucket(&mut self, head: &BucketHead) -> Result<bool, Error> {
        let bucket = head.row.key;
        // A number that the row has and the ledger has not is missing, too.
        let end = head.last_seq.max(head.row.ledger_seq);
        let trusted = head.proved.filter(|proved| {
            !self.is_full() && proved.sums.to <= head.row.ledger_seq && !self.is_doubtful(bucket)
        });
        let start = trusted.map_or(LedgerSums::default(), |proved| proved.sums);
        let Some(new) = self.sum(bucket, start.to, end).await? else { return Ok(false) };
        let sums = start.and(new);
        let is_whole = new.entries == end.saturating_sub(start.to);
        let mut facts = BucketFacts {
            row: head.row,
            last_seq: head.last_seq,
            sums,
            gaps: Vec::new(),
            doubled: Vec::new(),
            repaired_seq: 0,
        };
        if !is_whole || new.supplies > 0 || !facts.is_clean() {
            self.look_closer(&mut facts, end, is_whole).await?;
        }
        if facts.is_clean() {
            if start.to < end {
                self.since.push(Since { bucket, after: start.to, to: end });
            }
            if start.to < end || trusted.is_none() {
                self.checkpoints.push(Checkpoint { bucket, sums });
            }
        } else if self.facts.buckets.len() < FINDINGS_MAX {
            self.since.push(Since { bucket, after: start.to, to: end });
            self.facts.buckets.push(facts);
        }
        Ok(true)
    }

    /// Sums a bucket's entries piece by piece, and keeps the halves of transfers that come by.
    async fn sum(&mut self, bucket: BucketKey, from: u64, end: u64) -> Result<Option<LedgerSums>, Error> {
        let mut sums = LedgerSums { to: from, ..LedgerSums::default() };
        while sums.to < end {
            let (begun, after) = (Instant::now(), sums.to);
            let piece = self.engine.store().sum_entries(bucket, after, end).await?;
            if piece.to <= after {
                break;
            }
            if piece.moves > 0 {
                let moves = self.engine.store().moves(bucket, after, piece.to).await?;
                self.keep_halves(moves).await?;
            }
            self.run.entries_read = self.run.entries_read.saturating_add(piece.entries);
            sums = sums.and(piece);
            if !self.step(begun).await? {
                return Ok(None);
            }
        }
        Ok(Some(sums))
    }

    /// What is wrong, and what of it repairs stand for.
    async fn look_closer(&self, facts: &mut BucketFacts, end: u64, is_whole: bool) -> Result<(), Error> {
        let store = self.engine.store();
        let bucket = facts.row.key;
        let repairs = store.repairs(bucket).await?;
        facts.repaired_seq = repairs.last().map_or(0, |last| last.seq);
        let covered: Vec<Covers> = repairs.iter().filter_map(|repair| repair.covers).collect();
        if !is_whole {
            let missing = store.missing_entries(bucket, 0, end).await?;
            facts.gaps = missing.into_iter().flat_map(|gap| uncovered(gap, &covered)).collect();
        }
        let doubled = store.doubled_supplies(bucket).await?;
        facts.doubled = doubled.into_iter().filter(|late| !covers(&covered, late.seq)).map(Doubled).collect();
        Ok(())
    }

    /// Keeps halves until their others come by, and forgets those that are whole.
    async fn keep_halves(&mut self, moves: Vec<Entry>) -> Result<(), Error> {
        for entry in moves {
            let key = (entry.source.clone(), entry.business_no.clone(), entry.at);
            let known = self.halves.entry(key.clone()).or_default();
            known.push(entry);
            if unpaired(known).is_empty() {
                self.halves.remove(&key);
            }
        }
        while self.halves.len() > HALVES_MAX {
            let Some((_, halves)) = self.halves.pop_first() else { break };
            self.pair(halves).await?;
        }
        Ok(())
    }

    /// Reads all entries of a transfer in one statement, and keeps those that stand alone and that no repair stands for.
    async fn pair(&mut self, halves: Vec<Entry>) -> Result<(), Error> {
        let Some(half) = halves.into_iter().next() else { return Ok(()) };
        let halves = self.engine.store().halves(half).await?;
        for alone in unpaired(&halves) {
            let repairs = self.engine.store().repairs(alone.bucket).await?;
            let covered: Vec<Covers> = repairs.iter().filter_map(|repair| repair.covers).collect();
            let is_known = self.facts.unpaired.contains(alone);
            if !is_known && !covers(&covered, alone.seq) && self.facts.unpaired.len() < FINDINGS_MAX {
                self.facts.unpaired.push(alone.clone());
            }
        }
        Ok(())
    }

    /// What is left may have been written while the buckets were read one after the other: it is read again, all
    /// entries of the transfer in one statement.
    pub(super) async fn pair_halves(&mut self) -> Result<bool, Error> {
        let mut left: Vec<Vec<Entry>> = std::mem::take(&mut self.halves).into_values().collect();
        for open in &self.open {
            if let Proof::Alone { covers: Some(covers), deltas, .. } = &open.found.proof
                && let Some((bucket, _)) = deltas.first()
            {
                let before = covers.first.saturating_sub(1);
                let moves = self.engine.store().moves(*bucket, before, covers.first).await?;
                left.extend(moves.into_iter().map(|entry| vec![entry]));
            }
        }
        for halves in left {
            let begun = Instant::now();
            self.pair(halves).await?;
            if !self.step(begun).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn covers(covered: &[Covers], seq: u64) -> bool {
    covered.iter().any(|covers| (covers.first..=covers.last).contains(&seq))
}

/// What of a range no repair stands for.
fn uncovered(gap: Range, covered: &[Covers]) -> Vec<Range> {
    let mut left = vec![gap];
    for covers in covered {
        let cut = |part: Range| {
            let before = Range { first: part.first, last: part.last.min(covers.first.saturating_sub(1)) };
            let after = Range { first: part.first.max(covers.last.saturating_add(1)), last: part.last };
            let is_apart = part.last < covers.first || part.first > covers.last;
            let parts = if is_apart { [Some(part), None] } else { [Some(before), Some(after)] };
            parts.into_iter().flatten().filter(|part| part.first <= part.last)
        };
        left = left.into_iter().flat_map(cut).collect();
    }
    left
}

/// Entries of one transfer that have no counterpart of as many units.
fn unpaired(entries: &[Entry]) -> Vec<&Entry> {
    let mut by_units: BTreeMap<u64, (Vec<&Entry>, Vec<&Entry>)> = BTreeMap::new();
    for entry in entries {
        let (outs, ins) = by_units.entry(entry.delta.available.unsigned_abs()).or_default();
        // A repair stands for the half that it moves as.
        let is_out = if entry.action == Action::Repair {
            entry.delta.available < 0
        } else {
            entry.action == Action::TransferOut
        };
        if is_out { outs } else { ins }.push(entry);
    }
    let alone = by_units.into_values().flat_map(|(outs, ins)| {
        let pairs = outs.len().min(ins.len());
        outs.into_iter().skip(pairs).chain(ins.into_iter().skip(pairs))
    });
    alone.filter(|entry| entry.action != Action::Repair).collect()
}

/// A piece of a range that one statement takes.
pub(super) const PIECE: u64 = SUMMED_ENTRIES_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_left_where_nothing_covers_it() {
        let range = |first, last| Range { first, last };
        assert_eq!(uncovered(range(2, 9), &[range(4, 5), range(9, 9)]), [range(2, 3), range(6, 8)]);
        assert_eq!(uncovered(range(2, 9), &[range(1, 20)]), []);
        assert_eq!(uncovered(range(2, 9), &[range(10, 20), range(1, 1)]), [range(2, 9)]);
    }
}
