//! One connection through the proxy.

use std::io;
use std::ops::ControlFlow;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::commits::Answers;
use super::control::{Control, Ends, Way};

/// Bytes read at once, and chunks under way in each direction: what a delay or a hold can make wait is bounded.
const CHUNK_BYTES: usize = 16 * 1_024;
const CHUNKS_MAX: usize = 64;

/// A connection's way to its end: [`ControlFlow::Break`] is a cut.
type Passed = io::Result<ControlFlow<()>>;

struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Passes bytes both ways until both sides have ended, or until a cut, which resets both sides.
pub(super) async fn run(
    mut client: TcpStream,
    mut server: TcpStream,
    is_postgres: bool,
    control: &Control,
    ends: Ends,
) {
    let both = pass_both(&mut client, &mut server, is_postgres, control);
    let is_orderly = tokio::select! {
        passed = both => matches!(passed, Ok(ControlFlow::Continue(()))),
        () = ends.come() => false,
    };
    if !is_orderly {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

async fn pass_both(
    client: &mut TcpStream,
    server: &mut TcpStream,
    is_postgres: bool,
    control: &Control,
) -> Passed {
    let answers = if is_postgres {
        super::commits::begin(client, server).await?;
        Some(Answers::default())
    } else {
        None
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = pass_one(Way::ToServer, &mut from_client, &mut to_server, None, control);
    let back = pass_one(Way::ToClient, &mut from_server, &mut to_client, answers, control);
    tokio::pin!(there, back);
    // A cut of one way ends the other at once; an orderly end waits for the other.
    tokio::select! {
        passed = &mut there => if passed?.is_continue() { back.await } else { Ok(ControlFlow::Break(())) },
        passed = &mut back => if passed?.is_continue() { there.await } else { Ok(ControlFlow::Break(())) },
    }
}

/// One direction. Reading goes on while chunks wait for their time, so that a delay is no limit of speed.
async fn pass_one(
    way: Way,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut answers: Option<Answers>,
    control: &Control,
) -> Passed {
    let (sender, mut receiver) = mpsc::channel::<Chunk>(CHUNKS_MAX);
    let read = async {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let length = from.read(&mut buffer).await?;
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            let chunk = Chunk { due: Instant::now() + control.delay(way), bytes };
            // The empty chunk is the end.
            if sender.send(chunk).await.is_err() || length == 0 {
                return io::Result::Ok(());
            }
        }
    };
    let write = async {
        while let Some(chunk) = receiver.recv().await {
            tokio::time::sleep_until(chunk.due).await;
            control.passable(way).await;
            if chunk.bytes.is_empty() {
                to.shutdown().await?;
                break;
            }
            if deliver(way, &chunk.bytes, to, answers.as_mut(), control).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    tokio::pin!(read, write);
    // A failed writer must not wait for a reader that has nothing to read, nor the other way round.
    tokio::select! {
        passed = &mut write => passed,
        ended = &mut read => {
            ended?;
            write.await
        }
    }
}

async fn deliver(
    way: Way,
    bytes: &[u8],
    to: &mut (impl AsyncWrite + Unpin),
    answers: Option<&mut Answers>,
    control: &Control,
) -> Passed {
    let mut wanted = bytes.len();
    let mut is_cut = false;
    if let Some(lost_at) = answers.and_then(|answers| answers.scan(bytes, || control.commits.take())) {
        (wanted, is_cut) = (lost_at, true);
    }
    if let Some(last) = control.budget(way).cut_within(wanted) {
        (wanted, is_cut) = (last, true);
    }
    to.write_all(bytes.get(..wanted).unwrap_or(bytes)).await?;
    to.flush().await?;
    Ok(if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}
