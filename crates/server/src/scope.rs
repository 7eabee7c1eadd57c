//! A key's scope held against what a request names. What stands in the path is judged before the handler
//! runs, what stands in a query by [`of_list`]; a body is judged by its handler as soon as it is read, with
//! [`Caller::allow`]. What does not exist is left to the handler: it has its own word for that.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use holdfast_core::id::{CampaignId, OrderId, PoolId};
use holdfast_store::Scope;

use crate::app::App;
use crate::auth::{Caller, forbidden};
use crate::extract::{Named, PathId};
use crate::problem::Problem;
use crate::roles::Reach;

const OTHER_CAMPAIGN: &str = "the key is not for this campaign";
const SOME_CAMPAIGNS: &str = "the key is for some campaigns only";

impl Caller {
    /// Refuses what concerns a campaign outside the scope.
    pub(crate) fn allow(&self, campaign: &CampaignId) -> Result<(), Problem> {
        if self.scope().allows(campaign) { Ok(()) } else { Err(forbidden(OTHER_CAMPAIGN)) }
    }

    /// Refuses what concerns every campaign to a key that is for some.
    pub(crate) fn require_everything(&self) -> Result<(), Problem> {
        if *self.scope() == Scope::All { Ok(()) } else { Err(forbidden(SOME_CAMPAIGNS)) }
    }

    /// Refuses a pool of a campaign outside the scope.
    pub(crate) async fn allow_pool(&self, app: &App, pool: PoolId) -> Result<(), Problem> {
        if *self.scope() == Scope::All {
            return Ok(());
        }
        let row = app.store().pool(pool).await?;
        row.map_or(Ok(()), |row| self.allow(&row.pool.campaign))
    }

    /// Refuses an order of a campaign outside the scope.
    pub(crate) async fn allow_order(&self, app: &App, order: OrderId) -> Result<(), Problem> {
        if *self.scope() == Scope::All {
            return Ok(());
        }
        let order = app.store().order(order).await?;
        order.map_or(Ok(()), |order| self.allow(&order.key.campaign))
    }
}

/// Judges what stands in the path.
pub(crate) async fn check_path(
    app: &App,
    caller: &Caller,
    reach: Reach,
    parts: &mut Parts,
) -> Result<(), Problem> {
    if *caller.scope() == Scope::All {
        return Ok(());
    }
    match reach {
        Reach::Nothing | Reach::Named => Ok(()),
        Reach::Everything => Err(forbidden(SOME_CAMPAIGNS)),
        Reach::Campaign => match in_path::<CampaignId>(parts, app).await {
            Some(campaign) => caller.allow(&campaign),
            None => Ok(()),
        },
        Reach::Pool => match in_path::<PoolId>(parts, app).await {
            Some(pool) => caller.allow_pool(app, pool).await,
            None => Ok(()),
        },
        Reach::Order => match in_path::<OrderId>(parts, app).await {
            Some(order) => caller.allow_order(app, order).await,
            None => Ok(()),
        },
    }
}

/// The id in the path, read as the handler will read it. What has no form of one names nothing.
async fn in_path<T: PathId>(parts: &mut Parts, app: &App) -> Option<T> {
    Named::<T>::from_request_parts(parts, app).await.ok().map(|Named(id)| id)
}

/// What the query of a list may name.
#[derive(Debug, Default)]
pub(crate) struct Mentioned<'m> {
    pub(crate) campaign: Option<&'m CampaignId>,
    pub(crate) pool: Option<PoolId>,
    pub(crate) order: Option<OrderId>,
}

/// Judges what the query of a list names, and gives what the list may show.
pub(crate) async fn of_list(app: &App, caller: &Caller, mentioned: Mentioned<'_>) -> Result<Scope, Problem> {
    if let Some(campaign) = mentioned.campaign {
        caller.allow(campaign)?;
    }
    if let Some(pool) = mentioned.pool {
        caller.allow_pool(app, pool).await?;
    }
    if let Some(order) = mentioned.order {
        caller.allow_order(app, order).await?;
    }
    Ok(caller.scope().clone())
}
