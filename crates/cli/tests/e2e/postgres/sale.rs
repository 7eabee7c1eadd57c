//! A sale on PostgreSQL from end to end, by the commands that people use.

use serde_json::{Value, json};

use super::{authority, without_keys};
use crate::support::{Server, Start, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_held_paid_and_explained_and_an_unpaid_one_goes_back() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let http = &server.http;
    http.campaign("spring", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = http.pool("spring", "CUP", 10, 2).await;
    let unpaid = http.place("spring", "A-1", "CUP", 3).await;
    assert_eq!((unpaid.status, unpaid.text("state")), (201, "held".into()));
    let paid = http.place("spring", "A-2", "CUP", 2).await.text("id");
    assert_eq!(http.pay(&paid, "e1").await.text("disposition"), "applied");
    assert_eq!(http.pay(&paid, "e1").await.text("disposition"), "duplicate");
    http.wait_for_state(&unpaid.text("id"), "released").await;
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    let again = http.place("spring", "A-2", "CUP", 2).await;
    assert_eq!((again.status, again.text("state")), (200, "sold".into()));
    let explained =
        run(&["explain", "order", "--campaign", "spring", "--order-no", "A-2", "--database", &url]).await;
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains("order A-2 is sold") && text.contains("confirm"), "{text}");
    let examined = run(&["doctor", "--database", &url, "--format", "json"]).await;
    let diagnosis: Value = serde_json::from_slice(&examined.stdout).unwrap();
    assert!(examined.status.success() && diagnosis["ok"] == true, "{diagnosis:#}");
    let copied = run(&["backup", "/nowhere/copy.db", "--database", &url]).await;
    assert_eq!(copied.status.code(), Some(2));
    assert!(String::from_utf8(copied.stderr).unwrap().contains("pg_dump"));
    server.finish().await;
}

/// The state file knows more than the database that was put back: nothing is sold until somebody has looked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_put_back_sells_nothing() {
    let (authority, url) = authority().await;
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("node.state").display().to_string();
    let start = Start {
        arguments: vec!["--auth".into(), "off".into(), "--state-file".into(), state],
        ..Start::default()
    };
    let server = Server::start_at(&url, &start).await.expect("it starts");
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 10, 1).await;
    assert_eq!(server.http.place("spring", "A-1", "CUP", 1).await.status, 201);
    server.finish().await;
    let name = url.rsplit('/').next().unwrap();
    authority
        .sql("postgres", &format!("CREATE DATABASE earlier TEMPLATE \"{name}\" OWNER holdfast"))
        .await
        .unwrap();
    let server = Server::start_at(&url, &start).await.expect("it starts");
    assert_eq!(server.http.place("spring", "A-2", "CUP", 1).await.status, 201);
    server.finish().await;
    let server = Server::start_at(&authority.url("earlier"), &start).await.expect("it starts");
    let refused = server.http.place("spring", "A-3", "CUP", 1).await;
    assert_eq!((refused.status, refused.code()), (409, "frozen"));
    let cases = server.http.get("/v1/cases?state=open").await;
    let case = cases.body["items"][0]["id"].as_str().unwrap().to_owned();
    let body = json!({"action": "acknowledge", "reason": "an old copy", "operator": "ann"});
    assert_eq!(server.http.post(&format!("/v1/cases/{case}/resolve"), &body).await.status, 200);
    assert_eq!(server.http.place("spring", "A-3", "CUP", 1).await.status, 201);
    server.finish().await;
}
