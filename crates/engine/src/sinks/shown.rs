//! What couriers show of their sinks. A sink is one of a bounded number, so its name is a label.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_core::time::Timestamp;
use holdfast_metrics::{By, Counter, Exposition, Histogram, Kind, Label, Rows, SinkAttempt};
use holdfast_store::{Backlog, SINKS_MAX, SinkName, SinkRow, SinkState};

use super::contract::{Blame, Failure};

const SINK: &str = "sink";

/// Figures of one sink.
pub(crate) struct SinkFigures {
    delivered: Counter,
    attempts: By<SinkAttempt, Counter>,
    lag: Histogram,
    /// Whether this node delivers to it now.
    at_work: AtomicBool,
    backlog: AtomicU64,
    oldest_at: AtomicI64,
    parked: AtomicU64,
    is_failing: AtomicBool,
}

impl Default for SinkFigures {
    fn default() -> Self {
        Self {
            delivered: Counter::default(),
            attempts: By::default(),
            lag: Histogram::of_waits(),
            at_work: AtomicBool::new(false),
            backlog: AtomicU64::new(0),
            oldest_at: AtomicI64::new(i64::MAX),
            parked: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
        }
    }
}

fn age(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0))
}

impl SinkFigures {
    pub(crate) fn attempted(&self, failure: Option<&Failure>) {
        let result = match failure {
            None => SinkAttempt::Taken,
            Some(Failure { blame: Blame::Events, .. }) => SinkAttempt::Refused,
            Some(Failure { blame: Blame::Receiver, .. }) => SinkAttempt::Failed,
        };
        self.attempts.of(result).inc();
    }

    pub(crate) fn delivered(&self, at: Timestamp, now: Timestamp) {
        self.delivered.inc();
        self.lag.observe(age(at, now));
    }

    pub(crate) fn show(&self, backlog: &Backlog, parked: u64, is_failing: bool) {
        self.at_work.store(true, Ordering::Relaxed);
        self.backlog.store(backlog.entries, Ordering::Relaxed);
        self.oldest_at.store(backlog.oldest.map_or(i64::MAX, |(at, _)| at.0), Ordering::Relaxed);
        self.parked.store(parked, Ordering::Relaxed);
        self.is_failing.store(is_failing, Ordering::Relaxed);
    }
}

/// Figures of every sink that this node has delivered to, and which of all are disabled.
#[derive(Default)]
pub(crate) struct Figures {
    of_sinks: Mutex<BTreeMap<SinkName, Arc<SinkFigures>>>,
    disabled: Mutex<Vec<(SinkName, bool)>>,
}

impl Figures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SinkName, Arc<SinkFigures>>> {
        self.of_sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disabled(&self) -> MutexGuard<'_, Vec<(SinkName, bool)>> {
        self.disabled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the list of sinks says of each: nobody delivers to one that is disabled, so its courier cannot show it.
    pub(crate) fn saw(&self, sinks: &[SinkRow]) {
        let state = |sink: &SinkRow| (sink.name.clone(), sink.state == SinkState::Disabled);
        *self.disabled() = sinks.iter().map(state).collect();
    }

    /// A sink's figures.
    pub(crate) fn of(&self, name: &SinkName) -> Arc<SinkFigures> {
        let mut all = self.lock();
        if all.len() >= SINKS_MAX && !all.contains_key(name) {
            all.retain(|_, figures| figures.at_work.load(Ordering::Relaxed));
        }
        Arc::clone(all.entry(name.clone()).or_default())
    }

    /// This node delivers to the sink no more: what stands there is another one's to show.
    pub(crate) fn rest(&self, name: &SinkName) {
        if let Some(figures) = self.lock().get(name) {
            figures.at_work.store(false, Ordering::Relaxed);
        }
    }

    /// Shows them.
    pub(crate) fn expose(&self, now: Timestamp, out: &mut Exposition<'_>) -> fmt::Result {
        let mut delivered = Rows::new(Kind::Counter, &[SINK]);
        let mut attempts = Rows::new(Kind::Counter, &[SINK, SinkAttempt::NAME]);
        let mut lag = Rows::new(Kind::Histogram, &[SINK]);
        let mut backlog = Rows::new(Kind::Gauge, &[SINK]);
        let mut oldest = Rows::new(Kind::Gauge, &[SINK]);
        let mut parked = Rows::new(Kind::Gauge, &[SINK]);
        let mut failing = Rows::new(Kind::Gauge, &[SINK]);
        for (name, figures) in &*self.lock() {
            let name = name.as_str();
            delivered.add(&[name], figures.delivered.get());
            for (result, count) in figures.attempts.iter() {
                attempts.add(&[name, result.text()], count.get());
            }
            lag.add(&[name], figures.lag.seen());
            if figures.at_work.load(Ordering::Relaxed) {
                backlog.add(&[name], figures.backlog.load(Ordering::Relaxed));
                let at = Timestamp(figures.oldest_at.load(Ordering::Relaxed));
                oldest.add(&[name], age(at, now).as_secs_f64());
                parked.add(&[name], figures.parked.load(Ordering::Relaxed));
                failing.add(&[name], u64::from(figures.is_failing.load(Ordering::Relaxed)));
            }
        }
        out.add(
            "holdfast_sink_events_delivered_total",
            "Events that a receiver took from this node.",
            &delivered,
        )?;
        out.add(
            "holdfast_sink_attempts_total",
            "Deliveries that were tried, by what came of them.",
            &attempts,
        )?;
        out.add("holdfast_sink_lag_seconds", "From the ledger entry to its delivery.", &lag)?;
        out.add(
            "holdfast_sink_backlog_entries",
            "Ledger entries that the sink is behind, at most so many events; from the node that delivers.",
            &backlog,
        )?;
        out.add("holdfast_sink_backlog_age_seconds", "How old the oldest of them is.", &oldest)?;
        out.add("holdfast_sink_parked_events", "Events that the receiver does not take.", &parked)?;
        out.add("holdfast_sink_failing", "1 while the receiver takes nothing.", &failing)?;
        let mut disabled = Rows::new(Kind::Gauge, &[SINK]);
        for (name, is_disabled) in &*self.disabled() {
            disabled.add(&[name.as_str()], u64::from(*is_disabled));
        }
        out.add("holdfast_sink_disabled", "1 for a sink to which nothing is sent any more.", &disabled)
    }
}
