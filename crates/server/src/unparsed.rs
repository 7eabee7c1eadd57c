//! Requests that are no HTTP, or whose head is too long. hyper refuses them by itself, without a body and
//! before any route: here they get the one form of a problem, too.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use holdfast_wire::{Code, PROBLEM_CONTENT_TYPE};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::edge::RequestId;
use crate::problem::Problem;

/// Longest head that hyper writes by itself. Its refusals have three short headers.
const BARE_BYTES_MAX: usize = 256;
/// How long what is left of a refused request is still read (and thrown away), so that a client that is
/// busy sending sees the answer rather than a reset connection.
const LINGER: Duration = Duration::from_secs(2);
/// How much of it is read.
const LINGER_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A connection on which hyper's own refusals become problems.
#[derive(Debug)]
pub(crate) struct Outspoken<S> {
    stream: S,
    /// What is left to write of the problem that stands for a bare refusal.
    problem: Bytes,
    linger: Option<Linger>,
    stall: Duration,
    /// When the connection is cut; none while the client takes what it is given.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// What is still read after a refusal.
#[derive(Debug)]
struct Linger {
    end: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl<S> Outspoken<S> {
    /// A connection that is cut when its client takes nothing for so long.
    pub(crate) fn new(stream: S, stall: Duration) -> Self {
        Self { stream, problem: Bytes::new(), linger: None, stall, stalled: None }
    }

    /// Ends a write that has made no progress for too long: an answer that nobody reads must not keep a
    /// connection and its memory for ever.
    fn unless_stalled<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + stall)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of its answer")))
    }
}

impl<S: AsyncWrite + Unpin> Outspoken<S> {
    /// Writes what is left of the problem; then the bare refusal of this length counts as written.
    fn poll_problem(&mut self, cx: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while !self.problem.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.problem))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.problem.advance(written);
        }
        let end = Box::pin(sleep_until(Instant::now() + LINGER));
        self.linger = Some(Linger { end, bytes_left: LINGER_BYTES_MAX });
        Poll::Ready(Ok(bare))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outspoken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Outspoken<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.problem.is_empty() {
            let Some(problem) = problem_for(bytes) else {
                let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
                return self.unless_stalled(cx, poll);
            };
            self.problem = problem;
        }
        let poll = self.poll_problem(cx, bytes.len());
        self.unless_stalled(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match parts {
            // A refusal is a head and nothing else.
            [head] => self.poll_write(cx, head),
            parts => {
                let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
                self.unless_stalled(cx, poll)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.unless_stalled(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        let Some(linger) = &mut this.linger else { return Poll::Ready(Ok(())) };
        let mut scratch = [0_u8; 8_192];
        while linger.bytes_left > 0 && linger.end.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            // Whatever goes wrong now only ends what is for politeness.
            let Ok(()) = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer)) else { break };
            match buffer.filled().len() {
                0 => break,
                count => linger.bytes_left = linger.bytes_left.saturating_sub(count),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The whole answer that stands for a refusal of hyper's own; none if this is none. All that comes from our
/// own edge names its request.
fn problem_for(bytes: &[u8]) -> Option<Bytes> {
    let head = bytes.strip_prefix(b"HTTP/1.1 4")?;
    if bytes.len() > BARE_BYTES_MAX || !head.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(head).ok()?;
    if head.contains("x-request-id") {
        return None;
    }
    let problem = match head.get(..2) {
        Some("14" | "31") => Problem::new(Code::TooLarge, "the head of the request is too long"),
        Some(_) | None => Problem::new(Code::InvalidValue, "the request is not valid HTTP/1.1"),
    };
    whole_answer(&problem)
}

/// A problem as an answer in bytes, where there is no request that could be answered by the router.
pub(crate) fn whole_answer(problem: &Problem) -> Option<Bytes> {
    let id = RequestId::new();
    let body = serde_json::to_string(&problem.to_wire(id.as_str())).ok()?;
    let (status, length) = (problem.status(), body.len());
    let reason = axum::http::StatusCode::from_u16(status).ok()?.canonical_reason().unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {PROBLEM_CONTENT_TYPE}\r\nx-request-id: {}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n",
        id.as_str()
    );
    Some(Bytes::from(head + &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_without_a_request_become_problems() {
        let head = |status: &str, more: &str| {
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}\r\n")
        };
        let shown = |status: &str| {
            let bytes = problem_for(head(status, "").as_bytes()).expect("a problem");
            String::from_utf8(bytes.to_vec()).expect("UTF-8")
        };
        assert!(shown("400 Bad Request").contains("\"invalid_value\""));
        for long in ["431 Request Header Fields Too Large", "414 URI Too Long"] {
            let shown = shown(long);
            assert!(shown.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{shown}");
            assert!(shown.contains("\"too_large\""), "{shown}");
        }
        for other in [
            head("404 Not Found", "x-request-id: a\r\n"),
            head("200 OK", ""),
            "HTTP/1.1 400 Bad Request\r\n".to_owned(),
            format!("{}x", head("400 Bad Request", "")),
            head("400 Bad Request", &format!("x: {}\r\n", "x".repeat(BARE_BYTES_MAX))),
            String::new(),
        ] {
            assert_eq!(problem_for(other.as_bytes()), None, "{other}");
        }
    }
}
