//! What reconciliation keeps: runs, differences, up to where buckets were proved.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::id::{DiscrepancyId, RunId};
use holdfast_core::reconcile::{Class, Discrepancy, DiscrepancyState, Finding, RunScope};
use holdfast_core::snapshot::{Changes, Needs, Snapshot};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row, integer, number, write_found, write_proof};
use holdfast_store::{
    Checkpoint, DiscrepancyFilter, Dispose, Error, Page, RUNS_KEPT, RUNS_UNFINISHED_MAX, Run, found_again,
    page_of,
};
use rusqlite::{Connection, params};

use crate::apply::exactly_one;
use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};
use crate::query::{Query, blob, text};

pub(super) fn ask_run(db: &Connection, run: &Run) -> Result<bool, Error> {
    let sql = "SELECT count(*) AS waiting FROM reconciliation WHERE state = 'running'";
    let waiting: Option<u64> = one(db, sql, [], |row| number(row, "waiting"))?;
    if waiting.is_some_and(|waiting| waiting >= RUNS_UNFINISHED_MAX) {
        return Ok(false);
    }
    put_run(db, run)?;
    Ok(true)
}

fn put_run(db: &Connection, run: &Run) -> Result<(), Error> {
    let sql = "INSERT INTO reconciliation (id, scope, state, asked_by, started_at, finished_at, buckets_read, \
               entries_read, orders_read, found, failure, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
               ?11, ?12) ON CONFLICT (id) DO UPDATE SET state = ?3, finished_at = ?6, buckets_read = ?7, \
               entries_read = ?8, orders_read = ?9, found = ?10, failure = ?11, attempts = ?12";
    let values = params![
        bytes(run.id.0),
        run.scope.as_str(),
        run.state.as_str(),
        &*run.asked_by,
        run.started_at.0,
        run.finished_at.map(|at| at.0),
        integer(run.buckets_read)?,
        integer(run.entries_read)?,
        integer(run.orders_read)?,
        write_found(&run.found)?,
        run.failure.as_deref(),
        run.attempts,
    ];
    exactly_one(db, sql, values)
}

pub(super) fn save_run(db: &Connection, run: &Run) -> Result<(), Error> {
    put_run(db, run)?;
    let sql = "DELETE FROM reconciliation WHERE state = 'done' AND found = '{}' AND id < \
               (SELECT id FROM reconciliation WHERE state = 'done' AND found = '{}' ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    if run.finished_at.is_some() {
        db.prepare_cached(sql).store()?.execute(params![integer(RUNS_KEPT)?]).store()?;
    }
    Ok(())
}

pub(super) fn run(db: &Connection, id: RunId) -> Result<Option<Run>, Error> {
    one(db, "SELECT * FROM reconciliation WHERE id = ?1", params![bytes(id.0)], rows::run)
}

pub(super) fn runs(db: &Connection, page: &Page<RunId>) -> Result<(Vec<Run>, bool), Error> {
    let mut query = Query::new("SELECT * FROM reconciliation");
    query.and("id < ?", page.after.map(|after| blob(after.0)));
    Ok(page_of(query.page("id DESC", page.limit).run(db, rows::run)?, page.limit))
}

pub(super) fn unfinished_run(db: &Connection) -> Result<Option<Run>, Error> {
    one(db, "SELECT * FROM reconciliation WHERE state = 'running' ORDER BY id LIMIT 1", [], rows::run)
}

pub(super) fn last_run_at(db: &Connection, scope: RunScope) -> Result<Option<Timestamp>, Error> {
    let sql = "SELECT started_at FROM reconciliation WHERE scope = ?1 ORDER BY id DESC LIMIT 1";
    one(db, sql, params![scope.as_str()], |row| number(row, "started_at").map(Timestamp))
}

pub(super) fn save_checkpoints(db: &Connection, checkpoints: &[Checkpoint]) -> Result<(), Error> {
    let sql = "INSERT INTO reconcile_checkpoint (pool, number, to_seq, entries, available_sum, held_sum, sold_sum, \
               unowned_held, unowned_sold, moves, supplies, covering) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
               ?11, ?12) ON CONFLICT (pool, number) DO UPDATE SET to_seq = ?3, entries = ?4, available_sum = ?5, \
               held_sum = ?6, sold_sum = ?7, unowned_held = ?8, unowned_sold = ?9, moves = ?10, supplies = ?11, \
               covering = ?12";
    for Checkpoint { bucket, sums } in checkpoints {
        let values = params![
            bytes(bucket.pool.0),
            bucket.number,
            integer(sums.to)?,
            integer(sums.entries)?,
            sums.delta.available,
            sums.delta.held,
            sums.delta.sold,
            sums.unowned.0,
            sums.unowned.1,
            integer(sums.moves)?,
            integer(sums.supplies)?,
            integer(sums.covering)?,
        ];
        exactly_one(db, sql, values)?;
    }
    Ok(())
}

pub(super) fn note(
    db: &Connection,
    run: RunId,
    findings: Vec<Finding>,
    now: Timestamp,
) -> Result<Vec<Discrepancy>, Error> {
    findings.into_iter().map(|found| note_one(db, run, found, now)).collect()
}

