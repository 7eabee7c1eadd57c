//! Where a benchmark plays: servers of its own, each on an empty store.

use anyhow::{Context, Result};
use holdfast_client::{Client, Switch};
use holdfast_wire::{OpenPoolRequest, PolicyRequest, PutCampaignRequest, SwitchRequest};
use tempfile::TempDir;

use super::engine::SUPPLY;
use super::report::SQLITE_DURABILITY;
use crate::private::PrivateServer;

/// Where servers find their stores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    /// Each its own file.
    Sqlite,
}

impl Stage {
    /// A server on an empty store.
    pub(crate) async fn server(&self) -> Result<PrivateServer> {
        let Self::Sqlite = self;
        PrivateServer::start_in(directory()?, &["--constant-answer"]).await
    }

    /// The store and its version; what it promises.
    pub(crate) fn describe(&self) -> (String, String) {
        let Self::Sqlite = self;
        (format!("SQLite {}", holdfast_sqlite::version()), SQLITE_DURABILITY.to_owned())
    }
}

pub(crate) fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("holdfast-bench-").tempdir()?)
}

/// What is sold on a server.
#[derive(Debug, Clone)]
pub(crate) struct Sale<'s> {
    pub(crate) campaign: &'s str,
    /// The SKU; with more pools than one, what its SKUs begin with.
    pub(crate) sku: &'static str,
    pub(crate) pools: u32,
    pub(crate) path: &'static str,
    pub(crate) buckets: u32,
}

impl Sale<'_> {
    fn sku(&self, number: u32) -> String {
        if self.pools == 1 { self.sku.to_owned() } else { format!("{}-{number}", self.sku) }
    }

    /// Opens it; the first pool's id.
    pub(crate) async fn open(&self, server: &PrivateServer) -> Result<String> {
        let client = Client::new(server.address(), None)?;
        // As long as may be: nothing shall end while it is measured.
        let policy = PolicyRequest {
            hold_seconds: Some(86_400),
            hold_seconds_max: Some(86_400),
            queue_limit: Some(1_000_000),
            queue_wait_ms: Some(86_400_000),
            ..PolicyRequest::default()
        };
        let put = PutCampaignRequest {
            name: "bench".to_owned(),
            policy: Some(policy),
            ..PutCampaignRequest::default()
        };
        client.put_campaign(self.campaign, &put).await?;
        let mut first = None;
        for number in 0..self.pools {
            let request = OpenPoolRequest {
                campaign_id: self.campaign.to_owned(),
                sku: self.sku(number),
                location: None,
                supply: SUPPLY / u64::from(self.pools),
                buckets: Some(self.buckets),
                path: Some(self.path.to_owned()),
                routing: None,
            };
            let opened =
                client.open_pool(&request).await.with_context(|| format!("a pool on {}", self.path))?;
            first.get_or_insert(opened.value.id);
        }
        let request = SwitchRequest { reason: "bench".to_owned(), operator: "bench".to_owned() };
        client.switch_campaign(self.campaign, Switch::Open, &request).await?;
        first.context("a sale without a pool")
    }
}
