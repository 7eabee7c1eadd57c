//! Spells: times in which something was so, with short gaps.

use holdfast_core::time::Timestamp;

use crate::measure::Sample;

/// Fewer samples than these say nothing.
const HITS_MIN: usize = 3;
/// Samples without it that do not end a spell.
const GAP_MAX: usize = 10;

/// The latest time in which something was so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spell<'s> {
    samples: &'s [Sample],
    first: usize,
    last: usize,
}

impl<'s> Spell<'s> {
    /// Finds the latest spell; none if it never was so for long enough.
    pub(super) fn find(samples: &'s [Sample], is_so: impl Fn(&Sample) -> bool) -> Option<Self> {
        Self::find_of(samples, HITS_MIN, is_so)
    }

    /// The same of what even once is too often.
    pub(super) fn find_once(samples: &'s [Sample], is_so: impl Fn(&Sample) -> bool) -> Option<Self> {
        Self::find_of(samples, 1, is_so)
    }

    fn find_of(samples: &'s [Sample], hits_min: usize, is_so: impl Fn(&Sample) -> bool) -> Option<Self> {
        let mut found = None;
        let mut group: Option<(usize, usize, usize)> = None;
        for (place, _) in samples.iter().enumerate().filter(|(_, sample)| is_so(sample)) {
            let (first, hits) = match group {
                Some((first, last, hits)) if place.saturating_sub(last) <= GAP_MAX => (first, hits),
                Some(_) | None => (place, 0),
            };
            let hits = hits.saturating_add(1);
            group = Some((first, place, hits));
            if hits >= hits_min {
                found = Some(Self { samples, first, last: place });
            }
        }
        found
    }

    /// Its samples.
    pub(super) fn inside(&self) -> &'s [Sample] {
        self.samples.get(self.first..=self.last).unwrap_or_default()
    }

    /// What is usual for something when it is not so.
    pub(super) fn usual(&self, of: impl Fn(&Sample) -> Option<f64> + Copy) -> Option<f64> {
        let before = self.samples.get(..self.first).unwrap_or_default();
        let after = self.samples.get(self.last.saturating_add(1)..).unwrap_or_default();
        median(before.iter().chain(after).filter_map(of).collect())
    }

    /// When it began: at the end of the sample before, if there is one.
    pub(super) fn since(&self) -> Timestamp {
        let before = self.first.checked_sub(1).and_then(|place| self.samples.get(place));
        before.or(self.samples.get(self.first)).map_or(Timestamp(0), |sample| sample.at)
    }

    /// When it was so at last; none if that is just now.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let is_over = self.samples.len().saturating_sub(self.last.saturating_add(1)) > GAP_MAX;
        self.samples.get(self.last).filter(|_| is_over).map(|sample| sample.at)
    }

    /// From a while before it to its end: what led to it.
    pub(super) fn with_lead(&self, lead: usize) -> &'s [Sample] {
        self.samples.get(self.first.saturating_sub(lead)..=self.last).unwrap_or_default()
    }
}

/// The mean of what samples say.
pub(super) fn mean_of(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> f64 {
    let (sum, count) =
        samples.iter().filter_map(of).fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The greatest that a sample says.
pub(super) fn peak_of(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).fold(0.0, f64::max)
}

/// What is usual: the median, so that a short spell does not move it.
pub(super) fn usual(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(samples.iter().filter_map(of).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
