//! The trail of operators' acts, written in the transaction of the act. Their numbers come from a counter in the
//! authority's row, which every transaction takes last: so they rise in the order of the commits, on every node.

use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, integer};
use holdfast_store::{About, Act, ActFilter, ActId, ActRow, Error, Page, page_of};
use tokio_postgres::types::Type;

use crate::connection::Connection;
use crate::error::Fault;
use crate::flight::Flight;
use crate::query::Query;
use crate::row::uuid;
use crate::statement::Sql;

static RECORD: Sql = Sql::new(
    "WITH counter AS (UPDATE authority SET acts = acts + $10 WHERE only_row = 1 RETURNING acts - $10 AS base) \
     INSERT INTO operator_action (id, at, operator, action, subject, reason, actor_key, request_id, detail, campaign_id) \
     SELECT counter.base + act.place, $1, act.operator, act.action, act.subject, act.reason, act.actor_key, \
     act.request_id, act.detail, coalesce(act.campaign_id, (SELECT pool.campaign_id FROM pool WHERE pool.id = act.pool)) \
     FROM counter, UNNEST($2, $3, $4, $5, $6, $7, $8, $9, $11) WITH ORDINALITY AS act \
     (operator, action, subject, reason, actor_key, request_id, detail, campaign_id, pool, place)",
    &[
        Type::INT8,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8,
        Type::UUID_ARRAY,
    ],
);

/// Adds acts to what a transaction writes.
pub(crate) fn add<'a>(flight: &mut Flight<'a>, acts: &'a [Act], now: Timestamp) {
    let subjects: Vec<String> = acts.iter().map(|act| act.about.subject()).collect();
    let (mut campaigns, mut pools) = (Vec::with_capacity(acts.len()), Vec::with_capacity(acts.len()));
    for act in acts {
        let (campaign, pool) = match &act.about {
            About::Campaign(id) | About::Order(_, id) => (Some(id.as_str()), None),
            About::Pool(id) => (None, Some(uuid(id.0))),
            About::Case(_) | About::Key(_) | About::Sink(_) => (None, None),
        };
        campaigns.push(campaign);
        pools.push(pool);
    }
    let requests: Vec<Option<&str>> =
        acts.iter().map(|act| act.via.as_ref().map(|via| &*via.request_id)).collect();
    flight.add(
        &RECORD,
        vec![
            Box::new(now.0),
            Box::new(acts.iter().map(|act| &*act.operator).collect::<Vec<&str>>()),
            Box::new(acts.iter().map(|act| act.action).collect::<Vec<&str>>()),
            Box::new(subjects),
            Box::new(acts.iter().map(|act| &*act.reason).collect::<Vec<&str>>()),
            Box::new(acts.iter().map(Act::actor).collect::<Vec<&str>>()),
            Box::new(requests),
            Box::new(acts.iter().map(|act| act.detail.as_str()).collect::<Vec<&str>>()),
            Box::new(campaigns),
            Box::new(i64::try_from(acts.len()).unwrap_or(i64::MAX)),
            Box::new(pools),
        ],
    );
}

/// Writes one act down.
pub(crate) async fn record(connection: &Connection, act: &Act, now: Timestamp) -> Result<(), Fault> {
    let mut flight = Flight::default();
    add(&mut flight, std::slice::from_ref(act), now);
    flight.send(connection, None).await?.answers().await?;
    Ok(())
}

/// What operators did, the newest first.
pub(crate) fn list(filter: &ActFilter, page: &Page<ActId>) -> Result<Query, Error> {
    let mut query = Query::new("SELECT * FROM operator_action");
    query.in_scope("campaign_id", &filter.scope);
    query.and_text("subject =", filter.subject.as_deref());
    query.and_integer("id <", page.after.map(|id| integer(id.0)).transpose()?);
    Ok(query.page("id DESC", page.limit))
}

/// A page of them.
pub(crate) fn page(found: &[tokio_postgres::Row], limit: usize) -> Result<(Vec<ActRow>, bool), Error> {
    Ok(page_of(crate::row::all(found, rows::act)?, limit))
}
