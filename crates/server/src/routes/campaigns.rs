//! Campaigns.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::campaign::Switch;
use holdfast_core::id::CampaignId;
use holdfast_store::SwitchCampaign;
use holdfast_wire::{CampaignView, Code, Page, PutCampaignRequest, SwitchRequest};

use super::page;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, Naming, NoQuery, WriteBody};
use crate::input::campaigns::{read_campaign, read_switch};
use crate::input::query::Query;
use crate::openapi::parameters::{CampaignPath, PageParameters};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::view;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of one campaign.
    CampaignProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of a change of a campaign.
    PutProblems = ANY, KEYED, WRITE, &[Code::InvalidTime];
    /// Problems of a switch.
    SwitchProblems = ANY, KEYED, WRITE, NAMED, &[Code::CampaignClosed];
}

/// Lists campaigns
#[utoipa::path(
    get, path = "/v1/campaigns", tag = "campaigns",
    params(PageParameters),
    responses(
        (status = 200, description = "A page, also when it is empty.", body = Page<CampaignView>),
        ListProblems
    )
)]
pub(crate) async fn list_campaigns(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let asked = query.page::<CampaignId>();
    let asked = query.finish(asked)?;
    let now = app.store().now();
    let (rows, more) = app.store().campaigns(caller.scope().clone(), asked.page).await?;
    let key = |row: &holdfast_store::CampaignTotals| row.campaign.id.clone();
    json(StatusCode::OK, &page(&rows, more, &asked.cursor, key, |row| view::campaign(row, now)))
}

/// Shows a campaign with its totals and its assortment
#[utoipa::path(
    get, path = "/v1/campaigns/{id}", tag = "campaigns",
    params(CampaignPath),
    responses(
        (status = 200, description = "The campaign.", body = CampaignView),
        CampaignProblems
    )
)]
pub(crate) async fn get_campaign(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    show(&app, id, StatusCode::OK).await
}

/// Creates or changes a campaign
///
/// A policy field that is absent gets its default. Without a name the campaign is called by its id.
#[utoipa::path(
    put, path = "/v1/campaigns/{id}", tag = "campaigns",
    params(CampaignPath),
    request_body = PutCampaignRequest,
    responses(
        (status = 201, description = "Created, as a draft.", body = CampaignView),
        (status = 200, description = "Changed, or as it was.", body = CampaignView),
        PutProblems
    )
)]
pub(crate) async fn put_campaign(
    State(app): State<App>,
    Naming(id): Naming<CampaignId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut put = body.read(|object| read_campaign(id.clone(), object))?;
    put.via = caller.via();
    let work = |engine: holdfast_engine::Engine| async move { Ok(engine.put_campaign(put).await?) };
    let (_, created) = app.write(body.permit, work).await?;
    show(&app, id, if created { StatusCode::CREATED } else { StatusCode::OK }).await
}

/// A handler a switch: each is an operation of its own.
macro_rules! switches {
    ($($name:ident = $switch:ident, $path:literal, $summary:literal;)*) => {$(
        #[doc = $summary]
        #[utoipa::path(
            post, path = $path, tag = "campaigns", params(CampaignPath), request_body = SwitchRequest,
            responses(
                (status = 200, description = "The campaign, also if nothing changed.", body = CampaignView),
                SwitchProblems
            )
        )]
        pub(crate) async fn $name(
            State(app): State<App>,
            Named(id): Named<CampaignId>,
            caller: Caller,
            body: WriteBody,
        ) -> Result<Response, Problem> {
            switch_campaign(&app, &caller, id, Switch::$switch, body).await
        }
    )*};
}

switches! {
    open_campaign = Open, "/v1/campaigns/{id}/open", "Opens a draft";
    pause_campaign = Pause, "/v1/campaigns/{id}/pause", "Takes no new orders for now";
    resume_campaign = Resume, "/v1/campaigns/{id}/resume", "Ends a pause";
    freeze_campaign = Freeze, "/v1/campaigns/{id}/freeze", "Lets no stock out while it is examined";
    unfreeze_campaign = Unfreeze, "/v1/campaigns/{id}/unfreeze", "Ends a freeze";
    close_campaign = Close, "/v1/campaigns/{id}/close", "Ends the sale for good";
}

async fn switch_campaign(
    app: &App,
    caller: &Caller,
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
        via: caller.via(),
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
    json(status, &view::whole_campaign(&row, app.store().now()))
}
