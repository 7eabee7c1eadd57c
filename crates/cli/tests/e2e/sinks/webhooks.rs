//! What a webhook gets, and how it can tell that it is from this server.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::receiver::{Mood, Receiver};
use super::{assert_complete, numbered, shop};

/// Judges signatures by the words of the specification, with nothing but Python's own library; and by the specification's
/// own Python library, where its wheel is named by `HOLDFAST_TEST_STANDARDWEBHOOKS`.
const JUDGE: &str = r#"
import base64, hashlib, hmac, json, os, sys
wheel = os.environ.get("HOLDFAST_TEST_STANDARDWEBHOOKS")
if wheel:
    sys.path.insert(0, wheel)
    from standardwebhooks import Webhook, WebhookVerificationError
for line in sys.stdin:
    got = json.loads(line)
    body = base64.b64decode(got["body"])
    signed = f'{got["id"]}.{got["timestamp"]}.'.encode() + body
    sent = [part[3:] for part in got["signature"].split(" ") if part.startswith("v1,")]
    for secret in got["secrets"]:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert any(hmac.compare_digest(made, one) for one in sent), (secret, sent)
        if wheel:
            headers = {f"webhook-{name}": got[name] for name in ["id", "timestamp", "signature"]}
            Webhook(secret).verify(body, headers)
            try:
                Webhook(secret).verify(body + b" ", headers)
                sys.exit("a changed body is taken")
            except WebhookVerificationError:
                pass
    assert len(sent) == len(got["secrets"]), sent
print("good")
"#;

async fn judge(receiver: &Receiver, secrets: &[String]) {
    let mut lines = String::new();
    for got in receiver.got() {
        let text = |name: &str| got.headers[name].clone();
        let line = json!({
            "id": text("webhook-id"),
            "timestamp": text("webhook-timestamp"),
            "signature": text("webhook-signature"),
            "body": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &got.body),
            "secrets": secrets,
        });
        lines.push_str(&format!("{line}\n"));
    }
    assert!(!lines.is_empty());
    let mut python = tokio::process::Command::new("python3");
    let mut child = python
        .args(["-c", JUDGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.stdout, b"good\n", "{}", String::from_utf8_lossy(&output.stderr));
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kind = |event| -> &str { Value::as_str(event).unwrap().trim_start_matches("dev.holdfast.order.") };
    events.iter().map(|event| kind(&event["type"])).collect()
}

#[tokio::test]
async fn a_transition_is_one_event_signed_and_in_order() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 50, 1).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let secret = http.webhook("erp", &receiver.url, json!({})).await;
    let first = http.place("spring", "A-1", "CUP", 3).await.text("id");
    let keep = json!({"lines": [{"line": 1, "keep": 2}]});
    assert_eq!(http.post(&format!("/v1/orders/{first}/cancel"), &keep).await.status, 200);
    let attempt = json!({"attempt_id": "t-1", "provider": "bank"});
    assert_eq!(http.post(&format!("/v1/orders/{first}/payment-attempts"), &attempt).await.status, 201);
    assert_eq!(http.pay(&first, "e-1").await.status, 200);
    for (refund, quantity) in [("r-1", 1), ("r-2", 1)] {
        let body = json!({"refund_id": refund, "lines": [{"line": 1, "quantity": quantity}], "reason": "r"});
        assert_eq!(http.post(&format!("/v1/orders/{first}/refunds"), &body).await.status, 201);
    }
    let second = http.place("spring", "A-2", "CUP", 1).await.text("id");
    assert_eq!(http.post(&format!("/v1/orders/{second}/cancel"), &json!({})).await.status, 200);
    let events = receiver.has(8).await;
    let told = [
        "held.v1",
        "reduced.v1",
        "changed.v1",
        "sold.v1",
        "partly_refunded.v1",
        "refunded.v1",
        "held.v1",
        "released.v1",
    ];
    assert_eq!(kinds(&events), told);
    assert_eq!(assert_complete(&http.ledger_events().await, &events), 0);
    let versions: Vec<_> = events.iter().map(|event| event["data"]["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6, 1, 2]);
    for event in &events {
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["source"], "/campaigns/spring");
        assert_eq!(event["subject"], event["data"]["order_id"]);
    }
    assert_eq!(events[0]["data"]["delta_held"], 3);
    let sent = &receiver.got()[0];
    assert_eq!(sent.headers["webhook-id"], events[0]["id"].as_str().unwrap());
    assert_eq!(sent.headers["content-type"], "application/cloudevents+json");
    judge(&receiver, &[secret]).await;
    let sink = http.sink_shows("erp", "no backlog", |sink| sink["backlog"]["entries"] == 0).await;
    assert_eq!(
        (&sink["state"], &sink["parked"], &sink["last_error"]),
        (&json!("active"), &json!(0), &Value::Null)
    );
    server.finish().await;
}

