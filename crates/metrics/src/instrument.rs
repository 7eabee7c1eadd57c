//! Instruments: what counts, stands and is distributed. Each is a handful of atomics: to record costs a few
//! nanoseconds, takes no lock and allocates nothing. Numbers that belong together may be read a moment apart.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Counts what happened. It only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are now. A cheap handle: clones share the number.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    /// It is so many.
    pub fn set(&self, value: usize) {
        self.0.store(signed(value), Ordering::Relaxed);
    }

    /// So many came.
    pub fn add(&self, count: usize) {
        self.0.fetch_add(signed(count), Ordering::Relaxed);
    }

    /// So many went.
    pub fn sub(&self, count: usize) {
        self.0.fetch_sub(signed(count), Ordering::Relaxed);
    }

    /// One more, until what is given back is dropped: also where a future is dropped half-way.
    pub fn hold(&self) -> Held {
        self.add(1);
        Held(self.clone())
    }

    /// How many there are.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of those that a gauge counts.
#[derive(Debug)]
pub struct Held(Gauge);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.sub(1);
    }
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What a histogram's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Durations, kept in nanoseconds, shown in seconds.
    Seconds,
    /// Plain numbers.
    Count,
    /// Shares, kept in thousandths.
    Ratio,
}

impl Scale {
    const fn divisor(self) -> f64 {
        match self {
            Self::Seconds => 1e9,
            Self::Count => 1.0,
            Self::Ratio => 1e3,
        }
    }
}

/// Bounds of waits and of work, in nanoseconds: 50 µs to 10 s.
const TIMES: &[u64] = &[
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// Bounds of waits in a line, in nanoseconds: 1 ms to an hour.
const WAITS: &[u64] = &[
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    300_000_000_000,
    900_000_000_000,
    3_600_000_000_000,
];
/// Bounds of ages and of lives, in nanoseconds: 1 s to a day.
const AGES: &[u64] = &[
    1_000_000_000,
    5_000_000_000,
    15_000_000_000,
    60_000_000_000,
    300_000_000_000,
    600_000_000_000,
    900_000_000_000,
    1_800_000_000_000,
    3_600_000_000_000,
    21_600_000_000_000,
    86_400_000_000_000,
];
/// Bounds of batches.
const SIZES: &[u64] = &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 4_000];
/// Bounds of shares, in thousandths.
const SHARES: &[u64] = &[100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 1_000];

