//! What reconciliation keeps: runs, differences, up to where buckets were proved.

use std::sync::Arc;

use holdfast_core::case::Case;
use holdfast_core::id::{DiscrepancyId, RunId};
use holdfast_core::reconcile::{Class, Discrepancy, DiscrepancyState, Finding, RunScope};
use holdfast_core::snapshot::{Changes, Needs, Snapshot};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row, integer, number, write_found, write_proof};
use holdfast_store::{
    Checkpoint, DiscrepancyFilter, Dispose, Error, Page, RUNS_KEPT, RUNS_UNFINISHED_MAX, Run, found_again,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::apply::{column, count, short, try_column};
use crate::call::{Work, rows as ask_rows};
use crate::connection::{Connection, Param};
use crate::error::Fault;
use crate::flight::Flight;
use crate::query::Query;
use crate::row::{all, first, uuid};
use crate::statement::{Sql, exactly};
use crate::store::Inner;

/// Keeps a run that is asked for.
pub(super) struct Ask(pub(super) Run);

impl Work for Ask {
    type Output = bool;

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<bool, Fault> {
        let sql = "SELECT count(*) AS waiting FROM reconciliation WHERE state = 'running'";
        let waiting = ask_rows(connection, sql, &[], &[]).await?;
        let waiting: Option<u64> = first(&waiting, |row| number(row, "waiting")).map_err(Fault::Refused)?;
        if waiting.is_some_and(|waiting| waiting >= RUNS_UNFINISHED_MAX) {
            return Ok(false);
        }
        put_run(connection, &self.0).await?;
        Ok(true)
    }
}

/// Keeps how a run stands.
pub(super) struct Save(pub(super) Run);

impl Work for Save {
    type Output = ();

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<(), Fault> {
        put_run(connection, &self.0).await?;
        if self.0.finished_at.is_some() {
            let sql = "DELETE FROM reconciliation WHERE state = 'done' AND found = '{}' AND id < (SELECT id FROM \
                       reconciliation WHERE state = 'done' AND found = '{}' ORDER BY id DESC LIMIT 1 OFFSET $1)";
            let kept = integer(RUNS_KEPT).map_err(Fault::Refused)?;
            ask_rows(connection, sql, &[&kept], &[Type::INT8]).await?;
        }
        Ok(())
    }
}

async fn put_run(connection: &Connection, run: &Run) -> Result<(), Fault> {
    let sql = "INSERT INTO reconciliation (id, scope, state, asked_by, started_at, finished_at, buckets_read, \
               entries_read, orders_read, found, failure, attempts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
               $11, $12) ON CONFLICT (id) DO UPDATE SET state = excluded.state, finished_at = excluded.finished_at, \
               buckets_read = excluded.buckets_read, entries_read = excluded.entries_read, \
               orders_read = excluded.orders_read, found = excluded.found, failure = excluded.failure, \
               attempts = excluded.attempts";
    let stored = || -> Result<_, Error> {
        let read = (integer(run.buckets_read)?, integer(run.entries_read)?, integer(run.orders_read)?);
        Ok((read, write_found(&run.found)?))
    };
    let ((buckets, entries, orders), found) = stored().map_err(Fault::Refused)?;
    let (id, scope, state) = (uuid(run.id.0), run.scope.as_str(), run.state.as_str());
    let (finished, failure) = (run.finished_at.map(|at| at.0), run.failure.as_deref());
    let (asked_by, attempts) = (&*run.asked_by, i64::from(run.attempts));
    let params: [Param<'_>; 12] = [
        &id,
        &scope,
        &state,
        &asked_by,
        &run.started_at.0,
        &finished,
        &buckets,
        &entries,
        &orders,
        &found,
        &failure,
        &attempts,
    ];
    let types = [
        Type::UUID,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
    ];
    ask_rows(connection, sql, &params, &types).await?;
    Ok(())
}

pub(super) fn run(id: RunId) -> Query {
    let mut query = Query::new("SELECT * FROM reconciliation");
    query.and_id("id =", Some(id.0));
    query
}

pub(super) fn runs(page: &Page<RunId>) -> Query {
    let mut query = Query::new("SELECT * FROM reconciliation");
    query.and_id("id <", page.after.map(|after| after.0));
    query.page("id DESC", page.limit)
}

pub(super) fn unfinished_run() -> Query {
    Query::whole("SELECT * FROM reconciliation WHERE state = 'running' ORDER BY id LIMIT 1")
}

