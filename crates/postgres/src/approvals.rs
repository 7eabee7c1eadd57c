//! Requests for a second person.

use holdfast_core::approval::{Approval, ApprovalKey, ApprovalState, Verdict};
use holdfast_core::snapshot::Changes;
use holdfast_store::rows::{integer, write_proposal};
use holdfast_store::{ApprovalFilter, Error, Page};
use std::sync::Arc;
use tokio_postgres::types::Type;

use crate::apply::{column, count, try_column};
use crate::flight::Flight;
use crate::query::Query;
use crate::statement::{Sql, exactly};

pub(crate) static APPROVALS: Sql =
    Sql::new("SELECT * FROM approval WHERE id = ANY ($1)", &[Type::TEXT_ARRAY]);

static INSERT_APPROVALS: Sql = Sql::new(
    "INSERT INTO approval (id, campaign_id, proposal, units, asked_at, expires_at, actor, actor_key, reason) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
);

/// What was decided meanwhile is not decided again.
static DECIDE_APPROVALS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE approval SET verdict = new.verdict, decided_at = new.decided_at, \
         decider = new.decider, decider_key = new.decider_key, decision_reason = new.reason \
         FROM UNNEST($1, $2, $3, $4, $5, $6) AS new (id, verdict, decided_at, decider, decider_key, reason) \
         WHERE approval.id = new.id AND approval.verdict IS NULL RETURNING 1)",
        exactly!("$7")
    ),
    &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8,
    ],
);

/// Adds what a batch asks for and decides.
pub(crate) fn add<'f>(flight: &mut Flight<'f>, changes: &'f Changes) -> Result<(), Error> {
    let new: &[Arc<Approval>] = &changes.approvals;
    if !new.is_empty() {
        let params = vec![
            column(new, |approval| approval.key.as_str()),
            column(new, |approval| approval.campaign.as_str()),
            try_column(new, |approval| write_proposal(&approval.proposal))?,
            try_column(new, |approval| integer(approval.units))?,
            column(new, |approval| approval.asked_at.0),
            column(new, |approval| approval.expires_at.0),
            column(new, |approval| &*approval.proposal.signed().actor),
            column(new, |approval| approval.proposal.signed().via.as_ref().map(|via| &*via.key)),
            column(new, |approval| &*approval.proposal.signed().reason),
        ];
        flight.add(&INSERT_APPROVALS, params);
    }
    let decided: &[Arc<Approval>] = &changes.decided_approvals;
    if !decided.is_empty() {
        let decision = |approval: &'f Arc<Approval>| approval.decision.as_ref();
        let params = vec![
            column(decided, |approval| approval.key.as_str()),
            column(decided, move |approval| decision(approval).map(|decision| decision.verdict.as_str())),
            column(decided, move |approval| decision(approval).map(|decision| decision.at.0)),
            column(decided, move |approval| decision(approval).map(|decision| &*decision.signed.actor)),
            column(decided, move |approval| {
                decision(approval).and_then(|decision| decision.signed.via.as_ref()).map(|via| &*via.key)
            }),
            column(decided, move |approval| decision(approval).map(|decision| &*decision.signed.reason)),
            count(decided),
        ];
        flight.add(&DECIDE_APPROVALS, params);
    }
    Ok(())
}

/// A request.
pub(crate) fn find(key: &ApprovalKey) -> Query {
    let mut query = Query::new("SELECT * FROM approval");
    query.and_text("id =", Some(key.as_str()));
    query
}

/// Requests in order of their keys.
pub(crate) fn list(filter: &ApprovalFilter, page: &Page<ApprovalKey>) -> Query {
    let mut query = Query::new("SELECT * FROM approval");
    query.in_scope("campaign_id", &filter.scope);
    query.and_text("campaign_id =", filter.campaign.as_ref().map(|campaign| campaign.as_str()));
    if let Some((state, now)) = filter.state {
        match state {
            ApprovalState::Pending => query.and_integer("verdict IS NULL AND expires_at >", Some(now.0)),
            ApprovalState::Expired => query.and_integer("verdict IS NULL AND expires_at <=", Some(now.0)),
            ApprovalState::Approved => query.and_text("verdict =", Some(Verdict::Approve.as_str())),
            ApprovalState::Rejected => query.and_text("verdict =", Some(Verdict::Reject.as_str())),
        }
    }
    query.and_text("id >", page.after.as_ref().map(ApprovalKey::as_str));
    query.page("id", page.limit)
}
