//! Orders with their entries, payments, and usage, each in one view.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::id::{EventId, OrderId, Provider};
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Limited;
use holdfast_core::order::{Order, Usage};
use holdfast_core::reconcile::{OrderFacts, UsageFacts, judge, knows};
use holdfast_core::snapshot::UsageKey;
use holdfast_store::rows::{self, Row, number};
use holdfast_store::{Error, OrdersAsked, OrdersOf, Page, Suspects, Unapplied, UsageAfter, page_of};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::rows as ask;
use crate::connection::{Connection, Param};
use crate::error::Fault;
use crate::read::View;
use crate::row::{all, first, uuid};

/// Orders and entries are both in the order of ids: they are merged, not looked up one by one.
const MERGES: &str = "SET LOCAL enable_mergejoin = on; SET LOCAL enable_hashjoin = on";

/// Ids of a range in which a row and its entries do not plainly agree. An order of one line that has all of its stock
/// from its home bucket ends in exactly one text; whatever is not as plain as that is read and judged by the rules.
const UNPLAIN: &str = "SELECT coalesce(o.id, e.order_id) AS id FROM \
    (SELECT id, state, version, home_pool, home_bucket, lines, hold_ends_at, due_at, \
    campaign_id = ANY ($4) OR detail IS NOT NULL AND state NOT IN ('sold', 'refunded', 'released') AS is_read \
    FROM orders WHERE id > $1 AND id <= $2) AS o FULL JOIN \
    (SELECT order_id, count(order_version) AS events, max(order_version) AS version, \
    CAST(sum(order_version) AS BIGINT) AS versions, max(order_version * 8 + CASE to_state WHEN 'queued' THEN 0 \
    WHEN 'held' THEN 1 WHEN 'in_review' THEN 2 WHEN 'sold' THEN 3 WHEN 'refunded' THEN 4 WHEN 'released' THEN 5 \
    ELSE 6 END) AS last, CAST(sum(delta_held) AS BIGINT) AS held, CAST(sum(delta_sold) AS BIGINT) AS sold, \
    min(bucket) AS low, max(bucket) AS high, min(CAST(pool AS TEXT)) AS pool, max(CAST(pool AS TEXT)) AS last_pool, \
    bool_or(covers_first IS NOT NULL) AS covers FROM ledger WHERE order_id > $1 AND order_id <= $2 GROUP BY order_id) AS e \
    ON e.order_id = o.id LEFT JOIN LATERAL (SELECT \
    '\"quantity\":' || e.held || ',\"allocations\":[{\"bucket\":' || e.low || ',\"quantity\":' || e.held || '}]}]' AS held, \
    '\"quantity\":' || e.sold || ',\"allocations\":[{\"bucket\":' || e.low || ',\"quantity\":' || e.sold || '}]}]' AS sold) \
    AS plain ON TRUE WHERE NOT coalesce(CASE \
    WHEN o.id IS NULL THEN FALSE WHEN o.is_read THEN FALSE \
    WHEN e.order_id IS NULL THEN (o.state = 'failed' AND o.home_pool IS NULL OR o.state = 'queued' AND o.version = 1) \
        AND strpos(o.lines, '\"allocations\"') = 0 \
    WHEN e.covers OR e.version <> o.version OR e.events <> o.version \
        OR e.versions <> o.version * (o.version + 1) / 2 OR e.low <> e.high OR e.pool <> e.last_pool \
        OR e.low <> o.home_bucket OR e.pool <> CAST(o.home_pool AS TEXT) THEN FALSE \
    WHEN o.state = 'held' THEN e.last = o.version * 8 + 1 AND e.sold = 0 \
        AND coalesce(o.due_at, o.hold_ends_at) >= $3 AND right(o.lines, length(plain.held)) = plain.held \
    WHEN o.state = 'sold' THEN e.last = o.version * 8 + 3 AND e.held = 0 \
        AND right(o.lines, length(plain.sold)) = plain.sold \
    WHEN o.state = 'released' THEN e.last = o.version * 8 + 5 AND e.held = 0 AND e.sold = 0 \
        AND strpos(o.lines, '\"allocations\"') = 0 \
    ELSE FALSE END, FALSE)";

/// Looks at orders.
pub(super) struct Look(pub(super) OrdersAsked);

impl View for Look {
    type Output = Suspects;

    async fn see(&self, connection: &Connection) -> Result<Suspects, Fault> {
        connection.run(MERGES).await?;
        let mut found = Suspects::default();
        let odd = match &self.0.of {
            OrdersOf::Page(page) => self.odd_of_page(connection, page, &mut found).await?,
            OrdersOf::Ids(ids) => {
                found.orders = u64::try_from(ids.len()).unwrap_or(u64::MAX);
                ids.clone()
            }
        };
        self.read(connection, &odd, &mut found).await?;
        Ok(found)
    }
}

