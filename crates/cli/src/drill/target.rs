//! Which nodes are meant.

use anyhow::{Result, ensure};

use crate::serve::Hidden;

/// A running deployment.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Targets {
    /// A node of the deployment to drill, such as http://10.0.0.1:8080; each of several
    #[arg(long = "target", env = "HOLDFAST_TARGET", value_name = "URL")]
    targets: Vec<String>,
    /// The key for them
    #[arg(long, env = "HOLDFAST_KEY", hide_env_values = true)]
    key: Option<Hidden>,
}

impl Targets {
    /// The nodes that are named, each once; an error if there are none.
    pub(crate) fn nodes(&self) -> Result<Vec<String>> {
        let mut nodes: Vec<String> = Vec::new();
        for target in &self.targets {
            let node = target.trim_end_matches('/');
            if !node.is_empty() && !nodes.iter().any(|known| known == node) {
                nodes.push(node.to_owned());
            }
        }
        ensure!(!nodes.is_empty(), "name a running deployment with --target or HOLDFAST_TARGET");
        Ok(nodes)
    }

    /// Whether nodes are named by the command line.
    pub(crate) fn are_given(&self) -> bool {
        let by_environment = std::env::var("HOLDFAST_TARGET").unwrap_or_default();
        self.targets.iter().any(|target| !target.is_empty() && *target != by_environment)
    }

    /// The key for them.
    pub(crate) fn key(&self) -> Option<String> {
        self.key.as_ref().map(|Hidden(key)| key.clone()).filter(|key| !key.is_empty())
    }
}
