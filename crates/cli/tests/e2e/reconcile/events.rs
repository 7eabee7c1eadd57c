//! Events of which a sink should have been told long ago.

use serde_json::json;

use super::Shop;
use super::faults::{Stall, on_both};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9/in";

async fn an_event_that_a_sink_stands_before_is_found_and_needs_a_person_if_it_stays(on_postgres: bool) {
    let shop = Shop::open(on_postgres).await;
    shop.let_anything_be_changed().await;
    let http = &shop.server.http;
    let stall = Stall::open(http, "stuck").await;
    let sink = json!({"kind": "webhook", "url": NOWHERE, "batch_max": 100});
    assert_eq!(http.put("/v1/sinks/erp", &sink).await.status, 201);
    assert_eq!(http.put("/v1/sinks/puller", &json!({"kind": "pull"})).await.status, 201);
    assert_eq!(http.reconcile("incremental").await["found"], json!({}), "what is new is not late");
    let pool = shop.raw.id(&stall.pool);
    shop.raw.run(&format!("UPDATE ledger SET at = at - 120000000 WHERE pool = {pool}")).await;
    for cycle in 1..=3 {
        assert_eq!(http.reconcile("incremental").await["found"], json!({"event_stuck": 1}));
        let open = http.discrepancies("state=open").await;
        assert_eq!((open.len(), &open[0]["cycles"]), (1, &json!(cycle)), "{open:#?}");
        assert_eq!((&open[0]["disposition"], &open[0]["pool_id"]), (&json!("watch"), &json!(stall.pool)));
        assert_eq!(open[0]["evidence"]["sinks"], json!(["erp"]), "a pull consumer comes when it likes");
        let cases = http.open_cases().await;
        let cases: Vec<_> = cases.iter().filter(|case| case["kind"] == "event_stuck").collect();
        assert_eq!(cases.len(), usize::from(cycle == 3), "a person is asked when it stays: {cases:#?}");
    }
    let pool = http.get(&format!("/v1/pools/{}", stall.pool)).await;
    assert_eq!(pool.body["frozen"], false, "sales go on");
    let signed = json!({"operator": "pia", "reason": "the receiver is being moved"});
    assert_eq!(http.post("/v1/sinks/erp/pause", &signed).await.status, 200);
    assert_eq!(
        http.reconcile("incremental").await["found"],
        json!({}),
        "a paused sink stands where it was left"
    );
    let closed = http.discrepancies("class=event_stuck").await;
    assert_eq!((closed.len(), &closed[0]["state"]), (1, &json!("resolved")), "{closed:#?}");
    shop.end().await;
}

on_both! {
    an_event_that_a_sink_stands_before_is_found_and_needs_a_person_if_it_stays:
        a_stuck_event_is_found_on_sqlite a_stuck_event_is_found_on_postgres,
}
