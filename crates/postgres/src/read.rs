//! Reads, each in a transaction that says its isolation, on a connection that has committed something of its own.

use std::time::{Duration, Instant};

use futures_util::future::join3;
use holdfast_metrics::Use;
use holdfast_store::Error;
use tokio_postgres::Row;

use crate::connection::{Connection, Mode};
use crate::error::{Fault, of_driver};
use crate::query::Query;
use crate::store::Inner;

/// How long a read may take, from when it asks for a connection.
const READ: Duration = Duration::from_secs(8);
/// How often a read is tried: the connection that it got may have died while it lay idle.
const READS_MAX: u32 = 3;

/// A read.
pub(crate) trait Read: Sync {
    /// What is read.
    type Output: Send;

    /// Begins a transaction, reads, and ends it.
    fn run(&self, connection: &Connection) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// One statement, in one flight.
impl Read for Query {
    type Output = Vec<Row>;

    async fn run(&self, connection: &Connection) -> Result<Vec<Row>, Fault> {
        let flight = join3(connection.begin(Mode::Read), self.ask(connection), connection.commit());
        let (began, found, ended) = flight.await;
        began.and(found).and_then(|found| ended.map(|()| found)).map_err(|error| of_driver(&error))
    }
}

/// Several statements that see the same rows.
pub(crate) trait View: Sync {
    /// What is seen.
    type Output: Send;

    /// Reads it, inside the transaction.
    fn see(&self, connection: &Connection) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

impl<V: View> Read for V {
    type Output = V::Output;

    async fn run(&self, connection: &Connection) -> Result<V::Output, Fault> {
        connection.begin(Mode::View).await.map_err(|error| of_driver(&error))?;
        let found = self.see(connection).await;
        connection.rollback().await;
        found
    }
}

impl Inner {
    /// Reads. A read that runs out of its time takes its connection with it.
    pub(crate) async fn read<R: Read>(&self, read: R) -> Result<R::Output, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match tokio::time::timeout(READ, self.read_once(&read)).await {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(Fault::Lost(_) | Fault::Raced(..))) if tries < READS_MAX => {}
                Ok(Err(fault)) => return Err(fault.into_error()),
                Err(_) => return Err(Error::Timeout),
            }
        }
    }

    async fn read_once<R: Read>(&self, read: &R) -> Result<R::Output, Fault> {
        let waiting = self.metrics.connections_waiting.of(Use::Read).hold();
        let connection = self.pools.reader().await.map_err(Fault::Refused)?;
        drop(waiting);
        let _executing = self.metrics.connections_executing.of(Use::Read).hold();
        let begun = Instant::now();
        let found = read.run(&connection).await;
        self.metrics.read.observe(begun.elapsed());
        found
    }
}
