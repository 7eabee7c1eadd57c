//! Which key opens which route: the one table. The middleware that lets requests in, the OpenAPI document
//! and the test of every cell read it; a route that is not in it cannot be reached.

use axum::http::Method;
use holdfast_store::Role;

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anybody.
    Public,
    /// A payment provider by its signature; where none is set up, a key of [`NOTIFIERS`].
    Signed,
    /// Whoever has a key of one of these roles.
    Roles(&'static [Role]),
}

/// How a request names the campaigns that it concerns: against these a key's scope is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It concerns none.
    Nothing,
    /// `{id}` is a campaign.
    Campaign,
    /// `{id}` is a pool.
    Pool,
    /// `{id}` is an order.
    Order,
    /// In its body or its query; the handler asks [`scope`](crate::scope) or the caller.
    Named,
    /// All of them: only a key without a scope will do.
    Everything,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// Its method. `GET` stands for `HEAD`, too.
    pub(crate) method: Method,
    /// Its path, as the router spells it.
    pub(crate) path: &'static str,
    /// Who may ask.
    pub(crate) access: Access,
    /// What a scope is held against.
    pub(crate) reach: Reach,
}

const ADMINS: Access = Access::Roles(&[Role::Admin]);
const OPERATORS: Access = Access::Roles(&[Role::Operator, Role::Admin]);
const READERS: Access = Access::Roles(&[Role::Read, Role::Operator, Role::Admin]);
const BUYERS: Access = Access::Roles(&[Role::Buyer, Role::Operator, Role::Admin]);
const ORDER_READERS: Access = Access::Roles(&[Role::Buyer, Role::Read, Role::Operator, Role::Admin]);
/// Whose keys may bring a notice of a provider that does not sign.
pub(crate) const NOTIFIERS: &[Role] = &[Role::Payments, Role::Admin];

const fn route(method: Method, path: &'static str, access: Access, reach: Reach) -> Route {
    Route { method, path, access, reach }
}

