//! Connections for reads that wait: on the connection of the calls, one that waits would hold up all.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connect::{Connector, Master};
use crate::fault::{self, Fault};
use crate::link::Live;

/// The readers of one link.
#[derive(Debug)]
pub(crate) struct Readers {
    /// At most as many as there are places.
    idle: Mutex<Vec<Master>>,
    places: Semaphore,
}

impl Readers {
    pub(crate) fn new(most: usize) -> Self {
        Self { idle: Mutex::default(), places: Semaphore::new(most) }
    }

    /// Reads from the server that a live connection leads to, for as long as the command waits and a deadline after
    /// it; nil if no reader is free for as long as it would wait. A reader that failed, or whose caller went away, is not used again:
    /// its answer would be somebody else's.
    pub(crate) async fn read(
        &self,
        connector: &Connector,
        live: &Live,
        command: &Cmd,
        wait: Duration,
        grace: Duration,
    ) -> Result<Value, Fault> {
        let Ok(Ok(_place)) = timeout(wait, self.places.acquire()).await else { return Ok(Value::Nil) };
        let mut reader = self.reader(connector, live).await?;
        let deadline = Instant::now() + wait + grace;
        let answer = timeout_at(deadline, command.query_async::<Value>(&mut reader.connection));
        let answer = match answer.await {
            Ok(answer) => answer.map_err(|error| fault::of_call(&error)),
            Err(_) => Err(Fault::Lost("no answer in time".into())),
        };
        if !answer.as_ref().is_err_and(Fault::ends_the_connection) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        }
        answer
    }

    async fn reader(&self, connector: &Connector, live: &Live) -> Result<Master, Fault> {
        let idle = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|reader| reader.identity == live.master.identity);
            idle.pop()
        };
        if let Some(reader) = idle {
            return Ok(reader);
        }
        let reader = connector.reader(&live.master.node).await.map_err(Fault::Unsent)?;
        if reader.identity == live.master.identity {
            return Ok(reader);
        }
        Err(Fault::unsent("another server answers at the same place"))
    }
}
