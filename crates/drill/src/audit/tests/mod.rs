//! The auditor on the truth, and on every kind of lie: each is found, and nothing else is.

mod lies;
mod world;

use holdfast_core::invariant::Invariant;
use holdfast_wire::Code;

use self::world::{OPENING, World};
use super::Check;
use crate::history::{Answered, Ask};

/// Buyers who do this and that, by chance, with an authority that tells the truth.
fn truth(seed: u64) -> World {
    let mut world = World::new(seed);
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut left = [[OPENING; 2]; 2];
    for _ in 0..chance.usize(5..30) {
        let good = chance.usize(..2);
        let intent = world.buyer(good);
        let number = if good == 1 { 0 } else { chance.usize(..2) };
        let quantity = i64::from(intent.quantity);
        if left[good][number] < quantity {
            // Somebody has had the last of it, so this can be true.
            if left[good].iter().sum::<i64>() < quantity {
                world.refuse(intent.buyer, Ask::Place, Code::SoldOut, Some(false));
            }
            continue;
        }
        if chance.u8(..5) == 0 {
            let hung_up = Answered::HungUp;
            world.tell(intent.buyer, Ask::Place, None, hung_up);
        }
        let id = if good == 1 {
            let id = world.queue(&intent);
            world.land(id, 1);
            world.look(intent.buyer, id);
            id
        } else {
            world.place(&intent, u16::try_from(number).unwrap())
        };
        if chance.bool() {
            left[good][number] -= quantity;
            world.pay(&intent, id);
        } else {
            world.cancel(&intent, id);
        }
        if chance.bool() {
            world.look(intent.buyer, id);
        }
    }
    world
}

#[test]
fn the_truth_is_clean() {
    for seed in 0..200 {
        let findings = truth(seed).audit();
        assert_eq!(findings.count(), 0, "seed {seed}: {:#?}", findings.breaches);
    }
}

#[test]
fn a_verdict_says_what_could_be_judged() {
    let mut world = truth(1);
    let shown = |world: &World, invariant: Invariant| {
        let verdicts = world.audit().verdicts();
        verdicts.into_iter().find(|verdict| verdict.code == invariant.code()).unwrap().breaches
    };
    assert_eq!(shown(&world, Invariant::EventsComplete), Some(0));
    assert_eq!(shown(&world, Invariant::LimitsHold), Some(0));
    assert_eq!(shown(&world, Invariant::UsageIsOrders), None);
    world.facts.events = None;
    world.sale.shop.account_limit = None;
    assert_eq!(shown(&world, Invariant::EventsComplete), None);
    assert_eq!(shown(&world, Invariant::LimitsHold), None);
    let codes: Vec<&str> = Check::all().into_iter().map(Check::code).collect();
    assert_eq!(codes.iter().collect::<std::collections::BTreeSet<_>>().len(), codes.len());
}
