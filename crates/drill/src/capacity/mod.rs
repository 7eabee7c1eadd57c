//! The capacity plan: from what was measured to path, buckets, nodes, limits and sizes. A pure function, which says where
//! it goes beyond what was measured.

mod measured;

use serde::Serialize;

use measured::USABLE;
pub use measured::{Measured, Point};

/// Room of queues above what is expected to wait in them.
const QUEUE_ROOM: f64 = 1.25;
/// Bytes of a cache for an order that waits in it, and for one whose number it still knows; both were measured
/// (docs/cache.md).
const CACHE_BYTES_WAITING: f64 = 516.0;
const CACHE_BYTES_KNOWN: f64 = 151.0;
/// Units that may be left unsold when it is said how long a sale takes to its end.
const LEFT_SHARE: f64 = 0.01;
/// Most rounds of holds that are counted.
const ROUNDS_MAX: f64 = 1_000.0;

/// What a sale is expected to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// Orders that come in a second at the peak.
    pub peak_rps: f64,
    /// How long the peak lasts.
    pub peak_seconds: f64,
    /// The share of them that wants the same pool.
    pub hot_share: f64,
    /// Units in that pool.
    pub stock: u64,
    /// The share of holds that nobody pays.
    pub unpaid_share: f64,
    /// How long a hold lasts.
    pub hold_seconds: f64,
    /// How long a buyer may wait in a queue for the answer.
    pub wait_seconds: f64,
    /// How long the database may be away while orders are still taken.
    pub outage_seconds: f64,
    /// Orders that are stored in all.
    pub orders: u64,
}

/// One tier, and how far it carries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tier {
    /// Which.
    pub tier: &'static str,
    /// What it must do in a second.
    pub needed_rps: f64,
    /// What it was measured to do.
    pub measured_rps: f64,
    /// How often the one goes into the other.
    pub headroom: f64,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Whether what was measured carries what is expected.
    pub carries: bool,
    /// The most orders a second for one pool that what was measured carries, with room, on whichever path answers most.
    pub hot_rps_max: Option<f64>,
    /// The path of the hot pool; none carries it.
    pub path: Option<String>,
    /// Its buckets.
    pub buckets: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
    /// Orders that wait at most, with room: `queue_limit` of the policy.
    pub queue_limit: Option<u64>,
    /// How long the last of them waits, with room: `queue_wait_ms` of the policy.
    pub queue_wait_ms: Option<u64>,
    /// Until the hot pool is first sold out, in seconds.
    pub sold_out_after_seconds: Option<f64>,
    /// Until all but a hundredth of it is paid for, with holds that nobody pays going round, in seconds.
    pub sold_through_after_seconds: f64,
    /// Units held at once, at most.
    pub held_units_max: u64,
    /// Bytes that the database writes to its log in a second at the peak.
    pub log_bytes_a_second: Option<u64>,
    /// Bytes that it writes to its log for all orders.
    pub log_bytes: Option<u64>,
    /// Bytes of the cache.
    pub cache_bytes: Option<u64>,
    /// Every tier, the tightest first.
    pub tiers: Vec<Tier>,
    /// What gives way first.
    pub breaks_first: String,
    /// Why so.
    pub reasons: Vec<String>,
    /// What none of the measurements shows. Nothing here is promised.
    pub beyond: Vec<String>,
}

/// A path that carries the hot pool, with what waits on it.
struct Choice<'p> {
    point: &'p Point,
    /// Orders that wait at the end of the peak.
    backlog: f64,
}

