//! One lie at a time.

use holdfast_core::ledger::Action;
use holdfast_core::order::{Disposition, State};
use holdfast_wire::Code;
use uuid::Uuid;

use super::world::{World, units};
use crate::audit::facts::{Bucket, EventFact, PaymentFact};
use crate::history::{Answered, Ask, Exchange, Told};
use crate::outcome::Window;
use crate::sale::Intent;

/// A world with one order that was paid, and one, the last of its bucket, that was cancelled.
struct Shop {
    world: World,
    paid: (Intent, Uuid),
    cancelled: (Intent, Uuid),
}

impl Shop {
    fn new() -> Self {
        let mut world = World::new(3);
        let (one, other) = (world.buyer(0), world.buyer(0));
        let paid = world.place(&one, 0);
        world.pay(&one, paid);
        world.look(one.buyer, paid);
        let cancelled = world.place(&other, 1);
        world.cancel(&other, cancelled);
        assert_eq!(world.audit().count(), 0, "{:#?}", world.audit().breaches);
        Self { world, paid: (one, paid), cancelled: (other, cancelled) }
    }

    /// The last exchange of the buyer who paid: a look.
    fn look(&mut self) -> &mut Exchange {
        let buyer = self.paid.0.buyer;
        self.world.history.iter_mut().rfind(|exchange| exchange.buyer == buyer).unwrap()
    }

    fn looked(&mut self) -> &mut Told {
        let Answered::Order(told) = &mut self.look().answered else { panic!("no order") };
        told
    }
}

/// What is found after a lie.
fn found(lie: impl FnOnce(&mut Shop)) -> Vec<String> {
    let mut shop = Shop::new();
    lie(&mut shop);
    shop.world.found()
}

#[test]
fn an_invented_order_is_found() {
    let found = found(|shop| {
        let told = Told {
            id: Uuid::from_u128(7),
            version: 1,
            state: State::Held,
            ..shop.world.told(shop.paid.1, 201)
        };
        let buyer = shop.world.buyer(0).buyer;
        shop.world.tell(buyer, Ask::Place, None, Answered::Order(told));
    });
    assert_eq!(found, ["INV7"]);
}

#[test]
fn a_lost_order_is_found() {
    let found = found(|shop| {
        let id = shop.cancelled.1;
        let facts = &mut shop.world.facts;
        facts.orders.retain(|order| order.id != id);
        facts.entries.retain(|entry| entry.order != Some(id));
        facts.events.as_mut().unwrap().retain(|event| event.order != id);
        facts.pools[0].buckets[1].ledger_seq -= 2;
    });
    assert_eq!(found, ["INV7"]);
}

#[test]
fn a_state_that_never_was_is_found() {
    assert_eq!(found(|shop| shop.looked().state = State::Released), ["INV7"]);
    assert_eq!(found(|shop| shop.looked().version = 9), ["INV7"]);
}

#[test]
fn a_second_order_of_one_key_is_found() {
    assert_eq!(found(|shop| shop.looked().id = Uuid::from_u128(9)), ["INV5"]);
    let doubled = found(|shop| {
        let mut other = shop.world.row(shop.cancelled.1).clone();
        (other.id, other.state, other.version) = (Uuid::from_u128(9), State::Failed, 1);
        shop.world.facts.orders.insert(0, other);
    });
    assert_eq!(doubled, ["INV5"]);
}

#[test]
fn a_read_that_goes_back_is_found() {
    let found = found(|shop| {
        let told = shop.looked();
        (told.version, told.state) = (1, State::Held);
    });
    assert_eq!(found, ["reads_fresh"]);
}

