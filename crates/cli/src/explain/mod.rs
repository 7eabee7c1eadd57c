//! `holdfast explain`: how something came to stand where it stands.

mod text;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Subcommand};
use holdfast_client::ExplainPoolQuery;
use holdfast_core::id::{CampaignId, OrderId, OrderKey, OrderNo, PoolId};
use holdfast_core::time::Timestamp;
use holdfast_store::{ExplainOrder, ExplainPool};
use holdfast_wire::{OrderExplanationView, PoolExplanationView};
use uuid::Uuid;

use crate::database;
use crate::output::{self, Format, Target};

/// What to explain.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Order(OrderArgs),
    Pool(PoolArgs),
}

/// The chain of one order: its stock, its payments, its ledger entries and what was done about it, in time order
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("which").required(true).args(["id", "order_no"])))]
#[command(after_help = "Example:\n  holdfast explain order --campaign spring --order-no A-1007 \
                        --target http://127.0.0.1:8080")]
pub(crate) struct OrderArgs {
    /// The order's id
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The campaign of the order's number
    #[arg(long, value_name = "CAMPAIGN", requires = "order_no")]
    campaign: Option<String>,
    /// The order's number in the campaign
    #[arg(long, value_name = "N", requires = "campaign")]
    order_no: Option<String>,
    /// What the buyer was given of an order that a cache accepted; only a server can use it
    #[arg(long, value_name = "TICKET", conflicts_with_all = ["database", "order_no"])]
    ticket: Option<String>,
    #[command(flatten)]
    source: Source,
}

/// The chain of one pool: its balances by the ledger, whose the units are, and what happened, in time order
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast explain pool 01937a5e-0000-7000-8000-0000000000ff \
                        --at 2026-11-27T10:00:00Z --target http://127.0.0.1:8080")]
pub(crate) struct PoolArgs {
    /// The pool's id
    #[arg(value_name = "ID")]
    id: String,
    /// Only this bucket
    #[arg(long, value_name = "N")]
    bucket: Option<u32>,
    /// Only entries from this number on
    #[arg(long, value_name = "SEQ")]
    from_seq: Option<u64>,
    /// As of this entry of each bucket
    #[arg(long, value_name = "SEQ")]
    to_seq: Option<u64>,
    /// As of this time, such as 2026-11-27T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = output::time)]
    at: Option<Timestamp>,
    #[command(flatten)]
    source: Source,
}

/// Where it is read.
#[derive(Debug, clap::Args)]
struct Source {
    #[command(flatten)]
    target: Target,
    /// Read a database instead of asking a server
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Finds, reads, prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Order(args) => {
            let format = args.source.format;
            let found = order(args).await?;
            output::show(format, &found, text::order)?;
        }
        Command::Pool(args) => {
            let format = args.source.format;
            let found = pool(args).await?;
            output::show(format, &found, text::pool)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn order(args: OrderArgs) -> Result<OrderExplanationView> {
    let OrderArgs { id, campaign, order_no, ticket, source } = args;
    let key = campaign.zip(order_no);
    if let Some(database) = &source.database {
        let which = match (&id, &key) {
            (Some(id), None) => {
                ExplainOrder::Id(OrderId(id.parse::<Uuid>().context("not an order's id")?.as_u128()))
            }
            (None, Some((campaign, order_no))) => ExplainOrder::Key(OrderKey {
                campaign: CampaignId::new(campaign).context("the campaign's id")?,
                order_no: OrderNo::new(order_no).context("the order's number")?,
            }),
            (Some(_), Some(_)) | (None, None) => bail!(NOT_NAMED),
        };
        let found = database::Url::parse(database)?.explain_order(which).await?;
        return Ok(holdfast_server::order_explanation(&found.context("there is no such order")?));
    }
    let client = source.target.client().context(OR_A_DATABASE)?;
    let id = match (id, key) {
        (Some(id), None) => id,
        (None, Some((campaign, order_no))) => {
            let found = client.order_by_key(&campaign, &order_no).await?;
            let why = || format!("there is no order {order_no:?} in the campaign {campaign:?}");
            found.with_context(why)?.id
        }
        (Some(_), Some(_)) | (None, None) => bail!(NOT_NAMED),
    };
    Ok(client.explain_order(&id, ticket.as_deref()).await?)
}

async fn pool(args: PoolArgs) -> Result<PoolExplanationView> {
    let PoolArgs { id, bucket, from_seq, to_seq, at, source } = args;
    let at = at.map(Timestamp::end_of_millisecond);
    if let Some(database) = &source.database {
        let pool = PoolId(id.parse::<Uuid>().context("not a pool's id")?.as_u128());
        let of = ExplainPool { pool, bucket, from_seq, to_seq, at };
        let found = database::Url::parse(database)?.explain_pool(of).await?;
        let found = found.context("there is no such pool, or no such bucket of it")?;
        return Ok(holdfast_server::pool_explanation(&found, at));
    }
    let client = source.target.client().context(OR_A_DATABASE)?;
    let query = ExplainPoolQuery { bucket, from_seq, to_seq, at: at.map(holdfast_server::time_text) };
    Ok(client.explain_pool(&id, &query).await?)
}

const NOT_NAMED: &str = "name the order by its id, or by --campaign and --order-no";
const OR_A_DATABASE: &str = "or name a database with --database";
