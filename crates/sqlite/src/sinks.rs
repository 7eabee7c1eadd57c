//! Sinks and where they stand.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::command::How;
use holdfast_core::id::CampaignId;
use holdfast_core::stock::{BucketKey, Pool};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Lagging, integer};
use holdfast_store::{
    Act, AdvanceSink, BACKLOG_BUCKETS_MAX, Backlog, Bisection, BucketEntries, ChangeSink, DeadLetter,
    DeadLetterState, DeliveryOf, Error, Lag, LedgerPosition, Page, PutSink, SINKS_MAX, SinkEffect, SinkName,
    SinkRefusal, SinkRow, SinkStore, page_of,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::acts;
use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};
use crate::query::{Query, text};
use crate::store::SqliteStore;

const SINK: &str = "SELECT sink.*, \
    (SELECT count(*) FROM dead_letter WHERE dead_letter.sink = sink.name AND dead_letter.state = 'parked') AS parked, \
    (SELECT count(*) FROM dead_letter WHERE dead_letter.sink = sink.name AND dead_letter.state = 'waiting') AS waiting \
    FROM sink";

/// The earliest time that rounds after a place's own name.
const FROM: &str = "(SELECT min(from_at) FROM sink_round WHERE sink_round.sink = sink.name \
                    AND sink_round.round > coalesce(place.round, 0))";

fn find(db: &Connection, name: &SinkName) -> Result<Option<SinkRow>, Error> {
    one(db, &format!("{SINK} WHERE name = ?1"), params![name.as_str()], rows::sink)
}

fn list(db: &Connection) -> Result<Vec<SinkRow>, Error> {
    many(db, &format!("{SINK} ORDER BY name"), params![], rows::sink)
}

fn write(db: &Connection, row: &SinkRow) -> Result<(), Error> {
    let sql = "INSERT INTO sink (name, kind, settings, secrets, state, why, round, created_at, updated_at, \
               failing_since, failures, next_attempt_at, last_error, delivered_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT (name) DO UPDATE SET \
               settings = excluded.settings, secrets = excluded.secrets, state = excluded.state, why = excluded.why, \
               round = excluded.round, updated_at = excluded.updated_at, failing_since = excluded.failing_since, \
               failures = excluded.failures, next_attempt_at = excluded.next_attempt_at, \
               last_error = excluded.last_error, delivered_at = excluded.delivered_at";
    let (settings, secrets) = (rows::write_settings(&row.settings)?, rows::write_secrets(&row.secrets)?);
    let health = &row.health;
    let values = params![
        row.name.as_str(),
        row.kind.as_str(),
        settings,
        secrets,
        row.state.as_str(),
        row.why,
        integer(row.round)?,
        row.created_at.0,
        row.updated_at.0,
        health.failing_since.map(|at| at.0),
        health.failures,
        health.next_attempt_at.map(|at| at.0),
        health.last_error,
        health.delivered_at.map(|at| at.0),
    ];
    db.prepare_cached(sql).store()?.execute(values).store()?;
    Ok(())
}

fn begin_round(db: &Connection, row: &SinkRow, from: Timestamp, now: Timestamp) -> Result<(), Error> {
    let sql = "INSERT INTO sink_round (sink, round, from_at, at) VALUES (?1, ?2, ?3, ?4)";
    db.execute(sql, params![row.name.as_str(), integer(row.round)?, from.0, now.0]).store()?;
    Ok(())
}

fn put(db: &Connection, put: &PutSink, now: Timestamp) -> Result<Result<(SinkRow, How), SinkRefusal>, Error> {
    let before = find(db, &put.name)?;
    if before.is_none() {
        let count: i64 = db.query_row("SELECT count(*) FROM sink", [], |row| row.get(0)).store()?;
        if usize::try_from(count).is_ok_and(|count| count >= SINKS_MAX) {
            return Ok(Err(SinkRefusal::TooMany));
        }
    }
    let row = match put.onto(before.as_ref(), now) {
        Err(refusal) => return Ok(Err(refusal)),
        Ok(None) => return Ok(before.map(|row| (row, How::Repeated)).ok_or(SinkRefusal::Unknown)),
        Ok(Some(row)) => row,
    };
    write(db, &row)?;
    if before.is_none() {
        begin_round(db, &row, put.from, now)?;
    }
    if let Some(act) = Act::put_sink(before.as_ref(), &row, put.via.as_ref()) {
        acts::record(db, &act, now)?;
    }
    Ok(Ok((row, if before.is_some() { How::Changed } else { How::Created })))
}

