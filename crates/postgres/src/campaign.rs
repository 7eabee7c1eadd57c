//! Campaigns and switches: written by transactions of their own. A campaign's row is locked before anything of it
//! changes.

use std::sync::Arc;

use holdfast_core::campaign::{Campaign, Policy, Switches};
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, OrderId, PoolId, Sku};
use holdfast_core::limit::{Ceilings, Recount, Void};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::Pool;
use holdfast_store::rows::{self as row, integer};
use holdfast_store::{Act, Error, PutAssortment, PutCampaign, SwitchCampaign};
use tokio_postgres::types::Type;

use crate::call::{Work, rows};
use crate::connection::{Connection, Param};
use crate::error::Fault;
use crate::flight::Owned;
use crate::row::{all, first, uuid};
use crate::store::Inner;
use crate::{acts, catalog, usage};

/// Orders that are counted at a time.
const COUNTED: i64 = 1_000;

async fn locked(connection: &Connection, id: &CampaignId) -> Result<Option<Campaign>, Fault> {
    let sql = "SELECT * FROM campaign WHERE id = $1 FOR UPDATE";
    let found = rows(connection, sql, &[&id.as_str()], &[Type::TEXT]).await?;
    first(&found, row::campaign).map_err(Fault::Refused)
}

impl Work for PutCampaign {
    type Output = (Arc<Campaign>, bool);

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<(Arc<Campaign>, bool), Fault> {
        let before = locked(connection, &self.id).await?;
        let now = inner.time(connection).await?;
        let created = before.is_none();
        let mut campaign = self.clone().onto(before.as_ref(), now);
        if let Some(before) = &before {
            recount(connection, &before.policy, &mut campaign).await?;
        }
        let sql = if created { INSERT } else { UPDATE };
        write(connection, sql, &campaign).await?;
        if let Some(act) = Act::put_campaign(before.as_ref(), &campaign, self.via.as_ref()) {
            acts::record(connection, &act, now).await?;
        }
        catalog::campaign_changed(connection, &campaign.id).await?;
        Ok((Arc::new(campaign), created))
    }
}

/// A campaign that is new must not be there: two nodes may make it at the same time.
const INSERT: &str = include_str!("sql/insert_campaign.sql");
const UPDATE: &str = include_str!("sql/update_campaign.sql");

async fn write(connection: &Connection, sql: &str, campaign: &Campaign) -> Result<(), Fault> {
    let columns = columns(campaign).map_err(Fault::Refused)?;
    let columns: Vec<Param<'_>> = columns.iter().map(|column| &**column as Param<'_>).collect();
    rows(connection, sql, &columns, PUT_TYPES).await?;
    Ok(())
}

/// A campaign as the statements take it.
fn columns(campaign: &Campaign) -> Result<Vec<Owned<'_>>, Error> {
    let Switches { opened, paused, frozen, closed } = campaign.switches;
    let Ceilings { account, keys } = &campaign.ceilings;
    let mut columns: Vec<Owned<'_>> = vec![
        Box::new(campaign.id.as_str()),
        Box::new(campaign.name.as_str()),
        Box::new(campaign.starts_at.map(|t| t.0)),
        Box::new(campaign.ends_at.map(|t| t.0)),
        Box::new(opened),
        Box::new(paused),
        Box::new(frozen),
        Box::new(closed),
    ];
    columns.extend(policy_columns(&campaign.policy)?);
    columns.push(most(account.units)?);
    columns.push(most(account.open_holds)?);
    columns.push(Box::new(row::write_limits(keys)?));
    columns.push(Box::new(campaign.created_at.0));
    columns.push(Box::new(campaign.updated_at.0));
    Ok(columns)
}

fn most(most: Option<u64>) -> Result<Owned<'static>, Error> {
    Ok(Box::new(most.map(integer).transpose()?))
}

fn wide(number: u32) -> Owned<'static> {
    Box::new(i64::from(number))
}

/// A policy, field by field in their order.
fn policy_columns(policy: &Policy) -> Result<Vec<Owned<'_>>, Error> {
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
    } = policy;
    Ok(vec![
        wide(*hold_seconds),
        wide(*hold_seconds_max),
        wide(*payment_extension_seconds),
        wide(*release_grace_ms),
        wide(*notice_grace_seconds),
        Box::new(capture.as_str()),
        Box::new(deadline_basis.as_str()),
        Box::new(late_payment.as_str()),
        Box::new(payment_failed.as_str()),
        wide(*review_seconds),
        Box::new(review_end.as_str()),
        Box::new(restock_on_refund),
        most(*account_limit)?,
        most(*account_open_holds)?,
        Box::new(integer(*queue_limit)?),
        wide(*queue_wait_ms),
        Box::new(row::write_limits(key_limits)?),
        Box::new(order_rate_per_account.map(i64::from)),
        Box::new(order_rate.map(i64::from)),
        most(*approval_threshold)?,
    ])
}

const PUT_TYPES: &[Type] = &[
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::BOOL,
    Type::BOOL,
    Type::BOOL,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::TEXT,
    Type::BOOL,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
];

