//! Time as the authority sees it: microseconds since 1970 in UTC.

use std::fmt;
use std::time::Duration;

/// An instant, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant `seconds` later; at the end of time it stays there.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(seconds as i64 * 1_000_000))
    }

    /// The instant `millis` later; at the end of time it stays there.
    #[must_use]
    pub const fn plus_millis(self, millis: u32) -> Self {
        Self(self.0.saturating_add(millis as i64 * 1_000))
    }

    /// The instant after a while; at the end of time it stays there.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The instant `millis` earlier.
    #[must_use]
    pub const fn minus_millis(self, millis: u32) -> Self {
        Self(self.0.saturating_sub(millis as i64 * 1_000))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}
