//! Nothing that is right is called wrong, however much is under way.

use super::Shop;
use crate::support::extent;

async fn no_live_order_is_flagged(on_postgres: bool) {
    let shop = Shop::open(on_postgres).await;
    let http = &shop.server.http;
    let mut entries = 0;
    for cycle in 0..extent("HOLDFAST_RECONCILE_CYCLES", 6) {
        let scope = if cycle % 3 == 0 { "full" } else { "incremental" };
        let run = http.reconcile(scope).await;
        assert_eq!(run["found"], serde_json::json!({}), "{:#?}", http.discrepancies("").await);
        if scope == "full" {
            let read = run["entries_read"].as_u64().unwrap();
            assert!(read > entries, "clients are at work");
            entries = read;
        }
    }
    assert_eq!(http.discrepancies("").await, [] as [serde_json::Value; 0]);
    assert_eq!(http.open_cases().await.iter().filter(|case| case["kind"] != "order_mismatch").count(), 0);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_live_order_is_flagged_on_sqlite() {
    no_live_order_is_flagged(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_live_order_is_flagged_on_postgres() {
    no_live_order_is_flagged(true).await;
}
