//! Where a benchmark plays: servers of its own, each on an empty store.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use holdfast_client::{Client, Switch};
use holdfast_postgres::{Address, BareTables};
use holdfast_store::{Page, Scope};
use holdfast_testkit::Postgres;
use holdfast_wire::{OpenPoolRequest, PolicyRequest, PutCampaignRequest, SwitchRequest};
use tempfile::TempDir;

use super::engine::SUPPLY;
use super::load::Requests;
use super::report::{Environment, Length, SQLITE_DURABILITY, processors};
use crate::database::Url;
use crate::private::{DATABASE, PrivateServer};
use crate::serve::random_id;

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The embedded store, in a temporary directory
    Sqlite,
    /// A PostgreSQL that is started for the benchmark from what is installed here, and thrown away
    Postgres,
}

/// Which store is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Choice {
    /// The kind of store
    #[arg(long, value_enum, default_value_t = Kind::Sqlite)]
    store: Kind,
    /// An empty PostgreSQL database to measure on, instead of one that is thrown away; every turn leaves its orders
    /// there
    #[arg(long, value_name = "URL", hide_env_values = true)]
    database: Option<String>,
}

/// Where servers find their stores.
pub(crate) enum Stage {
    /// Each its own file.
    Sqlite,
    /// Each its own database.
    Private(Box<Postgres>, AtomicU64),
    /// All the same database; each with a campaign of its own.
    Given(String),
}

impl Stage {
    /// Prepares it.
    pub(crate) async fn prepare(choice: &Choice) -> Result<Self> {
        match (choice.store, &choice.database) {
            (_, Some(url)) => {
                assert_empty(url).await?;
                Ok(Self::Given(url.clone()))
            }
            (Kind::Sqlite, None) => Ok(Self::Sqlite),
            (Kind::Postgres, None) => {
                let server = Postgres::start().await.context("a PostgreSQL for the benchmark")?;
                Ok(Self::Private(Box::new(server), AtomicU64::new(0)))
            }
        }
    }

    /// The URL of an empty store: of the given database, as it is.
    pub(crate) async fn empty(&self, directory: &TempDir) -> Result<String> {
        match self {
            Self::Sqlite => Ok(format!("sqlite:{}", directory.path().join(DATABASE).display())),
            Self::Private(server, made) => {
                let number = made.fetch_add(1, Ordering::Relaxed);
                Ok(server.create_database(&format!("bench_{number}")).await?)
            }
            Self::Given(url) => Ok(url.clone()),
        }
    }

    /// A server on an empty store.
    pub(crate) async fn server(&self) -> Result<PrivateServer> {
        self.server_on(None).await
    }

    /// A server on a database; none: on an empty store.
    pub(crate) async fn server_on(&self, database: Option<&str>) -> Result<PrivateServer> {
        let directory = directory()?;
        let database = match database {
            Some(database) => database.to_owned(),
            None => self.empty(&directory).await?,
        };
        PrivateServer::start_at(directory, &database, &["--constant-answer"]).await
    }

    /// Whether several servers may have one database.
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Sqlite)
    }

    /// Where the database's server listens, if it is the benchmark's own.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Private(server, _) => Some(server.port()),
            Self::Sqlite | Self::Given(_) => None,
        }
    }

    /// How many bytes the database's server has ever written to its log, if it tells.
    pub(crate) async fn log_bytes(&self, database: &str) -> Result<Option<f64>> {
        if !self.is_shared() {
            return Ok(None);
        }
        #[expect(clippy::cast_precision_loss, reason = "of a difference, and only a few digits matter")]
        let bytes = BareTables::log_bytes(&Address::parse(database)?).await? as f64;
        Ok(Some(bytes))
    }

    /// What was measured in, of one hot pool without limits.
    pub(crate) async fn environment(
        &self,
        length: &Length,
        connections: usize,
        distribution: &'static str,
    ) -> Result<Environment> {
        let (store, durability) = self.describe().await?;
        Ok(Environment {
            processors: processors(),
            store,
            durability,
            stock: SUPPLY,
            limits: "no account limits",
            stored_orders: 0,
            connections,
            distribution,
            rounds: length.rounds,
            seconds_a_round: length.duration().as_secs_f64(),
            seed: length.seed,
        })
    }

    /// The store and its version; what it promises.
    pub(crate) async fn describe(&self) -> Result<(String, String)> {
        let directory = directory()?;
        match self {
            Self::Sqlite => {
                Ok((format!("SQLite {}", holdfast_sqlite::version()), SQLITE_DURABILITY.to_owned()))
            }
            Self::Private(..) | Self::Given(_) => {
                let url = self.empty(&directory).await?;
                Ok(BareTables::describe(&Address::parse(&url)?).await?)
            }
        }
    }
}

/// What is not empty is somebody's: rows of a benchmark do not belong into it.
async fn assert_empty(url: &str) -> Result<()> {
    let url = Url::parse(url)?;
    if !matches!(url, Url::Postgres(_)) {
        bail!("on SQLite the benchmark makes its own files: leave out --database");
    }
    let store = url.open(random_id()?).await?;
    let (campaigns, _) = store.campaigns(Scope::All, Page { after: None, limit: 1 }).await?;
    if !campaigns.is_empty() {
        bail!("the database holds campaigns: name an empty one");
    }
    Ok(())
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

    /// Orders for it. What the path answers with, and where the authority may answer instead of a cache that is too slow.
    pub(crate) fn requests(&self, addresses: Vec<String>, seed: u64) -> Requests {
        let (status, instead) = match self.path {
            "queued" => (202, None),
            "cached" => (202, Some(201)),
            _ => (201, None),
        };
        Requests {
            addresses,
            path: "/v1/orders",
            campaign: self.campaign.to_owned(),
            sku: self.sku,
            skus: self.pools,
            status,
            instead,
            seed,
        }
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
