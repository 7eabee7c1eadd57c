//! A server's address that tells the truth of it, but for some orders, which it makes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One order of so many is made up.
const ONE_IN: u64 = 100;

/// The address.
pub(super) struct Liar {
    pub(super) address: String,
    placed: Arc<Placed>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Placed {
    orders: AtomicU64,
    lies: AtomicU64,
}

impl Liar {
    pub(super) async fn before(base: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (server, placed) = (base.strip_prefix("http://").unwrap().to_owned(), Arc::<Placed>::default());
        let all = Arc::clone(&placed);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, server.clone(), Arc::clone(&all)));
            }
        });
        Self { address, placed, accepting }
    }

    /// How often it lied.
    pub(super) fn lies(&self) -> u64 {
        self.placed.lies.load(Ordering::SeqCst)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Passes on message after message, both ways in turn.
async fn serve(mut client: TcpStream, server: String, placed: Arc<Placed>) -> Option<()> {
    let mut server = TcpStream::connect(server).await.ok()?;
    loop {
        let request = message(&mut client).await?;
        if request.starts_with(b"POST /v1/orders ") {
            let number = placed.orders.fetch_add(1, Ordering::SeqCst) + 1;
            if number.is_multiple_of(ONE_IN) {
                placed.lies.fetch_add(1, Ordering::SeqCst);
                client.write_all(&made_up(number)).await.ok()?;
                continue;
            }
        }
        server.write_all(&request).await.ok()?;
        let answer = message(&mut server).await?;
        client.write_all(&answer).await.ok()?;
    }
}

fn made_up(number: u64) -> Vec<u8> {
    let body = format!(r#"{{"id":"01900000-0000-7000-8000-{number:012x}","state":"held","version":1}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into()
}

/// Reads one message whole.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= head + 4 + length {
                return Some(bytes);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
