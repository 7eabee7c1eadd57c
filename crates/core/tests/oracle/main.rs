//! Random walks over the core, compared after every step with a naive model that was written from the
//! table in `domain.md` and shares no code with the decision.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

#[path = "../support/mod.rs"]
mod support;

mod model;
mod sequences;
mod steps;

use std::collections::BTreeSet;

use holdfast_core::campaign::{Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd};
use holdfast_core::limit::Limited;
use holdfast_core::order::{Order, State};
use holdfast_core::time::Timestamp;
use proptest::prelude::*;

use model::{Late, Model, Rules, St};
use steps::{POOLS, Paid, PlaceStep, Step, a_policy, a_walk, account_index, command, device_key};
use support::build::{PRICE, order_id, pool_id};
use support::{Authority, START, answer};

const SECOND: i64 = 1_000_000;

/// The policy, told again in the model's words.
fn rules(policy: &Policy) -> Rules {
    let by_paid_at = policy.deadline_basis == DeadlineBasis::ProviderPaidAt;
    let skew = i64::from(policy.release_grace_ms) * 1_000;
    Rules {
        hold: i64::from(policy.hold_seconds) * SECOND,
        hold_max: i64::from(policy.hold_seconds_max) * SECOND,
        extension: i64::from(policy.payment_extension_seconds) * SECOND,
        skew,
        grace: if by_paid_at { i64::from(policy.notice_grace_seconds) * SECOND } else { skew },
        review: i64::from(policy.review_seconds) * SECOND,
        by_paid_at,
        immediate: policy.capture == Capture::Immediate,
        late: match policy.late_payment {
            LatePayment::RetakeElseRefund => Late::Retake,
            LatePayment::Refund => Late::Refund,
            LatePayment::Review => Late::Review,
        },
        release_on_failure: policy.payment_failed == PaymentFailed::Release,
        review_releases: policy.review_end == ReviewEnd::Release,
        restock: policy.restock_on_refund,
        limit: policy.account_limit,
        open_holds: policy.account_open_holds,
        queue_limit: policy.queue_limit,
        queue_wait: i64::from(policy.queue_wait_ms) * 1_000,
        device: policy.key_limits.values().next().map_or((None, None), |l| (l.units, l.open_holds)),
        right_amount: PRICE,
    }
}

/// The core and the model, side by side.
struct Pair {
    db: Authority,
    model: Model,
    /// The step before, with the time that an extension named.
    last: Option<(Step, i64)>,
}

impl Pair {
    fn new(policy: Policy, supplies: [(u64, u32); POOLS.len()]) -> Self {
        let model = Model::new(rules(&policy), START.0, &supplies);
        let mut db = Authority::new(policy);
        for (name, (supply, buckets)) in POOLS.iter().zip(supplies) {
            db.open_pool(name, supply, buckets);
        }
        Self { db, model, last: None }
    }

    /// Fills in what depends on the walk so far.
    fn settle(&self, mut step: Step) -> Step {
        if let Step::PlaceAgain(order) = step {
            let known = self.model.orders.get(&order);
            return known.map_or(Step::Wait(1), |known| Step::Place(known.sent.clone()));
        }
        if let Step::Notice(order, notice, paid) = &mut step {
            let known = self.model.orders.get(order);
            let end = known.and_then(|order| order.end).unwrap_or(self.model.now);
            notice.paid_at = match paid {
                Paid::Unsaid => None,
                Paid::Now => Some(self.model.now),
                Paid::JustBeforeEnd => Some(end - 1),
                Paid::AtEnd => Some(end),
                Paid::InSkew => Some(self.model.now + 2 * SECOND),
                Paid::Future => Some(self.model.now + 2 * SECOND + 1),
                Paid::BeforeOrder => Some(START.0 - 2 * SECOND - 1),
            };
        }
        step
    }

    fn until(&self, step: &Step) -> i64 {
        let Step::Extend(order, seconds) = step else { return 0 };
        let end = self.model.orders.get(order).and_then(|order| order.end).unwrap_or(self.model.now);
        end + seconds * SECOND
    }

    fn take(&mut self, step: Step) {
        let (step, until) = match (step, self.last.take()) {
            (Step::Again, Some(last)) => last,
            (Step::Again, None) => (Step::Wait(1), 0),
            (step, _) => {
                let step = self.settle(step);
                let until = self.until(&step);
                (step, until)
            }
        };
        let expected = self.take_model(&step, until);
        if let Some(command) = command(&step, until) {
            let outcome = self.db.send(&command);
            assert_eq!(answer(&outcome), expected, "the answer to {step:?}");
        }
        self.compare(&step);
        self.last = Some((step, until));
    }

