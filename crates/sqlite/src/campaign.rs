//! Campaigns and switches: written by calls of their own, through the same writer.

use std::sync::Arc;

use holdfast_core::campaign::{Campaign, Policy, Switches};
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::limit::Recount;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::UsageKey;
use holdfast_core::stock::Pool;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, integer};
use holdfast_store::{Act, Error, PoolRow, PutAssortment, PutCampaign, SwitchCampaign, SwitchPool};
use rusqlite::{Connection, named_params, params};

use crate::codec::{bytes, next};
use crate::error::Driver;
use crate::load::one;
use crate::{acts, apply, catalog, query};

fn load(db: &Connection, id: &CampaignId) -> Result<Option<Campaign>, Error> {
    one(db, "SELECT * FROM campaign WHERE id = ?1", params![id.as_str()], rows::campaign)
}

pub(crate) fn put(db: &Connection, put: PutCampaign, now: Timestamp) -> Result<(Arc<Campaign>, bool), Error> {
    let before = load(db, &put.id)?;
    let created = before.is_none();
    let via = put.via.clone();
    let mut campaign = put.onto(before.as_ref(), now);
    if let Some(before) = &before {
        recount(db, &before.policy, &mut campaign)?;
    }
    write(db, &campaign)?;
    if let Some(act) = Act::put_campaign(before.as_ref(), &campaign, via.as_ref()) {
        acts::record(db, &act, now)?;
    }
    Ok((Arc::new(campaign), created))
}

fn write(db: &Connection, campaign: &Campaign) -> Result<(), Error> {
    let Policy {
        hold_seconds,
        hold_seconds_max,
        payment_extension_seconds,
        release_grace_ms,
        notice_grace_seconds,
        capture,
        deadline_basis,
        late_payment,
        payment_failed,
        review_seconds,
        review_end,
        restock_on_refund,
        account_limit,
        account_open_holds,
        queue_limit,
        queue_wait_ms,
        key_limits,
        order_rate_per_account,
        order_rate,
        approval_threshold,
    } = &campaign.policy;
    let ceilings = &campaign.ceilings;
    let Switches { opened, paused, frozen, closed } = campaign.switches;
    db.prepare_cached(include_str!("sql/put_campaign.sql"))
        .store()?
        .execute(named_params! {
            ":id": campaign.id.as_str(),
            ":name": campaign.name,
            ":starts_at": campaign.starts_at.map(|t| t.0),
            ":ends_at": campaign.ends_at.map(|t| t.0),
            ":opened": opened,
            ":paused": paused,
            ":frozen": frozen,
            ":closed": closed,
            ":hold_seconds": hold_seconds,
            ":hold_seconds_max": hold_seconds_max,
            ":payment_extension_seconds": payment_extension_seconds,
            ":release_grace_ms": release_grace_ms,
            ":notice_grace_seconds": notice_grace_seconds,
            ":capture": capture.as_str(),
            ":deadline_basis": deadline_basis.as_str(),
            ":late_payment": late_payment.as_str(),
            ":payment_failed": payment_failed.as_str(),
            ":review_seconds": review_seconds,
            ":review_end": review_end.as_str(),
            ":restock_on_refund": restock_on_refund,
            ":account_limit": account_limit.map(integer).transpose()?,
            ":account_open_holds": account_open_holds.map(integer).transpose()?,
            ":queue_limit": integer(*queue_limit)?,
            ":queue_wait_ms": queue_wait_ms,
            ":account_limit_ceiling": ceilings.account.units.map(integer).transpose()?,
            ":account_open_holds_ceiling": ceilings.account.open_holds.map(integer).transpose()?,
            ":key_limits": rows::write_limits(key_limits)?,
            ":key_ceilings": rows::write_limits(&ceilings.keys)?,
            ":order_rate_per_account": order_rate_per_account,
            ":order_rate": order_rate,
            ":approval_threshold": approval_threshold.map(integer).transpose()?,
            ":created_at": campaign.created_at.0,
            ":updated_at": campaign.updated_at.0,
            ":catalog_version": catalog::next_version(db)?,
        })
        .store()?;
    Ok(())
}

