//! The steps of a random walk, in plain numbers, and how each becomes a command.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::cache;
use holdfast_core::campaign::{Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd};
use holdfast_core::command::{ChangePool, Command, Inquiry, OrderAction, Place as Sent, PlaceLine};
use holdfast_core::id::{AttemptId, EventId, HashedKey, LimitName};
use holdfast_core::limit::Limits;
use holdfast_core::order::{Notice, PaymentOutcome};
use holdfast_core::time::Timestamp;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use crate::support::START;
use crate::support::build::*;

pub(crate) const POOLS: [&str; 4] = ["A", "B", "C", "D"];
/// A pool that there is not.
const NOWHERE: usize = POOLS.len();
const ACCOUNTS: [&str; 2] = ["ann", "bob"];
const PROVIDERS: [&str; 2] = ["alipay", "stripe"];

/// When a payment says that it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paid {
    Unsaid,
    Now,
    JustBeforeEnd,
    AtEnd,
    InSkew,
    Future,
    BeforeOrder,
}

/// Units in one unit of a line, from these pools in their order.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) each: u64,
    pub(crate) pools: Vec<usize>,
}

/// What a line may ask for.
#[derive(Debug, Clone)]
pub(crate) struct Ware {
    pub(crate) parts: Vec<Part>,
    /// Whether each part may come from several pools; else all come from the same place of their orders.
    pub(crate) split: bool,
}

impl Ware {
    const KINDS: usize = NOWHERE + 1 + 6;

    /// The pools by themselves, and one that is nowhere; then lines with a choice, and bundles.
    pub(crate) fn of(kind: usize) -> Self {
        let ware = |split, parts: &[(u64, &[usize])]| Self {
            parts: parts.iter().map(|(each, pools)| Part { each: *each, pools: pools.to_vec() }).collect(),
            split,
        };
        match kind.checked_sub(NOWHERE + 1) {
            None => ware(false, &[(1, &[kind])]),
            Some(0) => ware(false, &[(1, &[0, 1])]),
            Some(1) => ware(true, &[(1, &[1, 0, 3])]),
            Some(2) => ware(false, &[(2, &[0]), (1, &[2])]),
            Some(3) => ware(true, &[(1, &[2]), (2, &[0, 1])]),
            Some(4) => ware(false, &[(1, &[0, 1]), (2, &[2, 3])]),
            Some(_) => ware(true, &[(3, &[3, 1]), (1, &[2])]),
        }
    }

    fn line(kind: usize, quantity: u32) -> PlaceLine {
        let ware = Self::of(kind);
        if kind <= NOWHERE {
            return place(0, &[(pool_name(kind), quantity)]).lines.remove(0);
        }
        let parts = ware.parts.iter().zip(0..).map(|(made_of, number): (_, u32)| {
            let sources: Vec<_> = made_of.pools.iter().map(|pool| (pool_name(*pool), "main")).collect();
            part(&format!("part-{number}"), u32::try_from(made_of.each).unwrap(), &sources)
        });
        made_up(&format!("ware-{kind}"), quantity, &parts.collect::<Vec<_>>(), ware.split)
    }
}

/// A place, in numbers.
#[derive(Debug, Clone)]
pub(crate) struct PlaceStep {
    pub(crate) order: u32,
    pub(crate) account: usize,
    pub(crate) device: Option<usize>,
    /// What, as [`Ware::of`] says, and how many.
    pub(crate) lines: Vec<(usize, u32)>,
    pub(crate) hold: Option<u32>,
    pub(crate) priced: bool,
    pub(crate) route: u64,
    pub(crate) record: bool,
    pub(crate) queued: bool,
}

/// A payment notice, in numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoticeStep {
    pub(crate) provider: usize,
    pub(crate) event: u32,
    pub(crate) payment: u32,
    pub(crate) attempt: Option<u32>,
    pub(crate) succeeded: bool,
    pub(crate) amount: Option<i64>,
    /// Filled in when the step is made: the time itself.
    pub(crate) paid_at: Option<i64>,
}

/// Where a cache of the first pool accepted an order, in numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    pub(crate) bucket: u32,
    pub(crate) epoch: u64,
    pub(crate) entry: u64,
    pub(crate) units: u64,
}

