//! What a keeper shows of its bucket: its part of the node's figures, taken back when the keeper leaves.

use std::sync::Arc;

use holdfast_metrics::{CacheMetrics, Gauge, Held};

use super::contract::Position;

/// A bucket's part of the node's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    is_open: bool,
    backlog: usize,
    delivered: usize,
    uncredited: usize,
    unlawful: usize,
}

impl Figures {
    /// Of a cache that stands there, with so many entries to be credited, as the law wants it.
    pub(super) fn of(position: &Position, uncredited: u64, lawful: Option<i64>) -> Self {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Self {
            is_open: position.is_open,
            backlog: count(position.backlog),
            delivered: count(position.delivered),
            uncredited: count(uncredited),
            unlawful: lawful.map_or(0, |lawful| count(lawful.abs_diff(position.available))),
        }
    }
}

/// Shows a bucket's figures until it is dropped.
pub(super) struct Shown {
    metrics: Arc<CacheMetrics>,
    figures: Figures,
    _kept: Held,
}

impl Shown {
    pub(super) fn new(metrics: &Arc<CacheMetrics>) -> Self {
        Self { metrics: Arc::clone(metrics), figures: Figures::default(), _kept: metrics.kept.hold() }
    }

    /// Shows these from now on.
    pub(super) fn show(&mut self, figures: Figures) {
        let metrics = &self.metrics;
        let before = std::mem::replace(&mut self.figures, figures);
        let step = |gauge: &Gauge, before: usize, after: usize| {
            gauge.add(after);
            gauge.sub(before);
        };
        step(&metrics.open, usize::from(before.is_open), usize::from(figures.is_open));
        step(&metrics.backlog, before.backlog, figures.backlog);
        step(&metrics.delivered, before.delivered, figures.delivered);
        step(&metrics.uncredited, before.uncredited, figures.uncredited);
        step(&metrics.unlawful, before.unlawful, figures.unlawful);
    }

    /// The cache does not say where it stands: it is not known to accept, and the rest is as it was.
    pub(super) fn show_silence(&mut self) {
        self.show(Figures { is_open: false, ..self.figures });
    }

    /// There is no epoch that anything could land in.
    pub(super) fn show_nothing(&mut self) {
        self.show(Figures::default());
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.show(Figures::default());
    }
}
