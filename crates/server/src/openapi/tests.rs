//! The documents are what the code says, and the document has the routes that the router has.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::Method;
use holdfast_core::campaign;
use holdfast_core::case::CaseAction;
use holdfast_core::command::AdjustmentKind;
use holdfast_core::order::PaymentOutcome;
use holdfast_core::reconcile::RunScope;
use holdfast_core::stock::{CacheFallback, Path, Routing};
use holdfast_store::{Role, SinkKind};
use holdfast_wire::Code;
use serde_json::Value;

use crate::guidance::markdown;
use crate::input::orders::Decision;
use crate::roles::{Access, ROUTES, find};
use crate::tests::{ask, get, open_router, request};

/// Routes that are no part of the contract: the benchmark's own.
const APART: [&str; 1] = ["POST /v1/bench/constant"];

/// Set it to have the documents written instead of compared.
const UPDATE: &str = "HOLDFAST_UPDATE_DOCS";

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

#[test]
fn the_documents_are_what_the_code_says() {
    let documents = [
        ("openapi.json", super::text().to_owned()),
        ("errors.md", markdown::english()),
        ("zh/errors.md", markdown::chinese()),
        ("events.md", crate::events_page::page()),
        ("metrics.md", crate::metrics::markdown::page(&crate::tests::metrics::described())),
    ];
    for (name, text) in documents {
        let path = docs().join(name);
        if std::env::var_os(UPDATE).is_some() {
            fs::create_dir_all(path.parent().expect("a directory")).expect("the directory");
            fs::write(&path, &text).expect("the document");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        let is_same = if name.ends_with(".json") {
            // As JSON: the order of keys depends on what else is built.
            serde_json::from_str::<Value>(&found).ok() == serde_json::from_str::<Value>(&text).ok()
        } else {
            found == text
        };
        assert!(is_same, "docs/{name} is not what the code says: run `cargo xtask docs`");
    }
}

/// Method and path of every operation of the document.
fn documented() -> BTreeSet<String> {
    let document = super::document();
    let paths = document["paths"].as_object().expect("paths");
    let each = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .expect("an item")
            .keys()
            .map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    each.collect()
}

/// Method and path of every route: what is not in this table cannot be reached.
fn routed() -> BTreeSet<String> {
    ROUTES.iter().map(|route| format!("{} {}", route.method, route.path)).collect()
}

#[test]
fn every_route_is_in_the_document_and_the_other_way_round() {
    let (mut routed, documented) = (routed(), documented());
    routed.retain(|route| !APART.contains(&route.as_str()));
    let missing: Vec<_> = routed.difference(&documented).collect();
    assert!(missing.is_empty(), "annotate these and list them in openapi/mod.rs: {missing:?}");
    let surplus: Vec<_> = documented.difference(&routed).collect();
    assert!(surplus.is_empty(), "no such route: {surplus:?}");
}

#[tokio::test]
async fn every_operation_of_the_document_is_answered_by_its_handler() {
    let router = open_router();
    for operation in documented() {
        let (method, path) = operation.split_once(' ').expect("a method");
        let method: Method = method.parse().expect("a method");
        let answer = ask(&router, request(method, path, &[], Body::empty())).await;
        let is_unrouted = answer.json["detail"] == "there is no such route" || answer.status == 405;
        assert!(!is_unrouted, "{operation}: {}", answer.text);
    }
}

#[test]
fn operation_ids_are_the_names_of_handlers_and_unique() {
    let document = super::document();
    let mut seen = BTreeSet::new();
    for item in document["paths"].as_object().expect("paths").values() {
        for operation in item.as_object().expect("an item").values() {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(seen.insert(id.to_owned()), "{id} twice");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.ends_with('.')), "{id}");
        }
    }
}

#[test]
fn the_document_names_the_roles_of_the_table() {
    let document = super::document();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let route = find(&method, path).expect("a route");
            let is_open = operation["security"] == serde_json::json!([{}]);
            assert_eq!(is_open, route.access == Access::Public, "{method} {path}");
            let roles = operation["x-holdfast-roles"].as_array().expect("roles");
            assert_eq!(roles.is_empty(), is_open, "{method} {path}");
        }
    }
}

