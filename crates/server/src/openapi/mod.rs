//! The OpenAPI document, from the annotations of the handlers and of the types of the wire.
//!
//! A new route needs `#[utoipa::path]` on its handler and a line in `paths(…)` here; tests find what was
//! forgotten.

pub(crate) mod finish;
pub(crate) mod parameters;
pub(crate) mod problems;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::routes::{
    approvals, assortment, audit, caches, campaigns, cancellations, cases, diagnose, docs, events, explain,
    exports, feed, health, imports, keys, ledger, metrics, orders, payments, pools, reconciliations,
    settlement, sinks, transfers,
};

/// The document as text; it never changes while the process runs.
static TEXT: LazyLock<String> = LazyLock::new(|| document().to_string());

/// The document.
pub(crate) fn text() -> &'static str {
    &TEXT
}

/// The document as a value.
pub(crate) fn document() -> Value {
    let mut document = serde_json::to_value(Api::openapi()).unwrap_or_default();
    finish::finish(&mut document);
    document
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Holdfast",
        description = "Inventory reservation: hold, pay, sell; never too much, and every unit accounted for.\n\n\
            Requests are read strictly: unknown fields, doubled keys and floats for quantities are refused, and \
            `null` is the same as absent, but for `max_concurrency` of a pool. Answers may gain fields: a client ignores those that it does not know. \
            The business key in the body (`order_no`, `refund_id`, `adjustment_id`, `transfer_id`, `attempt_id`, \
            `event_id`) is \
            the idempotency key: after a lost answer ask again with the same one. `Idempotent-Replayed: true` \
            marks a repeat.\n\n\
            Every answer with a status of 400 or more is `application/problem+json`; what each code means, and \
            what to do about it, stands at `/problems/{code}`.\n\n\
            Identifiers that clients make have 1 to 128 characters, no control characters and no white space at \
            either end, and are compared exactly. Bodies have at most 256 KiB and are never compressed.",
    ),
    paths(
        campaigns::list_campaigns,
        campaigns::get_campaign,
        campaigns::put_campaign,
        campaigns::open_campaign,
        campaigns::pause_campaign,
        campaigns::resume_campaign,
        campaigns::freeze_campaign,
        campaigns::unfreeze_campaign,
        campaigns::close_campaign,
        campaigns::warm_campaign,
        assortment::get_locations,
        assortment::put_locations,
        assortment::get_bundle,
        assortment::put_bundle,
        pools::open_pool,
        pools::list_pools,
        pools::get_pool,
        pools::get_availability,
        explain::explain_pool,
        pools::change_pool,
        caches::get_cache,
        caches::rebuild_cache,
        pools::adjust_pool,
        pools::freeze_pool,
        pools::unfreeze_pool,
        pools::retire_pool,
        pools::sweep_pool,
        transfers::transfer_stock,
        orders::place_order,
        orders::place_batch,
        orders::list_orders,
        orders::get_order,
        explain::explain_order,
        orders::cancel_order,
        orders::begin_payment,
        orders::refund_order,
        orders::resolve_order,
        payments::notify,
        ledger::list_entries,
        settlement::get_settlement,
        cases::list_cases,
        cases::resolve_case,
        reconciliations::reconcile,
        reconciliations::list_reconciliations,
        reconciliations::get_reconciliation,
        reconciliations::list_discrepancies,
        events::follow_order,
        exports::export_stock,
        imports::import_stock,
        cancellations::cancel_orders,
        approvals::list_approvals,
        approvals::get_approval,
        approvals::approve,
        approvals::reject,
        approvals::approve_adjustment,
        approvals::reject_adjustment,
        keys::create_key,
        keys::list_keys,
        keys::revoke_key,
        audit::list_acts,
        sinks::list_sinks,
        sinks::get_sink,
        sinks::put_sink,
        sinks::delete_sink,
        sinks::pause_sink,
        sinks::resume_sink,
        sinks::replay_sink,
        sinks::test_sink,
        sinks::add_sink_secret,
        sinks::drop_sink_secret,
        feed::list_dead_letters,
        feed::pull_events,
        feed::acknowledge_events,
        health::livez,
        health::readyz,
        metrics::get_metrics,
        diagnose::get_diagnosis,
        docs::get_openapi,
        docs::get_docs,
        docs::get_problem_kind,
    ),
    components(schemas(holdfast_wire::Problem, holdfast_wire::EventView)),
    modifiers(&Security),
    security(("key" = [])),
    tags(
        (name = "campaigns", description = "A sale with a window and a stored policy."),
        (name = "pools", description = "Stock of one campaign, SKU and location."),
        (name = "orders", description = "What is bought: held, then sold or released."),
        (name = "payments", description = "What payment providers say."),
        (name = "ledger", description = "Every change of every bucket."),
        (name = "keys", description = "Keys with roles, and the trail of what was done through them."),
        (name = "sinks", description = "Where order events are delivered."),
        (name = "operation", description = "Health, metrics and documents."),
    )
)]
struct Api;

/// How a request shows who sends it.
struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        // Nobody is named: who runs a server is not who wrote it.
        openapi.info.contact = None;
        let components = openapi.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("`Authorization: Bearer KEY`. What a key may do depends on its role."))
            .build();
        let header = |name: &str, description: &str| {
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, description)))
        };
        components.add_security_scheme("key", SecurityScheme::Http(bearer));
        let standard =
            "A notice's signature after Standard Webhooks, with `webhook-id` and `webhook-timestamp`.";
        components.add_security_scheme("standard_webhooks", header("webhook-signature", standard));
        let stripe = "A notice's signature in the form `t=…,v1=…`.";
        components.add_security_scheme("stripe", header("stripe-signature", stripe));
    }
}
