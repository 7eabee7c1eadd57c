//! Evidence of orders and pools, each read in one view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::snapshot::PaymentClaim;
use holdfast_core::stock::BucketKey;
use holdfast_store::rows::{self, integer};
use holdfast_store::{
    About, ActFilter, ActRow, EVIDENCE_ENTRIES_MAX, EVIDENCE_RECORDS_MAX, EVIDENCE_SUMMED_MAX, Error,
    Evidence, ExplainOrder, ExplainPool, LedgerFilter, OrderEvidence, Page, PoolEvidence, PoolSum, Told,
    approvals_of, events_of, page_of,
};
use tokio_postgres::types::Type;

use crate::address::Address;
use crate::call::rows as ask;
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::read::{Read, View};
use crate::row::{all, first, uuid};
use crate::store::{PostgresStore, beside};
use crate::{acts, cache, query, sinks};

/// How far each bucket of a pool had come at a time: entries of a bucket are in the order of their times, so it is found
/// by halving.
const POSITIONS_AT: &str = "WITH RECURSIVE search (number, low, high) AS (\
     SELECT number, CAST(0 AS BIGINT), ledger_seq FROM bucket WHERE pool = $1 UNION ALL \
     SELECT number, CASE WHEN at <= $2 THEN (low + high + 1) / 2 ELSE low END, \
     CASE WHEN at <= $2 THEN high ELSE (low + high + 1) / 2 - 1 END FROM search LEFT JOIN ledger \
     ON ledger.pool = $1 AND ledger.bucket = number AND ledger.seq = (low + high + 1) / 2 WHERE low < high) \
     SELECT number, low AS seq FROM search WHERE low >= high";

/// What a bucket's entries did, by action.
const ACTIONS: &str = "SELECT action, count(*) AS entries, CAST(sum(delta_available) AS BIGINT) AS available, \
     CAST(sum(delta_held) AS BIGINT) AS held, CAST(sum(delta_sold) AS BIGINT) AS sold \
     FROM (SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq <= $3 ORDER BY seq LIMIT $4) AS own \
     GROUP BY action";

/// What orders have of a bucket. The inner order and limit keep the plan at the bucket's own entries.
const OWNERS: &str = "SELECT order_id, min(business_no) AS order_no, CAST(sum(delta_held) AS BIGINT) AS held, \
     CAST(sum(delta_sold) AS BIGINT) AS sold \
     FROM (SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq <= $3 ORDER BY seq LIMIT $4) AS own \
     WHERE order_id IS NOT NULL GROUP BY order_id HAVING sum(delta_held) <> 0 OR sum(delta_sold) <> 0";

/// What is known of an order.
struct OfOrder(ExplainOrder);

impl View for OfOrder {
    type Output = Option<OrderEvidence>;

    async fn see(&self, connection: &Connection) -> Result<Option<OrderEvidence>, Fault> {
        order_evidence(connection, &self.0).await
    }
}

/// What is known of a pool.
struct OfPool(ExplainPool);

impl View for OfPool {
    type Output = Option<PoolEvidence>;

    async fn see(&self, connection: &Connection) -> Result<Option<PoolEvidence>, Fault> {
        pool_evidence(connection, &self.0).await
    }
}

#[async_trait]
impl Evidence for PostgresStore {
    async fn order_evidence(&self, order: ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
        self.inner.read(OfOrder(order)).await
    }

    async fn pool_evidence(&self, of: ExplainPool) -> Result<Option<PoolEvidence>, Error> {
        self.inner.read(OfPool(of)).await
    }
}

/// Reads what is known of an order beside running servers, or without one.
pub async fn explain_order(address: &Address, order: ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
    OfOrder(order).run(&beside(address).await?).await.map_err(Fault::into_error)
}

/// Reads what is known of a pool beside running servers, or without one.
pub async fn explain_pool(address: &Address, of: ExplainPool) -> Result<Option<PoolEvidence>, Error> {
    OfPool(of).run(&beside(address).await?).await.map_err(Fault::into_error)
}

