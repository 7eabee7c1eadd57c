//! Reads of the contract: single rows and keyset pages.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::{CampaignId, OrderId, OrderKey, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::stock::{Bucket, BucketKey, Pool};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, integer};
use holdfast_store::{
    CampaignTotals, DueOrder, ENDS_WITHIN_SECONDS, Error, LedgerFilter, LedgerPosition, ORDER_PAGE_LINES_MAX,
    OpenEnds, OrderFilter, Page, PoolFilter, PoolRow, Scope, page_of, page_of_orders,
};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::connection::{Connection, Param};
use crate::error::{Fault, of_driver};
use crate::read::View;
use crate::row::{all, first, uuid};

/// A query that is put together from the conditions that a filter has.
pub(crate) struct Query {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
    types: Vec<Type>,
}

impl Query {
    pub(crate) fn new(select: &str) -> Self {
        Self { sql: format!("{select} WHERE TRUE"), values: Vec::new(), types: Vec::new() }
    }

    /// A query as it is, with its parameters to come in order.
    pub(crate) fn whole(sql: &str) -> Self {
        Self { sql: sql.to_owned(), values: Vec::new(), types: Vec::new() }
    }

    /// Adds a value; how it is named in the text.
    fn value(&mut self, value: impl ToSql + Sync + Send + 'static, of: Type) -> String {
        self.values.push(Box::new(value));
        self.types.push(of);
        format!("${}", self.values.len())
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, value: impl ToSql + Sync + Send + 'static, of: Type) -> Self {
        self.value(value, of);
        self
    }

    fn and(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static, of: Type) {
        let name = self.value(value, of);
        self.sql.push_str(&format!(" AND {condition} {name}"));
    }

    /// Adds a condition that ends in a text.
    pub(crate) fn and_text(&mut self, condition: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.and(condition, value.to_owned(), Type::TEXT);
        }
    }

    /// Adds a condition that ends in a number.
    pub(crate) fn and_integer(&mut self, condition: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.and(condition, value, Type::INT8);
        }
    }

    /// Adds a condition that ends in an id.
    pub(crate) fn and_id(&mut self, condition: &str, value: Option<u128>) {
        if let Some(value) = value {
            self.and(condition, uuid(value), Type::UUID);
        }
    }

    /// Adds the condition that a column names a campaign of the scope.
    pub(crate) fn in_scope(&mut self, column: &str, scope: &Scope) {
        let Some(campaigns) = scope.campaigns() else { return };
        let names: Vec<String> = campaigns.iter().map(ToString::to_string).collect();
        let name = self.value(names, Type::TEXT_ARRAY);
        self.sql.push_str(&format!(" AND {column} = ANY ({name})"));
    }

    /// Adds the condition that an entry stands after a position.
    pub(crate) fn after_position(&mut self, after: Option<LedgerPosition>) -> Result<(), Error> {
        let Some((BucketKey { pool, number }, seq)) = after else { return Ok(()) };
        let pool = self.value(uuid(pool.0), Type::UUID);
        let number = self.value(i32::try_from(number).unwrap_or(i32::MAX), Type::INT4);
        let seq = self.value(integer(seq)?, Type::INT8);
        self.sql.push_str(&format!(" AND (pool, bucket, seq) > ({pool}, {number}, {seq})"));
        Ok(())
    }

    /// One more than asked for, so that a page knows whether there are more.
    pub(crate) fn page(mut self, order_by: &str, page_limit: usize) -> Self {
        let limit = self.value(limit(page_limit), Type::INT8);
        self.sql.push_str(&format!(" ORDER BY {order_by} LIMIT {limit}"));
        self
    }

    /// Asks it.
    pub(crate) async fn ask(&self, connection: &Connection) -> Result<Vec<Row>, tokio_postgres::Error> {
        let params: Vec<Param<'_>> = self.values.iter().map(|value| &**value as Param<'_>).collect();
        connection.rows_typed(&self.sql, &params, &self.types).await
    }

    /// Runs it inside a transaction that does more.
    pub(crate) async fn rows(&self, connection: &Connection) -> Result<Vec<Row>, Fault> {
        self.ask(connection).await.map_err(|error| of_driver(&error))
    }
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

