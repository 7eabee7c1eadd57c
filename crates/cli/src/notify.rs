//! What the service manager is told, where there is one (`NOTIFY_SOCKET`).

use std::time::Duration;

use sd_notify::NotifyState;

/// Requests are answered.
pub(crate) fn ready(address: &str) {
    let status = format!("listening on {address}");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Nothing new is taken.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing what has begun")]);
}

/// It is alive, and its store can write.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often it must say so; none if nobody listens.
pub(crate) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|interval| !interval.is_zero())
}

/// A service manager that is gone is no reason to stop.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
