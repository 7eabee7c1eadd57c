//! Reads every row in one consistent view and has the rules judge them.

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{AuditWatch, Error, rows};
use rusqlite::{Connection, params};

use crate::archive;
use crate::codec::{all, bytes, next};
use crate::error::Driver;
use crate::load::many;

/// Audits a database through a reading connection.
pub(crate) fn audit(
    db: &Connection,
    as_of: Option<Timestamp>,
    watch: &mut dyn AuditWatch,
) -> Result<Report, Error> {
    // One snapshot for all statements, though a server may be writing beside us.
    db.execute_batch("BEGIN").store()?;
    let report = read_all(db, as_of, watch);
    db.execute_batch("ROLLBACK").store()?;
    report
}

fn read_all(db: &Connection, as_of: Option<Timestamp>, watch: &mut dyn AuditWatch) -> Result<Report, Error> {
    let auditor = Auditor::as_of(as_of);
    let mut auditor = if archive::is_one(db)? { auditor.of_part() } else { auditor };
    let read = read_ledger(db, &mut auditor, as_of.is_none(), watch)?;
    if as_of.is_none() {
        let mut told = |count: u64| watch.progress(read.saturating_add(count), read.saturating_mul(2));
        read_orders(db, &mut auditor, &mut told)?;
    }
    Ok(auditor.finish())
}

/// Reads every bucket with its entries; how many.
fn read_ledger(
    db: &Connection,
    auditor: &mut Auditor,
    with_caches: bool,
    watch: &mut dyn AuditWatch,
) -> Result<u64, Error> {
    for campaign in many(db, "SELECT * FROM campaign ORDER BY id", params![], rows::campaign)? {
        auditor.campaign(&campaign);
    }
    for pool in many(db, "SELECT * FROM pool ORDER BY id", params![], rows::pool)? {
        auditor.pool(&pool);
    }
    if with_caches {
        let sql = "SELECT * FROM cache_bucket ORDER BY pool, number";
        many(db, sql, params![], rows::cache_bucket)?.iter().for_each(|row| auditor.cache(row));
    }
    let buckets = many(db, "SELECT * FROM bucket ORDER BY pool, number", params![], rows::bucket)?;
    let all = buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.ledger_seq));
    let mut read = 0_u64;
    let mut of_bucket =
        db.prepare("SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 ORDER BY seq").store()?;
    for bucket in buckets {
        auditor.bucket(&bucket);
        let mut entries = of_bucket.query(params![bytes(bucket.key.pool.0), bucket.key.number]).store()?;
        while let Some(entry) = next(&mut entries, rows::entry)? {
            if !auditor.reaches(&entry) {
                break;
            }
            auditor.entry(&entry);
            watch.entry(&entry);
            read = read.saturating_add(1);
            watch.progress(read, all);
        }
    }
    Ok(read)
}

/// Reads every order with its entries, and what counts orders. Told is how many entries of orders were read.
fn read_orders(db: &Connection, auditor: &mut Auditor, told: &mut dyn FnMut(u64)) -> Result<(), Error> {
    let mut count = 0_u64;
    let mut of_order =
        db.prepare("SELECT * FROM ledger WHERE order_id = ?1 ORDER BY pool, bucket, seq").store()?;
    let mut orders = db.prepare("SELECT * FROM orders ORDER BY id").store()?;
    let mut orders = orders.query(params![]).store()?;
    while let Some(order) = next(&mut orders, rows::order)? {
        let entries = all(of_order.query(params![bytes(order.id.0)]).store()?, rows::entry)?;
        auditor.order(&order, &entries);
        count = count.saturating_add(entries.len() as u64);
        told(count);
    }
    read_usage(db, "SELECT * FROM account_usage", rows::usage_key, auditor)?;
    read_usage(db, "SELECT * FROM key_usage", rows::key_usage_key, auditor)?;
    let mut payments = db.prepare("SELECT * FROM payment").store()?;
    let mut payments = payments.query(params![]).store()?;
    while let Some(payment) = next(&mut payments, rows::payment)? {
        auditor.payment(&payment);
    }
    let mut claims = db.prepare("SELECT * FROM payment_claim").store()?;
    let mut claims = claims.query(params![]).store()?;
    while let Some(claim) = next(&mut claims, rows::claim)? {
        auditor.claim(&claim);
    }
    Ok(())
}

fn read_usage(
    db: &Connection,
    sql: &str,
    read_key: fn(&dyn rows::Row) -> Result<UsageKey, Error>,
    auditor: &mut Auditor,
) -> Result<(), Error> {
    let mut usages = db.prepare(sql).store()?;
    let mut usages = usages.query(params![]).store()?;
    while let Some((key, usage)) = next(&mut usages, |row| Ok((read_key(row)?, rows::usage(row)?)))? {
        auditor.usage(&key, usage);
    }
    Ok(())
}
