//! A breaker: a provider that does not answer is left alone for a while.

use std::time::{Duration, Instant};

/// Failures one after another until it opens.
const FAILURES_MAX: u32 = 5;
/// How long it stays open; then one question is let through.
pub(crate) const OPEN: Duration = Duration::from_secs(30);

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

    /// A breaker that has just opened.
    fn open(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 1..FAILURES_MAX {
            assert!(breaker.lets_through(now) && !breaker.failed(now));
        }
        assert!(breaker.failed(now) && !breaker.lets_through(now));
        breaker
    }

    #[test]
    fn it_opens_after_failures_and_lets_one_through_after_a_while() {
        let begun = Instant::now();
        let mut breaker = open(begun);
        let later = begun + OPEN;
        assert!(!breaker.lets_through(later - Duration::from_millis(1)));
        assert!(breaker.lets_through(later));
        assert!(!breaker.lets_through(later), "one question tries it");
        breaker.answered();
        assert!(breaker.lets_through(later), "it is closed");
    }

    #[test]
    fn a_trial_that_fails_opens_it_again_for_as_long() {
        let begun = Instant::now();
        let mut breaker = open(begun);
        let trial = begun + OPEN;
        assert!(breaker.lets_through(trial));
        let failed = trial + Duration::from_secs(3);
        assert!(breaker.failed(failed));
        assert!(!breaker.lets_through(failed + OPEN - Duration::from_millis(1)));
        assert!(breaker.lets_through(failed + OPEN));
    }

    #[test]
    fn a_trial_of_which_nothing_is_heard_keeps_it_open_for_a_while_only() {
        let begun = Instant::now();
        let mut breaker = open(begun);
        assert!(breaker.lets_through(begun + OPEN));
        assert!(!breaker.lets_through(begun + OPEN + OPEN - Duration::from_millis(1)));
        assert!(breaker.lets_through(begun + OPEN + OPEN));
    }

    #[test]
    fn failures_between_answers_do_not_add_up() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..3 * FAILURES_MAX {
            assert!(!breaker.failed(now));
            breaker.answered();
        }
        assert!(breaker.lets_through(now));
    }
}