#[test]
fn an_old_answer_to_an_old_question_is_none() {
    let found = found(|shop| {
        let look = shop.look();
        look.sent_ns = 0;
        let told = shop.looked();
        (told.version, told.state) = (1, State::Held);
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn an_entry_that_is_gone_is_found() {
    let found = found(|shop| {
        let id = shop.paid.1;
        shop.world.facts.entries.retain(|entry| entry.order != Some(id) || entry.action != Action::Confirm);
    });
    // The order has a state, a payment and an event that no entry carries.
    assert_eq!(found, ["INV10", "INV3", "INV4", "INV6", "INV7"]);
}

#[test]
fn a_balance_that_was_edited_is_found() {
    let edited = found(|shop| {
        let facts = &mut shop.world.facts;
        facts.pools[0].buckets[0].units.available += 1;
        facts.pools[0].units.available += 1;
        facts.pools[0].supply += 1;
        facts.settled.as_mut().unwrap().available += 1;
    });
    assert_eq!(edited, ["INV3"]);
    assert_eq!(found(|shop| shop.world.facts.pools[0].supply += 1), ["INV2"]);
    assert_eq!(found(|shop| shop.world.facts.settled.as_mut().unwrap().sold += 1), ["INV2"]);
}

#[test]
fn units_from_nowhere_and_below_nothing_are_found() {
    let bucket = Bucket { pool: 2, number: 0 };
    let nowhere = found(|shop| shop.world.write(bucket, None, Action::Release, units(1, 0, 0), (None, None)));
    assert_eq!(nowhere, ["INV2"]);
    let oversold = found(|shop| {
        shop.world.write(bucket, None, Action::Adjust, units(-7, 0, 0), (None, None));
        shop.world.write(bucket, None, Action::Adjust, units(7, 0, 0), (None, None));
    });
    assert_eq!(oversold, ["INV1"]);
    let unpaired =
        found(|shop| shop.world.write(bucket, None, Action::TransferOut, units(-1, 0, 0), (None, None)));
    assert_eq!(unpaired, ["INV9"]);
}

#[test]
fn an_order_that_stands_for_other_units_is_found() {
    assert_eq!(found(|shop| shop.world.row_mut(shop.paid.1).allocations[0].0.number = 1), ["INV4"]);
    let cancelled = found(|shop| {
        let row = shop.world.row_mut(shop.paid.1);
        row.allocations[0].1 += 1;
    });
    assert_eq!(cancelled, ["INV4"]);
}

#[test]
fn a_sale_that_is_undone_is_found() {
    let found = found(|shop| {
        let (intent, id) = shop.paid;
        shop.world.go(id, Action::Release, State::Released);
        shop.world.look(intent.buyer, id);
    });
    // The money has bought nothing.
    assert_eq!(found, ["INV12", "INV6"]);
}

#[test]
fn payments_that_are_gone_or_count_twice_are_found() {
    assert_eq!(found(|shop| shop.world.row_mut(shop.paid.1).payments.clear()), ["INV12"]);
    let other = |shop: &mut Shop, payment_id: String, disposition| {
        let payment = PaymentFact { payment_id: payment_id.into(), succeeded: true, disposition };
        shop.world.row_mut(shop.paid.1).payments.push(payment);
    };
    let second = |shop: &Shop| shop.world.sale.payment(shop.paid.0.buyer, true);
    let twice = found(|shop| {
        let payment = second(shop);
        other(shop, payment, Disposition::Applied);
    });
    assert_eq!(twice, ["INV12"]);
    assert_eq!(found(|shop| other(shop, "of-somebody".to_owned(), Disposition::RefundDue)), ["INV12"]);
    let paid_for_nothing = found(|shop| {
        let payment = shop.world.sale.payment(shop.cancelled.0.buyer, false);
        let payment =
            PaymentFact { payment_id: payment.into(), succeeded: true, disposition: Disposition::Applied };
        shop.world.row_mut(shop.cancelled.1).payments.push(payment);
    });
    assert_eq!(paid_for_nothing, ["INV12"]);
}

#[test]
fn an_account_above_its_limit_is_found() {
    let found = found(|shop| {
        let intent = loop {
            let intent = shop.world.buyer(0);
            if intent.quantity > 1 {
                break intent;
            }
        };
        let id = shop.world.place(&intent, 0);
        shop.world.pay(&intent, id);
        let most = shop.paid.0.quantity.max(shop.cancelled.0.quantity).max(intent.quantity);
        shop.world.sale.shop.account_limit = Some(most - 1);
    });
    assert_eq!(found, ["INV8"]);
}

#[test]
fn a_refusal_that_is_recorded_after_all_is_found() {
    let there = found(|shop| {
        let buyer = shop.cancelled.0.buyer;
        shop.world.history.retain(|exchange| exchange.buyer != buyer);
        shop.world.refuse(buyer, Ask::Place, Code::Overloaded, Some(false));
    });
    assert_eq!(there, ["answers_true"]);
    let gone = found(|shop| {
        let buyer = shop.world.buyer(0).buyer;
        let answered = Answered::Refused {
            status: 409,
            code: Code::AccountLimit,
            recorded: Some(true),
            retry_after: false,
        };
        shop.world.tell(buyer, Ask::Place, None, answered);
    });
    assert_eq!(gone, ["INV7"]);
}

#[test]
fn an_order_that_nobody_placed_or_that_says_something_else_is_found() {
    let strange = found(|shop| {
        let mut other = shop.world.row(shop.cancelled.1).clone();
        (other.id, other.order_no, other.state, other.version) =
            (Uuid::from_u128(9), "somebody".into(), State::Failed, 1);
        shop.world.facts.orders.push(other);
    });
    assert_eq!(strange, ["answers_true"]);
    assert_eq!(found(|shop| shop.world.row_mut(shop.paid.1).lines[0].1 += 1), ["answers_true"]);
    assert_eq!(found(|shop| shop.world.row_mut(shop.paid.1).account = "somebody".into()), ["answers_true"]);
}

#[test]
fn a_status_that_does_not_fit_its_order_is_found() {
    let found = found(|shop| {
        let buyer = shop.paid.0.buyer;
        let told = shop.world.told(shop.paid.1, 202);
        shop.world.tell(buyer, Ask::Place, None, Answered::Order(told));
    });
    assert_eq!(found, ["answers_true"]);
}

#[test]
fn answers_that_nobody_expects_are_found() {
    let answers = [
        Answered::Refused { status: 500, code: Code::Internal, recorded: None, retry_after: false },
        Answered::Refused { status: 503, code: Code::Overloaded, recorded: Some(false), retry_after: false },
        Answered::Nonsense { status: 502, what: "<html>".into() },
        // Nothing breaks in this scenario.
        Answered::Lost { never_sent: false },
    ];
    for answered in answers {
        let found = found(|shop| {
            let buyer = shop.world.buyer(0).buyer;
            shop.world.tell(buyer, Ask::Place, None, answered.clone());
        });
        assert_eq!(found, ["answers_expected"], "{answered:?}");
    }
}

#[test]
fn a_late_answer_is_found_unless_something_was_broken() {
    let late = |shop: &mut Shop| {
        let look = shop.look();
        look.ended_ns = look.sent_ns + 40_000_000_000;
    };
    assert_eq!(found(late), ["answers_in_time"]);
    let excused = found(|shop| {
        late(shop);
        shop.world.windows.push(Window { fault: "pause-node".to_owned(), from: 2.0, to: 9.0 });
    });
    assert!(excused.is_empty(), "{excused:?}");
}

#[test]
fn whoever_is_sent_away_while_there_is_enough_is_found() {
    let found = found(|shop| {
        let buyer = shop.world.buyer(0).buyer;
        shop.world.refuse(buyer, Ask::Place, Code::SoldOut, Some(false));
    });
    assert_eq!(found, ["sold_out_true"]);
}

#[test]
fn a_hint_that_never_clears_is_found() {
    // Everything was held for a moment, which is long ago.
    let found = found(|shop| {
        let world = &mut shop.world;
        for number in [0, 1] {
            let bucket = Bucket { pool: 0, number };
            let left = world.facts.pools[0].buckets[usize::from(number)].units.available;
            world.write(bucket, None, Action::Adjust, units(-left, 0, 0), (None, None));
            world.write(bucket, None, Action::Inbound, units(left, 0, 0), (None, None));
        }
        let buyer = world.buyer(0).buyer;
        world.refuse(buyer, Ask::Place, Code::SoldOut, Some(false));
        let told = world.history.last_mut().unwrap();
        told.sent_ns += 60_000_000_000;
        told.ended_ns += 60_000_000_000;
    });
    assert_eq!(found, ["sold_out_true"]);
}

#[test]
fn what_waits_for_ever_is_found() {
    let queued = found(|shop| {
        let intent = shop.world.buyer(1);
        shop.world.queue(&intent);
    });
    assert_eq!(queued, ["at_rest"]);
    let held = found(|shop| {
        let intent = shop.world.buyer(0);
        shop.world.place(&intent, 0);
    });
    assert_eq!(held, ["at_rest"]);
    assert_eq!(found(|shop| shop.world.facts.pools[1].frozen = true), ["at_rest"]);
    assert_eq!(found(|shop| shop.world.facts.is_open = false), ["at_rest"]);
    assert_eq!(found(|shop| shop.world.facts.pools[2].buckets[1].backlog = Some(1)), ["at_rest"]);
    assert_eq!(found(|shop| shop.world.facts.pools[2].buckets[1].cached = Some(-1)), ["at_rest"]);
}

#[test]
fn what_a_cache_accepted_must_have_an_end() {
    let accepted = |shop: &mut Shop| {
        let buyer = shop.world.buyer(2).buyer;
        let id = Uuid::from_u128(11);
        let told = Told {
            status: 202,
            id,
            state: State::Queued,
            version: 1,
            ticketed: true,
            ..shop.world.told(shop.paid.1, 202)
        };
        shop.world.tell(buyer, Ask::Place, None, Answered::Order(told));
        (buyer, id)
    };
    let silent = found(|shop| {
        accepted(shop);
    });
    assert_eq!(silent, ["at_rest"]);
    let told_lost = found(|shop| {
        let (buyer, id) = accepted(shop);
        shop.world.scenario = crate::scenario::Scenario::named("cache-wipe").unwrap();
        let answered = Answered::Refused {
            status: 409,
            code: Code::AdmissionLost,
            recorded: Some(false),
            retry_after: false,
        };
        shop.world.tell(buyer, Ask::Look, Some(id), answered);
    });
    assert!(told_lost.is_empty(), "{told_lost:?}");
}

#[test]
fn a_landing_that_settles_twice_is_found() {
    let found = found(|shop| {
        let id = shop.paid.1;
        for entry in shop.world.facts.entries.iter_mut().filter(|entry| entry.order == Some(id)) {
            entry.settled = 1;
        }
    });
    assert_eq!(found, ["INV13"]);
}

#[test]
fn events_that_are_missing_made_up_or_out_of_order_are_found() {
    let events =
        |lie: &dyn Fn(&mut Vec<EventFact>)| found(|shop| lie(shop.world.facts.events.as_mut().unwrap()));
    assert_eq!(events(&|events| events.truncate(1)), ["INV10"]);
    assert_eq!(events(&|events| events.swap(0, 1)), ["INV10"]);
    let made_up = |events: &mut Vec<EventFact>| {
        events.push(EventFact { bucket: Bucket { pool: 2, number: 0 }, seq: 5, order: Uuid::from_u128(1) });
    };
    assert_eq!(events(&made_up), ["INV10"]);
}
