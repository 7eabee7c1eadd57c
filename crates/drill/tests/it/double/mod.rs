//! The double: all of a sale in memory, behind one lock.

mod routes;
mod stock;
mod views;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_drill::{Deployment, Fault, InvariantVerdict, Kind};
use tokio::net::TcpListener;

pub(crate) use stock::Shop;

/// Between two looks of the double's own workers.
const WORK: Duration = Duration::from_millis(20);

/// A classic fault of shops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// `UPDATE … SET available = available - n` without a condition.
    UnconditionalDecrement,
    /// Stock is read, and taken a moment later whatever it is then.
    CheckThenAct,
    /// Whoever calls the shop's own back end tries again with a new number.
    RetryWithNewKey,
    /// A release that does not ask for the state.
    ReleaseAlways,
    /// What comes back to the authority does not come back to the cache.
    LostCredit,
    /// What is delivered twice lands twice.
    LandingTwice,
    /// A cache that was lost is filled with what there was at the beginning.
    StaleRebuild,
    /// The event goes out, and the commit fails.
    PublishBeforeCommit,
    /// A limit is read, and what counts towards it is written a moment later.
    LimitReadThenWritten,
    /// What was once sold out stays so.
    HintStays,
}

impl Bug {
    pub(crate) const ALL: [Self; 10] = [
        Self::UnconditionalDecrement,
        Self::CheckThenAct,
        Self::RetryWithNewKey,
        Self::ReleaseAlways,
        Self::LostCredit,
        Self::LandingTwice,
        Self::StaleRebuild,
        Self::PublishBeforeCommit,
        Self::LimitReadThenWritten,
        Self::HintStays,
    ];
}

/// The double, running.
#[derive(Clone)]
pub(crate) struct Double {
    address: String,
    kind: Kind,
    shop: Arc<Mutex<Shop>>,
}

impl Double {
    pub(crate) async fn start(kind: Kind, bug: Option<Bug>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let double = Self { address, kind, shop: Arc::new(Mutex::new(Shop::new(bug))) };
        tokio::spawn(routes::serve(listener, double.clone()));
        let worker = double.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(WORK).await;
                let mut shop = worker.shop();
                shop.land();
                shop.expire();
            }
        });
        double
    }

    fn shop(&self) -> MutexGuard<'_, Shop> {
        self.shop.lock().unwrap()
    }
}

#[async_trait]
impl Deployment for Double {
    fn kind(&self) -> Option<Kind> {
        Some(self.kind)
    }

    fn nodes(&self) -> Vec<String> {
        vec![self.address.clone()]
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn can(&self, fault: Fault) -> Result<(), String> {
        let can = matches!(fault, Fault::WipeCache | Fault::RepeatDeliveries);
        if can { Ok(()) } else { Err("a double cannot".to_owned()) }
    }

    async fn begin(&self, fault: Fault) -> anyhow::Result<()> {
        if fault == Fault::WipeCache {
            self.shop().rebuild();
        } else {
            self.shop().deliver_again();
        }
        Ok(())
    }

    async fn end(&self, _: Fault) -> anyhow::Result<()> {
        Ok(())
    }

    async fn verify(&self) -> anyhow::Result<Option<Vec<InvariantVerdict>>> {
        Ok(None)
    }
}
