//! Routing: which bucket of a pool an order tries first. Every policy draws a ticket, and the ticket draws a
//! bucket by weight. A bucket of weight 0 is drawn only when no other is left: what it has stays sellable.

use std::sync::atomic::Ordering;

use holdfast_core::stock::Routing;

use crate::catalog::PoolEntry;
use crate::engine::Engine;
use crate::keys::{mix, stable_hash};
use crate::request::PlaceRequest;

impl Engine {
    /// The ticket of an order in a pool.
    pub(crate) fn ticket(&self, pool: &PoolEntry, request: &PlaceRequest) -> u64 {
        match pool.routing {
            Routing::OrderHash => stable_hash(request.key.order_no.as_str()),
            Routing::AccountHash => stable_hash(request.account.as_str()),
            Routing::RoundRobin => pool.traffic.turn.fetch_add(1, Ordering::Relaxed),
            Routing::Random => mix(low_bits(self.shared.ids.next())),
            // Nodes know nothing of each other: their own numbers keep them apart.
            Routing::NodeAffinity => mix(low_bits(self.shared.run) ^ low_bits(pool.id.0)),
        }
    }
}

/// Ids are ordered by time in their high bits and random in their low ones.
const fn low_bits(id: u128) -> u64 {
    id as u64
}

/// Draws the bucket to try: first by weight alone, so that the same ticket meets the same bucket; if that one
/// was tried or is known to have too little, from another start among those that may have enough. None: no
/// bucket may have enough by itself.
pub(crate) fn choose(
    weights: &[u32],
    ticket: u64,
    tried: &[u32],
    may_have: impl Fn(u32) -> bool,
) -> Option<u32> {
    if tried.is_empty()
        && let Some(first) = draw(weights, ticket, |_, weight| weight).filter(|number| may_have(*number))
    {
        return Some(first);
    }
    let tries = u64::try_from(tried.len()).unwrap_or(u64::MAX);
    let again = mix(ticket.wrapping_add(tries).wrapping_add(1));
    let is_left = |number: u32| !tried.contains(&number) && may_have(number);
    draw(weights, again, |number, weight| if is_left(number) { weight } else { 0 })
        .or_else(|| draw(weights, again, |number, _| u32::from(is_left(number))))
}

/// Draws a bucket by the weight that `share` gives each; none if all are 0.
fn draw(weights: &[u32], ticket: u64, share: impl Fn(u32, u32) -> u32) -> Option<u32> {
    let shares =
        || (0_u32..).zip(weights).map(|(number, weight)| (number, u64::from(share(number, *weight))));
    let total: u64 = shares().map(|(_, share)| share).sum();
    let mut rest = ticket.checked_rem(total)?;
    for (number, share) in shares() {
        if rest < share {
            return Some(number);
        }
        rest = rest.saturating_sub(share);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each bucket is drawn first by tickets in a row.
    fn drawn(weights: &[u32], tickets: u64) -> Vec<usize> {
        let mut counts = vec![0; weights.len()];
        for ticket in 0..tickets {
            let number = choose(weights, ticket, &[], |_| true).unwrap();
            counts[usize::try_from(number).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn buckets_are_drawn_by_weight() {
        assert_eq!(drawn(&[1, 1, 1, 1], 400), [100, 100, 100, 100]);
        assert_eq!(drawn(&[3, 0, 1], 400), [300, 0, 100]);
        assert_eq!(drawn(&[0, 5], 10), [0, 10]);
    }

    #[test]
    fn a_bucket_of_weight_0_is_drawn_when_no_other_is_left() {
        let has = |with: &'static [u32]| move |number: u32| with.contains(&number);
        assert_eq!(choose(&[1, 0, 0], 7, &[], has(&[1])), Some(1));
        assert_eq!(choose(&[1, 0, 1], 7, &[0, 2], has(&[0, 1, 2])), Some(1));
        assert_eq!(choose(&[1, 0, 1], 7, &[], has(&[])), None);
        assert_eq!(choose(&[1, 0, 1], 7, &[0, 1, 2], has(&[0, 1, 2])), None);
        // All of weight 0 there is not, but nothing would be lost by it.
        assert_eq!(choose(&[0, 0], 7, &[], has(&[1])), Some(1));
    }

    #[test]
    fn misses_begin_from_different_starts() {
        // Orders that miss in one bucket spread over the others.
        let missed = (0..1_000_u64).map(|n| n * 4).map(|ticket| {
            assert_eq!(choose(&[1, 1, 1, 1], ticket, &[], |_| true), Some(0));
            choose(&[1, 1, 1, 1], ticket, &[0], |_| true).unwrap()
        });
        let mut counts = [0_u32; 4];
        missed.for_each(|number| counts[usize::try_from(number).unwrap()] += 1);
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (250..420).contains(count)), "{counts:?}");
        // The same for those that skip it because it is known to have too little.
        let skipped = (0..1_000_u64).filter_map(|n| choose(&[1, 1, 1, 1], n * 4, &[], |number| number != 0));
        let mut counts = [0_u32; 4];
        skipped.for_each(|number| counts[usize::try_from(number).unwrap()] += 1);
        assert!(counts[1..].iter().all(|count| (250..420).contains(count)), "{counts:?}");
    }
}
