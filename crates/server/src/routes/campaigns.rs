//! Campaigns.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::campaign::{Campaign, Switch};
use holdfast_core::id::CampaignId;
use holdfast_core::refusal::Refusal;
use holdfast_engine::Engine;
use holdfast_store::{CampaignTotals, SwitchCampaign};
use holdfast_wire::{CampaignView, CloseRequest, Code, Page, PutCampaignRequest, SwitchRequest};

use super::page;
use super::transfers::row_at;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, Naming, NoQuery, WriteBody};
use crate::input::campaigns::{SwitchInput, read_campaign, read_close, read_switch};
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
    /// Problems of a close.
    CloseProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict];
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
    let key = |row: &CampaignTotals| row.campaign.id.clone();
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
    let work = |engine: Engine| async move { Ok(engine.put_campaign(put).await?) };
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
            let signed = body.read(read_switch)?;
            let set = switch_of(&caller, &id, Switch::$switch, signed);
            let work = |engine: Engine| async move { Ok(engine.switch_campaign(set).await?) };
            switched(app.write(body.permit, work).await?)?;
            show(&app, id, StatusCode::OK).await
        }
    )*};
}

switches! {
    open_campaign = Open, "/v1/campaigns/{id}/open", "Opens a draft";
    pause_campaign = Pause, "/v1/campaigns/{id}/pause", "Takes no new orders for now";
    resume_campaign = Resume, "/v1/campaigns/{id}/resume", "Ends a pause";
    freeze_campaign = Freeze, "/v1/campaigns/{id}/freeze", "Lets no stock out while it is examined";
    unfreeze_campaign = Unfreeze, "/v1/campaigns/{id}/unfreeze", "Ends a freeze";
}

/// Ends the sale for good
///
/// Orders that exist go on to their end. With `unsold_to` stock that is not sold goes to that pool by paired ledger
/// entries, and so does what comes back later.
#[utoipa::path(
    post, path = "/v1/campaigns/{id}/close", tag = "campaigns", params(CampaignPath), request_body = CloseRequest,
    responses(
        (status = 200, description = "The campaign, also if nothing changed.", body = CampaignView),
        CloseProblems
    )
)]
pub(crate) async fn close_campaign(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let (signed, unsold_to) = body.read(read_close)?;
    if let Some(pool) = unsold_to {
        caller.allow(&row_at(&app, pool, "/unsold_to").await?.pool.campaign)?;
    }
    let set = SwitchCampaign { unsold_to, ..switch_of(&caller, &id, Switch::Close, signed) };
    let work = |engine: Engine| async move { Ok(engine.switch_campaign(set).await?) };
    switched(app.write(body.permit, work).await?)?;
    show(&app, id, StatusCode::OK).await
}

/// Makes nodes ready for the first orders
///
/// Opens connections and reads the campaign's pools, before or while it sells. The node that is asked answers when it is
/// ready, and says with what; the others hear of it within a second.
#[utoipa::path(
    post, path = "/v1/campaigns/{id}/warm", tag = "campaigns", params(CampaignPath), request_body = SwitchRequest,
    responses(
        (status = 200, description = "The campaign, with what was made ready.", body = CampaignView),
        SwitchProblems
    )
)]
pub(crate) async fn warm_campaign(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let signed = body.read(read_switch)?;
    let set = switch_of(&caller, &id, Switch::Warm, signed);
    let work = |engine: Engine| async move {
        let campaign = switched(engine.switch_campaign(set).await?)?;
        Ok(engine.warm(&campaign).await?)
    };
    let warmth = app.write(body.permit, work).await?;
    let (row, now) = (row_of(&app, id).await?, app.store().now());
    let warm = Some(view::warmth(&warmth));
    json(StatusCode::OK, &CampaignView { warm, ..view::whole_campaign(&row, now) })
}

fn switch_of(caller: &Caller, id: &CampaignId, switch: Switch, signed: SwitchInput) -> SwitchCampaign {
    SwitchCampaign {
        id: id.clone(),
        switch,
        unsold_to: None,
        operator: signed.operator,
        reason: signed.reason.to_string(),
        via: caller.via(),
    }
}

fn switched(outcome: Result<Arc<Campaign>, Refusal>) -> Result<Arc<Campaign>, Problem> {
    outcome.map_err(|refusal| Problem::refused(&refusal, false, false, None, Subject::Named))
}

/// The campaign as it stands, with its totals.
async fn show(app: &App, id: CampaignId, status: StatusCode) -> Result<Response, Problem> {
    json(status, &view::whole_campaign(&row_of(app, id).await?, app.store().now()))
}

async fn row_of(app: &App, id: CampaignId) -> Result<CampaignTotals, Problem> {
    let row = app.store().campaign(id).await?;
    row.ok_or_else(|| Problem::not_found("there is no such campaign"))
}
