//! Campaigns.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use holdfast_core::campaign::Switch;
use holdfast_core::id::CampaignId;
use holdfast_store::SwitchCampaign;

use super::page;
use crate::answer::json;
use crate::app::App;
use crate::extract::{Named, Naming, NoQuery, WriteBody};
use crate::input::campaigns::{read_campaign, read_switch};
use crate::input::query::Query;
use crate::problem::{Problem, Subject};
use crate::view;

/// `GET /v1/campaigns`
pub(crate) async fn list_campaigns(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let asked = query.page::<CampaignId>();
    let asked = query.finish(asked)?;
    let now = app.store().now();
    let (rows, more) = app.store().campaigns(asked.page).await?;
    let key = |row: &holdfast_store::CampaignTotals| row.campaign.id.clone();
    json(StatusCode::OK, &page(&rows, more, &asked.cursor, key, |row| view::campaign(row, now)))
}

/// `GET /v1/campaigns/{id}`
pub(crate) async fn get_campaign(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    show(&app, id, StatusCode::OK).await
}

/// `PUT /v1/campaigns/{id}`
pub(crate) async fn put_campaign(
    State(app): State<App>,
    Naming(id): Naming<CampaignId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let put = body.read(|object| read_campaign(id.clone(), object))?;
    let work = |engine: holdfast_engine::Engine| async move { Ok(engine.put_campaign(put).await?) };
    let (_, created) = app.write(body.permit, work).await?;
    show(&app, id, if created { StatusCode::CREATED } else { StatusCode::OK }).await
}

/// `POST /v1/campaigns/{id}/{open,pause,resume,freeze,unfreeze,close}`
pub(crate) fn switch(switch: Switch) -> MethodRouter<App> {
    post(move |State(app): State<App>, Named(id): Named<CampaignId>, body: WriteBody| async move {
        switch_campaign(&app, id, switch, body).await
    })
}

async fn switch_campaign(
    app: &App,
    id: CampaignId,
    switch: Switch,
    body: WriteBody,
) -> Result<Response, Problem> {
    let signed = body.read(read_switch)?;
    let set = SwitchCampaign {
        id: id.clone(),
        switch,
        operator: signed.operator,
        reason: signed.reason.to_string(),
    };
    let work = |engine: holdfast_engine::Engine| async move { Ok(engine.switch_campaign(set).await?) };
    match app.write(body.permit, work).await? {
        Ok(_) => show(app, id, StatusCode::OK).await,
        Err(refusal) => Err(Problem::refused(&refusal, false, false, None, Subject::Named)),
    }
}

/// The campaign as it stands, with its totals.
async fn show(app: &App, id: CampaignId, status: StatusCode) -> Result<Response, Problem> {
    let row = app.store().campaign(id).await?;
    let row = row.ok_or_else(|| Problem::not_found("there is no such campaign"))?;
    json(status, &view::campaign(&row, app.store().now()))
}