/// Plans.
pub fn plan(expected: &Expected, measured: &Measured) -> Plan {
    let hot_rps = expected.peak_rps * expected.hot_share;
    let mut reasons = Vec::new();
    let choice = choose(expected, measured, hot_rps, &mut reasons);
    let point = choice.as_ref().map(|choice| choice.point);
    let tiers = tiers(expected, measured, point, hot_rps);
    let fits = tiers.iter().all(|tier| tier.headroom * USABLE >= 1.0);
    let breaks_first = match tiers.first() {
        Some(tier) => format!(
            "{}: {:.0}/s are needed, {:.0}/s were measured ({:.2} times)",
            tier.tier, tier.needed_rps, tier.measured_rps, tier.headroom
        ),
        None => "nothing was measured".to_owned(),
    };
    let backlog = choice.as_ref().map(|choice| choice.backlog * QUEUE_ROOM);
    let landed_rps = point.map_or(0.0, |point| point.holds_rps * point.usable());
    let waits = point.is_some_and(|point| point.path == "queued" || point.path == "cached");
    let log_bytes = point.and_then(|point| point.log_bytes);
    let is_cached = point.is_some_and(|point| point.path == "cached");
    let known = (expected.peak_rps * expected.peak_seconds).max(0.0);
    let cache_bytes = backlog
        .filter(|_| is_cached)
        .map(|waiting| waiting.mul_add(CACHE_BYTES_WAITING, known * CACHE_BYTES_KNOWN));
    Plan {
        carries: choice.is_some() && fits,
        hot_rps_max: hot_rps_max(measured),
        path: point.map(|point| point.path.clone()),
        buckets: point.map(|point| point.buckets),
        nodes: point.map(|point| point.nodes),
        queue_limit: backlog.filter(|_| waits).map(|orders| whole(orders).max(1)),
        queue_wait_ms: backlog
            .filter(|_| waits)
            .map(|orders| whole(orders / landed_rps * 1_000.0).max(1_000)),
        sold_out_after_seconds: point.map(|point| {
            let rate = hot_rps.min(point.holds_rps);
            number(expected.stock) / rate.max(f64::MIN_POSITIVE)
        }),
        sold_through_after_seconds: rounds(expected.unpaid_share) * expected.hold_seconds,
        held_units_max: expected.stock.min(whole(hot_rps * expected.hold_seconds)),
        log_bytes_a_second: log_bytes.map(|bytes| whole(bytes * expected.peak_rps)),
        log_bytes: log_bytes.map(|bytes| whole(bytes * number(expected.orders))),
        cache_bytes: cache_bytes.map(whole),
        tiers,
        breaks_first,
        reasons,
        beyond: beyond(expected, measured, point),
    }
}

/// The path that answers soonest what the buyer wants to know, of those that carry the load with room.
fn choose<'m>(
    expected: &Expected,
    measured: &'m Measured,
    hot_rps: f64,
    reasons: &mut Vec<String>,
) -> Option<Choice<'m>> {
    let best = |path: &str| {
        let mut of_path: Vec<&Point> =
            measured.points.iter().filter(|point| point.hot && point.path == path).collect();
        // The fewest nodes and buckets that do.
        of_path.sort_by_key(|point| (point.nodes, point.buckets));
        let enough = of_path.iter().find(|point| point.answered_rps() * point.usable() >= hot_rps).copied();
        enough.or(of_path.into_iter().max_by(|a, b| a.answered_rps().total_cmp(&b.answered_rps())))
    };
    for path in ["batched", "direct"] {
        let Some(point) = best(path) else { continue };
        if point.answered_rps() * point.usable() >= hot_rps {
            reasons.push(format!(
                "{path} over {} buckets on {} nodes held {:.0}/s, of which {hot_rps:.0}/s are {:.0} %: every buyer is told held or not at once",
                point.buckets,
                point.nodes,
                point.holds_rps,
                hot_rps / point.holds_rps * 100.0
            ));
            if expected.outage_seconds > 0.0 {
                reasons.push(format!(
                    "while the database is away, buyers are told to come again: {path} takes no order then"
                ));
            }
            return Some(Choice { point, backlog: 0.0 });
        }
        reasons.push(format!(
            "{path} held {:.0}/s, of which a sale may use {:.0} %: {:.0}/s are too many for it",
            point.holds_rps,
            point.usable() * 100.0,
            hot_rps
        ));
    }
    ["queued", "cached"].iter().find_map(|path| waiting(expected, best(path)?, hot_rps, reasons))
}

/// A path on which orders wait: it takes them all, and lands what waits in time.
fn waiting<'m>(
    expected: &Expected,
    point: &'m Point,
    hot_rps: f64,
    reasons: &mut Vec<String>,
) -> Option<Choice<'m>> {
    let (path, takes, lands) =
        (&point.path, point.answered_rps() * point.usable(), point.holds_rps * point.usable());
    if takes < hot_rps {
        reasons
            .push(format!("{path} took {:.0}/s: {hot_rps:.0}/s are too many for it", point.answered_rps()));
        return None;
    }
    let grown = (hot_rps - lands).max(0.0) * expected.peak_seconds;
    // Only a cache takes orders while the database is away.
    let outage = if path == "cached" { expected.outage_seconds * hot_rps } else { 0.0 };
    let backlog = grown + outage;
    let wait = backlog / lands.max(f64::MIN_POSITIVE);
    if wait > expected.wait_seconds {
        reasons.push(format!(
            "{path} lands {lands:.0}/s: at the end of the peak {backlog:.0} orders would wait for {wait:.0} s, longer than {:.0} s",
            expected.wait_seconds
        ));
        return None;
    }
    reasons.push(format!(
        "{path} took {:.0}/s and lands {lands:.0}/s: {backlog:.0} orders wait at most, the last for {wait:.1} s; buyers are told queued, which is not held",
        point.answered_rps()
    ));
    Some(Choice { point, backlog })
}

