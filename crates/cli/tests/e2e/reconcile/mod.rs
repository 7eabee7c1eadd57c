//! Reconciliation while stock is sold: faults planted in the rows are found, each as what it is, and nothing that is
//! right is ever called wrong.

mod clean;
mod events;
mod faults;

use std::sync::Arc;
use std::time::Duration;

use holdfast_testkit::Database;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{History, Http, Load, Server, Start, wait_within};

/// How long a run may take while they are at work, on a busy machine.
const RUN: Duration = Duration::from_secs(120);

/// Clients at work beside.
const CLIENTS: usize = 6;

/// A database as somebody with its password may treat it: nothing of the product forbids anything here.
enum Raw {
    Sqlite(Connection),
    Postgres(Database),
}

impl Raw {
    async fn run(&self, sql: &str) {
        match self {
            Self::Sqlite(db) => db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}")),
            Self::Postgres(database) => {
                database.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    }

    /// An id as this store spells it.
    fn id(&self, id: &str) -> String {
        match self {
            Self::Sqlite(_) => format!("x'{}'", id.replace('-', "")),
            Self::Postgres(_) => format!("'{id}'"),
        }
    }
}

/// A server that sells, and its database.
struct Shop {
    server: Server,
    raw: Raw,
    history: Arc<History>,
    load: Option<Load>,
}

impl Shop {
    async fn open(on_postgres: bool) -> Self {
        // Runs come when the test asks for them.
        let runs = ["--reconcile-seconds", "0", "--reconcile-full-seconds", "0"];
        let arguments = ["--auth", "off", "--sink-private-addresses", "allow"].into_iter().chain(runs);
        let start = Start { arguments: arguments.map(str::to_owned).collect(), ..Start::default() };
        let (server, raw) = if on_postgres {
            let database = Database::shared().await.unwrap();
            let server = Server::start_at(&database.url(), &start).await.expect("it starts");
            (server, Raw::Postgres(database))
        } else {
            let server = Server::start_with(start).await;
            let db = Connection::open(server.database()).unwrap();
            db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            (server, Raw::Sqlite(db))
        };
        let history = Arc::new(History::default());
        history.open(&server.http).await;
        let load = Load::start(&history, std::slice::from_ref(&server.http), CLIENTS);
        Self { server, raw, history, load: Some(load) }
    }

    /// What keeps the ledger as it was is taken away first.
    async fn let_anything_be_changed(&self) {
        match &self.raw {
            Raw::Sqlite(_) => {
                self.raw
                    .run("DROP TRIGGER ledger_is_never_changed; DROP TRIGGER ledger_is_never_deleted")
                    .await;
            }
            Raw::Postgres(_) => self.raw.run("DROP TRIGGER ledger_is_never_changed ON ledger").await,
        }
    }

    /// Ends the load and the server; every answer and every row must be right.
    async fn close(mut self) {
        if let Some(load) = self.load.take() {
            load.stop().await;
        }
        self.history.check(&self.server.http).await;
        self.server.finish().await;
    }

    /// The same where orders were sold that the clients know nothing of: the rows are audited.
    async fn end(mut self) {
        if let Some(load) = self.load.take() {
            load.stop().await;
        }
        self.server.finish().await;
    }
}

/// Shorthands for reconciliation.
impl Http {
    /// Runs, to its end.
    async fn reconcile(&self, scope: &str) -> Value {
        let asked = self.post("/v1/reconciliations", &json!({"scope": scope})).await;
        assert_eq!(asked.status, 201, "{asked:?}");
        assert_eq!((&asked.body["state"], &asked.body["scope"]), (&json!("running"), &json!(scope)));
        let path = format!("/v1/reconciliations/{}", asked.text("id"));
        let run = wait_within(RUN, "the end of a run", async || {
            let run = self.get(&path).await.body;
            (run["state"] != "running").then_some(run)
        });
        let run = run.await;
        assert_eq!(run["state"], "done", "{run:#}");
        run
    }

    async fn discrepancies(&self, query: &str) -> Vec<Value> {
        let list = self.get(&format!("/v1/discrepancies?limit=500&{query}")).await;
        assert_eq!(list.status, 200, "{list:?}");
        list.body["items"].as_array().unwrap().clone()
    }

    async fn open_cases(&self) -> Vec<Value> {
        self.get("/v1/cases?state=open&limit=500").await.body["items"].as_array().unwrap().clone()
    }
}
