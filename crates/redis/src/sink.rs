//! Streams of order events: one entry an event, appended in their order. Nothing is trimmed: what a stream keeps is its
//! owner's to say. This room only asks for the append and believes the answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_engine::{Delivered, Failure, OutEvent, Sink};
use tokio::time::Instant;

use crate::cache::RedisCache;
use crate::keys::slot_of;

/// Longest name of a stream.
const NAME_BYTES_MAX: usize = 200;
/// How the keys of the cache path begin: no stream may lie among them.
const OWN_KEYS: &str = "{hf:";

impl RedisCache {
    /// The way to a stream of events.
    pub fn sink(self: &Arc<Self>, stream: &str, timeout: Duration) -> Arc<dyn Sink> {
        Arc::new(Stream { redis: Arc::clone(self), name: stream.to_owned(), timeout })
    }
}

/// Whether a stream of events may have this name.
pub fn check_stream(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("must have 1 to {NAME_BYTES_MAX} bytes and no control characters"));
    }
    if name.starts_with(OWN_KEYS) {
        return Err(format!("must not begin with {OWN_KEYS}: the cache path's own keys do"));
    }
    Ok(())
}

struct Stream {
    redis: Arc<RedisCache>,
    name: String,
    timeout: Duration,
}

#[async_trait]
impl Sink for Stream {
    async fn deliver(&self, events: &[Arc<OutEvent>]) -> Delivered {
        let deadline = Instant::now() + self.timeout;
        for (taken, event) in events.iter().enumerate() {
            let mut append = redis::cmd("XADD");
            append.arg(&self.name).arg("*").arg("id").arg(&event.id).arg("type").arg(&event.kind);
            append.arg("event").arg(event.body.as_slice());
            if let Err(fault) = self.redis.caller.send_to(slot_of(&self.name), &append, None, deadline).await
            {
                return Delivered { taken, failure: Some(Failure::of_receiver(fault.to_string())) };
            }
        }
        Delivered::all(events.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_lies_beside_the_cache_path() {
        for good in ["orders", "{shop}:orders", "hf:x"] {
            assert!(check_stream(good).is_ok(), "{good}");
        }
        for bad in ["", "{hf:1:0}:stream", "a\nb", &"x".repeat(201)] {
            assert!(check_stream(bad).is_err(), "{bad}");
        }
    }
}
