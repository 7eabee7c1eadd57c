//! What stands after the positions of sinks.

use holdfast_core::id::CampaignId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self as row, Lagging, integer};
use holdfast_store::{
    BACKLOG_BUCKETS_MAX, Backlog, Bisection, DeliveryOf, Lag, LedgerPosition, Page, SinkName, page_of,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::apply::short;
use crate::call::rows;
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::read::View;
use crate::row::{all, uuid};

/// The earliest time that rounds after a place's own name.
const FROM: &str = "(SELECT min(from_at) FROM sink_round WHERE sink_round.sink = sink.name \
                    AND sink_round.round > coalesce(place.round, 0))";

/// A page of buckets in which a sink has something to look at.
pub(super) struct LagPage {
    pub(super) name: SinkName,
    pub(super) page: Page<BucketKey>,
}

impl View for LagPage {
    type Output = Vec<Lag>;

    async fn see(&self, connection: &Connection) -> Result<Vec<Lag>, Fault> {
        let (pool, number) =
            self.page.after.map_or((uuid(0), -1), |key| (uuid(key.pool.0), short(key.number)));
        let sql = format!(
            "SELECT bucket.pool, bucket.number, bucket.ledger_seq, place.seq, coalesce(place.strikes, 0) AS strikes, \
             {FROM} AS from_at FROM sink CROSS JOIN bucket LEFT JOIN sink_position AS place \
             ON place.sink = sink.name AND place.pool = bucket.pool AND place.bucket = bucket.number \
             WHERE sink.name = $1 AND (bucket.pool, bucket.number) > ($2, $3) \
             AND (bucket.ledger_seq > coalesce(place.seq, bucket.ledger_seq) OR bucket.last_at >= {FROM}) \
             ORDER BY bucket.pool, bucket.number LIMIT $4"
        );
        let limit = i64::try_from(self.page.limit).unwrap_or(i64::MAX);
        let types = [Type::TEXT, Type::UUID, Type::INT4, Type::INT8];
        let found = rows(connection, &sql, &[&self.name.as_str(), &pool, &number, &limit], &types).await?;
        let mut lags = Vec::with_capacity(found.len());
        for found in all(&found, row::lagging).map_err(Fault::Refused)? {
            lags.push(located(connection, found).await?);
        }
        Ok(lags)
    }
}

/// Finds where the sink stands, if a round was begun since it was here.
async fn located(connection: &Connection, found: Lagging) -> Result<Lag, Fault> {
    let mut seq = found.seq.unwrap_or(u64::MAX);
    if let Some(from) = found.from {
        let mut search = Bisection::new(from, found.ledger_seq);
        while let Some(look) = search.look() {
            let dated = dated(connection, &[(found.bucket, look)]).await?;
            search.tell(look, dated.first().map(|(at, _)| *at));
        }
        seq = seq.min(search.last_before());
    }
    let strikes = if found.seq == Some(seq) { found.strikes } else { 0 };
    Ok(Lag { bucket: found.bucket, seq, ledger_seq: found.ledger_seq, strikes })
}

/// Positions as columns.
pub(super) struct Columns {
    pub(super) pools: Vec<Uuid>,
    pub(super) buckets: Vec<i32>,
    pub(super) seqs: Vec<i64>,
}

impl Columns {
    pub(super) fn of<'p>(positions: impl Iterator<Item = &'p LedgerPosition>) -> Result<Self, Fault> {
        let mut columns = Self { pools: Vec::new(), buckets: Vec::new(), seqs: Vec::new() };
        for (bucket, seq) in positions {
            columns.pools.push(uuid(bucket.pool.0));
            columns.buckets.push(short(bucket.number));
            columns.seqs.push(integer(*seq).map_err(Fault::Refused)?);
        }
        Ok(columns)
    }
}

pub(super) const POSITIONS: [Type; 3] = [Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY];

