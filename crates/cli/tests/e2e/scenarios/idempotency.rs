//! F: the same key again: in other words, with other content, after a refusal, by many at once.

use serde_json::{Value, json};

use super::site::Site;
use super::{count, order, together, with};
use crate::support::{Answer, Http, Server, Start, place_body, wait_until};

super::site::on_each_site! {
    the_same_order_in_other_words_is_the_same_order
    a_key_with_other_content_is_refused_and_says_what_differs
    a_key_that_met_a_closed_door_is_tried_again
    thirty_identical_orders_at_once_are_one
    a_key_is_kept_past_the_end_of_its_order_however_often_it_is_asked
    the_key_is_in_the_body_and_no_header_changes_it
    ids_that_differ_in_case_or_zeros_are_different
    a_refund_is_bound_to_its_id_with_its_defaults
}

async fn send_text(http: &Http, body: &str, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [("content-type", "application/json")].iter().chain(headers).copied().collect();
    http.send_raw("POST", "/v1/orders", &headers, body.as_bytes().to_vec()).await
}

#[track_caller]
fn assert_repeat(answer: &Answer, id: &str) {
    assert_eq!((answer.status, answer.text("id").as_str()), (200, id), "{answer:?}");
    assert_eq!(answer.headers["idempotent-replayed"], "true");
}

// 72
async fn the_same_order_in_other_words_is_the_same_order(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"hold_seconds": 120})).await;
    let pool = http.pool("c", "A", 10, 2).await;
    let id = http.accepted(&order("c", "1", "ann", &[("A", 1)])).await;
    for again in [
        r#"{"lines":[{"quantity":1,"sku":"A"}],"account":"ann","order_no":"1","campaign_id":"c"}"#,
        "{ \"campaign_id\" : \"c\",\r\n\t\"order_no\":\"1\", \"account\":\"\\u0061nn\", \"lines\":[ {\"sku\":\"A\",\"quantity\":1} ] }\n",
        r#"{"campaign_id":"c","order_no":"1","account":"ann","lines":[{"sku":"A","quantity":1,"location":"main"}]}"#,
        r#"{"campaign_id":"c","order_no":"1","account":"ann","lines":[{"sku":"A","quantity":1,"location":null}],"hold_seconds":120}"#,
        r#"{"campaign_id":"c","order_no":"1","account":"ann","lines":[{"sku":"A","quantity":1}],"hold_seconds":null,"amount_due":null,"limit_keys":{}}"#,
        r#"{"campaign_id":"c","order_no":"1","account":"ann","lines":[{"sku":"A","quantity":1}],"limit_keys":null,"metadata":{"other":1}}"#,
    ] {
        assert_repeat(&send_text(http, again, &[]).await, &id);
    }
    // And the other way round: what was sent in full is repeated in short, also under another policy.
    let full = with(order("c", "2", "ann", &[("A", 1)]), json!({"hold_seconds": 120, "limit_keys": {}}));
    let id = http.accepted(&full).await;
    assert_repeat(&http.order(&order("c", "2", "ann", &[("A", 1)])).await, &id);
    http.put("/v1/campaigns/c", &json!({"name": "c", "policy": {"hold_seconds": 240}})).await;
    assert_repeat(&http.order(&full).await, &id);
    // A float is no quantity, whatever it equals.
    let float = r#"{"campaign_id":"c","order_no":"1","account":"ann","lines":[{"sku":"A","quantity":1.0}]}"#;
    assert_eq!(send_text(http, float, &[]).await.code(), "invalid_quantity");
    assert_eq!(http.balances(&pool).await, (8, 2, 0));
    server.finish().await;
}

