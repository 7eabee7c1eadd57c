//! One connection: how it is made, what is set on it, and what must be known about it before it is used again.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use holdfast_store::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{Address, Statements};
use crate::error::{Driver, Fault, of_driver};
use crate::statement::Sql;
use crate::{apply, cache, load, payments, usage};

/// A parameter.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// How long the server lets a statement run, wait for a lock, and a transaction lie idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) statement: Duration,
    pub(crate) lock: Duration,
    pub(crate) idle_in_transaction: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            statement: Duration::from_secs(5),
            lock: Duration::from_secs(2),
            idle_in_transaction: Duration::from_secs(5),
        }
    }
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each statement sees what is committed when it begins: for writing under locks.
    Write,
    /// The same, without writing.
    Read,
    /// All statements see the same rows.
    View,
}

/// The texts that begin transactions. Every one says its isolation: what the database has as its default decides
/// nothing.
#[derive(Debug)]
struct Begin {
    write: String,
    read: String,
    view: String,
}

impl Begin {
    /// A pooler may give every transaction another session, so there the settings are part of it.
    fn new(settings: &str, statements: Statements) -> Self {
        let local = match statements {
            Statements::Named => String::new(),
            Statements::Unnamed => settings.replace("SET ", "SET LOCAL "),
        };
        Self {
            // Whether it may write is the server's say: who runs it makes it read-only by the default, for instance
            // before its disk is full.
            write: format!("BEGIN ISOLATION LEVEL READ COMMITTED; {local}"),
            read: format!("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {local}"),
            view: format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local}"),
        }
    }

    fn text(&self, mode: Mode) -> &str {
        match mode {
            Mode::Write => &self.write,
            Mode::Read => &self.read,
            Mode::View => &self.view,
        }
    }
}

/// What is set on every session. Plans are forced to look rows up by their keys: a table that was small when a
/// statement was planned may have a million rows before its statistics are renewed. And one plan does for all of a
/// statement's arrays: planning each anew took longer than carrying it out.
fn settings(timeouts: Timeouts) -> String {
    let Timeouts { statement, lock, idle_in_transaction } = timeouts;
    format!(
        "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
         SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
         SET plan_cache_mode = force_generic_plan; ",
        statement.as_millis(),
        lock.as_millis(),
        idle_in_transaction.as_millis()
    )
}

/// A connection.
pub(crate) struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    begin: Arc<Begin>,
    /// The server has warned since the transaction began: a commit that succeeded may be unsafe.
    warned: Arc<AtomicBool>,
    /// A transaction is open, or answers are outstanding: nobody else may use it.
    busy: AtomicBool,
    /// Which doubt it was made after.
    pub(crate) generation: u64,
    driver: AbortHandle,
}

impl Drop for Connection {
    /// One that is in the middle of something may never come to its end: the server must see that we are gone.
    fn drop(&mut self) {
        if self.busy.load(Ordering::SeqCst) {
            self.driver.abort();
        }
    }
}

