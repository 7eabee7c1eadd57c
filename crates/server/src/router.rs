//! Every route of the server.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use holdfast_core::campaign::Switch;
use holdfast_engine::Engine;
use tower_http::catch_panic::CatchPanicLayer;

use crate::accept::require_json;
use crate::app::App;
use crate::auth::require_key;
use crate::config::Config;
use crate::edge::{no_route, panicked, surround, wrong_method};
use crate::routes::{campaigns, health, ledger, orders, payments, pools};

/// The server's routes over an engine. [`Config::check`] is the caller's to call.
pub fn router(engine: Engine, config: &Config) -> Router {
    let app = App::new(engine, config);
    let with_key = Router::new()
        .route("/v1/campaigns", get(campaigns::list_campaigns))
        .route("/v1/campaigns/{id}", put(campaigns::put_campaign).get(campaigns::get_campaign))
        .route("/v1/campaigns/{id}/open", campaigns::switch(Switch::Open))
        .route("/v1/campaigns/{id}/pause", campaigns::switch(Switch::Pause))
        .route("/v1/campaigns/{id}/resume", campaigns::switch(Switch::Resume))
        .route("/v1/campaigns/{id}/freeze", campaigns::switch(Switch::Freeze))
        .route("/v1/campaigns/{id}/unfreeze", campaigns::switch(Switch::Unfreeze))
        .route("/v1/campaigns/{id}/close", campaigns::switch(Switch::Close))
        .route("/v1/pools", post(pools::open_pool).get(pools::list_pools))
        .route("/v1/pools/{id}", get(pools::get_pool))
        .route("/v1/pools/{id}/availability", get(pools::get_availability))
        .route("/v1/pools/{id}/adjustments", post(pools::adjust_pool))
        .route("/v1/pools/{id}/freeze", pools::freeze(true))
        .route("/v1/pools/{id}/unfreeze", pools::freeze(false))
        .route("/v1/orders", post(orders::place_order).get(orders::list_orders))
        .route("/v1/orders/batch", post(orders::place_batch))
        .route("/v1/orders/{id}", get(orders::get_order))
        .route("/v1/orders/{id}/cancel", post(orders::cancel_order))
        .route("/v1/orders/{id}/payment-attempts", post(orders::begin_payment))
        .route("/v1/orders/{id}/refunds", post(orders::refund_order))
        .route_layer(from_fn(require_json))
        .merge(Router::new().route("/v1/ledger", get(ledger::list_entries)))
        .route_layer(from_fn_with_state(app.clone(), require_key));
    // A provider shows a signature instead of a key; health has nothing to hide.
    let without_key = Router::new()
        .route("/v1/payments/{provider}/notifications", post(payments::notify))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route_layer(from_fn(require_json));
    with_edges(with_key.merge(without_key), app)
}

/// Surrounds routes with what holds for every request.
pub(crate) fn with_edges(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), surround))
        .with_state(app)
}