/// How values are distributed, in fixed steps.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    scale: Scale,
    /// One a bound, and one for what is above the last.
    steps: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [u64], scale: Scale) -> Self {
        let steps = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, scale, steps, sum: AtomicU64::new(0) }
    }

    /// Of waits and of work.
    pub fn of_times() -> Self {
        Self::new(TIMES, Scale::Seconds)
    }

    /// Of waits in a line.
    pub fn of_waits() -> Self {
        Self::new(WAITS, Scale::Seconds)
    }

    /// Of ages and of lives.
    pub fn of_ages() -> Self {
        Self::new(AGES, Scale::Seconds)
    }

    /// Of batches.
    pub fn of_sizes() -> Self {
        Self::new(SIZES, Scale::Count)
    }

    /// Of shares.
    pub fn of_shares() -> Self {
        Self::new(SHARES, Scale::Ratio)
    }

    /// Records a duration.
    pub fn observe(&self, duration: Duration) {
        self.record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records a number.
    pub fn observe_count(&self, count: usize) {
        self.record(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// Records a share, in thousandths.
    pub fn observe_thousandths(&self, share: u64) {
        self.record(share);
    }

    fn record(&self, value: u64) {
        let step = self.bounds.partition_point(|bound| *bound < value);
        if let Some(step) = self.steps.get(step) {
            step.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// What was recorded so far.
    pub fn seen(&self) -> Seen {
        Seen {
            bounds: self.bounds,
            scale: self.scale,
            steps: self.steps.iter().map(|step| step.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// What a histogram has recorded until a moment.
#[derive(Debug, Clone)]
pub struct Seen {
    bounds: &'static [u64],
    scale: Scale,
    steps: Vec<u64>,
    sum: u64,
}

impl Seen {
    /// What was recorded since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let steps = self.steps.iter().zip(&earlier.steps).map(|(now, then)| now.saturating_sub(*then));
        Self {
            bounds: self.bounds,
            scale: self.scale,
            steps: steps.collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.steps.iter().sum()
    }

    /// The sum, in the unit that is shown.
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub fn sum(&self) -> f64 {
        self.sum as f64 / self.scale.divisor()
    }

    /// The mean, in the unit that is shown; 0 of nothing.
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum() / count as f64 }
    }

    /// The bound below which this share of the values lies, in the unit that is shown; 0 of nothing. What is
    /// above the last bound is said to lie at it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "for display"
    )]
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (self.count() as f64 * share).ceil() as u64;
        let mut below = 0;
        for (count, bound) in self.steps.iter().zip(self.bounds.iter().chain(self.bounds.last())) {
            below += count;
            if rank > 0 && below >= rank {
                return *bound as f64 / self.scale.divisor();
            }
        }
        0.0
    }

    /// Upper bounds in the unit that is shown, the last one infinite, with how many values each step has.
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub(crate) fn steps(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / self.scale.divisor());
        bounds.chain([f64::INFINITY]).zip(self.steps.iter().copied()).collect()
    }
}

/// The values of a label: a closed set.
pub trait Label: Copy + PartialEq + 'static {
    /// The label.
    const NAME: &'static str;
    /// Every value.
    const VALUES: &'static [Self];

    /// How it is written.
    fn text(self) -> &'static str;
}

/// One instrument for each value of a label, made once: finding one is a walk over a few words.
pub struct By<L, M> {
    of: Vec<(L, M)>,
    /// For a value that its own list forgot; never shown. It keeps a wrong list from being a panic.
    rest: M,
}

impl<L: Label, M> By<L, M> {
    /// Makes them.
    pub fn new(make: impl Fn() -> M) -> Self {
        Self { of: L::VALUES.iter().map(|value| (*value, make())).collect(), rest: make() }
    }

    /// The one of this value.
    pub fn of(&self, value: L) -> &M {
        self.of.iter().find(|(known, _)| *known == value).map_or(&self.rest, |(_, instrument)| instrument)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (L, &M)> {
        self.of.iter().map(|(value, instrument)| (*value, instrument))
    }
}

impl<L: Label, M: Default> Default for By<L, M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<L: Label, M: fmt::Debug> fmt::Debug for By<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.of.iter().map(|(value, of)| (value.text(), of))).finish()
    }
}

/// Writes a label's values down once.
#[macro_export]
macro_rules! label {
    ($(#[$doc:meta])* $name:ident as $label:literal { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$value_doc])* $value,)*
        }

        impl $crate::Label for $name {
            const NAME: &'static str = $label;
            const VALUES: &'static [Self] = &[$(Self::$value),*];

            fn text(self) -> &'static str {
                match self { $(Self::$value => $text),* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_knows_its_steps_its_sum_and_its_quantiles() {
        let times = Histogram::of_times();
        for millis in [1, 1, 3, 20_000] {
            times.observe(Duration::from_millis(millis));
        }
        let seen = times.seen();
        assert_eq!((seen.count(), seen.sum()), (4, 20.005));
        assert_eq!(seen.quantile(0.5), 0.001, "a bound belongs to its step");
        assert_eq!(seen.quantile(0.75), 0.005);
        assert_eq!(seen.quantile(0.99), 10.0, "above the last bound is at the last bound");
        assert_eq!(seen.steps().iter().map(|(_, count)| count).sum::<u64>(), 4);
        times.observe(Duration::from_millis(1));
        let later = times.seen().since(&seen);
        assert_eq!((later.count(), later.mean()), (1, 0.001));
        assert_eq!(Histogram::of_sizes().seen().quantile(0.99), 0.0);
    }

    #[test]
    fn what_is_held_counts_until_it_is_dropped() {
        let gauge = Gauge::default();
        let (one, _two) = (gauge.hold(), gauge.hold());
        assert_eq!(gauge.get(), 2);
        drop(one);
        assert_eq!(gauge.get(), 1);
    }
}
