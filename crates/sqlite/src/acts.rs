//! The trail of operators' acts, written in the transaction of the act.

use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, integer};
use holdfast_store::{About, Act, ActFilter, ActId, ActRow, Error, Page, page_of};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::query::{Query, text};

/// Writes an act down.
pub(crate) fn record(db: &Connection, act: &Act, now: Timestamp) -> Result<(), Error> {
    let (campaign, pool) = match &act.about {
        About::Campaign(id) | About::Order(_, id) => (Some(id.as_str()), None),
        About::Pool(id) => (None, Some(bytes(id.0))),
        About::Case(_) | About::Key(_) | About::Sink(_) => (None, None),
    };
    let request_id = act.via.as_ref().map(|via| &*via.request_id);
    let sql = "INSERT INTO operator_action (at, operator, action, subject, reason, actor_key, request_id, detail, \
               campaign_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
               coalesce(?9, (SELECT campaign_id FROM pool WHERE id = ?10)))";
    let (operator, reason, subject) = (&*act.operator, &*act.reason, act.about.subject());
    db.prepare_cached(sql)
        .store()?
        .execute(params![
            now.0,
            operator,
            act.action,
            subject,
            reason,
            act.actor(),
            request_id,
            act.detail,
            campaign,
            pool
        ])
        .store()?;
    Ok(())
}

/// What operators did, the newest first.
pub(crate) fn list(
    db: &Connection,
    filter: &ActFilter,
    page: &Page<ActId>,
) -> Result<(Vec<ActRow>, bool), Error> {
    let mut query = Query::new("SELECT * FROM operator_action");
    query.in_scope("campaign_id", &filter.scope);
    query.and("subject = ?", filter.subject.as_deref().map(text));
    let after = page.after.map(|id| integer(id.0)).transpose()?;
    query.and("id < ?", after.map(Value::Integer));
    Ok(page_of(query.page("id DESC", page.limit).run(db, rows::act)?, page.limit))
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::CampaignId;

    use super::*;

    #[test]
    fn acts_of_before_get_their_campaign_and_stay_as_they_are() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("../migrations/V1__initial.sql")).unwrap();
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO pool (id, campaign_id, sku, location, buckets, opening_supply, frozen)
             VALUES (x'000000000000000000000000000000ff', 'winter', 's', 'main', 1, 0, 0);
             INSERT INTO operator_action (at, operator, action, subject, reason) VALUES
             (1, 'ann', 'open', 'campaign spring', 'go'),
             (2, 'bob', 'freeze', 'pool 00000000-0000-0000-0000-0000000000ff', 'look');",
        )
        .unwrap();
        db.execute_batch(include_str!("../migrations/V2__keys.sql")).unwrap();
        let all = list(&db, &ActFilter::default(), &Page { after: None, limit: 9 }).unwrap().0;
        let campaigns: Vec<_> = all.iter().map(|act| act.campaign.as_ref().map(CampaignId::as_str)).collect();
        assert_eq!(campaigns, [Some("winter"), Some("spring")]);
        assert_eq!((all[1].actor.as_str(), all[1].request_id.as_deref()), ("", None));
        for edit in ["UPDATE operator_action SET reason = 'x'", "DELETE FROM operator_action"] {
            assert!(db.execute(edit, []).unwrap_err().to_string().contains("append-only"), "{edit}");
        }
    }
}