pub(super) fn last_run(scope: RunScope) -> Query {
    let sql = "SELECT started_at FROM reconciliation WHERE scope = $1 ORDER BY id DESC LIMIT 1";
    Query::whole(sql).with(scope.as_str().to_owned(), Type::TEXT)
}

/// Keeps up to where buckets were proved.
pub(super) struct Checkpoints(pub(super) Vec<Checkpoint>);

impl Work for Checkpoints {
    type Output = ();

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<(), Fault> {
        let sql = "INSERT INTO reconcile_checkpoint (pool, number, to_seq, entries, available_sum, held_sum, sold_sum, \
                   unowned_held, unowned_sold, moves, supplies, covering) SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, \
                   $7, $8, $9, $10, $11, $12) ON CONFLICT (pool, number) DO UPDATE SET to_seq = excluded.to_seq, \
                   entries = excluded.entries, available_sum = excluded.available_sum, held_sum = excluded.held_sum, \
                   sold_sum = excluded.sold_sum, unowned_held = excluded.unowned_held, \
                   unowned_sold = excluded.unowned_sold, moves = excluded.moves, supplies = excluded.supplies, \
                   covering = excluded.covering";
        let of = |read: fn(&Checkpoint) -> i64| self.0.iter().map(read).collect::<Vec<i64>>();
        let count = |read: fn(&Checkpoint) -> u64| -> Result<Vec<i64>, Fault> {
            self.0.iter().map(|c| integer(read(c)).map_err(Fault::Refused)).collect()
        };
        let pools: Vec<Uuid> = self.0.iter().map(|c| uuid(c.bucket.pool.0)).collect();
        let numbers: Vec<i32> = self.0.iter().map(|c| short(c.bucket.number)).collect();
        let (to, entries) = (count(|c| c.sums.to)?, count(|c| c.sums.entries)?);
        let (available, held) = (of(|c| c.sums.delta.available), of(|c| c.sums.delta.held));
        let (sold, unowned_held) = (of(|c| c.sums.delta.sold), of(|c| c.sums.unowned.0));
        let (unowned_sold, moves) = (of(|c| c.sums.unowned.1), count(|c| c.sums.moves)?);
        let (supplies, covering) = (count(|c| c.sums.supplies)?, count(|c| c.sums.covering)?);
        let params: [Param<'_>; 12] = [
            &pools,
            &numbers,
            &to,
            &entries,
            &available,
            &held,
            &sold,
            &unowned_held,
            &unowned_sold,
            &moves,
            &supplies,
            &covering,
        ];
        let mut types = vec![Type::UUID_ARRAY, Type::INT4_ARRAY];
        types.resize(params.len(), Type::INT8_ARRAY);
        ask_rows(connection, sql, &params, &types).await?;
        Ok(())
    }
}

/// Keeps what a run found.
pub(super) struct Note {
    pub(super) run: RunId,
    pub(super) findings: Vec<Finding>,
}

impl Work for Note {
    type Output = Vec<Discrepancy>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Vec<Discrepancy>, Fault> {
        let now = inner.time(connection).await?;
        let mut kept = Vec::with_capacity(self.findings.len());
        for found in &self.findings {
            kept.push(self.note(connection, found.clone(), now).await?);
        }
        Ok(kept)
    }
}

impl Note {
    async fn note(
        &self,
        connection: &Connection,
        found: Finding,
        now: Timestamp,
    ) -> Result<Discrepancy, Fault> {
        let sql = "SELECT * FROM discrepancy WHERE identity = $1 ORDER BY round DESC LIMIT 1 FOR UPDATE";
        let read = |row: &dyn Row| {
            let last = rows::number_id(row, "last_run")?;
            Ok((rows::discrepancy(row)?, number::<u32>(row, "round")?, RunId(last)))
        };
        let known = ask_rows(connection, sql, &[&uuid(found.identity().0)], &[Type::UUID]).await?;
        let (kept, round) = match first(&known, read).map_err(Fault::Refused)? {
            Some((known, _, last)) if known.state == DiscrepancyState::Open => {
                let again = found_again(known, found, last != self.run, now);
                self.update(connection, &again).await?;
                return Ok(again);
            }
            Some((_, round, _)) => {
                let round = round.saturating_add(1);
                (Discrepancy::new(found, round, now), round)
            }
            None => (Discrepancy::new(found, 0, now), 0),
        };
        self.insert(connection, &kept, round).await?;
        Ok(kept)
    }

