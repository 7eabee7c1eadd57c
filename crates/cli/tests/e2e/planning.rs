//! A plan is made from measurements, and from nothing else.

use serde_json::{Value, json};

use crate::support::run;

fn figures(path: &str, holds_rps: f64) -> Value {
    json!({"path": path, "buckets": 1, "nodes": 1, "hot": true, "pools": 1, "stored_orders": 0, "holds_rps": holds_rps,
           "p99_ms": 10.0, "log_bytes": 1077.0})
}

#[tokio::test]
async fn a_plan_says_what_carries_a_sale_and_what_gives_way_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paths.json").display().to_string();
    let paths = json!({
        "environment": {"processors": 2, "store": "PostgreSQL 15"},
        "ceilings": {"constant_http_rps": 60_000.0, "engine_holds_rps": 44_000.0},
        "paths": [figures("batched", 10_000.0)],
    });
    std::fs::write(&file, paths.to_string()).unwrap();
    let plan = |more: &[&str]| {
        let words = [&["plan", "--measured", &file, "--stock", "5000", "--peak"], more].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        async move { run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    let carried = plan(&["6000", "--format", "json"]).await;
    assert_eq!(carried.status.code(), Some(0), "{}", String::from_utf8_lossy(&carried.stderr));
    let report: Value = serde_json::from_slice(&carried.stdout).unwrap();
    assert_eq!((&report["plan"]["path"], &report["plan"]["carries"]), (&json!("batched"), &json!(true)));
    assert!(report["plan"]["breaks_first"].as_str().unwrap().starts_with("hot pool"), "{report:#}");
    let too_much = plan(&["9000"]).await;
    assert_eq!(too_much.status.code(), Some(1), "{}", String::from_utf8_lossy(&too_much.stderr));
    let text = String::from_utf8(too_much.stdout).unwrap();
    assert!(text.contains("does NOT carry") && text.contains("not measured, and so not promised"), "{text}");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(plan(&["10"]).await.status.code(), Some(2), "nothing can be planned from nothing");
    assert_eq!(plan(&["-1"]).await.status.code(), Some(2));
}
