//! Writes what a decision changed, inside the writer's transaction. Every statement is conditional on
//! what was read; another row count than expected is an error of this batch.

use holdfast_core::command::{Adjust, Transfer};
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Limited;
use holdfast_core::order::{Order, Usage};
use holdfast_core::snapshot::{BucketChange, Changes, OrderChange, UsageKey};
use holdfast_core::stock::{BucketKey, Pool};
use holdfast_store::Error;
use holdfast_store::rows::{integer, write_detail, write_keys, write_lines};
use rusqlite::{Connection, Params, params};

use crate::codec::bytes;
use crate::error::{Driver, of_entry};
use crate::{approvals, cache, cases, catalog, files, reconcile};

/// Writes every change of a batch.
pub(crate) fn changes(db: &Connection, changes: &Changes) -> Result<(), Error> {
    for pool in &changes.pools {
        insert_pool(db, pool)?;
    }
    for pool in &changes.changed_pools {
        update_pool(db, pool)?;
    }
    for (key, weight) in &changes.weights {
        update_weight(db, *key, *weight)?;
    }
    for change in &changes.orders {
        write_order(db, change)?;
    }
    for entry in &changes.entries {
        insert_entry(db, entry)?;
    }
    for change in &changes.buckets {
        write_bucket(db, change)?;
    }
    for change in &changes.caches {
        cache::write(db, change)?;
    }
    for (key, usage) in &changes.usage {
        write_usage(db, key, *usage)?;
    }
    for case in &changes.cases {
        cases::open(db, case)?;
    }
    for row in &changes.payments {
        let sql = "INSERT INTO payment (provider, event_id, payment_id, order_id, outcome) VALUES (?1, ?2, ?3, ?4, ?5)";
        let order = bytes(row.order.0);
        let (provider, event, payment) =
            (row.provider.as_str(), row.event_id.as_str(), row.payment_id.as_str());
        exactly_one(db, sql, params![provider, event, payment, order, row.outcome.as_str()])?;
    }
    for claim in &changes.claims {
        let sql = "INSERT INTO payment_claim (provider, payment_id, order_id) VALUES (?1, ?2, ?3)";
        let (provider, payment, order) =
            (claim.provider.as_str(), claim.payment_id.as_str(), bytes(claim.order.0));
        exactly_one(db, sql, params![provider, payment, order])?;
    }
    for adjust in &changes.adjustments {
        insert_adjustment(db, adjust)?;
    }
    for transfer in &changes.transfers {
        insert_transfer(db, transfer)?;
    }
    for import in &changes.imports {
        files::insert(db, import)?;
    }
    approvals::write(db, changes)?;
    reconcile::write(db, changes)
}

/// Writes a usage row as it stands after the batch.
pub(crate) fn write_usage(db: &Connection, key: &UsageKey, usage: Usage) -> Result<(), Error> {
    let (campaign, units, open) = (key.campaign.as_str(), integer(usage.units)?, integer(usage.open_holds)?);
    match &key.limited {
        Limited::Account(account) => {
            let sql = "INSERT INTO account_usage (campaign_id, account, units, open_holds) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (campaign_id, account) DO UPDATE SET units = ?3, open_holds = ?4";
            exactly_one(db, sql, params![campaign, account.as_str(), units, open])
        }
        Limited::Key(name, hashed) => {
            let sql = "INSERT INTO key_usage (campaign_id, name, hashed, units, open_holds) VALUES (?1, ?2, ?3, ?4, ?5) \
                       ON CONFLICT (campaign_id, name, hashed) DO UPDATE SET units = ?4, open_holds = ?5";
            exactly_one(db, sql, params![campaign, name.as_str(), bytes(hashed.0), units, open])
        }
    }
}

pub(crate) fn exactly_one(db: &Connection, sql: &str, params: impl Params) -> Result<(), Error> {
    let mut statement = db.prepare_cached(sql).store()?;
    match statement.execute(params).store()? {
        1 => Ok(()),
        count => Err(Error::Data(format!("{count} rows instead of 1: {sql}"))),
    }
}

