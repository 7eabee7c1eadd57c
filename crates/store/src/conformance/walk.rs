//! A long random walk on the store and on the model: every answer and, at the end, every row agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::cache::{SetAside, Turn};
use holdfast_core::campaign::{LatePayment, PaymentFailed, Policy, Switch};
use holdfast_core::command::{
    Adjust, AdjustmentKind, ChangePool, Command, Inquiry, Keep, OrderAction, Outcome, PlaceLine,
};
use holdfast_core::id::{
    AdjustmentId, AttemptId, EventId, HashedKey, LimitName, OrderId, PaymentId, PoolId, Provider, RefundId,
};
use holdfast_core::order::{Notice, PaymentOutcome, Refund, RefundLine};

use super::START;
use super::behaviour::{Subject, TestClock};
use super::caches::{accepted, landing, open, turn};
use super::limits::device_limit;
use super::places::{made_up, part};
use super::pools::{no_change, sweep, transfer};
use super::rows::{assert_same, assert_same_campaign, cases};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, commit, open_campaign, open_pool, place, placed,
    put, signed, switch, whole,
};
use crate::contract::Store;
use crate::model::ModelStore;
use crate::read::Page;

/// Commands of a walk, unless `HOLDFAST_WALK_COMMANDS` says otherwise.
const COMMANDS: usize = 10_000;
/// Steps after which the walk goes on with fresh orders and accounts, and with full shelves.
const EPOCH: u32 = 300;
/// Numbers of the orders of an epoch.
const NUMBERS: u64 = 40;

fn commands_wanted() -> usize {
    let wanted = std::env::var("HOLDFAST_WALK_COMMANDS").ok();
    wanted.map_or(COMMANDS, |text| text.parse().expect("HOLDFAST_WALK_COMMANDS is a number"))
}

/// A small generator: the walk is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn policies() -> [Policy; 5] {
    let limited = Policy {
        account_limit: Some(12),
        account_open_holds: Some(4),
        queue_limit: 3,
        queue_wait_ms: 20_000,
        ..Policy::default()
    };
    let strict = Policy {
        late_payment: LatePayment::Refund,
        payment_failed: PaymentFailed::Release,
        restock_on_refund: true,
        payment_extension_seconds: 30,
        ..limited.clone()
    };
    let devices = Policy { account_limit: Some(9), ..device_limit(Some(10), Some(3)) };
    [Policy::default(), limited, strict, devices, device_limit(Some(6), None)]
}

/// Where the walk is: its keys are those of its epoch, its orders have the ids of their first places.
#[derive(Default)]
struct Whereabouts {
    epoch: u32,
    ids: BTreeMap<u128, OrderId>,
    next_id: u128,
}

impl Whereabouts {
    fn number(&self, dice: &mut Dice) -> u128 {
        u128::from(self.epoch) * u128::from(NUMBERS) + u128::from(dice.roll(NUMBERS))
    }

    /// Learns the ids of the orders that were made.
    fn learn(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            if let Some(order) = outcome.order() {
                let number = order.key.order_no.as_str().trim_start_matches("no-");
                self.ids.insert(number.parse().expect("a number"), order.id);
            }
        }
    }
}

