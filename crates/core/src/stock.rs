//! Stock: pools, their buckets, and the one place where a balance changes.

use crate::campaign::spelled;
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
/// Greatest weight of a bucket.
pub const WEIGHT_MAX: u32 = 10_000;

/// A path (扣减路径): how an order reaches the authority. Each ends in the same states, ledger and law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Path {
    /// One transaction an order.
    Direct,
    /// Orders of a bucket that come while the one before commits share a transaction.
    #[default]
    Batched,
    /// Taken in durably at once, decided in order by one consumer a bucket.
    Queued,
    /// A cache takes first, the authority later.
    Cached,
}

/// Which bucket of a pool an order tries first. Each draws by weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// By the hash of the order's number: a repeat meets the same bucket.
    #[default]
    OrderHash,
    /// One after the other.
    RoundRobin,
    /// By chance.
    Random,
    /// By the hash of the account.
    AccountHash,
    /// By the hash of the node: nodes keep out of each other's way.
    NodeAffinity,
}

/// What a pool on the cached path does while its cache cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheFallback {
    /// Orders go to the authority.
    #[default]
    Authority,
    /// Orders are refused.
    Refuse,
}

/// A stop-loss switch that an operator sets on a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSwitch {
    /// No stock moves out.
    Freeze,
    /// Undo the freeze.
    Unfreeze,
    /// Nothing is sold from it any more, for good. What is held or sold goes on.
    Retire,
}

spelled! {
    Path { Direct = "direct", Batched = "batched", Queued = "queued", Cached = "cached" }
    Routing {
        OrderHash = "order_hash", RoundRobin = "round_robin", Random = "random",
        AccountHash = "account_hash", NodeAffinity = "node_affinity",
    }
    CacheFallback { Authority = "authority", Refuse = "refuse" }
    PoolSwitch { Freeze = "freeze", Unfreeze = "unfreeze", Retire = "retire" }
}

/// What a pool was opened with: the same request again is compared with this, whatever changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Units.
    pub supply: u64,
    /// Buckets.
    pub buckets: u32,
    /// Path.
    pub path: Path,
    /// Routing.
    pub routing: Routing,
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
    /// What it was opened with.
    pub opening: Opening,
    /// How an order reaches the authority. This and the next three may change while it sells.
    pub path: Path,
    /// Which bucket an order tries first.
    pub routing: Routing,
    /// Most orders that a node places at the same time; none: no limit of the pool's own.
    pub max_concurrency: Option<u32>,
    /// What is done without the cache.
    pub cache_fallback: CacheFallback,
    /// No stock moves out while frozen.
    pub frozen: bool,
    /// Nothing is sold from it any more.
    pub retired: bool,
}

impl Pool {
    /// A pool as it is opened.
    pub const fn opened(
        id: PoolId,
        campaign: CampaignId,
        sku: Sku,
        location: Location,
        opening: Opening,
    ) -> Self {
        Self {
            id,
            campaign,
            sku,
            location,
            buckets: opening.buckets,
            opening,
            path: opening.path,
            routing: opening.routing,
            max_concurrency: None,
            cache_fallback: CacheFallback::Authority,
            frozen: false,
            retired: false,
        }
    }

    /// The pool after a switch. Every switch may be set again.
    #[must_use]
    pub fn after(self, switch: PoolSwitch) -> Self {
        match switch {
            PoolSwitch::Freeze => Self { frozen: true, ..self },
            PoolSwitch::Unfreeze => Self { frozen: false, ..self },
            PoolSwitch::Retire => Self { retired: true, ..self },
        }
    }
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
