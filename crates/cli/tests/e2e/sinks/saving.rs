//! What may be saved as a sink.

use serde_json::json;

use super::shop;
use crate::support::{Server, assert_invalid, assert_problem, run};

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_when_it_is_saved() {
    let server = Server::start().await;
    for url in [
        "http://169.254.169.254/",
        "http://127.0.0.1:6379",
        "https://127.0.0.1:6379",
        "http://[::1]/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://10.0.0.1/",
        "https://localhost/",
        "https://user:pass@example.com/",
        "file:///etc/passwd",
        "http://example.com/",
        "not an address",
    ] {
        let refused = server.http.put("/v1/sinks/erp", &json!({"kind": "webhook", "url": url})).await;
        assert_invalid(&refused, "invalid_value", "/url", "/url");
    }
    assert_eq!(server.http.get("/v1/sinks").await.body["items"], json!([]));
    server.finish().await;
}

#[tokio::test]
async fn what_a_sink_needs_is_asked_for() {
    let server = shop().await;
    let http = &server.http;
    for (body, code, pointer) in [
        (json!({"kind": "webhook"}), "invalid_value", "/url"),
        (json!({"kind": "nats", "subject": "orders"}), "invalid_value", "/subject"),
        (json!({"kind": "redis", "stream": "orders"}), "invalid_value", "/stream"),
        (json!({"kind": "pull", "batch_max": 0}), "invalid_value", "/batch_max"),
        (
            json!({"kind": "webhook", "url": "http://127.0.0.1/", "secret": "whsec_short"}),
            "invalid_value",
            "/secret",
        ),
    ] {
        assert_invalid(&http.put("/v1/sinks/erp", &body).await, code, pointer, pointer);
    }
    assert_invalid(
        &http.put("/v1/sinks/ERP", &json!({"kind": "pull"})).await,
        "invalid_identifier",
        "/path/name",
        "/path/name",
    );
    for path in ["/v1/sinks/none", "/v1/sinks/none/dead-letters", "/v1/sinks/N%00NE"] {
        assert_problem(&http.get(path).await, 404, "not_found", "not_found");
    }
    for verb in ["pause", "resume", "test"] {
        assert_problem(
            &http.post(&format!("/v1/sinks/none/{verb}"), &json!({})).await,
            404,
            "not_found",
            "not_found",
        );
    }
    assert_eq!(http.put("/v1/sinks/feed", &json!({"kind": "pull"})).await.status, 201);
    assert_problem(
        &http.put("/v1/sinks/feed", &json!({"kind": "webhook", "url": "http://127.0.0.1/"})).await,
        409,
        "conflict",
        "conflict",
    );
    assert_problem(&http.post("/v1/sinks/feed/test", &json!({})).await, 409, "conflict", "conflict");
    assert_problem(&http.post("/v1/sinks/feed/secrets", &json!({})).await, 409, "conflict", "conflict");
    let gone = http.try_send("DELETE", "/v1/sinks/feed", Some(&json!({"reason": "r"}))).await.unwrap();
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_problem(&http.get("/v1/sinks/feed").await, 404, "not_found", "not_found");
    server.finish().await;
}

#[tokio::test]
async fn the_command_line_makes_and_steers_sinks() {
    let server = shop().await;
    let target = ["--target", server.http.base.as_str(), "--format", "json"];
    let sink = async |arguments: &[&str]| {
        let output = run(&[&["sink"], arguments, &target].concat()).await;
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), read)
    };
    let put = ["put", "erp", "--kind", "webhook", "--to", "http://127.0.0.1:9/", "--types", "sold,held"];
    let (code, made) = sink(&put).await;
    assert_eq!(code, Some(0), "{made}");
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    let (_, shown) = sink(&["show", "erp"]).await;
    assert_eq!((&shown["types"], &shown["state"]), (&json!(["sold", "held"]), &json!("active")));
    let (code, tested) = sink(&["test", "erp"]).await;
    assert_eq!((code, &tested["delivered"]), (Some(1), &json!(false)));
    assert_eq!(sink(&["pause", "erp", "--reason", "r", "--operator", "ann"]).await.1["state"], "paused");
    assert_eq!(sink(&["resume", "erp"]).await.1["state"], "active");
    assert_eq!(sink(&["replay", "erp", "--from", "beginning"]).await.1["round"], 2);
    assert_eq!(sink(&["dead-letters", "erp"]).await.1, json!([]));
    assert_eq!(sink(&["list"]).await.1[0]["name"], "erp");
    assert_eq!(sink(&["delete", "erp"]).await.0, Some(0));
    assert_eq!(sink(&["show", "erp"]).await.0, Some(2));
    server.finish().await;
}