impl Look {
    async fn odd_of_page(
        &self,
        connection: &Connection,
        page: &Page<OrderId>,
        found: &mut Suspects,
    ) -> Result<Vec<OrderId>, Fault> {
        let after = uuid(page.after.map_or(0, |after| after.0));
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        let sql = "SELECT id FROM orders WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1";
        let skipped = limit.saturating_sub(1);
        let end = ask(connection, sql, &[&after, &skipped], &[Type::UUID, Type::INT8]).await?;
        found.last = first(&end, id).map_err(Fault::Refused)?;
        let to = uuid(found.last.map_or(u128::MAX, |last| last.0));
        let sql = "SELECT (SELECT count(*) FROM orders WHERE id > $1 AND id <= $2) AS orders, \
                   (SELECT count(*) FROM ledger WHERE order_id > $1 AND order_id <= $2) AS entries";
        let types = [Type::UUID, Type::UUID];
        let counted = ask(connection, sql, &[&after, &to], &types).await?;
        let read = |row: &dyn Row| Ok((number(row, "orders")?, number(row, "entries")?));
        (found.orders, found.entries) = first(&counted, read).map_err(Fault::Refused)?.unwrap_or_default();
        let types = [Type::UUID, Type::UUID, Type::INT8, Type::TEXT_ARRAY];
        let (before, counted) = (self.0.overdue_before.0, self.counted());
        let params: [Param<'_>; 4] = [&after, &to, &before, &counted];
        all(&ask(connection, UNPLAIN, &params, &types).await?, id).map_err(Fault::Refused)
    }

    fn counted(&self) -> Vec<String> {
        self.0.counted.iter().map(ToString::to_string).collect()
    }

    /// Reads them whole, and leaves out what is right after all.
    async fn read(
        &self,
        connection: &Connection,
        ids: &[OrderId],
        found: &mut Suspects,
    ) -> Result<(), Fault> {
        if ids.is_empty() {
            return Ok(());
        }
        let named: Vec<Uuid> = ids.iter().map(|id| uuid(id.0)).collect();
        let types = [Type::UUID_ARRAY];
        let rows = ask(connection, "SELECT * FROM orders WHERE id = ANY ($1)", &[&named], &types).await?;
        let mut orders: BTreeMap<OrderId, Option<Arc<Order>>> =
            all(&rows, readable).map_err(Fault::Refused)?.into_iter().collect();
        let sql = "SELECT * FROM ledger WHERE order_id = ANY ($1) ORDER BY pool, bucket, seq";
        let mut own: BTreeMap<OrderId, Vec<Entry>> = BTreeMap::new();
        for entry in
            all(&ask(connection, sql, &[&named], &types).await?, rows::entry).map_err(Fault::Refused)?
        {
            if let Some(order) = entry.order_id {
                own.entry(order).or_default().push(entry);
            }
        }
        if matches!(self.0.of, OrdersOf::Ids(_)) {
            let entries: usize = own.values().map(Vec::len).sum();
            found.entries = u64::try_from(entries).unwrap_or(u64::MAX);
        }
        for id in ids {
            let read = orders.remove(id);
            let is_unreadable = matches!(read, Some(None));
            let order = read.flatten();
            found.counted.extend(order.clone().filter(|order| self.0.counted.contains(&order.key.campaign)));
            let facts =
                OrderFacts { id: *id, order, is_unreadable, entries: own.remove(id).unwrap_or_default() };
            if judge(&facts, self.0.overdue_before).is_some() {
                found.suspects.push(facts);
            }
        }
        Ok(())
    }
}

/// An order, or that its row cannot be read: one odd row must not keep all others from being compared.
fn readable(row: &dyn Row) -> Result<(OrderId, Option<Arc<Order>>), Error> {
    let id = id(row)?;
    match rows::order(row) {
        Ok(order) => Ok((id, Some(Arc::new(order)))),
        Err(Error::Corrupt(_)) => Ok((id, None)),
        Err(error) => Err(error),
    }
}

fn id(row: &dyn Row) -> Result<OrderId, Error> {
    rows::number_id(row, "id").map(OrderId)
}

/// Looks at payments.
pub(super) struct Payments(pub(super) Page<(Provider, EventId)>);

impl View for Payments {
    type Output = Unapplied;