fn command(dice: &mut Dice, at: &mut Whereabouts) -> Command {
    let order = at.number(dice);
    let epoch = at.epoch;
    let text = |prefix: &str, number: u64| format!("{prefix}{epoch}-{number}");
    let provider = || Provider::new("bank").expect("a good id");
    let action = match dice.roll(17) {
        0..=3 => {
            let lines: Vec<(u128, u32)> = (0..1 + dice.roll(3))
                .map(|_| (1 + u128::from(dice.roll(2)), 1 + dice.roll(4) as u32))
                .collect();
            // The same number with other lines: a mismatch, most of the time.
            let account = format!("{}{epoch}", ["ann", "bob", "eve"][dice.roll(3) as usize]);
            let mut wanted = place(order, &account, &lines);
            if dice.roll(3) == 0 {
                wanted.lines.push(made_up_line(dice));
            }
            at.next_id += 1;
            wanted.id = OrderId(at.next_id);
            wanted.route = dice.roll(7);
            wanted.intake = (dice.roll(3) == 0).then(|| bucket(1, dice.roll(3) as u32));
            if dice.roll(3) > 0 {
                let device = HashedKey(u128::from(epoch) * 2 + u128::from(dice.roll(2)));
                wanted.limit_keys.insert(LimitName::new("device").expect("a good id"), device);
            }
            wanted.hold_seconds = [None, Some(5), Some(60)][dice.roll(3) as usize];
            return placed(wanted);
        }
        4 => OrderAction::Cancel,
        5 => OrderAction::Reduce(vec![Keep { line: 1 + dice.roll(3) as u32, keep: dice.roll(3) as u32 }]),
        6 => OrderAction::Attempt(AttemptId::new(&text("a", dice.roll(3))).expect("a good id"), provider()),
        7 | 8 => OrderAction::Notice(Notice {
            provider: provider(),
            event_id: EventId::new(&text("e", dice.roll(60))).expect("a good id"),
            payment_id: PaymentId::new(&text("p", dice.roll(30))).expect("a good id"),
            attempt_id: None,
            outcome: PaymentOutcome::ALL[dice.roll(2) as usize],
            paid_at: None,
            amount_minor: None,
            currency: None,
        }),
        9 => OrderAction::Refund(Refund {
            refund_id: RefundId::new(&text("r", dice.roll(4))).expect("a good id"),
            lines: vec![RefundLine { line: 1 + dice.roll(3) as u32, quantity: 1 + dice.roll(2) as u32 }],
            restock: [None, Some(true), Some(false)][dice.roll(3) as usize],
            reason: "walk".into(),
        }),
        10 => OrderAction::Expire(Inquiry::Done),
        11 | 12 => OrderAction::Land,
        13 => return move_or_change(dice, epoch),
        14 | 15 => return cached(dice, at),
        _ => {
            return Command::Adjust(Adjust {
                adjustment_id: AdjustmentId::new(&text("adj", dice.roll(30))).expect("a good id"),
                pool: PoolId(1 + u128::from(dice.roll(2))),
                delta: 3 - 2 * dice.roll(4) as i64,
                kind: AdjustmentKind::Adjust,
                bucket: None,
                signed: signed(),
            });
        }
    };
    let unknown = OrderId(u128::MAX);
    change(at.ids.get(&order).unwrap_or(&unknown).0, action)
}

/// A bundle, or a line that has a choice of places.
fn made_up_line(dice: &mut Dice) -> PlaceLine {
    let quantity = 1 + dice.roll(3) as u32;
    let split = dice.roll(2) == 0;
    match dice.roll(3) {
        0 => made_up(quantity, &[part(2, &[1]), part(1, &[2])], split),
        1 => made_up(quantity, &[part(1, &[1, 2])], split),
        _ => made_up(quantity, &[part(1, &[2, 1])], split),
    }
}

/// What a cache accepted, or a turn of its epoch: what came before comes again, also of epochs that are over.
fn cached(dice: &mut Dice, at: &mut Whereabouts) -> Command {
    let home = bucket(1, dice.roll(3) as u32);
    // Epochs are told by the walk's, so that turns fit now and then.
    let cache_epoch = 1 + dice.roll(3) + u64::from(at.epoch) / 4;
    if dice.roll(3) == 0 {
        let turns = [open(), open(), Turn::Drain, Turn::Close];
        return turn(home, cache_epoch, turns[dice.roll(4) as usize].clone());
    }
    let accepted = accepted(home, cache_epoch, 1 + dice.roll(60), 1 + dice.roll(4));
    if dice.roll(8) == 0 {
        return Command::SetAside(SetAside { accepted, why: "walk".into() });
    }
    let order = at.number(dice);
    let account = format!("{}{}", ["ann", "bob", "eve"][dice.roll(3) as usize], at.epoch);
    let mut wanted = place(order, &account, &[(1, 1 + dice.roll(4) as u32)]);
    at.next_id += 1;
    wanted.id = OrderId(at.next_id);
    let seconds = [0, 5_000, 10_000_000][dice.roll(3) as usize];
    landing(wanted, accepted, START.plus_seconds(seconds))
}

