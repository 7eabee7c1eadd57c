//! Writes that are no batch: campaigns, switches, keys, cases. Each is one transaction that locks what it stands
//! on, in a task of its own, and runs again when another was in the way.

use std::sync::Arc;

use holdfast_store::Error;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Mode, Param};
use crate::error::{Fault, of_driver};
use crate::store::Inner;

/// How often such a write is tried.
const TRIES_MAX: u32 = 5;

/// A write.
pub(crate) trait Work: Send + Sync + 'static {
    /// What it gives back once it is committed.
    type Output: Send;

    /// Does it, inside a transaction.
    fn run(
        &self,
        connection: &Connection,
        inner: &Inner,
    ) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// Runs a write and commits it.
pub(crate) async fn transaction<W: Work>(inner: &Arc<Inner>, work: W) -> Result<W::Output, Error> {
    let threads = inner.threads.clone();
    let inner = Arc::clone(inner);
    let run = threads.spawn(async move {
        let mut tries = 0;
        loop {
            tries += 1;
            match attempt(&inner, &work).await {
                Ok(output) => return Ok(output),
                Err(Undone::Fault(Fault::Raced(conflict, why))) => {
                    inner.metrics.conflicts.of(conflict).inc();
                    if tries >= TRIES_MAX {
                        return Err(Error::Conflict(why));
                    }
                    inner.backoff(tries).await;
                }
                Err(Undone::Fault(Fault::Lost(error))) if tries < TRIES_MAX => {
                    tracing::debug!(%error, "a connection was lost before anything was written");
                }
                Err(Undone::Fault(fault)) => return Err(fault.into_error()),
                Err(Undone::Unknown(why)) => {
                    inner.metrics.commits_unknown.inc();
                    return Err(Error::OutcomeUnknown(why));
                }
            }
        }
    });
    run.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown("a write panicked".into())))
}

enum Undone {
    Fault(Fault),
    Unknown(String),
}

async fn attempt<W: Work>(inner: &Inner, work: &W) -> Result<W::Output, Undone> {
    let connection = inner.pools.writer().await.map_err(|error| Undone::Fault(Fault::Refused(error)))?;
    let begin = connection.begin(Mode::Write).await;
    begin.map_err(|error| Undone::Fault(of_driver(&error)))?;
    let output = match work.run(&connection, inner).await {
        Ok(output) => output,
        Err(fault) => {
            if !matches!(fault, Fault::Lost(_)) {
                connection.rollback().await;
            }
            return Err(Undone::Fault(fault));
        }
    };
    match connection.commit().await {
        Ok(()) if connection.has_warned() => {
            inner.pools.doubt();
            Err(Undone::Unknown("the server committed with a warning".into()))
        }
        Ok(()) => Ok(output),
        Err(error) => match of_driver(&error) {
            fault @ Fault::Raced(..) => Err(Undone::Fault(fault)),
            Fault::Lost(error) | Fault::Refused(error) => Err(Undone::Unknown(error.to_string())),
        },
    }
}

/// Runs a statement of such a write.
pub(crate) async fn rows(
    connection: &Connection,
    sql: &str,
    params: &[Param<'_>],
    types: &[Type],
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    connection.rows_typed(sql, params, types).await.map_err(|error| of_driver(&error))
}