    async fn update(&self, connection: &Connection, again: &Discrepancy) -> Result<(), Fault> {
        let sql = "UPDATE discrepancy SET last_seen_at = $2, last_run = $3, cycles = $4, expected = $5, actual = $6, \
                   evidence = $7, proof = $8, order_id = $9 WHERE id = $1 AND state = 'open'";
        let proof = write_proof(&again.found.proof).map_err(Fault::Refused)?;
        let (id, run) = (uuid(again.id.0), uuid(self.run.0));
        let (cycles, order) = (i64::from(again.cycles), again.found.order.map(|order| uuid(order.0)));
        let (expected, actual) = (&*again.found.expected, &*again.found.actual);
        let evidence = &*again.found.evidence;
        let params: [Param<'_>; 9] =
            [&id, &again.last_seen_at.0, &run, &cycles, &expected, &actual, &evidence, &proof, &order];
        let types = [
            Type::UUID,
            Type::INT8,
            Type::UUID,
            Type::INT8,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::UUID,
        ];
        ask_rows(connection, sql, &params, &types).await?;
        Ok(())
    }

    async fn insert(&self, connection: &Connection, kept: &Discrepancy, round: u32) -> Result<(), Fault> {
        let sql = "INSERT INTO discrepancy (id, identity, round, class, pool, bucket, order_id, position, expected, \
                   actual, evidence, proof, first_seen_at, last_seen_at, last_run, cycles, disposition, state) VALUES \
                   ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
        let found = &kept.found;
        let stored = || -> Result<_, Error> { Ok((integer(found.position)?, write_proof(&found.proof)?)) };
        let (position, proof) = stored().map_err(Fault::Refused)?;
        let (id, identity, round) = (uuid(kept.id.0), uuid(found.identity().0), i64::from(round));
        let (class, pool) = (found.class.as_str(), found.pool.map(|pool| uuid(pool.0)));
        let bucket = found.bucket.map(|bucket| i64::from(bucket.number));
        let (order, run) = (found.order.map(|order| uuid(order.0)), uuid(self.run.0));
        let (expected, actual, evidence) = (&*found.expected, &*found.actual, &*found.evidence);
        let (cycles, disposition, state) =
            (i64::from(kept.cycles), kept.disposition.as_str(), kept.state.as_str());
        let params: [Param<'_>; 18] = [
            &id,
            &identity,
            &round,
            &class,
            &pool,
            &bucket,
            &order,
            &position,
            &expected,
            &actual,
            &evidence,
            &proof,
            &kept.first_seen_at.0,
            &kept.last_seen_at.0,
            &run,
            &cycles,
            &disposition,
            &state,
        ];
        let types = [
            Type::UUID,
            Type::UUID,
            Type::INT8,
            Type::TEXT,
            Type::UUID,
            Type::INT8,
            Type::UUID,
            Type::INT8,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::INT8,
            Type::INT8,
            Type::UUID,
            Type::INT8,
            Type::TEXT,
            Type::TEXT,
        ];
        ask_rows(connection, sql, &params, &types).await?;
        Ok(())
    }
}

/// Keeps what becomes of differences.
pub(super) struct Disposed(pub(super) Vec<Dispose>);

impl Work for Disposed {
    type Output = ();

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<(), Fault> {
        let sql = "UPDATE discrepancy SET state = new.state, disposition = new.disposition \
                   FROM UNNEST($1, $2, $3) AS new (id, state, disposition) \
                   WHERE discrepancy.id = new.id AND discrepancy.state = 'open'";
        let ids: Vec<Uuid> = self.0.iter().map(|one| uuid(one.id.0)).collect();
        let states: Vec<&str> = self.0.iter().map(|one| one.state.as_str()).collect();
        let dispositions: Vec<&str> = self.0.iter().map(|one| one.disposition.as_str()).collect();
        let types = [Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY];
        ask_rows(connection, sql, &[&ids, &states, &dispositions], &types).await?;
        Ok(())
    }
}

pub(super) fn discrepancy(id: DiscrepancyId) -> Query {
    let mut query = Query::new("SELECT * FROM discrepancy");
    query.and_id("id =", Some(id.0));
    query
}

pub(super) fn discrepancies(filter: DiscrepancyFilter, page: &Page<DiscrepancyId>) -> Query {
    let mut query = Query::new("SELECT * FROM discrepancy");
    query.and_text("state =", filter.state.map(DiscrepancyState::as_str));
    query.and_text("class =", filter.class.map(Class::as_str));
    query.and_id("id >", page.after.map(|after| after.0));
    query.page("id", page.limit)
}

pub(super) fn open_discrepancies() -> Query {
    Query::whole("SELECT class, count(*) AS open FROM discrepancy WHERE state = 'open' GROUP BY class")
}

static DISCREPANCIES: Sql =
    Sql::new("SELECT * FROM discrepancy WHERE id = ANY ($1) ORDER BY id FOR UPDATE", &[Type::UUID_ARRAY]);
static CASES: Sql =
    Sql::new("SELECT * FROM cases WHERE id = ANY ($1) ORDER BY id FOR UPDATE", &[Type::UUID_ARRAY]);
static ENDS: Sql = Sql::new(
    "SELECT bucket.pool, bucket.number AS bucket, coalesce((SELECT max(seq) FROM ledger WHERE \
     ledger.pool = bucket.pool AND ledger.bucket = bucket.number), 0) AS seq FROM bucket WHERE bucket.pool = ANY ($1)",
    &[Type::UUID_ARRAY],
);

/// Asks for the differences that a batch mends, their cases, and where the ledgers of the pools end. Behind the locks.
pub(crate) fn ask<'f>(flight: &mut Flight<'f>, needs: &Needs<'f>) -> Option<usize> {
    if needs.discrepancies.is_empty() {
        return None;
    }
    let ids = || needs.discrepancies.iter().map(|id| uuid(id.0)).collect::<Vec<Uuid>>();
    let place = flight.add(&DISCREPANCIES, vec![Box::new(ids())]);
    flight.add(&CASES, vec![Box::new(ids())]);
    let pools: Vec<Uuid> = needs.pools.iter().map(|pool| uuid(pool.0)).collect();
    flight.add(&ENDS, vec![Box::new(pools)]);
    Some(place)
}

