//! How orders and pools came to stand where they stand, told in one step.

use serde_json::{Value, json};

use super::site::{Site, on_each_site};
use super::success;
use crate::support::{run, wait_until};

on_each_site! {
    the_whole_life_of_an_order_is_told
    where_the_units_of_a_pool_went_is_told
    what_cannot_be_explained_says_why
}

/// Kind and text of each step.
fn steps(chain: &Value) -> Vec<(String, String)> {
    let text = |step: &Value, name: &str| step[name].as_str().expect("a text").to_owned();
    let timeline = chain["timeline"].as_array().expect("a timeline");
    timeline.iter().map(|step| (text(step, "kind"), text(step, "text"))).collect()
}

fn assert_in_time_order(chain: &Value) {
    let timeline = chain["timeline"].as_array().expect("a timeline");
    let times: Vec<_> = timeline.iter().map(|step| step["at"].as_str().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// Through a queue, held, run out, paid late, taken again, extended by nobody, refunded.
async fn the_whole_life_of_an_order_is_told(site: Site) {
    let http = &site.http;
    http.campaign("spring", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let body = json!({"campaign_id": "spring", "sku": "CUP", "supply": 10, "path": "queued"});
    let pool = http.post("/v1/pools", &body).await.text("id");
    let placed = http.place("spring", "A-1", "CUP", 2).await;
    assert_eq!(placed.status, 202, "{placed:?}");
    let id = placed.text("id");
    http.wait_for_state(&id, "released").await;
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "retaken");
    let refunded = http.refund(&id, "r1", 1, Some(true)).await;
    assert_eq!(refunded.status, 201, "{refunded:?}");
    let body = json!({"campaign_id": "spring", "order_no": "A-1", "account": "eve",
                      "lines": [{"sku": "CUP", "quantity": 9}]});
    assert_eq!(http.post("/v1/orders", &body).await.code(), "order_mismatch");
    let chain = wait_until("the case", async || {
        let chain = http.get(&format!("/v1/orders/{id}/explain")).await;
        assert_eq!(chain.status, 200, "{chain:?}");
        steps(&chain.body).iter().any(|(kind, _)| kind == "case").then_some(chain.body)
    })
    .await;
    assert_in_time_order(&chain);
    assert_eq!(chain["came_by"], "queue");
    assert_eq!(
        chain["units"],
        json!([{"pool_id": pool, "bucket": 0, "held": 0, "sold": 1, "given_back": 3}])
    );
    let told = steps(&chain);
    let kinds: Vec<_> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["request", "queue", "ledger", "ledger", "payment", "ledger", "ledger", "act", "case"],
        "{told:?}"
    );
    for (step, says) in [
        (0, "placed: 2 × CUP"),
        (1, "nothing is held yet"),
        (2, "land available -2 held +2 queued → held"),
        (3, "release available +2 held -2 held → released"),
        (4, "payment p1 succeeded: retaken (event e1, met version 3)"),
        (5, "retake available -2 sold +2 released → sold"),
        (6, "refund available +1 sold -1 sold → sold"),
        (7, "refund: refund r1, line 1: 1, restocked"),
        (8, "case order_mismatch"),
    ] {
        assert!(told[step].1.contains(says), "{says}: {told:?}");
    }
    let by_key = ["--campaign", "spring", "--order-no", "A-1", "--target", &http.base];
    let shown = run(&[&["explain", "order"], &by_key[..]].concat()).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("came by a queue") && shown.contains("retake available -2 sold +2"), "{shown}");
    site.finish().await;
}