    fn take_model(&mut self, step: &Step, until: i64) -> String {
        let model = &mut self.model;
        match step {
            Step::Place(place) => return model.place(place),
            Step::Land(order) => return model.land(*order),
            Step::Cancel(order) => return model.cancel(*order),
            Step::Reduce(order, keeps) => return model.reduce(*order, keeps),
            Step::Attempt(order, id, provider) => return model.attempt(*order, *id, *provider),
            Step::Notice(order, notice, _) => return model.notice(*order, notice),
            Step::Refund(order, id, lines, restock) => return model.refund(*order, *id, lines, *restock),
            Step::Confirm(order) => return model.confirm(*order),
            Step::Release(order) => return model.release(*order),
            Step::Extend(order, _) => return model.extend(*order, until),
            Step::MarkRefunded(order, payments) => return model.mark_refunded(*order, payments),
            Step::Expire(order) => return model.expire(*order),
            Step::Adjust(id, pool, delta) => return model.adjust(*id, *pool, *delta),
            Step::Transfer(id, from, to, quantity) => {
                let there = || units_at(&self.db, *from, *to) >= *quantity;
                return model.transfer(*id, *from, *to, *quantity, there);
            }
            Step::Sweep(pool, into) => {
                return model.sweep(*pool, *into, || is_scattered(&self.db, *pool, *into));
            }
            Step::ChangePool(pool, buckets, weights) => {
                return model.change_pool(*pool, *buckets, weights.as_deref());
            }
            Step::LandAccepted(place, at, due) => return model.land_accepted(place, at, *due),
            Step::SetAside(at) => return model.set_aside(at),
            Step::Turn(bucket, epoch, turn) => return model.turn(*bucket, *epoch, *turn),
            Step::PlaceAgain(_) | Step::Again => unreachable!("settled before"),
            Step::Wait(time) => model.now += time,
            Step::WaitFor(order, grace, by) => {
                let end = model.orders.get(order).and_then(|order| order.end);
                let grace = if *grace { model.rules.grace } else { 0 };
                // Time never runs back.
                model.now = end.map_or(model.now, |end| model.now.max(end + grace + by));
            }
            Step::Pause(on) => model.paused = *on,
            Step::Freeze(on) => model.frozen = *on,
            Step::FreezePool(pool, on) => model.pools[*pool].frozen = *on,
            Step::RetirePool(pool) => model.pools[*pool].retired = true,
            Step::Close => model.closed = true,
        }
        self.db.clock = Timestamp(self.model.now);
        self.db.campaign.switches.paused = self.model.paused;
        self.db.campaign.switches.frozen = self.model.frozen;
        self.db.campaign.switches.closed = self.model.closed;
        for (name, pool) in POOLS.iter().zip(&self.model.pools) {
            let row = self.db.pools.get_mut(&pool_id(name)).unwrap();
            (row.frozen, row.retired) = (pool.frozen, pool.retired);
        }
        String::new()
    }

    fn compare(&self, step: &Step) {
        for (name, pool) in POOLS.iter().zip(&self.model.pools) {
            let expected = (pool.available, pool.held, pool.sold);
            assert_eq!(self.db.totals(pool_id(name)), expected, "pool {name} after {step:?}");
            let weights = self.db.buckets.values().filter(|b| b.key.pool == pool_id(name)).map(|b| b.weight);
            assert_eq!(weights.collect::<Vec<_>>(), pool.weights, "pool {name} after {step:?}");
        }
        assert_eq!(self.db.orders.len(), self.model.orders.len(), "orders after {step:?}");
        for (number, expected) in &self.model.orders {
            let order = self.db.order(order_id(*number));
            assert_eq!(state(order), expected.state, "order {number} after {step:?}");
            assert_eq!(due(order), expected.due, "what order {number} owes after {step:?}");
            assert_eq!(order.hold_ends_at.map(|t| t.0), expected.end, "order {number} after {step:?}");
        }
        self.compare_caches(step);
        let of_orders = self.db.cases.values().filter(|case| case.order.is_some());
        let cases: BTreeSet<_> = of_orders.map(|case| (case.order, case.kind.as_str())).collect();
        let expected: BTreeSet<_> =
            self.model.cases.iter().map(|(order, kind)| (Some(order_id(*order)), *kind)).collect();
        assert_eq!(cases, expected, "cases after {step:?}");
        let told = expected.len() + self.model.caches.poisons.len();
        assert_eq!(self.db.cases.len(), told, "one case an order and kind, and one an entry");
        for (key, usage) in &self.db.usage {
            let expected = self.model.usage(|step| is_of(step, &key.limited));
            assert_eq!((usage.units, usage.open_holds), expected, "usage of {key:?} after {step:?}");
        }
    }
}

