//! More than can be done, everything together, and for long.

use holdfast_core::invariant::Invariant;

use super::expected::{
    ALTERED, BUSY, BUYING, CACHE_LOSS, ENDING, FULL, LATE, LIMITED, OUTAGE, PAYING, QUEUEING, SHORT,
};
use super::shop::{Buyers, Fates, Path, Pool, Shop, Tide};
use super::{Scenario, Step};
use crate::deployment::Kind;
use crate::fault::Fault;

/// Goal: overload lowers acceptance, not correctness, and the backlog goes away by itself. Faults: too many buyers.
pub(super) const OVERLOAD_AND_DRAIN: Scenario = Scenario {
    name: "overload-and-drain",
    goal: "Many times more orders than can be done, then few: some are refused at once, none is forgotten, and the backlog drains by itself.",
    goal_zh: "订单远超处理能力，随后回落：部分当场被拒，没有一个被遗忘，积压自行消化。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY, OUTAGE],
    steps: &[],
    shop: Shop {
        pools: &[Pool::new(Path::Batched, 2), Pool::new(Path::Queued, 2), Pool::new(Path::Cached, 2)],
        hot_percent: 50,
        stock_percent: 400,
        tide: Tide(&[(0, 50), (200, 800), (500, 20)]),
        ..Shop::PLAIN
    },
    buyers: Buyers { give_up: 600, ..Buyers::MIXED },
    seconds: 10,
    orders_a_second: 500,
};

const EVERYTHING: &[&[&str]] =
    &[BUYING, QUEUEING, SHORT, LIMITED, ENDING, PAYING, LATE, ALTERED, BUSY, OUTAGE, CACHE_LOSS, FULL];

/// Goal: a whole sale with all that goes wrong in one. Faults: all of them in turn, again and again.
pub(super) const SALE_DAY: Scenario = Scenario {
    name: "sale-day",
    goal: "A whole sale: the rush at the opening, all kinds of buyers, and every fault in turn, again and again.",
    goal_zh: "完整的一天促销：开场高峰、各种买家、各类故障轮番反复出现。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: EVERYTHING,
    steps: &[
        Step::again(Fault::KillNode, 80, 20, 160),
        Step::again(Fault::CutAuthority, 100, 0, 110),
        Step::again(Fault::WipeCache, 130, 0, 230),
        Step::again(Fault::CutCache, 160, 0, 120),
        Step::again(Fault::PauseNode, 200, 30, 310),
        Step::again(Fault::RepeatDeliveries, 215, 0, 140),
        Step::again(Fault::LoseCommitAnswers, 250, 20, 260),
        Step::once(Fault::KillAuthority, 400, 20),
        Step::once(Fault::RestoreCache, 460, 20),
        Step::once(Fault::PauseAuthority, 540, 20),
        Step::once(Fault::PauseWorker, 600, 30),
        Step::once(Fault::PauseCache, 680, 20),
    ],
    shop: Shop {
        pools: &[
            Pool::new(Path::CachedOrBatched, 4),
            Pool::new(Path::Batched, 8),
            Pool::new(Path::Queued, 2),
            Pool::new(Path::Direct, 2),
            Pool { path: Path::Batched, buckets: 4, weights: &[900, 50, 40, 10] },
        ],
        stock_percent: 80,
        hot_percent: 50,
        account_limit: Some(12),
        quantity_max: 3,
        hold_seconds: 5,
        tide: Tide(&[(0, 300), (100, 100), (900, 50)]),
        ..Shop::PLAIN
    },
    buyers: Buyers {
        fates: Fates { paid: 350, paid_at_end: 80, ..Fates::MIXED },
        alter: 20,
        think_ms_max: 1_500,
        ..Buyers::MIXED
    },
    seconds: 60,
    orders_a_second: 150,
};

/// Goal: nothing grows that should not, and nothing is forgotten, over a long time. Faults: a few, far apart.
pub(super) const SOAK: Scenario = Scenario {
    name: "soak",
    goal: "An even load for long, with a fault now and then: what is true at the beginning is true at the end.",
    goal_zh: "长时间平稳负载，偶有故障：开始时成立的，结束时依然成立。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: EVERYTHING,
    steps: &[
        Step::again(Fault::KillNode, 150, 10, 250),
        Step::again(Fault::CutAuthority, 200, 0, 200),
        Step::again(Fault::CutCache, 300, 0, 200),
    ],
    shop: Shop {
        pools: &[Pool::new(Path::Batched, 4), Pool::new(Path::Queued, 2), Pool::new(Path::Cached, 2)],
        hot_percent: 60,
        stock_percent: 110,
        ..Shop::PLAIN
    },
    buyers: Buyers { alter: 10, ..Buyers::MIXED },
    seconds: 300,
    orders_a_second: 100,
};

/// Goal: what the load itself can offer. Not in the list: nothing is judged.
pub(super) const PLACING: Scenario = Scenario {
    name: "placing",
    goal: "Buyers who only place.",
    goal_zh: "只下单的买家。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING],
    steps: &[],
    shop: Shop { quantity_max: 1, ..Shop::PLAIN },
    buyers: Buyers {
        fates: Fates::NONE,
        repeat: 0,
        at_once: 0,
        alter: 0,
        hang_up: 0,
        give_up: 1_000,
        look: 0,
        think_ms_max: 0,
    },
    seconds: 10,
    orders_a_second: 1_000,
};
