//! Loads the rows that a batch names, inside the writer's transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::command::Command;
use holdfast_core::id::{CampaignId, OrderId, PoolId};
use holdfast_core::limit::Limited;
use holdfast_core::snapshot::{LockSet, Needs, Snapshot};
use holdfast_store::Error;
use holdfast_store::rows::{self as row, Row};
use rusqlite::{Connection, Params, params};

use crate::cases;
use crate::codec::{all, bytes, next};
use crate::error::Driver;
use crate::{approvals, cache, files, queue, reconcile};

/// Every row that a batch needs to be decided.
pub(crate) fn snapshot(db: &Connection, locks: &LockSet, commands: &[Command]) -> Result<Snapshot, Error> {
    let needs = Needs::of(commands);
    let mut rows = Snapshot::default();
    load_orders(db, &needs, &mut rows)?;
    load_payments(db, &needs, &mut rows)?;
    load_adjustments(db, &needs, &mut rows)?;
    load_transfers(db, &needs, &mut rows)?;
    load_stock(db, &needs, locks, &mut rows)?;
    files::load(db, &needs, &mut rows)?;
    approvals::load(db, &needs, &mut rows)?;
    cache::load(db, &needs, &mut rows)?;
    reconcile::load(db, &needs, &mut rows)?;
    for (pool, at) in rows.counts_of(commands) {
        rows.since.insert((pool, at), files::since(db, pool, at)?);
    }
    load_campaigns(db, &needs, &mut rows)?;
    load_usage(db, commands, &mut rows)?;
    rows.queue_lengths = queue::lengths(db, needs.queues.iter().copied())?;
    rows.halted = cases::halted(db)?;
    Ok(rows)
}

/// Reads at most one row.
pub(crate) fn one<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&dyn Row) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = db.prepare_cached(sql).store()?;
    next(&mut statement.query(params).store()?, read)
}

/// Reads every row.
pub(crate) fn many<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&dyn Row) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut statement = db.prepare_cached(sql).store()?;
    all(statement.query(params).store()?, read)
}

fn load_orders(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    let mut found = Vec::new();
    for key in &needs.order_keys {
        let sql = "SELECT * FROM orders WHERE campaign_id = ?1 AND order_no = ?2";
        found.extend(one(db, sql, params![key.campaign.as_str(), key.order_no.as_str()], row::order)?);
    }
    for order in &needs.orders {
        found.extend(one(db, "SELECT * FROM orders WHERE id = ?1", params![bytes(order.0)], row::order)?);
    }
    for order in found {
        rows.order_keys.insert(order.key.clone(), order.id);
        rows.orders.insert(order.id, Arc::new(order));
    }
    Ok(())
}

fn load_payments(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    let owner = |row: &dyn Row| row::number_id(row, "order_id").map(OrderId);
    for (provider, event) in &needs.events {
        let sql = "SELECT order_id FROM payment WHERE provider = ?1 AND event_id = ?2";
        if let Some(order) = one(db, sql, params![provider.as_str(), event.as_str()], owner)? {
            rows.events.insert(((*provider).clone(), (*event).clone()), order);
        }
    }
    for (provider, payment) in &needs.payments {
        let sql = "SELECT order_id FROM payment_claim WHERE provider = ?1 AND payment_id = ?2";
        if let Some(order) = one(db, sql, params![provider.as_str(), payment.as_str()], owner)? {
            rows.claims.insert(((*provider).clone(), (*payment).clone()), order);
        }
    }
    Ok(())
}

fn load_adjustments(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    for adjustment in &needs.adjustments {
        let sql = "SELECT * FROM adjustment WHERE id = ?1";
        if let Some(known) = one(db, sql, params![adjustment.as_str()], row::adjustment)? {
            rows.adjustments.insert(known.adjustment_id.clone(), known);
        }
    }
    Ok(())
}

