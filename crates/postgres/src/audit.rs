//! Reads every row in one consistent view and has the rules judge them, a page at a time.

use std::collections::BTreeMap;

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Limited;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{AuditWatch, Error, rows};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::rows as ask;
use crate::connection::{Connection, Mode};
use crate::error::{Driver, Fault};
use crate::row::{all, uuid};

/// Rows of a page.
const PAGE: i64 = 2_000;

/// Audits a database, or its ledger as of a time.
pub(crate) async fn audit(
    connection: &Connection,
    as_of: Option<Timestamp>,
    watch: &mut dyn AuditWatch,
) -> Result<Report, Error> {
    connection.begin(Mode::View).await.store()?;
    let report = read_all(connection, as_of, watch).await.map_err(Fault::into_error);
    connection.rollback().await;
    report
}

async fn read_all(
    connection: &Connection,
    as_of: Option<Timestamp>,
    watch: &mut dyn AuditWatch,
) -> Result<Report, Fault> {
    let mut auditor = Auditor::as_of(as_of);
    let read = ledger(connection, &mut auditor, as_of.is_none(), watch).await?;
    if as_of.is_none() {
        let mut told = |count: u64| watch.progress(read.saturating_add(count), read.saturating_mul(2));
        orders(connection, &mut auditor, &mut told).await?;
        usage(connection, &mut auditor).await?;
        key_usage(connection, &mut auditor).await?;
        payments(connection, &mut auditor).await?;
        claims(connection, &mut auditor).await?;
    }
    Ok(auditor.finish())
}

/// Reads every bucket with its entries; how many.
async fn ledger(
    connection: &Connection,
    auditor: &mut Auditor,
    with_caches: bool,
    watch: &mut dyn AuditWatch,
) -> Result<u64, Fault> {
    let campaigns = ask(connection, "SELECT * FROM campaign ORDER BY id", &[], &[]).await?;
    for campaign in all(&campaigns, rows::campaign).map_err(Fault::Refused)? {
        auditor.campaign(&campaign);
    }
    let pools = ask(connection, "SELECT * FROM pool ORDER BY id", &[], &[]).await?;
    for pool in all(&pools, rows::pool).map_err(Fault::Refused)? {
        auditor.pool(&pool);
    }
    if with_caches {
        let caches = ask(connection, "SELECT * FROM cache_bucket ORDER BY pool, number", &[], &[]).await?;
        for row in all(&caches, rows::cache_bucket).map_err(Fault::Refused)? {
            auditor.cache(&row);
        }
    }
    let buckets = ask(connection, "SELECT * FROM bucket ORDER BY pool, number", &[], &[]).await?;
    let buckets = all(&buckets, rows::bucket).map_err(Fault::Refused)?;
    let there_are = buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.ledger_seq));
    let mut read = 0_u64;
    for bucket in buckets {
        auditor.bucket(&bucket);
        read = entries(connection, bucket.key, auditor, watch, (read, there_are)).await?;
    }
    Ok(read)
}

/// Reads the entries of a bucket as far as they are judged, after so many that were read, of so many; how many are
/// read then.
async fn entries(
    connection: &Connection,
    key: BucketKey,
    auditor: &mut Auditor,
    watch: &mut dyn AuditWatch,
    (mut read, there_are): (u64, u64),
) -> Result<u64, Fault> {
    let sql = "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    let types = [Type::UUID, Type::INT4, Type::INT8, Type::INT8];
    let number = i32::try_from(key.number).unwrap_or(i32::MAX);
    let mut after = i64::MIN;
    loop {
        let found = ask(connection, sql, &[&uuid(key.pool.0), &number, &after, &PAGE], &types).await?;
        for entry in all(&found, rows::entry).map_err(Fault::Refused)? {
            if !auditor.reaches(&entry) {
                return Ok(read);
            }
            after = rows::integer(entry.seq).map_err(Fault::Refused)?;
            auditor.entry(&entry);
            watch.entry(&entry);
        }
        if found.is_empty() {
            return Ok(read);
        }
        read = read.saturating_add(found.len() as u64);
        watch.progress(read, there_are);
    }
}

