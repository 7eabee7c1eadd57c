//! The engine's named limits.

use std::time::Duration;

/// Limits and intervals. The defaults suit one node with a few hot pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whether this node does what nobody asks for: ends holds, lands queued orders. A node that does not leaves
    /// it to the others on the same authority.
    pub is_worker: bool,
    /// Most commands in a batch of one bucket. 1 is supported: slower, never wrong.
    pub batch_size_max: usize,
    /// Most commands in a batch of a wide lane, which locks much at once.
    pub wide_batch_size_max: usize,
    /// Most transactions that one bucket of a pool on the direct path has under way: as many as the store has
    /// connections keep them all busy.
    pub direct_flights_max: usize,
    /// Most placing commands that wait in one lane.
    pub lane_depth_max: usize,
    /// Most confirms, releases and other changes that wait in one lane: room that placing cannot take.
    pub lane_reserved_max: usize,
    /// How long the oldest placing command may have waited before new ones are turned away.
    pub lane_age_max: Duration,
    /// How long a caller waits for an answer before the outcome is called unknown.
    pub answer_deadline: Duration,
    /// The same for a stock file, of which all rows are one transaction.
    pub import_deadline: Duration,
    /// Most callers that wait for a key that is already in flight.
    pub joined_max: usize,
    /// How many other buckets are tried after a miss, before the whole pool is locked.
    pub probes_max: usize,
    /// How often a batch is tried again after a conflict.
    pub retries_max: u32,
    /// How old the shelf may be before it is read anew.
    pub shelf_age_max: Duration,
    /// How long the verdict of a limit is remembered at most.
    pub verdict_age_max: Duration,
    /// How often the node asks what changed in the authority's catalog: with the time of the read the longest
    /// that it routes and refuses early by what is not true any more.
    pub catalog_interval: Duration,
    /// Most refusals recorded for one account in a minute.
    pub recorded_refusals_per_minute: u32,
    /// How many stored keys are read at a time at the start.
    pub key_page_max: usize,
    /// How often the scan looks for overdue orders that the timer missed.
    pub scan_interval: Duration,
    /// Most orders that one expiry pass takes on: the recovery budget. Whoever buys meanwhile waits for one pass at
    /// most: few keep that short when very many holds end at once.
    pub expiry_pass_max: usize,
    /// Most orders that the timer remembers; the scan finds the rest.
    pub timer_max: usize,
    /// Most who wait for orders to change, at once.
    pub watchers_max: usize,
    /// Most pools that are measured one by one, the busiest; the rest are summed.
    pub metrics_pools_max: usize,
    /// Most orders about which providers are asked at once.
    pub asking_max: usize,
    /// How long an order whose expiry failed is set aside.
    pub set_aside: Duration,
    /// Most queued orders of one bucket that are landed at once.
    pub landing_batch_max: usize,
    /// Most buckets whose queues this node consumes at once.
    pub landing_buckets_max: usize,
    /// How long a queued order that could not be landed is set aside.
    pub landing_set_aside: Duration,
    /// How often the queues are looked at for what other nodes took in, and for what a freeze held up.
    pub queue_poll: Duration,
    /// How old the places in a queue may be that are shown.
    pub queue_age_max: Duration,
    /// How many places are read at a time.
    pub queue_page_max: usize,
    /// How often a worker looks for stock that closed campaigns have not sold, or got back.
    pub unsold_interval: Duration,
    /// How often a worker compares every balance, and what is new, with the ledger; none: never by itself.
    pub reconcile_interval: Option<Duration>,
    /// How often it compares everything; none: never by itself.
    pub reconcile_full_interval: Option<Duration>,
    /// How many percent of the time a run may spend asking the authority.
    pub reconcile_share_percent: u32,
    /// How often a worker looks for runs that other nodes were asked for.
    pub reconcile_poll: Duration,
    /// How long after its end, with all grace, a hold may still be there before it is called left over.
    pub hold_overdue: Duration,
    /// How old an event may be that a sink which delivers has not looked at, before it is called stuck.
    pub event_late: Duration,
    /// Most entries of a cache that are landed at once: twice a batch, so that one is gathered while another is
    /// committed.
    pub cache_batch_max: usize,
    /// How long a keeper of a cache rests when it has nothing to do.
    pub cache_poll: Duration,
    /// How long it waits for new entries of a stream before it looks after the rest.
    pub cache_wait: Duration,
    /// How long it lands before it looks at both sides again.
    pub cache_look: Duration,
    /// How long it rests after the cache or the authority failed it.
    pub cache_retry: Duration,
    /// How long a cache may be silent before its epoch is given up: what it had accepted and not landed is lost.
    pub cache_patience: Duration,
    /// How long it is believed that a cache's server may be relied on.
    pub cache_examined: Duration,
    /// How long a change of an accepted order waits for its landing.
    pub cache_landing_wait: Duration,
    /// Most ledger entries that one credit sums.
    pub credit_entries_max: u32,
    /// How long an entry that was delivered may stay unsettled before it is delivered again.
    pub claim_idle: Duration,
    /// Most orders a second that are landed from one bucket's cache; none: as fast as the authority commits.
    pub cache_landing_rate: Option<u32>,
    /// How long a lease lasts: what another node consumed goes on here so long after it died.
    pub lease: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            is_worker: true,
            batch_size_max: 1_000,
            wide_batch_size_max: 16,
            direct_flights_max: 32,
            lane_depth_max: 10_000,
            lane_reserved_max: 10_000,
            lane_age_max: Duration::from_secs(2),
            answer_deadline: Duration::from_secs(15),
            import_deadline: Duration::from_secs(60),
            joined_max: 1_000,
            probes_max: 2,
            retries_max: 5,
            shelf_age_max: Duration::from_millis(200),
            verdict_age_max: Duration::from_secs(1),
            catalog_interval: Duration::from_millis(250),
            recorded_refusals_per_minute: 10,
            key_page_max: 10_000,
            scan_interval: Duration::from_secs(1),
            expiry_pass_max: 32,
            timer_max: 1_000_000,
            watchers_max: 10_000,
            metrics_pools_max: 20,
            asking_max: 32,
            set_aside: Duration::from_secs(30),
            landing_batch_max: 500,
            landing_buckets_max: 64,
            landing_set_aside: Duration::from_secs(1),
            queue_poll: Duration::from_millis(250),
            queue_age_max: Duration::from_millis(250),
            queue_page_max: 10_000,
            unsold_interval: Duration::from_secs(1),
            reconcile_interval: Some(Duration::from_secs(60)),
            reconcile_full_interval: Some(Duration::from_secs(6 * 3_600)),
            reconcile_share_percent: 50,
            reconcile_poll: Duration::from_secs(1),
            hold_overdue: Duration::from_secs(60),
            event_late: Duration::from_secs(60),
            cache_batch_max: 2_000,
            cache_poll: Duration::from_millis(50),
            cache_wait: Duration::from_millis(50),
            cache_look: Duration::from_millis(100),
            cache_retry: Duration::from_millis(200),
            cache_patience: Duration::from_secs(60),
            cache_examined: Duration::from_secs(5),
            cache_landing_wait: Duration::from_secs(5),
            credit_entries_max: 10_000,
            claim_idle: Duration::from_secs(5),
            cache_landing_rate: None,
            lease: Duration::from_secs(3),
        }
    }
}