/// A turn of an epoch; the server on which it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TurnStep {
    Open(u8),
    Drain,
    Close,
}

/// One step of a walk.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Place(PlaceStep),
    /// The same place as the order's first.
    PlaceAgain(u32),
    /// The step before, once more.
    Again,
    Land(u32),
    Cancel(u32),
    Reduce(u32, Vec<(u32, u32)>),
    Attempt(u32, u32, usize),
    Notice(u32, NoticeStep, Paid),
    Refund(u32, u32, Vec<(u32, u32)>, Option<bool>),
    Confirm(u32),
    Release(u32),
    /// Seconds after the end of the hold.
    Extend(u32, i64),
    MarkRefunded(u32, Vec<u32>),
    Expire(u32),
    Adjust(u32, usize, i64),
    /// Its id, from, to and quantity.
    Transfer(u32, Place, Place, u64),
    /// A pool, and into which bucket.
    Sweep(usize, Option<u32>),
    /// A pool, how many buckets, and their weights.
    ChangePool(usize, Option<u32>, Option<Vec<u32>>),
    /// What a cache accepted, and when its time is over.
    LandAccepted(PlaceStep, Accepted, i64),
    SetAside(Accepted),
    /// A bucket of the first pool, and which epoch of it.
    Turn(u32, u64, TurnStep),
    /// Microseconds.
    Wait(i64),
    /// To the end of an order's hold, or of its grace, and some microseconds.
    WaitFor(u32, bool, i64),
    Pause(bool),
    Freeze(bool),
    FreezePool(usize, bool),
    RetirePool(usize),
    Close,
}

/// A pool and perhaps a bucket of it.
pub(crate) type Place = (usize, Option<u32>);

fn orders() -> impl Strategy<Value = u32> {
    1..5_u32
}

/// A walk: some orders to begin with, then whatever comes.
pub(crate) fn a_walk(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let first = (1..4_u32).map(a_place_of).collect::<Vec<_>>();
    let opened = [Step::Turn(0, 1, TurnStep::Open(1))];
    let rest = vec(a_step(), steps.saturating_sub(first.len() + opened.len()));
    (first, rest).prop_map(move |(first, rest)| opened.clone().into_iter().chain(first).chain(rest).collect())
}

fn a_place() -> impl Strategy<Value = Step> {
    orders().prop_flat_map(a_place_of)
}

fn a_place_of(order: u32) -> impl Strategy<Value = Step> {
    let kind = prop_oneof![40 => 0..NOWHERE, 1 => Just(NOWHERE), 30 => NOWHERE + 1..Ware::KINDS];
    let line = (kind, 1..4_u32);
    let hold =
        prop_oneof![8 => Just(None), 1 => Just(Some(900)), 1 => Just(Some(60)), 1 => Just(Some(4_000))];
    (
        (Just(order), (0..2_usize, weighted(0.6, 0..2_usize)), vec(line, 1..4), hold),
        (prop::bool::weighted(0.8), 0..4_u64, prop::bool::weighted(0.7), prop::bool::weighted(0.2)),
    )
        .prop_map(|((order, (account, device), lines, hold), (priced, route, record, queued))| {
            Step::Place(PlaceStep { order, account, device, lines, hold, priced, route, record, queued })
        })
}

fn a_notice() -> impl Strategy<Value = Step> {
    let amount = prop_oneof![6 => Just(Some(PRICE)), 1 => Just(Some(1)), 1 => Just(None)];
    let paid = prop_oneof![
        6 => Just(Paid::Unsaid), 2 => Just(Paid::Now), 2 => Just(Paid::JustBeforeEnd), 1 => Just(Paid::AtEnd),
        1 => Just(Paid::InSkew), 1 => Just(Paid::Future), 1 => Just(Paid::BeforeOrder),
    ];
    let provider = prop_oneof![5 => Just(0_usize), 1 => Just(1)];
    (
        (orders(), provider, 0..20_u32, 0..5_u32),
        (weighted(0.3, 0..3_u32), prop::bool::weighted(0.7), amount, paid),
    )
        .prop_map(|((order, provider, event, payment), (attempt, succeeded, amount, paid))| {
            let notice = NoticeStep { provider, event, payment, attempt, succeeded, amount, paid_at: None };
            Step::Notice(order, notice, paid)
        })
}

