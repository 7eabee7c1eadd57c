//! `holdfast drill list`.

use std::process::ExitCode;

use anyhow::Result;
use holdfast_drill::{Kind, Scenario};
use serde::Serialize;

use crate::output::{self, Format};

/// List the scenarios: what each shows, what it breaks, and what must hold
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast drill list --format json")]
pub(crate) struct Args {
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    goal: &'static str,
    goal_zh: &'static str,
    faults: Vec<&'static str>,
    invariants: Vec<&'static str>,
    deployments: Vec<&'static str>,
    expected: Vec<&'static str>,
    seconds: u32,
    orders_a_second: u32,
}

impl From<&Scenario> for Listed {
    fn from(scenario: &Scenario) -> Self {
        let mut faults: Vec<&str> = scenario.steps.iter().map(|step| step.fault.name()).collect();
        faults.dedup();
        let mut expected: Vec<&str> =
            scenario.expected.iter().flat_map(|group| group.iter().copied()).collect();
        expected.sort_unstable();
        expected.dedup();
        Self {
            name: scenario.name,
            goal: scenario.goal,
            goal_zh: scenario.goal_zh,
            faults,
            invariants: scenario.invariants.iter().map(|invariant| invariant.code()).collect(),
            deployments: scenario.kinds.iter().copied().map(Kind::name).collect(),
            expected,
            seconds: scenario.seconds,
            orders_a_second: scenario.orders_a_second,
        }
    }
}

/// Lists them.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let listed: Vec<Listed> = Scenario::ALL.iter().map(Listed::from).collect();
    match args.format {
        Format::Json => output::print_json(&listed)?,
        Format::Text => {
            let text: Vec<String> = listed.iter().map(text).collect();
            output::print(&text.join("\n\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(scenario: &Listed) -> String {
    let Listed { name, goal, faults, deployments, seconds, orders_a_second, .. } = scenario;
    let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(", ") };
    let deployments = deployments.join(", ");
    format!(
        "{name}\n  {goal}\n  faults: {faults}\n  on: {deployments}; {seconds} s, {orders_a_second} orders/s"
    )
}