#[tokio::test]
async fn secrets_rotate_and_are_shown_once() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 50, 1).await;
    let receiver = Receiver::start(Mood::Takes).await;
    let old = http.webhook("erp", &receiver.url, json!({})).await;
    let same = json!({"kind": "webhook", "url": receiver.url});
    let again = http.put("/v1/sinks/erp", &same).await;
    assert_eq!((again.status, &again.body["secret"]), (200, &Value::Null));
    let added = http.post("/v1/sinks/erp/secrets", &json!({})).await;
    assert_eq!(added.status, 201, "{added:?}");
    let new = added.text("secret");
    assert_eq!(added.headers["cache-control"], "no-store");
    http.sell(numbered("A", 1), false).await;
    receiver.has(1).await;
    judge(&receiver, &[new.clone(), old.clone()]).await;
    let ids: Vec<_> = added.body["secrets"].as_array().unwrap().iter().map(|s| s["id"].clone()).collect();
    let drop = format!("/v1/sinks/erp/secrets/{}", ids[1].as_str().unwrap());
    let dropped = http.try_send("DELETE", &drop, Some(&json!({}))).await.unwrap();
    assert_eq!(dropped.status, 200, "{dropped:?}");
    let last = format!("/v1/sinks/erp/secrets/{}", ids[0].as_str().unwrap());
    assert_eq!(http.try_send("DELETE", &last, Some(&json!({}))).await.unwrap().code(), "conflict");
    let fresh = Receiver::start(Mood::Takes).await;
    let moved = http.put("/v1/sinks/erp", &json!({"kind": "webhook", "url": fresh.url})).await;
    assert_eq!(moved.status, 200, "{moved:?}");
    http.sell(numbered("B", 1), false).await;
    fresh.has(1).await;
    judge(&fresh, std::slice::from_ref(&new)).await;
    for path in ["/v1/sinks/erp", "/v1/sinks", "/v1/audit"] {
        let text = String::from_utf8(http.get(path).await.raw).unwrap();
        assert!(!text.contains(&old[6..]) && !text.contains(&new[6..]), "{path}");
    }
    server.finish().await;
}

#[tokio::test]
async fn a_batch_is_an_array_and_a_filter_leaves_out() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 500, 1).await;
    http.sell(numbered("A", 60), true).await;
    let all = Receiver::start(Mood::Takes).await;
    let secret = http.webhook("all", &all.url, json!({"batch_max": 50})).await;
    let some = Receiver::start(Mood::Takes).await;
    http.webhook("some", &some.url, json!({"types": ["sold"]})).await;
    let now = Receiver::start(Mood::Takes).await;
    http.webhook("now", &now.url, json!({"from": "now"})).await;
    let events = all.has(120).await;
    assert_eq!(assert_complete(&http.ledger_events().await, &events), 0);
    assert!(all.requests() < 20, "{}", all.requests());
    assert_eq!(all.got()[0].headers["content-type"], "application/cloudevents-batch+json");
    judge(&all, &[secret]).await;
    let sold = some.has(60).await;
    assert!(sold.iter().all(|event| event["type"] == "dev.holdfast.order.sold.v1"));
    http.sell(numbered("B", 1), false).await;
    assert_eq!(now.has(1).await[0]["data"]["order_no"], "B-0");
    for name in ["all", "some", "now"] {
        http.sink_shows(name, "no backlog", |sink| sink["backlog"]["entries"] == 0).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn a_test_event_tells_what_the_receiver_says() {
    let server = shop().await;
    let http = &server.http;
    let receiver = Receiver::start(Mood::Takes).await;
    let secret = http.webhook("erp", &receiver.url, json!({})).await;
    let tested = http.sink_verb("erp", "test", json!({})).await;
    assert_eq!((&tested.body["delivered"], &tested.body["error"]), (&json!(true), &Value::Null));
    assert_eq!(receiver.taken()[0]["type"], "dev.holdfast.sink.test.v1");
    judge(&receiver, &[secret]).await;
    receiver.is_now(Mood::Says(418));
    let tested = http.sink_verb("erp", "test", json!({})).await;
    assert_eq!(tested.body["delivered"], false);
    assert!(tested.text("error").starts_with("418"), "{tested:?}");
    server.finish().await;
}
