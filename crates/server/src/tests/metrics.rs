//! What is scraped after known traffic, and that it stays bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use holdfast_metrics::{Code as RefusalCode, Description, Kind, Label};
use holdfast_wire::Code;
use serde_json::json;

use super::{Answer, ask, config, engine, get, open_router, post, request, sale};
use crate::metrics::{HttpMetrics, Permits, of_node};
use crate::{Auth, Limits, router};

/// Longest answer to a scrape, however many pools there are.
const SCRAPE_BYTES_MAX: usize = 256 * 1_024;

/// Every metric of a node.
pub(crate) fn described() -> Vec<Description> {
    let metrics = of_node(&engine(), &Arc::new(HttpMetrics::new()), Permits(Vec::new()));
    metrics.describe().expect("a list")
}

/// The samples of a scrape, by name and labels as they are written.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let samples = answer.text.lines().filter(|line| !line.starts_with('#'));
        let parsed = samples.map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            (series.to_owned(), value.parse().expect("a number"))
        });
        Self(parsed.collect())
    }

    async fn take(router: &Router) -> Self {
        Self::of(&get(router, "/metrics").await)
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.0))
    }

    fn count(&self, begin: &str) -> usize {
        self.0.keys().filter(|series| series.starts_with(begin)).count()
    }
}

fn order(order_no: &str, quantity: u32) -> serde_json::Value {
    let lines = json!([{"sku": "s", "quantity": quantity}]);
    json!({"campaign_id": "c", "order_no": order_no, "account": "ann", "lines": lines})
}

fn notice(event: &str, order_no: &str) -> serde_json::Value {
    json!({"event_id": event, "payment_id": event, "campaign_id": "c", "order_no": order_no, "outcome": "succeeded"})
}

