//! Short ways to write ids and commands.

use std::sync::Arc;

use holdfast_core::assortment::{MakeUp, Part, Source};
use holdfast_core::command::{
    Adjust, AdjustmentKind, ChangePool, Command, Keep, OrderAction, OrderCommand, Place, PlaceLine, Signed,
    Sweep, Transfer, TransferEnd,
};
use holdfast_core::id::*;
use holdfast_core::limit::LimitKeys;
use holdfast_core::order::{Money, Notice, PaymentOutcome, Refund, RefundLine};
use holdfast_core::stock::BucketKey;

/// What every order costs, unless a test says otherwise.
pub(crate) const PRICE: i64 = 9_900;

pub(crate) fn campaign_id() -> CampaignId {
    CampaignId::new("sale").unwrap()
}

pub(crate) fn sku(name: &str) -> Sku {
    Sku::new(name).unwrap()
}

pub(crate) fn location() -> Location {
    Location::new("main").unwrap()
}

/// Pools are named by one letter; the letter is the id.
pub(crate) fn pool_id(name: &str) -> PoolId {
    PoolId(u128::from(name.as_bytes()[0]))
}

pub(crate) fn bucket(name: &str, number: u32) -> BucketKey {
    BucketKey { pool: pool_id(name), number }
}

pub(crate) fn order_id(number: u32) -> OrderId {
    OrderId(u128::from(number))
}

pub(crate) fn order_key(number: u32) -> OrderKey {
    OrderKey { campaign: campaign_id(), order_no: OrderNo::new(&format!("order-{number}")).unwrap() }
}

pub(crate) fn account(name: &str) -> Account {
    Account::new(name).unwrap()
}

pub(crate) fn provider(name: &str) -> Provider {
    Provider::new(name).unwrap()
}

pub(crate) fn payment_id(name: &str) -> PaymentId {
    PaymentId::new(name).unwrap()
}

pub(crate) fn signed() -> Signed {
    Signed::new("tester", "a test")
}

pub(crate) fn price(amount_minor: i64) -> Money {
    Money { amount_minor, currency: "CNY".into() }
}

/// An order of some quantities of some SKUs, by one account, for the usual price.
pub(crate) fn place(number: u32, lines: &[(&str, u32)]) -> Place {
    Place {
        id: order_id(number),
        key: order_key(number),
        account: account("ann"),
        lines: lines
            .iter()
            .map(|(name, quantity)| PlaceLine {
                sku: sku(name),
                location: Some(location()),
                pool: pool_id(name),
                made_of: None,
                quantity: *quantity,
            })
            .collect(),
        hold_seconds: None,
        amount_due: Some(price(PRICE)),
        limit_keys: LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: None,
    }
}

/// A part of a line: so many units of a SKU each, from these pools at these locations.
pub(crate) fn part(name: &str, per_unit: u32, sources: &[(&str, &str)]) -> Part {
    let source =
        |(pool, at): &(&str, &str)| Source { pool: pool_id(pool), location: Location::new(at).unwrap() };
    Part { sku: sku(name), per_unit, sources: sources.iter().map(source).collect() }
}

/// A line that is made up.
pub(crate) fn made_up(name: &str, quantity: u32, parts: &[Part], split: bool) -> PlaceLine {
    let made_of = MakeUp { parts: parts.to_vec(), split };
    let pool = made_of.pools().next().unwrap();
    PlaceLine { sku: sku(name), location: None, pool, made_of: Some(Arc::new(made_of)), quantity }
}

/// An order of such lines.
pub(crate) fn placed_lines(number: u32, lines: Vec<PlaceLine>) -> Command {
    Command::Place(Arc::new(Place { lines, ..place(number, &[]) }))
}

pub(crate) fn placed(number: u32, lines: &[(&str, u32)]) -> Command {
    Command::Place(Arc::new(place(number, lines)))
}

pub(crate) fn on_order(number: u32, action: OrderAction) -> Command {
    Command::Order(OrderCommand::new(order_id(number), action, signed()))
}

/// A success of the usual price, by the usual provider.
pub(crate) fn success(event: &str, payment: &str) -> Notice {
    Notice {
        provider: provider("alipay"),
        event_id: EventId::new(event).unwrap(),
        payment_id: payment_id(payment),
        attempt_id: None,
        outcome: PaymentOutcome::Succeeded,
        paid_at: None,
        amount_minor: Some(PRICE),
        currency: Some("CNY".into()),
    }
}

pub(crate) fn failure(event: &str, payment: &str) -> Notice {
    Notice { outcome: PaymentOutcome::Failed, ..success(event, payment) }
}

pub(crate) fn paid(number: u32, event: &str, payment: &str) -> Command {
    on_order(number, OrderAction::Notice(success(event, payment)))
}

pub(crate) fn attempt(id: &str) -> OrderAction {
    OrderAction::Attempt(AttemptId::new(id).unwrap(), provider("alipay"))
}

pub(crate) fn reduce(keeps: &[(u32, u32)]) -> OrderAction {
    OrderAction::Reduce(keeps.iter().map(|(line, keep)| Keep { line: *line, keep: *keep }).collect())
}

pub(crate) fn refund(id: &str, lines: &[(u32, u32)], restock: Option<bool>) -> OrderAction {
    OrderAction::Refund(Refund {
        refund_id: RefundId::new(id).unwrap(),
        lines: lines.iter().map(|(line, quantity)| RefundLine { line: *line, quantity: *quantity }).collect(),
        restock,
        reason: "a test".into(),
    })
}

pub(crate) fn adjust(id: &str, name: &str, delta: i64, bucket: Option<u32>) -> Command {
    Command::Adjust(Adjust {
        adjustment_id: AdjustmentId::new(id).unwrap(),
        pool: pool_id(name),
        delta,
        kind: if delta > 0 { AdjustmentKind::Inbound } else { AdjustmentKind::Adjust },
        bucket,
        signed: signed(),
    })
}

pub(crate) fn end(name: &str, bucket: Option<u32>) -> TransferEnd {
    TransferEnd { pool: pool_id(name), bucket }
}

pub(crate) fn transfer(id: &str, from: TransferEnd, to: TransferEnd, quantity: u64) -> Command {
    let transfer_id = TransferId::new(id).unwrap();
    Command::Transfer(Transfer { transfer_id, from, to, quantity, signed: signed() })
}

pub(crate) fn sweep(id: u128, name: &str, bucket: Option<u32>) -> Command {
    Command::Sweep(Sweep { id: SweepId(id), pool: pool_id(name), bucket, signed: signed() })
}

/// A change of a pool that changes nothing yet.
pub(crate) fn no_change(name: &str) -> ChangePool {
    ChangePool {
        pool: pool_id(name),
        path: None,
        routing: None,
        weights: None,
        buckets: None,
        max_concurrency: None,
        cache_fallback: None,
        signed: signed(),
    }
}
