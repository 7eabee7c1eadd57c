//! Where it is drilled: on somebody's own deployment, or on private ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, bail};
use holdfast_drill::{Deployment, Fault, Kind, Scenario, cannot};

use super::owned::Owned;
use super::private;

/// What is drilled.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Places {
    /// Start deployments of the drill's own, and break them; without a kind, one of every kind that the scenario concerns
    #[arg(long, value_name = "KIND", num_args = 0.., value_delimiter = ',', value_parser = private::kinds())]
    private: Option<Vec<Kind>>,
    #[command(flatten)]
    owned: Owned,
}

/// One place.
#[derive(Clone)]
pub(crate) enum Place {
    /// A deployment that runs.
    Owned(Arc<dyn Deployment>),
    /// One of this kind, which is started for each run.
    Private(Kind),
}

impl Places {
    /// All of them, by what is named.
    pub(crate) fn all(self) -> Result<Vec<Place>> {
        match self.private {
            Some(_) if self.owned.targets.are_given() => {
                bail!("--private starts deployments, --target names one: give one of them")
            }
            Some(kinds) if kinds.is_empty() => Ok(Kind::ALL.map(Place::Private).to_vec()),
            Some(kinds) => {
                let each: BTreeSet<Kind> = kinds.into_iter().collect();
                Ok(each.into_iter().map(Place::Private).collect())
            }
            None => Ok(vec![Place::Owned(Arc::new(self.owned.deployment()?))]),
        }
    }

    /// Whether private deployments of any kind are meant.
    pub(crate) fn are_any_private(&self) -> bool {
        self.private.as_ref().is_some_and(Vec::is_empty)
    }
}

/// What a scenario breaks on a kind.
fn faults(scenario: &Scenario, kind: Kind) -> BTreeSet<Fault> {
    scenario.steps_on(Some(kind)).iter().map(|step| step.fault).collect()
}

impl Place {
    /// Its name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Owned(_) => "the deployment",
            Self::Private(kind) => kind.name(),
        }
    }

    /// Why a scenario cannot be run here, if so. Nothing is started.
    pub(crate) async fn refuses(&self, scenario: &Scenario) -> Option<String> {
        match self {
            Self::Owned(deployment) => cannot(scenario, deployment.as_ref()),
            Self::Private(kind) if !scenario.kinds.contains(kind) => {
                Some("it does not concern it".to_owned())
            }
            Self::Private(kind) => private::able(*kind, &faults(scenario, *kind)).await.err(),
        }
    }

    /// The deployment for a run of a scenario; a private one lives as long as this.
    pub(crate) async fn deployment(&self, scenario: &Scenario) -> Result<Arc<dyn Deployment>> {
        match self {
            Self::Owned(deployment) => Ok(Arc::clone(deployment)),
            Self::Private(kind) => Ok(Arc::from(private::deploy(*kind, &faults(scenario, *kind)).await?)),
        }
    }

    /// Whether it is the drill's own.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self, Self::Private(_))
    }

    /// Whether a scenario is about it at all.
    pub(crate) fn is_concerned(&self, scenario: &Scenario) -> bool {
        match self {
            Self::Owned(_) => true,
            Self::Private(kind) => scenario.kinds.contains(kind),
        }
    }
}
