//! What a test has asked of the network, read by every connection while it runs.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WayState {
    pub(super) delay: Duration,
    pub(super) is_held: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    to_server: WayState,
    to_client: WayState,
    /// How often all connections were cut.
    pub(super) cuts: u64,
    /// The proxy was dropped.
    pub(super) is_over: bool,
}

impl State {
    pub(super) fn way(&self, way: Way) -> WayState {
        match way {
            Way::ToServer => self.to_server,
            Way::ToClient => self.to_client,
        }
    }

    pub(super) fn way_mut(&mut self, way: Way) -> &mut WayState {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }
}

#[derive(Debug)]
pub(super) struct Control {
    state: watch::Sender<State>,
    to_server: Budget,
    to_client: Budget,
    pub(super) commits: LostCommits,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::default()),
            to_server: Budget::default(),
            to_client: Budget::default(),
            commits: LostCommits { counts: watch::Sender::new(Counts::default()) },
        }
    }
}

impl Control {
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }

    pub(super) fn delay(&self, way: Way) -> Duration {
        self.state.borrow().way(way).delay
    }

    /// Waits while this direction is held.
    pub(super) async fn passable(&self, way: Way) {
        let mut state = self.state.subscribe();
        // The sender lives as long as `self`.
        let _ = state.wait_for(|state| !state.way(way).is_held).await;
    }

    pub(super) fn budget(&self, way: Way) -> &Budget {
        match way {
            Way::ToServer => &self.to_server,
            Way::ToClient => &self.to_client,
        }
    }

    /// The end, by a cut, of a connection that begins now.
    pub(super) fn ends(&self) -> Ends {
        let state = self.state.subscribe();
        let cuts = state.borrow().cuts;
        Ends { state, cuts }
    }
}

/// When a connection is cut together with all others.
pub(super) struct Ends {
    state: watch::Receiver<State>,
    cuts: u64,
}

impl Ends {
    pub(super) async fn come(mut self) {
        let _ = self.state.wait_for(|state| state.is_over || state.cuts != self.cuts).await;
    }
}

/// Bytes that may still pass in one direction, of all connections together, before one of them is cut.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<Option<u64>>);

impl Budget {
    pub(super) fn set(&self, bytes: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }

    /// How many of `wanted` bytes may pass, if the connection is to be cut after them.
    pub(super) fn cut_within(&self, wanted: usize) -> Option<usize> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = (*left)?;
        let wanted_bytes = u64::try_from(wanted).unwrap_or(u64::MAX);
        if wanted_bytes < bytes {
            *left = Some(bytes - wanted_bytes);
            return None;
        }
        *left = None;
        usize::try_from(bytes).ok()
    }
}

/// The COMMITs whose answers are to be lost.
#[derive(Debug)]
pub(super) struct LostCommits {
    counts: watch::Sender<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    owed: u32,
    lost: u32,
}

impl LostCommits {
    pub(super) fn arm(&self, count: u32) {
        self.counts.send_modify(|counts| counts.owed += count);
    }

    pub(super) fn disarm(&self) {
        self.counts.send_modify(|counts| counts.owed = 0);
    }

    /// Whether the answer that is here is one to be lost; counts it.
    pub(super) fn take(&self) -> bool {
        self.counts.send_if_modified(|counts| {
            let is_owed = counts.owed > 0;
            if is_owed {
                counts.owed -= 1;
                counts.lost += 1;
            }
            is_owed
        })
    }

    pub(super) async fn all_lost(&self) -> u32 {
        let mut counts = self.counts.subscribe();
        let lost = counts.wait_for(|counts| counts.owed == 0).await.map(|counts| counts.lost);
        lost.unwrap_or_default()
    }
}