async fn a_key_with_other_content_is_refused_and_says_what_differs(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    http.pool("c", "B", 10, 1).await;
    let due = json!({"amount_minor": 5, "currency": "EUR"});
    let first = with(order("c", "1", "ann", &[("A", 1), ("B", 2)]), json!({"amount_due": due}));
    http.accepted(&first).await;
    let line = |sku: &str, quantity: u32, location: &str| json!({"sku": sku, "quantity": quantity, "location": location});
    let (a, b) = (line("A", 1, "main"), line("B", 2, "main"));
    for (other, pointers) in [
        (json!({"account": "bob"}), vec!["/account"]),
        (json!({"account": "Ann", "hold_seconds": 60}), vec!["/account", "/hold_seconds"]),
        (json!({"amount_due": null}), vec!["/amount_due"]),
        (json!({"amount_due": {"amount_minor": 5, "currency": "USD"}}), vec!["/amount_due"]),
        (json!({"lines": [a]}), vec!["/lines"]),
        (json!({"lines": [a, line("B", 1, "main"), line("B", 1, "main")]}), vec!["/lines"]),
        (json!({"lines": [line("A", 9, "main"), b]}), vec!["/lines/0/quantity"]),
        (json!({"lines": [a, line("nothing", 2, "main")]}), vec!["/lines/1/sku"]),
        (json!({"lines": [a, line("B", 2, "Main")]}), vec!["/lines/1/location"]),
        (
            json!({"lines": [b, a]}),
            vec!["/lines/0/sku", "/lines/0/quantity", "/lines/1/sku", "/lines/1/quantity"],
        ),
        (json!({"hold_seconds": 100_000}), vec!["/hold_seconds"]),
    ] {
        let answer = http.order(&with(first.clone(), other.clone())).await;
        assert_eq!((answer.status, answer.code()), (422, "order_mismatch"), "{other}");
        let expected: Vec<_> =
            pointers.iter().map(|p| ("order_mismatch".to_owned(), (*p).to_owned())).collect();
        assert_eq!(answer.faults(), expected, "{other}");
    }
    assert_eq!(http.order(&first).await.status, 200);
    assert_eq!(http.balances(&pool).await, (9, 1, 0));
    server.finish().await;
}

// 73
#[tokio::test]
async fn a_recorded_refusal_is_repeated_and_another_may_succeed_later() {
    let mut server = Server::start().await;
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    server.http.campaign("c", json!({})).await;
    let pool = server.http.pool("c", "A", 2, 2).await;
    // The node knows nothing of the stock after a start, so the authority decides, and records.
    server.restart(&start).await;
    let http = &server.http;
    let recorded = http.place("c", "recorded", "A", 3).await;
    assert_eq!(
        (recorded.status, recorded.code(), &recorded.body["recorded"]),
        (409, "sold_out", &json!(true))
    );
    assert_eq!(
        (&recorded.body["retryable"], &recorded.body["order"]["state"]),
        (&json!(false), &json!("failed"))
    );
    let seen = http.place("c", "seen", "A", 3).await;
    assert_eq!(
        (seen.code(), &seen.body["recorded"], &seen.body["retryable"]),
        ("sold_out", &json!(false), &json!(true))
    );
    assert_eq!(http.listed("campaign_id=c&order_no=seen").await, 0);
    assert_eq!(http.adjust(&pool, "more", 5).await.status, 201);
    for _ in 0..2 {
        let again = http.place("c", "recorded", "A", 3).await;
        assert_eq!((again.status, again.code(), &again.body["recorded"]), (409, "sold_out", &json!(true)));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(again.body["errors"], recorded.body["errors"]);
        assert_eq!(again.body["order"], recorded.body["order"]);
    }
    assert_eq!(http.place("c", "recorded", "A", 1).await.code(), "order_mismatch");
    assert_eq!(http.place("c", "seen", "A", 3).await.status, 201);
    assert_eq!(http.balances(&pool).await, (4, 3, 0));
    server.finish().await;
}

// 73
async fn a_key_that_met_a_closed_door_is_tried_again(server: Site) {
    let http = &server.http;
    let put = |starts_at: Value| json!({"name": "c", "starts_at": starts_at});
    assert_eq!(http.place("c", "1", "A", 1).await.faults(), [("not_found".into(), "/campaign_id".into())]);
    http.put("/v1/campaigns/c", &put(json!("2099-01-01T00:00:00Z"))).await;
    let unknown = http.place("c", "1", "A", 1).await;
    assert_eq!((unknown.status, unknown.faults()), (404, vec![("unknown_sku".into(), "/lines/0".into())]));
    let pool = http.pool("c", "A", 5, 1).await;
    let code = async || http.place("c", "1", "A", 1).await.code().to_owned();
    assert_eq!(code().await, "campaign_not_open");
    http.switch("/v1/campaigns/c/open").await;
    assert_eq!(code().await, "campaign_not_open");
    http.put("/v1/campaigns/c", &put(json!(null))).await;
    for (shut, reopened, refusal) in [
        ("campaigns/c/pause".to_owned(), "campaigns/c/resume".to_owned(), "campaign_paused"),
        ("campaigns/c/freeze".to_owned(), "campaigns/c/unfreeze".to_owned(), "frozen"),
        (format!("pools/{pool}/freeze"), format!("pools/{pool}/unfreeze"), "frozen"),
    ] {
        http.switch(&format!("/v1/{shut}")).await;
        assert_eq!(code().await, refusal);
        assert_eq!(http.listed("campaign_id=c").await, 0);
        http.switch(&format!("/v1/{reopened}")).await;
    }
    assert_eq!(http.place("c", "1", "A", 1).await.status, 201);
    server.finish().await;
}

