//! Long answers that are sent piece by piece: a task makes the pieces, the connection takes them. At most
//! one piece waits, so a slow reader costs memory for one and holds nothing else; one that takes none for
//! too long is given up.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::mpsc;

/// What comes next.
enum Piece {
    Bytes(Bytes),
    /// Nothing more, and nothing is missing.
    End,
}

/// Where a task puts the pieces.
pub(crate) struct Pieces {
    sender: mpsc::Sender<Piece>,
    stall_timeout: Duration,
}

/// The reader is gone, or has not taken a piece for too long.
#[derive(Debug)]
pub(crate) struct Gone;

impl Pieces {
    /// Sends one piece, once the reader has taken the one before.
    pub(crate) async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        self.put(Piece::Bytes(bytes.into())).await
    }

    async fn put(&self, piece: Piece) -> Result<(), Gone> {
        match tokio::time::timeout(self.stall_timeout, self.sender.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }

    /// Waits until the reader is gone.
    pub(crate) async fn gone(&self) {
        self.sender.closed().await;
    }
}

/// A body whose pieces a task makes. If the task gives up, the reader sees a broken answer, never one that
/// looks whole.
pub(crate) fn body<F, W>(stall_timeout: Duration, work: W) -> Body
where
    F: Future<Output = Result<(), Gone>> + Send,
    W: FnOnce(Pieces) -> F,
    W: Send + 'static,
    F: 'static,
{
    let (sender, mut receiver) = mpsc::channel(1);
    let end = sender.clone();
    let task = work(Pieces { sender, stall_timeout });
    tokio::spawn(async move {
        if task.await.is_ok() {
            // A reader that is gone needs no end.
            let _ = Pieces { sender: end, stall_timeout }.put(Piece::End).await;
        }
    });
    let mut has_ended = false;
    Body::from_stream(stream::poll_fn(move |cx| {
        if has_ended {
            return std::task::Poll::Ready(None);
        }
        receiver.poll_recv(cx).map(|piece| match piece {
            Some(Piece::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Piece::End) => {
                has_ended = true;
                None
            }
            None => {
                has_ended = true;
                Some(Err(io::Error::other("the answer broke off")))
            }
        })
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn an_answer_is_whole_or_broken() {
        let whole = body(LONG, |pieces| async move {
            pieces.send("a").await?;
            pieces.send("b").await
        });
        assert_eq!(to_bytes(whole, 10).await.expect("whole"), "ab");
        let broken = body(LONG, |pieces| async move {
            pieces.send("a").await?;
            Err(Gone)
        });
        assert!(to_bytes(broken, 10).await.is_err());
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let stalled = body(Duration::from_millis(10), |pieces| async move {
            pieces.send("a").await?;
            let second = pieces.send("b").await;
            tell.send(second.is_err()).expect("a listener");
            second
        });
        assert!(told.await.expect("an outcome"), "the second piece found no room");
        assert!(to_bytes(stalled, 10).await.is_err());
        let (tell, told) = tokio::sync::oneshot::channel();
        let left = body(LONG, |pieces| async move {
            pieces.gone().await;
            tell.send(()).expect("a listener");
            Err(Gone)
        });
        drop(left);
        told.await.expect("it is noticed");
    }
}
