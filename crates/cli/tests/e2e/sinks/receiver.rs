//! A receiver of webhooks that does what a test tells it to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::support::wait_until;

/// What it does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    /// Takes it.
    Takes,
    /// Answers with this status.
    Says(u16),
    /// Takes everything but events of orders whose number begins so, to which it answers 500.
    Hates(&'static str),
    /// Never answers.
    Hangs,
    /// Takes it after a while.
    Slow(Duration),
    /// Sends whoever asks somewhere else.
    Redirects(String),
}

/// A request that came in.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) events: Vec<Value>,
    pub(crate) is_taken: bool,
}

struct State {
    mood: Mood,
    got: Vec<Got>,
}

/// The receiver.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    came: Arc<Notify>,
}

impl Receiver {
    pub(crate) async fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { mood, got: Vec::new() }));
        let receiver = Self { url, state, came: Arc::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        receiver
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn is_now(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// Every request so far.
    pub(crate) fn got(&self) -> Vec<Got> {
        self.state().got.clone()
    }

    /// Events that it took, in the order in which they came, repeats among them.
    pub(crate) fn taken(&self) -> Vec<Value> {
        self.got().into_iter().filter(|got| got.is_taken).flat_map(|got| got.events).collect()
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.state().got.len()
    }

    /// Waits for one more request than so many.
    pub(crate) async fn has_more_than(&self, requests: usize) {
        wait_until("a request", async || (self.requests() > requests).then_some(())).await;
    }

    /// Waits until it has taken so many different events.
    pub(crate) async fn has(&self, events: usize) -> Vec<Value> {
        wait_until(&format!("{events} events"), async || {
            let taken = self.taken();
            let ids: std::collections::BTreeSet<_> =
                taken.iter().map(|event| event["id"].to_string()).collect();
            (ids.len() >= events).then_some(taken)
        })
        .await
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut bytes = Vec::new();
        loop {
            let (headers, body) = read_request(&mut stream, &mut bytes).await?;
            let read: Value = serde_json::from_slice(&body).unwrap_or_default();
            let events = match read {
                Value::Array(events) => events,
                event => vec![event],
            };
            let mood = self.state().mood.clone();
            let hated = |prefix: &str| {
                events.iter().any(|e| e["data"]["order_no"].as_str().is_some_and(|no| no.starts_with(prefix)))
            };
            let (status, wait, location) = match &mood {
                Mood::Takes => (200, None, None),
                Mood::Says(status) => (*status, None, None),
                Mood::Hates(prefix) => (if hated(prefix) { 500 } else { 200 }, None, None),
                Mood::Hangs => (0, None, None),
                Mood::Slow(wait) => (200, Some(*wait), None),
                Mood::Redirects(to) => (302, None, Some(to.clone())),
            };
            self.state().got.push(Got { headers, body, events, is_taken: status == 200 });
            self.came.notify_waiters();
            if let Some(wait) = wait {
                let _ = tokio::time::timeout(wait, std::future::pending::<()>()).await;
            }
            if status == 0 {
                std::future::pending::<()>().await;
            }
            let location = location.map(|to| format!("location: {to}\r\n")).unwrap_or_default();
            let answer = format!("HTTP/1.1 {status} X\r\n{location}content-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.ok()?;
        }
    }
}

/// One request; none if the connection ended.
async fn read_request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> Option<(BTreeMap<String, String>, Vec<u8>)> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let header = |line: &str| {
                line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            };
            let headers: BTreeMap<_, _> = head.lines().skip(1).filter_map(header).collect();
            let length: usize = headers["content-length"].parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = bytes[end + 4..end + 4 + length].to_vec();
                bytes.drain(..end + 4 + length);
                return Some((headers, body));
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}