const TOTALS: &str = "SELECT campaign.*, sums.*, \
    EXISTS (SELECT 1 FROM cases WHERE state = 'open' AND kind = 'incarnation') AS halted FROM campaign, \
    LATERAL (SELECT count(DISTINCT bucket.pool) AS pools, CAST(coalesce(sum(available), 0) AS BIGINT) AS available, \
    CAST(coalesce(sum(held), 0) AS BIGINT) AS held, CAST(coalesce(sum(sold), 0) AS BIGINT) AS sold \
    FROM pool JOIN bucket ON bucket.pool = pool.id WHERE pool.campaign_id = campaign.id) AS sums";

pub(crate) fn campaign(id: &CampaignId) -> Query {
    let mut query = Query::new(TOTALS);
    query.and_text("campaign.id =", Some(id.as_str()));
    query
}

pub(crate) fn campaigns(scope: &Scope, page: &Page<CampaignId>) -> Query {
    let mut query = Query::new(TOTALS);
    query.in_scope("campaign.id", scope);
    query.and_text("campaign.id >", page.after.as_ref().map(CampaignId::as_str));
    query.page("campaign.id", page.limit)
}

pub(crate) fn closed_into(only: Option<&CampaignId>, page: &Page<CampaignId>) -> Query {
    let after = page.after.as_ref().map_or("", CampaignId::as_str).to_owned();
    let sql = "SELECT id, unsold_to FROM campaign WHERE unsold_to IS NOT NULL AND NOT frozen AND id > $1 \
               AND ($2 IS NULL OR id = $2) AND NOT EXISTS (SELECT 1 FROM orders \
               WHERE orders.state = 'queued' AND orders.campaign_id = campaign.id) \
               AND id NOT IN (SELECT pool.campaign_id FROM cache_bucket JOIN pool ON pool.id = cache_bucket.pool \
               WHERE cache_bucket.state <> 'closed') ORDER BY id LIMIT $3";
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let only = only.map(|id| id.as_str().to_owned());
    Query::whole(sql).with(after, Type::TEXT).with(only, Type::TEXT).with(limit, Type::INT8)
}

pub(crate) fn totals(found: &[Row], limit: usize) -> Result<(Vec<CampaignTotals>, bool), Error> {
    Ok(page_of(all(found, rows::totals)?, limit))
}

pub(crate) fn pools(filter: &PoolFilter, page: &Page<PoolId>) -> Query {
    let mut query = Query::new("SELECT * FROM pool");
    query.in_scope("campaign_id", &filter.scope);
    query.and_text("campaign_id =", filter.campaign.as_ref().map(CampaignId::as_str));
    query.and_text("sku =", filter.sku.as_ref().map(holdfast_core::id::Sku::as_str));
    query.and_text("location =", filter.location.as_ref().map(holdfast_core::id::Location::as_str));
    query.and_id("id >", page.after.map(|id| id.0));
    query.page("id", page.limit)
}

/// A pool with its buckets, read together.
pub(crate) async fn pool(connection: &Connection, id: PoolId) -> Result<Option<PoolRow>, Fault> {
    let sql = "SELECT * FROM pool WHERE id = $1";
    let found = Query::whole(sql).with(uuid(id.0), Type::UUID).rows(connection).await?;
    let pools = all(&found, rows::pool).map_err(Fault::Refused)?;
    Ok(with_buckets(connection, pools).await?.pop())
}

/// A pool by its id.
pub(crate) struct OnePool(pub(crate) PoolId);

impl View for OnePool {
    type Output = Option<PoolRow>;

    async fn see(&self, connection: &Connection) -> Result<Option<PoolRow>, Fault> {
        pool(connection, self.0).await
    }
}