async fn where_the_units_of_a_pool_went_is_told(site: Site) {
    let http = &site.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let other = http.pool("spring", "MUG", 10, 1).await;
    let first = http.place("spring", "A-1", "CUP", 2).await.text("id");
    assert_eq!(http.told(&success(&first, "e1", "p1")).await, "applied");
    let before = http.get(&format!("/v1/pools/{pool}/explain")).await.body["ledger"][2]["at"].clone();
    let body = json!({"transfer_id": "t-1", "from": {"pool_id": pool}, "to": {"pool_id": other}, "quantity": 3,
                      "reason": "more mugs", "operator": "ann"});
    assert_eq!(http.post("/v1/transfers", &body).await.status, 201);
    http.place("spring", "A-2", "CUP", 4).await.text("id");
    let chain = http.get(&format!("/v1/pools/{pool}/explain")).await.body;
    assert_in_time_order(&chain);
    let bucket = json!({"number": 0, "seq": 5, "available": 1, "held": 4, "sold": 2, "agrees": true});
    assert_eq!(chain["buckets"], json!([bucket]));
    let owner = |owner: &Value| (owner["order_no"].clone(), owner["held"].clone(), owner["sold"].clone());
    let owners: Vec<_> = chain["owners"].as_array().unwrap().iter().map(owner).collect();
    assert_eq!(owners, [(json!("A-2"), json!(4), json!(0)), (json!("A-1"), json!(0), json!(2))]);
    let told = steps(&chain);
    let has = |kind: &str, says: &str| told.iter().any(|(k, text)| k == kind && text.contains(says));
    assert!(
        has(
            "ledger",
            &format!("transfer_out t-1 available -3 [transfer] (reason: more mugs) to pool {other}")
        ),
        "{told:?}"
    );
    assert!(has("act", "transfer: 3 to pool"), "{told:?}");
    assert!(has("act", "open_pool"), "{told:?}");
    // As of the time before the transfer, from the server and from the authority alike.
    let at = before.as_str().unwrap();
    let plus = at.replace('Z', "%2B00:00");
    let then = http.get(&format!("/v1/pools/{pool}/explain?at={plus}&bucket=0")).await.body;
    assert_eq!(then["buckets"][0]["available"], 8, "{then}");
    assert_eq!(then["buckets"][0]["sold"], 2);
    assert_eq!(then["buckets"][0].get("agrees"), None, "the stored balance is another time's");
    let of_then = ["explain", "pool", &pool, "--at", at, "--bucket", "0", "--format", "json"];
    let by_server = run(&[&of_then[..], &["--target", &http.base]].concat()).await;
    let database = site.nodes[0].authority();
    let by_database = run(&[&of_then[..], &["--database", database]].concat()).await;
    let by_server: Value = serde_json::from_slice(&by_server.stdout).unwrap();
    assert_eq!(by_server["buckets"], then["buckets"]);
    assert_eq!(by_server, serde_json::from_slice::<Value>(&by_database.stdout).unwrap());
    let text = run(&["explain", "pool", &pool, "--target", &http.base]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("available 1, held 4, sold 2, as the stored balance says"), "{text}");
    site.finish().await;
}

async fn what_cannot_be_explained_says_why(site: Site) {
    let http = &site.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    for (query, pointer, code) in [
        ("bucket=256", "/query/bucket", "invalid_value"),
        ("from_seq=x", "/query/from_seq", "invalid_value"),
        ("to_seq=-1", "/query/to_seq", "invalid_value"),
        ("at=2026-01-01", "/query/at", "invalid_time"),
        ("at=2026-01-01T00:00:00", "/query/at", "invalid_time"),
        ("since=1", "/query/since", "unknown_field"),
    ] {
        let refused = http.get(&format!("/v1/pools/{pool}/explain?{query}")).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.faults(), [(code.to_owned(), pointer.to_owned())], "{query}");
    }
    let nothing = "00000000-0000-7000-8000-000000000000";
    for path in [
        format!("/v1/pools/{pool}/explain?bucket=1"),
        format!("/v1/pools/{nothing}/explain"),
        format!("/v1/orders/{nothing}/explain"),
    ] {
        assert_eq!(http.get(&path).await.code(), "not_found", "{path}");
    }
    site.finish().await;
}
