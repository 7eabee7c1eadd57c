//! Points at which a test build can be killed, armed by `HOLDFAST_FAILPOINTS`.

#[cfg(not(feature = "failpoints"))]
pub use absent::Failpoints;
#[cfg(feature = "failpoints")]
pub use armed::Failpoints;

#[cfg(not(feature = "failpoints"))]
mod absent {
    /// No points: this build cannot be told to die.
    #[derive(Debug, Clone, Default)]
    pub struct Failpoints;

    impl Failpoints {
        /// Does nothing.
        pub fn hit(&self, _point: &str) {}
    }
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use fail_parallel::{FailPointRegistry, fail_point};
    use rustix::process::{Signal, getpid, kill_process};

    /// The points of one store.
    #[derive(Clone)]
    pub struct Failpoints(Arc<FailPointRegistry>);

    impl Default for Failpoints {
        fn default() -> Self {
            Self(Arc::new(FailPointRegistry::new()))
        }
    }

    impl std::fmt::Debug for Failpoints {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Failpoints")
        }
    }

    impl Failpoints {
        /// Arms points: `commit.before_commit=3` kills the process without a last word at the third hit,
        /// `commit.before_commit=stop:3` lets it stand still there until it is told to go on; several are
        /// separated by `;`.
        pub fn armed(text: &str) -> Result<Self, String> {
            let points = Self::default();
            for point in text.split(';').filter(|point| !point.is_empty()) {
                let (name, hits) =
                    point.split_once('=').ok_or_else(|| format!("not NAME=HITS: {point:?}"))?;
                let (signal, hits) =
                    hits.strip_prefix("stop:").map_or((Signal::KILL, hits), |hits| (Signal::STOP, hits));
                let hits: u64 = hits.parse().map_err(|_| format!("not a number of hits: {hits:?}"))?;
                let left = AtomicU64::new(hits);
                fail_parallel::cfg_callback(Arc::clone(&points.0), name, move || {
                    if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                        // As from outside: no destructor, no flush.
                        let _ = kill_process(getpid(), signal);
                    }
                })?;
            }
            Ok(points)
        }

        /// Passes a point: if it is armed and this is its time, the process dies or stands still here.
        pub fn hit(&self, point: &str) {
            fail_point!(Arc::clone(&self.0), point);
        }
    }
}
