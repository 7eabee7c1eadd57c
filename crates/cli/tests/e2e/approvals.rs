//! Work that needs a second person: asked for once, done once, never by the one who asked.

use serde_json::{Value, json};

use crate::imports::send;
use crate::support::{Answer, Http, Server, run};

fn adjustment(id: &str, delta: i64, operator: &str) -> Value {
    json!({"adjustment_id": id, "delta": delta, "kind": "adjust", "reason": "count", "operator": operator})
}

fn by(operator: &str) -> Value {
    json!({"operator": operator, "reason": "seen"})
}

/// Status and state.
fn stands(answer: &Answer) -> (u16, String) {
    (answer.status, answer.body["state"].as_str().unwrap_or_default().to_owned())
}

fn at(status: u16, state: &str) -> (u16, String) {
    (status, state.to_owned())
}

/// Adjustments, transfers and work on orders, on any store.
pub(crate) async fn a_second_person_agrees_before_anything_moves(http: &Http) {
    http.campaign("spring", json!({"approval_threshold": 10})).await;
    let pool = http.pool("spring", "CUP", 100, 2).await;
    let adjustments = format!("/v1/pools/{pool}/adjustments");
    let small = http.post(&adjustments, &adjustment("a-0", -10, "olga")).await;
    assert_eq!(stands(&small), at(201, "applied"), "as much as the threshold asks nobody");
    // Asked once, however often it is sent; nothing moves.
    for _ in 0..2 {
        let asked = http.post(&adjustments, &adjustment("a-1", -11, "olga")).await;
        assert_eq!(stands(&asked), at(202, "pending_approval"), "{asked:?}");
        assert_eq!(asked.text("approval_id"), "adjustment:a-1");
    }
    let other = http.post(&adjustments, &adjustment("a-1", -12, "olga")).await;
    assert_eq!((other.status, other.code()), (422, "key_mismatch"));
    assert_eq!(http.balances(&pool).await, (90, 0, 0));
    let waiting = http.get("/v1/approvals?state=pending_approval").await;
    assert_eq!(waiting.body["items"][0]["approval_id"], "adjustment:a-1");
    let own = http.post("/v1/adjustments/a-1/approve", &by("olga")).await;
    assert_eq!((own.status, own.code()), (403, "forbidden"), "{own:?}");
    for _ in 0..2 {
        let agreed = http.post("/v1/adjustments/a-1/approve", &by("pia")).await;
        assert_eq!(stands(&agreed), at(200, "applied"), "{agreed:?}");
        assert_eq!(http.balances(&pool).await, (79, 0, 0));
    }
    let again = http.post(&adjustments, &adjustment("a-1", -11, "olga")).await;
    assert_eq!(stands(&again), at(200, "applied"));
    let late = http.post("/v1/adjustments/a-1/reject", &by("pia")).await;
    assert_eq!((late.status, late.code()), (409, "conflict"));
    // What was rejected is never done.
    assert_eq!(http.post(&adjustments, &adjustment("a-2", 50, "olga")).await.status, 202);
    let rejected = http.post("/v1/adjustments/a-2/reject", &by("pia")).await;
    assert_eq!(stands(&rejected), at(200, "rejected"));
    let again = http.post(&adjustments, &adjustment("a-2", 50, "olga")).await;
    assert_eq!(stands(&again), at(200, "rejected"));
    assert_eq!(http.post("/v1/adjustments/a-2/approve", &by("pia")).await.status, 409);
    // What cannot be done is refused when it is agreed to, and waits on.
    assert_eq!(http.post(&adjustments, &adjustment("a-3", -80, "olga")).await.status, 202);
    let short = http.post("/v1/adjustments/a-3/approve", &by("pia")).await;
    assert_eq!((short.status, short.code()), (409, "stock_in_use"));
    let file = send(http, "campaign_id=spring&mode=inbound", "sku,quantity\nCUP,11\n").await;
    assert_eq!((file.status, file.body["errors"][0]["fault"].as_str()), (409, Some("needs_approval")));
    assert_eq!(http.balances(&pool).await, (79, 0, 0));
    transfers(http, &pool).await;
    orders(http, &pool).await;
    let trail = http.get("/v1/audit?limit=500").await;
    let count = |action: &str| {
        trail.body["items"].as_array().unwrap().iter().filter(|act| act["action"] == action).count()
    };
    assert_eq!((count("ask_approval"), count("approve"), count("reject")), (8, 4, 2));
}

async fn transfers(http: &Http, pool: &str) {
    let west = http.pool("spring", "POT", 0, 1).await;
    let transfer = json!({"transfer_id": "t-1", "from": {"pool_id": pool}, "to": {"pool_id": west}, "quantity": 20,
        "reason": "move", "operator": "olga"});
    let asked = http.post("/v1/transfers", &transfer).await;
    assert_eq!(stands(&asked), at(202, "pending_approval"), "{asked:?}");
    let agreed = http.post("/v1/approvals/transfer:t-1/approve", &by("pia")).await;
    assert_eq!(stands(&agreed), at(200, "approved"), "{agreed:?}");
    assert_eq!(stands(&http.post("/v1/transfers", &transfer).await), at(200, "applied"));
    assert_eq!((http.balances(pool).await, http.balances(&west).await), ((59, 0, 0), (20, 0, 0)));
}