/// What moves stock, and what changes the buckets.
fn a_move() -> impl Strategy<Value = Step> {
    let end = || (prop_oneof![30 => 0..NOWHERE, 1 => Just(NOWHERE)], weighted(0.6, 0..4_u32));
    let weights = vec(prop_oneof![1 => Just(0_u32), 3 => 1..5_u32], 1..5);
    prop_oneof![
        4 => (0..8_u32, end(), end(), 1..5_u64).prop_map(|(id, from, to, by)| Step::Transfer(id, from, to, by)),
        2 => (0..=NOWHERE, weighted(0.3, 0..4_u32)).prop_map(|(pool, into)| Step::Sweep(pool, into)),
        2 => (0..=NOWHERE, weighted(0.6, 1..5_u32), weighted(0.6, weights))
            .prop_map(|(pool, buckets, weights)| Step::ChangePool(pool, buckets, weights)),
    ]
}

fn an_accepted() -> impl Strategy<Value = Accepted> {
    let epoch = prop_oneof![5 => Just(1_u64), 2 => Just(2), 1 => Just(3)];
    let bucket = prop_oneof![4 => Just(0_u32), 1 => 1..4_u32];
    (bucket, epoch, 1..12_u64, 1..5_u64).prop_map(|(bucket, epoch, entry, units)| Accepted {
        bucket,
        epoch,
        entry,
        units,
    })
}

