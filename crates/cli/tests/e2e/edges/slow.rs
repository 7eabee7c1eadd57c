//! Clients that take their time, and those that say nothing at all.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::interval;

use crate::support::{Raw, Server, answer_of, assert_problem, assert_whole_problem, place_body};

/// Until when a client that dawdles is to be rid of.
const RID_WITHIN: Duration = Duration::from_secs(15);

/// Sends a byte every half second until the server has something to say.
async fn dribble(raw: &mut Raw, byte: &[u8]) {
    let mut ticks = interval(Duration::from_millis(500));
    while !raw.hears_within(Duration::ZERO).await {
        ticks.tick().await;
        if raw.send(byte).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn slow_clients_are_got_rid_of_while_honest_ones_are_served() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 1_000, 1).await;
    let start = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(Raw::open(http).await);
    }
    let headers = async {
        let mut raw = Raw::open(http).await;
        raw.send(b"GET /livez HTTP/1.1\r\nhost: h\r\nx-slow: ").await.unwrap();
        dribble(&mut raw, b"x").await;
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    };
    let half_a_line = async {
        let mut raw = Raw::open(http).await;
        raw.send(b"GET /live").await.unwrap();
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    };
    let second = async {
        let mut raw = Raw::open(http).await;
        raw.send(b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
        let first = raw.read_until("{\"status\":\"ok\"}").await;
        assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
        raw.send(b"GET /livez HTT").await.unwrap();
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    };
    let body = async {
        let mut raw = Raw::open(http).await;
        let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n";
        raw.send(head.as_bytes()).await.unwrap();
        dribble(&mut raw, b" ").await;
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    };
    let chunks = async {
        let mut raw = Raw::open(http).await;
        let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        raw.send(head.as_bytes()).await.unwrap();
        dribble(&mut raw, b"1\r\n \r\n").await;
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    };
    let honest = async {
        for n in 0..50 {
            let asked = Instant::now();
            assert_eq!(http.place("spring", &format!("A-{n}"), "CUP", 1).await.status, 201);
            assert!(asked.elapsed() < Duration::from_secs(5), "an honest client waits {:?}", asked.elapsed());
        }
    };
    let (headers, half, second, body, chunks, ()) =
        tokio::join!(headers, half_a_line, second, body, chunks, honest);
    for (what, said) in
        [("slow headers", headers), ("half a line", half), ("half of a second request", second)]
    {
        assert!(!said.contains(" 200 ") && !said.contains("HTTP/1.1 5"), "{what}: {said}");
        if !said.is_empty() {
            assert_whole_problem(&answer_of(&said), what);
        }
    }
    for (what, said) in [("a slow body", body), ("slow chunks", chunks)] {
        assert_problem(&answer_of(&said), 408, "request_timeout", what);
    }
    for mut raw in silent {
        assert_eq!(raw.read_to_close().await, b"", "who says nothing is told nothing");
    }
    assert!(start.elapsed() < RID_WITHIN, "{:?}", start.elapsed());
    assert_eq!(http.balances(&pool).await, (950, 50, 0));
    server.finish().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_does_nothing() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let body = place_body("spring", "A-1", "CUP", 1).to_string();
    let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
    for sent in [
        // Whole JSON, but fewer bytes than were promised.
        format!("{head}content-length: {}\r\n\r\n{body}", body.len() + 1),
        format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len()),
        format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}", body.len() + 1),
        format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let mut raw = Raw::open(http).await;
        raw.send(sent.as_bytes()).await.unwrap();
        raw.end().await;
        let said = String::from_utf8_lossy(&raw.read_to_close().await).into_owned();
        assert!(!said.contains("HTTP/1.1 2") && !said.contains("HTTP/1.1 5"), "{said}");
        if !said.is_empty() {
            assert_whole_problem(&answer_of(&said), "a broken body");
        }
    }
    let orders = http.get("/v1/orders").await;
    assert_eq!(orders.body["items"], json!([]));
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    server.finish().await;
}
