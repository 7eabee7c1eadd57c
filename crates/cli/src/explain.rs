//! `holdfast explain`: how an order came to stand where it stands.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Subcommand};
use holdfast_client::LedgerQuery;
use holdfast_core::id::{CampaignId, OrderId, OrderKey, OrderNo};
use holdfast_store::ExplainOrder;
use holdfast_wire::{LedgerEntryView, LineView, OrderView, PaymentView};
use serde::Serialize;
use uuid::Uuid;

use crate::database;
use crate::output::{self, Format, Target};

/// What to explain.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Order(OrderArgs),
}

/// The chain of one order: its lines, its stock, its payments, its ledger entries in time order
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
    #[command(flatten)]
    target: Target,
    /// Read a database instead of asking a server
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// How an order is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderRef {
    /// By its id.
    Id(String),
    /// By its business key.
    Key {
        /// The campaign.
        campaign_id: String,
        /// The number in it.
        order_no: String,
    },
}

/// The chain of evidence of one order.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// The order as it stands now.
    pub(crate) order: OrderView,
    /// Its ledger entries, in time order.
    pub(crate) ledger: Vec<LedgerEntryView>,
}

/// Finds, reads, prints.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let Command::Order(args) = command;
    let which = match (args.id, args.campaign, args.order_no) {
        (Some(id), None, None) => OrderRef::Id(id),
        (None, Some(campaign_id), Some(order_no)) => OrderRef::Key { campaign_id, order_no },
        (Some(_) | None, Some(_) | None, Some(_) | None) => {
            bail!("name the order by its id, or by --campaign and --order-no")
        }
    };
    let mut explanation = match &args.database {
        Some(database) => from_database(database, &which).await?,
        None => from_server(&args.target, &which).await?,
    };
    // Times are of one form and in UTC, so their text sorts as they do.
    explanation
        .ledger
        .sort_by(|a, b| (&a.at, &a.pool_id, a.bucket, a.seq).cmp(&(&b.at, &b.pool_id, b.bucket, b.seq)));
    match args.format {
        Format::Json => output::print_json(&explanation)?,
        Format::Text => output::print(text(&explanation)?.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the chain from a database.
pub(crate) async fn from_database(database: &str, which: &OrderRef) -> Result<Explanation> {
    let database = database::Url::parse(database)?;
    let order = match which {
        OrderRef::Id(id) => {
            ExplainOrder::Id(OrderId(id.parse::<Uuid>().context("not an order's id")?.as_u128()))
        }
        OrderRef::Key { campaign_id, order_no } => ExplainOrder::Key(OrderKey {
            campaign: CampaignId::new(campaign_id).context("the campaign's id")?,
            order_no: OrderNo::new(order_no).context("the order's number")?,
        }),
    };
    let found = database.explain(order).await?;
    let found = found.context("there is no such order")?;
    Ok(Explanation {
        order: holdfast_server::order_view(&found.order),
        ledger: found.entries.iter().map(holdfast_server::ledger_entry_view).collect(),
    })
}

async fn from_server(target: &Target, which: &OrderRef) -> Result<Explanation> {
    let client = target.client().context("or name a database with --database")?;
    let order = match which {
        OrderRef::Id(id) => client.order(id).await?,
        OrderRef::Key { campaign_id, order_no } => client
            .order_by_key(campaign_id, order_no)
            .await?
            .with_context(|| format!("there is no order {order_no:?} in the campaign {campaign_id:?}"))?,
    };
    let query = LedgerQuery { pool_id: None, order_id: Some(order.id.clone()) };
    let ledger = client.every_ledger_entry(&query).await?;
    Ok(Explanation { order, ledger })
}

fn text(explanation: &Explanation) -> Result<String> {
    let order = &explanation.order;
    let mut out = String::new();
    let because = order.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    writeln!(out, "order {} is {}{because}", order.order_no, order.state)?;
    writeln!(out, "  id {}, campaign {}, account {}", order.id, order.campaign_id, order.account)?;
    writeln!(out, "  placed {}, changed {}, version {}", order.created_at, order.updated_at, order.version)?;
    if let Some(queue) = &order.queue {
        writeln!(
            out,
            "  waits in the queue at place {}, about {} ms",
            queue.position, queue.estimated_wait_ms
        )?;
    }
    if let Some(end) = &order.hold_expires_at {
        writeln!(out, "  the hold ends {end}")?;
    }
    if let Some(end) = &order.review_ends_at {
        writeln!(out, "  the review ends {end}")?;
    }
    if let Some(due) = &order.amount_due {
        writeln!(out, "  due {} {} (minor units)", due.amount_minor, due.currency)?;
    }
    if let Some(due) = &order.refund_due {
        let payments: Vec<_> = due.payments.iter().map(|payment| payment.payment_id.as_str()).collect();
        writeln!(out, "  money must go back since {}: {}", due.since, payments.join(", "))?;
    }
    writeln!(out, "lines")?;
    order.lines.iter().try_for_each(|line| write_line(&mut out, line))?;
    writeln!(out, "payments{}", if order.payments.is_empty() { ": none" } else { "" })?;
    order.payments.iter().try_for_each(|payment| write_payment(&mut out, payment))?;
    writeln!(out, "ledger{}", if explanation.ledger.is_empty() { ": no entry" } else { "" })?;
    explanation.ledger.iter().try_for_each(|entry| write_entry(&mut out, entry))?;
    Ok(out)
}

fn write_line(out: &mut String, line: &LineView) -> Result<()> {
    write!(out, "  {}: {} × {}", line.line, line.quantity, line.sku)?;
    if let Some(location) = &line.location {
        write!(out, " at {location}")?;
    }
    if line.refunded_quantity > 0 {
        write!(out, ", {} refunded", line.refunded_quantity)?;
    }
    writeln!(out)?;
    for part in &line.allocations {
        write!(out, "     {}", part.quantity)?;
        if let (Some(sku), Some(location)) = (&part.sku, &part.location) {
            write!(out, " × {sku} at {location}")?;
        }
        writeln!(out, " from pool {} bucket {}", part.pool_id, part.bucket)?;
    }
    Ok(())
}

fn write_payment(out: &mut String, payment: &PaymentView) -> Result<()> {
    write!(
        out,
        "  {} {} {} {}: {} (event {}",
        payment.received_at,
        payment.provider,
        payment.payment_id,
        payment.outcome,
        payment.disposition,
        payment.event_id
    )?;
    if let Some(paid_at) = &payment.paid_at {
        write!(out, ", paid {paid_at}")?;
    }
    if let (Some(amount), Some(currency)) = (payment.amount_minor, &payment.currency) {
        write!(out, ", {amount} {currency}")?;
    }
    writeln!(out, ")")?;
    Ok(())
}

fn write_entry(out: &mut String, entry: &LedgerEntryView) -> Result<()> {
    write!(out, "  {} {:<11}", entry.at, entry.action)?;
    let deltas =
        [("available", entry.delta_available), ("held", entry.delta_held), ("sold", entry.delta_sold)];
    for (name, delta) in deltas.into_iter().filter(|(_, delta)| *delta != 0) {
        write!(out, " {name} {delta:+}")?;
    }
    if let Some(to) = &entry.to_state {
        write!(out, " {} → {to}", entry.from_state.as_deref().unwrap_or("new"))?;
    }
    write!(out, " [pool {} bucket {} #{}] by {}", entry.pool_id, entry.bucket, entry.seq, entry.actor)?;
    for (name, value) in [("source", &entry.source), ("reason", &entry.reason)] {
        if !value.is_empty() {
            write!(out, ", {name} {value}")?;
        }
    }
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_told_in_words() {
        let order = r#"{"id":"o1","order_no":"A-1","campaign_id":"c","account":"ann","state":"sold",
            "reason":"retaken","version":3,"lines":[{"line":1,"sku":"cup","location":"main","quantity":2,
            "refunded_quantity":1,"allocations":[{"pool_id":"p1","bucket":0,"quantity":2}]}],
            "hold_expires_at":null,"amount_due":{"amount_minor":500,"currency":"EUR"},"refund_due":null,
            "payments":[{"provider":"x","payment_id":"pay1","event_id":"ev1","attempt_id":null,
            "outcome":"succeeded","amount_minor":500,"currency":"EUR","paid_at":null,"received_at":"T2",
            "disposition":"retaken"}],"created_at":"T1","updated_at":"T2","metadata":null}"#;
        let entry = r#"{"pool_id":"p1","bucket":0,"seq":2,"at":"T1","order_id":"o1","business_no":"A-1",
            "action":"place","delta_available":-2,"delta_held":2,"delta_sold":0,"settled":0,
            "from_state":null,"to_state":"held","source":"","actor":"ann","reason":""}"#;
        let explanation = Explanation {
            order: serde_json::from_str(order).unwrap(),
            ledger: vec![serde_json::from_str(entry).unwrap()],
        };
        let expected = "\
order A-1 is sold (retaken)
  id o1, campaign c, account ann
  placed T1, changed T2, version 3
  due 500 EUR (minor units)
lines
  1: 2 × cup at main, 1 refunded
     2 from pool p1 bucket 0
payments
  T2 x pay1 succeeded: retaken (event ev1, 500 EUR)
ledger
  T1 place       available -2 held +2 new → held [pool p1 bucket 0 #2] by ann
";
        assert_eq!(text(&explanation).unwrap(), expected);
    }
}