async fn thirty_identical_orders_at_once_are_one(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_limit": 1})).await;
    let pool = http.pool("c", "A", 1, 1).await;
    let answers = together((0..30).map(|_| {
        let (http, body) = (http.clone(), place_body("c", "1", "A", 1));
        async move { http.order(&body).await }
    }))
    .await;
    assert_eq!((count(&answers, 201), count(&answers, 200)), (1, 29));
    assert!(answers.iter().all(|answer| answer.body["id"] == answers[0].body["id"]));
    assert_eq!(http.balances(&pool).await, (0, 1, 0));
    assert_eq!(http.listed("campaign_id=c").await, 1);
    server.finish().await;
}

// 74
async fn a_key_is_kept_past_the_end_of_its_order_however_often_it_is_asked(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = http.pool("c", "A", 9, 1).await;
    let id = http.place("c", "1", "A", 1).await.text("id");
    let ask = || {
        let (http, id) = (http.clone(), id.clone());
        async move {
            wait_until("the end of the order", async || {
                let answer = http.place("c", "1", "A", 1).await;
                match answer.status {
                    200 => assert_eq!(answer.text("id"), id),
                    _ => assert_eq!(
                        (answer.code(), &answer.body["order"]["id"]),
                        ("already_released", &json!(id))
                    ),
                }
                (answer.status == 409).then_some(())
            })
            .await;
        }
    };
    together((0..6).map(|_| ask())).await;
    assert_eq!(http.balances(&pool).await, (9, 0, 0));
    assert_eq!(http.actions(&id).await, ["place", "release"]);
    server.finish().await;
}

// 78
async fn the_key_is_in_the_body_and_no_header_changes_it(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 9, 1).await;
    let body = place_body("c", "1", "A", 1).to_string();
    let placed = send_text(http, &body, &[("idempotency-key", "k")]).await;
    assert_eq!(placed.status, 201);
    let long = "k".repeat(6_000);
    for headers in [
        &[][..],
        &[("Idempotency-Key", "other")],
        &[("idempotency-key", "k"), ("idempotency-key", "k")],
        &[("idempotency-key", "")],
        &[("IDEMPOTENCY-KEY", &long)],
    ] {
        assert_repeat(&send_text(http, &body, headers).await, &placed.text("id"));
    }
    let second = place_body("c", "2", "A", 1).to_string();
    assert_eq!(send_text(http, &second, &[("idempotency-key", "k")]).await.status, 201);
    assert_eq!(http.balances(&pool).await, (7, 2, 0));
    server.finish().await;
}

async fn ids_that_differ_in_case_or_zeros_are_different(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_limit": 1})).await;
    for sku in ["A", "a", "017", "17"] {
        http.pool("c", sku, 4, 1).await;
    }
    for (no, account, sku) in [("1", "ann", "A"), ("01", "Ann", "a"), ("x", "017", "017"), ("X", "17", "17")]
    {
        let first = http.order(&order("c", no, account, &[(sku, 1)])).await;
        assert_eq!(first.status, 201, "{first:?}");
        let second = http.order(&order("c", &format!("{no}-more"), account, &[(sku, 1)])).await;
        assert_eq!(second.code(), "account_limit");
    }
    server.finish().await;
}

async fn a_refund_is_bound_to_its_id_with_its_defaults(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"restock_on_refund": true})).await;
    let pool = http.pool("c", "A", 9, 1).await;
    let id = http.place("c", "1", "A", 5).await.text("id");
    http.pay(&id, "e").await;
    assert_eq!(http.refund(&id, "r1", 2, None).await.status, 201);
    for restock in [None, Some(true)] {
        assert_eq!(http.refund(&id, "r1", 2, restock).await.status, 200, "{restock:?}");
    }
    // What the refund did stays, and so does what its absent field meant, when the policy changes.
    http.put("/v1/campaigns/c", &json!({"name": "c"})).await;
    for restock in [None, Some(true)] {
        assert_eq!(http.refund(&id, "r1", 2, restock).await.status, 200, "{restock:?}");
    }
    for (quantity, restock, pointer) in [(1, None, "/lines"), (2, Some(false), "/restock")] {
        let other = http.refund(&id, "r1", quantity, restock).await;
        assert_eq!((other.status, other.faults()), (422, vec![("key_mismatch".into(), pointer.into())]));
    }
    assert_eq!(http.refund(&id, "r2", 2, Some(false)).await.status, 201);
    assert_eq!(http.refund(&id, "r2", 2, None).await.status, 200);
    assert_eq!(http.balances(&pool).await, (6, 0, 3));
    server.finish().await;
}
