//! The real binary on a real PostgreSQL while both break, under load. After each fault: it was answered with 503
//! and in good time while it lasted, the server is back by itself in seconds, and every answer that a client saw is
//! borne out by the rows.

mod boundary;
mod failover;
mod network;
mod nodes;
mod operators;
mod outages;
mod places;
mod pooler;
mod sale;

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_testkit::Postgres;
use tokio::task::JoinSet;

use crate::support::{History, Http, Load, Server, Start, extent, last, outage, rounds, wait_until};

/// Clients at work in each test.
const CLIENTS: usize = 16;
/// Requests done before and after each fault.
const PROGRESS: u64 = 100;
/// How long the server may take to sell again once its authority is back.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

fn without_keys() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

/// Nodes at work on an authority, with clients.
struct Shop {
    nodes: Vec<Server>,
    history: Arc<History>,
    load: Load,
}

impl Shop {
    /// Opens a shop of so many nodes on an empty database and lets clients in.
    async fn open(database: &str, count: usize) -> Self {
        let nodes = start_nodes(database, count).await;
        let history = Arc::new(History::default());
        history.open(&nodes[0].http).await;
        let load = Load::start(&history, &doors(&nodes), CLIENTS);
        let shop = Self { nodes, history, load };
        sells(&shop.history).await;
        shop
    }

    /// Every node sells again by itself, soon after a fault has ended.
    async fn recovers(&self) {
        let begun = Instant::now();
        sells(&self.history).await;
        for node in &self.nodes {
            let bought = tokio::time::timeout(RECOVERY_MAX, Load::buy(&self.history, &node.http)).await;
            bought.unwrap_or_else(|_| panic!("a node does not recover: {}", self.history.summary()));
        }
        assert!(begun.elapsed() < RECOVERY_MAX, "{:?}: {}", begun.elapsed(), self.history.summary());
    }

    /// Waits until clients were told that the authority is away.
    async fn is_away(&self) {
        let before = self.history.outages();
        wait_until("an outage", async || (self.history.outages() > before).then_some(())).await;
    }

    /// Ends the load, and judges what was told by the rows, as each node reads them.
    async fn close(self) {
        self.load.stop().await;
        println!("{}", self.history.summary());
        for node in self.nodes {
            self.history.check(&node.http).await;
            node.finish().await;
        }
    }
}

/// Waits until the clients have got on.
async fn sells(history: &History) {
    let enough = history.successes() + PROGRESS;
    wait_until("progress", async || (history.successes() >= enough).then_some(())).await;
}

/// Starts nodes side by side.
async fn start_nodes(database: &str, count: usize) -> Vec<Server> {
    let starts: JoinSet<Server> = (0..count)
        .map(|_| {
            let database = database.to_owned();
            async move { Server::start_at(&database, &without_keys()).await.expect("a node starts") }
        })
        .collect();
    starts.join_all().await
}

/// A private server with an empty database; its URL.
async fn authority() -> (Postgres, String) {
    let postgres = Postgres::start().await.unwrap();
    let url = postgres.create_database("shop").await.unwrap();
    (postgres, url)
}

/// Where clients enter.
fn doors(nodes: &[Server]) -> Vec<Http> {
    nodes.iter().map(|node| node.http.clone()).collect()
}
