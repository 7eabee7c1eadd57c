//! What a drill found: the JSON beside the page, and all that the page is drawn from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One scenario on one deployment with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// Whether every invariant held, every answer was true and only expected ones came.
    pub ok: bool,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// What was drilled, and where.
    pub environment: Environment,
    /// With what.
    pub parameters: Parameters,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// When what was broken.
    pub windows: Vec<Window>,
    /// Answers by what was asked and told, such as `place 201` or `place 409 sold_out`.
    pub answers: BTreeMap<String, u64>,
    /// Where the units are at the end.
    pub buckets: Vec<BucketFigures>,
    /// The invariants, each with the breaches that were found.
    pub invariants: Vec<InvariantVerdict>,
    /// Breaches with what was found; the first thousand.
    pub breaches: Vec<Breach>,
    /// How many breaches there are.
    pub breaches_count: u64,
    /// How long after the last fault's end the first order was placed, in milliseconds; none without a fault.
    pub recovered_after_ms: Option<u64>,
    /// How long after the last request the last order had its final answer, in milliseconds.
    pub drained_after_ms: u64,
    /// How well the generator kept its schedule.
    pub generator: Generator,
}

/// What was drilled, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// What the deployment is made of; `unknown` if nobody has said.
    pub deployment: String,
    /// How many nodes.
    pub nodes: usize,
    /// The version of Holdfast that drove the load.
    pub version: String,
    /// Processors of the machine that drove the load; the deployment's own too if it was private.
    pub processors: usize,
    /// Whether the drill had servers of its own.
    pub private: bool,
}

/// With what it was drilled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// What all chances of the run come from.
    pub seed: u64,
    /// How long the load lasted.
    pub seconds: f64,
    /// Orders a second that were to be placed.
    pub orders_a_second: f64,
    /// Connections of the generator.
    pub connections: usize,
    /// Processes of the generator.
    pub processes: usize,
    /// The path of the pools.
    pub path: String,
    /// How many pools.
    pub pools: u32,
    /// Buckets of each.
    pub buckets: u32,
    /// Units of all pools together when it began.
    pub stock: u64,
    /// The share of the orders that go for the first pool.
    pub hot_share: f64,
    /// How many accounts buy.
    pub accounts: u64,
    /// Most units that an account may have; none: no limit that anybody could reach.
    pub account_limit: Option<u64>,
    /// How long holds last.
    pub hold_seconds: u64,
    /// Orders that were stored before.
    pub stored_orders: u64,
}

/// One second of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Which, from 0.
    pub at: u64,
    /// Orders that were due.
    pub due: u64,
    /// Answers by class: `held`, `queued`, `sold`, `released`, `refused`, `outage`, `lost`, `nonsense`.
    pub answers: BTreeMap<String, u64>,
    /// Latency of placing, from when it was due, in microseconds; none without an answer.
    pub p50_us: Option<u64>,
    /// The same.
    pub p99_us: Option<u64>,
    /// The same.
    pub max_us: Option<u64>,
    /// Orders that were queued and had no final answer.
    pub backlog: u64,
    /// Requests under way.
    pub under_way: u64,
}

/// When a fault was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its name.
    pub fault: String,
    /// When it began, in seconds since the load began.
    pub from: f64,
    /// When nothing stood in the way any more.
    pub to: f64,
}

/// One bucket at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketFigures {
    /// What is sold.
    pub sku: String,
    /// The bucket's number.
    pub bucket: u32,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
}

/// One invariant, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvariantVerdict {
    /// Its number in the contract, or a word for what is asked of answers beside those.
    pub code: String,
    /// In words.
    pub name: String,
    /// How many breaches; none: nothing that the drill could read shows it.
    pub breaches: Option<u64>,
}

/// One breach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Of which invariant.
    pub code: String,
    /// Of what: an order, a bucket, an account.
    pub subject: String,
    /// What should be.
    pub expected: String,
    /// What is.
    pub actual: String,
}

/// How well the generator kept its schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Orders that were due.
    pub due: u64,
    /// Orders that were sent.
    pub sent: u64,
    /// How late requests were sent for want of the generator itself, in microseconds.
    pub late_p99_us: u64,
    /// Whether it was itself the limit, so that what it offered is less than what was asked for.
    pub is_limit: bool,
}
