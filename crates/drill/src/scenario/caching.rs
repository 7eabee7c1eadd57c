//! A cache that forgets, goes back in time, or is another one.

use holdfast_core::invariant::Invariant;

use super::expected::{BUSY, BUYING, CACHE_LOSS, ENDING, LATE, PAYING, QUEUEING, SHORT};
use super::shop::{Buyers, Path, Pool, Shop};
use super::{Scenario, Step};
use crate::deployment::Kind;
use crate::fault::Fault;

const WITH_CACHE: &[Kind] = &[Kind::SqliteRedis, Kind::PostgresRedis];

const EXPECTED: &[&[&str]] = &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY, CACHE_LOSS];

const SHOP: Shop = Shop { pools: &[Pool::new(Path::Cached, 2)], stock_percent: 80, ..Shop::PLAIN };

/// Goal: a cache that has lost everything sells nothing that it does not have. Faults: it is emptied, twice.
pub(super) const CACHE_WIPE: Scenario = Scenario {
    name: "cache-wipe",
    goal: "The cache loses everything: that is noticed before it sells again, and who waited is told what became of it.",
    goal_zh: "缓存被清空：在它再次售出之前就被发现，正在等待的人都会得到明确结果。",
    kinds: WITH_CACHE,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::again(Fault::WipeCache, 250, 0, 350)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 10,
    orders_a_second: 200,
};

/// Goal: stock that an old snapshot brings back is not sold again. Faults: the cache goes back in time.
pub(super) const CACHE_STALE_RESTORE: Scenario = Scenario {
    name: "cache-stale-restore",
    goal: "The cache comes back as it was some time ago: stock that is gone since is not sold again.",
    goal_zh: "缓存从旧快照恢复：此后已卖出的库存不会再卖一次。",
    kinds: WITH_CACHE,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::RestoreCache, 400, 150)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 10,
    orders_a_second: 200,
};

/// Goal: a replica that has missed the last writes does not sell them again. Faults: it takes over.
pub(super) const CACHE_FAILOVER: Scenario = Scenario {
    name: "cache-failover",
    goal: "The cache's primary stands still, then dies, and a replica without the last writes takes over: nothing is sold twice.",
    goal_zh: "缓存主节点先停顿后宕机，缺少最后写入的副本接管：没有一件库存被卖两次。",
    kinds: WITH_CACHE,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::PauseCache, 150, 100), Step::once(Fault::FailOverCache, 450, 150)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 12,
    orders_a_second: 200,
};
