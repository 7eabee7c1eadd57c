//! As much of PostgreSQL's protocol as it takes to lose the answer to a COMMIT.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Codes that a client may send before its start message, to ask for encryption.
const ASK_TLS: u32 = 80_877_103;
const ASK_GSS: u32 = 80_877_104;

/// `CommandComplete` with the tag of a COMMIT, as the server sends it: after the commit is as durable as it will be.
const COMMITTED: &[u8] = b"C\x00\x00\x00\x0bCOMMIT\x00";
/// Type and length of a message.
const HEAD_BYTES: usize = 5;

/// Leads a connection to where both sides speak in messages: asks for encryption are declined here.
pub(super) async fn begin(client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
    loop {
        let length = client.read_u32().await?;
        let code = client.read_u32().await?;
        if code == ASK_TLS || code == ASK_GSS {
            client.write_all(b"N").await?;
            continue;
        }
        server.write_u32(length).await?;
        return server.write_u32(code).await;
    }
}

/// The server's messages, followed through whatever chunks they come in.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The beginning of the message under way, as far as it is needed to know it.
    begun: Vec<u8>,
    /// Bytes of the message under way that are still to come, once its head is known.
    rest: Option<usize>,
}

impl Answers {
    /// How many bytes of the chunk may pass, if it completes the answer to a COMMIT that `is_lost`. The beginning of
    /// that answer may have passed with an earlier chunk: half an answer is none.
    pub(super) fn scan(&mut self, chunk: &[u8], mut is_lost: impl FnMut() -> bool) -> Option<usize> {
        let mut message_at = 0;
        for (at, byte) in chunk.iter().enumerate() {
            if self.begun.len() < COMMITTED.len() {
                self.begun.push(*byte);
            }
            let rest = match self.rest {
                Some(rest) => rest.saturating_sub(1),
                None => match self.begun.get(1..HEAD_BYTES) {
                    // The length counts itself, not the type.
                    Some([a, b, c, d]) => {
                        let length = u32::from_be_bytes([*a, *b, *c, *d]).saturating_sub(4);
                        usize::try_from(length).unwrap_or(usize::MAX)
                    }
                    _ => continue,
                },
            };
            self.rest = Some(rest);
            if rest == 0 {
                if self.begun == COMMITTED && is_lost() {
                    return Some(message_at);
                }
                self.begun.clear();
                self.rest = None;
                message_at = at + 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row, the answer to a COMMIT, and that the server is ready.
    const STREAM: &[u8] = b"D\x00\x00\x00\x07abcC\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I";

    #[test]
    fn the_answer_to_a_commit_is_found_in_any_chunks() {
        for size in 1..=STREAM.len() {
            let mut answers = Answers::default();
            let is_found = STREAM.chunks(size).any(|chunk| answers.scan(chunk, || true).is_some());
            assert!(is_found, "chunks of {size}");
        }
        assert_eq!(Answers::default().scan(STREAM, || true), Some(8), "what came before passes");
    }

    #[test]
    fn a_tag_that_stands_in_a_row_is_no_answer() {
        let mut stream = b"D\x00\x00\x00\x10".to_vec();
        stream.extend_from_slice(COMMITTED);
        stream.extend_from_slice(b"C\x00\x00\x00\x0dROLLBACK\x00");
        assert_eq!(Answers::default().scan(&stream, || true), None);
    }

    #[test]
    fn an_answer_that_is_not_to_be_lost_passes() {
        assert_eq!(Answers::default().scan(STREAM, || false), None);
    }
}
