//! Nodes, the authority, connections, clocks and disks that fail.

use holdfast_core::invariant::Invariant;

use super::expected::{BUSY, BUYING, CACHE_LOSS, ENDING, FULL, LATE, OUTAGE, PAYING, QUEUEING, SHORT};
use super::shop::{Buyers, Path, Pool, Shop};
use super::{Scenario, Step};
use crate::deployment::Kind;
use crate::fault::Fault;

const ON_POSTGRES: &[Kind] = &[Kind::Postgres, Kind::PostgresRedis];

const EXPECTED: &[&[&str]] = &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY, OUTAGE, CACHE_LOSS];

/// A pool of each path, so that a fault meets orders on all of their ways.
const SHOP: Shop = Shop {
    pools: &[
        Pool::new(Path::Batched, 4),
        Pool::new(Path::Queued, 2),
        Pool::new(Path::Direct, 2),
        Pool::new(Path::Cached, 2),
    ],
    hot_percent: 40,
    stock_percent: 150,
    ..Shop::PLAIN
};

/// Goal: while the authority is away nothing is claimed, and what was told before is there after. Faults: it dies, and
/// later stands still.
pub(super) const AUTHORITY_OUTAGE: Scenario = Scenario {
    name: "authority-outage",
    goal: "The authority dies and comes back, then stands still: nothing is called held in between, and nothing told is lost.",
    goal_zh: "权威数据库宕机后恢复，随后又停顿：期间没有任何订单被称为已预占，已告知的结果一个不丢。",
    kinds: ON_POSTGRES,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::KillAuthority, 200, 150), Step::once(Fault::PauseAuthority, 600, 100)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 15,
    orders_a_second: 150,
};

/// Goal: an acknowledged order is on the standby that takes over. Faults: the primary dies.
pub(super) const AUTHORITY_FAILOVER: Scenario = Scenario {
    name: "authority-failover",
    goal: "The primary dies and its synchronous standby takes over: every acknowledged order is there.",
    goal_zh: "主库宕机、同步备库接管：每个已确认的订单都在。",
    kinds: ON_POSTGRES,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::FailOverAuthority, 400, 150)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 15,
    orders_a_second: 150,
};

/// Goal: a lost answer is unknown, never assumed. Faults: connections are cut, answers to commits are lost.
pub(super) const CONNECTION_CUT: Scenario = Scenario {
    name: "connection-cut",
    goal: "Connections are cut and answers to commits are lost on the way: what is unknown is asked for, never guessed.",
    goal_zh: "连接被切断、提交的回应在途中丢失：未知就去查明，绝不猜测。",
    kinds: &[Kind::SqliteRedis, Kind::Postgres, Kind::PostgresRedis],
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[
        Step::again(Fault::CutAuthority, 100, 0, 170),
        Step::once(Fault::LoseCommitAnswers, 450, 150),
        Step::again(Fault::CutCache, 150, 0, 170),
    ],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 12,
    orders_a_second: 150,
};

/// Goal: a node that dies leaves nothing half done. Faults: nodes are killed.
pub(super) const NODE_KILL: Scenario = Scenario {
    name: "node-kill",
    goal: "Nodes are killed while they answer: what was acknowledged is there, and nothing is half done.",
    goal_zh: "节点在应答途中被杀死：已确认的都在，没有半途而废的操作。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::again(Fault::KillNode, 200, 100, 300)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 12,
    orders_a_second: 150,
};

/// Goal: a node that wakes up late does nothing that others have done meanwhile. Faults: a node stands still.
pub(super) const NODE_PAUSE: Scenario = Scenario {
    name: "node-pause",
    goal: "A node stands still for longer than its leases, and wakes up: it does nothing twice.",
    goal_zh: "节点停顿超过租约后醒来：不会重复做任何事。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::PauseNode, 200, 400)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 15,
    orders_a_second: 150,
};

/// Goal: a node's wrong clock decides nothing. Faults: a node's clock is set forward, and back.
pub(super) const CLOCK_STEP: Scenario = Scenario {
    name: "clock-step",
    goal: "A node's clock is set forward and back again: holds end by the authority's clock, and nobody notices.",
    goal_zh: "节点时钟被拨快又拨回：预占按权威数据库的时钟到期，没有人察觉。",
    // On the embedded store the node's clock is the authority's: holds end by it, right or wrong.
    kinds: ON_POSTGRES,
    invariants: &Invariant::ALL,
    expected: EXPECTED,
    steps: &[Step::once(Fault::StepClock, 300, 300)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 12,
    orders_a_second: 150,
};

/// Goal: a disk that is slow, then full, stops sales and loses nothing. Faults: both.
pub(super) const SLOW_DISK_FULL: Scenario = Scenario {
    name: "slow-disk-full",
    goal: "The authority's disk is slow, then full: sales are refused with the reason, and go on when there is space.",
    goal_zh: "权威数据库的磁盘先变慢后写满：拒绝并说明原因，有空间后自动恢复。",
    kinds: &Kind::ALL,
    invariants: &Invariant::ALL,
    expected: &[BUYING, QUEUEING, SHORT, ENDING, PAYING, LATE, BUSY, OUTAGE, CACHE_LOSS, FULL],
    steps: &[Step::once(Fault::SlowDisk, 150, 200), Step::once(Fault::FillDisk, 500, 150)],
    shop: SHOP,
    buyers: Buyers::MIXED,
    seconds: 12,
    orders_a_second: 100,
};
