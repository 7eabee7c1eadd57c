//! Who drives the load: this process, and others that take their shares of it.

use std::time::Instant;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Plan;
use crate::deployment::Kind;
use crate::history::Exchange;
use crate::load::{Errand, Helper, Load, Pace, Share, Way};
use crate::sale::Sale;

/// All of them.
pub(super) struct Crew {
    load: Load,
    helpers: Vec<Helper>,
    /// Where helpers leave their histories.
    _folder: Option<TempDir>,
}

impl Crew {
    /// Gets everybody ready, and begins: the load's time begins with this call's end.
    pub(super) async fn begin(plan: &Plan, sale: &Sale, kind: Option<Kind>, way: &Way) -> Result<Self> {
        let of = plan.processes.max(1);
        let connections = way.connections.div_ceil(usize::try_from(of)?);
        let way = Way { connections, ..way.clone() };
        let folder = if of > 1 { Some(tempfile::tempdir()?) } else { None };
        let mut helpers = Vec::new();
        for number in 1..of {
            let folder = folder.as_ref().context("helpers need a folder")?;
            let errand = Errand {
                scenario: plan.scenario.name.to_owned(),
                kind: kind.map(|kind| kind.name().to_owned()),
                campaign: sale.campaign.clone(),
                seed: plan.seed,
                seconds: plan.seconds,
                orders_a_second: plan.orders_a_second,
                nodes: way.nodes.clone(),
                ca_pem: way.ca_pem.clone(),
                connections,
                share: Share { number, of },
                history: folder.path().join(format!("{number}.jsonl")),
            };
            helpers.push(Helper::start(&plan.program, errand, way.key.as_deref()).await?);
        }
        for helper in &mut helpers {
            helper.go().await?;
        }
        let load = Load::new(sale.clone(), &way, Share { number: 0, of })?;
        Ok(Self { load, helpers, _folder: folder })
    }

    /// Drives the load to its end: until all buyers are done, or until `ends` or `stop`, from when on nobody asks again.
    pub(super) async fn drive(&mut self, ends: Instant, mut stop: watch::Receiver<bool>) -> Result<Pace> {
        let over = watch::Sender::new(false);
        let mut is_over = over.subscribe();
        let watchman = tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(ends.into()) => {}
                Ok(_) = stop.wait_for(|stop| *stop) => {}
            }
            over.send_replace(true);
            // What it said stays said until nobody listens any more.
            over.closed().await;
        });
        let mut helping = JoinSet::new();
        for helper in std::mem::take(&mut self.helpers) {
            helping.spawn(until_done(helper, is_over.clone()));
        }
        let mut run = std::pin::pin!(self.load.run());
        let pace = tokio::select! {
            pace = &mut run => pace,
            Ok(_) = is_over.wait_for(|over| *over) => {
                self.load.stop();
                self.load.end();
                run.await
            }
        };
        let mut pace = pace?;
        while let Some(done) = helping.join_next().await {
            let (helper, of_helper) = done.context("a helper was lost")??;
            pace = pace.and(of_helper);
            self.helpers.push(helper);
        }
        watchman.abort();
        Ok(pace)
    }

    /// Asks what became of those who wait; everything that was asked and told.
    pub(super) async fn close(self) -> Result<Vec<Exchange>> {
        self.load.close().await?;
        let mut history = self.load.into_history();
        for helper in self.helpers {
            history.extend(helper.close().await?);
        }
        Ok(history)
    }
}

async fn until_done(mut helper: Helper, mut over: watch::Receiver<bool>) -> Result<(Helper, Pace)> {
    let ended = tokio::select! {
        pace = helper.done() => Some(pace?),
        Ok(_) = over.wait_for(|over| *over) => None,
    };
    let pace = match ended {
        Some(pace) => pace,
        None => {
            helper.end().await?;
            helper.done().await?
        }
    };
    Ok((helper, pace))
}
