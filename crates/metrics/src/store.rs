//! What a store measures. Every store fills in the same; what one has no notion of stays at nothing.

use std::fmt;

use crate::exposition::{Exposed, Exposition};
use crate::instrument::{By, Counter, Gauge, Histogram};

crate::label! {
    /// What a connection is used for.
    Use as "use" {
        /// Transactions that may write.
        Write = "write",
        /// Reads.
        Read = "read",
    }
}

crate::label! {
    /// What another transaction did to one of ours.
    Conflict as "kind" {
        /// It wrote the same new key first.
        Unique = "unique",
        /// The two cannot be put in an order.
        Serialization = "serialization",
        /// Each waited for the other.
        Deadlock = "deadlock",
        /// It held a lock for too long.
        LockTimeout = "lock_timeout",
    }
}

/// Metrics of a store.
#[derive(Debug)]
pub struct StoreMetrics {
    /// From when a batch was handed over until its locks were held, for each batch.
    pub lock_wait: Histogram,
    /// From when the locks were held until they were let go, for each transaction.
    pub lock_hold: Histogram,
    /// COMMIT, which flushes, for each transaction.
    pub commit: Histogram,
    /// A read, from when it had a connection.
    pub read: Histogram,
    /// Batches and other writes that wait for their locks.
    pub transactions_waiting: Gauge,
    /// Connections that execute something.
    pub connections_executing: By<Use, Gauge>,
    /// Work that waits for a connection.
    pub connections_waiting: By<Use, Gauge>,
    /// Commands of a batch.
    pub batch_commands: Histogram,
    /// Batches of a transaction.
    pub transaction_batches: Histogram,
    /// Transactions that another one was in the way of.
    pub conflicts: By<Conflict, Counter>,
    /// Commits whose outcome is unknown: a flush that failed, a connection that broke.
    pub commits_unknown: Counter,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            lock_wait: Histogram::of_times(),
            lock_hold: Histogram::of_times(),
            commit: Histogram::of_times(),
            read: Histogram::of_times(),
            transactions_waiting: Gauge::default(),
            connections_executing: By::default(),
            connections_waiting: By::default(),
            batch_commands: Histogram::of_sizes(),
            transaction_batches: Histogram::of_sizes(),
            conflicts: By::default(),
            commits_unknown: Counter::default(),
        }
    }
}

impl Exposed for StoreMetrics {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_store_lock_wait_seconds",
            "From when a batch was handed to the store until its locks were held.",
            &self.lock_wait,
        )?;
        out.add(
            "holdfast_store_lock_hold_seconds",
            "How long a transaction held its locks, the commit included.",
            &self.lock_hold,
        )?;
        out.add("holdfast_store_commit_seconds", "How long COMMIT took; it flushes.", &self.commit)?;
        out.add(
            "holdfast_store_read_seconds",
            "How long a read took, from when it had a connection.",
            &self.read,
        )?;
        out.add(
            "holdfast_store_transactions_waiting",
            "Batches and other writes that wait for their locks.",
            &self.transactions_waiting,
        )?;
        out.add(
            "holdfast_store_connections_executing",
            "Connections of the store that execute something.",
            &self.connections_executing,
        )?;
        out.add(
            "holdfast_store_connections_waiting",
            "Work that waits for a connection of the store.",
            &self.connections_waiting,
        )?;
        out.add("holdfast_store_batch_commands", "Commands of a batch.", &self.batch_commands)?;
        out.add(
            "holdfast_store_transaction_batches",
            "Batches that shared one transaction.",
            &self.transaction_batches,
        )?;
        out.add(
            "holdfast_store_conflicts_total",
            "Transactions that another one was in the way of, by what it did.",
            &self.conflicts,
        )?;
        out.add(
            "holdfast_store_commits_unknown_total",
            "Commits whose outcome is unknown: a flush that failed, a connection that broke.",
            &self.commits_unknown,
        )
    }
}
