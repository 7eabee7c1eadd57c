//! Reads every row in one consistent view and has the rules judge them.

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::snapshot::UsageKey;
use holdfast_store::{Error, rows};
use rusqlite::{Connection, params};

use crate::codec::{all, bytes, next};
use crate::error::Driver;
use crate::load::many;

/// Audits a database through a reading connection.
pub(crate) fn audit(db: &Connection) -> Result<Report, Error> {
    // One snapshot for all statements, though a server may be writing beside us.
    db.execute_batch("BEGIN").store()?;
    let report = read_all(db);
    db.execute_batch("ROLLBACK").store()?;
    report
}

fn read_all(db: &Connection) -> Result<Report, Error> {
    let mut auditor = Auditor::new();
    for campaign in many(db, "SELECT * FROM campaign ORDER BY id", params![], rows::campaign)? {
        auditor.campaign(&campaign);
    }
    for pool in many(db, "SELECT * FROM pool ORDER BY id", params![], rows::pool)? {
        auditor.pool(&pool);
    }
    for row in many(db, "SELECT * FROM cache_bucket ORDER BY pool, number", params![], rows::cache_bucket)? {
        auditor.cache(&row);
    }
    let mut of_bucket =
        db.prepare("SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 ORDER BY seq").store()?;
    for bucket in many(db, "SELECT * FROM bucket ORDER BY pool, number", params![], rows::bucket)? {
        auditor.bucket(&bucket);
        let mut entries = of_bucket.query(params![bytes(bucket.key.pool.0), bucket.key.number]).store()?;
        while let Some(entry) = next(&mut entries, rows::entry)? {
            auditor.entry(&entry);
        }
    }
    let mut of_order =
        db.prepare("SELECT * FROM ledger WHERE order_id = ?1 ORDER BY pool, bucket, seq").store()?;
    let mut orders = db.prepare("SELECT * FROM orders ORDER BY id").store()?;
    let mut orders = orders.query(params![]).store()?;
    while let Some(order) = next(&mut orders, rows::order)? {
        let entries = all(of_order.query(params![bytes(order.id.0)]).store()?, rows::entry)?;
        auditor.order(&order, &entries);
    }
    read_usage(db, "SELECT * FROM account_usage", rows::usage_key, &mut auditor)?;
    read_usage(db, "SELECT * FROM key_usage", rows::key_usage_key, &mut auditor)?;
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
    Ok(auditor.finish())
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
