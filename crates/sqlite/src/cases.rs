//! Which authority this is, and its cases.

use holdfast_core::case::Case;
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row, corrupt, number};
use holdfast_store::{Act, Authority, CaseFilter, Error, NewIncarnation, Page, ResolveCase, page_of};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};
use crate::query::{Query, blob, text};
use crate::{acts, cache};

/// Whether an open case stops all sales. Read by every batch: one look into a small index.
pub(crate) fn halted(db: &Connection) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM cases WHERE state = 'open' AND kind = 'incarnation')";
    db.prepare_cached(sql).store()?.query_row([], |row| row.get(0)).store()
}

/// What keys that orders carry are hashed with.
pub(crate) fn limit_salt(db: &Connection) -> Result<[u8; 32], Error> {
    let salt = one(db, "SELECT salt FROM limit_salt", [], rows::limit_salt)?;
    salt.ok_or_else(|| corrupt("the salt of the keys is missing"))
}

pub(crate) fn authority(db: &Connection) -> Result<Authority, Error> {
    let incarnation = |row: &dyn Row| rows::number_id(row, "incarnation").map(Incarnation);
    let current = one(db, "SELECT incarnation FROM authority", [], incarnation)?;
    let past = many(db, "SELECT incarnation FROM past_incarnation ORDER BY number", [], incarnation)?;
    let sql = "SELECT coalesce(sum(ledger_seq), 0) AS positions, max(last_at) AS last_at FROM bucket";
    let reached = one(db, sql, [], |row| Ok((number(row, "positions")?, row.integer("last_at")?)))?;
    let (positions, last_at) = reached.unwrap_or((0, None));
    Ok(Authority {
        incarnation: current.ok_or_else(|| corrupt("the authority's row is missing"))?,
        past,
        positions,
        last_ledger_at: last_at.map(Timestamp),
    })
}

/// Begins a new incarnation and opens its case.
pub(crate) fn begin_incarnation(
    db: &Connection,
    begin: &NewIncarnation,
    now: Timestamp,
) -> Result<(), Error> {
    let ended = db
        .execute(
            "INSERT INTO past_incarnation (incarnation, ended_at) SELECT incarnation, ?1 FROM authority",
            [now.0],
        )
        .store()?;
    if ended != 1 {
        return Err(corrupt("the authority's row is missing"));
    }
    db.execute("UPDATE authority SET incarnation = ?1", [bytes(begin.incarnation.0)]).store()?;
    cache::close_epochs(db, now)?;
    open(db, &begin.case_at(now))
}

/// Opens a case; an order that has one of the kind keeps it as it is.
pub(crate) fn open(db: &Connection, case: &Case) -> Result<(), Error> {
    let sql = "INSERT INTO cases (id, kind, pool, order_id, evidence, opened_at, state) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
    let (pool, order) = (case.pool.map(|pool| bytes(pool.0)), case.order.map(|order| bytes(order.0)));
    let (kind, state) = (case.kind.as_str(), case.state().as_str());
    db.execute(sql, params![bytes(case.id.0), kind, pool, order, &*case.evidence, case.opened_at.0, state])
        .store()?;
    Ok(())
}

pub(crate) fn list(
    db: &Connection,
    filter: CaseFilter,
    page: &Page<CaseId>,
) -> Result<(Vec<Case>, bool), Error> {
    let mut query = Query::new("SELECT * FROM cases");
    query.and("state = ?", filter.state.map(|state| text(state.as_str())));
    query.and("kind = ?", filter.kind.map(|kind| text(kind.as_str())));
    query.and("id > ?", page.after.map(|after| blob(after.0)));
    Ok(page_of(query.page("id", page.limit).run(db, rows::case)?, page.limit))
}

pub(crate) fn resolve(
    db: &Connection,
    resolve: &ResolveCase,
    now: Timestamp,
) -> Result<Result<Case, Refusal>, Error> {
    let known = one(db, "SELECT * FROM cases WHERE id = ?1", params![bytes(resolve.id.0)], rows::case)?;
    let Some(mut known) = known else { return Ok(Err(Refusal::UnknownCase)) };
    match known.resolve(resolve.at(now)) {
        Err(refusal) => return Ok(Err(refusal)),
        Ok(false) => return Ok(Ok(known)),
        Ok(true) => {}
    }
    let sql = "UPDATE cases SET state = 'resolved', action = ?2, operator = ?3, reason = ?4, decided_at = ?5 \
               WHERE id = ?1 AND state = 'open'";
    let (action, who, why) = (resolve.action.as_str(), resolve.operator.as_str(), &*resolve.reason);
    match db.execute(sql, params![bytes(resolve.id.0), action, who, why, now.0]).store()? {
        1 => acts::record(db, &Act::resolve_case(resolve), now)?,
        count => return Err(Error::Data(format!("{count} cases resolved instead of 1"))),
    }
    Ok(Ok(known))
}

#[cfg(test)]
mod tests {
    use holdfast_core::case::CaseKind;
    use holdfast_core::id::OrderId;

    use super::*;

    #[test]
    fn cases_of_before_stay_as_they_are_and_new_kinds_may_come() {
        let db = Connection::open_in_memory().unwrap();
        for migration in [
            include_str!("../migrations/V1__initial.sql"),
            include_str!("../migrations/V2__keys.sql"),
            include_str!("../migrations/V3__cases.sql"),
            include_str!("../migrations/V4__settlement.sql"),
            include_str!("../migrations/V5__queue.sql"),
        ] {
            db.execute_batch(migration).unwrap();
        }
        db.execute_batch(
            "INSERT INTO cases (id, kind, evidence, opened_at, state) VALUES
             (x'00000000000000000000000000000001', 'incarnation', '{}', 5, 'open');
             INSERT INTO cases (id, kind, evidence, opened_at, state, action, operator, reason, decided_at) VALUES
             (x'00000000000000000000000000000002', 'incarnation', '{}', 6, 'resolved', 'acknowledge', 'ann', 'seen', 7);",
        )
        .unwrap();
        let all =
            |db: &Connection| list(db, CaseFilter::default(), &Page { after: None, limit: 9 }).unwrap().0;
        let before = all(&db);
        db.execute_batch(include_str!("../migrations/V6__limits.sql")).unwrap();
        assert_eq!(all(&db), before);
        assert!(halted(&db).unwrap());
        let mut new = Case::open(CaseId(3), CaseKind::ChargedTwice, "{}".into(), Timestamp(8));
        new.order = Some(OrderId(4));
        open(&db, &new).unwrap();
        open(&db, &Case { opened_at: Timestamp(9), ..new.clone() }).unwrap();
        assert_eq!(all(&db).last(), Some(&new));
        assert_ne!(limit_salt(&db).unwrap(), [0; 32]);
    }
}
