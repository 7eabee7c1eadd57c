//! What servers answer, read.

use holdfast_core::cache::{Accepted, EntryId, Epoch};
use holdfast_core::id::OrderId;
use holdfast_core::stock::BucketKey;
use holdfast_engine::{Answer, Position};
use redis::Value;

use crate::codec::KnownOrder;

/// A text, in whichever form the protocol gives it.
pub(crate) fn text(value: &Value) -> Option<&str> {
    if let Value::BulkString(bytes) = value {
        return std::str::from_utf8(bytes).ok();
    }
    if let Value::SimpleString(text) | Value::VerbatimString { text, .. } = value { Some(text) } else { None }
}

/// A number, or a text that is one.
pub(crate) fn number<N: TryFrom<i64> + std::str::FromStr>(value: &Value) -> Option<N> {
    if let Value::Int(number) = value { N::try_from(*number).ok() } else { text(value)?.parse().ok() }
}

pub(crate) fn items(value: &Value) -> Option<&[Value]> {
    if let Value::Array(items) = value { Some(items) } else { None }
}

/// Where an order was accepted, from what the cache keeps of it.
pub(crate) fn accepted(bucket: BucketKey, epoch: Epoch, known: &KnownOrder) -> (Accepted, OrderId) {
    let KnownOrder { entry, number, units, order, .. } = *known;
    (Accepted { bucket, epoch, entry, number, units }, order)
}

/// The answers to accepts of so many units each of a bucket in an epoch; none: they cannot be read.
pub(crate) fn answers(
    value: &Value,
    bucket: BucketKey,
    epoch: Epoch,
    units: impl Iterator<Item = u64>,
) -> Option<Vec<Answer>> {
    items(value)?.iter().zip(units).map(|(value, units)| answer(value, bucket, epoch, units)).collect()
}

fn answer(value: &Value, bucket: BucketKey, epoch: Epoch, units: u64) -> Option<Answer> {
    let (word, rest) = items(value)?.split_first()?;
    Some(match (text(word)?, rest) {
        ("accepted", [entry, count, backlog]) => Answer::Accepted {
            accepted: Accepted {
                bucket,
                epoch,
                entry: text(entry)?.parse().ok()?,
                number: number(count)?,
                units,
            },
            backlog: number(backlog)?,
        },
        ("known", [at, order, backlog]) => {
            let known = KnownOrder::read(text(order)?)?;
            let (accepted, order) = accepted(bucket, Epoch(number(at)?), &known);
            Answer::Known { accepted, order, backlog: number(backlog)? }
        }
        ("short", [available]) => Answer::Short { available: number(available)? },
        ("account_limit", []) => Answer::AccountLimit,
        ("queue_full", []) => Answer::QueueFull,
        ("not_ready", []) => Answer::NotReady,
        ("went_back", []) => Answer::WentBack,
        _ => return None,
    })
}

/// What a cache says of itself; none: it cannot be read.
pub(crate) fn position(value: &Value) -> Option<Position> {
    let [epoch, state, available, accepted, accepted_units, applied, last, settled, backlog, delivered] =
        items(value)?
    else {
        return None;
    };
    let last: EntryId = text(last)?.parse().ok()?;
    Some(Position {
        epoch: Epoch(number(epoch)?),
        is_open: text(state)? == "open",
        available: number(available)?,
        accepted: number(accepted)?,
        accepted_units: number(accepted_units)?,
        applied: number(applied)?,
        last: (last != EntryId::default()).then_some(last),
        settled: number(settled)?,
        backlog: number(backlog)?,
        delivered: number(delivered)?,
    })
}