fn change(
    db: &Connection,
    change: &ChangeSink,
    now: Timestamp,
) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error> {
    let Some(before) = find(db, &change.name)? else { return Ok(Err(SinkRefusal::Unknown)) };
    let name = change.name.as_str();
    match change.onto(&before, now) {
        Err(refusal) => return Ok(Err(refusal)),
        Ok(SinkEffect::None) => return Ok(Ok(Some(before))),
        Ok(SinkEffect::Row(row)) => write(db, &row)?,
        Ok(SinkEffect::Round(row, from)) => {
            write(db, &row)?;
            begin_round(db, &row, from, now)?;
        }
        Ok(SinkEffect::DeadLetters) => {
            let sql =
                "UPDATE dead_letter SET state = 'waiting', at = ?2 WHERE sink = ?1 AND state = 'parked'";
            db.execute(sql, params![name, now.0]).store()?;
        }
        Ok(SinkEffect::Delete) => {
            for table in ["dead_letter", "sink_position", "sink_round"] {
                db.execute(&format!("DELETE FROM {table} WHERE sink = ?1"), [name]).store()?;
            }
            db.execute("DELETE FROM sink WHERE name = ?1", [name]).store()?;
        }
    }
    acts::record(db, &Act::change_sink(change), now)?;
    Ok(Ok(find(db, &change.name)?))
}

fn lagging(db: &Connection, name: &SinkName, page: &Page<BucketKey>) -> Result<Vec<Lag>, Error> {
    let (pool, number) = page.after.map_or((0, -1), |key| (key.pool.0, i64::from(key.number)));
    let sql = format!(
        "SELECT bucket.pool, bucket.number, bucket.ledger_seq, place.seq, coalesce(place.strikes, 0) AS strikes, \
         {FROM} AS from_at FROM sink CROSS JOIN bucket LEFT JOIN sink_position AS place \
         ON place.sink = sink.name AND place.pool = bucket.pool AND place.bucket = bucket.number \
         WHERE sink.name = ?1 AND (bucket.pool, bucket.number) > (?2, ?3) \
         AND (bucket.ledger_seq > coalesce(place.seq, bucket.ledger_seq) OR bucket.last_at >= {FROM}) \
         ORDER BY bucket.pool, bucket.number LIMIT ?4"
    );
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let found = many(db, &sql, params![name.as_str(), bytes(pool), number, limit], rows::lagging)?;
    found.into_iter().map(|found| located(db, found)).collect()
}

/// Finds where the sink stands, if a round was begun since it was here.
fn located(db: &Connection, found: Lagging) -> Result<Lag, Error> {
    let mut seq = found.seq.unwrap_or(u64::MAX);
    if let Some(from) = found.from {
        let mut search = Bisection::new(from, found.ledger_seq);
        while let Some(look) = search.look() {
            search.tell(look, time_of(db, (found.bucket, look))?);
        }
        seq = seq.min(search.last_before());
    }
    let strikes = if found.seq == Some(seq) { found.strikes } else { 0 };
    Ok(Lag { bucket: found.bucket, seq, ledger_seq: found.ledger_seq, strikes })
}

fn time_of(db: &Connection, (bucket, seq): LedgerPosition) -> Result<Option<Timestamp>, Error> {
    let sql = "SELECT at FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq = ?3";
    let values = params![bytes(bucket.pool.0), bucket.number, integer(seq)?];
    one(db, sql, values, |row| rows::number(row, "at").map(Timestamp))
}

fn entries_after(
    db: &Connection,
    bucket: BucketKey,
    seq: u64,
    limit: usize,
) -> Result<Option<BucketEntries>, Error> {
    let pool: Option<Pool> =
        one(db, "SELECT * FROM pool WHERE id = ?1", params![bytes(bucket.pool.0)], rows::pool)?;
    let Some(pool) = pool else { return Ok(None) };
    let sql = "SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![bytes(bucket.pool.0), bucket.number, integer(seq)?, limit];
    Ok(Some(BucketEntries { campaign: pool.campaign, entries: many(db, sql, values, rows::entry)? }))
}

