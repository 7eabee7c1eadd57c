//! Following an order: its changes as they come, over as many connections as it takes.

use std::time::{Duration, Instant};

use holdfast_wire::OrderView;
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};

use crate::error::Error;
use crate::retry::pause;
use crate::sse::{Reader, Said};
use crate::transport::{Client, Failure};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The longest wait that the server grants at once.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a connection may say nothing. The server says something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// The order after a change.
#[derive(Debug, Clone)]
pub struct OrderEvent {
    /// The ledger position of the change; none if it moved no stock.
    pub position: Option<String>,
    /// The order.
    pub order: OrderView,
}

/// The changes of one order, from [`Client::order_events`].
///
/// A connection that breaks is made again, from where the last one stood; how often in a row is bounded by
/// the client's [`RetryPolicy`](crate::RetryPolicy).
#[derive(Debug)]
pub struct OrderEvents {
    client: Client,
    id: String,
    connection: Option<Connection>,
    position: Option<String>,
    /// Connections in a row that brought nothing.
    failures: u32,
    ended: bool,
}

#[derive(Debug)]
struct Connection {
    response: Response,
    reader: Reader,
}

impl Client {
    /// Follows an order: first as it stands, then each change, until it is sold, refunded, released or
    /// failed.
    pub fn order_events(&self, id: &str) -> OrderEvents {
        self.order_events_after(id, None)
    }

    /// The same, from a position that was seen before: what is not newer is not told again.
    pub fn order_events_after(&self, id: &str, position: Option<String>) -> OrderEvents {
        let (client, id) = (self.clone(), id.to_owned());
        OrderEvents { client, id, connection: None, position, failures: 0, ended: false }
    }

    /// Waits until an order is queued no more, at most until the deadline; the order as it then stands.
    pub async fn wait_for_order(&self, id: &str, deadline: Duration) -> Result<OrderView, Error> {
        let start = Instant::now();
        loop {
            let left = deadline.saturating_sub(start.elapsed()).min(WAIT_MAX);
            let order: OrderView = self.order_waiting(id, left.as_secs()).await?;
            if order.state != "queued" || left < Duration::from_secs(1) {
                return Ok(order);
            }
            // A server that stops answers before its time.
            pause(self.retry().wait(1, None)).await;
        }
    }

    /// Waits until an order is sold, refunded, released or failed, at most until the deadline; the order as
    /// it then stands.
    pub async fn wait_for_end(&self, id: &str, deadline: Duration) -> Result<OrderView, Error> {
        let mut latest = None;
        let mut events = self.order_events(id);
        let follow = async {
            while let Some(event) = events.next().await? {
                latest = Some(event.order);
            }
            Ok(())
        };
        if let Ok(followed) = tokio::time::timeout(deadline, follow).await {
            followed?;
        }
        match latest {
            Some(order) => Ok(order),
            None => self.order(id).await,
        }
    }
}

/// Whether nothing more is told after this state.
fn is_final(state: &str) -> bool {
    matches!(state, "sold" | "refunded" | "released" | "failed")
}

impl OrderEvents {
    /// The next change; none after the last. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> Result<Option<OrderEvent>, Error> {
        while !self.ended {
            let (error, after) = match self.attempt().await {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => continue,
                Err(Failure::Final(error)) => {
                    self.ended = true;
                    return Err(error);
                }
                Err(Failure::Again(error, after)) => (error, after),
            };
            self.connection = None;
            self.failures = self.failures.saturating_add(1);
            if self.failures >= self.client.retry().attempts_max {
                self.ended = true;
                return Err(error);
            }
            pause(self.client.retry().wait(self.failures, after)).await;
        }
        Ok(None)
    }

    /// Where the last event stood; with it another reader can go on.
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// One step: the next event of the connection, or none if only something else happened.
    async fn attempt(&mut self) -> Result<Option<OrderEvent>, Failure> {
        let Some(connection) = &mut self.connection else {
            self.connect().await?;
            return Ok(None);
        };
        let Some(said) = connection.next(&self.client).await? else {
            return Err(Failure::Again(Error::Unexpected("the events ended before the order".into()), None));
        };
        self.failures = 0;
        match said {
            Said::Event { name, id, data } if name == "order" => {
                let order: OrderView = serde_json::from_str(&data).map_err(|error| {
                    Failure::Final(Error::Unexpected(format!("an event that is no order: {error}")))
                })?;
                if is_final(&order.state) {
                    (self.ended, self.connection) = (true, None);
                }
                self.position = id.or_else(|| self.position.take());
                Ok(Some(OrderEvent { position: self.position.clone(), order }))
            }
            Said::Event { .. } | Said::Alive => Ok(None),
        }
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        let mut headers = vec![(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        if let Some(seen) = self.position.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.push((LAST_EVENT_ID, seen));
        }
        let response = self.client.open(&["orders", &self.id, "events"], &[], headers).await?;
        if response.status() == StatusCode::NO_CONTENT {
            // What was seen was the last.
            self.ended = true;
        } else {
            self.connection = Some(Connection { response, reader: Reader::default() });
        }
        Ok(())
    }
}

impl Connection {
    /// What comes next; none at the end of the connection.
    async fn next(&mut self, client: &Client) -> Result<Option<Said>, Failure> {
        loop {
            if let Some(said) = self.reader.next() {
                return Ok(Some(said));
            }
            let chunk = tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await;
            let silent = |_| Failure::Again(Error::Unexpected(format!("nothing for {SILENCE_MAX:?}")), None);
            let Some(chunk) = chunk.map_err(silent)?.map_err(|error| client.lost(error))? else {
                return Ok(None);
            };
            let too_long = |_| Failure::Final(Error::Unexpected("an event without an end".into()));
            self.reader.add(&chunk).map_err(too_long)?;
        }
    }
}
