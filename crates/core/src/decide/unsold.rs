//! What closed campaigns have not sold goes to the pool that was named when they were closed.

use std::sync::Arc;

use crate::command::{MoveUnsold, Outcome};
use crate::id::PoolId;
use crate::refusal::Refusal;
use crate::stock::BucketKey;

use super::pool::Part;
use super::{Working, blocked};

impl Working {
    /// Moves all that these buckets have to give. What is there decides, under the locks: the same again finds
    /// nothing and does nothing.
    pub(super) fn move_unsold(&mut self, unsold: &MoveUnsold) -> Outcome {
        if !self.rows.pools.contains_key(&unsold.to) {
            return Outcome::refused(Refusal::UnknownPool);
        }
        let is_complete = self.is_complete(unsold.to);
        let target =
            self.locked_buckets(unsold.to).min_by_key(|bucket| (bucket.available, bucket.key.number));
        let Some(target) = target.filter(|_| is_complete).map(|bucket| bucket.key) else {
            return Outcome::Elsewhere(vec![unsold.to]);
        };
        let gives = unsold.from.iter().filter(|key| self.gives_unsold(**key, unsold.to));
        let parts: Vec<Part> = gives
            .filter_map(|key| self.rows.buckets.get(key))
            .map(|bucket| Part { from: bucket.key, to: target, units: bucket.available })
            .filter(|part| part.units > 0)
            .collect();
        let business_no = Arc::from(unsold.id.to_string());
        match self.move_parts(&parts, "unsold", &business_no, &unsold.signed) {
            Ok(()) => Outcome::Transferred { repeated: parts.is_empty() },
            Err(why) => blocked(why),
        }
    }

    fn gives_unsold(&self, from: BucketKey, to: PoolId) -> bool {
        let pool = self.rows.pools.get(&from.pool);
        let campaign = pool.and_then(|pool| self.campaign(&pool.campaign));
        campaign.is_some_and(|campaign| campaign.switches.closed && campaign.unsold_to == Some(to))
            && !self.lets_nothing_out(from.pool)
            // What its cache has accepted was let in before.
            && !self.has_unclosed_epoch(from)
    }
}
