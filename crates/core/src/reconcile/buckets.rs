//! Facts of one bucket: its row, and its ledger summed.

use crate::ledger::{Covers, Entry};
use crate::stock::{Bucket, Delta};

/// Numbers of a bucket's ledger that are not there, one after the other.
pub type Range = Covers;

/// Entries of a bucket, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerSums {
    /// The last number that was asked for.
    pub to: u64,
    /// How many entries there are up to it.
    pub entries: u64,
    /// What they change.
    pub delta: Delta,
    /// What those change of held and sold that are about no order.
    pub unowned: (i64, i64),
    /// How many move stock between buckets.
    pub moves: u64,
    /// How many change the supply by themselves: stock that came, corrections.
    pub supplies: u64,
    /// How many cover others.
    pub covering: u64,
}

impl LedgerSums {
    /// Both together: `next` goes on where this one ends.
    #[must_use]
    pub const fn and(self, next: Self) -> Self {
        Self {
            to: next.to,
            entries: self.entries.saturating_add(next.entries),
            delta: self.delta.and(next.delta),
            unowned: (
                self.unowned.0.saturating_add(next.unowned.0),
                self.unowned.1.saturating_add(next.unowned.1),
            ),
            moves: self.moves.saturating_add(next.moves),
            supplies: self.supplies.saturating_add(next.supplies),
            covering: self.covering.saturating_add(next.covering),
        }
    }
}

/// Two entries that tell of the same act without an order; the later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubled(pub Entry);

/// What was read of a bucket: row and last entry in one statement, then the entries up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketFacts {
    /// Its row.
    pub row: Bucket,
    /// The last number in its ledger: the row's own, unless somebody changed one of them.
    pub last_seq: u64,
    /// All of its entries.
    pub sums: LedgerSums,
    /// Numbers that are missing and that no repair covers.
    pub gaps: Vec<Range>,
    /// Entries that are doubled and that no repair covers.
    pub doubled: Vec<Doubled>,
    /// The number of its last repair: what differs after it is another difference.
    pub repaired_seq: u64,
}

impl BucketFacts {
    /// By how much the balance is more than the sum.
    pub(super) fn surplus(&self) -> Delta {
        less(self.balance(), self.sums.delta)
    }

    pub(super) fn balance(&self) -> Delta {
        let Bucket { available, held, sold, .. } = self.row;
        Delta { available: signed(available), held: signed(held), sold: signed(sold) }
    }

    /// Whether nothing is to be said of it.
    pub fn is_clean(&self) -> bool {
        self.surplus() == Delta::default()
            && self.last_seq == self.row.ledger_seq
            && self.gaps.is_empty()
            && self.doubled.is_empty()
            && self.sums.unowned == (0, 0)
    }
}

/// One less the other.
pub(super) const fn less(of: Delta, other: Delta) -> Delta {
    of.and(opposite(other))
}

pub(super) const fn opposite(delta: Delta) -> Delta {
    Delta {
        available: delta.available.saturating_neg(),
        held: delta.held.saturating_neg(),
        sold: delta.sold.saturating_neg(),
    }
}

/// Balances are bounded far below the end of an `i64`; one beyond it differs as such.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}
