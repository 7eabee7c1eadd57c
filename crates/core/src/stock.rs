//! Stock: pools, their buckets, and the one place where a balance changes.

use crate::id::{CampaignId, Location, PoolId, Sku};
use crate::time::Timestamp;

/// Most units a single order line may ask for.
pub const QUANTITY_MAX: u32 = 1_000_000;
/// Most units a pool may be opened with, and the greatest single adjustment.
pub const SUPPLY_MAX: u64 = 1_000_000_000_000;
/// Most units any balance may reach. Far from the end of an `i64`, so that sums of a pool fit.
pub const BALANCE_MAX: u64 = 1_000_000_000_000_000;
/// Most buckets of a pool.
pub const BUCKETS_MAX: u32 = 256;

/// A path (扣减路径): how an order reaches the authority. Each ends in the same states, ledger and law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// One transaction an order.
    Direct,
    /// Orders of a bucket gather while the last batch is committed.
    Batched,
    /// Taken in durably, decided a little later by the one consumer of its bucket.
    Queued,
    /// The cache takes stock first; what it took is landed in the authority.
    Cached,
}

crate::campaign::spelled! {
    Path { Direct = "direct", Batched = "batched", Queued = "queued", Cached = "cached" }
}

/// A pool (库存池): the stock of one (campaign, SKU, location).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its id.
    pub id: PoolId,
    /// The campaign.
    pub campaign: CampaignId,
    /// What is sold.
    pub sku: Sku,
    /// Where it is.
    pub location: Location,
    /// How many buckets it has, numbered from 0.
    pub buckets: u32,
    /// How its orders reach the authority.
    pub path: Path,
    /// What it was opened with; the same request again is compared with this.
    pub opening_supply: u64,
    /// No stock moves out while frozen.
    pub frozen: bool,
}

/// A bucket's address: its pool and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketKey {
    /// The pool.
    pub pool: PoolId,
    /// The number, from 0.
    pub number: u32,
}

/// A bucket (库存桶): one row of a pool's stock. Each unit is in exactly one of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Its address.
    pub key: BucketKey,
    /// Its share in routing.
    pub weight: u32,
    /// Units that can be taken.
    pub available: u64,
    /// Units that an open order holds.
    pub held: u64,
    /// Units that were sold and did not come back.
    pub sold: u64,
    /// The number of its last ledger entry.
    pub ledger_seq: u64,
    /// When its last entry was written: the clock never runs behind it.
    pub last_at: Timestamp,
}

/// A change of one bucket's balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delta {
    /// Change of available.
    pub available: i64,
    /// Change of held.
    pub held: i64,
    /// Change of sold.
    pub sold: i64,
}

impl Delta {
    /// Stock moves from available to held.
    pub const fn hold(quantity: u64) -> Self {
        let q = signed(quantity);
        Self { available: q.saturating_neg(), held: q, sold: 0 }
    }
    /// Stock moves from available to sold.
    pub const fn sell(quantity: u64) -> Self {
        let q = signed(quantity);
        Self { available: q.saturating_neg(), held: 0, sold: q }
    }
    /// Stock moves from held to sold.
    pub const fn confirm(quantity: u64) -> Self {
        let q = signed(quantity);
        Self { available: 0, held: q.saturating_neg(), sold: q }
    }
    /// Stock moves from held to available.
    pub const fn release(quantity: u64) -> Self {
        let q = signed(quantity);
        Self { available: q, held: q.saturating_neg(), sold: 0 }
    }
    /// Stock moves from sold to available.
    pub const fn restock(quantity: u64) -> Self {
        let q = signed(quantity);
        Self { available: q, held: 0, sold: q.saturating_neg() }
    }
    /// Supply changes.
    pub const fn supply(delta: i64) -> Self {
        Self { available: delta, held: 0, sold: 0 }
    }

    /// Both changes together. Quantities are bounded by [`BALANCE_MAX`], so the sum fits.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            available: self.available.saturating_add(other.available),
            held: self.held.saturating_add(other.held),
            sold: self.sold.saturating_add(other.sold),
        }
    }

    /// Change of the supply, which only opening, inbound, adjustments and transfers may have.
    pub const fn supply_change(self) -> i64 {
        self.available.saturating_add(self.held).saturating_add(self.sold)
    }

    /// Whether stock comes back to the shelf.
    pub const fn gives_back(self) -> bool {
        self.available > 0
    }
}

/// Quantities are bounded by [`BALANCE_MAX`]; a row that says more is refused by every balance.
const fn signed(quantity: u64) -> i64 {
    if quantity > i64::MAX as u64 { i64::MAX } else { quantity as i64 }
}

/// A balance would become negative or too great.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bucket {key:?} cannot take {delta:?}")]
pub struct ImpossibleBalance {
    /// The bucket.
    pub key: BucketKey,
    /// What was asked of it.
    pub delta: Delta,
}

impl Bucket {
    /// A new, empty bucket.
    pub const fn empty(key: BucketKey) -> Self {
        Self { key, weight: 1, available: 0, held: 0, sold: 0, ledger_seq: 0, last_at: Timestamp(i64::MIN) }
    }

    /// All units of the bucket.
    pub const fn supply(&self) -> u64 {
        self.available.saturating_add(self.held).saturating_add(self.sold)
    }

    /// The bucket after one more ledger entry at `at`.
    pub fn after(&self, delta: Delta, at: Timestamp) -> Result<Self, ImpossibleBalance> {
        let step = |balance: u64, change: i64| {
            balance.checked_add_signed(change).filter(|next| *next <= BALANCE_MAX)
        };
        let next = (|| {
            Some(Self {
                available: step(self.available, delta.available)?,
                held: step(self.held, delta.held)?,
                sold: step(self.sold, delta.sold)?,
                ledger_seq: self.ledger_seq.checked_add(1)?,
                last_at: at,
                ..*self
            })
        })();
        next.ok_or(ImpossibleBalance { key: self.key, delta })
    }
}

/// Splits an opening supply evenly; the remainder goes to the lowest buckets.
pub fn split_supply(supply: u64, buckets: u32) -> Vec<u64> {
    let count = u64::from(buckets.max(1));
    let (share, rest) = (supply / count, supply % count);
    (0..count).map(|number| share.saturating_add(u64::from(number < rest))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supply_is_split_evenly_with_the_remainder_low() {
        assert_eq!(split_supply(10, 4), [3, 3, 2, 2]);
        assert_eq!(split_supply(0, 3), [0, 0, 0]);
        assert_eq!(split_supply(2, 8).iter().sum::<u64>(), 2);
    }

    #[test]
    fn a_balance_never_wraps() {
        let bucket = Bucket { available: 3, ..Bucket::empty(BucketKey { pool: PoolId(1), number: 0 }) };
        assert!(bucket.after(Delta::hold(4), Timestamp(1)).is_err());
        assert!(bucket.after(Delta::release(1), Timestamp(1)).is_err());
        assert!(bucket.after(Delta::supply(BALANCE_MAX as i64), Timestamp(1)).is_err());
        let held = bucket.after(Delta::hold(3), Timestamp(1)).unwrap();
        assert_eq!((held.available, held.held, held.supply(), held.ledger_seq), (0, 3, 3, 1));
    }
}
