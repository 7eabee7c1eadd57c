//! `holdfast cancel orders`: gives back what a campaign's orders hold, page by page.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Subcommand, ValueEnum};
use holdfast_wire::{CancelOrdersRequest, RefusedCancelView};
use serde::Serialize;

use crate::output::{self, Format, Target};

/// Orders of a page: few enough that a page is answered well within its time.
const PAGE_ORDERS: u32 = 100;

/// Refused orders that are shown to people; programs get all.
const SHOWN_MAX: usize = 100;

/// What to cancel.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Orders(OrdersArgs),
}

/// Orders in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// Those that hold stock and are not paid
    Held,
    /// Those that wait for stock
    Queued,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Queued => "queued",
        }
    }
}

/// Cancel the orders of a campaign that are held, or queued
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each order is cancelled by itself, as its buyer might. Orders that come meanwhile may be missed: \
                  close the campaign\nfirst. To go on after an error give the same command again. Exit status 1 if an \
                  order could not be cancelled\nany more, such as one that was paid meanwhile.\n\n\
                  Example:\n  holdfast cancel orders --campaign spring --operator olga --reason 'called off' --target \
                  http://127.0.0.1:8080"
)]
pub(crate) struct OrdersArgs {
    /// The campaign
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: String,
    /// Orders in which state
    #[arg(long, value_enum, default_value_t = State::Held)]
    state: State,
    /// Only those of this account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Only those with their home in this pool
    #[arg(long, value_name = "POOL_ID")]
    pool: Option<String>,
    /// Who cancels them, for the ledger and the trail
    #[arg(long, value_name = "NAME")]
    operator: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What came of it; the names are those of the JSON.
#[derive(Debug, Serialize)]
struct Report {
    campaign_id: String,
    state: &'static str,
    cancelled: u64,
    /// Orders that were cancelled by somebody else meanwhile.
    unchanged: u64,
    refused: Vec<RefusedCancelView>,
}

/// Cancels, prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let Command::Orders(args) = command;
    let mut report = Report {
        campaign_id: args.campaign.clone(),
        state: args.state.as_str(),
        cancelled: 0,
        unchanged: 0,
        refused: Vec::new(),
    };
    let done = every_page(&args, &mut report).await;
    done.with_context(|| {
        format!("orders known to be cancelled: {}; give the same command again to go on", report.cancelled)
    })?;
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report))?,
    }
    Ok(output::verdict(report.refused.is_empty()))
}

async fn every_page(args: &OrdersArgs, report: &mut Report) -> Result<()> {
    let client = args.target.client()?;
    let mut request = CancelOrdersRequest {
        campaign_id: args.campaign.clone(),
        state: Some(args.state.as_str().to_owned()),
        account: args.account.clone(),
        pool_id: args.pool.clone(),
        after: None,
        limit: Some(PAGE_ORDERS),
        reason: args.reason.clone(),
        operator: args.operator.clone(),
    };
    loop {
        let page = client.cancel_orders(&request).await?;
        report.cancelled += page.cancelled;
        report.unchanged += page.unchanged;
        report.refused.extend(page.refused);
        match page.next_after {
            None => return Ok(()),
            after if after == request.after => bail!("the server's pages do not move on"),
            after => request.after = after,
        }
    }
}

fn text(report: &Report) -> String {
    let Report { cancelled, unchanged, refused, .. } = report;
    let shown = refused.iter().take(SHOWN_MAX);
    let mut lines: Vec<_> = shown.map(|order| format!("order {}: {}", order.order_id, order.code)).collect();
    let more = refused.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let refused = refused.len();
    lines.push(format!("{cancelled} cancelled, {unchanged} had been cancelled, {refused} could not be"));
    lines.join("\n")
}
