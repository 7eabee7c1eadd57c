//! Payments that meet the end of the hold, and work that is delivered late or twice.

use holdfast_core::invariant::Invariant;

use super::expected::{BUSY, BUYING, ENDING, LATE, OUTAGE, PAYING, QUEUEING, SHORT};
use super::shop::{Buyers, Fates, Path, Pool, Shop};
use super::{Scenario, Step};
use crate::deployment::Kind;
use crate::fault::Fault;

/// Goal: a payment and the end of the hold that meet have one winner. Faults: none but the clock.
pub(super) const CONFIRM_VS_EXPIRY: Scenario = Scenario {
    name: "confirm-vs-expiry",
    goal: "Payments come in the moment in which the hold ends: one of the two wins, and no money is lost.",
    goal_zh: "付款恰好在预占到期的瞬间到达：两者只有一个生效，没有一笔钱丢失。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY],
    steps: &[],
    shop: Shop {
        pools: &[Pool::new(Path::Batched, 2)],
        stock_percent: 60,
        hold_seconds: 2,
        release_grace_ms: 100,
        ..Shop::PLAIN
    },
    buyers: Buyers {
        fates: Fates {
            paid: 100,
            paid_doubled: 50,
            paid_at_end: 500,
            paid_late: 150,
            cancelled: 50,
            raced: 100,
            ..Fates::NONE
        },
        ..Buyers::MIXED
    },
    seconds: 10,
    orders_a_second: 200,
};

/// Goal: what is delivered twice is done once. Faults: entries of the cache come again.
pub(super) const DUPLICATE_DELIVERY: Scenario = Scenario {
    name: "duplicate-delivery",
    goal: "What a cache accepted is delivered again and again, and payment notices come doubled: each is done once.",
    goal_zh: "缓存已接受的条目被反复投递，支付通知也成倍到达：每件事只做一次。",
    kinds: &[Kind::SqliteRedis, Kind::PostgresRedis],
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY],
    steps: &[Step::again(Fault::RepeatDeliveries, 100, 0, 150)],
    shop: Shop { pools: &[Pool::new(Path::Cached, 2)], ..Shop::PLAIN },
    buyers: Buyers {
        fates: Fates { paid: 200, paid_doubled: 500, cancelled: 100, ..Fates::NONE },
        ..Buyers::MIXED
    },
    seconds: 10,
    orders_a_second: 200,
};

/// Goal: a backlog that grew while nobody landed it is landed, in order and once. Faults: the worker stands still.
pub(super) const CONSUMER_PAUSE: Scenario = Scenario {
    name: "consumer-pause",
    goal: "Whoever lands waiting orders stands still and goes on: nobody is forgotten, and nothing lands twice.",
    goal_zh: "处理排队订单的工作进程停顿后恢复：没有订单被遗忘，也没有重复落库。",
    kinds: &[Kind::Postgres, Kind::PostgresRedis],
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY, OUTAGE],
    steps: &[Step::once(Fault::PauseWorker, 200, 400)],
    shop: Shop {
        pools: &[Pool::new(Path::Queued, 2), Pool::new(Path::Cached, 2)],
        hot_percent: 50,
        ..Shop::PLAIN
    },
    buyers: Buyers::MIXED,
    seconds: 15,
    orders_a_second: 150,
};
