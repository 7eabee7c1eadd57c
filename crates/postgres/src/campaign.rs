//! Campaigns and switches: written by transactions of their own. A campaign's row is locked before anything of it
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::campaign::{Campaign, Policy, Switches};
use holdfast_core::id::{Account, CampaignId, OrderId};
use holdfast_core::order::Usage;
use holdfast_core::refusal::Refusal;
use holdfast_store::rows::{self as row, integer};
use holdfast_store::{Act, PoolFreeze, PoolRow, PutCampaign, SwitchCampaign};
use tokio_postgres::types::Type;

use crate::acts;
use crate::call::{Work, rows};
use crate::connection::Connection;
use crate::error::Fault;
use crate::query;
use crate::row::{all, first, uuid};
use crate::store::Inner;

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
        let campaign = self.clone().onto(before.as_ref(), now);
        let counted = before.as_ref().is_some_and(|known| known.policy.limits_accounts());
        let counts = campaign.policy.limits_accounts();
        if counted != counts && !created {
            // No batch of the campaign may be under way while its usage is counted or forgotten.
            let sql = "SELECT bucket.number FROM bucket JOIN pool ON pool.id = bucket.pool \
                       WHERE pool.campaign_id = $1 ORDER BY bucket.pool, bucket.number FOR UPDATE OF bucket";
            rows(connection, sql, &[&self.id.as_str()], &[Type::TEXT]).await?;
        }
        let sql = if created { INSERT } else { UPDATE };
        write(connection, sql, &campaign).await?;
        if counts && !counted && !created {
            count_usage(connection, &campaign.id).await?;
        } else if counted && !counts {
            let sql = "DELETE FROM account_usage WHERE campaign_id = $1";
            rows(connection, sql, &[&campaign.id.as_str()], &[Type::TEXT]).await?;
        }
        if let Some(act) = Act::put_campaign(before.as_ref(), &campaign, self.via.as_ref()) {
            acts::record(connection, &act, now).await?;
        }
        Ok((Arc::new(campaign), created))
    }
}

/// A campaign that is new must not be there: two nodes may make it at the same time.
const INSERT: &str = include_str!("sql/insert_campaign.sql");
const UPDATE: &str = include_str!("sql/update_campaign.sql");

async fn write(connection: &Connection, sql: &str, campaign: &Campaign) -> Result<(), Fault> {
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
    } = &campaign.policy;
    let Switches { opened, paused, frozen, closed } = campaign.switches;
    let wide = |seconds: &u32| i64::from(*seconds);
    let bounded = |count: &Option<u64>| count.map(integer).transpose().map_err(Fault::Refused);
    let (numbers, words) = (
        [hold_seconds, hold_seconds_max, payment_extension_seconds].map(wide),
        [capture.as_str(), deadline_basis.as_str(), late_payment.as_str(), payment_failed.as_str()],
    );
    let [seconds, seconds_max, extension] = &numbers;
    let [capture, basis, late, failed] = &words;
    let (grace, notice, review) = (wide(release_grace_ms), wide(notice_grace_seconds), wide(review_seconds));
    let (limit, holds) = (bounded(account_limit)?, bounded(account_open_holds)?);
    let (queue_limit, queue_wait_ms) = (integer(*queue_limit).map_err(Fault::Refused)?, wide(queue_wait_ms));
    let ceiling = bounded(&campaign.account_limit_ceiling)?;
    let (starts, ends) = (campaign.starts_at.map(|t| t.0), campaign.ends_at.map(|t| t.0));
    rows(
        connection,
        sql,
        &[
            &campaign.id.as_str(),
            &campaign.name,
            &starts,
            &ends,
            &opened,
            &paused,
            &frozen,
            &closed,
            seconds,
            seconds_max,
            extension,
            &grace,
            &notice,
            capture,
            basis,
            late,
            failed,
            &review,
            &review_end.as_str(),
            restock_on_refund,
            &limit,
            &holds,
            &ceiling,
            &queue_limit,
            &queue_wait_ms,
            &campaign.created_at.0,
            &campaign.updated_at.0,
        ],
        PUT_TYPES,
    )
    .await?;
    Ok(())
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
    Type::INT8,
    Type::INT8,
    Type::INT8,
];

/// Counts what every account has, for a limit that is added later. No batch of the campaign runs meanwhile.
async fn count_usage(connection: &Connection, campaign: &CampaignId) -> Result<(), Fault> {
    let mut usage: BTreeMap<Account, Usage> = BTreeMap::new();
    let mut after = OrderId(0);
    loop {
        let sql = "SELECT * FROM orders WHERE campaign_id = $1 AND id > $2 ORDER BY id LIMIT $3";
        let types = [Type::TEXT, Type::UUID, Type::INT8];
        let found = rows(connection, sql, &[&campaign.as_str(), &uuid(after.0), &COUNTED], &types).await?;
        let orders = all(&found, row::order).map_err(Fault::Refused)?;
        let Some(last) = orders.last() else { break };
        after = last.id;
        for order in orders {
            let own = order.usage();
            if own != Usage::default() {
                let sum = usage.entry(order.account).or_default();
                sum.units += own.units;
                sum.open_holds += own.open_holds;
            }
        }
    }
    let accounts: Vec<&str> = usage.keys().map(Account::as_str).collect();
    let count = |read: fn(&Usage) -> u64| {
        usage
            .values()
            .map(|usage| integer(read(usage)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Fault::Refused)
    };
    let (units, open) = (count(|usage| usage.units)?, count(|usage| usage.open_holds)?);
    let sql = "INSERT INTO account_usage (campaign_id, account, units, open_holds) \
               SELECT $1, counted.* FROM UNNEST($2, $3, $4) AS counted";
    let types = [Type::TEXT, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY];
    rows(connection, sql, &[&campaign.as_str(), &accounts, &units, &open], &types).await?;
    Ok(())
}

impl Work for SwitchCampaign {
    type Output = Result<Arc<Campaign>, Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let Some(mut campaign) = locked(connection, &self.id).await? else {
            return Ok(Err(Refusal::UnknownCampaign));
        };
        let Some(after) = campaign.switches.after(self.switch) else {
            return Ok(Err(Refusal::CampaignClosed));
        };
        if after != campaign.switches {
            let now = inner.time(connection).await?;
            campaign.switches = after;
            campaign.updated_at = now;
            write(connection, UPDATE, &campaign).await?;
            acts::record(connection, &Act::switch(self), now).await?;
        }
        Ok(Ok(Arc::new(campaign)))
    }
}

impl Work for PoolFreeze {
    type Output = Result<PoolRow, Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let sql = "UPDATE pool SET frozen = $2 WHERE id = $1 AND frozen <> $2 RETURNING id";
        let changed =
            rows(connection, sql, &[&uuid(self.id.0), &self.frozen], &[Type::UUID, Type::BOOL]).await?;
        if !changed.is_empty() {
            let now = inner.time(connection).await?;
            acts::record(connection, &Act::freeze(self), now).await?;
        }
        Ok(query::pool(connection, self.id).await?.ok_or(Refusal::UnknownPool))
    }
}