fn hot_rps_max(measured: &Measured) -> Option<f64> {
    let of_hot = measured.points.iter().filter(|point| point.hot);
    of_hot.map(|point| point.answered_rps() * point.usable()).reduce(f64::max)
}

fn tiers(expected: &Expected, measured: &Measured, point: Option<&Point>, hot_rps: f64) -> Vec<Tier> {
    let mut tiers = Vec::new();
    let mut add = |tier, needed_rps: f64, measured_rps: Option<f64>| {
        if let Some(measured_rps) = measured_rps.filter(|_| needed_rps > 0.0) {
            tiers.push(Tier { tier, needed_rps, measured_rps, headroom: measured_rps / needed_rps });
        }
    };
    let nodes = point.map_or(1.0, |point| f64::from(point.nodes));
    add("entry (HTTP of all nodes)", expected.peak_rps, measured.entry_rps.map(|rps| rps * nodes));
    match point {
        Some(point) if point.accepted_rps.is_some() => {
            let name = if point.path == "cached" { "cache" } else { "intake" };
            add(name, hot_rps, point.accepted_rps);
            // What waits is landed after the peak: what must be done at the peak is what a buyer will not wait for.
            let landing = hot_rps * expected.peak_seconds / (expected.peak_seconds + expected.wait_seconds);
            add("landing", landing, Some(point.holds_rps));
        }
        // What was carried without waiting has its room beyond it.
        Some(point) => add("hot pool", hot_rps, Some(point.holds_rps * point.usable() / USABLE)),
        None => {
            let best = measured.points.iter().filter(|point| point.hot).map(Point::answered_rps);
            add("hot pool", hot_rps, best.reduce(f64::max));
        }
    }
    let even =
        measured.points.iter().filter(|point| !point.hot).map(|point| point.holds_rps).reduce(f64::max);
    add("all other pools", expected.peak_rps - hot_rps, even);
    add(
        "database",
        expected.peak_rps,
        measured.engine_rps.filter(|_| point.is_none_or(|p| p.accepted_rps.is_none())),
    );
    tiers.sort_by(|a, b| a.headroom.total_cmp(&b.headroom));
    tiers
}

/// What is asked for and nobody has measured.
fn beyond(expected: &Expected, measured: &Measured, point: Option<&Point>) -> Vec<String> {
    let mut beyond = Vec::new();
    if measured.entry_rps.is_none() {
        beyond.push("what HTTP alone carries".to_owned());
    }
    if expected.hot_share < 1.0 && !measured.points.iter().any(|point| !point.hot) {
        beyond.push("ordinary traffic over many pools: `bench paths` measures it".to_owned());
    }
    let stored = point.map_or(0, |point| point.stored_orders);
    if expected.orders > stored.saturating_mul(2).max(1_000_000) {
        beyond.push(format!(
            "{} stored orders: it was measured with {stored} (`bench paths --stored N`)",
            expected.orders
        ));
    }
    if point.is_some_and(|point| point.nodes > 1) {
        beyond.push("the entry of several nodes is taken as so many times that of one".to_owned());
    }
    match point {
        Some(point) if point.log_bytes.is_none() => {
            beyond.push(format!("how much of the database's log an order on {} costs", point.path));
        }
        Some(_) => {}
        None => beyond.push(
            "more nodes or processors than were measured: whether they carry it, nobody knows yet".to_owned(),
        ),
    }
    if let Some(processors) = measured.processors {
        beyond.push(format!(
            "another machine: all figures are of {processors} processors, which the load shared with the servers"
        ));
    }
    beyond
}

