//! How often and how long to try again.

use std::time::Duration;

/// Bounds of the attempts for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least one is made.
    pub attempts_max: u32,
    /// The longest wait after the first attempt; it doubles with each.
    pub backoff: Duration,
    /// The longest wait between attempts, also where the server asks for more.
    pub backoff_max: Duration,
    /// How long one attempt may take, from the connection to the last byte.
    pub attempt_timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 6,
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// How long to wait after `attempts` attempts: half of it fixed, half by chance, so that clients that
    /// failed together do not come back together; and not before the server asked for, within bounds.
    pub(crate) fn wait(&self, attempts: u32, asked_for: Option<Duration>) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let longest = self.backoff.saturating_mul(doubled).min(self.backoff_max);
        let jittered = longest.mul_f64(fastrand::f64().mul_add(0.5, 0.5));
        asked_for.map_or(jittered, |asked| jittered.max(asked.min(self.backoff_max)))
    }
}

/// Waits before the next attempt.
#[expect(
    clippy::disallowed_methods,
    reason = "a client that backs off waits for time to pass and for nothing else"
)]
pub(crate) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_jitter_and_stay_within_bounds() {
        let policy = RetryPolicy::default();
        for _ in 0..100 {
            let first = policy.wait(1, None);
            assert!(first >= policy.backoff / 2 && first <= policy.backoff, "{first:?}");
            let third = policy.wait(3, None);
            assert!(third >= policy.backoff * 2 && third <= policy.backoff * 4, "{third:?}");
            assert!(policy.wait(u32::MAX, None) <= policy.backoff_max);
        }
    }

    #[test]
    fn the_server_may_ask_for_more_but_not_for_ever() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait(1, Some(Duration::from_secs(2))), Duration::from_secs(2));
        assert_eq!(policy.wait(1, Some(Duration::from_secs(3_600))), policy.backoff_max);
    }
}
