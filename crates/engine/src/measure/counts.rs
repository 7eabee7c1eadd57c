//! What was counted in a second.

use holdfast_core::order::Disposition;
use holdfast_metrics::{CacheMetrics, Code, Conflict, NodeMetrics, Overload, StoreMetrics};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// How often things happened in a second.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// What came since.
            pub(super) const fn since(self, earlier: Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counts! {
    /// New orders.
    placed,
    /// Commands that were known already, and places that joined one of their key in flight.
    repeats,
    /// Refusals of any code.
    refused,
    /// Those for too little stock.
    sold_out,
    /// Refusals and notices that met an order whose hold had ended.
    late,
    /// Payment notices, whatever became of them.
    notices,
    /// Requests that a lane's bounds turned away.
    lane_overloads,
    /// Requests that another bound turned away.
    other_overloads,
    /// Commands that the engine could not answer.
    failed,
    /// Places that found too little in a bucket and went on to others.
    misses,
    /// Conflicts between transactions.
    conflicts,
    /// Those in which a lock was held for too long.
    lock_timeouts,
    /// Batches that were tried again.
    retries,
    /// Batches that were cut in two.
    bisections,
    /// Commits whose outcome is unknown.
    commits_unknown,
    /// Queued orders that were landed.
    landed,
    /// Orders that a cache had accepted and that were landed.
    cache_landed,
    /// Answers that an accepted order was lost before it was landed.
    cache_lost,
}

impl Counts {
    /// Everything that was counted so far.
    pub(super) fn now(node: &NodeMetrics, store: &StoreMetrics, cache: &CacheMetrics) -> Self {
        let refused = |code| node.refused.of(code).get();
        let told = |disposition| node.notices.of(disposition).get();
        let is_of_lane = |reason: &Overload| {
            matches!(reason, Overload::LaneDepth | Overload::LaneAge | Overload::LaneReserved)
        };
        let overloads = |of_lane: bool| {
            let those = node.overloads.iter().filter(|(reason, _)| is_of_lane(reason) == of_lane);
            those.map(|(_, count)| count.get()).sum()
        };
        let late = [Code::AlreadyReleased, Code::HoldExpired].map(refused).iter().sum::<u64>();
        let paid_late = [Disposition::Retaken, Disposition::RefundDue].map(told).iter().sum::<u64>();
        Self {
            placed: node.placed.iter().map(|(_, count)| count.get()).sum(),
            repeats: node.repeats.get().saturating_add(node.joins.get()),
            refused: node.refused.iter().map(|(_, count)| count.get()).sum(),
            sold_out: refused(Code::SoldOut),
            late: late.saturating_add(paid_late),
            notices: node.notices.iter().map(|(_, count)| count.get()).sum(),
            lane_overloads: overloads(true),
            other_overloads: overloads(false),
            failed: node.failed.iter().map(|(_, count)| count.get()).sum(),
            misses: node.misses.get(),
            conflicts: store.conflicts.iter().map(|(_, count)| count.get()).sum(),
            lock_timeouts: store.conflicts.of(Conflict::LockTimeout).get(),
            retries: node.retries.get(),
            bisections: node.bisections.get(),
            commits_unknown: store.commits_unknown.get(),
            landed: node.landed.iter().map(|(_, count)| count.get()).sum(),
            cache_landed: cache.landed.get(),
            cache_lost: cache.lost.get(),
        }
    }
}
