//! What becomes of a world when no more faults come and everybody does their work.

use super::steps::{Mistake, Step};
use super::world::{EpochState, Phase, World};

/// More steps than any recovery takes.
const STEPS_MAX: usize = 200;

impl World {
    /// Whether everything comes to rest: every ticket answered for good, no unit stranded, the cache open and equal to
    /// the authority.
    pub(crate) fn recovers(&self, mistake: Option<Mistake>) -> bool {
        let mut world = self.clone();
        // Nothing is bounded now but by its work.
        (world.left.losses, world.left.answers, world.left.drains) = (0, 0, 0);
        world.left.crashes = u8::MAX;
        for _ in 0..STEPS_MAX {
            // A step that cannot be taken leaves the world as it is.
            if !world.work().into_iter().any(|step| world.take_step(step, mistake).is_some()) {
                return world.is_at_rest(mistake);
            }
        }
        false
    }

    /// What the workers would do now, the most urgent first.
    fn work(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.seeds.iter().map(|seed| Step::Seed { seed: *seed }).collect();
        for flight in &self.flights {
            steps.extend([Step::Land { flight: *flight }, Step::Settle { flight: *flight }]);
        }
        steps.extend(self.credits.iter().map(|credit| Step::Credit { credit: *credit }));
        for (bucket, row) in self.rows.iter().enumerate() {
            steps.extend([Step::Deliver { bucket }, Step::Claim { bucket }, Step::Plan { bucket }]);
            if row.state == EpochState::Open && self.is_in_doubt(bucket) {
                steps.push(Step::Drain { bucket });
            }
            steps.extend([Step::DrainCache { bucket }, Step::Close { bucket }]);
            steps.push(Step::OpenEpoch { bucket, identity: self.servers[bucket].identity });
            steps.push(Step::Open { bucket });
        }
        steps
    }

    fn is_at_rest(&self, mistake: Option<Mistake>) -> bool {
        let is_fenced = mistake != Some(Mistake::NoFences);
        let are_equal = self.rows.iter().zip(&self.servers).all(|(row, server)| {
            server.keys.as_ref().is_some_and(|keys| {
                row.state == EpochState::Open
                    && keys.epoch == row.epoch
                    && (!is_fenced || server.identity == row.identity)
                    && keys.phase == Phase::Open
                    && keys.stream.is_empty()
                    && keys.applied == row.ledger.len()
                    && keys.available == row.available
            })
        });
        // Landed, or of a closed epoch: `admission_lost`.
        let are_answered = self.tickets.iter().all(|ticket| {
            self.orders[ticket.order].is_some() || ticket.epoch < self.rows[ticket.bucket].epoch
        });
        are_equal && are_answered
    }
}
