//! `holdfast drill offer`.

use std::process::ExitCode;

use anyhow::Result;
use holdfast_drill::{Offer, Offered};

use super::target::Targets;
use crate::output::{self, Format};

/// Measure what the load itself can offer, against an answer that costs the server next to nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The server must have been started with --constant-answer. Above what this says, a drill measures \
                        itself.\n\nExample:\n  holdfast drill offer --target http://127.0.0.1:8080 --connections 64"
)]
pub(crate) struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Most connections
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    connections: u16,
    /// How long, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How many orders in a second; the default is more than any machine can
    #[arg(long, value_name = "ORDERS", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Measures it.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let offer = Offer {
        nodes: args.targets.nodes()?,
        key: args.targets.key(),
        ca_pem: None,
        connections: args.connections.into(),
        seconds: args.seconds,
        orders_a_second: args.rate.into(),
    };
    let offered = offer.run().await?;
    match args.format {
        Format::Json => output::print_json(&offered)?,
        Format::Text => output::print(&text(&offered))?,
    }
    Ok(output::verdict(offered.failed == 0))
}

fn text(offered: &Offered) -> String {
    let Offered { due_rps, answered_rps, failed, late_p99_us, is_limit } = offered;
    let limit = if *is_limit { "; the load was the limit" } else { "" };
    format!(
        "{answered_rps:.0} answers/s of {due_rps:.0} due/s, {failed} failed, {late_p99_us} us late{limit}"
    )
}
