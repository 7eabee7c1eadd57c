//! Deployments of the drill's own, which it can break: servers of this machine's own programs, nodes of this
//! executable. Everything is gone when it is dropped, and also when this process is killed.

mod able;
mod authority;
mod cache;
mod node;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use holdfast_drill::{Deployment, Fault, InvariantVerdict, Kind};
use holdfast_testkit::Shim;
use tokio::time::Instant;

use self::authority::Authority;
use self::cache::Cache;
use self::node::{Node, Start};
use crate::verify;

pub(crate) use able::{able, by_kind};

/// Nodes on an authority that several can share.
const NODES: usize = 3;
/// Longer than anything that a node may hold while it does nothing: a lease, a transaction, a claim on what is
/// delivered. A pause lasts that long whatever the scenario.
const STANDSTILL: Duration = Duration::from_secs(7);
/// How far a node's clock is set forward.
const STEP_SECONDS: i64 = 600;

/// Waits for a time.
#[expect(
    clippy::disallowed_methods,
    reason = "a fault lasts for a time, and a node is started again after one"
)]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A deployment of the drill's own.
struct Private {
    kind: Kind,
    /// What it was prepared for.
    faults: BTreeSet<Fault>,
    // Dropped in this order: who uses something goes before it.
    nodes: Vec<Node>,
    cache: Option<Cache>,
    authority: Authority,
    shim: Option<Shim>,
    victims: Mutex<Victims>,
}

/// Which nodes are broken.
#[derive(Default)]
struct Victims {
    of: BTreeMap<Fault, (usize, Instant)>,
    /// Whose turn it is.
    next: usize,
}

/// Reads the name of a kind.
pub(crate) fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name))
        .try_map(|name| Kind::named(&name).ok_or("no such kind"))
}

/// Starts a deployment of a kind, such that it can have these faults. An error before anything is started if it cannot.
pub(crate) async fn deploy(kind: Kind, faults: &BTreeSet<Fault>) -> Result<Box<dyn Deployment>> {
    able(kind, faults).await.map_err(|why| anyhow!(why))?;
    let is_bent = faults.contains(&Fault::StepClock) || faults.contains(&Fault::SlowDisk);
    let shim = if is_bent { Some(Shim::build().await?) } else { None };
    let authority = Authority::start(kind, faults, shim.as_ref()).await?;
    let cache = if kind.has_cache() { Some(Cache::start(faults).await?) } else { None };
    let count = if kind.has_many_nodes() { NODES } else { 1 };
    let splits_roles = faults.contains(&Fault::PauseWorker);
    let mut nodes = Vec::with_capacity(count);
    for number in 0..count {
        // The clock of one node is stepped. The embedded store flushes in its node.
        let environment = match &shim {
            Some(shim) if number == 0 => shim.environment(),
            Some(_) | None => Vec::new(),
        };
        let roles = splits_roles.then(|| if number + 1 == count { "worker" } else { "api" });
        let redis = cache.as_ref().map(Cache::url);
        nodes.push(Node::start(Start { database: authority.url(), redis, roles, environment })?);
    }
    for node in &nodes {
        node.ready().await?;
    }
    let faults = faults.clone();
    Ok(Box::new(Private { kind, faults, nodes, cache, authority, shim, victims: Mutex::default() }))
}

impl Private {
    fn cache(&self) -> Result<&Cache> {
        self.cache.as_ref().context("there is no cache")
    }

    fn victims(&self) -> std::sync::MutexGuard<'_, Victims> {
        self.victims.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A node for a fault: each in its turn, and none that is broken already if another is left.
    fn victim(&self, fault: Fault) -> Result<&Node> {
        let mut victims = self.victims();
        let candidates: Vec<usize> = (0..self.nodes.len())
            .filter(|at| fault != Fault::PauseWorker || self.nodes.get(*at).is_some_and(|of| !of.sells()))
            .filter(|at| fault == Fault::PauseWorker || self.nodes.get(*at).is_some_and(Node::sells))
            .collect();
        let is_whole = |at: &usize| victims.of.values().all(|(broken, _)| broken != at);
        let turns = || {
            (0..candidates.len())
                .filter_map(|step| candidates.get((victims.next + step) % candidates.len()).copied())
        };
        let at = turns().find(is_whole).or_else(|| turns().next()).context("there is no such node")?;
        victims.next += 1;
        victims.of.insert(fault, (at, Instant::now()));
        self.nodes.get(at).context("there is no such node")
    }