/// Stock that moves, and pools that change.
fn move_or_change(dice: &mut Dice, epoch: u32) -> Command {
    let pool = |dice: &mut Dice| 1 + u128::from(dice.roll(2));
    let bucket = |dice: &mut Dice| [None, Some(0), Some(1)][dice.roll(3) as usize];
    match dice.roll(6) {
        0 => {
            let buckets = Some(1 + dice.roll(5) as u32);
            let weights = (dice.roll(2) == 0).then(|| vec![dice.roll(3) as u32; 3]);
            Command::ChangePool(ChangePool { buckets, weights, ..no_change(pool(dice)) })
        }
        1 => sweep(u128::from(epoch), pool(dice), bucket(dice)),
        _ => {
            let id = format!("t{epoch}-{}", dice.roll(60));
            let (from, to) = ((pool(dice), bucket(dice)), (pool(dice), bucket(dice)));
            transfer(&id, from, to, 1 + dice.roll(4))
        }
    }
}

/// Fills a shelf again, so that an epoch has something to sell.
async fn refill(store: &dyn Store, pool: u128, units: u64, epoch: u32) -> Command {
    let (available, _, _) = balances(store, pool).await;
    Command::Adjust(Adjust {
        adjustment_id: AdjustmentId::new(&format!("refill-{epoch}-{pool}")).expect("a good id"),
        pool: PoolId(pool),
        // Nothing is not an adjustment.
        delta: if units == available { 1 } else { units.cast_signed() - available.cast_signed() },
        kind: AdjustmentKind::Adjust,
        bucket: None,
        signed: signed(),
    })
}

/// Another policy or switch, the same for both.
async fn change_campaign(both: &[&dyn Store], dice: &mut Dice, step: u32) {
    if step.is_multiple_of(50) {
        let policy = &policies()[dice.roll(5) as usize];
        let switches = [Switch::Freeze, Switch::Unfreeze, Switch::Pause, Switch::Resume];
        let switched = switches[dice.roll(4) as usize];
        for store in both {
            put(*store, policy.clone()).await;
            switch(*store, switched).await;
        }
    } else if step % 50 == 10 {
        for store in both {
            switch(*store, Switch::Unfreeze).await;
            switch(*store, Switch::Resume).await;
        }
    }
}

/// The store under test does what the model does.
pub async fn a_random_walk_agrees_with_the_model(store: Subject, clock: TestClock) {
    let model: Arc<dyn Store> = Arc::new(ModelStore::new(clock.clone()));
    let both = [&*store, &*model];
    for store in both {
        open_campaign(store, Policy::default()).await;
        open_pool(store, 1, 40, 3).await;
        open_pool(store, 2, 20, 1).await;
    }
    let mut dice = Dice(42);
    let mut at = Whereabouts::default();
    let (mut sent, mut step) = (0, 0);
    while sent < commands_wanted() {
        step += 1;
        clock.advance_millis(dice.roll(2_000) as u32);
        change_campaign(&both, &mut dice, step).await;
        let mut commands: Vec<Command> =
            (0..1 + dice.roll(12)).map(|_| command(&mut dice, &mut at)).collect();
        if step.is_multiple_of(EPOCH) {
            at = Whereabouts { epoch: at.epoch + 1, next_id: at.next_id, ids: BTreeMap::new() };
            commands = vec![refill(&*model, 1, 40, at.epoch).await, refill(&*model, 2, 20, at.epoch).await];
        }
        let actual = commit(&*store, whole(&[1, 2]), commands.clone()).await;
        let expected = commit(&*model, whole(&[1, 2]), commands.clone()).await;
        assert_eq!(actual, expected, "step {step}: {commands:#?}");
        at.learn(&expected);
        sent += commands.len();
    }
    assert_same_campaign(&*store, &*model, &campaign_id()).await;
    assert_same(&cases(&*store).await, &cases(&*model).await);
    let all = || Page { after: None, limit: 100 };
    let (caches, expected) = (store.cache_buckets(all()).await, model.cache_buckets(all()).await);
    assert_eq!(caches.expect("read"), expected.expect("read"));
    assert_clean(&*store).await;
    assert_clean(&*model).await;
}
