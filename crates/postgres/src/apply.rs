//! Writes what a decision changed: every statement of one flight, with the COMMIT behind them. Each is conditional
//! on what was read; another number of rows is an error that the server itself raises.

use std::collections::BTreeSet;

use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, Reason, State};
use holdfast_core::snapshot::{BucketChange, Changes, OrderChange, UsageKey};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{integer, write_detail, write_keys, write_lines};
use holdfast_store::{Act, Error};
use tokio_postgres::types::Type;

use crate::flight::{Flight, Owned};
use crate::row::uuid;
use crate::statement::{Sql, exactly};
use crate::{acts, alike, approvals, cache, catalog, files, payments, reconcile, usage};

static INSERT_BUCKETS: Sql = Sql::new(
    "INSERT INTO bucket (pool, number, weight, available, held, sold, ledger_seq, last_at) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8)",
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
    ],
);
static UPDATE_BUCKETS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE bucket SET available = new.available, held = new.held, sold = new.sold, \
         ledger_seq = new.ledger_seq, last_at = new.last_at \
         FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8) \
         AS new (pool, number, base_seq, available, held, sold, ledger_seq, last_at) \
         WHERE bucket.pool = new.pool AND bucket.number = new.number AND bucket.ledger_seq = new.base_seq \
         RETURNING 1)",
        exactly!("$9")
    ),
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
static INSERT_ORDERS: Sql = Sql::new(
    "INSERT INTO orders (id, campaign_id, order_no, account, state, reason, version, home_pool, home_bucket, lines, \
     hold_seconds, hold_seconds_sent, hold_ends_at, due_at, extended, amount_minor, currency, refund_due_since, detail, \
     metadata, created_at, updated_at, limit_keys) SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
     $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)",
    &[
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
    ],
);
static UPDATE_ORDERS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE orders SET state = new.state, reason = new.reason, version = new.version, \
         home_pool = new.home_pool, home_bucket = new.home_bucket, lines = new.lines, \
         hold_ends_at = new.hold_ends_at, due_at = new.due_at, extended = new.extended, \
         refund_due_since = new.refund_due_since, detail = new.detail, updated_at = new.updated_at \
         FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS new (id, base_version, state, reason, \
         version, home_pool, home_bucket, lines, hold_ends_at, due_at, extended, refund_due_since, detail, updated_at) \
         WHERE orders.id = new.id AND orders.version = new.base_version RETURNING 1)",
        exactly!("$15")
    ),
    &[
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
static INSERT_ENTRIES: Sql = Sql::new(
    "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, delta_held, delta_sold, \
     settled, from_state, to_state, order_version, source, actor, reason, covers_first, covers_last) SELECT * FROM \
     UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
    ],
);
static INSERT_ADJUSTMENTS: Sql = Sql::new(
    "INSERT INTO adjustment (id, pool, delta, kind, bucket, operator, reason) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7)",
    &[
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
);

/// An order that has a case of the kind keeps it as it is.
static INSERT_CASES: Sql = Sql::new(
    "INSERT INTO cases (id, kind, pool, order_id, evidence, opened_at, state) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
    &[
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
    ],
);
static INSERT_TRANSFERS: Sql = Sql::new(
    "INSERT INTO transfer (id, from_pool, from_bucket, to_pool, to_bucket, quantity, operator, reason) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8)",
    &[
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
);

/// What every batch may write.
pub(crate) static HOT: &[&Sql] = &[
    &UPDATE_BUCKETS,
    &alike::INSERT_ORDERS,
    &INSERT_ORDERS,
    &UPDATE_ORDERS,
    &alike::INSERT_ENTRIES,
    &alike::INSERT_LANDED_ENTRIES,
    &INSERT_ENTRIES,
];

/// Most rows of one statement. A stock file has more than any server should be busy with at a time: its statements
/// follow one another in the same flight.
pub(crate) const ROWS_MAX: usize = 10_000;

/// One column of many rows.
pub(crate) fn column<'a, R, T>(rows: &'a [R], read: impl Fn(&'a R) -> T) -> Owned<'a>
where
    Vec<T>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Box::new(rows.iter().map(read).collect::<Vec<T>>())
}

/// The same where reading may fail.
pub(crate) fn try_column<'a, R, T>(
    rows: &'a [R],
    read: impl Fn(&'a R) -> Result<T, Error>,
) -> Result<Owned<'a>, Error>
where
    Vec<T>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Ok(Box::new(rows.iter().map(read).collect::<Result<Vec<T>, Error>>()?))
}

pub(crate) fn short(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(crate) fn count<T>(rows: &[T]) -> Owned<'static> {
    Box::new(i64::try_from(rows.len()).unwrap_or(i64::MAX))
}

/// What a batch writes, sorted as it is written: rows that two nodes may write at the same time in the order of
/// their keys, usage before orders.
pub(crate) struct Writes<'a> {
    changes: &'a Changes,
    new_orders: Vec<&'a Order>,
    changed_orders: Vec<(&'a Order, i64)>,
    new_buckets: Vec<&'a BucketChange>,
    changed_buckets: Vec<(&'a BucketChange, u64)>,
    counted: &'a BTreeSet<UsageKey>,
    acts: &'a [Act],
    now: Timestamp,
}

impl<'a> Writes<'a> {
    /// Sorts what is to be written. `counted` are the usage rows that are there.
    pub(crate) fn new(
        changes: &'a Changes,
        counted: &'a BTreeSet<UsageKey>,
        acts: &'a [Act],
        now: Timestamp,
    ) -> Self {
        let mut new_orders: Vec<&Order> =
            changes.orders.iter().filter(|change| change.base_version.is_none()).map(order_of).collect();
        new_orders.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let based = |change: &'a OrderChange| Some((order_of(change), i64::from(change.base_version?)));
        Self {
            changes,
            new_orders,
            changed_orders: changes.orders.iter().filter_map(based).collect(),
            new_buckets: changes.buckets.iter().filter(|change| change.base_seq.is_none()).collect(),
            changed_buckets: changes.buckets.iter().filter_map(|c| Some((c, c.base_seq?))).collect(),
            counted,
            acts,
            now,
        }
    }

    /// The statements.
    pub(crate) fn flight<'f>(&'f self) -> Result<Flight<'f>, Error> {
        let mut flight = Flight::default();
        self.add_new_buckets(&mut flight)?;
        usage::write(&mut flight, &self.changes.usage, self.counted)?;
        self.add_orders(&mut flight)?;
        self.add_entries(&mut flight)?;
        for buckets in self.changed_buckets.chunks(ROWS_MAX) {
            flight.add(&UPDATE_BUCKETS, bucket_columns(buckets)?);
        }
        cache::add_landed(&mut flight, self.changes)?;
        self.add_rest(&mut flight)?;
        // Last, with the acts: these take the one row of the authority.
        catalog::add(&mut flight, self.changes)?;
        if !self.acts.is_empty() {
            acts::add(&mut flight, self.acts, self.now);
        }
        Ok(flight)
    }

    fn add_new_buckets<'f>(&'f self, flight: &mut Flight<'f>) -> Result<(), Error> {
        for buckets in self.new_buckets.chunks(ROWS_MAX) {
            let params = vec![
                column(buckets, |change| uuid(change.bucket.key.pool.0)),
                column(buckets, |change| short(change.bucket.key.number)),
                column(buckets, |change| i64::from(change.bucket.weight)),
                try_column(buckets, |change| integer(change.bucket.available))?,
                try_column(buckets, |change| integer(change.bucket.held))?,
                try_column(buckets, |change| integer(change.bucket.sold))?,
                try_column(buckets, |change| integer(change.bucket.ledger_seq))?,
                column(buckets, |change| change.bucket.last_at.0),
            ];
            flight.add(&INSERT_BUCKETS, params);
        }
        Ok(())
    }

    fn add_orders<'f>(&'f self, flight: &mut Flight<'f>) -> Result<(), Error> {
        let new = &self.new_orders;
        if let Some(params) = alike::orders(new)? {
            flight.add(&alike::INSERT_ORDERS, params);
        } else if !new.is_empty() {
            let params = vec![
                column(new, |order| uuid(order.id.0)),
                column(new, |order| order.key.campaign.as_str()),
                column(new, |order| order.key.order_no.as_str()),
                column(new, |order| order.account.as_str()),
                column(new, |order| order.state.as_str()),
                column(new, |order| order.reason.map(Reason::as_str)),
                column(new, |order| i64::from(order.version)),
                column(new, |order| order.home.map(|home| uuid(home.pool.0))),
                column(new, |order| order.home.map(|home| short(home.number))),
                try_column(new, |order| write_lines(&order.lines))?,
                column(new, |order| i64::from(order.hold_seconds)),
                column(new, |order| order.hold_seconds_sent.map(i64::from)),
                column(new, |order| order.hold_ends_at.map(|end| end.0)),
                column(new, |order| order.due_at.map(|due| due.0)),
                column(new, |order| order.extended),
                column(new, |order| order.amount_due.as_ref().map(|due| due.amount_minor)),
                column(new, |order| order.amount_due.as_ref().map(|due| &*due.currency)),
                column(new, |order| order.refund_due.as_ref().map(|due| due.since.0)),
                try_column(new, |order| write_detail(order))?,
                column(new, |order| order.metadata.as_deref()),
                column(new, |order| order.created_at.0),
                column(new, |order| order.updated_at.0),
                try_column(new, |order| write_keys(&order.limit_keys))?,
            ];
            flight.add(&INSERT_ORDERS, params);
        }
        let changed = &self.changed_orders;
        if !changed.is_empty() {
            let params = vec![
                column(changed, |(order, _)| uuid(order.id.0)),
                column(changed, |(_, base)| *base),
                column(changed, |(order, _)| order.state.as_str()),
                column(changed, |(order, _)| order.reason.map(Reason::as_str)),
                column(changed, |(order, _)| i64::from(order.version)),
                column(changed, |(order, _)| order.home.map(|home| uuid(home.pool.0))),
                column(changed, |(order, _)| order.home.map(|home| short(home.number))),
                try_column(changed, |(order, _)| write_lines(&order.lines))?,
                column(changed, |(order, _)| order.hold_ends_at.map(|end| end.0)),
                column(changed, |(order, _)| order.due_at.map(|due| due.0)),
                column(changed, |(order, _)| order.extended),
                column(changed, |(order, _)| order.refund_due.as_ref().map(|due| due.since.0)),
                try_column(changed, |(order, _)| write_detail(order))?,
                column(changed, |(order, _)| order.updated_at.0),
                count(changed),
            ];
            flight.add(&UPDATE_ORDERS, params);
        }
        Ok(())
    }

    fn add_entries<'f>(&'f self, flight: &mut Flight<'f>) -> Result<(), Error> {
        let entries: &[Entry] = &self.changes.entries;
        if let Some((statement, params)) = alike::entries(entries)? {
            flight.add(statement, params);
            return Ok(());
        }
        for entries in entries.chunks(ROWS_MAX) {
            flight.add(&INSERT_ENTRIES, entry_columns(entries)?);
        }
        Ok(())
    }

    fn add_rest<'f>(&'f self, flight: &mut Flight<'f>) -> Result<(), Error> {
        payments::add(flight, self.changes);
        let cases = &self.changes.cases;
        if !cases.is_empty() {
            let params = vec![
                column(cases, |case| uuid(case.id.0)),
                column(cases, |case| case.kind.as_str()),
                column(cases, |case| case.pool.map(|pool| uuid(pool.0))),
                column(cases, |case| case.order.map(|order| uuid(order.0))),
                column(cases, |case| &*case.evidence),
                column(cases, |case| case.opened_at.0),
                column(cases, |case| case.state().as_str()),
            ];
            flight.add(&INSERT_CASES, params);
        }
        let adjustments = &self.changes.adjustments;
        if !adjustments.is_empty() {
            let params = vec![
                column(adjustments, |adjust| adjust.adjustment_id.as_str()),
                column(adjustments, |adjust| uuid(adjust.pool.0)),
                column(adjustments, |adjust| adjust.delta),
                column(adjustments, |adjust| adjust.kind.as_str()),
                column(adjustments, |adjust| adjust.bucket.map(short)),
                column(adjustments, |adjust| &*adjust.signed.actor),
                column(adjustments, |adjust| &*adjust.signed.reason),
            ];
            flight.add(&INSERT_ADJUSTMENTS, params);
        }
        let transfers = &self.changes.transfers;
        if !transfers.is_empty() {
            let params = vec![
                column(transfers, |transfer| transfer.transfer_id.as_str()),
                column(transfers, |transfer| uuid(transfer.from.pool.0)),
                column(transfers, |transfer| transfer.from.bucket.map(short)),
                column(transfers, |transfer| uuid(transfer.to.pool.0)),
                column(transfers, |transfer| transfer.to.bucket.map(short)),
                try_column(transfers, |transfer| integer(transfer.quantity))?,
                column(transfers, |transfer| &*transfer.signed.actor),
                column(transfers, |transfer| &*transfer.signed.reason),
            ];
            flight.add(&INSERT_TRANSFERS, params);
        }
        files::add(flight, &self.changes.imports)?;
        approvals::add(flight, self.changes)?;
        reconcile::add(flight, self.changes)
    }
}

