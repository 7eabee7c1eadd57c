//! How a load is driven: what runs of all commands share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use holdfast_drill::{Deployment, Drilled, Plan, Scenario};
use holdfast_store::{Clock, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::place::Place;
use crate::output;

/// How it is driven.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Drive {
    /// The certificates, in PEM form, that servers behind https:// may be vouched for by; without it those that the
    /// system trusts
    #[arg(long, env = "HOLDFAST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// What all chances of the run come from; without it another one each time, which is printed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Most connections, to all nodes together
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    connections: u16,
    /// How many processes share the load
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// Orders that are stored before it begins
    #[arg(long, value_name = "ORDERS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    stored_orders: u64,
}

/// The same, read.
pub(crate) struct Driver {
    seed: u64,
    connections: usize,
    processes: u32,
    stored_orders: u64,
    ca_pem: Option<Vec<u8>>,
    stop: watch::Receiver<bool>,
}

/// How long and how much, where the scenario does not say it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) seconds: Option<u32>,
    pub(crate) rate: Option<u32>,
}

impl Drive {
    /// Reads what it names, and listens from now on for who interrupts.
    pub(crate) fn begin(self) -> Result<Driver> {
        let pem = self.ca.as_deref().filter(|path| !path.as_os_str().is_empty());
        let read = |path: &Path| std::fs::read(path).with_context(|| path.display().to_string());
        Ok(Driver {
            seed: self.seed.unwrap_or_else(|| fastrand::u64(..)),
            connections: self.connections.into(),
            processes: self.processes,
            stored_orders: self.stored_orders,
            ca_pem: pem.map(read).transpose()?,
            stop: interrupted()?,
        })
    }
}

impl Driver {
    /// Whether somebody has interrupted it.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Runs a scenario at a place.
    pub(crate) async fn run(
        &self,
        scenario: &'static Scenario,
        place: &Place,
        extent: Extent,
    ) -> Result<Drilled> {
        self.run_on(place.deployment(scenario).await?, scenario, place, extent).await
    }

    /// Runs it on the place's deployment, which stands already.
    pub(crate) async fn run_on(
        &self,
        deployment: Arc<dyn Deployment>,
        scenario: &'static Scenario,
        place: &Place,
        extent: Extent,
    ) -> Result<Drilled> {
        let seed = self.seed;
        let plan = Plan {
            scenario,
            seed,
            seconds: extent.seconds.unwrap_or(scenario.seconds),
            orders_a_second: extent.rate.unwrap_or(scenario.orders_a_second).into(),
            connections: self.connections,
            processes: self.processes,
            program: std::env::current_exe()?,
            stored_orders: self.stored_orders,
            campaign: format!("drill-{}-{:08x}", scenario.name, fastrand::u32(..)),
            began_at: holdfast_server::time_text(SystemClock.now()),
            ca_pem: self.ca_pem.clone(),
            private: place.is_private(),
        };
        let (name, place) = (scenario.name, place.name());
        output::complain(&format!("{name} on {place} with --seed {seed}, for {} s", plan.seconds))?;
        let drilled = holdfast_drill::run(&plan, deployment, self.stop.clone()).await;
        // Whoever saw it fail can run it again.
        drilled.with_context(|| format!("{name} on {place} with --seed {seed} was not run"))
    }
}

/// Becomes true when the run is to end: what is broken is made whole, and what came by then is judged.
fn interrupted() -> Result<watch::Receiver<bool>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (told, stop) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        // It is held until the process ends: a closed channel says nothing.
        told.send_replace(true);
        std::future::pending::<()>().await;
    });
    Ok(stop)
}