fn load_transfers(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    for transfer in &needs.transfers {
        let sql = "SELECT * FROM transfer WHERE id = ?1";
        if let Some(known) = one(db, sql, params![transfer.as_str()], row::transfer)? {
            rows.transfers.insert(known.transfer_id.clone(), known);
        }
    }
    Ok(())
}

fn load_stock(db: &Connection, needs: &Needs<'_>, locks: &LockSet, rows: &mut Snapshot) -> Result<(), Error> {
    let mut pools: BTreeSet<PoolId> = needs.pools.clone();
    pools.extend(locks.pools.iter().copied());
    pools.extend(locks.buckets.iter().map(|key| key.pool));
    pools.extend(rows.orders.values().flat_map(|order| order.pools()));
    for (campaign, sku, location) in &needs.pool_addresses {
        let sql = "SELECT * FROM pool WHERE campaign_id = ?1 AND sku = ?2 AND location = ?3";
        let key = params![campaign.as_str(), sku.as_str(), location.as_str()];
        if let Some(pool) = one(db, sql, key, row::pool)? {
            rows.pool_addresses.insert(((*campaign).clone(), (*sku).clone(), (*location).clone()), pool.id);
            lock_pool(db, pool.id, rows)?;
            rows.pools.insert(pool.id, pool);
        }
    }
    for pool in pools {
        if !rows.pools.contains_key(&pool) {
            let read = one(db, "SELECT * FROM pool WHERE id = ?1", params![bytes(pool.0)], row::pool)?;
            rows.pools.extend(read.map(|pool| (pool.id, pool)));
        }
    }
    for pool in &locks.pools {
        lock_pool(db, *pool, rows)?;
    }
    for key in &locks.buckets {
        if !rows.buckets.contains_key(key) {
            let sql = "SELECT * FROM bucket WHERE pool = ?1 AND number = ?2";
            let read = one(db, sql, params![bytes(key.pool.0), key.number], row::bucket)?;
            rows.buckets.extend(read.map(|bucket| (bucket.key, bucket)));
        }
    }
    Ok(())
}

fn lock_pool(db: &Connection, pool: PoolId, rows: &mut Snapshot) -> Result<(), Error> {
    let sql = "SELECT * FROM bucket WHERE pool = ?1 ORDER BY number";
    for bucket in many(db, sql, params![bytes(pool.0)], row::bucket)? {
        rows.buckets.insert(bucket.key, bucket);
    }
    Ok(())
}

fn load_campaigns(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    let mut campaigns: BTreeSet<CampaignId> = needs.campaigns.iter().map(|id| (*id).clone()).collect();
    campaigns.extend(rows.orders.values().map(|order| order.key.campaign.clone()));
    campaigns.extend(rows.pools.values().map(|pool| pool.campaign.clone()));
    for campaign in campaigns {
        let read =
            one(db, "SELECT * FROM campaign WHERE id = ?1", params![campaign.as_str()], row::campaign)?;
        rows.campaigns.extend(read.map(|campaign| (campaign.id.clone(), Arc::new(campaign))));
    }
    Ok(())
}

fn load_usage(db: &Connection, commands: &[Command], rows: &mut Snapshot) -> Result<(), Error> {
    for key in rows.usage_of(commands) {
        let campaign = key.campaign.as_str();
        let found = match &key.limited {
            Limited::Account(account) => {
                let sql =
                    "SELECT units, open_holds FROM account_usage WHERE campaign_id = ?1 AND account = ?2";
                one(db, sql, params![campaign, account.as_str()], row::usage)?
            }
            Limited::Key(name, hashed) => {
                let sql = "SELECT units, open_holds FROM key_usage WHERE campaign_id = ?1 AND name = ?2 AND hashed = ?3";
                one(db, sql, params![campaign, name.as_str(), bytes(hashed.0)], row::usage)?
            }
        };
        rows.usage.extend(found.map(|usage| (key, usage)));
    }
    Ok(())
}
