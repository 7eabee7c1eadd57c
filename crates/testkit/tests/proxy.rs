//! The network that fails on request, before an echoing server and before a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io::ErrorKind;
use std::time::Duration;

use holdfast_testkit::{FaultProxy, Postgres, Way, psql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const MOMENT: Duration = Duration::from_millis(300);

/// A proxy before a server that sends back what it gets.
async fn echo() -> FaultProxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::start(listener.local_addr().unwrap().port()).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    proxy
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap()
}

async fn ask(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn bytes_and_ends_pass() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    let long = "x".repeat(3_000_000);
    let (mut from, mut to) = stream.split();
    let mut back = String::new();
    let (sent, received) = tokio::join!(
        async {
            to.write_all(long.as_bytes()).await?;
            to.shutdown().await
        },
        from.read_to_string(&mut back)
    );
    sent.unwrap();
    received.unwrap();
    assert_eq!(back.len(), long.len());
    drop(stream);
    timeout(MOMENT * 10, async { while proxy.connections().await > 0 {} }).await.unwrap();
}

#[tokio::test]
async fn a_delay_holds_up_and_does_not_narrow() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.delay(Way::ToServer, Duration::from_millis(80));
    proxy.delay(Way::ToClient, Duration::from_millis(40));
    let began = Instant::now();
    assert_eq!(ask(&mut stream, "hello").await.unwrap(), "hello");
    assert!(began.elapsed() >= Duration::from_millis(120), "{:?}", began.elapsed());
    // 40 chunks one after the other would take 120 ms each.
    let began = Instant::now();
    ask(&mut stream, &"x".repeat(40 * 16 * 1_024)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_held_way_is_silent_until_it_passes() {
    let proxy = echo().await;
    for way in [Way::ToServer, Way::ToClient] {
        let mut stream = connect(&proxy).await;
        ask(&mut stream, "before").await.unwrap();
        proxy.hold(way);
        let answer = ask(&mut stream, "during");
        tokio::pin!(answer);
        assert!(timeout(MOMENT, &mut answer).await.is_err(), "{way:?} was not held");
        proxy.pass(way);
        assert_eq!(answer.await.unwrap(), "during");
    }
}

#[tokio::test]
async fn a_cut_resets_all_connections_and_takes_new_ones() {
    let proxy = echo().await;
    let mut streams = [connect(&proxy).await, connect(&proxy).await];
    for stream in &mut streams {
        ask(stream, "before").await.unwrap();
    }
    proxy.cut().await;
    assert_eq!(proxy.connections().await, 0);
    for stream in &mut streams {
        assert_eq!(stream.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(ask(&mut connect(&proxy).await, "after").await.unwrap(), "after");
}

#[tokio::test]
async fn a_cut_after_so_many_bytes_is_exact_and_happens_once() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    ask(&mut stream, "before").await.unwrap();
    proxy.cut_after(Way::ToClient, 12);
    stream.write_all(b"0123456789abcdef").await.unwrap();
    let mut got = Vec::new();
    let end = stream.read_to_end(&mut got).await.unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    assert!(b"0123456789ab".starts_with(&got), "{got:?}");
    assert_eq!(ask(&mut connect(&proxy).await, &"x".repeat(99)).await.unwrap().len(), 99);
}

#[tokio::test]
async fn new_connections_are_refused_while_open_ones_live() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    ask(&mut stream, "before").await.unwrap();
    proxy.refuse().await;
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(ask(&mut stream, "during").await.unwrap(), "during");
    proxy.accept().await.unwrap();
    assert_eq!(ask(&mut connect(&proxy).await, "after").await.unwrap(), "after");
}

#[tokio::test]
async fn new_connections_lead_to_another_server_while_open_ones_stay() {
    let proxy = echo().await;
    let mut before = connect(&proxy).await;
    ask(&mut before, "before").await.unwrap();
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.lead_to(other.local_addr().unwrap().port());
    let mut after = connect(&proxy).await;
    let (mut met, _) = timeout(MOMENT * 10, other.accept()).await.unwrap().unwrap();
    met.write_all(b"other").await.unwrap();
    let mut got = [0; 5];
    after.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"other");
    assert_eq!(ask(&mut before, "stays").await.unwrap(), "stays");
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    ask(&mut stream, "before").await.unwrap();
    drop(proxy);
    assert!(stream.read_u8().await.is_err());
}

#[tokio::test]
async fn the_answer_to_a_commit_is_lost_after_the_commit() {
    let server = Postgres::start().await.unwrap();
    let direct = server.create_database("shop").await.unwrap();
    let proxy = FaultProxy::postgres(server.port()).await.unwrap();
    let through = proxy.through(&direct);
    assert_ne!(through, direct);
    psql(&through, "CREATE TABLE t (n INT)").await.unwrap();
    proxy.lose_commit_answers(1);
    // Not a COMMIT: its answer arrives.
    psql(&through, "BEGIN; INSERT INTO t VALUES (1); ROLLBACK").await.unwrap();
    let lost = psql(&through, "BEGIN; INSERT INTO t VALUES (2); COMMIT").await.unwrap_err().to_string();
    assert!(lost.contains("Connection reset by peer") || lost.contains("closed the connection"), "{lost}");
    assert_eq!(proxy.commit_answers_lost().await, 1);
    psql(&through, "BEGIN; INSERT INTO t VALUES (3); COMMIT").await.unwrap();
    proxy.lose_commit_answers(1);
    proxy.keep_commit_answers();
    psql(&through, "BEGIN; INSERT INTO t VALUES (4); COMMIT").await.unwrap();
    assert_eq!(proxy.commit_answers_lost().await, 1);
    assert_eq!(psql(&direct, "SELECT n FROM t ORDER BY n").await.unwrap(), "2\n3\n4");
}
