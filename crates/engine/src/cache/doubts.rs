//! What a keeper found wrong with a cache is kept as a difference like any other: its epoch is drained at once, and what it
//! had is told for ever.

use holdfast_core::cache::CacheBucket;
use holdfast_core::id::RunId;
use holdfast_core::reconcile::{CacheSeen, Class, Finding};

use super::contract::Position;
use super::steer::Doubt;
use crate::engine::Engine;

impl Engine {
    /// Keeps a doubt that is a difference. If it cannot be kept, the drain goes on: the fence comes first.
    pub(super) async fn note_doubt(
        &self,
        row: &CacheBucket,
        doubt: Doubt,
        position: Option<&Position>,
        lawful: Option<i64>,
    ) {
        let available = position.map(|position| position.available);
        let class = match doubt {
            Doubt::EntriesGone | Doubt::WentBack | Doubt::KeysGone => Class::EntryUnlanded,
            Doubt::Unlawful if available > lawful => Class::CacheAhead,
            Doubt::Unlawful => Class::CacheBehind,
            Doubt::NotWanted | Doubt::OtherServer | Doubt::Unfit | Doubt::Silent => return,
        };
        let seen = CacheSeen {
            lawful,
            available,
            accepted: position.map_or(0, |position| position.accepted),
            settled: position.map_or(0, |position| position.settled),
            backlog: position.map_or(0, |position| position.backlog),
        };
        // A finding of no run: the keeper looks all the time.
        let noted = self.store().note_findings(RunId(0), vec![Finding::of_cache(class, row, seen)]).await;
        if let Err(error) = noted {
            tracing::warn!(%error, pool = %row.key.pool, "a difference of a cache could not be kept");
        }
    }
}