/// A page of pools.
pub(crate) struct PoolPage {
    pub(crate) asked: Query,
    pub(crate) limit: usize,
}

impl View for PoolPage {
    type Output = (Vec<PoolRow>, bool);

    async fn see(&self, connection: &Connection) -> Result<(Vec<PoolRow>, bool), Fault> {
        let found = self.asked.rows(connection).await?;
        let (pools, more) = page_of(all(&found, rows::pool).map_err(Fault::Refused)?, self.limit);
        Ok((with_buckets(connection, pools).await?, more))
    }
}

/// Pools with their buckets, read together.
pub(crate) async fn with_buckets(connection: &Connection, pools: Vec<Pool>) -> Result<Vec<PoolRow>, Fault> {
    let ids: Vec<Uuid> = pools.iter().map(|pool| uuid(pool.id.0)).collect();
    let sql = "SELECT * FROM bucket WHERE pool = ANY ($1) ORDER BY pool, number";
    let found = Query::whole(sql).with(ids, Type::UUID_ARRAY).rows(connection).await?;
    let buckets = all(&found, rows::bucket).map_err(Fault::Refused)?;
    let of = |pool: PoolId| -> Vec<Bucket> {
        let from = buckets.partition_point(|bucket| bucket.key.pool < pool);
        buckets.iter().skip(from).take_while(|bucket| bucket.key.pool == pool).copied().collect()
    };
    Ok(pools.into_iter().map(|pool| PoolRow { buckets: of(pool.id), pool }).collect())
}

pub(crate) fn order(id: OrderId) -> Query {
    Query::whole("SELECT * FROM orders WHERE id = $1").with(uuid(id.0), Type::UUID)
}

pub(crate) fn order_by_key(key: &OrderKey) -> Query {
    Query::whole("SELECT * FROM orders WHERE campaign_id = $1 AND order_no = $2")
        .with(key.campaign.to_string(), Type::TEXT)
        .with(key.order_no.to_string(), Type::TEXT)
}

pub(crate) fn one_order(found: &[Row]) -> Result<Option<Arc<Order>>, Error> {
    Ok(first(found, rows::order)?.map(Arc::new))
}

pub(crate) fn order_keys(page: &Page<OrderKey>) -> Query {
    let (campaign, order_no) = page
        .after
        .as_ref()
        .map_or((String::new(), String::new()), |key| (key.campaign.to_string(), key.order_no.to_string()));
    let sql = "SELECT campaign_id, order_no FROM orders WHERE (campaign_id, order_no) > ($1, $2) \
               ORDER BY campaign_id, order_no LIMIT $3";
    Query::whole(sql)
        .with(campaign, Type::TEXT)
        .with(order_no, Type::TEXT)
        .with(limit(page.limit), Type::INT8)
}

fn orders(filter: &OrderFilter, page: &Page<OrderId>) -> Query {
    let mut query = Query::new("SELECT * FROM orders");
    query.in_scope("campaign_id", &filter.scope);
    query.and_text("campaign_id =", filter.campaign.as_ref().map(CampaignId::as_str));
    query.and_text("order_no =", filter.order_no.as_ref().map(holdfast_core::id::OrderNo::as_str));
    query.and_text("state =", filter.state.map(holdfast_core::order::State::as_str));
    query.and_text("account =", filter.account.as_ref().map(holdfast_core::id::Account::as_str));
    query.and_id("home_pool =", filter.pool.map(|pool| pool.0));
    if let Some(due) = filter.refund_due {
        query.sql.push_str(if due {
            " AND refund_due_since IS NOT NULL"
        } else {
            " AND refund_due_since IS NULL"
        });
    }
    query.and_id("id >", page.after.map(|id| id.0));
    query.page("id", page.limit)
}

/// A page of orders. They are read a few at a time: each may have many lines, and the page is cut by them too.
pub(crate) struct OrderPage {
    pub(crate) filter: OrderFilter,
    pub(crate) page: Page<OrderId>,
}