#[tokio::test]
async fn known_traffic_is_counted() {
    let engine = engine();
    let router = router(engine.clone(), &config(Auth::Off, Limits::default()));
    let pool = sale(&router, 10).await;
    let first = post(&router, "/v1/orders", &order("1", 3)).await;
    assert_eq!(first.status, 201);
    post(&router, "/v1/orders", &order("2", 2)).await;
    assert_eq!(post(&router, "/v1/orders", &order("1", 3)).await.status, 200, "a repeat");
    assert_eq!(post(&router, "/v1/orders", &order("1", 4)).await.status, 422, "a mismatch");
    assert_eq!(post(&router, "/v1/orders", &order("3", 9)).await.status, 409, "sold out");
    assert_eq!(post(&router, "/v1/orders", &order("4", 0)).await.status, 400);
    let paid = post(&router, "/v1/payments/bank/notifications", &notice("e1", "1")).await;
    assert_eq!(paid.json["disposition"], "applied", "{}", paid.text);
    post(&router, "/v1/payments/bank/notifications", &notice("e1", "1")).await;
    let id = post(&router, "/v1/orders", &order("2", 2)).await.json["id"].clone();
    let cancelled =
        post(&router, &format!("/v1/orders/{}/cancel", id.as_str().expect("an id")), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    get(&router, "/nowhere").await;
    engine.look().await.expect("a look");

    let seen = Scrape::take(&router).await;
    for (series, value) in [
        (r#"holdfast_http_requests_total{method="POST",route="/v1/orders",status="201"}"#, 2.0),
        (r#"holdfast_http_requests_total{method="POST",route="/v1/orders",status="200"}"#, 2.0),
        (r#"holdfast_http_requests_total{method="POST",route="/v1/orders",status="409"}"#, 1.0),
        (r#"holdfast_http_requests_total{method="POST",route="/v1/orders",status="422"}"#, 1.0),
        (r#"holdfast_http_requests_total{method="",route="",status="404"}"#, 1.0),
        (r#"holdfast_http_request_seconds_count{method="POST",route="/v1/orders"}"#, 7.0),
        (r#"holdfast_http_problems_total{code="sold_out"}"#, 1.0),
        (r#"holdfast_http_problems_total{code="invalid_quantity"}"#, 1.0),
        (r#"holdfast_orders_placed_total{state="held"}"#, 2.0),
        (r#"holdfast_orders_refused_total{code="sold_out"}"#, 1.0),
        (r#"holdfast_orders_refused_total{code="order_mismatch"}"#, 1.0),
        (r#"holdfast_entry_hint_refusals_total"#, 1.0),
        (r#"holdfast_holds_ended_total{end="confirmed"}"#, 1.0),
        (r#"holdfast_holds_ended_total{end="cancelled"}"#, 1.0),
        (r#"holdfast_holds_confirm_share_ratio_count"#, 1.0),
        (r#"holdfast_payments_notices_total{disposition="applied"}"#, 1.0),
        (r#"holdfast_payments_notices_total{disposition="duplicate"}"#, 1.0),
        (r#"holdfast_entry_place_seconds_count"#, 6.0),
        (r#"holdfast_holds_open_orders{ends_within="15m"}"#, 0.0),
        // The mismatch, on an order that was held.
        (r#"holdfast_cases_open"#, 1.0),
        (r#"holdfast_lane_depth_commands{class="placing"}"#, 0.0),
        (r#"holdfast_lanes_alive"#, 0.0),
        (r#"holdfast_entry_permits_in_use{kind="writes"}"#, 0.0),
        (r#"holdfast_entry_permits_max{kind="writes"}"#, 4_096.0),
        (r#"holdfast_invariant_breaches_total{invariant="INV1"}"#, 0.0),
    ] {
        assert_eq!(seen.value(series), value, "{series}");
    }
    for (kind, units) in [("available", 7.0), ("held", 0.0), ("sold", 3.0)] {
        let of_pool = format!(r#"holdfast_pool_units{{campaign="c",pool="{pool}",kind="{kind}"}}"#);
        assert_eq!(seen.value(&of_pool), units, "{of_pool}");
        let of_bucket = format!(r#"holdfast_bucket_units{{pool="{pool}",bucket="0",kind="{kind}"}}"#);
        assert_eq!(seen.value(&of_bucket), units, "{of_bucket}");
    }
    assert!(seen.value("holdfast_process_resident_memory_bytes") > 1e6);
    assert!(seen.value("holdfast_store_batch_commands_count") >= 5.0);
}

#[tokio::test]
async fn a_scrape_is_open_metrics_or_prometheus_text_as_it_is_asked_for() {
    let router = open_router();
    let open = get(&router, "/metrics").await;
    assert_eq!(
        open.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(open.text.ends_with("# EOF\n"));
    let accept = |value| request(Method::GET, "/metrics", &[("accept", value)], Body::empty());
    let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let again = ask(&router, accept(prometheus)).await;
    assert_eq!(again.header("content-type"), open.header("content-type"));
    let text = ask(&router, accept("text/plain")).await;
    assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(text.text.contains("# TYPE holdfast_entry_joins_total counter\nholdfast_entry_joins_total 0\n"));
    let refused = ask(&router, accept("application/json")).await;
    assert_eq!((refused.status, refused.code()), (406, "not_acceptable"));
}

#[tokio::test]
async fn thousands_of_pools_are_summed_but_for_the_busiest() {
    let router = open_router();
    let busy = sale(&router, 100_000).await;
    for number in 0..5_000 {
        let pool = json!({"campaign_id": "c", "sku": format!("sku-{number}"), "supply": 10, "buckets": 2});
        assert_eq!(post(&router, "/v1/pools", &pool).await.status, 201);
    }
    for number in 0..40 {
        assert_eq!(post(&router, "/v1/orders", &order(&format!("{number}"), 1)).await.status, 201);
    }
    let answer = get(&router, "/metrics").await;
    assert!(answer.text.len() < SCRAPE_BYTES_MAX, "{} bytes", answer.text.len());
    let seen = Scrape::of(&answer);
    assert_eq!(seen.count("holdfast_pool_commands_per_second{"), 20);
    assert!(seen.count("holdfast_bucket_units{") <= 512 * 3);
    let first = seen.value(&format!(r#"holdfast_pool_units{{campaign="c",pool="{busy}",kind="held"}}"#));
    assert_eq!(first, 40.0, "the busiest is shown");
    assert_eq!(seen.value("holdfast_pool_rest_pools"), 4_981.0);
    let all: f64 = seen.0.iter().filter(|(name, _)| is_available(name)).map(|(_, units)| units).sum();
    assert_eq!(all, 100_000.0 - 40.0 + 50_000.0, "nothing is lost between the shown and the summed");
}

fn is_available(series: &str) -> bool {
    series.starts_with("holdfast_pool_units{") && series.contains(r#"kind="available""#)
}

#[test]
fn names_follow_the_rule() {
    let described = described();
    let names: BTreeSet<_> = described.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), described.len(), "a name stands twice");
    for metric in &described {
        let name = metric.name;
        assert!(name.starts_with("holdfast_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        assert_eq!(name.ends_with("_info"), metric.kind == Kind::Info, "{name}");
        assert!(metric.help.ends_with('.') && !metric.help.contains('|'), "{name}: {}", metric.help);
    }
}

#[tokio::test]
async fn every_metric_that_is_described_is_scraped() {
    let router = open_router();
    let text = get(&router, "/metrics").await.text;
    for metric in described() {
        let name = metric.name.trim_end_matches("_total").trim_end_matches("_info");
        assert!(text.contains(&format!("# TYPE {name} {}\n", metric.kind.as_str())), "{name}");
    }
    assert_eq!(text.matches("# TYPE ").count(), described().len());
}

#[test]
fn refusals_are_counted_by_the_codes_of_the_answers() {
    for code in RefusalCode::VALUES {
        assert!(Code::parse(code.text()).is_some(), "{code:?}");
    }
}

#[test]
fn alerts_name_metrics_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/alerts.yml");
    let rules = std::fs::read_to_string(path).expect("the rules");
    let described = described();
    let is_known = |word: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix));
        described.iter().any(|metric| {
            metric.name == word || (metric.kind == Kind::Histogram && Some(metric.name) == base)
        })
    };
    let words = rules.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("holdfast_")).collect();
    assert!(named.len() > 15, "{named:?}");
    let unknown: Vec<_> = named.into_iter().filter(|word| !is_known(word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