/// What a cache accepted, and turns of its epochs.
fn a_landing() -> impl Strategy<Value = Step> {
    let due =
        prop_oneof![8 => Just(i64::MAX), 1 => Just(START.0 + 30_000_000), 1 => Just(START.0 + 600_000_000)];
    let turn = prop_oneof![
        3 => (1..3_u8).prop_map(TurnStep::Open), 1 => Just(TurnStep::Drain), 1 => Just(TurnStep::Close),
    ];
    prop_oneof![
        6 => (a_place(), an_accepted(), due).prop_map(|(place, at, due)| {
            let Step::Place(place) = place else { unreachable!("a place") };
            Step::LandAccepted(place, at, due)
        }),
        1 => an_accepted().prop_map(Step::SetAside),
        3 => (an_accepted(), turn).prop_map(|(at, turn)| Step::Turn(at.bucket, at.epoch, turn)),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let keeps = vec((prop_oneof![20 => 1..4_u32, 1 => 4..6_u32], 0..4_u32), 1..3);
    let refunds = vec((prop_oneof![20 => 1..3_u32, 1 => 3..6_u32], 1..3_u32), 1..3);
    let extra = prop_oneof![Just(-1_i64), Just(0), Just(60), Just(600), Just(5_000)];
    let delta = prop_oneof![3 => 1..4_i64, 2 => -3..0_i64];
    let wait =
        prop_oneof![Just(1_i64), Just(1_000_000), Just(30_000_000), Just(400_000_000), Just(900_000_000)];
    prop_oneof![
        9 => a_place(),
        4 => orders().prop_map(Step::PlaceAgain),
        5 => Just(Step::Again),
        18 => a_notice(),
        5 => orders().prop_map(Step::Land),
        4 => orders().prop_map(Step::Cancel),
        4 => (orders(), keeps).prop_map(|(o, keeps)| Step::Reduce(o, keeps)),
        5 => (orders(), 0..3_u32, 0..2_usize).prop_map(|(o, a, p)| Step::Attempt(o, a, p)),
        7 => (orders(), 0..8_u32, refunds, weighted(0.6, any::<bool>()))
            .prop_map(|(o, id, lines, restock)| Step::Refund(o, id, lines, restock)),
        4 => orders().prop_map(Step::Confirm),
        2 => orders().prop_map(Step::Release),
        3 => (orders(), extra).prop_map(|(o, by)| Step::Extend(o, by)),
        3 => (orders(), vec(0..5_u32, 0..3)).prop_map(|(o, ids)| Step::MarkRefunded(o, ids)),
        9 => orders().prop_map(Step::Expire),
        4 => (0..8_u32, 0..=NOWHERE, delta).prop_map(|(id, pool, by)| Step::Adjust(id, pool, by)),
        7 => a_move(),
        10 => a_landing(),
        5 => wait.prop_map(Step::Wait),
        7 => (orders(), any::<bool>(), prop_oneof![Just(-1_i64), Just(0), Just(1)])
            .prop_map(|(o, grace, by)| Step::WaitFor(o, grace, by)),
        1 => prop::bool::weighted(0.3).prop_map(Step::Pause),
        1 => prop::bool::weighted(0.3).prop_map(Step::Freeze),
        2 => (0..NOWHERE, prop::bool::weighted(0.4)).prop_map(|(p, on)| Step::FreezePool(p, on)),
        1 => (0..NOWHERE, prop::bool::weighted(0.2))
            .prop_map(|(p, yes)| if yes { Step::RetirePool(p) } else { Step::FreezePool(p, false) }),
        1 => prop::bool::weighted(0.1).prop_map(|yes| if yes { Step::Close } else { Step::Pause(false) }),
    ]
}

pub(crate) fn a_policy() -> impl Strategy<Value = Policy> {
    let one_of = |all: &'static [LatePayment]| prop::sample::select(all);
    (
        (one_of(LatePayment::ALL), prop::sample::select(PaymentFailed::ALL)),
        (prop::sample::select(DeadlineBasis::ALL), prop::sample::select(ReviewEnd::ALL)),
        (prop::bool::weighted(0.15), any::<bool>(), any::<bool>()),
        (weighted(0.4, 3..9_u64), weighted(0.3, 1..3_u64)),
        (weighted(0.3, 3..9_u64), weighted(0.3, 1..3_u64)),
        (
            prop_oneof![3 => Just(30_000_u32), 1 => Just(900_000)],
            prop_oneof![1 => 1..3_u64, 3 => Just(100_000)],
        ),
    )
        .prop_map(
            |((late_payment, payment_failed), (deadline_basis, review_end), flags, limits, device, queue)| {
                let (immediate, restock_on_refund, extends) = flags;
                Policy {
                    late_payment,
                    payment_failed,
                    deadline_basis,
                    review_end,
                    capture: if immediate { Capture::Immediate } else { Capture::Hold },
                    restock_on_refund,
                    payment_extension_seconds: if extends { 300 } else { 0 },
                    account_limit: limits.0,
                    account_open_holds: limits.1,
                    queue_wait_ms: queue.0,
                    queue_limit: queue.1,
                    key_limits: key_limits(device),
                    ..Policy::default()
                }
            },
        )
}

fn key_limits((units, open_holds): (Option<u64>, Option<u64>)) -> BTreeMap<LimitName, Limits> {
    let limits = Limits { units, open_holds };
    limits.any().then(|| (device_name(), limits)).into_iter().collect()
}

fn device_name() -> LimitName {
    LimitName::new("device").unwrap()
}

pub(crate) fn device_key(device: usize) -> HashedKey {
    HashedKey(device as u128)
}

fn pool_name(pool: usize) -> &'static str {
    POOLS.get(pool).copied().unwrap_or("Z")
}

