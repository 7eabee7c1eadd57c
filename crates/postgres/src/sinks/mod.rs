//! Sinks and where they stand. What is written about a sink is written under the lock of its row: a replay and the
//! progress of whoever delivers come one after the other.

mod behind;

pub(crate) use behind::Deliveries;

use async_trait::async_trait;
use holdfast_core::command::How;
use holdfast_core::id::CampaignId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self as row, integer};
use holdfast_store::{
    Act, AdvanceSink, Backlog, BucketEntries, ChangeSink, DeadLetter, DeadLetterState, DeliveryOf, Error,
    Lag, LedgerPosition, Page, PutSink, SINKS_MAX, SinkEffect, SinkName, SinkRefusal, SinkRow, SinkStore,
    page_of,
};
use tokio_postgres::types::Type;

use behind::{BacklogOf, Columns, LagPage, POSITIONS, behind};

use crate::acts;
use crate::apply::short;
use crate::call::{Work, rows, transaction};
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::read::View;
use crate::row::{all, first, uuid};
use crate::store::{Inner, PostgresStore};

const SINK: &str = "SELECT sink.*, \
    (SELECT count(*) FROM dead_letter WHERE dead_letter.sink = sink.name AND dead_letter.state = 'parked') AS parked, \
    (SELECT count(*) FROM dead_letter WHERE dead_letter.sink = sink.name AND dead_letter.state = 'waiting') AS waiting \
    FROM sink";

fn one(name: &SinkName) -> Query {
    Query::whole(&format!("{SINK} WHERE name = $1")).with(name.as_str().to_owned(), Type::TEXT)
}

async fn find(connection: &Connection, name: &SinkName) -> Result<Option<SinkRow>, Fault> {
    first(&one(name).rows(connection).await?, row::sink).map_err(Fault::Refused)
}

/// Locks a sink, then reads it as whoever had the lock before has left it.
async fn lock(connection: &Connection, name: &SinkName) -> Result<Option<SinkRow>, Fault> {
    let sql = "SELECT name FROM sink WHERE name = $1 FOR UPDATE";
    rows(connection, sql, &[&name.as_str()], &[Type::TEXT]).await?;
    find(connection, name).await
}

async fn write(connection: &Connection, sink: &SinkRow) -> Result<(), Fault> {
    let sql = "INSERT INTO sink (name, kind, settings, secrets, state, why, round, created_at, updated_at, \
               failing_since, failures, next_attempt_at, last_error, delivered_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (name) DO UPDATE SET \
               settings = excluded.settings, secrets = excluded.secrets, state = excluded.state, why = excluded.why, \
               round = excluded.round, updated_at = excluded.updated_at, failing_since = excluded.failing_since, \
               failures = excluded.failures, next_attempt_at = excluded.next_attempt_at, \
               last_error = excluded.last_error, delivered_at = excluded.delivered_at";
    let text = |_: usize| Type::TEXT;
    let number = |_: usize| Type::INT8;
    let mut types: Vec<Type> = (0..6).map(text).collect();
    types.extend((0..6).map(number));
    types.extend([Type::TEXT, Type::INT8]);
    let settings = row::write_settings(&sink.settings).map_err(Fault::Refused)?;
    let secrets = row::write_secrets(&sink.secrets).map_err(Fault::Refused)?;
    let round = integer(sink.round).map_err(Fault::Refused)?;
    let (name, kind, state) = (sink.name.as_str(), sink.kind.as_str(), sink.state.as_str());
    let health = &sink.health;
    let (failing, next) = (health.failing_since.map(|at| at.0), health.next_attempt_at.map(|at| at.0));
    let (failures, delivered) = (i64::from(health.failures), health.delivered_at.map(|at| at.0));
    rows(
        connection,
        sql,
        &[
            &name,
            &kind,
            &settings,
            &secrets,
            &state,
            &sink.why,
            &round,
            &sink.created_at.0,
            &sink.updated_at.0,
            &failing,
            &failures,
            &next,
            &health.last_error,
            &delivered,
        ],
        &types,
    )
    .await?;
    Ok(())
}

