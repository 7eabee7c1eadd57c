//! Bytes on a connection, for what no well-behaved client sends.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Answer, Http};

/// How long the server may take to close a connection that it must close.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);

/// A connection of one's own.
pub(crate) struct Raw {
    stream: TcpStream,
}

impl Raw {
    pub(crate) async fn open(http: &Http) -> Self {
        let address = http.base.strip_prefix("http://").unwrap();
        Self { stream: TcpStream::connect(address).await.unwrap() }
    }

    /// A connection that is set up in its own way.
    pub(crate) const fn of(stream: TcpStream) -> Self {
        Self { stream }
    }

    /// Sends bytes. The server may have closed, which only reading shows.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Says that nothing more comes.
    pub(crate) async fn end(&mut self) {
        // The server may have closed first.
        let _ = self.stream.shutdown().await;
    }

    /// Reads until the server closes, which it must in time. A reset is a close, too.
    pub(crate) async fn read_to_close(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = timeout(CLOSED_WITHIN, self.stream.read_to_end(&mut bytes)).await;
        // What was read before a reset counts, so the outcome does not matter.
        let _ = read.expect("the server closes in time");
        bytes
    }

    /// Reads until a text has come, and what came with it.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while !String::from_utf8_lossy(&bytes).contains(end) {
                let count = self.stream.read_buf(&mut bytes).await.unwrap();
                assert_ne!(count, 0, "closed without {end}: {}", String::from_utf8_lossy(&bytes));
            }
        };
        timeout(CLOSED_WITHIN, read).await.expect("an answer in time");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether anything comes, or the end, within this time.
    pub(crate) async fn hears_within(&mut self, time: Duration) -> bool {
        timeout(time, self.stream.readable()).await.is_ok()
    }

    /// Sends bytes, reads until the server closes; everything that it said.
    pub(crate) async fn exchange(http: &Http, bytes: &[u8]) -> String {
        let mut raw = Self::open(http).await;
        // It may have answered and closed before it had all.
        let _ = raw.send(bytes).await;
        String::from_utf8_lossy(&raw.read_to_close().await).into_owned()
    }

    /// One request with a path exactly as given: other clients would clean it.
    pub(crate) async fn ask(http: &Http, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        let content = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let length = body.len();
        let sent = format!(
            "{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{content}content-length: {length}\r\n\r\n{body}"
        );
        answer_of(&Self::exchange(http, sent.as_bytes()).await)
    }
}

/// The first answer in what a server said.
#[track_caller]
pub(crate) fn answer_of(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.parse::<reqwest::header::HeaderName>().unwrap(), value.parse().unwrap()));
    let headers = headers.collect();
    Answer { status, headers, body: serde_json::from_str(body).unwrap_or_default(), raw: body.into() }
}
