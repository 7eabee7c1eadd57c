//! The node's connections: one pool for writing, one for reading, so that neither starves the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult, TimeoutType, Timeouts as Waits,
};
use futures_util::future::join_all;
use holdfast_store::Error;
use tokio::runtime::Handle;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{Address, Statements};
use crate::connection::{Connection, Timeouts};
use crate::tls;

/// How long somebody waits for a free connection.
const WAIT: Duration = Duration::from_secs(3);
/// How long a connection may take until it can be used: it waits for a commit of its own.
const CREATE: Duration = Duration::from_secs(8);

/// A connection that goes back to its pool.
pub(crate) type Lent = Object<Connector>;

/// Makes connections that may be trusted.
pub(crate) struct Connector {
    address: Address,
    tls: MakeRustlsConnect,
    timeouts: Timeouts,
    doubts: Arc<AtomicU64>,
    threads: Handle,
}

impl Connector {
    async fn connect(
        address: &Address,
        tls: MakeRustlsConnect,
        timeouts: Timeouts,
    ) -> Result<Connection, Error> {
        let mut connection = Connection::open(address, tls, timeouts).await?;
        connection.assure().await?;
        if address.statements == Statements::Named {
            connection.prepare().await?;
        }
        Ok(connection)
    }
}

impl Manager for Connector {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let generation = self.doubts.load(Ordering::SeqCst);
        let (address, tls, timeouts) = (self.address.clone(), self.tls.clone(), self.timeouts);
        // Who makes a connection may be anybody; what drives it is the store's own.
        let connect = async move { Self::connect(&address, tls, timeouts).await };
        let connected = self.threads.spawn(tokio::time::timeout(CREATE, connect)).await;
        let connected = connected.map_err(|error| Error::Unavailable(error.to_string()))?;
        let mut connection = connected.map_err(|_| Error::Timeout)??;
        connection.generation = generation;
        Ok(connection)
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        if connection.is_spent() || connection.generation != self.doubts.load(Ordering::SeqCst) {
            return Err(RecycleError::message("spent"));
        }
        Ok(())
    }
}

/// The node's connections.
pub(crate) struct Pools {
    writers: Pool<Connector>,
    readers: Pool<Connector>,
    doubts: Arc<AtomicU64>,
    /// Why the last connection that was asked for could not be had.
    outage: Mutex<Option<Error>>,
}

impl Pools {
    pub(crate) fn new(address: &Address, timeouts: Timeouts, threads: &Handle) -> Result<Self, Error> {
        let tls = tls::connector(&address.trust)?;
        let doubts = Arc::new(AtomicU64::new(0));
        let pool = |size: usize| {
            let connector = Connector {
                address: address.clone(),
                tls: tls.clone(),
                timeouts,
                doubts: Arc::clone(&doubts),
                threads: threads.clone(),
            };
            let waits = Waits { wait: Some(WAIT), create: Some(CREATE), recycle: None };
            Pool::builder(connector).max_size(size).timeouts(waits).runtime(Runtime::Tokio1).build()
        };
        let built = |pool: Result<_, deadpool::managed::BuildError>| {
            pool.map_err(|error| Error::Unavailable(error.to_string()))
        };
        // Reads are short, writes wait for the disk.
        let readers = (address.connections / 3).max(1);
        let writers = address.connections.saturating_sub(readers).max(1);
        let (writers, readers) = (built(pool(writers))?, built(pool(readers))?);
        Ok(Self { writers, readers, doubts, outage: Mutex::default() })
    }

    /// A connection for writing.
    pub(crate) async fn writer(&self) -> Result<Lent, Error> {
        self.lend(&self.writers).await
    }

    /// A connection for reading.
    pub(crate) async fn reader(&self) -> Result<Lent, Error> {
        self.lend(&self.readers).await
    }

    /// Opens every connection that there may be; how many are open then.
    pub(crate) async fn warm(&self) -> Result<usize, Error> {
        for pool in [&self.writers, &self.readers] {
            let status = pool.status();
            // Those that nobody uses are held meanwhile, or they would be lent again in place of new ones.
            let in_use = status.size.saturating_sub(status.available);
            let idle = status.max_size.saturating_sub(in_use);
            let lent = join_all((0..idle).map(|_| self.lend(pool))).await;
            lent.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        Ok(self.writers.status().size.saturating_add(self.readers.status().size))
    }

    /// No connection is trusted any more until it has committed a write of its own.
    pub(crate) fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::SeqCst);
    }

    /// Why nothing can be asked now.
    pub(crate) fn outage(&self) -> Option<Error> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn lend(&self, pool: &Pool<Connector>) -> Result<Lent, Error> {
        let lent = pool.get().await;
        let outage = match &lent {
            Ok(_) => None,
            Err(PoolError::Backend(error)) => Some(error.clone()),
            Err(PoolError::Timeout(TimeoutType::Create)) => Some(Error::Timeout),
            // Many want one: that is load, and no outage.
            Err(_) => self.outage(),
        };
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = outage;
        lent.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => Error::Unavailable("no connection is free".into()),
            PoolError::Closed => Error::Unavailable("the store is closed".into()),
            PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Error::Unavailable("the pool of connections does not work".into())
            }
        })
    }

    pub(crate) fn close(&self) {
        self.writers.close();
        self.readers.close();
    }
}