/// Those of these entries that there are, with their times.
async fn dated(
    connection: &Connection,
    positions: &[LedgerPosition],
) -> Result<Vec<(Timestamp, LedgerPosition)>, Fault> {
    let Columns { pools, buckets, seqs } = Columns::of(positions.iter())?;
    let sql = "SELECT ledger.at, ledger.pool, ledger.bucket, ledger.seq FROM UNNEST($1, $2, $3) AS wanted (pool, bucket, seq) JOIN ledger \
               ON ledger.pool = wanted.pool AND ledger.bucket = wanted.bucket AND ledger.seq = wanted.seq";
    let found = rows(connection, sql, &[&pools, &buckets, &seqs], &POSITIONS).await?;
    all(&found, row::dated_entry).map_err(Fault::Refused)
}

/// How much a sink has not looked at.
pub(super) struct BacklogOf(pub(super) SinkName);

impl View for BacklogOf {
    type Output = Backlog;

    async fn see(&self, connection: &Connection) -> Result<Backlog, Fault> {
        let page = Page { after: None, limit: BACKLOG_BUCKETS_MAX.saturating_add(1) };
        let found = LagPage { name: self.0.clone(), page }.see(connection).await?;
        let (lags, more) = page_of(found, BACKLOG_BUCKETS_MAX);
        let firsts: Vec<_> = lags.iter().map(|lag| (lag.bucket, lag.seq.saturating_add(1))).collect();
        let entries = lags.iter().map(|lag| lag.ledger_seq.saturating_sub(lag.seq));
        Ok(Backlog {
            buckets: u64::try_from(lags.len()).unwrap_or(u64::MAX),
            entries: entries.fold(0, u64::saturating_add),
            oldest: dated(connection, &firsts).await?.into_iter().min(),
            more,
        })
    }
}

pub(crate) struct Deliveries(pub(crate) Vec<LedgerPosition>);

impl View for Deliveries {
    type Output = Vec<DeliveryOf>;

    async fn see(&self, connection: &Connection) -> Result<Self::Output, Fault> {
        let sql = format!(
            "SELECT sink.name AS sink, ledger.pool, ledger.bucket, ledger.seq, ledger.at, place.seq AS reached, \
             {FROM} AS from_at, dead_letter.state AS dead_state, dead_letter.attempts, dead_letter.why \
             FROM UNNEST($1, $2, $3) WITH ORDINALITY AS wanted (pool, bucket, seq, nth) JOIN ledger \
             ON ledger.pool = wanted.pool AND ledger.bucket = wanted.bucket AND ledger.seq = wanted.seq \
             CROSS JOIN sink LEFT JOIN sink_position AS place \
             ON place.sink = sink.name AND place.pool = ledger.pool AND place.bucket = ledger.bucket \
             LEFT JOIN dead_letter ON dead_letter.sink = sink.name AND dead_letter.pool = ledger.pool \
             AND dead_letter.bucket = ledger.bucket AND dead_letter.seq = ledger.seq ORDER BY wanted.nth, sink.name"
        );
        let Columns { pools, buckets, seqs } = Columns::of(self.0.iter())?;
        let found = rows(connection, &sql, &[&pools, &buckets, &seqs], &POSITIONS).await?;
        all(&found, row::delivery).map_err(Fault::Refused)
    }
}

pub(super) fn behind(campaign: &CampaignId) -> Query {
    let sql = format!(
        "SELECT sink.name FROM sink WHERE EXISTS (SELECT 1 FROM pool JOIN bucket ON bucket.pool = pool.id \
         LEFT JOIN sink_position AS place ON place.sink = sink.name AND place.pool = bucket.pool \
         AND place.bucket = bucket.number WHERE pool.campaign_id = $1 \
         AND (bucket.ledger_seq > coalesce(place.seq, bucket.ledger_seq) OR bucket.last_at >= {FROM})) \
         OR EXISTS (SELECT 1 FROM dead_letter JOIN pool ON pool.id = dead_letter.pool WHERE dead_letter.sink = sink.name \
         AND dead_letter.state <> 'delivered' AND pool.campaign_id = $1) ORDER BY sink.name"
    );
    Query::whole(&sql).with(campaign.as_str().to_owned(), Type::TEXT)
}