/// Whether whoever says how far he has come may say so.
fn may_advance(db: &Connection, advance: &AdvanceSink) -> Result<bool, Error> {
    let sql = "SELECT round FROM sink WHERE name = ?1";
    let round: Option<i64> =
        db.query_row(sql, [advance.name.as_str()], |row| row.get(0)).optional().store()?;
    if round != Some(integer(advance.round)?) {
        return Ok(false);
    }
    let Some(holder) = advance.holder else { return Ok(true) };
    let sql = "SELECT holder FROM lease WHERE name = ?1";
    Ok(one(db, sql, params![advance.name.lease()], |row| rows::number_id(row, "holder"))? == Some(holder))
}

fn advance(db: &Connection, advance: &AdvanceSink, now: Timestamp) -> Result<bool, Error> {
    if !may_advance(db, advance)? {
        return Ok(false);
    }
    let (name, round) = (advance.name.as_str(), integer(advance.round)?);
    let sql = "INSERT INTO sink_position (sink, pool, bucket, round, seq, strikes) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
               ON CONFLICT (sink, pool, bucket) DO UPDATE SET round = excluded.round, seq = excluded.seq, \
               strikes = excluded.strikes WHERE sink_position.round <> excluded.round \
               OR sink_position.seq <= excluded.seq";
    let mut place = db.prepare_cached(sql).store()?;
    for new in &advance.positions {
        let (pool, seq) = (bytes(new.bucket.pool.0), integer(new.seq)?);
        place.execute(params![name, pool, new.bucket.number, round, seq, new.strikes]).store()?;
    }
    let sql = "INSERT INTO dead_letter (sink, pool, bucket, seq, attempts, why, at, state) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'parked') ON CONFLICT (sink, pool, bucket, seq) DO UPDATE SET \
               attempts = excluded.attempts, why = excluded.why, at = excluded.at, state = 'parked'";
    let mut parked = db.prepare_cached(sql).store()?;
    for park in &advance.parked {
        let (bucket, seq) = park.position;
        let values =
            params![name, bytes(bucket.pool.0), bucket.number, integer(seq)?, park.attempts, park.why, now.0];
        parked.execute(values).store()?;
    }
    let sql = "UPDATE dead_letter SET state = 'delivered', at = ?5 \
               WHERE sink = ?1 AND pool = ?2 AND bucket = ?3 AND seq = ?4";
    let mut redelivered = db.prepare_cached(sql).store()?;
    for (bucket, seq) in &advance.redelivered {
        let values = params![name, bytes(bucket.pool.0), bucket.number, integer(*seq)?, now.0];
        redelivered.execute(values).store()?;
    }
    write_health(db, advance)?;
    Ok(true)
}

fn write_health(db: &Connection, advance: &AdvanceSink) -> Result<(), Error> {
    let name = advance.name.as_str();
    if let Some(health) = &advance.health {
        let sql = "UPDATE sink SET failing_since = ?2, failures = ?3, next_attempt_at = ?4, last_error = ?5, \
                   delivered_at = ?6 WHERE name = ?1";
        let values = params![
            name,
            health.failing_since.map(|at| at.0),
            health.failures,
            health.next_attempt_at.map(|at| at.0),
            health.last_error,
            health.delivered_at.map(|at| at.0),
        ];
        db.prepare_cached(sql).store()?.execute(values).store()?;
    }
    if let Some(why) = &advance.disable {
        let sql = "UPDATE sink SET state = 'disabled', why = ?2 WHERE name = ?1";
        db.prepare_cached(sql).store()?.execute(params![name, why]).store()?;
    }
    Ok(())
}

fn dead_letters(
    db: &Connection,
    name: &SinkName,
    state: Option<DeadLetterState>,
    page: &Page<LedgerPosition>,
) -> Result<(Vec<DeadLetter>, bool), Error> {
    let mut query = Query::new("SELECT * FROM dead_letter");
    query.and("sink = ?", Some(text(name.as_str())));
    query.and("state = ?", state.map(|state| text(state.as_str())));
    query.after_position(page.after)?;
    Ok(page_of(query.page("pool, bucket, seq", page.limit).run(db, rows::dead_letter)?, page.limit))
}

fn backlog(db: &Connection, name: &SinkName) -> Result<Backlog, Error> {
    let page = Page { after: None, limit: BACKLOG_BUCKETS_MAX.saturating_add(1) };
    let (lags, more) = page_of(lagging(db, name, &page)?, BACKLOG_BUCKETS_MAX);
    let mut told = Backlog { more, ..Backlog::default() };
    for lag in lags {
        told.buckets = told.buckets.saturating_add(1);
        told.entries = told.entries.saturating_add(lag.ledger_seq.saturating_sub(lag.seq));
        let first = (lag.bucket, lag.seq.saturating_add(1));
        let dated = time_of(db, first)?.map(|at| (at, first));
        told.oldest = [told.oldest, dated].into_iter().flatten().min();
    }
    Ok(told)
}