fn insert_pool(db: &Connection, pool: &Pool) -> Result<(), Error> {
    let sql = "INSERT INTO pool (id, campaign_id, sku, location, buckets, opening_supply, opening_buckets, \
               opening_path, opening_routing, frozen, retired, path, routing, max_concurrency, cache_fallback, \
               catalog_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let opening = pool.opening;
    exactly_one(
        db,
        sql,
        params![
            bytes(pool.id.0),
            pool.campaign.as_str(),
            pool.sku.as_str(),
            pool.location.as_str(),
            pool.buckets,
            integer(opening.supply)?,
            opening.buckets,
            opening.path.as_str(),
            opening.routing.as_str(),
            pool.frozen,
            pool.retired,
            pool.path.as_str(),
            pool.routing.as_str(),
            pool.max_concurrency,
            pool.cache_fallback.as_str(),
            catalog::next_version(db)?,
        ],
    )
}

/// Writes what may change of a pool.
pub(crate) fn update_pool(db: &Connection, pool: &Pool) -> Result<(), Error> {
    let sql = "UPDATE pool SET buckets = ?2, frozen = ?3, retired = ?4, path = ?5, routing = ?6, \
               max_concurrency = ?7, cache_fallback = ?8, catalog_version = ?9 WHERE id = ?1";
    exactly_one(
        db,
        sql,
        params![
            bytes(pool.id.0),
            pool.buckets,
            pool.frozen,
            pool.retired,
            pool.path.as_str(),
            pool.routing.as_str(),
            pool.max_concurrency,
            pool.cache_fallback.as_str(),
            catalog::next_version(db)?,
        ],
    )
}

fn update_weight(db: &Connection, key: BucketKey, weight: u32) -> Result<(), Error> {
    let sql = "UPDATE bucket SET weight = ?3 WHERE pool = ?1 AND number = ?2";
    exactly_one(db, sql, params![bytes(key.pool.0), key.number, weight])
}

fn write_bucket(db: &Connection, change: &BucketChange) -> Result<(), Error> {
    let bucket = &change.bucket;
    let (pool, number) = (bytes(bucket.key.pool.0), bucket.key.number);
    let (available, held, sold) = (integer(bucket.available)?, integer(bucket.held)?, integer(bucket.sold)?);
    let (seq, at) = (integer(bucket.ledger_seq)?, bucket.last_at.0);
    match change.base_seq {
        None => {
            let sql = "INSERT INTO bucket (pool, number, weight, available, held, sold, ledger_seq, last_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            exactly_one(db, sql, params![pool, number, bucket.weight, available, held, sold, seq, at])
        }
        Some(base) => {
            let sql = "UPDATE bucket SET available = ?3, held = ?4, sold = ?5, ledger_seq = ?6, last_at = ?7 \
                       WHERE pool = ?1 AND number = ?2 AND ledger_seq = ?8";
            exactly_one(db, sql, params![pool, number, available, held, sold, seq, at, integer(base)?])
        }
    }
}

