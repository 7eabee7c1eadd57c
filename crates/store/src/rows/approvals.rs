//! Rows of requests for a second person. What was asked for is JSON inside the row.

use std::sync::Arc;

use holdfast_core::approval::{Approval, ApprovalKey, Decided, Proposal, Verdict};
use holdfast_core::case::CaseAction;
use holdfast_core::command::{
    Adjust, AdjustmentKind, Keep, OrderAction, OrderCommand, Repair, Signed, Transfer, TransferEnd, Via,
};
use holdfast_core::id::{AdjustmentId, CampaignId, DiscrepancyId, OrderId, PoolId, RefundId, TransferId};
use holdfast_core::order::{Refund, RefundLine};
use holdfast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec::{id, number, optional_time, optional_word, text, time};
use super::detail::{id as text_id, json, parse};
use super::{Row, corrupt};
use crate::error::Error;

#[derive(Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum ProposalJson {
    Adjust { id: String, pool: String, delta: i64, kind: String, bucket: Option<u32> },
    Transfer { id: String, from: EndJson, to: EndJson, quantity: u64 },
    Confirm { order: String },
    Release { order: String },
    Extend { order: String, until: i64 },
    Reduce { order: String, lines: Vec<(u32, u32)> },
    Refund { order: String, id: String, lines: Vec<(u32, u32)>, restock: Option<bool>, reason: String },
    Repair { id: String, decides: String, pool: Option<String>, order: Option<String> },
}

#[derive(Serialize, Deserialize)]
struct EndJson {
    pool: String,
    bucket: Option<u32>,
}

fn hex(id: u128) -> String {
    format!("{id:032x}")
}

fn unhex(text: &str) -> Result<u128, Error> {
    u128::from_str_radix(text, 16).map_err(|_| corrupt(format_args!("not an id: {text:?}")))
}

/// What was asked for, as stored.
pub fn write_proposal(proposal: &Proposal) -> Result<String, Error> {
    let end = |end: TransferEnd| EndJson { pool: hex(end.pool.0), bucket: end.bucket };
    json(&match proposal {
        Proposal::Adjust(adjust) => ProposalJson::Adjust {
            id: adjust.adjustment_id.to_string(),
            pool: hex(adjust.pool.0),
            delta: adjust.delta,
            kind: adjust.kind.as_str().to_owned(),
            bucket: adjust.bucket,
        },
        Proposal::Transfer(transfer) => ProposalJson::Transfer {
            id: transfer.transfer_id.to_string(),
            from: end(transfer.from),
            to: end(transfer.to),
            quantity: transfer.quantity,
        },
        Proposal::Order(change) => of_order(change)?,
        Proposal::Repair(repair) => of_repair(repair)?,
    })
}

/// What a person decides of a difference; the side that holds follows from it.
fn of_repair(repair: &Repair) -> Result<ProposalJson, Error> {
    let decides = repair.decides.ok_or_else(|| Error::Data("no decision of a person".into()))?;
    Ok(ProposalJson::Repair {
        id: hex(repair.id.0),
        decides: decides.as_str().to_owned(),
        pool: repair.pool.map(|pool| hex(pool.0)),
        order: repair.order.map(|order| hex(order.0)),
    })
}

fn read_repair(
    (id, decides): (&str, &str),
    pool: Option<&str>,
    order: Option<&str>,
    signed: Signed,
) -> Result<Proposal, Error> {
    let decides = CaseAction::parse(decides).ok_or_else(|| corrupt("a decision"))?;
    Ok(Proposal::Repair(Arc::new(Repair {
        id: DiscrepancyId(unhex(id)?),
        accept: decides.accepts().ok_or_else(|| corrupt("a decision that mends nothing"))?,
        decides: Some(decides),
        pool: pool.map(unhex).transpose()?.map(PoolId),
        order: order.map(unhex).transpose()?.map(OrderId),
        usage: None,
        signed,
    })))
}