/// Counts usage for limits that are added, and drops what nobody limits any more. No batch runs meanwhile.
fn recount(db: &Connection, before: &Policy, campaign: &mut Campaign) -> Result<(), Error> {
    let (recount, void) = Recount::of(before, &campaign.policy);
    let id = campaign.id.as_str();
    if void.accounts {
        db.execute("DELETE FROM account_usage WHERE campaign_id = ?1", params![id]).store()?;
    }
    for name in &void.names {
        let sql = "DELETE FROM key_usage WHERE campaign_id = ?1 AND name = ?2";
        db.execute(sql, params![id, name.as_str()]).store()?;
    }
    let Some(mut recount) = recount else { return Ok(()) };
    let mut orders = db.prepare("SELECT * FROM orders WHERE campaign_id = ?1").store()?;
    let mut orders = orders.query(params![id]).store()?;
    while let Some(order) = next(&mut orders, rows::order)? {
        recount.order(&order);
    }
    for (limited, usage) in recount.finish(&mut campaign.ceilings) {
        apply::write_usage(db, &UsageKey { campaign: campaign.id.clone(), limited }, usage)?;
    }
    Ok(())
}

pub(crate) fn switch(
    db: &Connection,
    switch: &SwitchCampaign,
    now: Timestamp,
) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
    let Some(campaign) = load(db, &switch.id)? else {
        return Ok(Err(Refusal::UnknownCampaign));
    };
    let target = switch.target(&campaign).map(|pool| of_pool(db, pool)).transpose()?.flatten();
    let after = match switch.onto(&campaign, target.as_ref(), now) {
        Ok(Some(after)) => after,
        Ok(None) => return Ok(Ok(Arc::new(campaign))),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Switches { opened, paused, frozen, closed } = after.switches;
    let sql = "UPDATE campaign SET opened = :opened, paused = :paused, frozen = :frozen, closed = :closed, \
               unsold_to = :unsold_to, warm_asked_at = :warm_asked_at, updated_at = :updated_at, \
               catalog_version = :catalog_version WHERE id = :id";
    let columns = named_params! {
        ":id": after.id.as_str(),
        ":opened": opened,
        ":paused": paused,
        ":frozen": frozen,
        ":closed": closed,
        ":unsold_to": after.unsold_to.map(|pool| bytes(pool.0)),
        ":warm_asked_at": after.warm_asked_at.map(|at| at.0),
        ":updated_at": after.updated_at.0,
        ":catalog_version": catalog::next_version(db)?,
    };
    db.execute(sql, columns).store()?;
    acts::record(db, &Act::switch(switch), now)?;
    Ok(Ok(Arc::new(after)))
}

/// A pool with its campaign.
fn of_pool(db: &Connection, pool: PoolId) -> Result<Option<(Pool, Campaign)>, Error> {
    let sql = "SELECT * FROM pool WHERE id = ?1";
    let Some(pool) = one(db, sql, params![bytes(pool.0)], rows::pool)? else { return Ok(None) };
    let campaign = load(db, &pool.campaign)?;
    Ok(campaign.map(|campaign| (pool, campaign)))
}

pub(crate) fn put_assortment(
    db: &Connection,
    put: &PutAssortment,
    now: Timestamp,
) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error> {
    let Some(mut campaign) = load(db, &put.campaign)? else {
        return Ok(Err(Refusal::UnknownCampaign));
    };
    let id = campaign.id.as_str();
    let sql = "SELECT id FROM pool WHERE campaign_id = ?1 AND sku = ?2 LIMIT 1";
    let has_pool = match put.bundle() {
        Some(sku) => one(db, sql, params![id, sku.as_str()], |row| rows::number_id(row, "id"))?.is_some(),
        None => false,
    };
    let (after, how) = match put.onto(&campaign, has_pool) {
        Ok(done) => done,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if how != How::Repeated {
        let sql = "UPDATE campaign SET assortment = ?2, updated_at = ?3, catalog_version = ?4 WHERE id = ?1";
        let columns = params![id, rows::write_assortment(&after)?, now.0, catalog::next_version(db)?];
        db.execute(sql, columns).store()?;
        acts::record(db, &Act::put_assortment(put), now)?;
        (campaign.assortment, campaign.updated_at) = (after, now);
    }
    Ok(Ok((Arc::new(campaign), how)))
}

pub(crate) fn switch_pool(
    db: &Connection,
    switch: &SwitchPool,
    now: Timestamp,
) -> Result<Result<PoolRow, Refusal>, Error> {
    let Some(row) = query::pool(db, switch.id)? else { return Ok(Err(Refusal::UnknownPool)) };
    let after = row.pool.clone().after(switch.switch);
    if after != row.pool {
        apply::update_pool(db, &after)?;
        acts::record(db, &Act::switch_pool(switch), now)?;
    }
    Ok(Ok(PoolRow { pool: after, ..row }))
}
