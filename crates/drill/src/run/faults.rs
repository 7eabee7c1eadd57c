//! What breaks, at its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::deployment::Deployment;
use crate::outcome::Window;
use crate::scenario::Step;

/// The faults of one run.
#[derive(Clone)]
pub(super) struct Faults {
    pub(super) deployment: Arc<dyn Deployment>,
    /// When the load began.
    pub(super) zero: Instant,
    /// How long it takes.
    pub(super) lasts: Duration,
    /// Whether all is to be whole at once.
    pub(super) stop: watch::Receiver<bool>,
    /// One at a time: what one of two does to the other is nobody's scenario.
    pub(super) turn: Arc<Mutex<()>>,
}

impl Faults {
    /// Carries all steps out. Whatever happens, what was begun was ended when this returns.
    pub(super) async fn carry_out(self, steps: Vec<Step>) -> Result<Vec<Window>> {
        let mut tasks = JoinSet::new();
        for step in steps {
            tasks.spawn(self.clone().step(step));
        }
        let (mut windows, mut failed) = (Vec::new(), None);
        while let Some(done) = tasks.join_next().await {
            match done.context("a fault died").flatten() {
                Ok(of_step) => windows.extend(of_step),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        windows.sort_by(|one: &Window, other| one.from.total_cmp(&other.from));
        Ok(windows)
    }

    async fn step(mut self, step: Step) -> Result<Vec<Window>> {
        let mut windows = Vec::new();
        let mut at = Some(step.from);
        // What was broken must be whole while orders still come.
        while let Some(from) = at.filter(|from| from.saturating_add(step.lasts) <= 900) {
            if self.comes(from).await {
                break;
            }
            let turn = Arc::clone(&self.turn);
            let turn = turn.lock().await;
            if *self.stop.borrow() {
                break;
            }
            windows.push(self.window(step).await?);
            drop(turn);
            at = step.every.map(|every| from.saturating_add(every));
        }
        Ok(windows)
    }

    async fn window(&mut self, step: Step) -> Result<Window> {
        let name = step.fault.name();
        let from = self.zero.elapsed();
        let begun = self.deployment.begin(step.fault).await.with_context(|| format!("{name} does not begin"));
        if begun.is_ok() {
            let end = Instant::now() + self.share(step.lasts);
            self.wait(end).await;
        }
        // Also one that did not begin well may have broken something.
        let ended = self.deployment.end(step.fault).await.with_context(|| format!("{name} does not end"));
        begun.and(ended)?;
        let to = self.zero.elapsed();
        Ok(Window { fault: name.to_owned(), from: from.as_secs_f64(), to: to.as_secs_f64() })
    }

    /// Waits for a moment of the load's time; whether all is to end before.
    async fn comes(&mut self, thousandth: u16) -> bool {
        let at = self.zero + self.share(thousandth);
        self.wait(at).await
    }

    async fn wait(&mut self, at: Instant) -> bool {
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => false,
            // An error says that nobody can stop it any more.
            stopped = self.stop.wait_for(|stop| *stop) => stopped.is_ok(),
        }
    }

    fn share(&self, thousandths: u16) -> Duration {
        self.lasts.mul_f64(f64::from(thousandths) / 1_000.0)
    }
}
