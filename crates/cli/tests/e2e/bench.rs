//! The benchmarks, smaller than life: that they run to their end and say what others compare by.

use serde_json::Value;

use crate::support::run;

const SMALL: [&str; 8] = ["--rounds", "1", "--seconds", "0.2", "--connections", "8", "--format", "json"];

async fn measured(arguments: &[&str]) -> Value {
    let output = run(&[&["bench"], arguments, &SMALL[..]].concat()).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn is_measured(value: &Value, name: &str) -> bool {
    value[name].as_f64().is_some_and(|figure| figure > 0.0)
}

fn assert_paths(report: &Value, store: &str) {
    assert!(report["environment"]["store"].as_str().unwrap().starts_with(store), "{report:#}");
    assert!(report["environment"]["durability"].as_str().unwrap().contains("flush"), "{report:#}");
    for ceiling in [
        "constant_http_rps",
        "bare_insert_rps",
        "one_row_transaction_tps",
        "direct_transaction_tps",
        "bare_commit_p99_ms",
        "engine_holds_rps",
    ] {
        assert!(is_measured(&report["ceilings"], ceiling), "{ceiling}: {report:#}");
    }
    let paths = report["paths"].as_array().unwrap();
    for path in paths {
        for figure in ["buckets", "nodes", "holds_rps", "p50_ms", "p99_ms", "p999_ms", "batch_size_mean"] {
            assert!(is_measured(path, figure), "{figure}: {path:#}");
        }
        assert!(path["lock_wait_p99_ms"].as_f64().is_some(), "{path:#}");
        let queues_at = path["queues_at"].as_str().unwrap();
        assert!(["entry", "lane", "lock", "commit"].contains(&queues_at), "{path:#}");
        assert!(is_measured(&path["recovery"], "restart_ms"), "{path:#}");
        assert_eq!(path["path"] == "queued", is_measured(path, "accepted_rps"), "{path:#}");
    }
    let is_hot = |path: &&Value| path["hot"] == true;
    assert!(paths.iter().any(|path| is_hot(&path)) && !paths.iter().all(|path| is_hot(&path)));
    assert!(report["advice"].as_str().unwrap().contains("Ordinary traffic"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_compared_on_the_embedded_store_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("paths.html");
    assert_paths(&measured(&["paths", "--html", page.to_str().unwrap()]).await, "SQLite ");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.matches("<svg").count() == 3, "{html}");
    let loads = ["<script", "<link", "<img", "http://", "https://", "url("];
    assert!(!loads.iter().any(|load| html.contains(load)), "the page loads something");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_compared_on_postgresql() {
    assert_paths(&measured(&["paths", "--store", "postgres"]).await, "PostgreSQL ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_buckets_is_named_with_its_reason() {
    let report = measured(&["buckets"]).await;
    assert_tried(&report, 1);
    assert!(report.get("two_nodes").is_none(), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_buckets_is_named_for_one_server_and_for_two() {
    let report = measured(&["buckets", "--store", "postgres"]).await;
    assert_tried(&report, 1);
    assert_tried(&report["two_nodes"], 2);
}

fn assert_tried(report: &Value, nodes: u64) {
    let tried: Vec<u64> =
        report["buckets"].as_array().unwrap().iter().map(|of| of["buckets"].as_u64().unwrap()).collect();
    assert_eq!(tried, [1, 2, 4, 8, 16, 32]);
    assert!(report["buckets"].as_array().unwrap().iter().all(|of| of["nodes"] == nodes), "{report:#}");
    assert!(tried.contains(&report["knee"].as_u64().unwrap()), "{report:#}");
    assert!(report["reason"].as_str().unwrap().contains("holds/s"), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_is_measured_beside_the_batched_path() {
    for store in ["sqlite", "postgres"] {
        let report = measured(&["cache", "--store", store]).await;
        for figure in [
            "constant_http_rps",
            "engine_holds_rps",
            "batched_holds_rps",
            "batched_p99_ms",
            "accepted_rps",
            "accepted_p99_ms",
            "landed_rps",
        ] {
            assert!(is_measured(&report, figure), "{figure}: {report:#}");
        }
        let arrivals = report["arrivals"].as_array().unwrap();
        assert!(arrivals.len() == 3 && arrivals.iter().all(|of| is_measured(of, "lag_p99_ms")), "{report:#}");
        // Only what lies behind a proxy can be made slow.
        let slow = &report["slow_authority"];
        assert_eq!(is_measured(slow, "accepted_rps"), store == "postgres", "{report:#}");
        assert!(report["advice"].as_str().unwrap().contains("landing it costs the authority the same"));
    }
}

#[tokio::test]
async fn somebodys_database_is_left_alone() {
    let output = run(&["bench", "paths", "--database", "sqlite:shop.db"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("leave out --database"));
}

async fn assert_expiry(store: &str) {
    let small =
        ["expiry", "--store", store, "--holds", "2000", "--within", "8", "--rate", "50", "--seconds", "1"];
    let rest = ["--connections", "4", "--format", "json"];
    let output = run(&[&["bench"], &small[..], &rest].concat()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["holds"], 2_000);
    for figure in ["placed_rps", "quiet_p99_ms", "expiry_p99_ms", "p99_ratio", "released_rps"] {
        assert!(is_measured(&report, figure), "{figure}: {report:#}");
    }
    assert!(report["all_back_ms"].as_f64().is_some(), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_that_end_together_are_all_back_on_the_embedded_store() {
    assert_expiry("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_that_end_together_are_all_back_on_postgresql() {
    assert_expiry("postgres").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_files_are_measured_in_every_mode() {
    for store in ["sqlite", "postgres"] {
        let small =
            ["bench", "imports", "--store", store, "--rows", "300", "--rounds", "2", "--format", "json"];
        let output = run(&small).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for figure in ["open_rows_per_second", "count_rows_per_second", "inbound_rows_per_second"] {
            assert!(is_measured(&report, figure), "{figure}: {report:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sinks_are_measured_beside_selling() {
    let small =
        ["bench", "sinks", "--rounds", "1", "--seconds", "0.3", "--connections", "4", "--backlog", "50"];
    let rates = ["--nats", "--webhook-rate", "100", "--nats-rate", "100", "--format", "json"];
    let output = run(&[&small[..], &rates].concat()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for figure in ["holds_rps_without", "holds_rps_with_webhook", "kept", "backlog_events", "drained_eps"] {
        assert!(is_measured(&report, figure), "{figure}: {report:#}");
    }
    for sink in ["webhook", "nats"] {
        assert!(is_measured(&report[sink], "p99_ms"), "{report:#}");
    }
}
