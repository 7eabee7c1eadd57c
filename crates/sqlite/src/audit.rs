//! Reads every row in one consistent view and has the rules judge them.

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::id::{Account, CampaignId, EventId, OrderId, PaymentId, Provider};
use holdfast_core::order::PaymentOutcome;
use holdfast_core::snapshot::{PaymentRow, UsageKey};
use holdfast_store::Error;
use rusqlite::{Connection, Row, params};

use crate::codec::{self, bytes, get, id};
use crate::error::{Driver, corrupt};
use crate::load::{many, usage};

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
    for campaign in many(db, "SELECT * FROM campaign ORDER BY id", params![], codec::campaign)? {
        auditor.campaign(&campaign);
    }
    for pool in many(db, "SELECT * FROM pool ORDER BY id", params![], codec::pool)? {
        auditor.pool(&pool);
    }
    let mut of_bucket =
        db.prepare("SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 ORDER BY seq").store()?;
    for bucket in many(db, "SELECT * FROM bucket ORDER BY pool, number", params![], codec::bucket)? {
        auditor.bucket(&bucket);
        let mut rows = of_bucket.query(params![bytes(bucket.key.pool.0), bucket.key.number]).store()?;
        while let Some(row) = rows.next().store()? {
            auditor.entry(&codec::entry(row)?);
        }
    }
    let mut of_order =
        db.prepare("SELECT * FROM ledger WHERE order_id = ?1 ORDER BY pool, bucket, seq").store()?;
    let mut orders = db.prepare("SELECT * FROM orders ORDER BY id").store()?;
    let mut rows = orders.query(params![]).store()?;
    while let Some(row) = rows.next().store()? {
        let order = codec::order(row)?;
        let entries = codec::all(of_order.query(params![bytes(order.id.0)]).store()?, codec::entry)?;
        auditor.order(&order, &entries);
    }
    let mut usages = db.prepare("SELECT * FROM account_usage").store()?;
    let mut rows = usages.query(params![]).store()?;
    while let Some(row) = rows.next().store()? {
        let key = UsageKey {
            campaign: id(row, "campaign_id", CampaignId::new)?,
            account: id(row, "account", Account::new)?,
        };
        auditor.usage(&key, usage(row)?);
    }
    let mut payments = db.prepare("SELECT * FROM payment").store()?;
    let mut rows = payments.query(params![]).store()?;
    while let Some(row) = rows.next().store()? {
        auditor.payment(&payment(row)?);
    }
    Ok(auditor.finish())
}

fn payment(row: &Row<'_>) -> Result<PaymentRow, Error> {
    let outcome: String = get(row, "outcome")?;
    Ok(PaymentRow {
        provider: id(row, "provider", Provider::new)?,
        event_id: id(row, "event_id", EventId::new)?,
        payment_id: id(row, "payment_id", PaymentId::new)?,
        order: OrderId(codec::number_id(row, "order_id")?),
        outcome: PaymentOutcome::parse(&outcome).ok_or_else(|| corrupt("unknown payment outcome"))?,
    })
}
