//! Somebody's own deployment: it is drilled as it is.

use anyhow::{Result, ensure};
use async_trait::async_trait;
use holdfast_drill::{Deployment, Fault, InvariantVerdict, Kind};

use crate::serve::Hidden;

/// A running deployment.
#[derive(Debug, clap::Args)]
pub(crate) struct Targets {
    /// A node of the deployment to drill, such as http://10.0.0.1:8080; each of several
    #[arg(long = "target", env = "HOLDFAST_TARGET", value_name = "URL")]
    targets: Vec<String>,
    /// The key for them
    #[arg(long, env = "HOLDFAST_KEY", hide_env_values = true)]
    key: Option<Hidden>,
}

impl Targets {
    /// The deployment; an error if none is named.
    pub(crate) fn deployment(self) -> Result<Owned> {
        let nodes: Vec<String> = self.targets.into_iter().filter(|target| !target.is_empty()).collect();
        ensure!(!nodes.is_empty(), "name a running deployment with --target or HOLDFAST_TARGET");
        Ok(Owned { nodes, key: self.key.map(|Hidden(key)| key).filter(|key| !key.is_empty()) })
    }
}

/// A deployment that others run.
pub(crate) struct Owned {
    nodes: Vec<String>,
    key: Option<String>,
}

#[async_trait]
impl Deployment for Owned {
    fn kind(&self) -> Option<Kind> {
        None
    }

    fn nodes(&self) -> Vec<String> {
        self.nodes.clone()
    }

    fn key(&self) -> Option<String> {
        self.key.clone()
    }

    fn can(&self, fault: Fault) -> Result<(), String> {
        Err(format!("{} is for its owner to begin", fault.name()))
    }

    async fn begin(&self, fault: Fault) -> Result<()> {
        self.can(fault).map_err(anyhow::Error::msg)
    }

    async fn end(&self, _: Fault) -> Result<()> {
        Ok(())
    }

    async fn verify(&self) -> Result<Option<Vec<InvariantVerdict>>> {
        Ok(None)
    }
}
