//! What is sold in a scenario, and to whom.

use crate::deployment::Kind;

/// How orders reach the authority in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// One transaction an order.
    Direct,
    /// Orders that come together share a transaction.
    Batched,
    /// An intake, then a consumer.
    Queued,
    /// A cache takes first; such a pool is only where there is one.
    Cached,
    /// Cached where there is a cache, else batched.
    CachedOrBatched,
}

impl Path {
    /// Its name for the server, on a deployment of this kind; none: there is no such pool.
    pub const fn on(self, kind: Option<Kind>) -> Option<&'static str> {
        // Nobody has said what it is: a pool that needs a cache is asked for, and one that does not goes without.
        let (known_cache, maybe_cache) = match kind {
            Some(kind) => (kind.has_cache(), kind.has_cache()),
            None => (false, true),
        };
        match self {
            Self::Direct => Some("direct"),
            Self::Batched => Some("batched"),
            Self::Queued => Some("queued"),
            Self::Cached if maybe_cache => Some("cached"),
            Self::Cached => None,
            Self::CachedOrBatched if known_cache => Some("cached"),
            Self::CachedOrBatched => Some("batched"),
        }
    }
}

/// One pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Its path.
    pub path: Path,
    /// Its buckets.
    pub buckets: u32,
    /// How often each bucket is tried first; empty: all the same.
    pub weights: &'static [u32],
}

impl Pool {
    pub(super) const fn new(path: Path, buckets: u32) -> Self {
        Self { path, buckets, weights: &[] }
    }
}

/// What is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shop {
    /// The pools; the first is the hot one.
    pub pools: &'static [Pool],
    /// Units that are there, of a hundred that are expected to be asked for.
    pub stock_percent: u32,
    /// Orders for the hot pool, of a hundred.
    pub hot_percent: u32,
    /// Accounts, for a hundred orders.
    pub accounts_percent: u32,
    /// Most units that an account may have.
    pub account_limit: Option<u32>,
    /// Most units of an order; each order asks for 1 up to so many.
    pub quantity_max: u32,
    /// How long holds last.
    pub hold_seconds: u32,
    /// How long after that they are released.
    pub release_grace_ms: u32,
    /// When orders come.
    pub tide: Tide,
}

impl Shop {
    pub(super) const PLAIN: Self = Self {
        pools: &[Pool::new(Path::CachedOrBatched, 4)],
        stock_percent: 300,
        hot_percent: 100,
        accounts_percent: 50,
        account_limit: None,
        quantity_max: 2,
        hold_seconds: 3,
        release_grace_ms: 300,
        tide: Tide::EVEN,
    };

    /// The pools on a deployment of this kind, each with the name of its path.
    pub fn pools_on(&self, kind: Option<Kind>) -> Vec<(Pool, &'static str)> {
        self.pools.iter().filter_map(|pool| Some((*pool, pool.path.on(kind)?))).collect()
    }
}

/// How the rate of orders goes up and down: from which thousandth of the time on, how many of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tide(pub &'static [(u16, u16)]);

impl Tide {
    /// Always the same.
    pub const EVEN: Self = Self(&[]);

    /// How many of a hundred come at this thousandth.
    pub fn at(self, thousandth: u64) -> u16 {
        self.0
            .iter()
            .rev()
            .find(|(from, _)| u64::from(*from) <= thousandth)
            .map_or(100, |(_, percent)| *percent)
    }
}

/// Who buys. Every figure is a share of the buyers, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buyers {
    /// What becomes of a hold.
    pub fates: Fates,
    /// Repeat the order when they have their answer, on another node.
    pub repeat: u16,
    /// Send the order twice at once, to two nodes where there are two.
    pub at_once: u16,
    /// Use the number for something else, too.
    pub alter: u16,
    /// Hang up before the answer, and ask again.
    pub hang_up: u16,
    /// Do not ask again when they know nothing.
    pub give_up: u16,
    /// Look their order up on another node, after each answer.
    pub look: u16,
    /// The longest that they think before they pay or cancel, in milliseconds.
    pub think_ms_max: u32,
}

/// What becomes of a hold, in thousandths. Those that are left let it run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fates {
    /// Paid in time.
    pub paid: u16,
    /// Paid in time, and the notice comes twice at once, and again later.
    pub paid_doubled: u16,
    /// The payment fails, and the hold runs out.
    pub payment_failed: u16,
    /// The payment fails, and the second succeeds.
    pub second_payment: u16,
    /// Paid when the hold ends.
    pub paid_at_end: u16,
    /// Paid when the hold is over.
    pub paid_late: u16,
    /// Cancelled.
    pub cancelled: u16,
    /// Paid and cancelled at once.
    pub raced: u16,
}

impl Fates {
    pub(super) const NONE: Self = Self {
        paid: 0,
        paid_doubled: 0,
        payment_failed: 0,
        second_payment: 0,
        paid_at_end: 0,
        paid_late: 0,
        cancelled: 0,
        raced: 0,
    };

    pub(super) const MIXED: Self = Self {
        paid: 450,
        paid_doubled: 100,
        payment_failed: 50,
        second_payment: 50,
        paid_at_end: 0,
        paid_late: 30,
        cancelled: 120,
        raced: 30,
    };
}

impl Buyers {
    pub(super) const MIXED: Self = Self {
        fates: Fates::MIXED,
        repeat: 150,
        at_once: 50,
        alter: 0,
        hang_up: 50,
        give_up: 100,
        look: 150,
        think_ms_max: 400,
    };
}

#[cfg(test)]
impl Buyers {
    /// All shares of one die together are no more than it has.
    pub(super) fn assert_whole(&self, scenario: &str) {
        let Fates {
            paid,
            paid_doubled,
            payment_failed,
            second_payment,
            paid_at_end,
            paid_late,
            cancelled,
            raced,
        } = self.fates;
        let fates = paid
            + paid_doubled
            + payment_failed
            + second_payment
            + paid_at_end
            + paid_late
            + cancelled
            + raced;
        assert!(fates <= 1_000, "{scenario}");
        for share in [self.repeat, self.at_once, self.alter, self.hang_up, self.give_up, self.look] {
            assert!(share <= 1_000, "{scenario}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_needs_a_cache_is_only_where_there_is_one() {
        assert_eq!(Path::Cached.on(Some(Kind::Postgres)), None);
        assert_eq!(Path::Cached.on(Some(Kind::PostgresRedis)), Some("cached"));
        assert_eq!(Path::CachedOrBatched.on(Some(Kind::Sqlite)), Some("batched"));
        assert_eq!(Path::CachedOrBatched.on(None), Some("batched"));
        assert_eq!(Path::Cached.on(None), Some("cached"));
    }

    #[test]
    fn a_tide_is_what_began_last() {
        let tide = Tide(&[(0, 100), (300, 600), (600, 50)]);
        assert_eq!([0, 299, 300, 599, 600, 1_000].map(|at| tide.at(at)), [100, 100, 600, 600, 50, 50]);
        assert_eq!(Tide::EVEN.at(500), 100);
    }
}
