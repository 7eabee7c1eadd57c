//! `holdfast approval`: work that waits for a second person, on a running server.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use holdfast_client::ApprovalsQuery;
use holdfast_wire::{ApprovalView, SwitchRequest};

use crate::output::{self, Format, Target};

/// What to do with requests for a second person.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Approve(ApproveArgs),
    Reject(RejectArgs),
}

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// Nobody has decided yet
    Pending,
    /// Agreed to, and done
    Approved,
    /// Never to be done
    Rejected,
    /// Nobody decided in time
    Expired,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending_approval",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// List requests for a second person
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast approval list --campaign spring --target http://127.0.0.1:8080")]
pub(crate) struct ListArgs {
    /// How they stand
    #[arg(long, value_enum, default_value_t = State::Pending)]
    state: State,
    /// Only those of this campaign
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A decision, and by whom.
#[derive(Debug, clap::Args)]
struct Decision {
    /// The request, as `approval list` shows it
    #[arg(value_name = "APPROVAL_ID")]
    id: String,
    /// Who decides: never the one who asked
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

/// Agree to work that waits: it is done
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The same again changes nothing. What cannot be done by the rules of this moment is refused, \
                        and waits on.\n\n\
                        Example:\n  holdfast approval approve adjustment:a-1 --operator pia --reason 'I counted \
                        it, too' --target http://127.0.0.1:8080"
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    decision: Decision,
}

/// Refuse work that waits: it is never done
#[derive(Debug, clap::Args)]
#[command(after_help = "It is not asked for again under the same key.\n\n\
                        Example:\n  holdfast approval reject adjustment:a-1 --operator pia --reason 'counted \
                        wrong' --target http://127.0.0.1:8080")]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    decision: Decision,
}

/// Asks the server.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::List(args) => list(args).await?,
        Command::Approve(ApproveArgs { decision }) => {
            let decided = decision.target.client()?.approve(&decision.id, &decision.request()).await?;
            print(decision.format, &decided)?;
        }
        Command::Reject(RejectArgs { decision }) => {
            let decided = decision.target.client()?.reject(&decision.id, &decision.request()).await?;
            print(decision.format, &decided)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Decision {
    fn request(&self) -> SwitchRequest {
        SwitchRequest { operator: self.operator.clone(), reason: self.reason.clone() }
    }
}

async fn list(args: ListArgs) -> Result<()> {
    let query = ApprovalsQuery { state: Some(args.state.as_str().to_owned()), campaign_id: args.campaign };
    let found = args.target.client()?.every_approval(&query).await?;
    match args.format {
        Format::Json => output::print_json(&found),
        Format::Text if found.is_empty() => output::print("there is none"),
        Format::Text => found.iter().try_for_each(|approval| output::print(&text(approval))),
    }
}

fn print(format: Format, approval: &ApprovalView) -> Result<()> {
    match format {
        Format::Json => output::print_json(approval),
        Format::Text => output::print(&text(approval)),
    }
}

fn text(approval: &ApprovalView) -> String {
    let ApprovalView { approval_id, state, work, units, campaign_id, .. } = approval;
    let ApprovalView { detail, operator, reason, asked_at, .. } = approval;
    let what = format!("{approval_id}  {state}  campaign {campaign_id}: {work} of {units} units {detail}");
    let what = what.trim_end();
    let asked = format!("  asked by {operator} at {asked_at}: {reason}");
    let end = match &approval.decision {
        Some(decision) => {
            format!("  {} by {} at {}: {}", decision.verdict, decision.operator, decision.at, decision.reason)
        }
        None => format!("  to be decided before {}", approval.expires_at),
    };
    format!("{what}\n{asked}\n{end}")
}
