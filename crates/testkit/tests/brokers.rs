//! The test kit on a real Redis and a real NATS.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use holdfast_testkit::{FaultProxy, Nats, Redis, RedisOptions, Way};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_killed_redis_comes_back_with_what_it_flushed() {
    let server = Redis::start().await.unwrap();
    server.command(&["SET", "k", "7"]).await.unwrap();
    server.kill().unwrap();
    assert!(server.command(&["GET", "k"]).await.is_err());
    server.restart().await.unwrap();
    assert_eq!(server.command(&["GET", "k"]).await.unwrap(), "7");
    server.stop().await.unwrap();
    server.restart_empty().await.unwrap();
    assert_eq!(server.command(&["GET", "k"]).await.unwrap(), "");
}

#[tokio::test]
async fn a_redis_without_a_file_forgets() {
    let server = Redis::start_with(RedisOptions { is_durable: false }).await.unwrap();
    server.command(&["SET", "k", "7"]).await.unwrap();
    server.kill().unwrap();
    server.restart().await.unwrap();
    assert_eq!(server.command(&["GET", "k"]).await.unwrap(), "");
}

#[tokio::test]
async fn a_restored_redis_is_as_it_was_and_stays_durable() {
    let server = Redis::start().await.unwrap();
    server.command(&["SET", "k", "7"]).await.unwrap();
    let snapshot = server.snapshot().await.unwrap();
    server.command(&["SET", "k", "8"]).await.unwrap();
    server.restore(&snapshot).await.unwrap();
    assert_eq!(server.command(&["GET", "k"]).await.unwrap(), "7");
    server.command(&["SET", "k", "9"]).await.unwrap();
    server.kill().unwrap();
    server.restart().await.unwrap();
    assert_eq!(server.command(&["GET", "k"]).await.unwrap(), "9");
}

#[tokio::test]
async fn a_replica_takes_over() {
    let server = Redis::start().await.unwrap();
    server.command(&["SET", "k", "7"]).await.unwrap();
    let replica = server.replica().await.unwrap();
    assert!(replica.command(&["SET", "k", "8"]).await.is_err(), "a replica took a write");
    server.kill().unwrap();
    replica.promote().await.unwrap();
    assert_eq!(replica.command(&["GET", "k"]).await.unwrap(), "7");
    replica.command(&["SET", "k", "8"]).await.unwrap();
}

#[tokio::test]
async fn a_replica_whose_network_is_held_lacks_the_last_writes() {
    let server = Redis::start().await.unwrap();
    let proxy = FaultProxy::start(server.port()).await.unwrap();
    server.command(&["SET", "k", "7"]).await.unwrap();
    let replica = server.replica_through(proxy.port()).await.unwrap();
    proxy.hold(Way::ToClient);
    server.command(&["SET", "k", "8"]).await.unwrap();
    server.kill().unwrap();
    replica.promote().await.unwrap();
    assert_eq!(replica.command(&["GET", "k"]).await.unwrap(), "7");
}

#[tokio::test]
async fn a_paused_redis_is_silent_until_it_goes_on() {
    let server = Redis::start().await.unwrap();
    server.pause().unwrap();
    let answer = server.command(&["PING"]);
    tokio::pin!(answer);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut answer).await.is_err());
    server.resume().unwrap();
    assert_eq!(answer.await.unwrap(), "PONG");
}

/// Sends lines to NATS and returns the first line of an answer that begins with `wanted`.
async fn nats(server: &Nats, lines: &str, wanted: &str) -> String {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("CONNECT {{\"verbose\":false}}\r\n{lines}").as_bytes()).await.unwrap();
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).await.unwrap(), 0, "no {wanted}: {}", server.log());
        if line.starts_with(wanted) {
            return line;
        }
    }
}

/// Asks JetStream; the body of its answer.
async fn jetstream(server: &Nats, subject: &str, body: &str) -> String {
    let length = body.len();
    let lines = format!("SUB answer 1\r\nPUB $JS.API.{subject} answer {length}\r\n{body}\r\n");
    nats(server, &lines, "{").await
}

#[tokio::test]
async fn a_killed_nats_keeps_its_streams_unless_it_lost_its_disk() {
    let server = Nats::start().await.unwrap();
    assert_eq!(server.url(), format!("nats://127.0.0.1:{}", server.port()));
    let made = jetstream(&server, "STREAM.CREATE.s", r#"{"name":"s","subjects":["s"]}"#).await;
    assert!(made.contains("\"did_create\":true"), "{made}");
    server.kill().unwrap();
    server.restart().await.unwrap();
    assert!(jetstream(&server, "STREAM.NAMES", "").await.contains("\"streams\":[\"s\"]"));
    server.pause().unwrap();
    let ping = nats(&server, "PING\r\n", "PONG");
    tokio::pin!(ping);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut ping).await.is_err());
    server.resume().unwrap();
    ping.await;
    server.stop().await.unwrap();
    server.restart_empty().await.unwrap();
    assert!(jetstream(&server, "STREAM.NAMES", "").await.contains("\"streams\":null"));
}
