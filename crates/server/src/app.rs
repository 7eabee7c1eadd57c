//! What every handler shares, and how a write is run.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use holdfast_core::id::Provider;
use holdfast_engine::Engine;
use holdfast_metrics::{Label, Metrics, Overload};
use holdfast_store::Store;
use holdfast_wire::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{Auth, Config, Limits, Secret};
use crate::endure::Enduring;
use crate::keyring::{Failures, Keyring, Known};
use crate::metrics::{self, HttpMetrics, Permits};
use crate::problem::Problem;

/// Shared state; a cheap handle.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    engine: Engine,
    auth: Auth,
    payment_secrets: BTreeMap<String, Vec<Secret>>,
    limits: Limits,
    writes: Arc<Semaphore>,
    events: Arc<Semaphore>,
    unverified: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    imports: Arc<Semaphore>,
    keyring: Keyring,
    failures: Failures,
    http: Arc<HttpMetrics>,
    metrics: Metrics,
}

impl App {
    pub(crate) fn new(engine: Engine, config: &Config) -> Self {
        let limits = config.limits.clone();
        let writes = Arc::new(Semaphore::new(limits.writes_in_flight_max));
        let events = Arc::new(Semaphore::new(limits.events_max));
        let unverified = Arc::new(Semaphore::new(limits.unverified_bodies_max));
        let exports = Arc::new(Semaphore::new(limits.exports_max));
        let imports = Arc::new(Semaphore::new(limits.imports_max));
        let permits = Permits(vec![
            (Overload::Writes.text(), Arc::clone(&writes), limits.writes_in_flight_max),
            (Overload::Events.text(), Arc::clone(&events), limits.events_max),
            (Overload::Notices.text(), Arc::clone(&unverified), limits.unverified_bodies_max),
            (Overload::Exports.text(), Arc::clone(&exports), limits.exports_max),
            (Overload::Imports.text(), Arc::clone(&imports), limits.imports_max),
        ]);
        let http = Arc::new(HttpMetrics::new());
        let metrics = metrics::of_node(&engine, &http, permits);
        Self(Arc::new(Shared {
            engine,
            auth: config.auth.clone(),
            payment_secrets: config.payment_secrets.clone(),
            limits,
            writes,
            events,
            unverified,
            exports,
            imports,
            keyring: Keyring::default(),
            failures: Failures::default(),
            http,
            metrics,
        }))
    }

    /// Everything that the node shows.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Counts requests.
    pub(crate) fn http(&self) -> &HttpMetrics {
        &self.0.http
    }

    /// A bound turned somebody away.
    fn overloaded(&self, overload: Overload) {
        self.0.engine.metrics().overloads.of(overload).inc();
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Reads; they never change anything.
    pub(crate) fn store(&self) -> &dyn Store {
        self.0.engine.store()
    }

    pub(crate) fn auth(&self) -> &Auth {
        &self.0.auth
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The live key with this text, if it is one.
    pub(crate) async fn known_key(&self, key: &[u8]) -> Result<Option<Arc<Known>>, Problem> {
        let known = self.0.keyring.find(self.store(), key).await?;
        if self.0.keyring.is_stale() {
            let app = self.clone();
            tokio::spawn(async move { app.0.keyring.freshen(app.store()).await });
        }
        Ok(known)
    }

    /// A key was made or revoked by this node: from now on that holds.
    pub(crate) fn keys_changed(&self) {
        self.0.keyring.forget();
    }

    /// Counts failed authentications for the log.
    pub(crate) fn failures(&self) -> &Failures {
        &self.0.failures
    }

    /// The secrets of a provider; empty if its notices are not signed.
    pub(crate) fn secrets_of(&self, provider: &Provider) -> &[Secret] {
        self.0.payment_secrets.get(provider.as_str()).map_or(&[], Vec::as_slice)
    }

    /// Leave to do one more write; none if there are as many as there may be.
    pub(crate) fn admit(&self) -> Result<WritePermit, Problem> {
        let permit = Arc::clone(&self.0.writes).try_acquire_owned();
        permit.map(WritePermit).map_err(|_| {
            self.overloaded(Overload::Writes);
            Problem::overloaded()
        })
    }

    /// Leave to read the body of somebody who is not known yet. Strangers have room of their own: they can take
    /// neither the memory nor the permits of those who are.
    pub(crate) fn admit_unverified(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.0.unverified).try_acquire_owned();
        permit.map_err(|_| {
            self.overloaded(Overload::Notices);
            Problem::overloaded()
        })
    }

    /// Leave to read one order's events for a while.
    pub(crate) fn admit_events(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.0.events).try_acquire_owned();
        permit.map_err(|_| {
            self.overloaded(Overload::Events);
            Problem::new(Code::Overloaded, "too many follow orders at the moment")
        })
    }

    /// Leave to do one export.
    pub(crate) fn admit_export(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.0.exports).try_acquire_owned();
        permit.map_err(|_| {
            self.overloaded(Overload::Exports);
            Problem::new(Code::Overloaded, "too many exports are under way")
        })
    }

    /// Leave to do one import: the file and its rows are in memory.
    pub(crate) fn admit_import(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.0.imports).try_acquire_owned();
        permit.map_err(|_| {
            self.overloaded(Overload::Imports);
            Problem::new(Code::Overloaded, "too many imports are under way")
        })
    }

    /// Runs a write to its end, also if the client goes away: a dropped connection must not cancel work
    /// that has begun, and its permit counts until the work is done.
    pub(crate) async fn write<T, F, W>(&self, permit: WritePermit, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
        W: FnOnce(Engine) -> F,
    {
        let work = work(self.0.engine.clone());
        Enduring::new(async move {
            let done = work.await;
            drop(permit);
            done
        })
        .await
    }
}

/// Leave to do one write.
#[derive(Debug)]
pub(crate) struct WritePermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);
