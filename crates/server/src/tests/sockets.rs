//! What only a real connection shows: framing, timeouts, the number of connections, the drain.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::router_with;
use crate::{Auth, Limits, serve};

/// A server on a free port, until it is told to stop.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

fn start(limits: Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let router = router_with(Auth::Off, limits.clone());
    let task = tokio::spawn(async move { serve(listener, router, &limits, &Arc::default(), stopped).await });
    Running { address, stop, task }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream
}

/// Sends these bytes and reads until the server closes; the answers.
async fn exchange(address: SocketAddr, sent: impl Into<Vec<u8>>) -> String {
    let sent = sent.into();
    let read = spawn_blocking(move || {
        let mut stream = connect(address);
        stream.write_all(&sent).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("closed by the server");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    read.await.expect("an exchange")
}

fn count(answers: &str) -> usize {
    answers.matches("HTTP/1.1 ").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_lengths_ends_its_connection() {
    let server = start(Limits::default());
    let next = "GET /livez HTTP/1.1\r\nhost: h\r\n\r\n";
    for framing in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
    ] {
        let sent = format!(
            "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n{framing}\r\n2\r\n{{}}\r\n0\r\n\r\n{next}"
        );
        let answers = exchange(server.address, sent).await;
        assert!(answers.starts_with("HTTP/1.1 400 "), "{answers}");
        assert_eq!(count(&answers), 1, "nothing after it is answered: {answers}");
    }
    for framing in [
        "transfer-encoding: gzip\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: -1\r\n",
    ] {
        let sent = format!("POST /v1/orders HTTP/1.1\r\nhost: h\r\n{framing}\r\nhello{next}");
        let answers = exchange(server.address, sent).await;
        assert!(answers.starts_with("HTTP/1.1 400 ") && count(&answers) == 1, "{framing}: {answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_get_their_answer() {
    let server = start(Limits::default());
    let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
    let body = "x".repeat(300 * 1_024);
    let plain = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for sent in [plain, chunked] {
        let answers = exchange(server.address, sent).await;
        assert!(answers.starts_with("HTTP/1.1 413 "), "{answers}");
        assert!(answers.contains("\"too_large\""), "{answers}");
    }
    let huge = format!("{head}content-length: 999999999999\r\n\r\n");
    assert!(exchange(server.address, huge).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_are_ended() {
    let short = Duration::from_millis(100);
    let limits = Limits {
        header_read_timeout: short * 5,
        first_request_timeout: short * 5,
        body_read_timeout: short,
        ..Limits::default()
    };
    let server = start(limits);
    let head =
        "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answers = exchange(server.address, head).await;
    assert!(answers.starts_with("HTTP/1.1 408 ") && answers.contains("\"request_timeout\""), "{answers}");
    let half = exchange(server.address, "GET /livez HTT").await;
    assert!(!half.contains(" 200 "), "{half}");
    assert_eq!(exchange(server.address, "").await, "");
    let idle = exchange(server.address, "GET /livez HTTP/1.1\r\nhost: h\r\n\r\nGET").await;
    assert!(idle.starts_with("HTTP/1.1 200 "), "{idle}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_deadline_the_outcome_of_a_write_is_unknown() {
    let server = start(Limits { request_timeout: Duration::from_millis(100), ..Limits::default() });
    let head =
        "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answers = exchange(server.address, head).await;
    assert!(answers.starts_with("HTTP/1.1 503 ") && answers.contains("\"outcome_unknown\""), "{answers}");
    assert!(answers.contains("\"recorded\":null"), "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_and_drained() {
    let server = start(Limits { connections_max: 1, ..Limits::default() });
    let address = server.address;
    let ask = "GET /livez HTTP/1.1\r\nhost: h\r\n\r\n";
    let first = spawn_blocking(move || {
        let mut stream = connect(address);
        stream.write_all(ask.as_bytes()).expect("sent");
        let mut byte = [0_u8];
        stream.read_exact(&mut byte).expect("an answer");
        stream
    });
    let first = first.await.expect("a connection");
    let second = spawn_blocking(move || {
        let mut stream = connect(address);
        let mut bytes = Vec::new();
        let sent = stream.write_all(ask.as_bytes());
        let read = stream.read_to_end(&mut bytes);
        (sent.and(read.map(|_| ())).is_err() || bytes.is_empty(), bytes)
    });
    let (closed, bytes) = second.await.expect("a connection");
    assert!(closed, "one too many is closed: {bytes:?}");
    server.stop.send(()).expect("a server that runs");
    server.task.await.expect("a server").expect("served");
    drop(first);
}
