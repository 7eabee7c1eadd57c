//! `holdfast drill run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use holdfast_drill::{Outcome, Scenario, report, write_history};

use super::drive::{Drive, Extent};
use super::place::{Place, Places};
use super::result;
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
                        holdfast drill run node-kill --private postgres --report drill.html\n  \
                        holdfast drill run all --private --seed 7 --report drill.html\n  \
                        holdfast drill run node-kill --target http://10.0.0.1:8080 \\\n    \
                        --fault kill-node='ssh shop-1 systemctl kill -s KILL holdfast'"
)]
pub(crate) struct Args {
    /// The scenario, or `all` that the deployment can have
    #[arg(value_name = "NAME", value_parser = scenario)]
    name: String,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    drive: Drive,
    /// How long orders come, in seconds; without it as long as the scenario says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// How many orders come in a second; without it as many as the scenario says
    #[arg(long, value_name = "ORDERS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Where the outcomes go as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the outcomes go as a page for people, with their charts
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
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
    let is_any = args.places.are_any_private();
    let runs = runs(&args.name, args.places.all()?, is_any).await?;
    if runs.len() > 1 && args.history.is_some() {
        bail!("--history is for one run");
    }
    let driver = args.drive.begin()?;
    let extent = Extent { seconds: args.seconds, rate: args.rate };
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut failed = Ok(());
    for (scenario, place) in runs {
        match driver.run(scenario, &place, extent).await {
            Ok(drilled) => {
                if let Some(path) = &args.history {
                    write_history(path, &drilled.asked, &drilled.history)?;
                }
                if args.format == Format::Text {
                    output::print(&result::text(&drilled.outcome))?;
                }
                outcomes.push(drilled.outcome);
            }
            Err(error) => failed = Err(error),
        }
        if failed.is_err() || driver.is_stopped() {
            break;
        }
    }
    // What came before one that could not be run is told all the same.
    if let Some(path) = &args.json {
        write(path, &serde_json::to_string_pretty(&outcomes)?)?;
    }
    if let Some(path) = &args.report {
        write(path, &report::page(&outcomes))?;
    }
    if args.format == Format::Json {
        output::print_json(&outcomes)?;
    }
    failed?;
    Ok(output::verdict(outcomes.iter().all(|outcome| outcome.ok)))
}

/// Writes a file whole.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// What is run where. A scenario that is named must be possible; of all of them those that are, and it is said which are
/// left out.
async fn runs(name: &str, places: Vec<Place>, is_any: bool) -> Result<Vec<(&'static Scenario, Place)>> {
    let named = Scenario::named(name);
    let scenarios: Vec<&'static Scenario> =
        named.map_or_else(|| Scenario::ALL.iter().collect(), |one| vec![one]);
    let mut runs = Vec::new();
    for scenario in scenarios {
        // Kinds that nobody named are those that the scenario concerns.
        for place in places.iter().filter(|place| !is_any || place.is_concerned(scenario)) {
            match place.refuses(scenario).await {
                None => runs.push((scenario, place.clone())),
                Some(why) if named.is_some() => bail!("{name} cannot be run on {}: {why}", place.name()),
                Some(why) => {
                    output::complain(&format!("{} on {} is left out: {why}", scenario.name, place.name()))?;
                }
            }
        }
    }
    Ok(runs)
}
