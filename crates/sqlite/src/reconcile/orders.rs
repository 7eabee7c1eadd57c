//! Orders with their entries, payments, and usage, each in one view.

use std::sync::Arc;

use holdfast_core::id::{EventId, OrderId, Provider};
use holdfast_core::limit::Limited;
use holdfast_core::order::{Order, PaymentOutcome, Usage};
use holdfast_core::reconcile::{OrderFacts, UsageFacts, judge, knows};
use holdfast_core::snapshot::UsageKey;
use holdfast_store::rows::{self, Row};
use holdfast_store::{Error, OrdersAsked, OrdersOf, Page, Suspects, Unapplied, UsageAfter, page_of};
use rusqlite::{Connection, params};

use crate::codec::{all, bytes};
use crate::error::Driver;
use crate::load::{many, one};

/// Reads as of one moment, though the server is writing beside us.
fn view<T>(db: &Connection, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    db.execute_batch("BEGIN").store()?;
    let found = read();
    db.execute_batch("ROLLBACK").store()?;
    found
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// What is right is left out here already: an order has one row and few entries, and they are at hand.
pub(super) fn suspects(db: &Connection, asked: &OrdersAsked) -> Result<Suspects, Error> {
    view(db, || match &asked.of {
        OrdersOf::Page(page) => of_page(db, page, asked),
        OrdersOf::Ids(ids) => {
            let mut found = Suspects::default();
            for id in ids {
                let sql = "SELECT * FROM orders WHERE id = ?1";
                let read = one(db, sql, params![bytes(id.0)], readable)?.map(|(_, order)| order);
                look(db, *id, read, asked, &mut found)?;
            }
            Ok(found)
        }
    })
}

fn of_page(db: &Connection, page: &Page<OrderId>, asked: &OrdersAsked) -> Result<Suspects, Error> {
    let mut found = Suspects::default();
    let after = bytes(page.after.map_or(0, |after| after.0));
    let sql = "SELECT * FROM orders WHERE id > ?1 ORDER BY id LIMIT ?2";
    let orders = many(db, sql, params![after, limit(page.limit)], readable)?;
    found.last = orders.last().map(|(id, _)| *id).filter(|_| orders.len() >= page.limit);
    for (id, order) in orders {
        look(db, id, Some(order), asked, &mut found)?;
    }
    let sql = "SELECT DISTINCT order_id FROM ledger WHERE order_id > ?1 AND order_id <= ?2 \
               AND NOT EXISTS (SELECT 1 FROM orders WHERE orders.id = ledger.order_id)";
    let to = bytes(found.last.map_or(u128::MAX, |last| last.0));
    let of = |row: &dyn Row| rows::number_id(row, "order_id").map(OrderId);
    for id in many(db, sql, params![after, to], of)? {
        look(db, id, None, asked, &mut found)?;
    }
    Ok(found)
}

/// An order, or that its row cannot be read: one odd row must not keep all others from being compared.
type Read = Option<Arc<Order>>;

fn readable(row: &dyn Row) -> Result<(OrderId, Read), Error> {
    let id = OrderId(rows::number_id(row, "id")?);
    match rows::order(row) {
        Ok(order) => Ok((id, Some(Arc::new(order)))),
        Err(Error::Corrupt(_)) => Ok((id, None)),
        Err(error) => Err(error),
    }
}

/// `read`: none where there is no row.
fn look(
    db: &Connection,
    id: OrderId,
    read: Option<Read>,
    asked: &OrdersAsked,
    found: &mut Suspects,
) -> Result<(), Error> {
    let sql = "SELECT * FROM ledger WHERE order_id = ?1 ORDER BY pool, bucket, seq";
    let mut own = db.prepare_cached(sql).store()?;
    let entries = all(own.query(params![bytes(id.0)]).store()?, rows::entry)?;
    found.orders = found.orders.saturating_add(1);
    found.entries = found.entries.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
    let (is_there, order) = (read.is_some(), read.flatten());
    let is_unreadable = is_there && order.is_none();
    found.counted.extend(order.clone().filter(|order| asked.counted.contains(&order.key.campaign)));
    let facts = OrderFacts { id, order, is_unreadable, entries };
    if judge(&facts, asked.overdue_before).is_some() {
        found.suspects.push(facts);
    }
    Ok(())
}

pub(super) fn unapplied(db: &Connection, page: &Page<(Provider, EventId)>) -> Result<Unapplied, Error> {
    let (provider, event) =
        page.after.as_ref().map_or(("", ""), |(provider, event)| (provider.as_str(), event.as_str()));
    let sql =
        "SELECT * FROM payment WHERE (provider, event_id) > (?1, ?2) ORDER BY provider, event_id LIMIT ?3";
    view(db, || {
        let found = many(db, sql, params![provider, event, limit(page.limit)], rows::payment)?;
        let last = found.last().filter(|_| found.len() >= page.limit);
        let last = last.map(|row| (row.provider.clone(), row.event_id.clone()));
        let mut suspects = Vec::new();
        for row in found.into_iter().filter(|row| row.outcome == PaymentOutcome::Succeeded) {
            let sql = "SELECT * FROM orders WHERE id = ?1";
            let order = one(db, sql, params![bytes(row.order.0)], rows::order)?;
            if !order.as_ref().is_some_and(|order| knows(order, &row)) {
                suspects.push((row, order.map(Arc::new)));
            }
        }
        Ok(Unapplied { suspects, last })
    })
}

/// Accounts first, then keys.
pub(super) fn usage_rows(
    db: &Connection,
    page: &Page<UsageKey>,
) -> Result<(Vec<(UsageKey, Usage)>, bool), Error> {
    let mut found = Vec::new();
    let most = page.limit.saturating_add(1);
    let after = UsageAfter::of(page.after.as_ref());
    if let Some((campaign, account)) = after.account {
        let sql = "SELECT * FROM account_usage WHERE (campaign_id, account) > (?1, ?2) \
                   ORDER BY campaign_id, account LIMIT ?3";
        let read = |row: &dyn Row| Ok((rows::usage_key(row)?, rows::usage(row)?));
        found = many(db, sql, params![campaign, account, limit(most)], read)?;
    }
    let (campaign, name, hashed) = after.key;
    let rest = most.saturating_sub(found.len());
    let sql = "SELECT * FROM key_usage WHERE (campaign_id, name, hashed) > (?1, ?2, ?3) \
               ORDER BY campaign_id, name, hashed LIMIT ?4";
    let read = |row: &dyn Row| Ok((rows::key_usage_key(row)?, rows::usage(row)?));
    found.extend(many(db, sql, params![campaign, name, bytes(hashed), limit(rest)], read)?);
    Ok(page_of(found, page.limit))
}

pub(super) fn count_usage(db: &Connection, key: &UsageKey) -> Result<UsageFacts, Error> {
    let campaign = key.campaign.as_str();
    view(db, || {
        let (row, orders) = match &key.limited {
            Limited::Account(account) => {
                let named = params![campaign, account.as_str()];
                let sql =
                    "SELECT units, open_holds FROM account_usage WHERE campaign_id = ?1 AND account = ?2";
                let row = one(db, sql, named, rows::usage)?;
                let sql = "SELECT * FROM orders WHERE campaign_id = ?1 AND account = ?2";
                (row, many(db, sql, named, rows::order)?)
            }
            Limited::Key(name, hashed) => {
                let named = params![campaign, name.as_str(), bytes(hashed.0)];
                let sql = "SELECT units, open_holds FROM key_usage WHERE campaign_id = ?1 AND name = ?2 AND hashed = ?3";
                let row = one(db, sql, named, rows::usage)?;
                let sql = "SELECT * FROM orders WHERE campaign_id = ?1 AND limit_keys LIKE '%' || ?2 || '%'";
                let orders = many(db, sql, params![campaign, format!("{:032x}", hashed.0)], rows::order)?;
                (row, orders)
            }
        };
        Ok(UsageFacts::counted(key, row.unwrap_or_default(), &orders))
    })
}
