//! `holdfast drill stage`: a private deployment that a person, or a test of a shop, breaks by hand.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, Result};
use holdfast_drill::{Deployment, Fault, Kind};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::owned::fault;
use super::private;
use crate::output;

/// Start a private deployment to try things on, and break it by hand
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It prints the address of each node, then `ready`, and reads what to do from standard input, a line \
                  each:\n`begin FAULT`, `end FAULT`, `verify`. At the end of the input everything is gone. Nodes ask \
                  for no keys.\n\n\
                  Example:\n  holdfast drill stage postgres --fault kill-node --fault pause-authority"
)]
pub(crate) struct Args {
    /// What it is made of
    #[arg(value_parser = private::kinds())]
    kind: Kind,
    /// A fault that it is prepared for; may be given more than once. Without it every fault that it can have
    #[arg(long = "fault", value_name = "NAME", value_parser = fault)]
    faults: Vec<Fault>,
}

/// Starts it, does what it is told, and ends it.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let kind = args.kind;
    let mut faults: BTreeSet<Fault> = args.faults.into_iter().collect();
    if faults.is_empty() {
        for fault in Fault::ALL {
            if private::able(kind, &BTreeSet::from([fault])).await.is_ok() {
                faults.insert(fault);
            }
        }
    }
    let deployment = private::deploy(kind, &faults).await?;
    for node in deployment.nodes() {
        output::print(&format!("node {node}"))?;
    }
    output::print("ready")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line.context("standard input")?,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                None
            }
        };
        let Some(line) = line else { return Ok(ExitCode::SUCCESS) };
        let line = line.trim();
        if !line.is_empty() {
            let said = match act(&*deployment, line).await {
                Ok(said) => said,
                Err(why) => format!("error: {why:#}"),
            };
            output::print(&format!("{line}: {said}"))?;
        }
    }
}

/// Does what a line says.
async fn act(deployment: &dyn Deployment, line: &str) -> Result<String> {
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["begin", name] => {
            let fault = fault(name).map_err(anyhow::Error::msg)?;
            deployment.can(fault).map_err(anyhow::Error::msg)?;
            deployment.begin(fault).await?;
            Ok("done".to_owned())
        }
        ["end", name] => {
            deployment.end(fault(name).map_err(anyhow::Error::msg)?).await?;
            Ok("done".to_owned())
        }
        ["verify"] => {
            let verdicts = deployment.verify().await?.unwrap_or_default();
            let broken: Vec<String> = verdicts
                .into_iter()
                .filter_map(|of| Some(format!("{} {}", of.code, of.breaches.filter(|count| *count > 0)?)))
                .collect();
            Ok(if broken.is_empty() { "clean".to_owned() } else { format!("broken {}", broken.join(", ")) })
        }
        _ => Ok("error: say `begin FAULT`, `end FAULT` or `verify`".to_owned()),
    }
}
