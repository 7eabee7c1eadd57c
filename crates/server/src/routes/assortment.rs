//! What a campaign offers besides its pools: its location order, and bundles.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::assortment::AssortmentChange;
use holdfast_core::campaign::Campaign;
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, Sku};
use holdfast_engine::Engine;
use holdfast_store::PutAssortment;
use holdfast_wire::{BundleView, Code, LocationsView, PutBundleRequest, PutLocationsRequest};

use crate::answer::json;
use crate::app::{App, WritePermit};
use crate::auth::Caller;
use crate::extract::{InBundle, Named, NoQuery, WriteBody};
use crate::input::assortment::{read_bundle, read_locations};
use crate::openapi::parameters::{BundlePath, CampaignPath};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::view;

problems! {
    /// Problems of what is shown.
    ShowProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of a change.
    ChangeProblems = ANY, KEYED, WRITE, NAMED, &[Code::InvalidQuantity, Code::Conflict];
}

const NO_CAMPAIGN: &str = "there is no such campaign";

/// Shows where lines that name no location are taken from
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/locations", tag = "campaigns",
    params(CampaignPath),
    responses((status = 200, description = "The location order.", body = LocationsView), ShowProblems)
)]
pub(crate) async fn get_locations(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let campaign = campaign_of(&app, &id).await?;
    json(StatusCode::OK, &view::locations(&id, &campaign.assortment))
}

/// Sets where lines that name no location are taken from
///
/// Orders that are placed already stay as they are.
#[utoipa::path(
    put, path = "/v1/campaigns/{id}/locations", tag = "campaigns",
    params(CampaignPath), request_body = PutLocationsRequest,
    responses(
        (status = 200, description = "The location order, also if nothing changed.", body = LocationsView),
        ChangeProblems
    )
)]
pub(crate) async fn put_locations(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let change = body.read(read_locations)?;
    let (campaign, _) = put(&app, &caller, id.clone(), change, body.permit).await?;
    json(StatusCode::OK, &view::locations(&id, &campaign.assortment))
}

/// Shows a bundle
#[utoipa::path(
    get, path = "/v1/bundles/{campaign_id}/{sku}", tag = "pools",
    params(BundlePath),
    responses((status = 200, description = "The bundle.", body = BundleView), ShowProblems)
)]
pub(crate) async fn get_bundle(
    State(app): State<App>,
    caller: Caller,
    InBundle(named): InBundle,
    _: NoQuery,
) -> Result<Response, Problem> {
    let (id, sku) = named.map_err(|_| Problem::not_found("there is no such bundle"))?;
    caller.allow(&id)?;
    let campaign = campaign_of(&app, &id).await?;
    json(StatusCode::OK, &shown(&app, &campaign, &sku).await?)
}

/// Sets what a bundle is made of
///
/// A bundle is sold as one and taken as all of its components, or not at all. Orders that are placed already stay
/// as they are.
#[utoipa::path(
    put, path = "/v1/bundles/{campaign_id}/{sku}", tag = "pools",
    params(BundlePath), request_body = PutBundleRequest,
    responses(
        (status = 201, description = "Made.", body = BundleView),
        (status = 200, description = "Changed, or as it was.", body = BundleView),
        ChangeProblems
    )
)]
pub(crate) async fn put_bundle(
    State(app): State<App>,
    caller: Caller,
    InBundle(named): InBundle,
    body: WriteBody,
) -> Result<Response, Problem> {
    let (id, sku) = named?;
    caller.allow(&id)?;
    let change = body.read(|object| read_bundle(sku.clone(), object))?;
    let (campaign, how) = put(&app, &caller, id, change, body.permit).await?;
    let status = if how == How::Created { StatusCode::CREATED } else { StatusCode::OK };
    json(status, &shown(&app, &campaign, &sku).await?)
}

async fn put(
    app: &App,
    caller: &Caller,
    campaign: CampaignId,
    change: AssortmentChange,
    permit: WritePermit,
) -> Result<(Arc<Campaign>, How), Problem> {
    let put = PutAssortment { campaign, change, via: caller.via() };
    let work = |engine: Engine| async move { Ok(engine.put_assortment(put).await?) };
    let done = app.write(permit, work).await?;
    done.map_err(|refusal| Problem::refused(&refusal, false, false, None, Subject::Named))
}

async fn campaign_of(app: &App, id: &CampaignId) -> Result<Arc<Campaign>, Problem> {
    let row = app.store().campaign(id.clone()).await?;
    row.map(|row| row.campaign).ok_or_else(|| Problem::not_found(NO_CAMPAIGN))
}

async fn shown(app: &App, campaign: &Campaign, sku: &Sku) -> Result<BundleView, Problem> {
    let components = campaign.assortment.bundles.get(sku);
    let components = components.ok_or_else(|| Problem::not_found("there is no such bundle"))?;
    let available = app.engine().bundle_available(campaign, sku).await?.unwrap_or(0);
    Ok(view::bundle(&campaign.id, sku, components, available))
}
