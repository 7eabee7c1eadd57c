//! The writer: one thread that owns the only writing connection. While a transaction is being flushed the
//! next jobs gather, and all of them share the next one, so that buckets do not cost flushes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use holdfast_core::decide::decide;
use holdfast_metrics::{Gauge, Held, StoreMetrics, Use};
use holdfast_store::{Act, Balance, Batch, Clock, Committed, Error, Failpoints};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoint::Checkpoints;
use crate::error::{Driver, commit_is_undone, of_driver};
use crate::{acts, apply, load};

/// Most jobs that wait for the writer. Lanes wait beyond it; each has one batch in flight.
const JOBS_MAX: usize = 256;
/// Most jobs that share one transaction: bounds how long the first of them waits.
const GROUP_JOBS_MAX: usize = 64;
/// Most commands that share one transaction.
const GROUP_COMMANDS_MAX: usize = 4_096;

/// Work for the writer's connection that is no batch: campaigns, switches.
pub(crate) type Call = Box<dyn FnOnce(&Connection) -> Result<Answer, Error> + Send>;
/// What such work gives back once it is committed.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

enum Work {
    Batch(Batch),
    Call(Call),
}

enum Done {
    Committed(Committed),
    Called(Answer),
}

struct Job {
    work: Option<Work>,
    commands: usize,
    reply: Reply,
    wait: Option<Wait>,
}

/// A job's wait for the writer: here the locks and the connection are one and the same.
struct Wait {
    since: Instant,
    _counted: [Held; 2],
}

enum Reply {
    Batch(oneshot::Sender<Result<Committed, Error>>),
    Call(oneshot::Sender<Error>),
}

/// The handle of the writer thread.
pub(crate) struct Writer {
    /// None only while it is being dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    failed: Arc<AtomicBool>,
    metrics: Arc<StoreMetrics>,
}

impl Drop for Writer {
    /// Waits until the connection is closed: the database's lock must not go before it.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer panicked");
        }
    }
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(
        connection: Connection,
        clock: Arc<dyn Clock>,
        failpoints: Failpoints,
        checkpoints: Checkpoints,
        metrics: Arc<StoreMetrics>,
    ) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel(JOBS_MAX);
        let failed = Arc::new(AtomicBool::new(false));
        let thread = Thread {
            connection,
            clock,
            failpoints,
            checkpoints,
            inbox,
            failed: Arc::clone(&failed),
            metrics: Arc::clone(&metrics),
        };
        let thread = std::thread::Builder::new().name("sqlite-writer".into()).spawn(move || thread.run())?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), failed, metrics })
    }

    /// Whether a flush failed: what is on disk is then unknown until the store is opened again.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Commits a batch.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        let (reply, answer) = oneshot::channel();
        let commands = batch.commands.len();
        self.metrics.batch_commands.observe_count(commands);
        self.send(Work::Batch(batch), commands, Reply::Batch(reply)).await?;
        answer.await.map_err(|_| Error::OutcomeUnknown("the writer stopped".into()))?
    }

    /// Runs other work in the writer's transaction; `answer` is taken from what it gives back.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        let call: Call = Box::new(move |db| {
            let value = work(db)?;
            Ok(Box::new(move || {
                // Whoever asked may be gone; the work is done all the same.
                let _ = sender.send(value);
            }))
        });
        let (reply, failed) = oneshot::channel();
        self.send(Work::Call(call), 1, Reply::Call(reply)).await?;
        match receiver.await {
            Ok(value) => Ok(value),
            Err(_) => {
                Err(failed.await.unwrap_or_else(|_| Error::OutcomeUnknown("the writer stopped".into())))
            }
        }
    }

    async fn send(&self, work: Work, commands: usize, reply: Reply) -> Result<(), Error> {
        if self.has_failed() {
            return Err(Error::Unavailable("a flush failed; the server must be restarted".into()));
        }
        let waiting = [&self.metrics.transactions_waiting, self.metrics.connections_waiting.of(Use::Write)];
        let wait = Wait { since: Instant::now(), _counted: waiting.map(Gauge::hold) };
        let job = Job { work: Some(work), commands, reply, wait: Some(wait) };
        let stopped = || Error::Unavailable("the writer stopped".into());
        self.jobs.as_ref().ok_or_else(stopped)?.send(job).await.map_err(|_| stopped())
    }
}

