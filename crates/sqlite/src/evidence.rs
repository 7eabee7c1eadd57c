//! Evidence of orders and pools, each read in one snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use async_trait::async_trait;
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::snapshot::PaymentClaim;
use holdfast_core::stock::BucketKey;
use holdfast_store::rows::{self, integer};
use holdfast_store::{
    About, ActFilter, EVIDENCE_ENTRIES_MAX, EVIDENCE_RECORDS_MAX, EVIDENCE_SUMMED_MAX, Error, Evidence,
    ExplainOrder, ExplainPool, LedgerFilter, OrderEvidence, Page, PoolEvidence, PoolSum, Told, approvals_of,
    events_of, page_of,
};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};
use crate::store::{SqliteStore, beside};
use crate::{acts, cache, query, sinks};

/// How far each bucket of a pool had come at a time: entries of a bucket are in the order of their times, so it is found
/// by halving.
const POSITIONS_AT: &str = "WITH RECURSIVE search (number, low, high) AS (\
     SELECT number, 0, ledger_seq FROM bucket WHERE pool = ?1 UNION ALL \
     SELECT number, CASE WHEN at <= ?2 THEN (low + high + 1) / 2 ELSE low END, \
     CASE WHEN at <= ?2 THEN high ELSE (low + high + 1) / 2 - 1 END FROM search LEFT JOIN ledger \
     ON ledger.pool = ?1 AND ledger.bucket = number AND ledger.seq = (low + high + 1) / 2 WHERE low < high) \
     SELECT number, low AS seq FROM search WHERE low >= high";

/// What a bucket's entries did, by action.
const ACTIONS: &str = "SELECT action, count(*) AS entries, sum(delta_available) AS available, sum(delta_held) AS held, \
     sum(delta_sold) AS sold FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq <= ?3 GROUP BY action";

/// What orders have of a bucket.
const OWNERS: &str = "SELECT order_id, min(business_no) AS order_no, sum(delta_held) AS held, sum(delta_sold) AS sold FROM \
     (SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq <= ?3 AND order_id IS NOT NULL LIMIT ?4) \
     GROUP BY order_id HAVING sum(delta_held) <> 0 OR sum(delta_sold) <> 0";

#[async_trait]
impl Evidence for SqliteStore {
    async fn order_evidence(&self, order: ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
        self.readers.read(move |db| in_one_view(db, |db| order_evidence(db, &order))).await
    }

    async fn pool_evidence(&self, of: ExplainPool) -> Result<Option<PoolEvidence>, Error> {
        self.readers.read(move |db| in_one_view(db, |db| pool_evidence(db, &of))).await
    }
}

/// Reads what is known of an order beside a running server, or without one.
pub fn explain_order_file(path: &Path, order: &ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
    in_one_view(&beside(path)?, |db| order_evidence(db, order))
}

/// Reads what is known of a pool beside a running server, or without one.
pub fn explain_pool_file(path: &Path, of: &ExplainPool) -> Result<Option<PoolEvidence>, Error> {
    in_one_view(&beside(path)?, |db| pool_evidence(db, of))
}

fn in_one_view<T>(db: &Connection, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
    db.execute_batch("BEGIN").store()?;
    let found = read(db);
    db.execute_batch("ROLLBACK").store()?;
    found
}

/// One more than is told.
fn one_more(told: usize) -> i64 {
    i64::try_from(told).unwrap_or(i64::MAX).saturating_add(1)
}

fn acts_about(db: &Connection, about: &About) -> Result<Told<holdfast_store::ActRow>, Error> {
    let filter = ActFilter { subject: Some(about.subject()), ..ActFilter::default() };
    acts::list(db, &filter, &Page { after: None, limit: EVIDENCE_RECORDS_MAX })
}

fn order_evidence(db: &Connection, order: &ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
    let found = match order {
        ExplainOrder::Id(id) => query::order(db, *id)?,
        ExplainOrder::Key(key) => query::order_by_key(db, key)?,
    };
    let Some(order) = found else { return Ok(None) };
    let filter = LedgerFilter { order: Some(order.id), ..LedgerFilter::default() };
    let entries = query::ledger(db, &filter, &Page { after: None, limit: EVIDENCE_ENTRIES_MAX })?;
    let sql = "SELECT * FROM cases WHERE order_id = ?1 ORDER BY id LIMIT ?2";
    let records = one_more(EVIDENCE_RECORDS_MAX);
    let cases = many(db, sql, params![bytes(order.id.0), records], rows::case)?;
    let sql = "SELECT * FROM approval WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
    let (from, to) = approvals_of(order.id);
    let approvals = many(db, sql, params![from, to, records], rows::approval)?;
    let deliveries = sinks::deliveries(db, &events_of(&entries.0))?;
    Ok(Some(OrderEvidence {
        entries,
        deliveries,
        claims: claims(db, &order)?,
        cache: order.home.map(|home| cache::find(db, home)).transpose()?.flatten(),
        cases: page_of(cases, EVIDENCE_RECORDS_MAX),
        approvals: page_of(approvals.into_iter().map(Into::into).collect(), EVIDENCE_RECORDS_MAX),
        acts: acts_about(db, &About::Order(order.id, order.key.campaign.clone()))?,
        order,
    }))
}

