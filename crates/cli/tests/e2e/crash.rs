//! `kill -9` under load, at random moments and at every named point of a commit. After each: what a client
//! was told is there, each key has one outcome, and the audit is clean.

use std::sync::Arc;

use serde_json::json;

use crate::support::{History, Load, Server, Start};

/// How often the server is killed in all.
const CRASHES: u64 = 100;
const CLIENTS: usize = 8;
/// Points of a commit at which a server can be told to die.
pub(crate) const POINTS: [&str; 3] = ["commit.before_begin", "commit.before_commit", "commit.after_commit"];

/// How the server dies this time: at a named point after some hits, or at a moment of the test's choice.
fn death(round: u64) -> (Start, Option<u64>) {
    let mut start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let point = usize::try_from(round % 4).unwrap();
    let Some(name) = POINTS.get(point) else { return (start, Some(1 + round * 7 % 60)) };
    let hits = 1 + round * 11 % 40;
    start.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{name}={hits}")));
    (start, None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_told_is_lost_in_100_crashes() {
    again_and_again(Server::start().await, CRASHES).await;
}

/// Kills a server so many times; a multiple of ten, for so often the history is judged.
pub(crate) async fn again_and_again(mut server: Server, crashes: u64) {
    let plain = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let history = Arc::new(History::default());
    history.open(&server.http).await;
    for round in 0..crashes {
        let (start, kill_after) = death(round);
        server.restart(&start).await;
        let load = Load::start(&history, std::slice::from_ref(&server.http), CLIENTS);
        match kill_after {
            // Killed while orders are in flight: after so many more were begun.
            Some(orders) => {
                let until = history.begun() + orders;
                while history.begun() < until {
                    tokio::task::yield_now().await;
                }
                server.kill().await;
            }
            None => assert!(!server.wait().await.success(), "it dies at its point"),
        }
        load.stop().await;
        if round % 10 == 9 {
            server.verify().await;
            // The ledger forgets nothing: what a crash has lost is missed here as well as right after it.
            server.restart(&plain).await;
            history.check(&server.http).await;
        }
    }
    assert!(history.successes() > crashes, "{}", history.summary());
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_answer_was_lost_has_one_outcome() {
    for point in POINTS {
        let plain = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
        let mut server = Server::start_with(plain.clone()).await;
        server.http.campaign("drop", json!({})).await;
        let pool = server.http.pool("drop", "CUP", 1, 1).await;
        let mut armed = plain.clone();
        armed.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{point}=1")));
        server.restart(&armed).await;
        let body = crate::support::place_body("drop", "A-1", "CUP", 1);
        assert!(server.http.try_send("POST", "/v1/orders", Some(&body)).await.is_none(), "{point}");
        server.restart(&plain).await;
        let again = server.http.post("/v1/orders", &body).await;
        let was_committed = point == "commit.after_commit";
        assert_eq!(again.status, if was_committed { 200 } else { 201 }, "{point}");
        assert_eq!(server.http.balances(&pool).await, (0, 1, 0));
        server.finish().await;
    }
}