/// Reads every order with its entries. Told is how many entries of orders were read.
async fn orders(
    connection: &Connection,
    auditor: &mut Auditor,
    told: &mut (dyn FnMut(u64) + Send),
) -> Result<(), Fault> {
    let mut count = 0_u64;
    let sql = "SELECT * FROM orders WHERE id > $1 ORDER BY id LIMIT $2";
    let of_orders = "SELECT * FROM ledger WHERE order_id = ANY ($1) ORDER BY pool, bucket, seq";
    let mut after = uuid(0);
    loop {
        let found = ask(connection, sql, &[&after, &PAGE], &[Type::UUID, Type::INT8]).await?;
        let orders = all(&found, rows::order).map_err(Fault::Refused)?;
        let ids: Vec<Uuid> = orders.iter().map(|order| uuid(order.id.0)).collect();
        let Some(last) = ids.last() else { return Ok(()) };
        after = *last;
        let found = ask(connection, of_orders, &[&ids], &[Type::UUID_ARRAY]).await?;
        count = count.saturating_add(found.len() as u64);
        let mut own: BTreeMap<OrderId, Vec<Entry>> = BTreeMap::new();
        for entry in all(&found, rows::entry).map_err(Fault::Refused)? {
            if let Some(order) = entry.order_id {
                own.entry(order).or_default().push(entry);
            }
        }
        for order in &orders {
            auditor.order(order, own.get(&order.id).map_or(&[], Vec::as_slice));
        }
        told(count);
    }
}

async fn usage(connection: &Connection, auditor: &mut Auditor) -> Result<(), Fault> {
    let sql = "SELECT * FROM account_usage WHERE (campaign_id, account) > ($1, $2) \
               ORDER BY campaign_id, account LIMIT $3";
    let types = [Type::TEXT, Type::TEXT, Type::INT8];
    let mut after = (String::new(), String::new());
    loop {
        let found = ask(connection, sql, &[&after.0, &after.1, &PAGE], &types).await?;
        let read = |row: &dyn rows::Row| Ok((rows::usage_key(row)?, rows::usage(row)?));
        for (key, usage) in all(&found, read).map_err(Fault::Refused)? {
            auditor.usage(&key, usage);
            if let Limited::Account(account) = &key.limited {
                after = (key.campaign.to_string(), account.to_string());
            }
        }
        if found.is_empty() {
            return Ok(());
        }
    }
}

async fn key_usage(connection: &Connection, auditor: &mut Auditor) -> Result<(), Fault> {
    let sql = "SELECT * FROM key_usage WHERE (campaign_id, name, hashed) > ($1, $2, $3) \
               ORDER BY campaign_id, name, hashed LIMIT $4";
    let types = [Type::TEXT, Type::TEXT, Type::UUID, Type::INT8];
    let mut after = (String::new(), String::new(), uuid(0));
    loop {
        let found = ask(connection, sql, &[&after.0, &after.1, &after.2, &PAGE], &types).await?;
        let read = |row: &dyn rows::Row| Ok((rows::key_usage_key(row)?, rows::usage(row)?));
        for (key, usage) in all(&found, read).map_err(Fault::Refused)? {
            auditor.usage(&key, usage);
            if let Limited::Key(name, hashed) = &key.limited {
                after = (key.campaign.to_string(), name.to_string(), uuid(hashed.0));
            }
        }
        if found.is_empty() {
            return Ok(());
        }
    }
}

async fn payments(connection: &Connection, auditor: &mut Auditor) -> Result<(), Fault> {
    let sql =
        "SELECT * FROM payment WHERE (provider, event_id) > ($1, $2) ORDER BY provider, event_id LIMIT $3";
    let types = [Type::TEXT, Type::TEXT, Type::INT8];
    let mut after = (String::new(), String::new());
    loop {
        let found = ask(connection, sql, &[&after.0, &after.1, &PAGE], &types).await?;
        for payment in all(&found, rows::payment).map_err(Fault::Refused)? {
            auditor.payment(&payment);
            after = (payment.provider.to_string(), payment.event_id.to_string());
        }
        if found.is_empty() {
            return Ok(());
        }
    }
}

async fn claims(connection: &Connection, auditor: &mut Auditor) -> Result<(), Fault> {
    let sql = "SELECT * FROM payment_claim WHERE (provider, payment_id) > ($1, $2) \
               ORDER BY provider, payment_id LIMIT $3";
    let types = [Type::TEXT, Type::TEXT, Type::INT8];
    let mut after = (String::new(), String::new());
    loop {
        let found = ask(connection, sql, &[&after.0, &after.1, &PAGE], &types).await?;
        for claim in all(&found, rows::claim).map_err(Fault::Refused)? {
            auditor.claim(&claim);
            after = (claim.provider.to_string(), claim.payment_id.to_string());
        }
        if found.is_empty() {
            return Ok(());
        }
    }
}