/// The command of a step; none for steps that are none. `until` is when an extension ends.
pub(crate) fn command(step: &Step, until: i64) -> Option<Command> {
    Some(match step {
        Step::Place(step) => {
            let intake = step.queued.then(|| bucket("A", 0));
            Command::Place(Arc::new(Sent { intake, ..sent(step) }))
        }
        Step::LandAccepted(step, at, due) => Command::Land(Arc::new(cache::Landing {
            place: sent(step),
            accepted: accepted(at),
            due_at: Timestamp(*due),
        })),
        Step::SetAside(at) => {
            Command::SetAside(cache::SetAside { accepted: accepted(at), why: "a test".into() })
        }
        Step::Turn(number, epoch, turn) => turned(*number, *epoch, *turn),
        Step::Land(order) => on_order(*order, OrderAction::Land),
        Step::Cancel(order) => on_order(*order, OrderAction::Cancel),
        Step::Reduce(order, keeps) => on_order(*order, reduce(keeps)),
        Step::Attempt(order, id, by) => {
            let id = AttemptId::new(&format!("a{id}")).unwrap();
            on_order(*order, OrderAction::Attempt(id, provider(PROVIDERS[*by])))
        }
        Step::Notice(order, notice, _) => on_order(*order, OrderAction::Notice(notice_of(notice))),
        Step::Refund(order, id, lines, restock) => {
            on_order(*order, refund(&format!("r{id}"), lines, *restock))
        }
        Step::Confirm(order) => on_order(*order, OrderAction::Confirm),
        Step::Release(order) => on_order(*order, OrderAction::Release),
        Step::Extend(order, _) => on_order(*order, OrderAction::Extend(Timestamp(until))),
        Step::MarkRefunded(order, ids) => {
            let ids = ids.iter().map(|id| payment_id(&format!("p{id}"))).collect();
            on_order(*order, OrderAction::MarkRefunded(ids))
        }
        Step::Expire(order) => on_order(*order, OrderAction::Expire(Inquiry::Done)),
        Step::Adjust(id, pool, delta) => adjust(&format!("j{id}"), pool_name(*pool), *delta, None),
        Step::Transfer(id, from, to, quantity) => {
            let end = |(pool, bucket): &Place| end(pool_name(*pool), *bucket);
            transfer(&format!("t{id}"), end(from), end(to), *quantity)
        }
        Step::Sweep(pool, into) => sweep(7, pool_name(*pool), *into),
        Step::ChangePool(pool, buckets, weights) => Command::ChangePool(ChangePool {
            buckets: *buckets,
            weights: weights.clone(),
            ..no_change(pool_name(*pool))
        }),
        Step::PlaceAgain(_)
        | Step::Again
        | Step::Wait(_)
        | Step::WaitFor(..)
        | Step::Pause(_)
        | Step::Freeze(_)
        | Step::FreezePool(..)
        | Step::RetirePool(_)
        | Step::Close => return None,
    })
}

fn turned(number: u32, epoch: u64, turn: TurnStep) -> Command {
    Command::TurnEpoch(cache::TurnEpoch {
        bucket: bucket("A", number),
        epoch: cache::Epoch(epoch),
        turn: match turn {
            TurnStep::Open(server) => cache::Turn::Open { identity: server.to_string().into() },
            TurnStep::Drain => cache::Turn::Drain,
            TurnStep::Close => cache::Turn::Close,
        },
        signed: signed(),
    })
}

fn sent(step: &PlaceStep) -> Sent {
    Sent {
        lines: step.lines.iter().map(|(kind, quantity)| Ware::line(*kind, *quantity)).collect(),
        account: account(ACCOUNTS[step.account]),
        limit_keys: step.device.map(|device| (device_name(), device_key(device))).into_iter().collect(),
        hold_seconds: step.hold,
        amount_due: step.priced.then(|| price(PRICE)),
        route: step.route,
        record_refusals: step.record,
        ..place(step.order, &[])
    }
}

fn accepted(at: &Accepted) -> cache::Accepted {
    cache::Accepted {
        bucket: bucket("A", at.bucket),
        epoch: cache::Epoch(at.epoch),
        entry: cache::EntryId { millis: 1, number: at.entry },
        number: at.entry,
        units: at.units,
    }
}

fn notice_of(step: &NoticeStep) -> Notice {
    Notice {
        provider: provider(PROVIDERS[step.provider]),
        event_id: EventId::new(&format!("e{}", step.event)).unwrap(),
        payment_id: payment_id(&format!("p{}", step.payment)),
        attempt_id: step.attempt.map(|id| AttemptId::new(&format!("a{id}")).unwrap()),
        outcome: if step.succeeded { PaymentOutcome::Succeeded } else { PaymentOutcome::Failed },
        paid_at: step.paid_at.map(Timestamp),
        amount_minor: step.amount,
        currency: step.amount.map(|_| "CNY".into()),
    }
}

pub(crate) fn account_index(name: &str) -> usize {
    ACCOUNTS.iter().position(|known| *known == name).unwrap()
}