    async fn see(&self, connection: &Connection) -> Result<Unapplied, Fault> {
        let page = &self.0;
        let (provider, event) =
            page.after.as_ref().map_or(("", ""), |(provider, event)| (provider.as_str(), event.as_str()));
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        // An id that JSON spells otherwise is not found in the text: then its order is read and judged.
        let sql = "SELECT payment.*, payment.outcome = 'succeeded' \
                   AND coalesce(strpos(orders.detail, payment.event_id), 0) = 0 AS is_read FROM payment \
                   LEFT JOIN orders ON orders.id = payment.order_id \
                   WHERE (payment.provider, payment.event_id) > ($1, $2) \
                   ORDER BY payment.provider, payment.event_id LIMIT $3";
        let types = [Type::TEXT, Type::TEXT, Type::INT8];
        let found = ask(connection, sql, &[&provider, &event, &limit], &types).await?;
        let read = |row: &dyn Row| Ok((rows::payment(row)?, row.flag("is_read")?));
        let found = all(&found, read).map_err(Fault::Refused)?;
        let last = found.last().filter(|_| found.len() >= page.limit);
        let last = last.map(|(row, _)| (row.provider.clone(), row.event_id.clone()));
        let mut suspects = Vec::new();
        for (row, _) in found.into_iter().filter(|(_, is_read)| *is_read) {
            let sql = "SELECT * FROM orders WHERE id = $1";
            let order = ask(connection, sql, &[&uuid(row.order.0)], &[Type::UUID]).await?;
            let order = first(&order, rows::order).map_err(Fault::Refused)?;
            if !order.as_ref().is_some_and(|order| knows(order, &row)) {
                suspects.push((row, order.map(Arc::new)));
            }
        }
        Ok(Unapplied { suspects, last })
    }
}

/// Usage rows: accounts first, then keys.
pub(super) struct UsageRows(pub(super) Page<UsageKey>);

impl View for UsageRows {
    type Output = (Vec<(UsageKey, Usage)>, bool);

    async fn see(&self, connection: &Connection) -> Result<Self::Output, Fault> {
        let page = &self.0;
        let most = page.limit.saturating_add(1);
        let mut found = Vec::new();
        let after = UsageAfter::of(page.after.as_ref());
        if let Some((campaign, account)) = after.account {
            let sql = "SELECT * FROM account_usage WHERE (campaign_id, account) > ($1, $2) \
                       ORDER BY campaign_id, account LIMIT $3";
            let types = [Type::TEXT, Type::TEXT, Type::INT8];
            let limit = i64::try_from(most).unwrap_or(i64::MAX);
            let read = |row: &dyn Row| Ok((rows::usage_key(row)?, rows::usage(row)?));
            let page = ask(connection, sql, &[&campaign, &account, &limit], &types).await?;
            found = all(&page, read).map_err(Fault::Refused)?;
        }
        let (campaign, name, hashed) = after.key;
        let limit = i64::try_from(most.saturating_sub(found.len())).unwrap_or(i64::MAX);
        let sql = "SELECT * FROM key_usage WHERE (campaign_id, name, hashed) > ($1, $2, $3) \
                   ORDER BY campaign_id, name, hashed LIMIT $4";
        let types = [Type::TEXT, Type::TEXT, Type::UUID, Type::INT8];
        let read = |row: &dyn Row| Ok((rows::key_usage_key(row)?, rows::usage(row)?));
        let keys = ask(connection, sql, &[&campaign, &name, &uuid(hashed), &limit], &types).await?;
        found.extend(all(&keys, read).map_err(Fault::Refused)?);
        Ok(page_of(found, page.limit))
    }
}

/// Counts the orders of one usage row.
pub(super) struct Count(pub(super) UsageKey);

impl View for Count {
    type Output = UsageFacts;

    async fn see(&self, connection: &Connection) -> Result<UsageFacts, Fault> {
        let key = &self.0;
        let campaign = key.campaign.as_str();
        let (row, orders) = match &key.limited {
            Limited::Account(account) => {
                let (params, types): ([Param<'_>; 2], _) =
                    ([&campaign, &account.as_str()], [Type::TEXT, Type::TEXT]);
                let sql =
                    "SELECT units, open_holds FROM account_usage WHERE campaign_id = $1 AND account = $2";
                let row = ask(connection, sql, &params, &types).await?;
                let sql = "SELECT * FROM orders WHERE campaign_id = $1 AND account = $2";
                (row, ask(connection, sql, &params, &types).await?)
            }
            Limited::Key(name, hashed) => {
                let sql = "SELECT units, open_holds FROM key_usage WHERE campaign_id = $1 AND name = $2 AND hashed = $3";
                let types = [Type::TEXT, Type::TEXT, Type::UUID];
                let (name, id) = (name.as_str(), uuid(hashed.0));
                let row = ask(connection, sql, &[&campaign, &name, &id], &types).await?;
                let sql = "SELECT * FROM orders WHERE campaign_id = $1 AND strpos(limit_keys, $2) > 0";
                let text = format!("{:032x}", hashed.0);
                (row, ask(connection, sql, &[&campaign, &text], &[Type::TEXT, Type::TEXT]).await?)
            }
        };
        let row = first(&row, rows::usage).map_err(Fault::Refused)?.unwrap_or_default();
        let orders = all(&orders, rows::order).map_err(Fault::Refused)?;
        Ok(UsageFacts::counted(key, row, &orders))
    }
}
