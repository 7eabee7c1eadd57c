//! Sinks, and the events that a consumer comes for.

use holdfast_wire::{
    AckRequest, AckView, AddSecretRequest, ChangeSinkRequest, CreatedSinkView, DeadLetterView, EventsView,
    Page, PutSinkRequest, ReplaySinkRequest, SinkTestView, SinkView, SinksView,
};
use reqwest::Method;

use crate::error::Error;
use crate::query::PageQuery;
use crate::transport::Client;

impl Client {
    /// Every sink.
    pub async fn sinks(&self) -> Result<SinksView, Error> {
        self.get(&["sinks"], &[]).await
    }

    /// One sink.
    pub async fn sink(&self, name: &str) -> Result<SinkView, Error> {
        self.get(&["sinks", name], &[]).await
    }

    /// Makes a sink or changes its settings. A secret that the server makes is in the first answer only.
    pub async fn put_sink(&self, name: &str, request: &PutSinkRequest) -> Result<CreatedSinkView, Error> {
        Ok(self.write(Method::PUT, &["sinks", name], request).await?.value)
    }

    /// Forgets a sink.
    pub async fn delete_sink(&self, name: &str, request: &ChangeSinkRequest) -> Result<SinkView, Error> {
        Ok(self.once().write(Method::DELETE, &["sinks", name], request).await?.value)
    }

    /// Delivers nothing until it is resumed.
    pub async fn pause_sink(&self, name: &str, request: &ChangeSinkRequest) -> Result<SinkView, Error> {
        Ok(self.write(Method::POST, &["sinks", name, "pause"], request).await?.value)
    }

    /// Delivers again.
    pub async fn resume_sink(&self, name: &str, request: &ChangeSinkRequest) -> Result<SinkView, Error> {
        Ok(self.write(Method::POST, &["sinks", name, "resume"], request).await?.value)
    }

    /// Delivers again from a time on, or what is parked.
    pub async fn replay_sink(&self, name: &str, request: &ReplaySinkRequest) -> Result<SinkView, Error> {
        Ok(self.once().write(Method::POST, &["sinks", name, "replay"], request).await?.value)
    }

    /// Sends a test event.
    pub async fn test_sink(&self, name: &str) -> Result<SinkTestView, Error> {
        let request = ChangeSinkRequest::default();
        Ok(self.once().write(Method::POST, &["sinks", name, "test"], &request).await?.value)
    }

    /// Signs with one more secret. Never repeated: each would add another.
    pub async fn add_sink_secret(
        &self,
        name: &str,
        request: &AddSecretRequest,
    ) -> Result<CreatedSinkView, Error> {
        Ok(self.once().write(Method::POST, &["sinks", name, "secrets"], request).await?.value)
    }

    /// Signs with a secret no more.
    pub async fn drop_sink_secret(&self, name: &str, id: &str) -> Result<SinkView, Error> {
        let request = ChangeSinkRequest::default();
        Ok(self.once().write(Method::DELETE, &["sinks", name, "secrets", id], &request).await?.value)
    }

    /// A page of events that a sink did not take while it took others; perhaps only those that stand so.
    pub async fn dead_letters(
        &self,
        name: &str,
        state: Option<&str>,
        page: &PageQuery,
    ) -> Result<Page<DeadLetterView>, Error> {
        self.page(&["sinks", name, "dead-letters"], vec![("state", state)], page).await
    }

    /// All of them, page by page.
    pub async fn every_dead_letter(
        &self,
        name: &str,
        state: Option<&str>,
    ) -> Result<Vec<DeadLetterView>, Error> {
        self.every_page(&["sinks", name, "dead-letters"], vec![("state", state)]).await
    }

    /// The next events of a consumer: the same until they are acknowledged.
    pub async fn pull_events(&self, consumer: &str, limit: u32) -> Result<EventsView, Error> {
        let limit = limit.to_string();
        self.get(&["events"], &[("consumer", Some(consumer)), ("limit", Some(&limit))]).await
    }

    /// Events of one pool, after a position that the caller keeps; absent: from the beginning.
    pub async fn pool_events(
        &self,
        pool_id: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<EventsView, Error> {
        let limit = limit.to_string();
        let parameters = [("pool_id", Some(pool_id)), ("after", after), ("limit", Some(limit.as_str()))];
        self.get(&["events"], &parameters).await
    }

    /// The consumer has everything up to a position.
    pub async fn acknowledge_events(&self, request: &AckRequest) -> Result<AckView, Error> {
        Ok(self.write(Method::POST, &["events", "ack"], request).await?.value)
    }
}
