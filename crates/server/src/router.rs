//! Every route of the server.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{delete, get, post, put};
use holdfast_engine::Engine;
use tower_http::catch_panic::CatchPanicLayer;

use crate::accept::require_json;
use crate::app::App;
use crate::auth::authorize;
use crate::config::Config;
use crate::edge::{no_route, panicked, surround, wrong_method};
use crate::routes::{
    approvals, assortment, audit, caches, campaigns, cancellations, cases, diagnose, docs, events, explain,
    exports, feed, health, imports, keys, ledger, metrics, orders, payments, pools, reconciliations,
    settlement, sinks, transfers,
};

/// The server's routes over an engine. [`Config::check`] is the caller's to call.
pub fn router(engine: Engine, config: &Config) -> Router {
    let app = App::new(engine, config);
    if !config.api {
        let routes = health().route("/metrics", get(metrics::get_metrics));
        return with_edges(routes.route_layer(from_fn_with_state(app.clone(), authorize)), app);
    }
    let with_key = Router::new()
        .route("/v1/campaigns", get(campaigns::list_campaigns))
        .route("/v1/campaigns/{id}", put(campaigns::put_campaign).get(campaigns::get_campaign))
        .route("/v1/campaigns/{id}/open", post(campaigns::open_campaign))
        .route("/v1/campaigns/{id}/pause", post(campaigns::pause_campaign))
        .route("/v1/campaigns/{id}/resume", post(campaigns::resume_campaign))
        .route("/v1/campaigns/{id}/freeze", post(campaigns::freeze_campaign))
        .route("/v1/campaigns/{id}/unfreeze", post(campaigns::unfreeze_campaign))
        .route("/v1/campaigns/{id}/close", post(campaigns::close_campaign))
        .route("/v1/campaigns/{id}/warm", post(campaigns::warm_campaign))
        .route("/v1/campaigns/{id}/locations", put(assortment::put_locations).get(assortment::get_locations))
        .route("/v1/bundles/{campaign_id}/{sku}", put(assortment::put_bundle).get(assortment::get_bundle))
        .route("/v1/diagnose", get(diagnose::get_diagnosis))
        .route("/v1/cases", get(cases::list_cases))
        .route("/v1/cases/{id}/resolve", post(cases::resolve_case))
        .route(
            "/v1/reconciliations",
            post(reconciliations::reconcile).get(reconciliations::list_reconciliations),
        )
        .route("/v1/reconciliations/{id}", get(reconciliations::get_reconciliation))
        .route("/v1/discrepancies", get(reconciliations::list_discrepancies))
        .route("/v1/campaigns/{id}/settlement", get(settlement::get_settlement))
        .route("/v1/pools", post(pools::open_pool).get(pools::list_pools))
        .route("/v1/pools/{id}", get(pools::get_pool).patch(pools::change_pool))
        .route("/v1/pools/{id}/availability", get(pools::get_availability))
        .route("/v1/pools/{id}/explain", get(explain::explain_pool))
        .route("/v1/pools/{id}/cache", get(caches::get_cache))
        .route("/v1/pools/{id}/rebuild", post(caches::rebuild_cache))
        .route("/v1/pools/{id}/adjustments", post(pools::adjust_pool))
        .route("/v1/pools/{id}/freeze", post(pools::freeze_pool))
        .route("/v1/pools/{id}/unfreeze", post(pools::unfreeze_pool))
        .route("/v1/pools/{id}/retire", post(pools::retire_pool))
        .route("/v1/pools/{id}/sweep", post(pools::sweep_pool))
        .route("/v1/transfers", post(transfers::transfer_stock))
        .route("/v1/orders", post(orders::place_order).get(orders::list_orders))
        .route("/v1/orders/batch", post(orders::place_batch))
        .route("/v1/orders/cancellations", post(cancellations::cancel_orders))
        .route("/v1/orders/{id}", get(orders::get_order))
        .route("/v1/orders/{id}/explain", get(explain::explain_order))
        .route("/v1/orders/{id}/cancel", post(orders::cancel_order))
        .route("/v1/orders/{id}/payment-attempts", post(orders::begin_payment))
        .route("/v1/orders/{id}/refunds", post(orders::refund_order))
        .route("/v1/orders/{id}/resolve", post(orders::resolve_order))
        .route("/v1/keys", post(keys::create_key).get(keys::list_keys))
        .route("/v1/keys/{id}", delete(keys::revoke_key))
        .route("/v1/audit", get(audit::list_acts))
        .merge(second_person())
        .route("/v1/imports/stock", post(imports::import_stock))
        .route_layer(from_fn(require_json))
        .merge(other_than_json());
    // A provider shows a signature instead of a key; health has nothing to hide.
    let without_key = Router::new()
        .route("/v1/payments/{provider}/notifications", post(payments::notify))
        .merge(health())
        .route_layer(from_fn(require_json));
    let routes = with_key.merge(sinks()).merge(without_key).merge(documents());
    let routes = if config.constant_answer { routes.merge(yardstick()) } else { routes };
    // The outermost of the routes' own layers: who may ask is settled before anything else.
    with_edges(routes.route_layer(from_fn_with_state(app.clone(), authorize)), app)
}

