//! NATS `JetStream`: an event is taken when the stream has said so. Its id goes with it, so that the stream drops what it
//! has already within its window.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use holdfast_engine::{Delivered, Failure, OutEvent, Sink};
use tokio::sync::OnceCell;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a stream of ours remembers the ids that it has.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(600);
/// Longest beginning of a subject.
const SUBJECT_BYTES_MAX: usize = 200;

/// A NATS server, or a cluster of them. Connected when it is first used, and again by itself.
pub struct Nats {
    url: String,
    context: Arc<OnceCell<Context>>,
}

impl Nats {
    /// At this address, or several with commas between.
    pub fn new(url: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { url: url.to_owned(), context: Arc::default() }
    }

    /// The way to a subject: an event `held` is published as `SUBJECT.held`.
    pub fn open(&self, subject: &str, timeout: Duration) -> Arc<dyn Sink> {
        Arc::new(Subject {
            url: self.url.clone(),
            context: Arc::clone(&self.context),
            subject: subject.to_owned(),
            timeout,
            has_stream: Mutex::new(false),
        })
    }
}

/// Whether a text can begin a subject.
pub fn check_subject(text: &str) -> Result<(), String> {
    let is_token = |token: &str| {
        !token.is_empty() && token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if text.len() <= SUBJECT_BYTES_MAX && text.split('.').all(is_token) {
        return Ok(());
    }
    Err("must be a subject: words of letters, digits, - and _, with dots between".into())
}

struct Subject {
    url: String,
    context: Arc<OnceCell<Context>>,
    subject: String,
    timeout: Duration,
    has_stream: Mutex<bool>,
}

#[async_trait]
impl Sink for Subject {
    async fn deliver(&self, events: &[Arc<OutEvent>]) -> Delivered {
        match tokio::time::timeout(self.timeout, self.publish(events)).await {
            Ok(delivered) => delivered,
            Err(_) => Delivered::none(Failure::of_receiver("no answer in time")),
        }
    }
}

impl Subject {
    async fn context(&self) -> Result<&Context, String> {
        let connect = || async {
            let options = ConnectOptions::new().name("holdfast").connection_timeout(CONNECT);
            let client: Client = options.connect(&self.url).await.map_err(|error| error.to_string())?;
            Ok::<_, String>(jetstream::new(client))
        };
        self.context.get_or_try_init(connect).await
    }

    /// Makes the stream if nobody has: without one what is published is lost.
    async fn ensure_stream(&self, context: &Context) -> Result<(), String> {
        if *self.has_stream.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(());
        }
        let example = format!("{}.held", self.subject);
        match context.stream_by_subject(example).await {
            Ok(_) => {}
            Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
                let config = Config {
                    name: self.subject.replace('.', "_"),
                    subjects: vec![format!("{}.*", self.subject)],
                    duplicate_window: DUPLICATE_WINDOW,
                    ..Config::default()
                };
                context.create_stream(config).await.map_err(|error| error.to_string())?;
            }
            Err(error) => return Err(error.to_string()),
        }
        *self.has_stream.lock().unwrap_or_else(PoisonError::into_inner) = true;
        Ok(())
    }

    /// Sends all and then waits for the answers, in their order: what follows one that was not taken counts for nothing
    /// and is sent again.
    async fn publish(&self, events: &[Arc<OutEvent>]) -> Delivered {
        let context = match self.context().await {
            Ok(context) => context,
            Err(why) => return Delivered::none(Failure::of_receiver(why)),
        };
        if let Err(why) = self.ensure_stream(context).await {
            return Delivered::none(Failure::of_receiver(why));
        }
        let mut answers = Vec::with_capacity(events.len());
        let mut unsent = None;
        for event in events {
            let message = PublishMessage::build()
                .payload(event.body.clone().into())
                .message_id(&event.id)
                .header("Content-Type", "application/cloudevents+json");
            match context.send_publish(format!("{}.{}", self.subject, event.word), message).await {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    unsent = Some(error);
                    break;
                }
            }
        }
        let mut taken = 0_usize;
        for answer in answers {
            if let Err(error) = answer.await {
                return Delivered { taken, failure: Some(self.failure(&error)) };
            }
            taken = taken.saturating_add(1);
        }
        Delivered { taken, failure: unsent.map(|error| self.failure(&error)) }
    }

    fn failure(&self, error: &PublishError) -> Failure {
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => Failure::of_events(error.to_string()),
            PublishErrorKind::StreamNotFound => {
                // It was taken away: it is looked for again.
                *self.has_stream.lock().unwrap_or_else(PoisonError::into_inner) = false;
                Failure::of_receiver(error.to_string())
            }
            PublishErrorKind::WrongLastMessageId
            | PublishErrorKind::WrongLastSequence
            | PublishErrorKind::TimedOut
            | PublishErrorKind::BrokenPipe
            | PublishErrorKind::MaxAckPending
            | PublishErrorKind::Other => Failure::of_receiver(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_words_with_dots() {
        for good in ["orders", "shop.orders", "a-b.c_d.9"] {
            assert!(check_subject(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a.", "a..b", "a.*", "a.>", "a b", "ä", "$JS.API", &"a".repeat(201)] {
            assert!(check_subject(bad).is_err(), "{bad}");
        }
    }
}
