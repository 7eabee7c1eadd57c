//! The server inside: the same engine, store and routes as `holdfast serve`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use holdfast_core::audit::Report;
use holdfast_engine::{Engine, UuidV7};
use holdfast_store::Store;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::database;

/// How long it may take to stop.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// A server in this process.
pub(super) struct Embedded {
    engine: Engine,
    store: Arc<dyn Store>,
    address: SocketAddr,
    database: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    /// Removed when the demo ends, if the database is in it.
    _directory: Option<TempDir>,
}

impl Embedded {
    /// Starts it, on a database of its own if none is named.
    pub(super) async fn start(listen: SocketAddr, database: Option<&str>) -> Result<Self> {
        let (database, directory) = match database {
            Some(named) => (named.to_owned(), None),
            None => {
                let directory = tempfile::Builder::new().prefix("holdfast-demo-").tempdir()?;
                (in_directory(directory.path()), Some(directory))
            }
        };
        let config = super::config(listen);
        config.check()?;
        let url = database::Url::parse(&database)?;
        let store = url.open(crate::serve::random_id()?).await?;
        let listener = crate::serve::listen(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let engine = Engine::new(Arc::clone(&store), Arc::new(UuidV7), holdfast_engine::Config::default());
        engine.start_workers();
        let router = holdfast_server::router(engine.clone(), &config);
        let (stop, stopped) = oneshot::channel::<()>();
        let metrics = Arc::clone(engine.metrics());
        let serving = tokio::spawn(async move {
            holdfast_server::serve(listener, router, &config.limits, &metrics, stopped).await
        });
        let database = url.to_string();
        Ok(Self { engine, store, address, database, stop, serving, _directory: directory })
    }

    /// Where it listens.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its database.
    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Checks the invariants from the rows alone.
    pub(super) async fn audit(&self) -> Result<Report> {
        self.store.audit().await.context("the database cannot be audited")
    }

    /// Stops it: what has begun is finished.
    pub(super) async fn stop(self) -> Result<()> {
        // Events end with the engine, so that connections can end.
        let drained = self.engine.drain(DRAIN_MAX).await;
        let _ = self.stop.send(());
        self.serving.await.context("the server was cut off")?.context("the server failed")?;
        drained.context("lanes did not finish in time")
    }
}

fn in_directory(directory: &Path) -> String {
    format!("sqlite:{}", directory.join("demo.db").display())
}
