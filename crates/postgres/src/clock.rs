//! The authority's clock: the server's, or one that a test sets.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use holdfast_core::campaign::Campaign;
use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;
use holdfast_store::{Clock, SystemClock};

/// Which clock decides.
pub(crate) enum AuthorityClock {
    /// The server's, read after the locks of each transaction. How far it is from this machine's is kept for what
    /// only displays or triggers.
    Server {
        /// The server's clock less this machine's, in microseconds.
        ahead_us: AtomicI64,
    },
    /// A test's.
    Test(Arc<dyn Clock>),
}

impl AuthorityClock {
    pub(crate) fn new(test: Option<Arc<dyn Clock>>) -> Self {
        test.map_or_else(|| Self::Server { ahead_us: AtomicI64::new(0) }, Self::Test)
    }

    /// The time of a transaction that has read the server's clock.
    pub(crate) fn at(&self, read: Timestamp) -> Timestamp {
        match self {
            Self::Server { ahead_us } => {
                ahead_us.store(read.0.saturating_sub(SystemClock.now().0), Ordering::Relaxed);
                read
            }
            Self::Test(clock) => clock.now(),
        }
    }

    /// About now.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Server { ahead_us } => {
                Timestamp(SystemClock.now().0.saturating_add(ahead_us.load(Ordering::Relaxed)))
            }
            Self::Test(clock) => clock.now(),
        }
    }
}

/// Most campaigns that are remembered; beyond them some batches take a flight more.
const REMEMBERED_MAX: usize = 10_000;

/// Which campaigns limited accounts when they were last read, so that usage can be asked for along with everything
/// else. Only a hint: what is read under the locks decides.
#[derive(Default)]
pub(crate) struct Hints(RwLock<HashSet<CampaignId>>);

impl Hints {
    pub(crate) fn limits(&self, campaign: &CampaignId) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(campaign)
    }

    pub(crate) fn learn(&self, campaign: &Campaign) {
        let limits = campaign.policy.limits_accounts();
        if self.limits(&campaign.id) == limits {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !limits {
            known.remove(&campaign.id);
        } else if known.len() < REMEMBERED_MAX {
            known.insert(campaign.id.clone());
        }
    }
}
