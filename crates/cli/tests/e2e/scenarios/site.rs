//! Where a scenario is played: one server on a file, or three nodes of one PostgreSQL, of which each request meets the
//! next.

use holdfast_testkit::Database;
use tokio::task::JoinSet;

use crate::support::{Http, Server, Start};

const NODES: usize = 3;

/// A site with an empty authority.
pub(crate) struct Site {
    pub(crate) nodes: Vec<Server>,
    pub(crate) http: Http,
    _authority: Option<Database>,
}

impl Site {
    pub(crate) async fn embedded() -> Self {
        let server = Server::start().await;
        Self { http: server.http.clone(), nodes: vec![server], _authority: None }
    }

    pub(crate) async fn three_nodes() -> Self {
        let authority = Database::shared().await.unwrap();
        let nodes: JoinSet<Server> = (0..NODES)
            .map(|_| {
                let url = authority.url();
                let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
                async move { Server::start_at(&url, &start).await.expect("a node starts") }
            })
            .collect();
        let nodes = nodes.join_all().await;
        let http = Http::of_nodes(nodes.iter().map(|node| &node.http));
        Self { nodes, http, _authority: Some(authority) }
    }

    /// Drains every node and audits the authority.
    pub(crate) async fn finish(self) {
        for node in self.nodes {
            node.finish().await;
        }
    }
}

/// Makes two tests of each scenario: `embedded`, and `three_nodes`.
macro_rules! on_each_site {
    ($($name:ident)*) => {
        mod embedded {
            use super::super::site::Site;
            $(#[tokio::test]
            async fn $name() {
                super::$name(Site::embedded().await).await;
            })*
        }

        mod three_nodes {
            use super::super::site::Site;
            $(#[tokio::test]
            async fn $name() {
                super::$name(Site::three_nodes().await).await;
            })*
        }
    };
}
pub(super) use on_each_site;