pub(crate) fn deliveries(db: &Connection, positions: &[LedgerPosition]) -> Result<Vec<DeliveryOf>, Error> {
    let sql = format!(
        "SELECT sink.name AS sink, ledger.pool, ledger.bucket, ledger.seq, ledger.at, place.seq AS reached, \
         {FROM} AS from_at, dead_letter.state AS dead_state, dead_letter.attempts, dead_letter.why \
         FROM ledger CROSS JOIN sink LEFT JOIN sink_position AS place \
         ON place.sink = sink.name AND place.pool = ledger.pool AND place.bucket = ledger.bucket \
         LEFT JOIN dead_letter ON dead_letter.sink = sink.name AND dead_letter.pool = ledger.pool \
         AND dead_letter.bucket = ledger.bucket AND dead_letter.seq = ledger.seq \
         WHERE ledger.pool = ?1 AND ledger.bucket = ?2 AND ledger.seq = ?3 ORDER BY sink.name"
    );
    let mut found = Vec::new();
    for (bucket, seq) in positions {
        let values = params![bytes(bucket.pool.0), bucket.number, integer(*seq)?];
        found.extend(many(db, &sql, values, rows::delivery)?);
    }
    Ok(found)
}

fn sinks_behind(db: &Connection, campaign: &CampaignId) -> Result<Vec<SinkName>, Error> {
    let sql = format!(
        "SELECT sink.name FROM sink WHERE EXISTS (SELECT 1 FROM pool JOIN bucket ON bucket.pool = pool.id \
         LEFT JOIN sink_position AS place ON place.sink = sink.name AND place.pool = bucket.pool \
         AND place.bucket = bucket.number WHERE pool.campaign_id = ?1 \
         AND (bucket.ledger_seq > coalesce(place.seq, bucket.ledger_seq) OR bucket.last_at >= {FROM})) \
         OR EXISTS (SELECT 1 FROM dead_letter JOIN pool ON pool.id = dead_letter.pool WHERE dead_letter.sink = sink.name \
         AND dead_letter.state <> 'delivered' AND pool.campaign_id = ?1) ORDER BY sink.name"
    );
    many(db, &sql, params![campaign.as_str()], |row| rows::sink_name(row, "name"))
}

#[async_trait]
impl SinkStore for SqliteStore {
    async fn put_sink(&self, sink: PutSink) -> Result<Result<(SinkRow, How), SinkRefusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| put(db, &sink, clock.now())).await
    }

    async fn change_sink(&self, sink: ChangeSink) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| change(db, &sink, clock.now())).await
    }

    async fn sink(&self, name: SinkName) -> Result<Option<SinkRow>, Error> {
        self.readers.read(move |db| find(db, &name)).await
    }

    async fn sinks(&self) -> Result<Vec<SinkRow>, Error> {
        self.readers.read(list).await
    }

    async fn lagging(&self, name: SinkName, page: Page<BucketKey>) -> Result<Vec<Lag>, Error> {
        self.readers.read(move |db| lagging(db, &name, &page)).await
    }

    async fn entries_after(
        &self,
        bucket: BucketKey,
        seq: u64,
        limit: usize,
    ) -> Result<Option<BucketEntries>, Error> {
        self.readers.read(move |db| entries_after(db, bucket, seq, limit)).await
    }

    async fn advance_sink(&self, sink: AdvanceSink) -> Result<bool, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| advance(db, &sink, clock.now())).await
    }

    async fn dead_letters(
        &self,
        name: SinkName,
        state: Option<DeadLetterState>,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<DeadLetter>, bool), Error> {
        self.readers.read(move |db| dead_letters(db, &name, state, &page)).await
    }

    async fn backlog(&self, name: SinkName) -> Result<Backlog, Error> {
        self.readers.read(move |db| backlog(db, &name)).await
    }

    async fn deliveries(&self, positions: Vec<LedgerPosition>) -> Result<Vec<DeliveryOf>, Error> {
        self.readers.read(move |db| deliveries(db, &positions)).await
    }

    async fn sinks_behind(&self, campaign: CampaignId) -> Result<Vec<SinkName>, Error> {
        self.readers.read(move |db| sinks_behind(db, &campaign)).await
    }
}
