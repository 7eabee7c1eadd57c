//! Calls of the masters: each is sent once, to the one that keeps the keys.

use redis::{Cmd, Value};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::keys::Keys;
use crate::scripts::{Call, Scripts};
use crate::shards::Masters;

/// The masters, and the scripts that they are called with.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) masters: Masters,
    pub(crate) scripts: Scripts,
}

impl Caller {
    pub(crate) fn new(masters: Masters) -> Self {
        Self { masters, scripts: Scripts::new() }
    }

    /// Sends a command once to the master that keeps the keys. Only one that says that it does not, and so did
    /// nothing, is followed by another.
    pub(crate) async fn send(
        &self,
        keys: &Keys,
        command: &Cmd,
        on: Option<&str>,
        deadline: Instant,
    ) -> Result<Value, Fault> {
        self.send_to(keys.slot(), command, on, deadline).await
    }

    /// The same, by the slot.
    pub(crate) async fn send_to(
        &self,
        slot: u16,
        command: &Cmd,
        on: Option<&str>,
        deadline: Instant,
    ) -> Result<Value, Fault> {
        let link = self.masters.of_slot(slot, deadline).await?;
        match link.call(command, on, deadline).await {
            Err(Fault::Moved(_)) if self.masters.look_again(deadline).await => {
                let link = self.masters.of_slot(slot, deadline).await?;
                link.call(command, on, deadline).await
            }
            Err(fault @ Fault::Unsent(_)) => {
                // In a Cluster another master may have taken over.
                self.masters.look_again(Instant::now()).await;
                Err(fault)
            }
            answer => answer,
        }
    }

    /// Runs a script, with its text if the server does not have it: then it has not run.
    pub(crate) async fn run(
        &self,
        keys: &Keys,
        call: Call<'_>,
        on: Option<&str>,
        deadline: Instant,
    ) -> Result<Value, Fault> {
        match self.send(keys, &call.by_hash(), on, deadline).await {
            Err(Fault::NoScript) => self.send(keys, &call.with_text(), on, deadline).await,
            answer => answer,
        }
    }
}