async fn begin_round(
    connection: &Connection,
    sink: &SinkRow,
    from: Timestamp,
    now: Timestamp,
) -> Result<(), Fault> {
    let sql = "INSERT INTO sink_round (sink, round, from_at, at) VALUES ($1, $2, $3, $4)";
    let round = integer(sink.round).map_err(Fault::Refused)?;
    let types = [Type::TEXT, Type::INT8, Type::INT8, Type::INT8];
    rows(connection, sql, &[&sink.name.as_str(), &round, &from.0, &now.0], &types).await?;
    Ok(())
}

impl Work for PutSink {
    type Output = Result<(SinkRow, How), SinkRefusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        // Sinks are counted, and two that are made with one name meet, under the lock of the authority's row.
        rows(connection, "SELECT only_row FROM authority FOR UPDATE", &[], &[]).await?;
        let before = lock(connection, &self.name).await?;
        if before.is_none() {
            let found = rows(connection, "SELECT count(*) AS count FROM sink", &[], &[]).await?;
            let count = first(&found, |row| row::number::<usize>(row, "count")).map_err(Fault::Refused)?;
            if count.is_some_and(|count| count >= SINKS_MAX) {
                return Ok(Err(SinkRefusal::TooMany));
            }
        }
        let now = inner.time(connection).await?;
        let sink = match self.onto(before.as_ref(), now) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(None) => return Ok(before.map(|row| (row, How::Repeated)).ok_or(SinkRefusal::Unknown)),
            Ok(Some(sink)) => sink,
        };
        write(connection, &sink).await?;
        if before.is_none() {
            begin_round(connection, &sink, self.from, now).await?;
        }
        if let Some(act) = Act::put_sink(before.as_ref(), &sink, self.via.as_ref()) {
            acts::record(connection, &act, now).await?;
        }
        Ok(Ok((sink, if before.is_some() { How::Changed } else { How::Created })))
    }
}

impl Work for ChangeSink {
    type Output = Result<Option<SinkRow>, SinkRefusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let Some(before) = lock(connection, &self.name).await? else { return Ok(Err(SinkRefusal::Unknown)) };
        let now = inner.time(connection).await?;
        let name = self.name.as_str();
        match self.onto(&before, now) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(SinkEffect::None) => return Ok(Ok(Some(before))),
            Ok(SinkEffect::Row(sink)) => write(connection, &sink).await?,
            Ok(SinkEffect::Round(sink, from)) => {
                write(connection, &sink).await?;
                begin_round(connection, &sink, from, now).await?;
            }
            Ok(SinkEffect::DeadLetters) => {
                let sql =
                    "UPDATE dead_letter SET state = 'waiting', at = $2 WHERE sink = $1 AND state = 'parked'";
                rows(connection, sql, &[&name, &now.0], &[Type::TEXT, Type::INT8]).await?;
            }
            Ok(SinkEffect::Delete) => {
                for table in ["dead_letter", "sink_position", "sink_round"] {
                    let sql = format!("DELETE FROM {table} WHERE sink = $1");
                    rows(connection, &sql, &[&name], &[Type::TEXT]).await?;
                }
                rows(connection, "DELETE FROM sink WHERE name = $1", &[&name], &[Type::TEXT]).await?;
            }
        }
        acts::record(connection, &Act::change_sink(self), now).await?;
        Ok(Ok(find(connection, &self.name).await?))
    }
}

/// A bucket's entries after a position.
struct EntriesAfter {
    bucket: BucketKey,
    seq: i64,
    limit: i64,
}

impl View for EntriesAfter {
    type Output = Option<BucketEntries>;

    async fn see(&self, connection: &Connection) -> Result<Self::Output, Fault> {
        let pool = uuid(self.bucket.pool.0);
        let found = rows(connection, "SELECT * FROM pool WHERE id = $1", &[&pool], &[Type::UUID]).await?;
        let Some(known) = first(&found, row::pool).map_err(Fault::Refused)? else { return Ok(None) };
        let sql = "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 ORDER BY seq LIMIT $4";
        let types = [Type::UUID, Type::INT4, Type::INT8, Type::INT8];
        let number = short(self.bucket.number);
        let found = rows(connection, sql, &[&pool, &number, &self.seq, &self.limit], &types).await?;
        let entries = all(&found, row::entry).map_err(Fault::Refused)?;
        Ok(Some(BucketEntries { campaign: known.campaign, entries }))
    }
}

