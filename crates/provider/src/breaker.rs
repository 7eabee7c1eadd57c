//! A breaker: a provider that does not answer is left alone for a while.

use std::time::{Duration, Instant};

/// Failures one after another until it opens.
const FAILURES_MAX: u32 = 5;
/// How long it stays open; then one question is let through.
const OPEN: Duration = Duration::from_secs(30);

/// Counts what failed.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// Whether a question is let through now. After the wait it is one: the next waits for what becomes of it.
    pub(crate) fn lets_through(&mut self, now: Instant) -> bool {
        match self.open_until {
            Some(until) if now < until => false,
            Some(_) => {
                self.open_until = now.checked_add(OPEN);
                true
            }
            None => true,
        }
    }

    /// It was answered.
    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    /// It was not answered; whether the breaker has opened now.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = self.failures >= FAILURES_MAX;
        if opens {
            self.open_until = now.checked_add(OPEN);
        }
        opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_and_lets_one_through_after_a_while() {
        let (mut breaker, begun) = (Breaker::default(), Instant::now());
        for _ in 1..FAILURES_MAX {
            assert!(breaker.lets_through(begun) && !breaker.failed(begun));
        }
        assert!(breaker.failed(begun) && !breaker.lets_through(begun));
        let later = begun + OPEN;
        assert!(breaker.lets_through(later));
        assert!(!breaker.lets_through(later), "one question tries it");
        breaker.answered();
        assert!(breaker.lets_through(later));
    }
}
