//! Rows of a batch that differ only in what is theirs alone, as those of a rush do: what they share is sent once.
//! A value in an array costs the server several times a value in the text of the statement, and a row has twenty.

use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, Reason, State};
use holdfast_store::Error;
use holdfast_store::rows::{integer, write_detail, write_keys, write_lines};
use tokio_postgres::types::Type;

use crate::apply::{column, short, try_column};
use crate::flight::Owned;
use crate::row::uuid;
use crate::statement::Sql;

pub(crate) static INSERT_ORDERS: Sql = Sql::new(
    "INSERT INTO orders (id, campaign_id, order_no, account, state, reason, version, home_pool, home_bucket, lines, \
     hold_seconds, hold_seconds_sent, hold_ends_at, due_at, extended, amount_minor, currency, refund_due_since, detail, \
     metadata, created_at, updated_at, limit_keys) SELECT own.id, $8, own.order_no, own.account, $9, $10, $11, $12, $13, \
     own.lines, $14, $15, $16, $17, $18, own.amount_minor, $19, NULL, $20, own.metadata, $21, $22, own.limit_keys \
     FROM UNNEST($1, $2, $3, $4, $5, $6, $7) \
     AS own (id, order_no, account, lines, amount_minor, metadata, limit_keys)",
    &[
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::UUID,
        Type::INT4,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::BOOL,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
    ],
);

pub(crate) static INSERT_ENTRIES: Sql = Sql::new(
    "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, delta_held, delta_sold, \
     settled, from_state, to_state, order_version, source, actor, reason) SELECT $7, $8, own.seq, $9, own.order_id, \
     own.business_no, $10, own.available, own.held, own.sold, $11, $12, $13, $14, $17, $15, $16 \
     FROM UNNEST($1, $2, $3, $4, $5, $6) AS own (seq, order_id, business_no, available, held, sold)",
    &[
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID,
        Type::INT4,
        Type::INT8,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
    ],
);

/// The same of landings: each has its entry of the stream as its source.
pub(crate) static INSERT_LANDED_ENTRIES: Sql = Sql::new(
    "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, delta_held, delta_sold, \
     settled, from_state, to_state, order_version, source, actor, reason) SELECT $7, $8, own.seq, $9, own.order_id, \
     own.business_no, $10, own.available, own.held, own.sold, $11, $12, $13, $14, own.source, $15, $16 \
     FROM UNNEST($1, $2, $3, $4, $5, $6, $17) AS own (seq, order_id, business_no, available, held, sold, source)",
    &[
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID,
        Type::INT4,
        Type::INT8,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT_ARRAY,
    ],
);

/// Whether two orders differ only in what [`INSERT_ORDERS`] takes of each.
fn alike(a: &Order, b: &Order) -> bool {
    let currency = |order: &Order| order.amount_due.as_ref().map(|due| due.currency.clone());
    a.key.campaign == b.key.campaign
        && (a.state, a.reason, a.version, a.home) == (b.state, b.reason, b.version, b.home)
        && (a.hold_seconds, a.hold_seconds_sent, a.hold_ends_at)
            == (b.hold_seconds, b.hold_seconds_sent, b.hold_ends_at)
        && (a.due_at, a.extended, a.created_at, a.updated_at)
            == (b.due_at, b.extended, b.created_at, b.updated_at)
        && (&a.attempts, &a.payments, &a.refunds) == (&b.attempts, &b.payments, &b.refunds)
        && a.refund_due.is_none()
        && b.refund_due.is_none()
        && a.shortage == b.shortage
        && currency(a) == currency(b)
}

/// The parameters of orders that are alike; none if they are not.
pub(crate) fn orders<'f>(orders: &'f [&'f Order]) -> Result<Option<Vec<Owned<'f>>>, Error> {
    let Some(first) = orders.first().filter(|first| orders.iter().all(|order| alike(first, order))) else {
        return Ok(None);
    };
    Ok(Some(vec![
        column(orders, |order| uuid(order.id.0)),
        column(orders, |order| order.key.order_no.as_str()),
        column(orders, |order| order.account.as_str()),
        try_column(orders, |order| write_lines(&order.lines))?,
        column(orders, |order| order.amount_due.as_ref().map(|due| due.amount_minor)),
        column(orders, |order| order.metadata.as_deref()),
        try_column(orders, |order| write_keys(&order.limit_keys))?,
        Box::new(first.key.campaign.as_str()),
        Box::new(first.state.as_str()),
        Box::new(first.reason.map(Reason::as_str)),
        Box::new(i64::from(first.version)),
        Box::new(first.home.map(|home| uuid(home.pool.0))),
        Box::new(first.home.map(|home| short(home.number))),
        Box::new(i64::from(first.hold_seconds)),
        Box::new(first.hold_seconds_sent.map(i64::from)),
        Box::new(first.hold_ends_at.map(|end| end.0)),
        Box::new(first.due_at.map(|due| due.0)),
        Box::new(first.extended),
        Box::new(first.amount_due.as_ref().map(|due| &*due.currency)),
        Box::new(write_detail(first)?),
        Box::new(first.created_at.0),
        Box::new(first.updated_at.0),
    ]))
}

/// The statement for entries that are alike, with its parameters; none if they are not.
pub(crate) fn entries(entries: &[Entry]) -> Result<Option<(&'static Sql, Vec<Owned<'_>>)>, Error> {
    let alike = |a: &Entry, b: &Entry| {
        (a.bucket, a.at, a.action, a.settled) == (b.bucket, b.at, b.action, b.settled)
            && (a.from_state, a.to_state, a.order_version) == (b.from_state, b.to_state, b.order_version)
            && (&a.actor, &a.reason) == (&b.actor, &b.reason)
            // What covers others is written with all of its columns.
            && b.covers.is_none()
    };
    let Some(first) = entries.first().filter(|first| entries.iter().all(|entry| alike(first, entry))) else {
        return Ok(None);
    };
    let has_one_source = entries.iter().all(|entry| entry.source == first.source);
    let (statement, source): (_, Owned<'_>) = if has_one_source {
        (&INSERT_ENTRIES, Box::new(&*first.source))
    } else {
        (&INSERT_LANDED_ENTRIES, column(entries, |entry| &*entry.source))
    };
    let params = vec![
        try_column(entries, |entry| integer(entry.seq))?,
        column(entries, |entry| entry.order_id.map(|id| uuid(id.0))),
        column(entries, |entry| &*entry.business_no),
        column(entries, |entry| entry.delta.available),
        column(entries, |entry| entry.delta.held),
        column(entries, |entry| entry.delta.sold),
        Box::new(uuid(first.bucket.pool.0)),
        Box::new(short(first.bucket.number)),
        Box::new(first.at.0),
        Box::new(first.action.as_str()),
        Box::new(integer(first.settled)?),
        Box::new(first.from_state.map(State::as_str)),
        Box::new(first.to_state.map(State::as_str)),
        Box::new(first.order_version.map(i64::from)),
        Box::new(&*first.actor),
        Box::new(&*first.reason),
        source,
    ];
    Ok(Some((statement, params)))
}