fn bucket_columns<'f>(buckets: &'f [(&'f BucketChange, u64)]) -> Result<Vec<Owned<'f>>, Error> {
    Ok(vec![
        column(buckets, |(change, _)| uuid(change.bucket.key.pool.0)),
        column(buckets, |(change, _)| short(change.bucket.key.number)),
        try_column(buckets, |(_, base)| integer(*base))?,
        try_column(buckets, |(change, _)| integer(change.bucket.available))?,
        try_column(buckets, |(change, _)| integer(change.bucket.held))?,
        try_column(buckets, |(change, _)| integer(change.bucket.sold))?,
        try_column(buckets, |(change, _)| integer(change.bucket.ledger_seq))?,
        column(buckets, |(change, _)| change.bucket.last_at.0),
        count(buckets),
    ])
}

fn entry_columns(entries: &[Entry]) -> Result<Vec<Owned<'_>>, Error> {
    Ok(vec![
        column(entries, |entry| uuid(entry.bucket.pool.0)),
        column(entries, |entry| short(entry.bucket.number)),
        try_column(entries, |entry| integer(entry.seq))?,
        column(entries, |entry| entry.at.0),
        column(entries, |entry| entry.order_id.map(|id| uuid(id.0))),
        column(entries, |entry| &*entry.business_no),
        column(entries, |entry| entry.action.as_str()),
        column(entries, |entry| entry.delta.available),
        column(entries, |entry| entry.delta.held),
        column(entries, |entry| entry.delta.sold),
        try_column(entries, |entry| integer(entry.settled))?,
        column(entries, |entry| entry.from_state.map(State::as_str)),
        column(entries, |entry| entry.to_state.map(State::as_str)),
        column(entries, |entry| entry.order_version.map(i64::from)),
        column(entries, |entry| &*entry.source),
        column(entries, |entry| &*entry.actor),
        column(entries, |entry| &*entry.reason),
        try_column(entries, |entry| entry.covers.map(|covers| integer(covers.first)).transpose())?,
        try_column(entries, |entry| entry.covers.map(|covers| integer(covers.last)).transpose())?,
    ])
}

fn order_of(change: &OrderChange) -> &Order {
    &change.order
}