/// Which orders the payments of an order are for.
fn claims(db: &Connection, order: &Order) -> Result<Vec<PaymentClaim>, Error> {
    let named = order.payments.iter().map(|p| (p.notice.provider.as_str(), p.notice.payment_id.as_str()));
    let mut claims = Vec::new();
    for (provider, payment) in named.collect::<BTreeSet<_>>() {
        let sql = "SELECT * FROM payment_claim WHERE provider = ?1 AND payment_id = ?2";
        claims.extend(one(db, sql, params![provider, payment], rows::claim)?);
    }
    Ok(claims)
}

fn pool_evidence(db: &Connection, of: &ExplainPool) -> Result<Option<PoolEvidence>, Error> {
    let Some(row) = query::pool(db, of.pool)? else { return Ok(None) };
    let at_time: Option<BTreeMap<u32, u64>> = match of.at {
        Some(at) => {
            let found = many(db, POSITIONS_AT, params![bytes(of.pool.0), at.0], rows::position_at)?;
            Some(found.into_iter().collect())
        }
        None => None,
    };
    let concerned = row.buckets.iter().filter(|bucket| of.covers(bucket.key.number));
    let mut sum = PoolSum::new(concerned.map(|bucket| {
        let at_time = at_time.as_ref().map(|at| at.get(&bucket.key.number).copied().unwrap_or(0));
        (bucket.key, of.position(bucket.ledger_seq, at_time))
    }));
    let positions = sum.positions();
    if positions.is_empty() {
        return Ok(None);
    }
    let (mut told, mut more, mut caches) = (Vec::new(), false, Vec::new());
    for (bucket, seq) in positions {
        if sum.is_summed() {
            add_sums(db, bucket, seq, &mut sum)?;
        }
        let (entries, are_more) = entries_of(db, of, bucket, seq, sum.entries_of_each())?;
        told.extend(entries);
        more |= are_more;
        caches.extend(cache::find(db, bucket)?);
    }
    let (buckets, actions, owners) = sum.finish();
    let sql = "SELECT * FROM cases WHERE pool = ?1 ORDER BY id LIMIT ?2";
    let cases = many(db, sql, params![bytes(of.pool.0), one_more(EVIDENCE_RECORDS_MAX)], rows::case)?;
    let mut transfers = Vec::new();
    let moved: BTreeSet<&str> =
        told.iter().filter(|e| &*e.source == "transfer").map(|e| &*e.business_no).collect();
    for id in moved {
        transfers.extend(one(db, "SELECT * FROM transfer WHERE id = ?1", params![id], rows::transfer)?);
    }
    Ok(Some(PoolEvidence {
        row,
        buckets,
        actions,
        owners,
        entries: (told, more),
        transfers,
        caches,
        cases: page_of(cases, EVIDENCE_RECORDS_MAX),
        acts: acts_about(db, &About::Pool(of.pool))?,
    }))
}

fn add_sums(db: &Connection, bucket: BucketKey, seq: u64, sum: &mut PoolSum) -> Result<(), Error> {
    let (pool, number, seq) = (bytes(bucket.pool.0), bucket.number, integer(seq)?);
    for (action, of_action) in many(db, ACTIONS, params![pool, number, seq], rows::action_sum)? {
        sum.action(bucket, action, of_action);
    }
    let most = integer(EVIDENCE_SUMMED_MAX)?;
    for owner in many(db, OWNERS, params![pool, number, seq, most], rows::owner)? {
        sum.owner(owner);
    }
    Ok(())
}

/// The last entries of a bucket, or the first of the range, in order.
fn entries_of(
    db: &Connection,
    of: &ExplainPool,
    bucket: BucketKey,
    seq: u64,
    most: usize,
) -> Result<Told<Entry>, Error> {
    let order = if of.from_seq.is_some() { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq >= ?3 AND seq <= ?4 ORDER BY seq {order} LIMIT ?5"
    );
    let (from, to) = (integer(of.from_seq.unwrap_or(0))?, integer(seq)?);
    let params = params![bytes(bucket.pool.0), bucket.number, from, to, one_more(most)];
    let (mut entries, more) = page_of(many(db, &sql, params, rows::entry)?, most);
    entries.sort_unstable_by_key(|entry| entry.seq);
    Ok((entries, more))
}