/// An order of twelve: an operator reduces it by a few alone, and confirms and refunds it with a second person.
async fn orders(http: &Http, pool: &str) {
    let id = http.place("spring", "A-1", "CUP", 15).await.text("id");
    let resolve = |action: &str, more: Value| {
        let mut body = json!({"action": action, "reason": "asked by phone", "operator": "olga"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        body
    };
    let path = format!("/v1/orders/{id}/resolve");
    let reduced = http.post(&path, &resolve("reduce", json!({"lines": [{"line": 1, "keep": 12}]}))).await;
    assert_eq!((reduced.status, &reduced.body["lines"][0]["quantity"]), (200, &json!(12)), "{reduced:?}");
    let asked = http.post(&path, &resolve("release", json!({}))).await;
    assert_eq!(stands(&asked), at(202, "pending_approval"), "{asked:?}");
    let key = asked.text("approval_id");
    assert_eq!(http.post(&format!("/v1/approvals/{key}/reject"), &by("pia")).await.text("state"), "rejected");
    // The next try has a key of its own.
    let asked = http.post(&path, &resolve("confirm", json!({"decision_id": "second try"}))).await;
    let key = asked.text("approval_id").replace(' ', "%20");
    assert_eq!(http.balances(pool).await, (47, 12, 0));
    let agreed = http.post(&format!("/v1/approvals/{key}/approve"), &by("pia")).await;
    assert_eq!(stands(&agreed), at(200, "approved"), "{agreed:?}");
    assert_eq!(http.get(&format!("/v1/orders/{id}")).await.text("state"), "sold");
    let refund = |refund_id: &str, quantity: u32| json!({"refund_id": refund_id, "lines": [{"line": 1, "quantity": quantity}], "restock": true, "reason": "r"});
    let refunds = format!("/v1/orders/{id}/refunds");
    assert_eq!(http.post(&refunds, &refund("r-1", 1)).await.status, 201);
    let asked = http.post(&refunds, &refund("r-2", 11)).await;
    assert_eq!(stands(&asked), at(202, "pending_approval"), "{asked:?}");
    let key = asked.text("approval_id");
    assert_eq!(http.balances(pool).await, (48, 0, 11));
    assert_eq!(
        http.post(&format!("/v1/approvals/{key}/approve"), &by("pia")).await.text("state"),
        "approved"
    );
    assert_eq!(http.post(&refunds, &refund("r-2", 11)).await.status, 200);
    assert_eq!(http.balances(pool).await, (59, 0, 0));
    // A buyer asks nobody.
    let id = http.place("spring", "A-2", "CUP", 20).await.text("id");
    assert_eq!(http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await.text("state"), "released");
    // Asked and left: it is listed, and nothing came of it.
    let id = http.place("spring", "A-3", "CUP", 11).await.text("id");
    let path = format!("/v1/orders/{id}/resolve");
    assert_eq!(http.post(&path, &resolve("release", json!({}))).await.status, 202);
    assert_eq!(http.get(&format!("/v1/orders/{id}")).await.text("state"), "held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_above_the_threshold_waits_for_a_second_person() {
    let server = Server::start().await;
    a_second_person_agrees_before_anything_moves(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_lists_approves_and_rejects() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({"approval_threshold": 10})).await;
    let pool = http.pool("spring", "CUP", 100, 1).await;
    let approval = async |arguments: &[&str]| {
        let output = run(&[&["approval"], arguments, &["--target", &http.base]].concat()).await;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, none, _) = approval(&["list"]).await;
    assert_eq!((status, none.as_str()), (Some(0), "there is none\n"));
    for (id, delta) in [("a-1", -11), ("a 2", 50)] {
        let asked = http.post(&format!("/v1/pools/{pool}/adjustments"), &adjustment(id, delta, "olga")).await;
        assert_eq!(asked.status, 202, "{asked:?}");
    }
    let (_, list, _) = approval(&["list", "--campaign", "spring", "--format", "json"]).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|one| one["approval_id"].clone()).collect();
    assert_eq!(ids, ["adjustment:a 2", "adjustment:a-1"]);
    let (_, list, _) = approval(&["list"]).await;
    assert!(list.contains("asked by olga at ") && list.contains("to be decided before "), "{list}");
    let who = |name: &'static str| ["--operator", name, "--reason", "counted, too"];
    let (status, _, error) = approval(&[&["approve", "adjustment:a-1"][..], &who("olga")].concat()).await;
    assert!(status == Some(2) && error.contains("403 forbidden"), "{error}");
    for _ in 0..2 {
        let (status, agreed, _) = approval(&[&["approve", "adjustment:a-1"][..], &who("pia")].concat()).await;
        assert!(status == Some(0) && agreed.contains("approve by pia at "), "{agreed}");
    }
    let reject = [&["reject", "adjustment:a 2", "--format", "json"][..], &who("pia")].concat();
    let (_, rejected, _) = approval(&reject).await;
    assert_eq!(serde_json::from_str::<Value>(&rejected).unwrap()["state"], "rejected");
    let (_, _, error) = approval(&[&["approve", "adjustment:a 2"][..], &who("pia")].concat()).await;
    assert!(error.contains("409 conflict"), "{error}");
    assert_eq!(http.balances(&pool).await, (89, 0, 0));
    let (_, approved, _) = approval(&["list", "--state", "approved"]).await;
    assert!(approved.starts_with("adjustment:a-1  approved  campaign spring: "), "{approved}");
    server.finish().await;
}
