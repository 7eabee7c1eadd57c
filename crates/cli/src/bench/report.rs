//! Figures: medians of rounds with their spread, and the environment that they were measured in.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

/// The rounds of one figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values = self.0.clone();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// The middle one.
    pub(crate) fn median(&self) -> f64 {
        let values = self.sorted();
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Lowest and highest.
    pub(crate) fn spread(&self) -> Spread {
        let values = self.sorted();
        let round = |value: Option<&f64>| rounded(value.copied().unwrap_or(f64::NAN));
        Spread { min: round(values.first()), max: round(values.last()) }
    }
}

/// The rounds of every figure, by its name.
#[derive(Debug, Default)]
pub(crate) struct Taken(BTreeMap<&'static str, Rounds>);

impl Taken {
    pub(crate) fn add(&mut self, name: &'static str, value: f64) {
        self.0.entry(name).or_default().add(value);
    }

    /// None of what was not measured.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(Rounds::median)
    }

    /// The median as it is shown; not a number if it was not measured.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.median(name).map_or(f64::NAN, rounded)
    }

    pub(crate) fn spread(&self) -> BTreeMap<&'static str, Spread> {
        self.0.iter().map(|(name, rounds)| (*name, rounds.spread())).collect()
    }
}

/// To three digits after the point.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// Lowest and highest of the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Spread {
    min: f64,
    max: f64,
}

impl Spread {
    pub(crate) const fn bounds(self) -> (f64, f64) {
        (self.min, self.max)
    }
}

/// How many processors there are; 0 if nobody knows.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// What the embedded store promises.
pub(crate) const SQLITE_DURABILITY: &str = "journal_mode WAL, synchronous FULL: a flush before every answer";

/// How often and how long one hot pool is measured.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Length {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Where the random order numbers begin
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Length {
    /// Of one measurement.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Where the order numbers of a round begin.
    pub(crate) fn seed_of(&self, round: usize) -> Result<u64> {
        Ok(self.seed.wrapping_add(u64::try_from(round)? << 32))
    }
}

/// What the figures were measured in.
#[derive(Debug, Serialize)]
pub(crate) struct Environment {
    pub(crate) processors: usize,
    pub(crate) store: String,
    pub(crate) durability: String,
    pub(crate) stock: u64,
    pub(crate) limits: &'static str,
    pub(crate) stored_orders: u64,
    pub(crate) connections: usize,
    pub(crate) distribution: &'static str,
    pub(crate) rounds: usize,
    pub(crate) seconds_a_round: f64,
    pub(crate) seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_round() {
        let mut rounds = Rounds::default();
        [3.0, 1.0, 2.0].into_iter().for_each(|value| rounds.add(value));
        assert_eq!(rounds.median(), 2.0);
        assert_eq!((rounds.spread().min, rounds.spread().max), (1.0, 3.0));
    }
}
