//! What a node measures of the cache path: what caches answered, what was landed, and where each break between
//! two steps stands.

use std::fmt;

use crate::exposition::{Exposed, Exposition};
use crate::instrument::{By, Counter, Gauge, Histogram};

crate::label! {
    /// What a cache said of an order.
    CacheAnswer as "answer" {
        /// Its units are taken.
        Accepted = "accepted",
        /// Its number is known.
        Known = "known",
        /// There is too little.
        Short = "short",
        /// The account has enough.
        AccountLimit = "account_limit",
        /// Too many wait.
        QueueFull = "queue_full",
        /// The epoch does not accept.
        NotReady = "not_ready",
        /// It is in doubt.
        WentBack = "went_back",
        /// It did not answer, and nothing was sent.
        Unavailable = "unavailable",
        /// The answer was lost and could not be found out.
        Unknown = "unknown",
    }
}

crate::label! {
    /// Why an epoch was drained.
    Drained as "reason" {
        /// The pool left the cached path, or its campaign is closed.
        NotWanted = "not_wanted",
        /// Another server answers.
        OtherServer = "other_server",
        /// Its keys are gone.
        KeysGone = "keys_gone",
        /// It is behind what was seen or landed.
        WentBack = "went_back",
        /// Entries are gone that never landed.
        EntriesGone = "entries_gone",
        /// Its figures break the law.
        Unlawful = "unlawful",
        /// It may lose what it takes.
        Unfit = "unfit",
        /// It does not answer.
        Silent = "silent",
        /// An operator asked for it.
        Operator = "operator",
    }
}

/// Metrics of the cache path.
#[derive(Debug)]
pub struct CacheMetrics {
    /// What caches answered.
    pub answers: By<CacheAnswer, Counter>,
    /// Epochs that were drained.
    pub drained: By<Drained, Counter>,
    /// Entries that were landed.
    pub landed: Counter,
    /// From the entry to the landing, by the cache's clock and the authority's.
    pub landing_lag: Histogram,
    /// Entries that were delivered once more.
    pub redelivered: Counter,
    /// Entries that were set aside.
    pub poisoned: Counter,
    /// Accepted orders that this node told lost.
    pub lost: Counter,
    /// Buckets that this node keeps.
    pub kept: Gauge,
    /// Of these, buckets whose cache accepts.
    pub open: Gauge,
    /// Orders that wait in the streams of the buckets that this node keeps: sent and not landed.
    pub backlog: Gauge,
    /// Of these, delivered and not settled: landed, perhaps, and not answered.
    pub delivered: Gauge,
    /// Ledger entries that the caches have not been credited with.
    pub uncredited: Gauge,
    /// Units by which caches differ from the law, both ways added up.
    pub unlawful: Gauge,
}

impl Default for CacheMetrics {
    fn default() -> Self {
        Self {
            answers: By::default(),
            drained: By::default(),
            landed: Counter::default(),
            landing_lag: Histogram::of_waits(),
            redelivered: Counter::default(),
            poisoned: Counter::default(),
            lost: Counter::default(),
            kept: Gauge::default(),
            open: Gauge::default(),
            backlog: Gauge::default(),
            delivered: Gauge::default(),
            uncredited: Gauge::default(),
            unlawful: Gauge::default(),
        }
    }
}

impl Exposed for CacheMetrics {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add("holdfast_cache_answers_total", "What caches said of orders.", &self.answers)?;
        out.add("holdfast_cache_drains_total", "Epochs that were drained, by the reason.", &self.drained)?;
        out.add("holdfast_cache_landed_orders_total", "Accepted orders that were landed.", &self.landed)?;
        out.add(
            "holdfast_cache_landing_lag_seconds",
            "From the acceptance by the cache to the commit of the authority; their clocks may differ.",
            &self.landing_lag,
        )?;
        out.add(
            "holdfast_cache_redeliveries_total",
            "Entries that were delivered again because nobody had settled them.",
            &self.redelivered,
        )?;
        out.add(
            "holdfast_cache_poisoned_total",
            "Entries that could not be landed and were set aside.",
            &self.poisoned,
        )?;
        out.add(
            "holdfast_cache_lost_admissions_total",
            "Answers that an accepted order was lost before it was landed.",
            &self.lost,
        )?;
        out.add("holdfast_cache_kept_buckets", "Buckets whose cache this node keeps.", &self.kept)?;
        out.add("holdfast_cache_open_buckets", "Of these, buckets whose cache accepts.", &self.open)?;
        out.add(
            "holdfast_cache_backlog_orders",
            "Accepted orders that have not landed, of these buckets.",
            &self.backlog,
        )?;
        out.add(
            "holdfast_cache_delivered_orders",
            "Of these, orders that were delivered for landing and whose entry is not settled.",
            &self.delivered,
        )?;
        out.add(
            "holdfast_cache_uncredited_entries",
            "Ledger entries that the caches have not been credited with, of these buckets.",
            &self.uncredited,
        )?;
        out.add(
            "holdfast_cache_law_difference_units",
            "Units by which the caches differ from the law, of these buckets. Anything but 0 drains the epoch.",
            &self.unlawful,
        )
    }
}
