//! What is drilled: nodes, an authority, perhaps a cache.

use async_trait::async_trait;

use crate::fault::Fault;
use crate::outcome::InvariantVerdict;

/// What a deployment is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One node with the embedded store.
    Sqlite,
    /// One node with the embedded store, and Redis.
    SqliteRedis,
    /// Several nodes on PostgreSQL.
    Postgres,
    /// Several nodes on PostgreSQL, and Redis.
    PostgresRedis,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Sqlite, Self::SqliteRedis, Self::Postgres, Self::PostgresRedis];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::SqliteRedis => "sqlite-redis",
            Self::Postgres => "postgres",
            Self::PostgresRedis => "postgres-redis",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether pools can be on the cached path.
    pub const fn has_cache(self) -> bool {
        matches!(self, Self::SqliteRedis | Self::PostgresRedis)
    }

    /// Whether there is a node that is left when another one falls.
    pub const fn has_many_nodes(self) -> bool {
        matches!(self, Self::Postgres | Self::PostgresRedis)
    }
}

/// A deployment under drill: the drill's own, which it can break, or somebody's, which only its owner can.
#[async_trait]
pub trait Deployment: Send + Sync {
    /// What it is made of; none: nobody has said.
    fn kind(&self) -> Option<Kind>;

    /// The base address of each node. They stay, whatever happens to the nodes.
    fn nodes(&self) -> Vec<String>;

    /// The key that its clients need.
    fn key(&self) -> Option<String>;

    /// Whether it can have a fault; if not, why, in words for who runs the drill.
    fn can(&self, fault: Fault) -> Result<(), String>;

    /// Breaks it. Returns when it is broken.
    async fn begin(&self, fault: Fault) -> anyhow::Result<()>;

    /// Lets it be whole again. Returns when nothing stands in its way any more, not when it has recovered: that is
    /// what the drill measures. Does nothing for a fault that happens at once.
    async fn end(&self, fault: Fault) -> anyhow::Result<()>;

    /// Judges the authority's rows by themselves; none if the drill has no way to them.
    async fn verify(&self) -> anyhow::Result<Option<Vec<InvariantVerdict>>>;
}
