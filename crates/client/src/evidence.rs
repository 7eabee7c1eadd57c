//! How something came to stand where it stands, and what is wrong.

use holdfast_wire::{DiagnosisView, OrderExplanationView, PoolExplanationView};

use crate::error::Error;
use crate::query::ExplainPoolQuery;
use crate::transport::Client;

impl Client {
    /// What is wrong with the sale, as this node sees it.
    pub async fn diagnose(&self) -> Result<DiagnosisView, Error> {
        self.get(&["diagnose"], &[]).await
    }

    /// The chain of evidence of an order; of one that only a cache has with its ticket.
    pub async fn explain_order(&self, id: &str, ticket: Option<&str>) -> Result<OrderExplanationView, Error> {
        self.get(&["orders", id, "explain"], &[("ticket", ticket)]).await
    }

    /// The chain of evidence of a pool.
    pub async fn explain_pool(
        &self,
        id: &str,
        query: &ExplainPoolQuery,
    ) -> Result<PoolExplanationView, Error> {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let (bucket, from, to) =
            (text(query.bucket.map(u64::from)), text(query.from_seq), text(query.to_seq));
        let parameters = [
            ("bucket", bucket.as_deref()),
            ("from_seq", from.as_deref()),
            ("to_seq", to.as_deref()),
            ("at", query.at.as_deref()),
        ];
        self.get(&["pools", id, "explain"], &parameters).await
    }
}