/// Work that waits for a second person.
fn second_person() -> Router<App> {
    Router::new()
        .route("/v1/approvals", get(approvals::list_approvals))
        .route("/v1/approvals/{id}", get(approvals::get_approval))
        .route("/v1/approvals/{id}/approve", post(approvals::approve))
        .route("/v1/approvals/{id}/reject", post(approvals::reject))
        .route("/v1/adjustments/{id}/approve", post(approvals::approve_adjustment))
        .route("/v1/adjustments/{id}/reject", post(approvals::reject_adjustment))
}

/// Where order events are delivered, and the feed of those who come for them.
fn sinks() -> Router<App> {
    Router::new()
        .route("/v1/sinks", get(sinks::list_sinks))
        .route("/v1/sinks/{name}", get(sinks::get_sink).put(sinks::put_sink).delete(sinks::delete_sink))
        .route("/v1/sinks/{name}/pause", post(sinks::pause_sink))
        .route("/v1/sinks/{name}/resume", post(sinks::resume_sink))
        .route("/v1/sinks/{name}/replay", post(sinks::replay_sink))
        .route("/v1/sinks/{name}/test", post(sinks::test_sink))
        .route("/v1/sinks/{name}/secrets", post(sinks::add_sink_secret))
        .route("/v1/sinks/{name}/secrets/{id}", delete(sinks::drop_sink_secret))
        .route("/v1/sinks/{name}/dead-letters", get(feed::list_dead_letters))
        .route("/v1/events", get(feed::pull_events))
        .route("/v1/events/ack", post(feed::acknowledge_events))
        .route_layer(from_fn(require_json))
}

/// What those ask who keep the node running, whatever its roles.
fn health() -> Router<App> {
    Router::new().route("/livez", get(health::livez)).route("/readyz", get(health::readyz))
}

/// What anybody may read: the contract, and what to do about a problem.
fn documents() -> Router<App> {
    Router::new()
        .route("/openapi.json", get(docs::get_openapi))
        .route_layer(from_fn(require_json))
        .route("/docs", get(docs::get_docs))
        .route("/problems/{code}", get(docs::get_problem_kind))
}

/// Routes that answer in another form, or in one of several.
fn other_than_json() -> Router<App> {
    Router::new()
        .route("/v1/ledger", get(ledger::list_entries))
        .route("/v1/orders/{id}/events", get(events::follow_order))
        .route("/v1/exports/stock", get(exports::export_stock))
        .route("/metrics", get(metrics::get_metrics))
}

/// The benchmark's own route, behind the same layers as a place. It is there only when asked for.
fn yardstick() -> Router<App> {
    Router::new().route("/v1/bench/constant", post(orders::place_constant)).route_layer(from_fn(require_json))
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