/// One more than is told.
fn one_more(told: usize) -> i64 {
    i64::try_from(told).unwrap_or(i64::MAX).saturating_add(1)
}

async fn acts_about(connection: &Connection, about: &About) -> Result<Told<ActRow>, Fault> {
    let filter = ActFilter { subject: Some(about.subject()), ..ActFilter::default() };
    let page = Page { after: None, limit: EVIDENCE_RECORDS_MAX };
    let found = acts::list(&filter, &page).map_err(Fault::Refused)?.rows(connection).await?;
    acts::page(&found, EVIDENCE_RECORDS_MAX).map_err(Fault::Refused)
}

async fn order_evidence(
    connection: &Connection,
    order: &ExplainOrder,
) -> Result<Option<OrderEvidence>, Fault> {
    let asked = match order {
        ExplainOrder::Id(id) => query::order(*id),
        ExplainOrder::Key(key) => query::order_by_key(key),
    };
    let Some(order) = query::one_order(&asked.rows(connection).await?).map_err(Fault::Refused)? else {
        return Ok(None);
    };
    let filter = LedgerFilter { order: Some(order.id), ..LedgerFilter::default() };
    let page = Page { after: None, limit: EVIDENCE_ENTRIES_MAX };
    let found = query::ledger(&filter, &page).map_err(Fault::Refused)?.rows(connection).await?;
    let entries = query::entries(&found, EVIDENCE_ENTRIES_MAX).map_err(Fault::Refused)?;
    let records = one_more(EVIDENCE_RECORDS_MAX);
    let sql = "SELECT * FROM cases WHERE order_id = $1 ORDER BY id LIMIT $2";
    let found = ask(connection, sql, &[&uuid(order.id.0), &records], &[Type::UUID, Type::INT8]).await?;
    let cases = all(&found, rows::case).map_err(Fault::Refused)?;
    let sql = "SELECT * FROM approval WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3";
    let (from, to) = approvals_of(order.id);
    let found = ask(connection, sql, &[&from, &to, &records], &[Type::TEXT, Type::TEXT, Type::INT8]).await?;
    let approvals = all(&found, |row| rows::approval(row).map(Arc::new)).map_err(Fault::Refused)?;
    let cache = match order.home {
        Some(home) => cache_of(connection, home).await?,
        None => None,
    };
    let deliveries = sinks::Deliveries(events_of(&entries.0)).see(connection).await?;
    Ok(Some(OrderEvidence {
        entries,
        deliveries,
        claims: claims(connection, &order).await?,
        cache,
        cases: page_of(cases, EVIDENCE_RECORDS_MAX),
        approvals: page_of(approvals, EVIDENCE_RECORDS_MAX),
        acts: acts_about(connection, &About::Order(order.id, order.key.campaign.clone())).await?,
        order,
    }))
}

async fn cache_of(
    connection: &Connection,
    bucket: BucketKey,
) -> Result<Option<holdfast_core::cache::CacheBucket>, Fault> {
    first(&cache::find(bucket).rows(connection).await?, rows::cache_bucket).map_err(Fault::Refused)
}

/// Which orders the payments of an order are for.
async fn claims(connection: &Connection, order: &Order) -> Result<Vec<PaymentClaim>, Fault> {
    let named = order.payments.iter().map(|p| (p.notice.provider.as_str(), p.notice.payment_id.as_str()));
    let (providers, payments): (Vec<&str>, Vec<&str>) = named.collect::<BTreeSet<_>>().into_iter().unzip();
    if payments.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT payment_claim.* FROM UNNEST($1, $2) AS named (provider, payment_id) JOIN payment_claim \
               ON payment_claim.provider = named.provider AND payment_claim.payment_id = named.payment_id \
               ORDER BY payment_claim.provider, payment_claim.payment_id";
    let types = [Type::TEXT_ARRAY, Type::TEXT_ARRAY];
    let found = ask(connection, sql, &[&providers, &payments], &types).await?;
    all(&found, rows::claim).map_err(Fault::Refused)
}

