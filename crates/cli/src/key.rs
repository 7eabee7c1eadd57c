//! `holdfast key`: keys of a running server.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use holdfast_wire::{CreateKeyRequest, KeyView};

use crate::output::{self, Format, Target};

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// What a key opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Place, cancel and begin to pay orders, and read them
    Buyer,
    /// Say that payments were made or failed
    Payments,
    /// Read
    Read,
    /// Read, buy, and run campaigns
    Operator,
    /// Everything, keys included
    Admin,
}

impl Role {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Payments => "payments",
            Self::Read => "read",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// Make a key; it is shown this once
#[derive(Debug, clap::Args)]
#[command(after_help = "To rotate a key make another one, put it to use, and revoke the old one.\n\n\
                        Example:\n  holdfast key create --name shop --role buyer --campaign spring --target \
                        http://127.0.0.1:8080")]
pub(crate) struct CreateArgs {
    /// Its name, for people and for the ledger
    #[arg(long)]
    name: String,
    /// What it opens
    #[arg(long, value_enum)]
    role: Role,
    /// A campaign that it is for; may be given more than once. Without any it is for all
    #[arg(long = "campaign", value_name = "CAMPAIGN")]
    campaigns: Vec<String>,
    /// From when on it opens nothing, such as 2027-01-31T00:00:00Z. Without it: never
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// List the keys, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast key list --target http://127.0.0.1:8080")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Revoke a key
#[derive(Debug, clap::Args)]
#[command(
    after_help = "From then on it opens nothing. The last key of the role admin cannot be revoked.\n\n\
                        Example:\n  holdfast key revoke abcdefghijklmnop --target http://127.0.0.1:8080"
)]
pub(crate) struct RevokeArgs {
    /// The key's id, as `key list` shows it
    id: String,
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Asks the server.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Create(args) => create(args).await?,
        Command::List(args) => list(args).await?,
        Command::Revoke(args) => revoke(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(args: CreateArgs) -> Result<()> {
    let request = CreateKeyRequest {
        name: args.name,
        role: args.role.as_str().to_owned(),
        campaigns: Some(args.campaigns).filter(|campaigns| !campaigns.is_empty()),
        expires_at: args.expires,
    };
    let made = args.target.client()?.create_key(&request).await?;
    match args.format {
        Format::Json => output::print_json(&made),
        Format::Text => {
            output::print(&format!("key, shown this once: {}", made.key))?;
            output::print(&line(&made.view))
        }
    }
}

async fn list(args: ListArgs) -> Result<()> {
    let keys = args.target.client()?.every_key().await?;
    match args.format {
        Format::Json => output::print_json(&keys),
        Format::Text => keys.iter().try_for_each(|key| output::print(&line(key))),
    }
}

async fn revoke(args: RevokeArgs) -> Result<()> {
    let key = args.target.client()?.revoke_key(&args.id).await?;
    match args.format {
        Format::Json => output::print_json(&key),
        Format::Text => output::print(&line(&key)),
    }
}

fn line(key: &KeyView) -> String {
    let campaigns = key.campaigns.as_ref().map_or_else(|| "all campaigns".to_owned(), |ids| ids.join(", "));
    let end = match (&key.revoked_at, &key.expires_at) {
        (Some(at), _) => format!(", revoked {at}"),
        (None, Some(at)) => format!(", until {at}"),
        (None, None) => String::new(),
    };
    format!("{}  {:<8} {:<8} {}: {campaigns}{end}", key.id, key.state, key.role, key.name)
}
