//! How long tests of faults are.

use std::time::Duration;

/// How often or how long something is done: short, unless an environment variable asks for more.
pub(crate) fn extent(variable: &str, short: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// How many times a fault comes: `HOLDFAST_FAULT_ROUNDS=60` is for a night.
pub(crate) fn rounds() -> u64 {
    extent("HOLDFAST_FAULT_ROUNDS", 2)
}

/// How long a fault lasts: `HOLDFAST_FAULT_SECONDS=60` is longer than every deadline.
pub(crate) fn outage() -> Duration {
    Duration::from_secs(extent("HOLDFAST_FAULT_SECONDS", 4))
}

/// Lets a fault last. Its length is what is tested; nothing is assumed to have happened by its end.
pub(crate) async fn last(length: Duration) {
    let _ = tokio::time::timeout(length, std::future::pending::<()>()).await;
}
