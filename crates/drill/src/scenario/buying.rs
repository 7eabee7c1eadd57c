//! Rushes in which nothing breaks: what many buyers do to the same few rows.

use holdfast_core::invariant::Invariant;

use super::Scenario;
use super::expected::{ALTERED, BUSY, BUYING, ENDING, LATE, LIMITED, PAYING, QUEUEING, SHORT};
use super::shop::{Buyers, Fates, Path, Pool, Shop};
use crate::deployment::Kind;

/// Goal: one hot pool sells steadily, and every answer is true. Faults: none.
pub(super) const HOT_POOL: Scenario = Scenario {
    name: "hot-pool",
    goal: "One pool that everybody wants: all answers are true, and every unit is accounted for.",
    goal_zh: "所有人抢购同一个库存池：每个回答都属实，每件库存都有去向。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, ENDING, PAYING, LATE, BUSY],
    steps: &[],
    shop: Shop { pools: &[Pool::new(Path::CachedOrBatched, 1)], ..Shop::PLAIN },
    buyers: Buyers::MIXED,
    seconds: 10,
    orders_a_second: 300,
};

/// Goal: a bucket that is tried far too often runs dry, and nobody is sent away while another has stock. Faults: none.
pub(super) const SKEWED_BUCKETS: Scenario = Scenario {
    name: "skewed-buckets",
    goal: "Nearly all orders try the same bucket first: when it is empty the others sell, and nobody is told sold out before they are.",
    goal_zh: "几乎所有订单都先落到同一个库存桶：它卖空后由其他桶继续供货，真正售罄之前不会有人被告知售罄。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY],
    steps: &[],
    shop: Shop {
        pools: &[Pool { path: Path::CachedOrBatched, buckets: 8, weights: &[970, 10, 5, 5, 5, 3, 1, 1] }],
        stock_percent: 70,
        ..Shop::PLAIN
    },
    buyers: Buyers::MIXED,
    seconds: 10,
    orders_a_second: 300,
};

/// Goal: the last units are sold, each once, and the stock ends out or on the shelf. Faults: none.
pub(super) const LAST_UNITS: Scenario = Scenario {
    name: "last-units",
    goal: "Many more buyers than units: the last unit is sold, once, and none is stranded.",
    goal_zh: "买家远多于库存：最后一件也卖得出去，且只卖一次，没有一件滞留。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, LIMITED, ENDING, PAYING, LATE, BUSY],
    steps: &[],
    shop: Shop {
        pools: &[Pool::new(Path::Batched, 4), Pool::new(Path::Queued, 2), Pool::new(Path::Cached, 2)],
        stock_percent: 15,
        hot_percent: 60,
        accounts_percent: 30,
        account_limit: Some(4),
        quantity_max: 3,
        ..Shop::PLAIN
    },
    buyers: Buyers { think_ms_max: 150, ..Buyers::MIXED },
    seconds: 10,
    orders_a_second: 400,
};

/// Goal: however often and wherever a key is repeated, there is one order and one outcome. Faults: none.
pub(super) const DUPLICATES: Scenario = Scenario {
    name: "duplicates",
    goal: "Most buyers send the same order again: at once, later, on another node, after hanging up, and some with other content.",
    goal_zh: "多数买家重复提交同一订单：同时、稍后、换节点、断线之后，有的还改了内容；结果始终只有一个订单。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, ALTERED, BUSY],
    steps: &[],
    shop: Shop {
        pools: &[Pool::new(Path::CachedOrBatched, 2), Pool::new(Path::Direct, 2)],
        hot_percent: 70,
        stock_percent: 90,
        ..Shop::PLAIN
    },
    buyers: Buyers {
        fates: Fates { paid: 300, paid_doubled: 400, cancelled: 100, ..Fates::NONE },
        repeat: 700,
        at_once: 500,
        alter: 200,
        hang_up: 300,
        give_up: 50,
        look: 200,
        think_ms_max: 300,
    },
    seconds: 10,
    orders_a_second: 150,
};
