//! Requests for a second person.

use std::sync::Arc;

use holdfast_core::approval::{Approval, ApprovalKey, ApprovalState, Verdict};
use holdfast_core::snapshot::{Changes, Needs, Snapshot};
use holdfast_store::rows::{self, integer, write_proposal};
use holdfast_store::{ApprovalFilter, Error, Page, page_of};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::apply::exactly_one;
use crate::load::one;
use crate::query::{Query, text};

/// The requests that a batch names.
pub(crate) fn load(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    for key in &needs.approvals {
        rows.approvals.extend(find(db, key)?.map(|known| (known.key.clone(), known)));
    }
    Ok(())
}

/// A request.
pub(crate) fn find(db: &Connection, key: &ApprovalKey) -> Result<Option<Arc<Approval>>, Error> {
    let found = one(db, "SELECT * FROM approval WHERE id = ?1", params![key.as_str()], rows::approval)?;
    Ok(found.map(Arc::new))
}

/// Writes what a batch asks for and decides.
pub(crate) fn write(db: &Connection, changes: &Changes) -> Result<(), Error> {
    for new in &changes.approvals {
        let sql = "INSERT INTO approval (id, campaign_id, proposal, units, asked_at, expires_at, actor, actor_key, \
                   reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let asked = new.proposal.signed();
        exactly_one(
            db,
            sql,
            params![
                new.key.as_str(),
                new.campaign.as_str(),
                write_proposal(&new.proposal)?,
                integer(new.units)?,
                new.asked_at.0,
                new.expires_at.0,
                &*asked.actor,
                asked.via.as_ref().map(|via| &*via.key),
                &*asked.reason,
            ],
        )?;
    }
    for decided in &changes.decided_approvals {
        let Some(decision) = &decided.decision else { continue };
        let sql = "UPDATE approval SET verdict = ?2, decided_at = ?3, decider = ?4, decider_key = ?5, \
                   decision_reason = ?6 WHERE id = ?1 AND verdict IS NULL";
        let by = &decision.signed;
        exactly_one(
            db,
            sql,
            params![
                decided.key.as_str(),
                decision.verdict.as_str(),
                decision.at.0,
                &*by.actor,
                by.via.as_ref().map(|via| &*via.key),
                &*by.reason,
            ],
        )?;
    }
    Ok(())
}

/// Requests in order of their keys.
pub(crate) fn list(
    db: &Connection,
    filter: &ApprovalFilter,
    page: &Page<ApprovalKey>,
) -> Result<(Vec<Arc<Approval>>, bool), Error> {
    let mut query = Query::new("SELECT * FROM approval");
    query.in_scope("campaign_id", &filter.scope);
    query.and("campaign_id = ?", filter.campaign.as_ref().map(|campaign| text(campaign.as_str())));
    if let Some((state, now)) = filter.state {
        let now = Some(Value::Integer(now.0));
        match state {
            ApprovalState::Pending => query.and("verdict IS NULL AND expires_at > ?", now),
            ApprovalState::Expired => query.and("verdict IS NULL AND expires_at <= ?", now),
            ApprovalState::Approved => query.and("verdict = ?", Some(text(Verdict::Approve.as_str()))),
            ApprovalState::Rejected => query.and("verdict = ?", Some(text(Verdict::Reject.as_str()))),
        }
    }
    query.and("id > ?", page.after.as_ref().map(|after| text(after.as_str())));
    let found = query.page("id", page.limit).run(db, |row| rows::approval(row).map(Arc::new))?;
    Ok(page_of(found, page.limit))
}
