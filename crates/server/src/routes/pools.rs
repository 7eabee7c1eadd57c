//! Pools.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use holdfast_core::command::Outcome;
use holdfast_core::id::PoolId;
use holdfast_engine::Engine;
use holdfast_store::{PoolFilter, PoolFreeze, PoolRow};
use holdfast_wire::AdjustmentView;

use super::page;
use crate::answer::{json, made, unexpected};
use crate::app::App;
use crate::extract::{Named, NoQuery, WriteBody};
use crate::input::campaigns::read_switch;
use crate::input::pools::{read_adjustment, read_pool};
use crate::input::query::Query;
use crate::problem::{Problem, Subject};
use crate::view;

/// `POST /v1/pools`
pub(crate) async fn open_pool(State(app): State<App>, body: WriteBody) -> Result<Response, Problem> {
    let open = body.read(|object| read_pool(app.actor(), object))?;
    let work = |engine: Engine| async move { Ok(engine.open_pool(open).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Pool { pool, buckets, created } => made(!created, &view::pool_of(&pool, &buckets)),
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::NewInCampaign))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

/// `GET /v1/pools`
pub(crate) async fn list_pools(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let filter = PoolFilter {
        campaign: query.id("campaign_id"),
        sku: query.id("sku"),
        location: query.id("location"),
    };
    let asked = query.page::<PoolId>();
    let asked = query.finish(asked)?;
    let (rows, more) = app.store().pools(filter, asked.page).await?;
    json(StatusCode::OK, &page(&rows, more, &asked.cursor, |row| row.pool.id, view::pool))
}

/// `GET /v1/pools/{id}`
pub(crate) async fn get_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    json(StatusCode::OK, &view::pool(&row_of(&app, id).await?))
}

/// `GET /v1/pools/{id}/availability`
pub(crate) async fn get_availability(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let shown = app.engine().availability(id).await?.ok_or_else(no_pool)?;
    json(StatusCode::OK, &view::availability(&shown))
}

/// `POST /v1/pools/{id}/adjustments`
pub(crate) async fn adjust_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let adjust = body.read(|object| read_adjustment(id, object))?;
    let adjustment_id = adjust.adjustment_id.to_string();
    let work = |engine: Engine| async move { Ok(engine.adjust(adjust).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Adjusted { buckets, repeated } => {
            // Of the pool only what never changes is read anew, and whether it is frozen.
            let pool = view::pool_of(&row_of(&app, id).await?.pool, &buckets);
            made(repeated, &AdjustmentView { adjustment_id, state: "applied".into(), pool })
        }
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::Named))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Pool { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

/// `POST /v1/pools/{id}/{freeze,unfreeze}`
pub(crate) fn freeze(frozen: bool) -> MethodRouter<App> {
    post(move |State(app): State<App>, Named(id): Named<PoolId>, body: WriteBody| async move {
        freeze_pool(&app, id, frozen, body).await
    })
}

async fn freeze_pool(app: &App, id: PoolId, frozen: bool, body: WriteBody) -> Result<Response, Problem> {
    let signed = body.read(read_switch)?;
    let set = PoolFreeze { id, frozen, operator: signed.operator, reason: signed.reason.to_string() };
    let work = |engine: Engine| async move { Ok(engine.freeze_pool(set).await?) };
    match app.write(body.permit, work).await? {
        Ok(row) => json(StatusCode::OK, &view::pool(&row)),
        Err(refusal) => Err(Problem::refused(&refusal, false, false, None, Subject::Named)),
    }
}

async fn row_of(app: &App, id: PoolId) -> Result<PoolRow, Problem> {
    app.store().pool(id).await?.ok_or_else(no_pool)
}

fn no_pool() -> Problem {
    Problem::not_found("there is no such pool")
}