async fn pool_evidence(connection: &Connection, of: &ExplainPool) -> Result<Option<PoolEvidence>, Fault> {
    let Some(row) = query::pool(connection, of.pool).await? else { return Ok(None) };
    let at_time: Option<BTreeMap<u32, u64>> = match of.at {
        Some(at) => {
            let types = [Type::UUID, Type::INT8];
            let found = ask(connection, POSITIONS_AT, &[&uuid(of.pool.0), &at.0], &types).await?;
            Some(all(&found, rows::position_at).map_err(Fault::Refused)?.into_iter().collect())
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
            add_sums(connection, bucket, seq, &mut sum).await?;
        }
        let (entries, are_more) = entries_of(connection, of, bucket, seq, sum.entries_of_each()).await?;
        told.extend(entries);
        more |= are_more;
        caches.extend(cache_of(connection, bucket).await?);
    }
    let (buckets, actions, owners) = sum.finish();
    let sql = "SELECT * FROM cases WHERE pool = $1 ORDER BY id LIMIT $2";
    let records = one_more(EVIDENCE_RECORDS_MAX);
    let found = ask(connection, sql, &[&uuid(of.pool.0), &records], &[Type::UUID, Type::INT8]).await?;
    let cases = all(&found, rows::case).map_err(Fault::Refused)?;
    let moved = told.iter().filter(|entry: &&Entry| &*entry.source == "transfer");
    let moved: Vec<&str> = moved.map(|entry| &*entry.business_no).collect();
    let sql = "SELECT * FROM transfer WHERE id = ANY ($1) ORDER BY id";
    let found = ask(connection, sql, &[&moved], &[Type::TEXT_ARRAY]).await?;
    let transfers = all(&found, rows::transfer).map_err(Fault::Refused)?;
    Ok(Some(PoolEvidence {
        row,
        buckets,
        actions,
        owners,
        entries: (told, more),
        transfers,
        caches,
        cases: page_of(cases, EVIDENCE_RECORDS_MAX),
        acts: acts_about(connection, &About::Pool(of.pool)).await?,
    }))
}

fn short(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

async fn add_sums(
    connection: &Connection,
    bucket: BucketKey,
    seq: u64,
    sum: &mut PoolSum,
) -> Result<(), Fault> {
    let (pool, number) = (uuid(bucket.pool.0), short(bucket.number));
    let seq = integer(seq).map_err(Fault::Refused)?;
    let most = integer(EVIDENCE_SUMMED_MAX).map_err(Fault::Refused)?;
    let types = [Type::UUID, Type::INT4, Type::INT8, Type::INT8];
    let found = ask(connection, ACTIONS, &[&pool, &number, &seq, &most], &types).await?;
    for (action, of_action) in all(&found, rows::action_sum).map_err(Fault::Refused)? {
        sum.action(bucket, action, of_action);
    }
    let found = ask(connection, OWNERS, &[&pool, &number, &seq, &most], &types).await?;
    for owner in all(&found, rows::owner).map_err(Fault::Refused)? {
        sum.owner(owner);
    }
    Ok(())
}

/// The last entries of a bucket, or the first of the range, in order.
async fn entries_of(
    connection: &Connection,
    of: &ExplainPool,
    bucket: BucketKey,
    seq: u64,
    most: usize,
) -> Result<Told<Entry>, Fault> {
    let order = if of.from_seq.is_some() { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq >= $3 AND seq <= $4 ORDER BY seq {order} LIMIT $5"
    );
    let from = integer(of.from_seq.unwrap_or(0)).map_err(Fault::Refused)?;
    let asked = Query::whole(&sql)
        .with(uuid(bucket.pool.0), Type::UUID)
        .with(short(bucket.number), Type::INT4)
        .with(from, Type::INT8)
        .with(integer(seq).map_err(Fault::Refused)?, Type::INT8)
        .with(one_more(most), Type::INT8);
    let found = all(&asked.rows(connection).await?, rows::entry).map_err(Fault::Refused)?;
    let (mut entries, more) = page_of(found, most);
    entries.sort_unstable_by_key(|entry| entry.seq);
    Ok((entries, more))
}
