//! A receiver of webhooks that says yes to everything, as lean as may be: what is measured is the server.

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// It ends with this.
pub(super) struct Receiver {
    pub(super) url: String,
    serving: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Receiver {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Ok(Self { url, serving })
    }
}

/// Answers one connection until it ends.
async fn serve(mut stream: TcpStream) {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 * 1_024]);
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        while let Some(length) = request_length(&bytes) {
            bytes.drain(..length.min(bytes.len()));
            if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_err() {
                return;
            }
        }
    }
}

/// How long the first request is, if it is there whole.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(bytes.get(..head)?).ok()?;
    let body: usize = text.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let length = head.checked_add(4)?.checked_add(body)?;
    (bytes.len() >= length).then_some(length)
}
