//! The cache path as a model, explored exhaustively at small size: what Redis may lose, what nodes may forget, what
//! may be said twice or late.
//!
//! Each state that can be reached must also recover: with no more faults, every ticket is answered for good, no unit is
//! stranded, and the cache is open again and equal to the authority. Mistakes planted in each step must be found.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]
#![allow(clippy::wildcard_enum_match_arm, reason = "each step is taken in one place")]

mod recovery;
mod steps;
mod world;

use stateright::{Checker, HasDiscoveries, Model, Property};

use steps::{Mistake, Step};
use world::{Left, World};

/// What must be possible at all, so that nothing is true only because nothing happens.
const SOLD: &str = "all orders are answered by the cache and landed";

struct Protocol {
    buckets: usize,
    nodes: usize,
    orders: usize,
    epochs: u8,
    /// Credits that may be on their way at once.
    credits: usize,
    left: Left,
    mistake: Option<Mistake>,
}

impl Protocol {
    fn epoch_steps(&self, world: &World, steps: &mut Vec<Step>) {
        for (bucket, server) in world.servers.iter().enumerate() {
            if world.rows[bucket].epoch < self.epochs {
                steps.extend([Step::Drain { bucket }, Step::Close { bucket }]);
                // Who opens may have seen the server that was there before.
                for identity in server.identity.saturating_sub(1)..=server.identity {
                    steps.push(Step::OpenEpoch { bucket, identity });
                }
            }
            steps.extend([Step::DrainCache { bucket }, Step::Open { bucket }]);
            if world.left.losses > 0 {
                steps.extend([Step::Copy { bucket }, Step::Restore { bucket }, Step::Flush { bucket }]);
            }
        }
        steps.extend(world.seeds.iter().map(|seed| Step::Seed { seed: *seed }));
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.buckets, self.nodes, self.orders, self.left)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for node in 0..self.nodes {
            for bucket in 0..self.buckets {
                steps.push(Step::Refresh { node, bucket });
                for order in 0..self.orders {
                    for is_answered in [true, false] {
                        steps.push(Step::Accept { node, bucket, order, is_answered });
                    }
                }
            }
            steps.push(Step::Crash { node });
        }
        for bucket in 0..self.buckets {
            steps.extend([Step::Deliver { bucket }, Step::Claim { bucket }]);
            if world.credits.len() < self.credits {
                steps.push(Step::Plan { bucket });
            }
            steps.extend((0..self.orders).map(|order| Step::Take { bucket, order }));
        }
        for flight in world.flights.iter().copied() {
            steps.extend([Step::Land { flight }, Step::Settle { flight }, Step::Drop { flight }]);
        }
        steps.extend(world.credits.iter().map(|credit| Step::Credit { credit: *credit }));
        steps.extend((0..self.orders).map(|order| Step::Release { order }));
        self.epoch_steps(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        world.after(step, self.mistake)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never oversold, and no order taken twice", |_, world: &World| {
                world.is_not_oversold()
            }),
            Property::always("nothing of a closed epoch lands", |_, world: &World| {
                let landings =
                    world.rows.iter().flat_map(|row| &row.ledger).filter_map(|entry| entry.landing);
                landings.into_iter().all(|(ticket, epoch)| ticket.epoch == epoch)
            }),
            Property::always("the law of the cache", |_, world: &World| {
                world.rows.iter().zip(&world.servers).all(|(row, server)| {
                    let keys = server.keys.as_ref().filter(|keys| keys.epoch == row.epoch);
                    keys.is_none_or(|keys| keys.keeps_the_law(row))
                })
            }),
            Property::always("everything recovers", |model: &Self, world: &World| {
                world.recovers(model.mistake)
            }),
            Property::sometimes(SOLD, |model: &Self, world: &World| {
                world.tickets.len() == world.orders.len()
                    && world.taken.iter().all(|taken| *taken == 1)
                    && world.left.takes == model.left.takes
            }),
        ]
    }
}

/// Explores all of it: an end before that is a failure.
fn explore(name: &str, protocol: Protocol) {
    let begun = std::time::Instant::now();
    let checker = protocol.checker().threads(2).timeout(LONGEST).spawn_bfs().join();
    println!("{name}: {} distinct states, {:.1?}", checker.unique_state_count(), begun.elapsed());
    assert!(checker.is_done() && begun.elapsed() < LONGEST, "{name}: not explored to the end");
    checker.assert_properties();
}

/// Longest exploration, on a machine that does much else.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(100);
const NONE: Left = Left { losses: 0, answers: 0, crashes: 0, takes: 0, releases: 0, drains: 0 };

#[test]
fn a_server_that_loses_or_goes_back() {
    let left = Left { losses: 1, ..NONE };
    let protocol = Protocol { buckets: 1, nodes: 1, orders: 2, epochs: 2, credits: 1, left, mistake: None };
    explore("a server that loses", protocol);
}

#[test]
fn answers_lost_and_nodes_that_crash() {
    let left = Left { answers: 1, crashes: 1, takes: 1, ..NONE };
    let protocol = Protocol { buckets: 1, nodes: 2, orders: 2, epochs: 1, credits: 2, left, mistake: None };
    explore("answers lost and crashes", protocol);
}

#[test]
fn a_rebuild_under_traffic() {
    let left = Left { takes: 1, drains: 1, ..NONE };
    let protocol = Protocol { buckets: 1, nodes: 1, orders: 2, epochs: 2, credits: 1, left, mistake: None };
    explore("a rebuild under traffic", protocol);
}

#[test]
fn two_buckets_of_a_pool() {
    let protocol =
        Protocol { buckets: 2, nodes: 1, orders: 2, epochs: 1, credits: 1, left: NONE, mistake: None };
    explore("two buckets", protocol);
}

#[test]
fn planted_mistakes_are_found() {
    let left = Left { losses: 1, answers: 1, crashes: 1, takes: 1, releases: 1, drains: 1 };
    for mistake in [
        Mistake::SplitAccept,
        Mistake::CreditAnywhere,
        Mistake::SettleFirst,
        Mistake::LandTwice,
        Mistake::NeverClosed,
        Mistake::TornBase,
        Mistake::SeedAgain,
        Mistake::NoFences,
        Mistake::DuplicateKeepsUnit,
    ] {
        let protocol =
            Protocol { buckets: 1, nodes: 1, orders: 2, epochs: 2, credits: 2, left, mistake: Some(mistake) };
        let builder = protocol.checker().threads(2).timeout(LONGEST);
        let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let (states, found) = (checker.unique_state_count(), checker.discoveries());
        let mut found = found.into_iter().filter(|(name, _)| *name != SOLD);
        let (name, path) = found.next().unwrap_or_else(|| panic!("{mistake:?} in {states} states"));
        println!("{mistake:?} breaks \"{name}\", found in {states} states: {:?}", path.into_actions());
    }
}
