//! Sinks, each with the oldest event that it has not looked at.

use std::collections::BTreeMap;
use std::time::Instant;

use holdfast_core::reconcile::StuckFacts;
use holdfast_core::time::Timestamp;
use holdfast_store::{LedgerPosition, SinkKind, SinkState};

use super::pass::Pass;
use crate::error::Error;

impl Pass<'_> {
    /// Those that are paused, disabled, or wait for their consumers stand where they were left.
    pub(super) async fn look_at_sinks(&mut self) -> Result<bool, Error> {
        let store = self.engine.store();
        let late = store.now().minus(self.engine.shared.config.event_late);
        let mut before: BTreeMap<LedgerPosition, (Timestamp, Vec<String>)> = BTreeMap::new();
        for sink in store.sinks().await? {
            if sink.state != SinkState::Active || sink.kind == SinkKind::Pull {
                continue;
            }
            let begun = Instant::now();
            let oldest = store.backlog(sink.name.clone()).await?.oldest;
            if let Some((at, position)) = oldest.filter(|(at, _)| *at < late) {
                before.entry(position).or_insert((at, Vec::new())).1.push(sink.name.as_str().to_owned());
            }
            if !self.step(begun).await? {
                return Ok(false);
            }
        }
        let stuck =
            before.into_iter().map(|((bucket, seq), (at, sinks))| StuckFacts { bucket, seq, at, sinks });
        self.facts.stuck = stuck.collect();
        Ok(true)
    }
}