/// Every route.
#[rustfmt::skip]
pub(crate) const ROUTES: &[Route] = &[
    route(Method::GET, "/v1/campaigns", READERS, Reach::Named),
    route(Method::PUT, "/v1/campaigns/{id}", OPERATORS, Reach::Campaign),
    route(Method::GET, "/v1/campaigns/{id}", READERS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/open", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/pause", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/resume", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/freeze", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/unfreeze", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/close", OPERATORS, Reach::Campaign),
    route(Method::POST, "/v1/campaigns/{id}/warm", OPERATORS, Reach::Campaign),
    route(Method::GET, "/v1/campaigns/{id}/settlement", READERS, Reach::Campaign),
    route(Method::PUT, "/v1/campaigns/{id}/locations", OPERATORS, Reach::Campaign),
    route(Method::GET, "/v1/campaigns/{id}/locations", READERS, Reach::Campaign),
    route(Method::PUT, "/v1/bundles/{campaign_id}/{sku}", OPERATORS, Reach::Named),
    route(Method::GET, "/v1/bundles/{campaign_id}/{sku}", READERS, Reach::Named),
    // An open case stops every sale, so it is no matter of one campaign.
    route(Method::GET, "/v1/cases", READERS, Reach::Everything),
    route(Method::POST, "/v1/cases/{id}/resolve", OPERATORS, Reach::Everything),
    // Whatever is wrong with the authority concerns all of it.
    route(Method::POST, "/v1/reconciliations", OPERATORS, Reach::Everything),
    route(Method::GET, "/v1/reconciliations", READERS, Reach::Everything),
    route(Method::GET, "/v1/reconciliations/{id}", READERS, Reach::Everything),
    route(Method::GET, "/v1/discrepancies", READERS, Reach::Everything),
    route(Method::POST, "/v1/pools", OPERATORS, Reach::Named),
    route(Method::GET, "/v1/pools", READERS, Reach::Named),
    route(Method::GET, "/v1/pools/{id}", READERS, Reach::Pool),
    route(Method::PATCH, "/v1/pools/{id}", OPERATORS, Reach::Pool),
    route(Method::GET, "/v1/pools/{id}/availability", READERS, Reach::Pool),
    route(Method::GET, "/v1/pools/{id}/explain", READERS, Reach::Pool),
    route(Method::GET, "/v1/pools/{id}/cache", READERS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/rebuild", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/adjustments", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/freeze", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/unfreeze", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/retire", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/pools/{id}/sweep", OPERATORS, Reach::Pool),
    route(Method::POST, "/v1/transfers", OPERATORS, Reach::Named),
    route(Method::POST, "/v1/orders", BUYERS, Reach::Named),
    route(Method::GET, "/v1/orders", ORDER_READERS, Reach::Named),
    route(Method::POST, "/v1/orders/batch", BUYERS, Reach::Named),
    route(Method::POST, "/v1/orders/cancellations", OPERATORS, Reach::Named),
    route(Method::GET, "/v1/orders/{id}", ORDER_READERS, Reach::Order),
    // What operators did and which cases there are is none of the buyers' business.
    route(Method::GET, "/v1/orders/{id}/explain", READERS, Reach::Order),
    route(Method::GET, "/v1/orders/{id}/events", ORDER_READERS, Reach::Order),
    route(Method::POST, "/v1/orders/{id}/cancel", BUYERS, Reach::Order),
    route(Method::POST, "/v1/orders/{id}/payment-attempts", BUYERS, Reach::Order),
    // Money goes back: no buyer decides that.
    route(Method::POST, "/v1/orders/{id}/refunds", OPERATORS, Reach::Order),
    route(Method::POST, "/v1/orders/{id}/resolve", OPERATORS, Reach::Order),
    route(Method::POST, "/v1/payments/{provider}/notifications", Access::Signed, Reach::Named),
    route(Method::GET, "/v1/ledger", READERS, Reach::Named),
    route(Method::GET, "/v1/approvals", READERS, Reach::Named),
    route(Method::GET, "/v1/approvals/{id}", READERS, Reach::Named),
    route(Method::POST, "/v1/approvals/{id}/approve", OPERATORS, Reach::Named),
    route(Method::POST, "/v1/approvals/{id}/reject", OPERATORS, Reach::Named),
    route(Method::POST, "/v1/adjustments/{id}/approve", OPERATORS, Reach::Named),
    route(Method::POST, "/v1/adjustments/{id}/reject", OPERATORS, Reach::Named),
    route(Method::POST, "/v1/imports/stock", OPERATORS, Reach::Named),
    route(Method::GET, "/v1/exports/stock", READERS, Reach::Named),
    route(Method::POST, "/v1/keys", ADMINS, Reach::Everything),
    route(Method::GET, "/v1/keys", ADMINS, Reach::Everything),
    route(Method::DELETE, "/v1/keys/{id}", ADMINS, Reach::Everything),
    route(Method::GET, "/v1/audit", OPERATORS, Reach::Named),
    // A sink is told of every campaign.
    route(Method::GET, "/v1/sinks", READERS, Reach::Everything),
    route(Method::GET, "/v1/sinks/{name}", READERS, Reach::Everything),
    route(Method::PUT, "/v1/sinks/{name}", ADMINS, Reach::Everything),
    route(Method::DELETE, "/v1/sinks/{name}", ADMINS, Reach::Everything),
    route(Method::POST, "/v1/sinks/{name}/pause", OPERATORS, Reach::Everything),
    route(Method::POST, "/v1/sinks/{name}/resume", OPERATORS, Reach::Everything),
    route(Method::POST, "/v1/sinks/{name}/replay", OPERATORS, Reach::Everything),
    route(Method::POST, "/v1/sinks/{name}/test", OPERATORS, Reach::Everything),
    route(Method::POST, "/v1/sinks/{name}/secrets", ADMINS, Reach::Everything),
    route(Method::DELETE, "/v1/sinks/{name}/secrets/{id}", ADMINS, Reach::Everything),
    route(Method::GET, "/v1/sinks/{name}/dead-letters", READERS, Reach::Everything),
    // Whoever may read may also come for events: it moves nothing but his own place.
    route(Method::GET, "/v1/events", READERS, Reach::Named),
    route(Method::POST, "/v1/events/ack", READERS, Reach::Everything),
    // It tells of the whole authority.
    route(Method::GET, "/v1/diagnose", READERS, Reach::Everything),
    route(Method::POST, "/v1/bench/constant", BUYERS, Reach::Nothing),
    // Names of all campaigns and their stock stand in it.
    route(Method::GET, "/metrics", READERS, Reach::Everything),
    route(Method::GET, "/livez", Access::Public, Reach::Nothing),
    route(Method::GET, "/readyz", Access::Public, Reach::Nothing),
    route(Method::GET, "/openapi.json", Access::Public, Reach::Nothing),
    route(Method::GET, "/docs", Access::Public, Reach::Nothing),
    route(Method::GET, "/problems/{code}", Access::Public, Reach::Nothing),
];

/// The entry of a request.
pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Route> {
    ROUTES.get(position(method, path)?)
}

/// Where the entry of a request stands.
pub(crate) fn position(method: &Method, path: &str) -> Option<usize> {
    // Every GET answers HEAD, too.
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    ROUTES.iter().position(|route| route.path == path && route.method == *method)
}

/// The methods of a path, as the header `Allow` lists them.
pub(crate) fn allowed(path: &str) -> String {
    let methods = ROUTES.iter().filter(|route| route.path == path).map(|route| match route.method {
        Method::GET => "GET,HEAD",
        ref method => method.as_str(),
    });
    methods.collect::<Vec<_>>().join(",")
}
