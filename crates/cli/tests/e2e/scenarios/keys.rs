//! Limits of named keys, orders a second, and the cases of orders, over HTTP.

use serde_json::{Value, json};

use super::site::Site;
use super::{count, order, success, together, with};
use crate::support::{Answer, Http};

super::site::on_each_site! {
    three_hundred_accounts_on_one_device_get_the_one_unit_that_it_may_have
    the_limit_of_a_key_says_what_is_left_and_gives_room_again
    orders_a_second_are_answered_with_when_to_come_back
    a_mismatch_and_a_second_charge_are_cases_that_stop_nothing
}

/// An order of `account` for some units of `A`, sent from a device.
fn from_device(order_no: &str, account: &str, device: &str, quantity: u32) -> Value {
    with(order("c", order_no, account, &[("A", quantity)]), json!({"limit_keys": {"device": device}}))
}

async fn cases(http: &Http) -> Vec<Value> {
    let listed = http.get("/v1/cases?state=open").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    listed.body["items"].as_array().expect("items").clone()
}

async fn three_hundred_accounts_on_one_device_get_the_one_unit_that_it_may_have(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"key_limits": {"device": {"units": 1}}})).await;
    let pool = http.pool("c", "A", 500, 4).await;
    let shared = (0..300).map(|n| from_device(&format!("s{n}"), &format!("a{n}"), "shared", 1));
    let own = (0..99).map(|n| from_device(&format!("o{n}"), &format!("a{n}"), &format!("own-{n}"), 1));
    let answers = together(shared.chain(own).map(|body| {
        let http = http.clone();
        async move { http.order(&body).await }
    }))
    .await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (1 + 99, 299));
    let of_shared = |answer: &&Answer| answer.status == 201 && answer.text("order_no").starts_with('s');
    assert_eq!(answers.iter().filter(of_shared).count(), 1);
    for refused in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!((refused.code(), &refused.body["recorded"]), ("key_limit", &json!(false)));
        assert_eq!(refused.faults(), [("key_limit".into(), "/limit_keys/device".into())]);
    }
    assert_eq!(http.listed("campaign_id=c&state=failed").await, 0, "a refused key leaves no trace");
    assert_eq!(http.balances(&pool).await, (400, 100, 0));
    server.finish().await;
}

async fn the_limit_of_a_key_says_what_is_left_and_gives_room_again(server: Site) {
    let http = &server.http;
    let policy = json!({"key_limits": {"device": {"units": 3, "open_holds": 1}, "address": 9}});
    http.campaign("c", policy).await;
    let shown = http.get("/v1/campaigns/c").await.body["policy"]["key_limits"].clone();
    assert_eq!(shown["device"], json!({"units": 3, "open_holds": 1}));
    assert_eq!(shown["address"], json!({"units": 9}));
    http.pool("c", "A", 20, 2).await;
    let held = http.accepted(&from_device("1", "ann", "d", 2)).await;
    let open = http.order(&from_device("2", "bob", "d", 1)).await;
    assert_eq!((open.status, open.code()), (409, "key_limit"));
    assert_eq!(
        (&open.body["errors"][0]["requested"], &open.body["errors"][0]["available"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(http.pay(&held, "e1").await.text("disposition"), "applied");
    let over = http.order(&from_device("3", "eve", "d", 2)).await;
    assert_eq!(
        (&over.body["errors"][0]["requested"], &over.body["errors"][0]["available"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(over.body["retryable"], true);
    assert_eq!(http.refund(&held, "r1", 1, Some(true)).await.status, 201);
    // The same number may be tried again.
    http.accepted(&from_device("3", "eve", "d", 2)).await;
    // Other content, an absent key among it, names the key.
    let other = http.order(&order("c", "3", "eve", &[("A", 2)])).await;
    assert_eq!((other.status, other.code()), (422, "order_mismatch"));
    assert_eq!(other.faults(), [("order_mismatch".into(), "/limit_keys/device".into())]);
    server.finish().await;
}

async fn orders_a_second_are_answered_with_when_to_come_back(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"order_rate_per_account": 1})).await;
    http.pool("c", "A", 20, 1).await;
    let answers = together((0..20).map(|n| {
        let (http, body) = (http.clone(), order("c", &n.to_string(), "ann", &[("A", 1)]));
        async move { http.order(&body).await }
    }))
    .await;
    let limited: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    // One at once and one a second: the run may take a few.
    assert!(limited.len() >= 10 && limited.len() < 20, "{} limited", limited.len());
    for answer in limited {
        assert_eq!((answer.code(), &answer.body["recorded"]), ("rate_limited", &json!(false)));
        let wait = answer.body["retry_after_ms"].as_u64().expect("a time");
        assert!((1..=1_000).contains(&wait), "{wait}");
        assert_eq!(answer.headers["retry-after"], "1");
    }
    assert_eq!(http.order(&order("c", "bob", "bob", &[("A", 1)])).await.status, 201);
    let put = json!({"name": "c", "policy": {"order_rate": 1}});
    assert_eq!(http.put("/v1/campaigns/c", &put).await.status, 200);
    let batch: Vec<_> = (0..3).map(|n| order("c", &format!("b{n}"), &format!("b{n}"), &[("A", 1)])).collect();
    let answer = http.post("/v1/orders/batch", &json!({"orders": batch})).await;
    let results = answer.body["results"].as_array().expect("results").clone();
    let mut statuses: Vec<_> =
        results.iter().map(|result| result["status"].as_u64().expect("a status")).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 429, 429]);
    server.finish().await;
}

async fn a_mismatch_and_a_second_charge_are_cases_that_stop_nothing(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    http.pool("c", "A", 9, 1).await;
    let id = http.accepted(&order("c", "1", "ann", &[("A", 1)])).await;
    let answers = together((0..20).map(|n| {
        let (http, body) = (http.clone(), order("c", "1", &format!("other-{n}"), &[("A", 2)]));
        async move { http.order(&body).await }
    }))
    .await;
    assert!(answers.iter().all(|answer| answer.code() == "order_mismatch"), "{answers:?}");
    let [mismatch] = &cases(http).await[..] else { panic!("one case") };
    assert_eq!((&mismatch["kind"], &mismatch["order_id"]), (&json!("order_mismatch"), &json!(id)));
    assert_eq!(mismatch["evidence"]["fields"], json!(["/account", "/lines/0/quantity"]));
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "applied");
    assert_eq!(http.told(&success(&id, "e2", "p2")).await, "refund_due");
    assert_eq!(http.told(&success(&id, "e2", "p2")).await, "duplicate");
    assert_eq!(http.told(&success(&id, "e3", "p3")).await, "refund_due");
    let found = cases(http).await;
    assert_eq!(found.len(), 2, "one case an order and kind: {found:?}");
    let charged = found.iter().find(|case| case["kind"] == "charged_twice").expect("a case");
    assert_eq!(charged["evidence"]["payment_id"], "p2");
    let path = format!("/v1/cases/{}/resolve", charged["id"].as_str().expect("an id"));
    let decided = http
        .post(&path, &json!({"action": "acknowledge", "reason": "money went back", "operator": "ann"}))
        .await;
    assert_eq!((decided.status, decided.text("state")), (200, "resolved".to_owned()));
    assert_eq!(cases(http).await.len(), 1);
    assert_eq!(http.refund(&id, "r1", 1, Some(true)).await.status, 201);
    http.accepted(&order("c", "2", "ann", &[("A", 9)])).await;
    server.finish().await;
}