/// Orders that are read at a time.
const ORDERS: usize = 64;

impl View for OrderPage {
    type Output = (Vec<Arc<Order>>, bool);

    async fn see(&self, connection: &Connection) -> Result<(Vec<Arc<Order>>, bool), Fault> {
        let limit = self.page.limit;
        let (mut read, mut lines, mut after) = (Vec::new(), 0_usize, self.page.after);
        loop {
            let step = limit.saturating_sub(read.len()).min(ORDERS);
            let asked = orders(&self.filter, &Page { after, limit: step });
            let found = all(&asked.rows(connection).await?, rows::order).map_err(Fault::Refused)?;
            let is_last = found.len() <= step;
            after = found.last().map(|order| order.id);
            for order in found {
                lines = lines.saturating_add(order.lines.len());
                read.push(Ok(Arc::new(order)));
            }
            if is_last || read.len() > limit || lines > ORDER_PAGE_LINES_MAX {
                return page_of_orders(read, limit).map_err(Fault::Refused);
            }
        }
    }
}

pub(crate) fn ledger(filter: &LedgerFilter, page: &Page<LedgerPosition>) -> Result<Query, Error> {
    let mut query = Query::new("SELECT * FROM ledger");
    query.in_scope("(SELECT campaign_id FROM pool WHERE pool.id = ledger.pool)", &filter.scope);
    query.and_id("pool =", filter.pool.map(|pool| pool.0));
    query.and_id("order_id =", filter.order.map(|order| order.0));
    query.after_position(page.after)?;
    Ok(query.page("pool, bucket, seq", page.limit))
}

pub(crate) fn entries(found: &[Row], limit: usize) -> Result<(Vec<Entry>, bool), Error> {
    Ok(page_of(all(found, rows::entry)?, limit))
}

pub(crate) fn due(now: Timestamp, page: &Page<(Timestamp, OrderId)>) -> Query {
    let (after, id) = page.after.map_or((i64::MIN, 0), |(due, id)| (due.0, id.0));
    let sql = "SELECT id, home_pool, home_bucket, due_at FROM orders \
               WHERE due_at IS NOT NULL AND due_at <= $1 AND (due_at, id) > ($2, $3) ORDER BY due_at, id LIMIT $4";
    Query::whole(sql)
        .with(now.0, Type::INT8)
        .with(after, Type::INT8)
        .with(uuid(id), Type::UUID)
        .with(i64::try_from(page.limit).unwrap_or(i64::MAX), Type::INT8)
}

pub(crate) fn due_orders(found: &[Row]) -> Result<Vec<DueOrder>, Error> {
    all(found, rows::due_order)
}

pub(crate) fn open_ends(now: Timestamp, most: u64) -> Query {
    let sql = "SELECT count(*) AS open, min(due_at) AS earliest, count(CASE WHEN due_at <= $1 THEN 1 END) AS within_0, \
               count(CASE WHEN due_at <= $2 THEN 1 END) AS within_1, count(CASE WHEN due_at <= $3 THEN 1 END) AS within_2, \
               count(CASE WHEN due_at <= $4 THEN 1 END) AS within_3, count(CASE WHEN due_at <= $5 THEN 1 END) AS within_4 \
               FROM (SELECT due_at FROM orders WHERE due_at IS NOT NULL ORDER BY due_at, id LIMIT $6) AS ends";
    let mut query = Query::whole(sql);
    for seconds in ENDS_WITHIN_SECONDS {
        query = query.with(now.plus(Duration::from_secs(u64::from(seconds))).0, Type::INT8);
    }
    query.with(i64::try_from(most).unwrap_or(i64::MAX), Type::INT8)
}

pub(crate) fn ends(found: &[Row]) -> Result<OpenEnds, Error> {
    Ok(first(found, rows::open_ends)?.unwrap_or_default())
}
