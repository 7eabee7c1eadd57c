//! `holdfast drill run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use holdfast_drill::{Deployment, Outcome, Plan, Scenario, cannot, write_history};
use holdfast_store::{Clock, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::result;
use super::target::Targets;
use crate::output::{self, Format};

/// What stands for every scenario.
const ALL: &str = "all";

/// Drive a scenario's load, carry out its faults, and hold every answer against the ledger
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A campaign of its own is made for each run, and closed at its end; what is in the deployment \
                        stays as it is. Exit status 1 if an\ninvariant broke, an answer was false or one came that the \
                        scenario does not expect; 2 if it cannot be run.\n\n\
                        Example:\n  holdfast drill run hot-pool --target http://127.0.0.1:8080\n  \
                        holdfast drill run duplicates --target http://10.0.0.1:8080 --target http://10.0.0.2:8080 --seed 7"
)]
pub(crate) struct Args {
    /// The scenario, or `all` that the deployment can have
    #[arg(value_name = "NAME", value_parser = scenario)]
    name: String,
    #[command(flatten)]
    targets: Targets,
    /// The certificates, in PEM form, that servers behind https:// may be vouched for by; without it those that the
    /// system trusts
    #[arg(long, env = "HOLDFAST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// What all chances of the run come from; without it another one each time, which is printed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// How long orders come, in seconds; without it as long as the scenario says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// How many orders come in a second; without it as many as the scenario says
    #[arg(long, value_name = "ORDERS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Most connections, to all nodes together
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    connections: u16,
    /// Orders that are stored before it begins
    #[arg(long, value_name = "ORDERS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    stored_orders: u64,
    /// Where the outcomes go as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the history of the run goes, an exchange a line; `drill check` judges it again
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn scenario(name: &str) -> Result<String, String> {
    if name == ALL || Scenario::named(name).is_some() {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.name).collect();
    Err(format!("there is no scenario {name}; there are {}, and {ALL}", names.join(", ")))
}

/// Runs it, prints what came of it.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let deployment: Arc<dyn Deployment> = Arc::new(args.targets.deployment()?);
    let ca_pem = args.ca.as_ref().map(|path| std::fs::read(path).with_context(|| path.display().to_string()));
    let wanted = Wanted {
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..)),
        seconds: args.seconds,
        rate: args.rate,
        connections: args.connections.into(),
        stored_orders: args.stored_orders,
        ca_pem: ca_pem.transpose()?,
        history: args.history,
    };
    let scenarios = scenarios(&args.name, deployment.as_ref())?;
    if scenarios.len() > 1 && wanted.history.is_some() {
        bail!("--history is for one scenario");
    }
    let stop = interrupted()?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for scenario in scenarios {
        let outcome = wanted.run(scenario, Arc::clone(&deployment), stop.clone()).await?;
        if args.format == Format::Text {
            output::print(&result::text(&outcome))?;
        }
        outcomes.push(outcome);
        if *stop.borrow() {
            break;
        }
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&outcomes)?;
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    if args.format == Format::Json {
        output::print_json(&outcomes)?;
    }
    Ok(output::verdict(outcomes.iter().all(|outcome| outcome.ok)))
}

/// The scenarios that are meant; of all of them those that the deployment can have.
fn scenarios(name: &str, deployment: &dyn Deployment) -> Result<Vec<&'static Scenario>> {
    if let Some(scenario) = Scenario::named(name) {
        if let Some(why) = cannot(scenario, deployment) {
            bail!("{name} cannot be run here: {why}");
        }
        return Ok(vec![scenario]);
    }
    let mut able = Vec::new();
    for scenario in Scenario::ALL {
        match cannot(scenario, deployment) {
            None => able.push(scenario),
            Some(why) => output::complain(&format!("{} is left out: {why}", scenario.name))?,
        }
    }
    Ok(able)
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

/// With what every scenario of a call is run.
struct Wanted {
    seed: u64,
    seconds: Option<u32>,
    rate: Option<u32>,
    connections: usize,
    stored_orders: u64,
    ca_pem: Option<Vec<u8>>,
    history: Option<PathBuf>,
}

impl Wanted {
    async fn run(
        &self,
        scenario: &'static Scenario,
        deployment: Arc<dyn Deployment>,
        stop: watch::Receiver<bool>,
    ) -> Result<Outcome> {
        let seed = self.seed;
        let plan = Plan {
            scenario,
            seed,
            seconds: self.seconds.unwrap_or(scenario.seconds),
            orders_a_second: self.rate.unwrap_or(scenario.orders_a_second).into(),
            connections: self.connections,
            stored_orders: self.stored_orders,
            campaign: format!("drill-{}-{:08x}", scenario.name, fastrand::u32(..)),
            began_at: holdfast_server::time_text(SystemClock.now()),
            ca_pem: self.ca_pem.clone(),
            private: false,
        };
        output::complain(&format!("{} with --seed {seed}, for {} s", scenario.name, plan.seconds))?;
        let drilled = holdfast_drill::run(&plan, deployment, stop).await;
        // Whoever saw it fail can run it again.
        let drilled = drilled.with_context(|| format!("{} with --seed {seed} was not run", scenario.name))?;
        if let Some(path) = &self.history {
            write_history(path, &drilled.asked, &drilled.history)?;
        }
        Ok(drilled.outcome)
    }
}