/// Counts usage for limits that are added, and drops what nobody limits any more.
async fn recount(connection: &Connection, before: &Policy, campaign: &mut Campaign) -> Result<(), Fault> {
    let (recount, void) = Recount::of(before, &campaign.policy);
    if recount.is_none() && void == Void::default() {
        return Ok(());
    }
    // No batch of the campaign may be under way while its usage is counted or forgotten.
    let sql = "SELECT bucket.number FROM bucket JOIN pool ON pool.id = bucket.pool \
               WHERE pool.campaign_id = $1 ORDER BY bucket.pool, bucket.number FOR UPDATE OF bucket";
    rows(connection, sql, &[&campaign.id.as_str()], &[Type::TEXT]).await?;
    let counted = match recount {
        Some(recount) => count(connection, &campaign.id, recount).await?.finish(&mut campaign.ceilings),
        None => Default::default(),
    };
    usage::replace(connection, &campaign.id, &void, counted).await
}

async fn count(
    connection: &Connection,
    campaign: &CampaignId,
    mut recount: Recount,
) -> Result<Recount, Fault> {
    let mut after = OrderId(0);
    loop {
        let sql = "SELECT * FROM orders WHERE campaign_id = $1 AND id > $2 ORDER BY id LIMIT $3";
        let types = [Type::TEXT, Type::UUID, Type::INT8];
        let found = rows(connection, sql, &[&campaign.as_str(), &uuid(after.0), &COUNTED], &types).await?;
        let orders = all(&found, row::order).map_err(Fault::Refused)?;
        let Some(last) = orders.last() else { return Ok(recount) };
        after = last.id;
        orders.iter().for_each(|order| recount.order(order));
    }
}

impl Work for PutAssortment {
    type Output = Result<(Arc<Campaign>, How), Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let Some(mut campaign) = locked(connection, &self.campaign).await? else {
            return Ok(Err(Refusal::UnknownCampaign));
        };
        let has_pool = match self.bundle() {
            Some(sku) => has_pool(connection, &self.campaign, sku).await?,
            None => false,
        };
        let (after, how) = match self.onto(&campaign, has_pool) {
            Ok(done) => done,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if how != How::Repeated {
            let now = inner.time(connection).await?;
            let sql = "UPDATE campaign SET assortment = $2, updated_at = $3 WHERE id = $1";
            let assortment = row::write_assortment(&after).map_err(Fault::Refused)?;
            let columns: [Param<'_>; 3] = [&campaign.id.as_str(), &assortment, &now.0];
            rows(connection, sql, &columns, &[Type::TEXT, Type::TEXT, Type::INT8]).await?;
            acts::record(connection, &Act::put_assortment(self), now).await?;
            catalog::campaign_changed(connection, &campaign.id).await?;
            (campaign.assortment, campaign.updated_at) = (after, now);
        }
        Ok(Ok((Arc::new(campaign), how)))
    }
}

async fn has_pool(connection: &Connection, campaign: &CampaignId, sku: &Sku) -> Result<bool, Fault> {
    let sql = "SELECT id FROM pool WHERE campaign_id = $1 AND sku = $2 LIMIT 1";
    let found =
        rows(connection, sql, &[&campaign.as_str(), &sku.as_str()], &[Type::TEXT, Type::TEXT]).await?;
    Ok(!found.is_empty())
}

impl Work for SwitchCampaign {
    type Output = Result<Arc<Campaign>, Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let Some(campaign) = locked(connection, &self.id).await? else {
            return Ok(Err(Refusal::UnknownCampaign));
        };
        let target = match self.target(&campaign) {
            Some(pool) => of_pool(connection, pool).await?,
            None => None,
        };
        let now = inner.time(connection).await?;
        let after = match self.onto(&campaign, target.as_ref(), now) {
            Ok(Some(after)) => after,
            Ok(None) => return Ok(Ok(Arc::new(campaign))),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Switches { opened, paused, frozen, closed } = after.switches;
        let sql = "UPDATE campaign SET opened = $2, paused = $3, frozen = $4, closed = $5, unsold_to = $6, \
                   warm_asked_at = $7, updated_at = $8 WHERE id = $1";
        let unsold_to = after.unsold_to.map(|pool| uuid(pool.0));
        let warm_asked_at = after.warm_asked_at.map(|at| at.0);
        let columns: [Param<'_>; 8] = [
            &after.id.as_str(),
            &opened,
            &paused,
            &frozen,
            &closed,
            &unsold_to,
            &warm_asked_at,
            &after.updated_at.0,
        ];
        rows(connection, sql, &columns, SWITCH_TYPES).await?;
        acts::record(connection, &Act::switch(self), now).await?;
        catalog::campaign_changed(connection, &after.id).await?;
        Ok(Ok(Arc::new(after)))
    }
}

const SWITCH_TYPES: &[Type] =
    &[Type::TEXT, Type::BOOL, Type::BOOL, Type::BOOL, Type::BOOL, Type::UUID, Type::INT8, Type::INT8];

/// A pool with its campaign, which is kept from being closed meanwhile: two that name each other would both find
/// the other open.
async fn of_pool(connection: &Connection, pool: PoolId) -> Result<Option<(Pool, Campaign)>, Fault> {
    let sql = "SELECT * FROM pool WHERE id = $1";
    let found = rows(connection, sql, &[&uuid(pool.0)], &[Type::UUID]).await?;
    let Some(pool) = first(&found, row::pool).map_err(Fault::Refused)? else { return Ok(None) };
    let sql = "SELECT * FROM campaign WHERE id = $1 FOR SHARE";
    let found = rows(connection, sql, &[&pool.campaign.as_str()], &[Type::TEXT]).await?;
    let campaign = first(&found, row::campaign).map_err(Fault::Refused)?;
    Ok(campaign.map(|campaign| (pool, campaign)))
}
