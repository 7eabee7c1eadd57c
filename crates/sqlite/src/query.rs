//! Reads of the contract: single rows and keyset pages.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::{CampaignId, OrderId, OrderKey, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row, integer};
use holdfast_store::{
    CampaignTotals, DueOrder, ENDS_WITHIN_SECONDS, Error, LedgerFilter, LedgerPosition, OpenEnds,
    OrderFilter, Page, PoolFilter, PoolRow, Scope, page_of, page_of_orders,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::codec::{bytes, next};
use crate::error::Driver;
use crate::load::{many, one};

const TOTALS: &str = "SELECT campaign.*, totals.*, \
    EXISTS (SELECT 1 FROM cases WHERE state = 'open' AND kind = 'incarnation') AS halted FROM campaign, \
    (SELECT count(DISTINCT pool) AS pools, coalesce(sum(available), 0) AS available, coalesce(sum(held), 0) AS held, \
     coalesce(sum(sold), 0) AS sold FROM bucket WHERE pool IN (SELECT id FROM pool WHERE campaign_id = ?1)) AS totals \
    WHERE campaign.id = ?1";

pub(crate) fn campaign(db: &Connection, id: &CampaignId) -> Result<Option<CampaignTotals>, Error> {
    one(db, TOTALS, params![id.as_str()], rows::totals)
}

pub(crate) fn campaigns(
    db: &Connection,
    scope: &Scope,
    page: &Page<CampaignId>,
) -> Result<(Vec<CampaignTotals>, bool), Error> {
    let mut query = Query::new("SELECT id FROM campaign");
    query.in_scope("id", scope);
    query.and("id > ?", page.after.as_ref().map(|id| text(id.as_str())));
    let ids = query.page("id", page.limit).run(db, |row| rows::id(row, "id", CampaignId::new))?;
    let (ids, more) = page_of(ids, page.limit);
    let mut items = Vec::with_capacity(ids.len());
    for id in ids {
        items.extend(campaign(db, &id)?);
    }
    Ok((items, more))
}

pub(crate) fn closed_into(
    db: &Connection,
    only: Option<&CampaignId>,
    page: &Page<CampaignId>,
) -> Result<Vec<(CampaignId, PoolId)>, Error> {
    let (only, after) = (only.map(CampaignId::as_str), page.after.as_ref().map_or("", CampaignId::as_str));
    let sql = "SELECT id, unsold_to FROM campaign WHERE unsold_to IS NOT NULL AND frozen = 0 AND id > ?1 \
               AND (?2 IS NULL OR id = ?2) AND NOT EXISTS (SELECT 1 FROM orders \
               WHERE orders.state = 'queued' AND orders.campaign_id = campaign.id) \
               AND id NOT IN (SELECT pool.campaign_id FROM cache_bucket JOIN pool ON pool.id = cache_bucket.pool \
               WHERE cache_bucket.state <> 'closed') ORDER BY id LIMIT ?3";
    many(db, sql, params![after, only, i64::try_from(page.limit).unwrap_or(i64::MAX)], rows::closed_into)
}

/// One more than asked for, so that a page knows whether there are more.
fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// A query that is put together from the conditions that a filter has.
pub(crate) struct Query {
    sql: String,
    values: Vec<Value>,
}

impl Query {
    pub(crate) fn new(select: &str) -> Self {
        Self { sql: format!("{select} WHERE 1 = 1"), values: Vec::new() }
    }

    /// Adds a condition whose one value is `?`.
    pub(crate) fn and(&mut self, condition: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.sql.push_str(" AND ");
            self.sql.push_str(condition);
            self.values.push(value);
        }
    }

    /// Adds the condition that a column names a campaign of the scope.
    pub(crate) fn in_scope(&mut self, column: &str, scope: &Scope) {
        let Some(campaigns) = scope.campaigns() else { return };
        let marks = vec!["?"; campaigns.len()].join(", ");
        self.sql.push_str(&format!(" AND {column} IN ({marks})"));
        self.values.extend(campaigns.iter().map(|id| text(id.as_str())));
    }

    /// Adds the condition that an entry stands after a position.
    pub(crate) fn after_position(&mut self, after: Option<LedgerPosition>) -> Result<(), Error> {
        let Some((BucketKey { pool, number }, seq)) = after else { return Ok(()) };
        self.sql.push_str(" AND (pool, bucket, seq) > (?, ?, ?)");
        self.values.extend([blob(pool.0), Value::Integer(i64::from(number)), Value::Integer(integer(seq)?)]);
        Ok(())
    }

    pub(crate) fn page(mut self, order_by: &str, page_limit: usize) -> Self {
        self.sql.push_str(" ORDER BY ");
        self.sql.push_str(order_by);
        self.sql.push_str(" LIMIT ?");
        self.values.push(Value::Integer(limit(page_limit)));
        self
    }

    pub(crate) fn run<T>(
        self,
        db: &Connection,
        read: impl Fn(&dyn Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        many(db, &self.sql, params_from_iter(self.values), read)
    }
}

pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

pub(crate) fn blob(id: u128) -> Value {
    Value::Blob(bytes(id).to_vec())
}

pub(crate) fn with_buckets(db: &Connection, pool: holdfast_core::stock::Pool) -> Result<PoolRow, Error> {
    let sql = "SELECT * FROM bucket WHERE pool = ?1 ORDER BY number";
    let buckets = many(db, sql, params![bytes(pool.id.0)], rows::bucket)?;
    Ok(PoolRow { pool, buckets })
}

pub(crate) fn pool(db: &Connection, id: PoolId) -> Result<Option<PoolRow>, Error> {
    let pool = one(db, "SELECT * FROM pool WHERE id = ?1", params![bytes(id.0)], rows::pool)?;
    pool.map(|pool| with_buckets(db, pool)).transpose()
}

pub(crate) fn pools(
    db: &Connection,
    filter: &PoolFilter,
    page: &Page<PoolId>,
) -> Result<(Vec<PoolRow>, bool), Error> {
    let mut query = Query::new("SELECT * FROM pool");
    query.in_scope("campaign_id", &filter.scope);
    query.and("campaign_id = ?", filter.campaign.as_ref().map(|id| text(id.as_str())));
    query.and("sku = ?", filter.sku.as_ref().map(|sku| text(sku.as_str())));
    query.and("location = ?", filter.location.as_ref().map(|location| text(location.as_str())));
    query.and("id > ?", page.after.map(|id| blob(id.0)));
    let (pools, more) = page_of(query.page("id", page.limit).run(db, rows::pool)?, page.limit);
    let rows = pools.into_iter().map(|pool| with_buckets(db, pool)).collect::<Result<_, _>>()?;
    Ok((rows, more))
}

pub(crate) fn order(db: &Connection, id: OrderId) -> Result<Option<Arc<Order>>, Error> {
    let sql = "SELECT * FROM orders WHERE id = ?1";
    Ok(one(db, sql, params![bytes(id.0)], rows::order)?.map(Arc::new))
}

pub(crate) fn order_by_key(db: &Connection, key: &OrderKey) -> Result<Option<Arc<Order>>, Error> {
    let sql = "SELECT * FROM orders WHERE campaign_id = ?1 AND order_no = ?2";
    let found = one(db, sql, params![key.campaign.as_str(), key.order_no.as_str()], rows::order)?;
    Ok(found.map(Arc::new))
}

pub(crate) fn order_keys(db: &Connection, page: &Page<OrderKey>) -> Result<(Vec<OrderKey>, bool), Error> {
    let (campaign, order_no) =
        page.after.as_ref().map_or(("", ""), |key| (key.campaign.as_str(), key.order_no.as_str()));
    let sql = "SELECT campaign_id, order_no FROM orders WHERE (campaign_id, order_no) > (?1, ?2) \
               ORDER BY campaign_id, order_no LIMIT ?3";
    let keys = many(db, sql, params![campaign, order_no, limit(page.limit)], rows::order_key)?;
    Ok(page_of(keys, page.limit))
}

pub(crate) fn orders(
    db: &Connection,
    filter: &OrderFilter,
    page: &Page<OrderId>,
) -> Result<(Vec<Arc<Order>>, bool), Error> {
    let mut query = Query::new("SELECT * FROM orders");
    query.in_scope("campaign_id", &filter.scope);
    query.and("campaign_id = ?", filter.campaign.as_ref().map(|id| text(id.as_str())));
    query.and("order_no = ?", filter.order_no.as_ref().map(|no| text(no.as_str())));
    query.and("state = ?", filter.state.map(|state| text(state.as_str())));
    query.and("account = ?", filter.account.as_ref().map(|account| text(account.as_str())));
    query.and("home_pool = ?", filter.pool.map(|pool| blob(pool.0)));
    query.and(
        "(refund_due_since IS NOT NULL) = ?",
        filter.refund_due.map(|due| Value::Integer(i64::from(due))),
    );
    query.and("id > ?", page.after.map(|id| blob(id.0)));
    let query = query.page("id", page.limit);
    let mut statement = db.prepare_cached(&query.sql).store()?;
    let mut found = statement.query(params_from_iter(query.values)).store()?;
    let orders = std::iter::from_fn(|| next(&mut found, |row| rows::order(row).map(Arc::new)).transpose());
    page_of_orders(orders, page.limit)
}

pub(crate) fn ledger(
    db: &Connection,
    filter: &LedgerFilter,
    page: &Page<LedgerPosition>,
) -> Result<(Vec<Entry>, bool), Error> {
    let mut query = Query::new("SELECT * FROM ledger");
    query.in_scope("(SELECT campaign_id FROM pool WHERE pool.id = ledger.pool)", &filter.scope);
    query.and("pool = ?", filter.pool.map(|pool| blob(pool.0)));
    query.and("order_id = ?", filter.order.map(|order| blob(order.0)));
    query.after_position(page.after)?;
    let items = query.page("pool, bucket, seq", page.limit).run(db, rows::entry)?;
    Ok(page_of(items, page.limit))
}

/// Only the index is read.
pub(crate) fn open_ends(db: &Connection, now: Timestamp, most: u64) -> Result<OpenEnds, Error> {
    let sql = "SELECT count(*) AS open, min(due_at) AS earliest, count(CASE WHEN due_at <= ?1 THEN 1 END) AS within_0, \
               count(CASE WHEN due_at <= ?2 THEN 1 END) AS within_1, count(CASE WHEN due_at <= ?3 THEN 1 END) AS within_2, \
               count(CASE WHEN due_at <= ?4 THEN 1 END) AS within_3, count(CASE WHEN due_at <= ?5 THEN 1 END) AS within_4 \
               FROM (SELECT due_at FROM orders WHERE due_at IS NOT NULL ORDER BY due_at, id LIMIT ?6) AS ends";
    let [a, b, c, d, e] =
        ENDS_WITHIN_SECONDS.map(|seconds| now.plus(Duration::from_secs(u64::from(seconds))).0);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    Ok(one(db, sql, params![a, b, c, d, e, most], rows::open_ends)?.unwrap_or_default())
}

pub(crate) fn due(
    db: &Connection,
    now: Timestamp,
    page: &Page<(Timestamp, OrderId)>,
) -> Result<Vec<DueOrder>, Error> {
    let (after, id) = page.after.map_or((i64::MIN, 0), |(due, id)| (due.0, id.0));
    let sql = "SELECT id, home_pool, home_bucket, due_at FROM orders \
               WHERE due_at IS NOT NULL AND due_at <= ?1 AND (due_at, id) > (?2, ?3) ORDER BY due_at, id LIMIT ?4";
    let most = i64::try_from(page.limit).unwrap_or(i64::MAX);
    many(db, sql, params![now.0, after, bytes(id), most], rows::due_order)
}