impl Pair {
    /// Epochs are where the model has them, and the law holds: a cache that accepted what has landed would have
    /// what the authority has.
    fn compare_caches(&self, step: &Step) {
        let model = &self.model.caches;
        let rows = self.db.caches.values();
        let epochs: Vec<_> = rows.clone().map(|r| (r.key.number, r.epoch.0, r.state.as_str())).collect();
        let expected: Vec<_> =
            model.epochs.iter().map(|(number, (epoch, phase, _))| (*number, *epoch, phase.word())).collect();
        assert_eq!(epochs, expected, "epochs after {step:?}");
        for row in rows {
            let later = self.db.entries[&row.key].iter().filter(|entry| entry.seq > row.base_seq);
            let credits: i64 = later.map(|entry| entry.delta.available + entry.settled as i64).sum();
            let accepted = model.units(row.key.number, row.epoch.0) as i64;
            let cached = row.base_available as i64 + credits - accepted;
            assert_eq!(cached, self.db.buckets[&row.key].available as i64, "the law after {step:?}");
            let numbers = model.settled.keys().filter(|key| (key.0, key.1) == (row.key.number, row.epoch.0));
            assert_eq!(row.landed, numbers.map(|key| key.2).max().unwrap_or(0), "landed after {step:?}");
        }
    }
}

/// Whether an order counts for this usage row.
fn is_of(step: &PlaceStep, limited: &Limited) -> bool {
    match limited {
        Limited::Account(account) => step.account == account_index(account.as_str()),
        Limited::Key(_, key) => step.device.map(device_key) == Some(*key),
    }
}

/// Available units, by bucket, of a pool.
fn shelf(db: &Authority, pool: usize) -> Vec<(u32, u64)> {
    let id = pool_id(POOLS[pool]);
    db.buckets.values().filter(|b| b.key.pool == id).map(|b| (b.key.number, b.available)).collect()
}

/// What a transfer can take: a bucket gives nothing to itself.
fn units_at(db: &Authority, from: steps::Place, to: steps::Place) -> u64 {
    let named = |number: u32| from.1.is_none_or(|only| only == number);
    let other = |number: u32| from.0 != to.0 || to.1 != Some(number);
    shelf(db, from.0)
        .iter()
        .filter(|(number, _)| named(*number) && other(*number))
        .map(|(_, units)| units)
        .sum()
}

/// Whether there are units outside the one bucket into which a sweep gathers.
fn is_scattered(db: &Authority, pool: usize, into: Option<u32>) -> bool {
    let filled: Vec<_> =
        shelf(db, pool).into_iter().filter(|(_, units)| *units > 0).map(|(n, _)| n).collect();
    match (into, &filled[..]) {
        (Some(into), filled) => filled.iter().any(|number| *number != into),
        (None, []) => false,
        // Units in one bucket that routing does not choose are moved to one that it does.
        (None, [only]) => {
            let weights: Vec<_> = db
                .buckets
                .values()
                .filter(|b| b.key.pool == pool_id(POOLS[pool]))
                .map(|b| b.weight)
                .collect();
            weights[*only as usize] == 0
        }
        (None, _) => true,
    }
}

fn state(order: &Order) -> St {
    match order.state {
        State::Queued => St::Queued,
        State::Held => St::Held,
        State::InReview => St::InReview,
        State::Sold => St::Sold,
        State::Refunded => St::Refunded,
        State::Released => St::Released,
        State::Failed => St::Failed,
    }
}

fn due(order: &Order) -> Vec<(usize, u32)> {
    let payments = order.refund_due.iter().flat_map(|due| &due.payments);
    payments
        .map(|(provider, payment)| {
            (usize::from(provider.as_str() != "alipay"), payment.as_str()[1..].parse().unwrap())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_core_does_what_the_table_says(
        policy in a_policy(),
        supplies in [(0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32)],
        steps in a_walk(60),
    ) {
        let mut pair = Pair::new(policy, supplies);
        for step in steps {
            pair.take(step);
        }
    }
}