fn write_order(db: &Connection, change: &OrderChange) -> Result<(), Error> {
    let order: &Order = &change.order;
    let id = bytes(order.id.0);
    let (home_pool, home_bucket) = order.home.map(|home| (bytes(home.pool.0), home.number)).unzip();
    let reason = order.reason.map(holdfast_core::order::Reason::as_str);
    let (lines, detail) = (write_lines(&order.lines)?, write_detail(order)?);
    let (ends, due) = (order.hold_ends_at.map(|t| t.0), order.due_at.map(|t| t.0));
    let refund_due = order.refund_due.as_ref().map(|due| due.since.0);
    let Some(base_version) = change.base_version else {
        let sql = "INSERT INTO orders (id, campaign_id, order_no, account, state, reason, version, home_pool, \
                   home_bucket, lines, hold_seconds, hold_seconds_sent, hold_ends_at, due_at, extended, amount_minor, \
                   currency, refund_due_since, detail, metadata, created_at, updated_at, limit_keys) VALUES (?1, ?2, ?3, ?4, ?5, \
                   ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";
        let (campaign, order_no) = (order.key.campaign.as_str(), order.key.order_no.as_str());
        let amount_minor = order.amount_due.as_ref().map(|m| m.amount_minor);
        let currency = order.amount_due.as_ref().map(|m| &*m.currency);
        return exactly_one(
            db,
            sql,
            params![
                id,
                campaign,
                order_no,
                order.account.as_str(),
                order.state.as_str(),
                reason,
                order.version,
                home_pool,
                home_bucket,
                lines,
                order.hold_seconds,
                order.hold_seconds_sent,
                ends,
                due,
                order.extended,
                amount_minor,
                currency,
                refund_due,
                detail,
                order.metadata.as_deref(),
                order.created_at.0,
                order.updated_at.0,
                write_keys(&order.limit_keys)?,
            ],
        );
    };
    let sql = "UPDATE orders SET state = ?2, reason = ?3, version = ?4, lines = ?5, hold_ends_at = ?6, due_at = ?7, \
               extended = ?8, refund_due_since = ?9, detail = ?10, updated_at = ?11, home_pool = ?12, home_bucket = ?13 \
               WHERE id = ?1 AND version = ?14";
    exactly_one(
        db,
        sql,
        params![
            id,
            order.state.as_str(),
            reason,
            order.version,
            lines,
            ends,
            due,
            order.extended,
            refund_due,
            detail,
            order.updated_at.0,
            home_pool,
            home_bucket,
            base_version,
        ],
    )
}

fn insert_entry(db: &Connection, entry: &Entry) -> Result<(), Error> {
    let sql = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, delta_held, \
               delta_sold, settled, from_state, to_state, order_version, source, actor, reason, covers_first, covers_last) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
    let written = db.prepare_cached(sql).store()?.execute(params![
        bytes(entry.bucket.pool.0),
        entry.bucket.number,
        integer(entry.seq)?,
        entry.at.0,
        entry.order_id.map(|id| bytes(id.0)),
        &*entry.business_no,
        entry.action.as_str(),
        entry.delta.available,
        entry.delta.held,
        entry.delta.sold,
        integer(entry.settled)?,
        entry.from_state.map(holdfast_core::order::State::as_str),
        entry.to_state.map(holdfast_core::order::State::as_str),
        entry.order_version,
        &*entry.source,
        &*entry.actor,
        &*entry.reason,
        entry.covers.map(|covers| integer(covers.first)).transpose()?,
        entry.covers.map(|covers| integer(covers.last)).transpose()?,
    ]);
    written.map(drop).map_err(|error| of_entry(&error))
}

fn insert_adjustment(db: &Connection, adjust: &Adjust) -> Result<(), Error> {
    let sql = "INSERT INTO adjustment (id, pool, delta, kind, bucket, operator, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (id, pool, kind) = (adjust.adjustment_id.as_str(), bytes(adjust.pool.0), adjust.kind.as_str());
    let (operator, reason) = (&*adjust.signed.actor, &*adjust.signed.reason);
    exactly_one(db, sql, params![id, pool, adjust.delta, kind, adjust.bucket, operator, reason])
}

fn insert_transfer(db: &Connection, transfer: &Transfer) -> Result<(), Error> {
    let sql = "INSERT INTO transfer (id, from_pool, from_bucket, to_pool, to_bucket, quantity, operator, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (from, to) = (transfer.from, transfer.to);
    exactly_one(
        db,
        sql,
        params![
            transfer.transfer_id.as_str(),
            bytes(from.pool.0),
            from.bucket,
            bytes(to.pool.0),
            to.bucket,
            integer(transfer.quantity)?,
            &*transfer.signed.actor,
            &*transfer.signed.reason,
        ],
    )
}
