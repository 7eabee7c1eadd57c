//! One batch, one transaction, two flights.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join;
use holdfast_core::decide::decide;
use holdfast_core::snapshot::LockSet;
use holdfast_metrics::Use;
use holdfast_store::{Act, Balance, Batch, Committed, Error};

use crate::apply::Writes;
use crate::connection::Connection;
use crate::error::{Fault, of_driver};
use crate::load;
use crate::store::Inner;
use crate::unknown::{self, Evidence};

/// How often a batch begins anew because its connection was gone before anything was committed: a connection that
/// lay idle while the server restarted is noticed when it is used.
const BEGINS_MAX: u32 = 3;

/// Why a batch was not committed here.
enum Undone {
    /// Nothing was written.
    Fault(Fault),
    /// The COMMIT may have been carried out or not.
    Unknown(Box<Unknown>),
}

struct Unknown {
    committed: Committed,
    evidence: Evidence,
    why: String,
}

/// Commits a batch in a task of its own: who stops waiting does not stop it.
pub(crate) async fn commit(inner: &Arc<Inner>, batch: Batch) -> Result<Committed, Error> {
    inner.metrics.batch_commands.observe_count(batch.commands.len());
    let task = Arc::clone(inner);
    let run = inner.threads.spawn(async move { run(&task, &batch).await });
    run.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown("a batch panicked".into())))
}

async fn run(inner: &Inner, batch: &Batch) -> Result<Committed, Error> {
    // Without a lock nothing waits for the end of a transaction whose answer was lost: what is absent may still
    // come. Trying again is safe, because the keys' uniqueness waits for it; saying that nothing was done is not.
    let is_unlocked = batch.locks == LockSet::default();
    let mut in_doubt = None;
    run_until_known(inner, batch, &mut in_doubt).await.map_err(|error| match in_doubt {
        Some(why) if is_unlocked => Error::OutcomeUnknown(why),
        Some(_) | None => error,
    })
}

async fn run_until_known(
    inner: &Inner,
    batch: &Batch,
    in_doubt: &mut Option<String>,
) -> Result<Committed, Error> {
    let mut begins = 0;
    loop {
        begins += 1;
        match attempt(inner, batch).await {
            Ok(committed) => return Ok(committed),
            Err(Undone::Fault(Fault::Raced(conflict, why))) => {
                // Who sent the batch sends it again, after a while that grows.
                inner.metrics.conflicts.of(conflict).inc();
                return Err(Error::Conflict(why));
            }
            Err(Undone::Fault(Fault::Lost(_))) if begins < BEGINS_MAX => {}
            Err(Undone::Fault(fault)) => return Err(fault.into_error()),
            Err(Undone::Unknown(lost)) => {
                let Unknown { committed, evidence, why } = *lost;
                tracing::warn!(why, "the outcome of a commit is unknown; it is looked up");
                if unknown::was_committed(inner, &batch.locks, &evidence, &why).await? {
                    return Ok(committed);
                }
                // Under locks it is now a fact that nothing was written, so it may be tried again.
                *in_doubt = Some(why.clone());
                if begins >= BEGINS_MAX {
                    return Err(Error::Unavailable(why));
                }
            }
        }
    }
}

async fn attempt(inner: &Inner, batch: &Batch) -> Result<Committed, Undone> {
    inner.failpoints.hit("commit.before_begin");
    let metrics = &inner.metrics;
    let begun = Instant::now();
    let waiting = [&metrics.transactions_waiting, metrics.connections_waiting.of(Use::Write)]
        .map(holdfast_metrics::Gauge::hold);
    let connection = inner.pools.writer().await.map_err(|error| Undone::Fault(Fault::Refused(error)))?;
    let [locking, lending] = waiting;
    drop(lending);
    let executing = metrics.connections_executing.of(Use::Write).hold();
    let loaded = load::load(&connection, batch, &inner.hints).await;
    drop(locking);
    metrics.lock_wait.observe(begun.elapsed());
    let locked_at = Instant::now();
    let result = match loaded {
        Ok(loaded) => write(inner, &connection, batch, loaded).await,
        Err(fault) => Err(Undone::Fault(undo(&connection, fault).await)),
    };
    metrics.transaction_batches.observe_count(1);
    metrics.lock_hold.observe(locked_at.elapsed());
    drop(executing);
    result
}

/// Ends a transaction of which a statement has failed.
async fn undo(connection: &Connection, fault: Fault) -> Fault {
    if !matches!(fault, Fault::Lost(_)) {
        connection.rollback().await;
    }
    fault
}

/// Decides, writes and commits.
async fn write(
    inner: &Inner,
    connection: &Connection,
    batch: &Batch,
    loaded: load::Loaded,
) -> Result<Committed, Undone> {
    let load::Loaded { snapshot, clock, counted } = loaded;
    let locked: Vec<_> = snapshot.buckets.values().copied().collect();
    let now = inner.clock.at(clock);
    let decision = decide(now, snapshot, batch.commands.iter());
    let acted = batch.commands.iter().zip(&decision.outcomes);
    let acts: Vec<Act> = acted.filter_map(|(command, outcome)| Act::of_command(command, outcome)).collect();
    let mut balances: BTreeMap<_, _> = locked.into_iter().map(|bucket| (bucket.key, bucket)).collect();
    balances.extend(decision.changes.buckets.iter().map(|change| (change.bucket.key, change.bucket)));
    let balances = balances.values().map(Balance::from).collect();
    let committed = Committed { outcomes: decision.outcomes, balances };
    let writes = Writes::new(&decision.changes, &counted, &acts, now);
    let flight = match writes.flight() {
        Ok(flight) if flight.is_empty() => {
            // Only looked: what was seen is safe, for this connection has committed since it was made.
            let _ = connection.commit().await;
            return Ok(committed);
        }
        Ok(flight) => flight,
        Err(error) => return Err(Undone::Fault(undo(connection, Fault::Refused(error)).await)),
    };
    inner.failpoints.hit("commit.before_commit");
    let commit_at = Instant::now();
    let sent = match flight.send(connection, None).await {
        Ok(sent) => sent,
        Err(fault) => return Err(Undone::Fault(undo(connection, fault).await)),
    };
    let (written, ended) = join(sent.answers(), connection.commit()).await;
    inner.metrics.commit.observe(commit_at.elapsed());
    let unknown = |why: String| {
        inner.metrics.commits_unknown.inc();
        let evidence = Evidence::of(&decision.changes);
        Undone::Unknown(Box::new(Unknown { committed: committed.clone(), evidence, why }))
    };
    match (written, ended) {
        (Ok(_), Ok(())) if connection.has_warned() => {
            // A wait for the standbys was cancelled: it is on this disk and perhaps on no other.
            inner.pools.doubt();
            Err(unknown("the server committed with a warning".into()))
        }
        (Ok(_), Ok(())) => {
            inner.failpoints.hit("commit.after_commit");
            Ok(committed)
        }
        // The server undid it all: the COMMIT behind it was none.
        (Err(fault @ (Fault::Refused(_) | Fault::Raced(..))), _) => Err(Undone::Fault(fault)),
        (Err(Fault::Lost(error)), _) => Err(unknown(error.to_string())),
        (Ok(_), Err(error)) => match of_driver(&error) {
            fault @ Fault::Raced(..) => Err(Undone::Fault(fault)),
            Fault::Lost(error) | Fault::Refused(error) => Err(unknown(error.to_string())),
        },
    }
}
