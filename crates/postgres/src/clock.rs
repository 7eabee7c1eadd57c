//! The authority's clock: the server's, or one that a test sets.

use std::collections::HashMap;
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

/// Campaigns with limits as they were last read, so that usage can be asked for along with everything else. Only a
/// hint: what is read under the locks decides.
#[derive(Default)]
pub(crate) struct Hints(RwLock<HashMap<CampaignId, Arc<Campaign>>>);

impl Hints {
    /// The campaign, if it limited anything.
    pub(crate) fn limiting(&self, campaign: &CampaignId) -> Option<Arc<Campaign>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(campaign).cloned()
    }

    pub(crate) fn learn(&self, campaign: &Arc<Campaign>) {
        let known = self.limiting(&campaign.id);
        let limits = campaign.policy.limits_anything();
        if known.as_ref().map_or(!limits, |known| limits && counts_the_same(known, campaign)) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !limits {
            known.remove(&campaign.id);
        } else if known.len() < REMEMBERED_MAX || known.contains_key(&campaign.id) {
            known.insert(campaign.id.clone(), Arc::clone(campaign));
        }
    }
}

/// Whether the same rows are kept under both policies.
fn counts_the_same(known: &Campaign, campaign: &Campaign) -> bool {
    known.policy.account_limits().any() == campaign.policy.account_limits().any()
        && known.policy.key_limits.keys().eq(campaign.policy.key_limits.keys())
}
