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

    /// The instant a while before; at the beginning of time it stays there.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The last instant of its millisecond. Times are shown to the millisecond: as of a time that was shown is as of all
    /// that was then.
    #[must_use]
    pub const fn end_of_millisecond(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(1_000)).saturating_add(999))
    }

    /// The instant `millis` earlier.
    #[must_use]
    pub const fn minus_millis(self, millis: u32) -> Self {
        Self(self.0.saturating_sub(millis as i64 * 1_000))
    }
}

const DAY_US: i64 = 86_400_000_000;

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0.div_euclid(DAY_US));
        let millis = self.0.rem_euclid(DAY_US) / 1_000;
        let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
        let (seconds, rest) = (millis / 1_000 % 60, millis % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{rest:03}Z")
    }
}

/// The date of a day since 1970. Years are counted from March, so that the leap day is their last, and in
/// eras of 400 years, which are all alike.
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_the_calendar_has_them() {
        for (micros, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_774_785_600_123_999, "2026-03-29T12:00:00.123Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_000_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000Z"),
            (-1_000, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(micros).to_string(), shown);
        }
    }
}