fn of_order(change: &OrderCommand) -> Result<ProposalJson, Error> {
    let order = hex(change.order.0);
    match &change.action {
        OrderAction::Confirm => Ok(ProposalJson::Confirm { order }),
        OrderAction::Release => Ok(ProposalJson::Release { order }),
        OrderAction::Extend(until) => Ok(ProposalJson::Extend { order, until: until.0 }),
        OrderAction::Reduce(keeps) => {
            let lines = keeps.iter().map(|keep| (keep.line, keep.keep)).collect();
            Ok(ProposalJson::Reduce { order, lines })
        }
        OrderAction::Refund(refund) => Ok(ProposalJson::Refund {
            order,
            id: refund.refund_id.to_string(),
            lines: refund.lines.iter().map(|line| (line.line, line.quantity)).collect(),
            restock: refund.restock,
            reason: refund.reason.to_string(),
        }),
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Attempt(..)
        | OrderAction::Notice(_)
        | OrderAction::MarkRefunded(_)
        | OrderAction::Expire(_) => Err(Error::Data("no work that a second person agrees to".into())),
    }
}

fn read_proposal(text: &str, key: &ApprovalKey, signed: Signed) -> Result<Proposal, Error> {
    let end =
        |end: EndJson| Ok::<_, Error>(TransferEnd { pool: PoolId(unhex(&end.pool)?), bucket: end.bucket });
    let (order, action) = match parse(text)? {
        ProposalJson::Adjust { id, pool, delta, kind, bucket } => {
            return Ok(Proposal::Adjust(Adjust {
                adjustment_id: text_id(&id, AdjustmentId::new)?,
                pool: PoolId(unhex(&pool)?),
                delta,
                kind: AdjustmentKind::parse(&kind).ok_or_else(|| corrupt("the kind of an adjustment"))?,
                bucket,
                signed,
            }));
        }
        ProposalJson::Transfer { id, from, to, quantity } => {
            return Ok(Proposal::Transfer(Transfer {
                transfer_id: text_id(&id, TransferId::new)?,
                from: end(from)?,
                to: end(to)?,
                quantity,
                signed,
            }));
        }
        ProposalJson::Repair { id, decides, pool, order } => {
            return read_repair((&id, &decides), pool.as_deref(), order.as_deref(), signed);
        }
        ProposalJson::Confirm { order } => (order, OrderAction::Confirm),
        ProposalJson::Release { order } => (order, OrderAction::Release),
        ProposalJson::Extend { order, until } => (order, OrderAction::Extend(Timestamp(until))),
        ProposalJson::Reduce { order, lines } => {
            let keep = |(line, keep)| Keep { line, keep };
            (order, OrderAction::Reduce(lines.into_iter().map(keep).collect()))
        }
        ProposalJson::Refund { order, id, lines, restock, reason } => {
            let line = |(line, quantity)| RefundLine { line, quantity };
            let refund = Refund {
                refund_id: text_id(&id, RefundId::new)?,
                lines: lines.into_iter().map(line).collect(),
                restock,
                reason: reason.into(),
            };
            (order, OrderAction::Refund(refund))
        }
    };
    Ok(Proposal::Order(OrderCommand {
        order: OrderId(unhex(&order)?),
        action,
        signed,
        second: Some(key.clone()),
    }))
}

/// Who it was, from the columns that say so.
fn signed(row: &dyn Row, actor: &str, reason: &str, key: &str) -> Result<Signed, Error> {
    let via = row.text(key)?.map(|key| Arc::new(Via { key: key.into(), request_id: Arc::from("") }));
    Ok(Signed { actor: text(row, actor)?.into(), reason: text(row, reason)?.into(), via })
}

/// Reads a request for a second person.
pub fn approval(row: &dyn Row) -> Result<Approval, Error> {
    let key = ApprovalKey::parse(text(row, "id")?).ok_or_else(|| corrupt("the key of a request"))?;
    let asked = signed(row, "actor", "reason", "actor_key")?;
    let decision = match optional_word(row, "verdict", Verdict::parse)? {
        None => None,
        Some(verdict) => Some(Decided {
            verdict,
            at: optional_time(row, "decided_at")?.ok_or_else(|| corrupt("a decision without a time"))?,
            signed: signed(row, "decider", "decision_reason", "decider_key")?,
        }),
    };
    Ok(Approval {
        campaign: id(row, "campaign_id", CampaignId::new)?,
        proposal: read_proposal(text(row, "proposal")?, &key, asked)?,
        key,
        units: number(row, "units")?,
        asked_at: time(row, "asked_at")?,
        expires_at: time(row, "expires_at")?,
        decision,
    })
}
