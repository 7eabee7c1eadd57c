//! Which authority this is, and its cases.

use holdfast_core::case::{Case, CaseKind, CaseState};
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self as row, Row, corrupt, number};
use holdfast_store::{Act, Authority, CaseFilter, NewIncarnation, Page, ResolveCase};
use tokio_postgres::types::Type;

use crate::call::{Work, rows};
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::read::View;
use crate::row::{all, first, uuid};
use crate::store::Inner;
use crate::{acts, cache};

fn incarnation(row: &dyn Row) -> Result<Incarnation, holdfast_store::Error> {
    row::number_id(row, "incarnation").map(Incarnation)
}

/// Which authority this is, and how far its ledger has come.
pub(crate) struct TheAuthority;

impl View for TheAuthority {
    type Output = Authority;

    async fn see(&self, connection: &Connection) -> Result<Authority, Fault> {
        authority(connection).await
    }
}

async fn authority(connection: &Connection) -> Result<Authority, Fault> {
    let current = rows(connection, "SELECT incarnation FROM authority", &[], &[]).await?;
    let current = first(&current, incarnation).map_err(Fault::Refused)?;
    let past = "SELECT incarnation FROM past_incarnation ORDER BY number";
    let past = rows(connection, past, &[], &[]).await?;
    let reached = "SELECT CAST(coalesce(sum(ledger_seq), 0) AS BIGINT) AS positions, max(last_at) AS last_at FROM bucket";
    let reached = rows(connection, reached, &[], &[]).await?;
    let reached = first(&reached, |row| Ok((number(row, "positions")?, row.integer("last_at")?)));
    let (positions, last_at) = reached.map_err(Fault::Refused)?.unwrap_or((0, None));
    Ok(Authority {
        incarnation: current.ok_or_else(|| Fault::Refused(corrupt("the authority's row is missing")))?,
        past: all(&past, incarnation).map_err(Fault::Refused)?,
        positions,
        last_ledger_at: last_at.map(Timestamp),
    })
}

/// What keys that orders carry are hashed with.
pub(crate) struct LimitSalt;

impl View for LimitSalt {
    type Output = [u8; 32];

    async fn see(&self, connection: &Connection) -> Result<[u8; 32], Fault> {
        let found = rows(connection, "SELECT salt FROM limit_salt", &[], &[]).await?;
        let salt = first(&found, row::limit_salt).map_err(Fault::Refused)?;
        salt.ok_or_else(|| Fault::Refused(corrupt("the salt of the keys is missing")))
    }
}

impl Work for NewIncarnation {
    type Output = ();

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<(), Fault> {
        let open = cache::lock_open(connection).await?;
        let locked = rows(connection, "SELECT only_row FROM authority FOR UPDATE", &[], &[]).await?;
        if locked.len() != 1 {
            return Err(Fault::Refused(corrupt("the authority's row is missing")));
        }
        let now = inner.time(connection).await?;
        let sql = "INSERT INTO past_incarnation (number, incarnation, ended_at) \
                   SELECT (SELECT coalesce(max(number), 0) + 1 FROM past_incarnation), incarnation, $1 FROM authority";
        rows(connection, sql, &[&now.0], &[Type::INT8]).await?;
        let new = uuid(self.incarnation.0);
        rows(connection, "UPDATE authority SET incarnation = $1", &[&new], &[Type::UUID]).await?;
        cache::close_epochs(connection, &open, now).await?;
        insert(connection, &self.case_at(now)).await
    }
}

/// Opens a case, unless it is there.
pub(crate) struct Open(pub(crate) Case);

impl Work for Open {
    type Output = ();

    async fn run(&self, connection: &Connection, _: &Inner) -> Result<(), Fault> {
        let id = uuid(self.0.id.0);
        let known = rows(connection, "SELECT id FROM cases WHERE id = $1", &[&id], &[Type::UUID]).await?;
        if known.is_empty() { insert(connection, &self.0).await } else { Ok(()) }
    }
}

async fn insert(connection: &Connection, case: &Case) -> Result<(), Fault> {
    let sql = "INSERT INTO cases (id, kind, pool, order_id, evidence, opened_at, state) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let types = [Type::UUID, Type::TEXT, Type::UUID, Type::UUID, Type::TEXT, Type::INT8, Type::TEXT];
    let (pool, order) = (case.pool.map(|pool| uuid(pool.0)), case.order.map(|order| uuid(order.0)));
    let (kind, state, evidence) = (case.kind.as_str(), case.state().as_str(), &*case.evidence);
    let id = uuid(case.id.0);
    rows(connection, sql, &[&id, &kind, &pool, &order, &evidence, &case.opened_at.0, &state], &types).await?;
    Ok(())
}

pub(crate) fn list(filter: CaseFilter, page: &Page<CaseId>) -> Query {
    let mut query = Query::new("SELECT * FROM cases");
    query.and_text("state =", filter.state.map(CaseState::as_str));
    query.and_text("kind =", filter.kind.map(CaseKind::as_str));
    query.and_id("id >", page.after.map(|after| after.0));
    query.page("id", page.limit)
}

impl Work for ResolveCase {
    type Output = Result<Case, Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let sql = "SELECT * FROM cases WHERE id = $1 FOR UPDATE";
        let found = rows(connection, sql, &[&uuid(self.id.0)], &[Type::UUID]).await?;
        let Some(mut known) = first(&found, row::case).map_err(Fault::Refused)? else {
            return Ok(Err(Refusal::UnknownCase));
        };
        let now = inner.time(connection).await?;
        match known.resolve(self.at(now)) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(false) => return Ok(Ok(known)),
            Ok(true) => {}
        }
        let sql = "UPDATE cases SET state = 'resolved', action = $2, operator = $3, reason = $4, decided_at = $5 \
                   WHERE id = $1 AND state = 'open'";
        let types = [Type::UUID, Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8];
        let (action, who, why) = (self.action.as_str(), self.operator.as_str(), &*self.reason);
        rows(connection, sql, &[&uuid(self.id.0), &action, &who, &why, &now.0], &types).await?;
        acts::record(connection, &Act::resolve_case(self), now).await?;
        Ok(Ok(known))
    }
}
