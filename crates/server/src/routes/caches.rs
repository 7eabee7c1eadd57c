//! Caches of pools on the cached path, for operators.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::cache::EpochState;
use holdfast_core::command::Signed;
use holdfast_core::id::PoolId;
use holdfast_engine::{CacheReport, Engine};
use holdfast_wire::{BucketCacheView, CacheView, Code, SwitchRequest};

use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, NoQuery, WriteBody};
use crate::input::campaigns::read_switch;
use crate::openapi::parameters::PoolPath;
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::Problem;

problems! {
    /// Problems of a look at a cache.
    CacheProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of a rebuild.
    RebuildProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict];
}

/// Shows a pool's caches beside the authority
///
/// Bucket by bucket, read now: what is accepted and not landed, landed and not settled, and by how much the cache
/// differs from what the ledger says.
#[utoipa::path(
    get, path = "/v1/pools/{id}/cache", tag = "pools",
    params(PoolPath),
    responses(
        (status = 200, description = "The caches; of a pool that was never on the cached path, without an epoch.", body = CacheView),
        CacheProblems
    )
)]
pub(crate) async fn get_cache(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    json(StatusCode::OK, &cache_of(app.engine(), id).await?)
}

/// Rebuilds a pool's caches
///
/// They accept no more, what they accepted is landed, and new ones begin from the authority's balances. Until then
/// the pool does what its `cache_fallback` says. The same again rebuilds again.
#[utoipa::path(
    post, path = "/v1/pools/{id}/rebuild", tag = "pools",
    params(PoolPath),
    request_body = SwitchRequest,
    responses(
        (status = 200, description = "The caches, as they begin to drain.", body = CacheView),
        RebuildProblems
    )
)]
pub(crate) async fn rebuild_cache(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let switch = body.read(read_switch)?;
    let signed = Signed { via: caller.via(), ..Signed::new(switch.operator.as_str(), switch.reason) };
    let work = |engine: Engine| async move { Ok(engine.rebuild_caches(id, signed).await?) };
    app.write(body.permit, work).await?.ok_or_else(no_pool)?;
    json(StatusCode::OK, &cache_of(app.engine(), id).await?)
}

async fn cache_of(engine: &Engine, id: PoolId) -> Result<CacheView, Problem> {
    let reports = engine.cache_report(id).await?.ok_or_else(no_pool)?;
    Ok(CacheView { pool_id: id.to_string(), buckets: reports.iter().map(of_bucket).collect() })
}

fn of_bucket(report: &CacheReport) -> BucketCacheView {
    let (row, position) = (report.row.as_ref(), report.position.as_ref());
    let is_same = row.zip(position).is_some_and(|(row, position)| row.epoch == position.epoch);
    BucketCacheView {
        number: report.bucket.key.number,
        epoch: row.map(|row| row.epoch.0),
        state: row.map_or(EpochState::Closed, |row| row.state).as_str().into(),
        reachable: report.is_reachable,
        accepts: is_same && position.is_some_and(|position| position.is_open),
        cache_epoch: position.map(|position| position.epoch.0),
        available: position.map(|position| position.available),
        accepted: position.map(|position| position.accepted),
        backlog: position.map(|position| position.backlog),
        delivered: position.map(|position| position.delivered),
        applied_seq: position.map(|position| position.applied),
        ledger_seq: report.bucket.ledger_seq,
        difference: report.difference,
    }
}

fn no_pool() -> Problem {
    Problem::not_found("there is no such pool")
}