/// Takes what was asked for.
pub(crate) fn take(
    answers: &[Vec<tokio_postgres::Row>],
    place: Option<usize>,
    rows: &mut Snapshot,
) -> Result<(), Error> {
    let Some(place) = place else { return Ok(()) };
    let at = |offset: usize| answers.get(place.saturating_add(offset)).map_or(&[][..], Vec::as_slice);
    let known = all(at(0), rows::discrepancy)?;
    rows.discrepancies.extend(known.into_iter().map(|known| (known.id, Arc::new(known))));
    let cases: Vec<Case> = all(at(1), rows::case)?;
    rows.cases.extend(cases.into_iter().map(|case| (case.id, case)));
    let ends: Vec<(BucketKey, u64)> = all(at(2), rows::position)?;
    rows.ledger_ends.extend(ends);
    Ok(())
}

static REPAIRED: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE discrepancy SET state = 'repaired' WHERE id = ANY ($1) AND state = 'open' RETURNING 1)",
        exactly!("$2")
    ),
    &[Type::UUID_ARRAY, Type::INT8],
);
static RESOLVED: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE cases SET state = 'resolved', action = new.action, operator = new.operator, \
         reason = new.reason, decided_at = new.decided_at \
         FROM UNNEST($1, $2, $3, $4, $5) AS new (id, action, operator, reason, decided_at) \
         WHERE cases.id = new.id AND cases.state = 'open' RETURNING 1)",
        exactly!("$6")
    ),
    &[Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8],
);

/// Adds what a batch mended and decided.
pub(crate) fn add<'f>(flight: &mut Flight<'f>, changes: &'f Changes) -> Result<(), Error> {
    let repaired = &changes.repaired;
    if !repaired.is_empty() {
        flight.add(&REPAIRED, vec![column(repaired, |one| uuid(one.id.0)), count(repaired)]);
    }
    let cases = &changes.resolved_cases;
    if !cases.is_empty() {
        let decided = |case: &'f Arc<Case>| {
            case.resolution.as_ref().ok_or_else(|| Error::Data("a decided case without a decision".into()))
        };
        let params = vec![
            column(cases, |case| uuid(case.id.0)),
            try_column(cases, move |case| Ok(decided(case)?.action.as_str()))?,
            try_column(cases, move |case| Ok(decided(case)?.operator.as_str()))?,
            try_column(cases, move |case| Ok(&*decided(case)?.reason))?,
            try_column(cases, move |case| Ok(decided(case)?.at.0))?,
            count(cases),
        ];
        flight.add(&RESOLVED, params);
    }
    Ok(())
}