/// The words of a field, from whoever reads it.
fn words_of(schema: &str, field: &str) -> Option<Vec<&'static str>> {
    macro_rules! all {
        ($of:ty) => {
            <$of>::ALL.iter().map(|word| word.as_str()).collect()
        };
    }
    Some(match (schema, field) {
        ("PolicyRequest", "capture") => all!(campaign::Capture),
        ("PolicyRequest", "deadline_basis") => all!(campaign::DeadlineBasis),
        ("PolicyRequest", "late_payment") => all!(campaign::LatePayment),
        ("PolicyRequest", "payment_failed") => all!(campaign::PaymentFailed),
        ("PolicyRequest", "review_end") => all!(campaign::ReviewEnd),
        ("AdjustPoolRequest", "kind") => all!(AdjustmentKind),
        ("OpenPoolRequest" | "ChangePoolRequest", "path") => all!(Path),
        ("OpenPoolRequest" | "ChangePoolRequest", "routing") => all!(Routing),
        ("ChangePoolRequest", "cache_fallback") => all!(CacheFallback),
        ("PaymentNotification", "outcome") => all!(PaymentOutcome),
        ("ResolveCaseRequest", "action") => all!(CaseAction),
        ("ReconcileRequest", "scope") => all!(RunScope),
        ("ResolveOrderRequest", "action") => Decision::WORDS.iter().map(|(word, _)| *word).collect(),
        ("CancelOrdersRequest", "state") => vec!["held", "queued"],
        ("CreateKeyRequest", "role") => all!(Role),
        ("PutSinkRequest", "kind") => all!(SinkKind),
        _ => return None,
    })
}

#[test]
fn the_words_of_requests_are_those_that_are_read() {
    let document = super::document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let mut seen = 0;
    for (name, schema) in schemas.iter().filter(|(_, schema)| schema["additionalProperties"] == false) {
        for (field, property) in schema["properties"].as_object().expect("properties") {
            let Some(listed) = property["enum"].as_array() else { continue };
            let listed: Vec<_> = listed.iter().filter_map(Value::as_str).collect();
            assert_eq!(Some(listed), words_of(name, field), "{name} {field}");
            seen += 1;
        }
    }
    assert_eq!(seen, 18);
}

#[tokio::test]
async fn documents_are_public_and_strict() {
    let router = crate::tests::router_with(crate::Auth::Keys, crate::Limits::default());
    let document = get(&router, "/openapi.json").await;
    assert_eq!((document.status, document.header("content-type")), (200, Some("application/json")));
    assert_eq!(document.json["openapi"], "3.1.0");
    for path in ["/docs", "/problems/sold_out"] {
        let page = get(&router, path).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let policy = page.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(page.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn every_code_has_its_page() {
    let router = open_router();
    for code in Code::ALL {
        let json = [("accept", "application/json")];
        let asked = request(Method::GET, code.problem_type(), &json, Body::empty());
        let answer = ask(&router, asked).await;
        assert_eq!((answer.status, answer.json["code"].as_str()), (200, Some(code.as_str())));
        assert_eq!(answer.json["status"], code.status());
        let page = get(&router, code.problem_type()).await;
        assert!(page.text.contains("lang=\"zh\"") && page.text.contains(code.as_str()), "{code}");
    }
    for unknown in ["/problems/nonsense", "/problems/%ff", "/problems/%3Cscript%3E"] {
        let answer = get(&router, unknown).await;
        assert_eq!((answer.status, answer.code()), (404, "not_found"), "{unknown}");
        assert!(!answer.text.contains("script"));
    }
    let images = [("accept", "image/png")];
    let answer = ask(&router, request(Method::GET, "/problems/sold_out", &images, Body::empty())).await;
    assert_eq!((answer.status, answer.code()), (406, "not_acceptable"));
}
