//! The parts of an order that live as JSON inside its row. Defaults are left out: rows are written often.

use std::sync::Arc;

use holdfast_core::assortment::{MakeUp, Part, Source};
use holdfast_core::id::{
    AttemptId, EventId, InvalidId, Location, PaymentId, PoolId, Provider, RefundId, Sku,
};
use holdfast_core::order::{
    Allocation, Attempt, Disposition, Line, Notice, Order, Payment, PaymentOutcome, Refund, RefundDue,
    RefundLine, RefundMade, Shortage,
};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::corrupt;
use crate::error::Error;

#[derive(Serialize, Deserialize)]
struct LineJson {
    sku: String,
    /// None: the client named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    pool: String,
    /// Of a line that is made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartJson>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    split: bool,
    quantity: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    refunded: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allocations: Vec<AllocationJson>,
}

#[derive(Serialize, Deserialize)]
struct PartJson {
    sku: String,
    each: u32,
    /// (pool, location)
    from: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct AllocationJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    bucket: u32,
    quantity: u64,
    #[serde(default, skip_serializing_if = "is_none_restocked")]
    restocked: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_none_restocked(count: &u64) -> bool {
    *count == 0
}

fn hex(pool: PoolId) -> String {
    format!("{:032x}", pool.0)
}

fn unhex(text: &str) -> Result<PoolId, Error> {
    u128::from_str_radix(text, 16).map(PoolId).map_err(|_| corrupt(format_args!("not a pool id: {text:?}")))
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Data(error.to_string()))
}

pub(crate) fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| corrupt(format_args!("JSON in an order row: {error}")))
}

pub(crate) fn id<T>(text: &str, new: fn(&str) -> Result<T, InvalidId>) -> Result<T, Error> {
    new(text).map_err(|error| corrupt(format_args!("{text:?} {error}")))
}

/// An order's lines as stored.
pub fn write_lines(lines: &[Line]) -> Result<String, Error> {
    let rows: Vec<LineJson> = lines
        .iter()
        .map(|line| LineJson {
            sku: line.sku.as_str().to_owned(),
            location: line.location.as_ref().map(|location| location.as_str().to_owned()),
            pool: hex(line.pool),
            parts: line.made_of.as_ref().map(|made_of| made_of.parts.iter().map(write_part).collect()),
            split: line.made_of.as_ref().is_some_and(|made_of| made_of.split),
            quantity: line.quantity,
            placed: (line.placed_quantity != line.quantity).then_some(line.placed_quantity),
            refunded: line.refunded,
            allocations: line
                .allocations
                .iter()
                .map(|a| AllocationJson {
                    pool: (a.bucket.pool != line.pool).then(|| hex(a.bucket.pool)),
                    bucket: a.bucket.number,
                    quantity: a.quantity,
                    restocked: a.restocked,
                })
                .collect(),
        })
        .collect();
    json(&rows)
}

fn write_part(part: &Part) -> PartJson {
    let source = |source: &Source| (hex(source.pool), source.location.to_string());
    let from = part.sources.iter().map(source).collect();
    PartJson { sku: part.sku.to_string(), each: part.per_unit, from }
}

fn read_make_up(parts: &[PartJson], split: bool) -> Result<Arc<MakeUp>, Error> {
    let parts = parts.iter().map(read_part).collect::<Result<_, Error>>()?;
    Ok(Arc::new(MakeUp { parts, split }))
}

fn read_part(row: &PartJson) -> Result<Part, Error> {
    let source = |(pool, location): &(String, String)| {
        Ok(Source { pool: unhex(pool)?, location: id(location, Location::new)? })
    };
    Ok(Part {
        sku: id(&row.sku, Sku::new)?,
        per_unit: row.each,
        sources: row.from.iter().map(source).collect::<Result<_, Error>>()?,
    })
}

/// An order's lines as read.
pub(super) fn read_lines(text: &str) -> Result<Vec<Line>, Error> {
    let rows: Vec<LineJson> = parse(text)?;
    rows.into_iter()
        .map(|row| {
            let pool = unhex(&row.pool)?;
            let allocation = |a: AllocationJson| {
                let pool = a.pool.as_deref().map(unhex).transpose()?.unwrap_or(pool);
                let bucket = BucketKey { pool, number: a.bucket };
                Ok(Allocation { bucket, quantity: a.quantity, restocked: a.restocked })
            };
            Ok(Line {
                sku: id(&row.sku, Sku::new)?,
                location: row.location.as_deref().map(|location| id(location, Location::new)).transpose()?,
                pool,
                made_of: row.parts.map(|parts| read_make_up(&parts, row.split)).transpose()?,
                placed_quantity: row.placed.unwrap_or(row.quantity),
                quantity: row.quantity,
                refunded: row.refunded,
                allocations: row.allocations.into_iter().map(allocation).collect::<Result<_, Error>>()?,
            })
        })
        .collect()
}

