//! What is wrong with a sale is told apart from outside: each trouble is made, and named.

use std::time::Duration;

use holdfast_testkit::{Database, FaultProxy, Postgres, Way};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Http, Server, Start, run, wait_until};

fn without_keys() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

async fn diagnosis(http: &Http) -> Value {
    let diagnosis = http.get("/v1/diagnose").await;
    assert_eq!(diagnosis.status, 200, "{diagnosis:?}");
    diagnosis.body
}

/// The finding of a kind, if there is one.
fn of_kind<'d>(diagnosis: &'d Value, kind: &str) -> Option<&'d Value> {
    diagnosis["findings"].as_array().expect("findings").iter().find(|finding| finding["kind"] == kind)
}

fn figure(finding: &Value, name: &str) -> f64 {
    let figures = finding["figures"].as_array().expect("figures");
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.and_then(|figure| figure["value"].as_f64()).unwrap_or_else(|| panic!("no {name}: {finding}"))
}

/// Makes trouble again and again until a finding tells of it.
async fn told(http: &Http, kind: &str, mut trouble: impl AsyncFnMut()) -> Value {
    wait_until(kind, async || {
        trouble().await;
        of_kind(&diagnosis(http).await, kind).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_server_is_healthy_and_says_by_what() {
    let server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 5, 1).await;
    server.http.place("spring", "A-1", "CUP", 2).await;
    let diagnosis = wait_until("samples", async || {
        let diagnosis = diagnosis(&server.http).await;
        (diagnosis["samples"].as_u64() > Some(1)).then_some(diagnosis)
    })
    .await;
    assert_eq!((&diagnosis["healthy"], &diagnosis["findings"]), (&json!(true), &json!([])));
    let grounds = diagnosis["grounds"].as_array().unwrap();
    assert!(grounds.iter().any(|figure| figure["name"] == "lock_wait_p99_ms"), "{diagnosis}");
    let shown = run(&["diagnose", "--target", &server.http.base]).await;
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).starts_with("healthy at "));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_somebody_else_holds_is_lock_queueing() {
    let postgres = Postgres::start().await.unwrap();
    let url = postgres.create_database("shop").await.unwrap();
    let server = Server::start_at(&url, &without_keys()).await.unwrap();
    let http = server.http.clone();
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 1_000, 1).await;
    assert_eq!(http.place("spring", "A-0", "CUP", 1).await.status, 201);
    let held = "BEGIN; SELECT * FROM bucket FOR UPDATE; SELECT pg_sleep(8); COMMIT";
    let mut others = JoinSet::new();
    let buyer = http.clone();
    others.spawn(async move {
        postgres.sql("shop", held).await.unwrap();
        postgres
    });
    let mut number = 0;
    let finding = told(&http, "lock_queueing", async || {
        number += 1;
        // Whether it is answered in time is not the question here.
        let _ = buyer
            .try_send(
                "POST",
                "/v1/orders",
                Some(&crate::support::place_body("spring", &format!("A-{number}"), "CUP", 1)),
            )
            .await;
    })
    .await;
    assert_eq!(finding["is_trouble"], true);
    assert!(figure(&finding, "lock_hold_mean_ms") < 1_000.0, "{finding}");
    let timeline = finding["timeline"].as_array().unwrap();
    assert!(timeline.iter().any(|onset| onset["text"].as_str().unwrap().contains("wait for their locks")));
    let _postgres = others.join_next().await.unwrap().unwrap();
    wait_until("it sells again", async || {
        number += 1;
        let placed = http.place("spring", &format!("A-{number}"), "CUP", 1).await;
        (placed.status == 201).then_some(())
    })
    .await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_over_a_slow_network_are_slow_commits() {
    let postgres = Postgres::start().await.unwrap();
    let url = postgres.create_database("shop").await.unwrap();
    let proxy = FaultProxy::postgres(postgres.port()).await.unwrap();
    let server = Server::start_at(&proxy.through(&url), &without_keys()).await.unwrap();
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 1_000, 1).await;
    proxy.delay(Way::ToClient, Duration::from_millis(150));
    let mut number = 0;
    let finding = told(http, "slow_commit", async || {
        number += 1;
        assert_eq!(http.place("spring", &format!("A-{number}"), "CUP", 1).await.status, 201);
    })
    .await;
    assert!(figure(&finding, "commit_mean_ms") >= 100.0, "{finding}");
    let shown = run(&["diagnose", "--target", &http.base]).await;
    assert_eq!(shown.status.code(), Some(1), "it goes on");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("slow_commit since "));
    proxy.pass(Way::ToClient);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_repeats_is_client_retries_and_moves_nothing() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let finding = told(http, "client_retries", async || {
        for _ in 0..50 {
            assert!(matches!(http.place("spring", "A-1", "CUP", 1).await.status, 200 | 201));
        }
    })
    .await;
    assert!(figure(&finding, "repeats_per_second") >= 20.0, "{finding}");
    assert_eq!(http.balances(&pool).await, (9, 1, 0));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_orders_without_a_worker_are_async_loss() {
    let arguments = ["--auth", "off", "--roles", "api"].map(str::to_owned).to_vec();
    let authority = Database::shared().await.unwrap();
    let start = Start { arguments, ..Start::default() };
    let server = Server::start_at(&authority.url(), &start).await.unwrap();
    let http = &server.http;
    http.campaign("spring", json!({"queue_wait_ms": 60_000})).await;
    let body = json!({"campaign_id": "spring", "sku": "CUP", "supply": 5, "path": "queued"});
    http.post("/v1/pools", &body).await.text("id");
    assert_eq!(http.place("spring", "A-1", "CUP", 1).await.status, 202);
    let finding = told(http, "async_loss", async || ()).await;
    assert!(finding["text"].as_str().unwrap().contains("the oldest queued order"), "{finding}");
    assert_eq!(finding["until"], Value::Null);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_the_ledger_has_twice_is_a_repeated_deduct() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 5, 1).await;
    let id = http.place("spring", "A-1", "CUP", 2).await.text("id");
    assert_eq!(of_kind(&diagnosis(http).await, "repeated_deduct"), None);
    let raw = rusqlite::Connection::open(server.database()).unwrap();
    raw.execute_batch(
        "CREATE TEMP TABLE again AS SELECT * FROM ledger WHERE action = 'place';
         UPDATE again SET seq = seq + 1; INSERT INTO main.ledger SELECT * FROM again;",
    )
    .unwrap();
    let found = diagnosis(http).await;
    let finding = of_kind(&found, "repeated_deduct").expect("a finding");
    assert!(finding["text"].as_str().unwrap().contains(&format!("place of order {id} in entries 2 and 3")));
    assert_eq!(found["healthy"], false);
}
