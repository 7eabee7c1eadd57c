//! Many cancels: page by page, once, and without those that cannot be.

use serde_json::{Value, json};

use crate::support::{Http, Server, run};

/// Cancels everything that a campaign holds, as a client does that was cut off once; on any store.
pub(crate) async fn a_campaign_is_cancelled_page_by_page(http: &Http) {
    http.campaign("spring", json!({})).await;
    http.campaign("autumn", json!({})).await;
    let pool = http.pool("spring", "CUP", 100, 3).await;
    let other = http.pool("autumn", "CUP", 5, 1).await;
    for n in 0..25 {
        assert_eq!(http.place("spring", &format!("A-{n}"), "CUP", 2).await.status, 201);
    }
    assert_eq!(http.place("autumn", "A-1", "CUP", 1).await.status, 201);
    let paid = http.place("spring", "PAID", "CUP", 1).await.text("id");
    assert_eq!(http.pay(&paid, "e1").await.text("disposition"), "applied");
    let page = |after: &Value| json!({"campaign_id": "spring", "limit": 10, "after": after, "operator": "olga", "reason": "called off"});
    let (mut after, mut cancelled, mut pages) = (Value::Null, 0, 0);
    loop {
        let first = http.post("/v1/orders/cancellations", &page(&after)).await;
        assert_eq!(first.status, 200, "{first:?}");
        cancelled += first.body["cancelled"].as_u64().unwrap();
        assert_eq!(first.body["refused"], json!([]));
        pages += 1;
        if first.body["next_after"].is_null() {
            break;
        }
        // The answer to the first page was lost: what it names is not held any more, so the next ones come.
        if pages != 1 {
            after = first.body["next_after"].clone();
        }
    }
    assert_eq!(cancelled, 25);
    assert_eq!((http.balances(&pool).await, http.balances(&other).await), ((99, 0, 1), (4, 1, 0)));
    let ledger = http.get("/v1/ledger?limit=500").await;
    let told = ledger.body["items"].as_array().unwrap().iter().filter(|entry| {
        entry["action"] == "release" && entry["actor"] == "olga" && entry["reason"] == "called off"
    });
    assert_eq!(told.count(), 25);
    let trail = http.get("/v1/audit?limit=500").await;
    let acts = trail.body["items"].as_array().unwrap().iter().filter(|act| act["action"] == "cancel");
    let acts: Vec<_> = acts.collect();
    assert!(
        acts.iter().all(|act| act["operator"] == "olga"
            && act["reason"] == "called off"
            && act["campaign_id"] == "spring"),
        "{acts:#?}"
    );
    assert_eq!(acts.len(), 25, "each order once");
    for (body, status, code) in [
        (json!({"campaign_id": "none", "operator": "o", "reason": "r"}), 404, "not_found"),
        (
            json!({"campaign_id": "spring", "operator": "o", "reason": "r", "state": "sold"}),
            400,
            "invalid_value",
        ),
        (
            json!({"campaign_id": "spring", "operator": "o", "reason": "r", "limit": 501}),
            400,
            "invalid_value",
        ),
        (json!({"campaign_id": "spring", "operator": "o"}), 400, "invalid_value"),
    ] {
        let answer = http.post("/v1/orders/cancellations", &body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_is_cancelled_in_pages() {
    let server = Server::start().await;
    a_campaign_is_cancelled_page_by_page(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_cancels_every_page_of_what_it_was_asked_for() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 500, 1).await;
    for n in 0..105 {
        assert_eq!(http.place("spring", &format!("A-{n}"), "CUP", 1).await.status, 201);
    }
    let other = json!({"campaign_id": "spring", "order_no": "B-1", "account": "bob", "lines": [{"sku": "CUP", "quantity": 1}]});
    assert_eq!(http.post("/v1/orders", &other).await.status, 201);
    let cancel = async |more: &[&str]| {
        let who = ["--operator", "olga", "--reason", "called off", "--target", &http.base];
        run(&[&["cancel", "orders", "--campaign"], more, &who].concat()).await
    };
    let of_bob = cancel(&["spring", "--account", "bob"]).await;
    assert!(of_bob.status.success(), "{of_bob:?}");
    let said = String::from_utf8(of_bob.stdout).unwrap();
    assert_eq!(said, "1 cancelled, 0 had been cancelled, 0 could not be\n");
    let queued = cancel(&["spring", "--state", "queued", "--format", "json"]).await;
    assert_eq!(serde_json::from_slice::<Value>(&queued.stdout).unwrap()["cancelled"], 0);
    let all = cancel(&["spring", "--format", "json"]).await;
    let report: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!((&report["cancelled"], &report["refused"]), (&json!(105), &json!([])), "{report:#}");
    assert_eq!(http.balances(&pool).await, (500, 0, 0));
    let none = cancel(&["none"]).await;
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(2) && said.contains("404 not_found"), "{said}");
    server.finish().await;
}