/// What an order has beyond its columns and lines.
#[derive(Default)]
pub(super) struct Detail {
    pub(super) attempts: Vec<Attempt>,
    pub(super) payments: Vec<Payment>,
    pub(super) refunds: Vec<RefundMade>,
    pub(super) refund_due: Option<RefundDue>,
    pub(super) shortage: Option<Shortage>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct DetailJson {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payments: Vec<PaymentJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refunds: Vec<RefundJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_due: Option<RefundDueJson>,
    /// (line, requested, available)
    #[serde(skip_serializing_if = "Option::is_none")]
    shortage: Option<(u32, u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct AttemptJson {
    id: String,
    provider: String,
    at: i64,
    open: bool,
}

#[derive(Serialize, Deserialize)]
struct PaymentJson {
    provider: String,
    event: String,
    payment: String,
    attempt: Option<String>,
    outcome: String,
    paid_at: Option<i64>,
    amount_minor: Option<i64>,
    currency: Option<String>,
    received_at: i64,
    version: u32,
    disposition: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    elsewhere: bool,
}

#[derive(Serialize, Deserialize)]
struct RefundJson {
    id: String,
    /// (line, quantity)
    lines: Vec<(u32, u32)>,
    restock: Option<bool>,
    /// What that meant.
    restocked: bool,
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct RefundDueJson {
    since: i64,
    /// (provider, payment)
    payments: Vec<(String, String)>,
}

/// What an order has beyond its columns and lines, as stored; nothing for an ordinary order.
pub fn write_detail(order: &Order) -> Result<Option<String>, Error> {
    let plain = order.attempts.is_empty()
        && order.payments.is_empty()
        && order.refunds.is_empty()
        && order.refund_due.is_none()
        && order.shortage.is_none();
    if plain {
        return Ok(None);
    }
    let detail = DetailJson {
        attempts: order
            .attempts
            .iter()
            .map(|a| AttemptJson {
                id: a.attempt_id.to_string(),
                provider: a.provider.to_string(),
                at: a.started_at.0,
                open: a.open,
            })
            .collect(),
        payments: order.payments.iter().map(write_payment).collect(),
        refunds: order
            .refunds
            .iter()
            .map(|made| RefundJson {
                id: made.asked.refund_id.to_string(),
                lines: made.asked.lines.iter().map(|l| (l.line, l.quantity)).collect(),
                restock: made.asked.restock,
                restocked: made.restocked,
                reason: made.asked.reason.to_string(),
            })
            .collect(),
        refund_due: order.refund_due.as_ref().map(|due| RefundDueJson {
            since: due.since.0,
            payments: due.payments.iter().map(|(p, id)| (p.to_string(), id.to_string())).collect(),
        }),
        shortage: order.shortage.map(|s| (s.line, s.requested, s.available)),
    };
    json(&detail).map(Some)
}

fn write_payment(payment: &Payment) -> PaymentJson {
    let notice = &payment.notice;
    PaymentJson {
        provider: notice.provider.to_string(),
        event: notice.event_id.to_string(),
        payment: notice.payment_id.to_string(),
        attempt: notice.attempt_id.as_ref().map(ToString::to_string),
        outcome: notice.outcome.as_str().to_owned(),
        paid_at: notice.paid_at.map(|at| at.0),
        amount_minor: notice.amount_minor,
        currency: notice.currency.as_deref().map(str::to_owned),
        received_at: payment.received_at.0,
        version: payment.order_version,
        disposition: payment.disposition.as_str().to_owned(),
        elsewhere: payment.elsewhere,
    }
}

fn read_payment(row: PaymentJson) -> Result<Payment, Error> {
    Ok(Payment {
        notice: Notice {
            provider: id(&row.provider, Provider::new)?,
            event_id: id(&row.event, EventId::new)?,
            payment_id: id(&row.payment, PaymentId::new)?,
            attempt_id: row.attempt.as_deref().map(|a| id(a, AttemptId::new)).transpose()?,
            outcome: PaymentOutcome::parse(&row.outcome).ok_or_else(|| corrupt("unknown payment outcome"))?,
            paid_at: row.paid_at.map(Timestamp),
            amount_minor: row.amount_minor,
            currency: row.currency.map(Arc::from),
        },
        received_at: Timestamp(row.received_at),
        order_version: row.version,
        disposition: Disposition::parse(&row.disposition).ok_or_else(|| corrupt("unknown disposition"))?,
        elsewhere: row.elsewhere,
    })
}

/// What an order has beyond its columns and lines, as read.
pub(super) fn read_detail(text: &str) -> Result<Detail, Error> {
    let row: DetailJson = parse(text)?;
    let attempt = |a: AttemptJson| {
        Ok(Attempt {
            attempt_id: id(&a.id, AttemptId::new)?,
            provider: id(&a.provider, Provider::new)?,
            started_at: Timestamp(a.at),
            open: a.open,
        })
    };
    let refund = |r: RefundJson| {
        let asked = Refund {
            refund_id: id(&r.id, RefundId::new)?,
            lines: r.lines.into_iter().map(|(line, quantity)| RefundLine { line, quantity }).collect(),
            restock: r.restock,
            reason: r.reason.into(),
        };
        Ok(RefundMade { asked, restocked: r.restocked })
    };
    let due = |due: RefundDueJson| {
        let payment = |(p, i): (String, String)| Ok((id(&p, Provider::new)?, id(&i, PaymentId::new)?));
        Ok::<_, Error>(RefundDue {
            since: Timestamp(due.since),
            payments: due.payments.into_iter().map(payment).collect::<Result<_, Error>>()?,
        })
    };
    Ok(Detail {
        attempts: row.attempts.into_iter().map(attempt).collect::<Result<_, Error>>()?,
        payments: row.payments.into_iter().map(read_payment).collect::<Result<_, Error>>()?,
        refunds: row.refunds.into_iter().map(refund).collect::<Result<_, Error>>()?,
        refund_due: row.refund_due.map(due).transpose()?,
        shortage: row.shortage.map(|(line, requested, available)| Shortage { line, requested, available }),
    })
}
