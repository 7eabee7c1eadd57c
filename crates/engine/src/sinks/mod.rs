//! Sinks: order events are read off the ledger and delivered, at least once and in the order of each bucket. One node
//! delivers to a sink at a time, each sink has a task of its own, and what is under way is in no table: a position
//! moves only after the receiver has said yes, so whatever breaks off is delivered again, with the same id and body.

mod contract;
mod courier;
mod course;
mod deliver;
mod outbox;
mod pull;
mod shown;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::command::How;
use holdfast_store::{ChangeSink, PutSink, SinkKind, SinkName, SinkRefusal, SinkRow, SinkState};

pub use contract::{Blame, Delivered, Failure, OutEvent, Sink, Sinks};
pub(crate) use outbox::Outbox;
pub use pull::{PullError, Pulled, PulledEvents};
pub(crate) use shown::Figures;

use crate::engine::Engine;
use crate::error::Error;
use courier::Courier;

/// How often the list of sinks is looked at: a change is followed on every node within this time.
const LOOK: Duration = Duration::from_secs(1);

/// What the node knows of its sinks.
#[derive(Default)]
pub(crate) struct Couriers {
    sinks: OnceLock<Arc<dyn Sinks>>,
    busy: Mutex<BTreeSet<SinkName>>,
    pub(crate) figures: Figures,
}

impl Couriers {
    fn busy(&self) -> MutexGuard<'_, BTreeSet<SinkName>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a test event came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkTest {
    /// Why the receiver did not take it; none: it did.
    pub failure: Option<Failure>,
    /// How long it took.
    pub took: Duration,
}

/// Makes a sink free again for the next courier, also when this one panics.
struct Busy {
    engine: Engine,
    name: SinkName,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.engine.shared.couriers.busy().remove(&self.name);
        self.engine.shared.outbox.close(&self.name);
        self.engine.shared.couriers.figures.rest(&self.name);
    }
}

impl Engine {
    /// Says how events are rendered and sent; before the workers start, and once.
    pub fn use_sinks(&self, sinks: Arc<dyn Sinks>) {
        if self.shared.couriers.sinks.set(sinks).is_err() {
            tracing::warn!("sinks are used already");
        }
    }

    pub(crate) fn sinks(&self) -> Option<&Arc<dyn Sinks>> {
        self.shared.couriers.sinks.get()
    }

    /// Makes a sink or changes its settings.
    pub async fn put_sink(&self, put: PutSink) -> Result<Result<(SinkRow, How), SinkRefusal>, Error> {
        self.check_running()?;
        let put = self.store().put_sink(put).await?;
        self.shared.outbox.wake();
        Ok(put)
    }

    /// Whether a sink may lead where it is told to; else why not.
    pub async fn check_sink(&self, kind: SinkKind, to: &str) -> Result<(), String> {
        match self.shared.couriers.sinks.get() {
            Some(sinks) => sinks.check(kind, to).await,
            None => Err("this node sends nothing".into()),
        }
    }

    /// Switches, replays or removes a sink, or changes its secrets.
    pub async fn change_sink(
        &self,
        change: ChangeSink,
    ) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error> {
        self.check_running()?;
        let changed = self.store().change_sink(change).await?;
        self.shared.outbox.wake();
        Ok(changed)
    }

    /// Sends a test event, from this node, and tells what the receiver said.
    pub async fn test_sink(&self, sink: &SinkRow) -> Result<SinkTest, Error> {
        self.check_running()?;
        let Some(sinks) = self.shared.couriers.sinks.get() else { return Err(Error::Overloaded) };
        let event = sinks.test_event(&sink.name, self.shared.ids.next(), self.store().now());
        let begun = Instant::now();
        let failure = match sinks.open(sink) {
            Ok(open) => open.deliver(&[Arc::new(event)]).await.failure,
            Err(why) => Some(Failure::of_receiver(why)),
        };
        Ok(SinkTest { failure, took: begun.elapsed() })
    }

    /// The worker: one courier a sink. It looks at the list of sinks now and then; nothing else is done where there is
    /// none.
    pub(crate) async fn run_sinks(&self) {
        while !self.is_draining() {
            match self.store().sinks().await {
                Ok(sinks) => {
                    self.shared.couriers.figures.saw(&sinks);
                    sinks.into_iter().for_each(|sink| self.begin_courier(sink));
                }
                Err(error) => tracing::warn!(%error, "the sinks could not be read"),
            }
            self.shared.outbox.looked_at_within(LOOK).await;
        }
    }

    /// Starts the courier of a sink, unless it is at work.
    fn begin_courier(&self, sink: SinkRow) {
        let is_pushed = sink.kind != SinkKind::Pull && sink.state == SinkState::Active;
        let Some(sinks) = self.shared.couriers.sinks.get().filter(|_| is_pushed) else { return };
        if !self.shared.couriers.busy().insert(sink.name.clone()) {
            return;
        }
        let (sinks, busy) = (Arc::clone(sinks), Busy { engine: self.clone(), name: sink.name.clone() });
        tokio::spawn(async move {
            let engine = busy.engine.clone();
            match sinks.open(&sink) {
                Ok(open) if engine.has_lease(sink.name.lease()).await => {
                    Courier::new(engine, sinks, open, sink).run().await;
                }
                Ok(_) => {}
                // Another node may have a way to it.
                Err(why) => tracing::debug!(sink = %sink.name, why, "this node has no way to a sink"),
            }
            drop(busy);
        });
    }

    /// Waits until no courier is at work, or for a while: what the receivers took is then written down.
    pub(crate) async fn couriers_rest(&self, most: Duration) {
        let resting = async {
            while !self.shared.couriers.busy().is_empty() {
                self.shared.outbox.looked_at_within(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(most, resting).await;
    }
}