fn note_one(db: &Connection, run: RunId, found: Finding, now: Timestamp) -> Result<Discrepancy, Error> {
    let sql = "SELECT * FROM discrepancy WHERE identity = ?1 ORDER BY round DESC LIMIT 1";
    let read = |row: &dyn Row| {
        let last = rows::number_id(row, "last_run")?;
        Ok((rows::discrepancy(row)?, number::<u32>(row, "round")?, RunId(last)))
    };
    let identity = bytes(found.identity().0);
    let (kept, round) = match one(db, sql, params![identity], read)? {
        Some((known, _, last)) if known.state == DiscrepancyState::Open => {
            let again = found_again(known, found, last != run, now);
            let sql = "UPDATE discrepancy SET last_seen_at = ?2, last_run = ?3, cycles = ?4, expected = ?5, actual = ?6, \
                       evidence = ?7, proof = ?8, order_id = ?9 WHERE id = ?1 AND state = 'open'";
            let values = params![
                bytes(again.id.0),
                again.last_seen_at.0,
                bytes(run.0),
                again.cycles,
                &*again.found.expected,
                &*again.found.actual,
                &*again.found.evidence,
                write_proof(&again.found.proof)?,
                again.found.order.map(|order| bytes(order.0)),
            ];
            exactly_one(db, sql, values)?;
            return Ok(again);
        }
        Some((_, round, _)) => {
            let round = round.saturating_add(1);
            (Discrepancy::new(found, round, now), round)
        }
        None => (Discrepancy::new(found, 0, now), 0),
    };
    insert(db, &kept, round, run)?;
    Ok(kept)
}

fn insert(db: &Connection, kept: &Discrepancy, round: u32, run: RunId) -> Result<(), Error> {
    let sql = "INSERT INTO discrepancy (id, identity, round, class, pool, bucket, order_id, position, expected, actual, \
               evidence, proof, first_seen_at, last_seen_at, last_run, cycles, disposition, state) VALUES (?1, ?2, ?3, \
               ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    let found = &kept.found;
    let values = params![
        bytes(kept.id.0),
        bytes(found.identity().0),
        round,
        found.class.as_str(),
        found.pool.map(|pool| bytes(pool.0)),
        found.bucket.map(|bucket| bucket.number),
        found.order.map(|order| bytes(order.0)),
        integer(found.position)?,
        &*found.expected,
        &*found.actual,
        &*found.evidence,
        write_proof(&found.proof)?,
        kept.first_seen_at.0,
        kept.last_seen_at.0,
        bytes(run.0),
        kept.cycles,
        kept.disposition.as_str(),
        kept.state.as_str(),
    ];
    exactly_one(db, sql, values)
}

pub(super) fn dispose(db: &Connection, dispose: &[Dispose]) -> Result<(), Error> {
    let sql = "UPDATE discrepancy SET state = ?2, disposition = ?3 WHERE id = ?1 AND state = 'open'";
    for Dispose { id, state, disposition } in dispose {
        let values = params![bytes(id.0), state.as_str(), disposition.as_str()];
        db.prepare_cached(sql).store()?.execute(values).store()?;
    }
    Ok(())
}

pub(super) fn discrepancy(db: &Connection, id: DiscrepancyId) -> Result<Option<Discrepancy>, Error> {
    one(db, "SELECT * FROM discrepancy WHERE id = ?1", params![bytes(id.0)], rows::discrepancy)
}

pub(super) fn discrepancies(
    db: &Connection,
    filter: DiscrepancyFilter,
    page: &Page<DiscrepancyId>,
) -> Result<(Vec<Discrepancy>, bool), Error> {
    let mut query = Query::new("SELECT * FROM discrepancy");
    query.and("state = ?", filter.state.map(|state| text(state.as_str())));
    query.and("class = ?", filter.class.map(|class| text(class.as_str())));
    query.and("id > ?", page.after.map(|after| blob(after.0)));
    Ok(page_of(query.page("id", page.limit).run(db, rows::discrepancy)?, page.limit))
}

pub(super) fn open_discrepancies(db: &Connection) -> Result<BTreeMap<Class, u64>, Error> {
    let sql = "SELECT class, count(*) AS open FROM discrepancy WHERE state = 'open' GROUP BY class";
    let read = |row: &dyn Row| Ok((rows::word(row, "class", Class::parse)?, number(row, "open")?));
    Ok(many(db, sql, [], read)?.into_iter().collect())
}

/// The differences that a batch mends, their cases, and where the ledgers of the locked buckets end.
pub(crate) fn load(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    if needs.discrepancies.is_empty() {
        return Ok(());
    }
    for id in &needs.discrepancies {
        let Some(known) = discrepancy(db, *id)? else { continue };
        let sql = "SELECT * FROM cases WHERE id = ?1";
        let case = one(db, sql, params![bytes(known.case_id().0)], rows::case)?;
        rows.cases.extend(case.map(|case| (case.id, case)));
        rows.discrepancies.insert(*id, Arc::new(known));
    }
    let sql = "SELECT coalesce(max(seq), 0) AS last_seq FROM ledger WHERE pool = ?1 AND bucket = ?2";
    let locked: Vec<_> = rows.buckets.keys().copied().collect();
    for key in locked {
        let named = params![bytes(key.pool.0), key.number];
        rows.ledger_ends.extend(one(db, sql, named, |row| number(row, "last_seq"))?.map(|last| (key, last)));
    }
    Ok(())
}

/// Writes what a batch mended and decided.
pub(crate) fn write(db: &Connection, changes: &Changes) -> Result<(), Error> {
    for repaired in &changes.repaired {
        let sql = "UPDATE discrepancy SET state = 'repaired' WHERE id = ?1 AND state = 'open'";
        exactly_one(db, sql, params![bytes(repaired.id.0)])?;
    }
    for case in &changes.resolved_cases {
        let Some(decided) = &case.resolution else { continue };
        let sql = "UPDATE cases SET state = 'resolved', action = ?2, operator = ?3, reason = ?4, decided_at = ?5 \
                   WHERE id = ?1 AND state = 'open'";
        let (action, who, why) = (decided.action.as_str(), decided.operator.as_str(), &*decided.reason);
        exactly_one(db, sql, params![bytes(case.id.0), action, who, why, decided.at.0])?;
    }
    Ok(())
}