/// Whether whoever says how far he has come may say so.
async fn may_advance(connection: &Connection, advance: &AdvanceSink) -> Result<bool, Fault> {
    let sql = "SELECT round FROM sink WHERE name = $1 FOR UPDATE";
    let found = rows(connection, sql, &[&advance.name.as_str()], &[Type::TEXT]).await?;
    let round = first(&found, |row| row::number::<u64>(row, "round")).map_err(Fault::Refused)?;
    if round != Some(advance.round) {
        return Ok(false);
    }
    let Some(holder) = advance.holder else { return Ok(true) };
    let sql = "SELECT holder FROM lease WHERE name = $1";
    let found = rows(connection, sql, &[&advance.name.lease()], &[Type::TEXT]).await?;
    Ok(first(&found, |row| row::number_id(row, "holder")).map_err(Fault::Refused)? == Some(holder))
}

async fn write_positions(connection: &Connection, advance: &AdvanceSink) -> Result<(), Fault> {
    let sql = "INSERT INTO sink_position (sink, pool, bucket, round, seq, strikes) \
               SELECT $1, new.pool, new.bucket, $2, new.seq, new.strikes \
               FROM UNNEST($3, $4, $5, $6) AS new (pool, bucket, seq, strikes) \
               ON CONFLICT (sink, pool, bucket) DO UPDATE SET round = excluded.round, seq = excluded.seq, \
               strikes = excluded.strikes WHERE sink_position.round <> excluded.round \
               OR sink_position.seq <= excluded.seq";
    let positions: Vec<LedgerPosition> = advance.positions.iter().map(|new| (new.bucket, new.seq)).collect();
    let Columns { pools, buckets, seqs } = Columns::of(positions.iter())?;
    let strikes: Vec<i32> = advance.positions.iter().map(|new| short(new.strikes)).collect();
    let round = integer(advance.round).map_err(Fault::Refused)?;
    let [a, b, c] = POSITIONS;
    let types = [Type::TEXT, Type::INT8, a, b, c, Type::INT4_ARRAY];
    rows(connection, sql, &[&advance.name.as_str(), &round, &pools, &buckets, &seqs, &strikes], &types)
        .await?;
    Ok(())
}

async fn write_parked(connection: &Connection, advance: &AdvanceSink, now: Timestamp) -> Result<(), Fault> {
    let sql = "INSERT INTO dead_letter (sink, pool, bucket, seq, attempts, why, at, state) \
               SELECT $1, new.pool, new.bucket, new.seq, new.attempts, new.why, $2, 'parked' \
               FROM UNNEST($3, $4, $5, $6, $7) AS new (pool, bucket, seq, attempts, why) \
               ON CONFLICT (sink, pool, bucket, seq) DO UPDATE SET attempts = excluded.attempts, why = excluded.why, \
               at = excluded.at, state = 'parked'";
    let Columns { pools, buckets, seqs } = Columns::of(advance.parked.iter().map(|park| &park.position))?;
    let attempts: Vec<i32> = advance.parked.iter().map(|park| short(park.attempts)).collect();
    let why: Vec<&str> = advance.parked.iter().map(|park| park.why.as_str()).collect();
    let [a, b, c] = POSITIONS;
    let types = [Type::TEXT, Type::INT8, a, b, c, Type::INT4_ARRAY, Type::TEXT_ARRAY];
    let name = advance.name.as_str();
    rows(connection, sql, &[&name, &now.0, &pools, &buckets, &seqs, &attempts, &why], &types).await?;
    Ok(())
}

async fn write_redelivered(
    connection: &Connection,
    advance: &AdvanceSink,
    now: Timestamp,
) -> Result<(), Fault> {
    let sql = "UPDATE dead_letter SET state = 'delivered', at = $2 FROM UNNEST($3, $4, $5) AS done (pool, bucket, seq) \
               WHERE dead_letter.sink = $1 AND dead_letter.pool = done.pool AND dead_letter.bucket = done.bucket \
               AND dead_letter.seq = done.seq";
    let Columns { pools, buckets, seqs } = Columns::of(advance.redelivered.iter())?;
    let [a, b, c] = POSITIONS;
    let types = [Type::TEXT, Type::INT8, a, b, c];
    rows(connection, sql, &[&advance.name.as_str(), &now.0, &pools, &buckets, &seqs], &types).await?;
    Ok(())
}

