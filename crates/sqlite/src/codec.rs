//! Rows to rules and back. The JSON inside a row is this store's own; the public JSON is elsewhere.

use std::sync::Arc;

use holdfast_core::campaign::{
    Campaign, Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd, Switches,
};
use holdfast_core::id::{Account, CampaignId, Location, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::order::{Money, Order, Reason, State};
use holdfast_core::stock::{Bucket, BucketKey, Delta, Path, Pool};
use holdfast_core::time::Timestamp;
use holdfast_store::Error;
use rusqlite::Row;
use rusqlite::types::FromSql;

use crate::detail;
use crate::error::{Driver, corrupt};

/// Reads one column; an error says which.
pub(crate) fn get<T: FromSql>(row: &Row<'_>, column: &str) -> Result<T, Error> {
    row.get(column).map_err(|error| corrupt(format_args!("column {column}: {error}")))
}

fn text(row: &Row<'_>, column: &str) -> Result<String, Error> {
    get(row, column)
}

/// Reads a text that must be an identifier.
pub(crate) fn id<T>(
    row: &Row<'_>,
    column: &str,
    new: fn(&str) -> Result<T, holdfast_core::id::InvalidId>,
) -> Result<T, Error> {
    new(&text(row, column)?).map_err(|error| corrupt(format_args!("column {column} {error}")))
}

fn word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Error> {
    let text = text(row, column)?;
    parse(&text).ok_or_else(|| corrupt(format_args!("column {column}: unknown word {text:?}")))
}

fn optional_word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Error> {
    let text: Option<String> = get(row, column)?;
    text.map(|text| {
        parse(&text).ok_or_else(|| corrupt(format_args!("column {column}: unknown word {text:?}")))
    })
    .transpose()
}

fn number<T: TryFrom<i64>>(row: &Row<'_>, column: &str) -> Result<T, Error> {
    let value: i64 = get(row, column)?;
    T::try_from(value).map_err(|_| corrupt(format_args!("column {column}: {value} is out of range")))
}

fn optional_number<T: TryFrom<i64>>(row: &Row<'_>, column: &str) -> Result<Option<T>, Error> {
    let value: Option<i64> = get(row, column)?;
    value
        .map(|v| T::try_from(v).map_err(|_| corrupt(format_args!("column {column}: {v} is out of range"))))
        .transpose()
}

fn time(row: &Row<'_>, column: &str) -> Result<Timestamp, Error> {
    Ok(Timestamp(get(row, column)?))
}

fn optional_time(row: &Row<'_>, column: &str) -> Result<Option<Timestamp>, Error> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp))
}

/// Reads a 16-byte id.
pub(crate) fn number_id(row: &Row<'_>, column: &str) -> Result<u128, Error> {
    optional_number_id(row, column)?.ok_or_else(|| corrupt(format_args!("column {column} is null")))
}

pub(crate) fn optional_number_id(row: &Row<'_>, column: &str) -> Result<Option<u128>, Error> {
    let bytes: Option<Vec<u8>> = get(row, column)?;
    bytes
        .map(|bytes| {
            <[u8; 16]>::try_from(bytes.as_slice())
                .map(u128::from_be_bytes)
                .map_err(|_| corrupt(format_args!("column {column}: not 16 bytes")))
        })
        .transpose()
}

/// An id as stored.
pub(crate) const fn bytes(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

/// A count as stored; all counts are bounded far below the end of an `i64`.
pub(crate) fn integer(count: u64) -> Result<i64, Error> {
    i64::try_from(count).map_err(|_| Error::Data(format!("{count} is out of range")))
}

/// Reads a campaign.
pub(crate) fn campaign(row: &Row<'_>) -> Result<Campaign, Error> {
    Ok(Campaign {
        id: id(row, "id", CampaignId::new)?,
        name: text(row, "name")?,
        starts_at: optional_time(row, "starts_at")?,
        ends_at: optional_time(row, "ends_at")?,
        policy: Policy {
            hold_seconds: number(row, "hold_seconds")?,
            hold_seconds_max: number(row, "hold_seconds_max")?,
            payment_extension_seconds: number(row, "payment_extension_seconds")?,
            release_grace_ms: number(row, "release_grace_ms")?,
            notice_grace_seconds: number(row, "notice_grace_seconds")?,
            capture: word(row, "capture", Capture::parse)?,
            deadline_basis: word(row, "deadline_basis", DeadlineBasis::parse)?,
            late_payment: word(row, "late_payment", LatePayment::parse)?,
            payment_failed: word(row, "payment_failed", PaymentFailed::parse)?,
            review_seconds: number(row, "review_seconds")?,
            review_end: word(row, "review_end", ReviewEnd::parse)?,
            restock_on_refund: get(row, "restock_on_refund")?,
            account_limit: optional_number(row, "account_limit")?,
            account_open_holds: optional_number(row, "account_open_holds")?,
        },
        switches: Switches {
            opened: get(row, "opened")?,
            paused: get(row, "paused")?,
            frozen: get(row, "frozen")?,
            closed: get(row, "closed")?,
        },
        account_limit_ceiling: optional_number(row, "account_limit_ceiling")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads a pool.
pub(crate) fn pool(row: &Row<'_>) -> Result<Pool, Error> {
    Ok(Pool {
        id: PoolId(number_id(row, "id")?),
        campaign: id(row, "campaign_id", CampaignId::new)?,
        sku: id(row, "sku", Sku::new)?,
        location: id(row, "location", Location::new)?,
        buckets: number(row, "buckets")?,
        path: word(row, "path", Path::parse)?,
        opening_supply: number(row, "opening_supply")?,
        frozen: get(row, "frozen")?,
    })
}

/// Reads a bucket.
pub(crate) fn bucket(row: &Row<'_>) -> Result<Bucket, Error> {
    Ok(Bucket {
        key: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "number")? },
        weight: number(row, "weight")?,
        available: number(row, "available")?,
        held: number(row, "held")?,
        sold: number(row, "sold")?,
        ledger_seq: number(row, "ledger_seq")?,
        last_at: time(row, "last_at")?,
    })
}

/// Reads a ledger entry.
pub(crate) fn entry(row: &Row<'_>) -> Result<Entry, Error> {
    Ok(Entry {
        bucket: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "bucket")? },
        seq: number(row, "seq")?,
        at: time(row, "at")?,
        order_id: optional_number_id(row, "order_id")?.map(OrderId),
        business_no: text(row, "business_no")?.into(),
        action: word(row, "action", Action::parse)?,
        delta: Delta {
            available: get(row, "delta_available")?,
            held: get(row, "delta_held")?,
            sold: get(row, "delta_sold")?,
        },
        settled: number(row, "settled")?,
        from_state: optional_word(row, "from_state", State::parse)?,
        to_state: optional_word(row, "to_state", State::parse)?,
        order_version: optional_number(row, "order_version")?,
        source: text(row, "source")?.into(),
        actor: text(row, "actor")?.into(),
        reason: text(row, "reason")?.into(),
    })
}

/// Reads an order.
pub(crate) fn order(row: &Row<'_>) -> Result<Order, Error> {
    let home_pool = optional_number_id(row, "home_pool")?;
    let home_bucket: Option<u32> = optional_number(row, "home_bucket")?;
    let amount_minor: Option<i64> = get(row, "amount_minor")?;
    let currency: Option<String> = get(row, "currency")?;
    let lines = detail::read_lines(&text(row, "lines")?)?;
    let detail: Option<String> = get(row, "detail")?;
    let detail = detail.as_deref().map(detail::read_detail).transpose()?.unwrap_or_default();
    Ok(Order {
        id: OrderId(number_id(row, "id")?),
        key: OrderKey {
            campaign: id(row, "campaign_id", CampaignId::new)?,
            order_no: id(row, "order_no", OrderNo::new)?,
        },
        account: id(row, "account", Account::new)?,
        state: word(row, "state", State::parse)?,
        reason: optional_word(row, "reason", Reason::parse)?,
        version: number(row, "version")?,
        home: home_pool.zip(home_bucket).map(|(pool, number)| BucketKey { pool: PoolId(pool), number }),
        lines,
        hold_seconds: number(row, "hold_seconds")?,
        hold_seconds_sent: optional_number(row, "hold_seconds_sent")?,
        hold_ends_at: optional_time(row, "hold_ends_at")?,
        due_at: optional_time(row, "due_at")?,
        extended: get(row, "extended")?,
        amount_due: amount_minor
            .zip(currency)
            .map(|(amount_minor, currency)| Money { amount_minor, currency: currency.into() }),
        refund_due: detail.refund_due,
        attempts: detail.attempts,
        payments: detail.payments,
        refunds: detail.refunds,
        shortage: detail.shortage,
        metadata: get::<Option<String>>(row, "metadata")?.map(Arc::from),
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Collects rows through a reader.
pub(crate) fn all<T>(
    mut rows: rusqlite::Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    while let Some(row) = rows.next().store()? {
        items.push(read(row)?);
    }
    Ok(items)
}