    /// The node that a fault has broken, and since when.
    fn broken(&self, fault: Fault) -> Result<(&Node, Instant)> {
        let victim = self.victims().of.remove(&fault);
        let (at, since) = victim.with_context(|| format!("{} has not begun", fault.name()))?;
        Ok((self.nodes.get(at).context("there is no such node")?, since))
    }

    fn step_clock(&self, seconds: i64) -> Result<()> {
        self.shim.as_ref().context("no clock was prepared to be stepped")?.step_clock(seconds)
    }
}

#[async_trait]
impl Deployment for Private {
    fn kind(&self) -> Option<Kind> {
        Some(self.kind)
    }

    fn nodes(&self) -> Vec<String> {
        self.nodes.iter().filter(|node| node.sells()).map(Node::address).collect()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn can(&self, fault: Fault) -> Result<(), String> {
        by_kind(self.kind, fault)?;
        let is_prepared = self.faults.contains(&fault);
        is_prepared.then_some(()).ok_or_else(|| format!("it was not prepared for {}", fault.name()))
    }

    async fn begin(&self, fault: Fault) -> Result<()> {
        match fault {
            Fault::KillNode => self.victim(fault)?.kill(),
            Fault::PauseNode | Fault::PauseWorker => self.victim(fault)?.pause(),
            Fault::KillAuthority => self.authority.server()?.kill().await,
            Fault::PauseAuthority => self.authority.server()?.pause().await,
            Fault::FailOverAuthority => self.authority.server()?.fail_over().await,
            Fault::CutAuthority => {
                self.authority.server()?.cut().await;
                Ok(())
            }
            Fault::LoseCommitAnswers => {
                self.authority.server()?.lose_commit_answers();
                Ok(())
            }
            Fault::CutCache => {
                self.cache()?.cut().await;
                Ok(())
            }
            Fault::PauseCache => self.cache()?.pause().await,
            Fault::WipeCache => self.cache()?.wipe().await,
            Fault::RestoreCache => self.cache()?.restore().await,
            Fault::FailOverCache => self.cache()?.fail_over().await,
            Fault::RepeatDeliveries => self.cache()?.repeat_deliveries().await,
            Fault::StepClock => self.step_clock(STEP_SECONDS),
            Fault::SlowDisk => Authority::slow_disk(self.shim.as_ref(), true),
            Fault::FillDisk => self.authority.fill_disk(),
        }
    }

    async fn end(&self, fault: Fault) -> Result<()> {
        match fault {
            Fault::KillNode => {
                self.broken(fault)?.0.revive();
                Ok(())
            }
            Fault::PauseNode | Fault::PauseWorker => {
                let (node, since) = self.broken(fault)?;
                tokio::time::sleep_until(since + STANDSTILL).await;
                node.resume()
            }
            Fault::KillAuthority => self.authority.server()?.restart().await,
            Fault::PauseAuthority => self.authority.server()?.resume().await,
            Fault::LoseCommitAnswers => {
                self.authority.server()?.keep_commit_answers().await;
                Ok(())
            }
            Fault::PauseCache => self.cache()?.resume().await,
            Fault::RepeatDeliveries => self.cache()?.deliver_once().await,
            Fault::StepClock => self.step_clock(0),
            Fault::SlowDisk => Authority::slow_disk(self.shim.as_ref(), false),
            Fault::FillDisk => self.authority.clear_disk().await,
            Fault::FailOverAuthority
            | Fault::CutAuthority
            | Fault::CutCache
            | Fault::WipeCache
            | Fault::RestoreCache
            | Fault::FailOverCache => Ok(()),
        }
    }

    async fn verify(&self) -> Result<Option<Vec<InvariantVerdict>>> {
        verify::verdicts(&self.authority.direct_url().await).await.map(Some)
    }
}