async fn write_health(connection: &Connection, advance: &AdvanceSink) -> Result<(), Fault> {
    let name = advance.name.as_str();
    if let Some(health) = &advance.health {
        let sql = "UPDATE sink SET failing_since = $2, failures = $3, next_attempt_at = $4, last_error = $5, \
                   delivered_at = $6 WHERE name = $1";
        let types = [Type::TEXT, Type::INT8, Type::INT8, Type::INT8, Type::TEXT, Type::INT8];
        let (failing, next) = (health.failing_since.map(|at| at.0), health.next_attempt_at.map(|at| at.0));
        let (failures, delivered) = (i64::from(health.failures), health.delivered_at.map(|at| at.0));
        let values = [
            &name as crate::connection::Param<'_>,
            &failing,
            &failures,
            &next,
            &health.last_error,
            &delivered,
        ];
        rows(connection, sql, &values, &types).await?;
    }
    if let Some(why) = &advance.disable {
        let sql = "UPDATE sink SET state = 'disabled', why = $2 WHERE name = $1";
        rows(connection, sql, &[&name, why], &[Type::TEXT, Type::TEXT]).await?;
    }
    Ok(())
}

impl Work for AdvanceSink {
    type Output = bool;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<bool, Fault> {
        if !may_advance(connection, self).await? {
            return Ok(false);
        }
        let now = inner.time(connection).await?;
        if !self.positions.is_empty() {
            write_positions(connection, self).await?;
        }
        if !self.parked.is_empty() {
            write_parked(connection, self, now).await?;
        }
        if !self.redelivered.is_empty() {
            write_redelivered(connection, self, now).await?;
        }
        write_health(connection, self).await?;
        Ok(true)
    }
}

#[async_trait]
impl SinkStore for PostgresStore {
    async fn put_sink(&self, put: PutSink) -> Result<Result<(SinkRow, How), SinkRefusal>, Error> {
        transaction(&self.inner, put).await
    }

    async fn change_sink(&self, change: ChangeSink) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error> {
        transaction(&self.inner, change).await
    }

    async fn sink(&self, name: SinkName) -> Result<Option<SinkRow>, Error> {
        first(&self.inner.read(one(&name)).await?, row::sink)
    }

    async fn sinks(&self) -> Result<Vec<SinkRow>, Error> {
        all(&self.inner.read(Query::whole(&format!("{SINK} ORDER BY name"))).await?, row::sink)
    }

    async fn lagging(&self, name: SinkName, page: Page<BucketKey>) -> Result<Vec<Lag>, Error> {
        self.inner.read(LagPage { name, page }).await
    }

    async fn entries_after(
        &self,
        bucket: BucketKey,
        seq: u64,
        limit: usize,
    ) -> Result<Option<BucketEntries>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.inner.read(EntriesAfter { bucket, seq: integer(seq)?, limit }).await
    }

    async fn advance_sink(&self, advance: AdvanceSink) -> Result<bool, Error> {
        transaction(&self.inner, advance).await
    }

    async fn dead_letters(
        &self,
        name: SinkName,
        state: Option<DeadLetterState>,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<DeadLetter>, bool), Error> {
        let mut query = Query::new("SELECT * FROM dead_letter");
        query.and_text("sink =", Some(name.as_str()));
        query.and_text("state =", state.map(DeadLetterState::as_str));
        query.after_position(page.after)?;
        let found = self.inner.read(query.page("pool, bucket, seq", page.limit)).await?;
        Ok(page_of(all(&found, row::dead_letter)?, page.limit))
    }

    async fn backlog(&self, name: SinkName) -> Result<Backlog, Error> {
        self.inner.read(BacklogOf(name)).await
    }

    async fn deliveries(&self, positions: Vec<LedgerPosition>) -> Result<Vec<DeliveryOf>, Error> {
        self.inner.read(Deliveries(positions)).await
    }

    async fn sinks_behind(&self, campaign: CampaignId) -> Result<Vec<SinkName>, Error> {
        all(&self.inner.read(behind(&campaign)).await?, |row| row::sink_name(row, "name"))
    }
}