struct Thread {
    connection: Connection,
    clock: Arc<dyn Clock>,
    failpoints: Failpoints,
    checkpoints: Checkpoints,
    inbox: mpsc::Receiver<Job>,
    failed: Arc<AtomicBool>,
    metrics: Arc<StoreMetrics>,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.inbox.blocking_recv() {
            let mut commands = first.commands;
            let mut group = vec![first];
            while group.len() < GROUP_JOBS_MAX && commands < GROUP_COMMANDS_MAX {
                let Ok(job) = self.inbox.try_recv() else { break };
                commands += job.commands;
                group.push(job);
            }
            self.transaction(group);
            self.checkpoints.committed(u64::try_from(commands).unwrap_or(u64::MAX), &self.connection);
            if self.failed.load(Ordering::SeqCst) {
                return;
            }
        }
        // Stopped cleanly: nothing is left in the log, so that the database is one file. What a reader still
        // holds is copied by the next start.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// One transaction for a group of jobs. A job that fails is undone alone.
    fn transaction(&mut self, mut group: Vec<Job>) {
        // The points are those of commands: what the node writes down for itself comes at times of its own.
        let is_of_commands = group.iter().any(|job| matches!(job.reply, Reply::Batch(_)));
        let hit = |failpoints: &Failpoints, point| {
            if is_of_commands {
                failpoints.hit(point);
            }
        };
        hit(&self.failpoints, "commit.before_begin");
        let executing = self.metrics.connections_executing.of(Use::Write).hold();
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            return refuse(group, &of_driver(&error));
        }
        let locked_at = Instant::now();
        for wait in group.iter_mut().filter_map(|job| job.wait.take()) {
            self.metrics.lock_wait.observe(locked_at.duration_since(wait.since));
        }
        self.metrics.transaction_batches.observe_count(group.len());
        let single = group.len() == 1;
        let mut results = Vec::with_capacity(group.len());
        for job in &mut group {
            let Some(work) = job.work.take() else { continue };
            let result = if single { self.work(work) } else { self.undoable(work) };
            // Some failures (a full disk) end the whole transaction: nothing of the group is kept.
            if let Err(error) = &result
                && self.connection.is_autocommit()
            {
                return refuse(group, &error.clone());
            }
            results.push(result);
        }
        if single && results.iter().any(Result::is_err) {
            self.rollback();
        } else {
            hit(&self.failpoints, "commit.before_commit");
            let commit_at = Instant::now();
            if let Err(error) = self.connection.execute_batch("COMMIT") {
                let error = self.commit_failed(&error);
                return refuse(group, &error);
            }
            self.metrics.commit.observe(commit_at.elapsed());
            hit(&self.failpoints, "commit.after_commit");
        }
        self.metrics.lock_hold.observe(locked_at.elapsed());
        drop(executing);
        for (job, result) in group.into_iter().zip(results) {
            answer(job.reply, result);
        }
    }

    fn rollback(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "rollback failed");
            self.failed.store(true, Ordering::SeqCst);
        }
    }

    /// A COMMIT that failed for want of space is undone and known. After any other failure what is on disk
    /// is unknown: trying again on the same connection is unsafe, so the writer stops.
    fn commit_failed(&self, error: &rusqlite::Error) -> Error {
        tracing::error!(%error, "commit failed");
        if commit_is_undone(error) {
            self.rollback();
            return of_driver(error);
        }
        self.failed.store(true, Ordering::SeqCst);
        self.metrics.commits_unknown.inc();
        Error::OutcomeUnknown(error.to_string())
    }

    fn undoable(&self, work: Work) -> Result<Done, Error> {
        self.connection.execute_batch("SAVEPOINT job").store()?;
        let result = self.work(work);
        if result.is_err() && !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK TO job").store()?;
        }
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("RELEASE job").store()?;
        }
        result
    }

    /// A panic in one job is that job's error, never the writer's end.
    fn work(&self, work: Work) -> Result<Done, Error> {
        let run = || match work {
            Work::Batch(batch) => self.batch(&batch).map(Done::Committed),
            Work::Call(call) => call(&self.connection).map(Done::Called),
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            tracing::error!("a batch panicked");
            Err(Error::Data("a batch panicked".into()))
        })
    }

    fn batch(&self, batch: &Batch) -> Result<Committed, Error> {
        let snapshot = load::snapshot(&self.connection, &batch.locks, &batch.commands)?;
        let locked: Vec<_> = snapshot.buckets.values().copied().collect();
        let now = self.clock.now();
        let decision = decide(now, snapshot, batch.commands.iter());
        apply::changes(&self.connection, &decision.changes)?;
        for (command, outcome) in batch.commands.iter().zip(&decision.outcomes) {
            if let Some(act) = Act::of_command(command, outcome) {
                acts::record(&self.connection, &act, now)?;
            }
        }
        let mut balances: std::collections::BTreeMap<_, _> = locked.into_iter().map(|b| (b.key, b)).collect();
        balances.extend(decision.changes.buckets.iter().map(|change| (change.bucket.key, change.bucket)));
        let balances = balances.into_values().map(|b| Balance::from(&b)).collect();
        Ok(Committed { outcomes: decision.outcomes, balances })
    }
}

fn refuse(group: Vec<Job>, error: &Error) {
    for job in group {
        answer(job.reply, Err(error.clone()));
    }
}

/// Whoever asked may be gone; what was committed stays committed.
fn answer(reply: Reply, result: Result<Done, Error>) {
    match (reply, result) {
        (Reply::Batch(reply), Ok(Done::Committed(committed))) => drop(reply.send(Ok(committed))),
        (Reply::Batch(reply), Err(error)) => drop(reply.send(Err(error))),
        (Reply::Call(_), Ok(Done::Called(answer))) => answer(),
        (Reply::Call(reply), Err(error)) => drop(reply.send(error)),
        (Reply::Batch(_), Ok(Done::Called(_))) | (Reply::Call(_), Ok(Done::Committed(_))) => {}
    }
}