/// How often holds go round until all but a few units are paid for.
fn rounds(unpaid_share: f64) -> f64 {
    if unpaid_share <= 0.0 {
        return 0.0;
    }
    // The last round is paid within its hold; the others end unpaid.
    (LEFT_SHARE.ln() / unpaid_share.ln()).ceil().clamp(1.0, ROUNDS_MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is at least 0, and what is above the largest number stays there"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0).ceil() as u64
}

#[expect(clippy::cast_precision_loss, reason = "a plan is not exact to the unit")]
fn number(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(path: &str, buckets: u32, nodes: u32, holds_rps: f64, accepted_rps: Option<f64>) -> Point {
        Point {
            path: path.to_owned(),
            buckets,
            nodes,
            hot: true,
            holds_rps,
            accepted_rps,
            p99_ms: None,
            half_load_p99_ms: None,
            log_bytes: Some(1_000.0),
            stored_orders: 0,
            carried: false,
        }
    }

    fn measured() -> Measured {
        Measured {
            points: vec![
                point("direct", 16, 1, 2_000.0, None),
                point("batched", 4, 1, 9_000.0, None),
                point("batched", 1, 1, 10_000.0, None),
                point("batched", 1, 2, 15_000.0, None),
                point("queued", 1, 1, 10_000.0, Some(11_000.0)),
                point("cached", 1, 1, 20_000.0, Some(40_000.0)),
                Point { hot: false, ..point("batched", 1, 1, 2_000.0, None) },
            ],
            entry_rps: Some(60_000.0),
            engine_rps: Some(44_000.0),
            processors: Some(2),
            stores: Vec::new(),
        }
    }

    fn expected(peak_rps: f64) -> Expected {
        Expected {
            peak_rps,
            peak_seconds: 10.0,
            hot_share: 1.0,
            stock: 5_000,
            unpaid_share: 0.3,
            hold_seconds: 600.0,
            wait_seconds: 30.0,
            outage_seconds: 0.0,
            orders: 100_000,
        }
    }

    fn path(plan: &Plan) -> (Option<&str>, Option<u32>, Option<u32>) {
        (plan.path.as_deref(), plan.buckets, plan.nodes)
    }

    #[test]
    fn the_path_that_answers_at_once_is_taken_while_it_carries() {
        let small = plan(&expected(5_000.0), &measured());
        assert_eq!(path(&small), (Some("batched"), Some(1), Some(1)), "{small:#?}");
        assert!(small.carries && small.queue_limit.is_none());
        assert_eq!(small.sold_out_after_seconds, Some(1.0));
        let two = plan(&expected(9_000.0), &measured());
        assert_eq!(path(&two), (Some("batched"), Some(1), Some(2)), "{two:#?}");
        assert!(two.carries && two.beyond.iter().any(|line| line.contains("several nodes")));
    }

    #[test]
    fn beyond_it_orders_wait_where_they_are_landed_in_time() {
        let great = plan(&expected(25_000.0), &measured());
        assert_eq!(path(&great), (Some("cached"), Some(1), Some(1)), "{great:#?}");
        // 25,000 come, 14,000 are landed, for 10 seconds.
        assert_eq!(great.queue_limit, Some(137_500));
        assert_eq!(great.queue_wait_ms, Some(9_822));
        assert!(great.cache_bytes.is_some_and(|bytes| bytes > 137_500 * 516));
        assert!(great.carries, "{great:#?}");
        let outage = plan(&Expected { outage_seconds: 5.0, ..expected(25_000.0) }, &measured());
        assert_eq!(outage.queue_limit, Some(293_750), "what comes while the database is away waits, too");
        let impatient = plan(&Expected { wait_seconds: 2.0, ..expected(25_000.0) }, &measured());
        assert!(!impatient.carries && impatient.path.is_none(), "{impatient:#?}");
    }

    #[test]
    fn what_nothing_carries_is_said_to_be_so() {
        let none = plan(&expected(100_000.0), &measured());
        assert_eq!(path(&none), (None, None, None));
        assert!(!none.carries && none.breaks_first.contains("were measured"), "{none:#?}");
        assert!(none.beyond.iter().any(|line| line.contains("nobody knows")));
        assert_eq!(none.hot_rps_max, Some(28_000.0), "what there is is said");
        let empty = plan(&expected(10.0), &Measured::default());
        assert!(!empty.carries && empty.tiers.is_empty());
    }

    #[test]
    fn the_tightest_tier_is_named() {
        let mixed = plan(&Expected { hot_share: 0.5, ..expected(3_000.0) }, &measured());
        assert_eq!(mixed.tiers.first().map(|tier| tier.tier), Some("all other pools"), "{mixed:#?}");
        assert!(!mixed.carries, "1,500 of 2,000 measured leave too little room");
        let many = plan(&Expected { orders: 5_000_000, ..expected(1_000.0) }, &measured());
        assert!(many.beyond.iter().any(|line| line.contains("--stored")), "{many:#?}");
    }

    #[test]
    fn unpaid_holds_go_round() {
        assert_eq!(plan(&expected(1_000.0), &measured()).sold_through_after_seconds, 4.0 * 600.0);
        let all_pay = Expected { unpaid_share: 0.0, ..expected(1_000.0) };
        assert_eq!(plan(&all_pay, &measured()).sold_through_after_seconds, 0.0);
        assert_eq!(plan(&expected(1_000.0), &measured()).held_units_max, 5_000);
    }
}