impl Connection {
    /// Makes a connection with the session's settings.
    pub(crate) async fn open(
        address: &Address,
        tls: MakeRustlsConnect,
        timeouts: Timeouts,
    ) -> Result<Self, Error> {
        let (client, connection) = address.config.connect(tls).await.store()?;
        let warned = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive(connection, Arc::clone(&warned))).abort_handle();
        let settings = settings(timeouts);
        let begin = Arc::new(Begin::new(&settings, address.statements));
        let busy = AtomicBool::new(true);
        let opened = Self { client, statements: HashMap::new(), begin, warned, busy, generation: 0, driver };
        if address.statements == Statements::Named {
            opened.client.batch_execute(&settings).await.store()?;
        }
        opened.assert_durable().await?;
        opened.busy.store(false, Ordering::SeqCst);
        Ok(opened)
    }

    /// What is answered must be on disk, and on the standbys' disks if there are any.
    async fn assert_durable(&self) -> Result<(), Error> {
        let sql = "SELECT current_setting('synchronous_commit') AS synchronous_commit";
        let row = self.client.query_typed_one(sql, &[]).await.store()?;
        let value: String = row.try_get(0).store()?;
        match value.as_str() {
            "off" | "local" => Err(Error::Unavailable(format!(
                "synchronous_commit is {value}: what is answered could be lost; set it to on"
            ))),
            _ => Ok(()),
        }
    }

    /// Prepares what is asked most often, in one flight.
    pub(crate) async fn prepare(&mut self) -> Result<(), Error> {
        let hot = load::HOT.iter().chain(apply::HOT).chain(usage::HOT).chain(cache::HOT);
        let hot = hot.chain(payments::HOT);
        let prepared = hot.map(|sql| async {
            let statement = self.client.prepare_typed(sql.text, sql.types).await?;
            Ok::<_, tokio_postgres::Error>((sql.text, statement))
        });
        let prepared = join_all(prepared.collect::<Vec<_>>()).await;
        self.statements = prepared.into_iter().collect::<Result<_, _>>().store()?;
        Ok(())
    }

    /// Whether nobody can use it any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.client.is_closed() || self.busy.load(Ordering::SeqCst)
    }

    /// Whether the server has warned since the transaction began.
    pub(crate) fn has_warned(&self) -> bool {
        self.warned.load(Ordering::SeqCst)
    }

    /// The driver's own handle, for what copies whole tables.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&self, mode: Mode) -> Result<(), tokio_postgres::Error> {
        self.busy.store(true, Ordering::SeqCst);
        // What it warned of when the connection was made (a collation that has changed) says nothing of commits.
        self.warned.store(false, Ordering::SeqCst);
        self.client.batch_execute(self.begin.text(mode)).await
    }

    /// Ends a transaction. The driver does not show the tag with which the server tells a COMMIT that was none:
    /// it answers so only to a transaction of which a statement has failed, and whoever commits has seen the answer
    /// of every one.
    pub(crate) async fn commit(&self) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute("COMMIT").await?;
        self.busy.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Ends a transaction without its writes. If that fails the connection is not used again.
    pub(crate) async fn rollback(&self) {
        if self.client.batch_execute("ROLLBACK").await.is_ok() {
            self.busy.store(false, Ordering::SeqCst);
        }
    }

    /// Sends a statement when it is first polled, and takes its rows.
    pub(crate) async fn rows(
        &self,
        sql: &Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self.statements.get(sql.text) {
            Some(statement) => self.client.query(statement, params).await,
            None => self.rows_typed(sql.text, params, sql.types).await,
        }
    }

    /// The same for a statement that was put together.
    pub(crate) async fn rows_typed(
        &self,
        sql: &str,
        params: &[Param<'_>],
        types: &[Type],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let typed: Vec<_> = params.iter().copied().zip(types.iter().cloned()).collect();
        self.client.query_typed(sql, &typed).await
    }

    /// Writes, commits, and thereby knows that all that was seen on this connection is safe: after a restart of
    /// the server, or a failover, what is visible may not have reached every disk that it must.
    pub(crate) async fn assure(&self) -> Result<(), Error> {
        self.busy.store(true, Ordering::SeqCst);
        self.warned.store(false, Ordering::SeqCst);
        let sql = format!(
            "{} UPDATE authority SET starts = starts + 1 WHERE only_row = 1; COMMIT",
            self.begin.write
        );
        self.client.batch_execute(&sql).await.store()?;
        self.busy.store(false, Ordering::SeqCst);
        if self.has_warned() {
            return Err(Error::Unavailable("the server commits without its standbys".into()));
        }
        Ok(())
    }

    /// Runs other text that takes no parameters and gives no rows.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Fault> {
        self.client.batch_execute(sql).await.map_err(|error| of_driver(&error))
    }
}

/// Drives the connection, and hears what the server says unasked. A warning is heard before the answer that comes
/// after it is given out.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                if notice.severity() == "WARNING" || notice.code().code().starts_with("01") {
                    tracing::warn!(code = notice.code().code(), "PostgreSQL warns: {}", notice.message());
                    warned.store(true, Ordering::SeqCst);
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!("a connection to PostgreSQL ended: {}", crate::error::chain(&error));
                return;
            }
            None => return,
        }
    }
}
