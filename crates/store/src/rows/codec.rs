//! Rows to rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::cache::{CacheBucket, Epoch, EpochState, LandingKey};
use holdfast_core::campaign::{
    Campaign, Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd, Switches,
};
use holdfast_core::case::{Case, CaseAction, CaseKind, Resolution};
use holdfast_core::command::{Adjust, AdjustmentKind, Signed, Transfer, TransferEnd};
use holdfast_core::id::{
    Account, AdjustmentId, CampaignId, CaseId, EventId, HashedKey, InvalidId, LimitName, Location, Operator,
    OrderId, OrderKey, OrderNo, PaymentId, PoolId, Provider, Sku, TransferId,
};
use holdfast_core::ledger::{Action, Covers, Entry};
use holdfast_core::limit::{Ceilings, Limited, Limits};
use holdfast_core::order::{Money, Order, PaymentOutcome, Reason, State, Usage};
use holdfast_core::snapshot::{PaymentClaim, PaymentRow, UsageKey};
use holdfast_core::stock::{Bucket, BucketKey, CacheFallback, Delta, Opening, Path, Pool, Routing};
use holdfast_core::time::Timestamp;

use super::{Row, assortment, corrupt, detail, limits};
use crate::acts::{ActId, ActRow};
use crate::cache::Credits;
use crate::error::Error;
use crate::keys::{KeyId, KeyRow, Role, Scope};
use crate::queue::QueuePlace;
use crate::read::{CampaignTotals, DueOrder, LedgerPosition, OpenEnds};

pub(super) fn missing(column: &str) -> Error {
    corrupt(format_args!("column {column} is null"))
}

/// Reads a text that must be there.
pub fn text<'r>(row: &'r dyn Row, column: &str) -> Result<&'r str, Error> {
    row.text(column)?.ok_or_else(|| missing(column))
}

/// Reads a text that must be an identifier.
pub fn id<T>(row: &dyn Row, column: &str, new: fn(&str) -> Result<T, InvalidId>) -> Result<T, Error> {
    new(text(row, column)?).map_err(|error| corrupt(format_args!("column {column} {error}")))
}

/// Reads a word that must be there.
pub fn word<T>(row: &dyn Row, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Error> {
    optional_word(row, column, parse)?.ok_or_else(|| missing(column))
}

pub(super) fn optional_word<T>(
    row: &dyn Row,
    column: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(text) = row.text(column)? else { return Ok(None) };
    parse(text).map(Some).ok_or_else(|| corrupt(format_args!("column {column}: unknown word {text:?}")))
}

/// Reads a number that must be there.
pub fn number<T: TryFrom<i64>>(row: &dyn Row, column: &str) -> Result<T, Error> {
    optional_number(row, column)?.ok_or_else(|| missing(column))
}

pub(super) fn optional_number<T: TryFrom<i64>>(row: &dyn Row, column: &str) -> Result<Option<T>, Error> {
    let value = row.integer(column)?;
    value
        .map(|v| T::try_from(v).map_err(|_| corrupt(format_args!("column {column}: {v} is out of range"))))
        .transpose()
}

pub(super) fn time(row: &dyn Row, column: &str) -> Result<Timestamp, Error> {
    number(row, column).map(Timestamp)
}

pub(super) fn optional_time(row: &dyn Row, column: &str) -> Result<Option<Timestamp>, Error> {
    Ok(row.integer(column)?.map(Timestamp))
}

/// Reads an id that Holdfast made and that must be there.
pub fn number_id(row: &dyn Row, column: &str) -> Result<u128, Error> {
    row.id(column)?.ok_or_else(|| missing(column))
}

/// Reads a campaign.
pub fn campaign(row: &dyn Row) -> Result<Campaign, Error> {
    Ok(Campaign {
        id: id(row, "id", CampaignId::new)?,
        name: text(row, "name")?.to_owned(),
        starts_at: optional_time(row, "starts_at")?,
        ends_at: optional_time(row, "ends_at")?,
        policy: Policy {
            hold_seconds: number(row, "hold_seconds")?,
            hold_seconds_max: number(row, "hold_seconds_max")?,
            payment_extension_seconds: number(row, "payment_extension_seconds")?,
            release_grace_ms: number(row, "release_grace_ms")?,
            notice_grace_seconds: number(row, "notice_grace_seconds")?,
            capture: word(row, "capture", Capture::parse)?,
            deadline_basis: word(row, "deadline_basis", DeadlineBasis::parse)?,
            late_payment: word(row, "late_payment", LatePayment::parse)?,
            payment_failed: word(row, "payment_failed", PaymentFailed::parse)?,
            review_seconds: number(row, "review_seconds")?,
            review_end: word(row, "review_end", ReviewEnd::parse)?,
            restock_on_refund: row.flag("restock_on_refund")?,
            account_limit: optional_number(row, "account_limit")?,
            account_open_holds: optional_number(row, "account_open_holds")?,
            queue_limit: number(row, "queue_limit")?,
            queue_wait_ms: number(row, "queue_wait_ms")?,
            key_limits: limits::read_limits(text(row, "key_limits")?)?,
            order_rate_per_account: optional_number(row, "order_rate_per_account")?,
            order_rate: optional_number(row, "order_rate")?,
            approval_threshold: optional_number(row, "approval_threshold")?,
        },
        switches: Switches {
            opened: row.flag("opened")?,
            paused: row.flag("paused")?,
            frozen: row.flag("frozen")?,
            closed: row.flag("closed")?,
        },
        ceilings: Ceilings {
            account: Limits {
                units: optional_number(row, "account_limit_ceiling")?,
                open_holds: optional_number(row, "account_open_holds_ceiling")?,
            },
            keys: limits::read_limits(text(row, "key_ceilings")?)?,
        },
        assortment: assortment::read_assortment(row.text("assortment")?)?,
        unsold_to: row.id("unsold_to")?.map(PoolId),
        warm_asked_at: optional_time(row, "warm_asked_at")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads a campaign that gives its unsold stock to a pool, and that pool.
pub fn closed_into(row: &dyn Row) -> Result<(CampaignId, PoolId), Error> {
    Ok((id(row, "id", CampaignId::new)?, PoolId(number_id(row, "unsold_to")?)))
}

/// Reads a pool.
pub fn pool(row: &dyn Row) -> Result<Pool, Error> {
    Ok(Pool {
        id: PoolId(number_id(row, "id")?),
        campaign: id(row, "campaign_id", CampaignId::new)?,
        sku: id(row, "sku", Sku::new)?,
        location: id(row, "location", Location::new)?,
        buckets: number(row, "buckets")?,
        opening: Opening {
            supply: number(row, "opening_supply")?,
            buckets: number(row, "opening_buckets")?,
            path: word(row, "opening_path", Path::parse)?,
            routing: word(row, "opening_routing", Routing::parse)?,
        },
        path: word(row, "path", Path::parse)?,
        routing: word(row, "routing", Routing::parse)?,
        max_concurrency: optional_number(row, "max_concurrency")?,
        cache_fallback: word(row, "cache_fallback", CacheFallback::parse)?,
        frozen: row.flag("frozen")?,
        retired: row.flag("retired")?,
    })
}

/// Reads a bucket.
pub fn bucket(row: &dyn Row) -> Result<Bucket, Error> {
    Ok(Bucket {
        key: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "number")? },
        weight: number(row, "weight")?,
        available: number(row, "available")?,
        held: number(row, "held")?,
        sold: number(row, "sold")?,
        ledger_seq: number(row, "ledger_seq")?,
        last_at: time(row, "last_at")?,
    })
}

/// Reads a ledger entry.
pub fn entry(row: &dyn Row) -> Result<Entry, Error> {
    Ok(Entry {
        bucket: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "bucket")? },
        seq: number(row, "seq")?,
        at: time(row, "at")?,
        order_id: row.id("order_id")?.map(OrderId),
        business_no: text(row, "business_no")?.into(),
        action: word(row, "action", Action::parse)?,
        delta: Delta {
            available: number(row, "delta_available")?,
            held: number(row, "delta_held")?,
            sold: number(row, "delta_sold")?,
        },
        settled: number(row, "settled")?,
        from_state: optional_word(row, "from_state", State::parse)?,
        to_state: optional_word(row, "to_state", State::parse)?,
        order_version: optional_number(row, "order_version")?,
        source: text(row, "source")?.into(),
        actor: text(row, "actor")?.into(),
        reason: text(row, "reason")?.into(),
        covers: optional_number(row, "covers_first")?
            .zip(optional_number(row, "covers_last")?)
            .map(|(first, last)| Covers { first, last }),
    })
}

/// Reads where an entry stands.
pub fn position(row: &dyn Row) -> Result<LedgerPosition, Error> {
    let bucket = BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "bucket")? };
    Ok((bucket, number(row, "seq")?))
}

/// Reads an order.
pub fn order(row: &dyn Row) -> Result<Order, Error> {
    let home_pool = row.id("home_pool")?;
    let home_bucket: Option<u32> = optional_number(row, "home_bucket")?;
    let detail = row.text("detail")?.map(detail::read_detail).transpose()?.unwrap_or_default();
    Ok(Order {
        id: OrderId(number_id(row, "id")?),
        key: OrderKey {
            campaign: id(row, "campaign_id", CampaignId::new)?,
            order_no: id(row, "order_no", OrderNo::new)?,
        },
        account: id(row, "account", Account::new)?,
        state: word(row, "state", State::parse)?,
        reason: optional_word(row, "reason", Reason::parse)?,
        version: number(row, "version")?,
        home: home_pool.zip(home_bucket).map(|(pool, number)| BucketKey { pool: PoolId(pool), number }),
        lines: lines(row)?,
        hold_seconds: number(row, "hold_seconds")?,
        hold_seconds_sent: optional_number(row, "hold_seconds_sent")?,
        hold_ends_at: optional_time(row, "hold_ends_at")?,
        due_at: optional_time(row, "due_at")?,
        extended: row.flag("extended")?,
        amount_due: row
            .integer("amount_minor")?
            .zip(row.text("currency")?)
            .map(|(amount_minor, currency)| Money { amount_minor, currency: currency.into() }),
        refund_due: detail.refund_due,
        attempts: detail.attempts,
        payments: detail.payments,
        refunds: detail.refunds,
        shortage: detail.shortage,
        limit_keys: limits::read_keys(row.text("limit_keys")?)?,
        metadata: row.text("metadata")?.map(Arc::from),
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the lines of an order, without the rest of it.
pub fn lines(row: &dyn Row) -> Result<Vec<holdfast_core::order::Line>, Error> {
    detail::read_lines(text(row, "lines")?)
}

/// Reads an order's key.
pub fn order_key(row: &dyn Row) -> Result<OrderKey, Error> {
    Ok(OrderKey {
        campaign: id(row, "campaign_id", CampaignId::new)?,
        order_no: id(row, "order_no", OrderNo::new)?,
    })
}

/// Reads what a scan of overdue orders needs.
pub fn due_order(row: &dyn Row) -> Result<DueOrder, Error> {
    Ok(DueOrder { id: OrderId(number_id(row, "id")?), home: home(row)?, due_at: time(row, "due_at")? })
}

/// Reads where an order stands in its queue.
pub fn queue_place(row: &dyn Row) -> Result<QueuePlace, Error> {
    Ok((time(row, "created_at")?, OrderId(number_id(row, "id")?)))
}

/// Reads the bucket that an order's queue is of.
pub fn home(row: &dyn Row) -> Result<BucketKey, Error> {
    Ok(BucketKey { pool: PoolId(number_id(row, "home_pool")?), number: number(row, "home_bucket")? })
}

/// Reads the cache of a bucket.
pub fn cache_bucket(row: &dyn Row) -> Result<CacheBucket, Error> {
    Ok(CacheBucket {
        key: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "number")? },
        epoch: Epoch(number(row, "epoch")?),
        state: word(row, "state", EpochState::parse)?,
        identity: text(row, "identity")?.into(),
        base_seq: number(row, "base_seq")?,
        base_available: number(row, "base_available")?,
        landed: number(row, "landed")?,
        changed_at: time(row, "changed_at")?,
    })
}

/// Reads what names a landing, and of which order its entry tells.
pub fn landing(row: &dyn Row) -> Result<(LandingKey, Option<OrderId>), Error> {
    let bucket = BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "bucket")? };
    let key = LandingKey::of_source(bucket, text(row, "source")?);
    let key = key.ok_or_else(|| corrupt("the source of a landing"))?;
    Ok((key, row.id("order_id")?.map(OrderId)))
}

/// Reads what entries credit.
pub fn credits(row: &dyn Row) -> Result<Credits, Error> {
    Ok(Credits { to: number(row, "to_seq")?, units: number(row, "units")? })
}

/// Reads when open orders end.
pub fn open_ends(row: &dyn Row) -> Result<OpenEnds, Error> {
    Ok(OpenEnds {
        all: number(row, "open")?,
        within: [
            number(row, "within_0")?,
            number(row, "within_1")?,
            number(row, "within_2")?,
            number(row, "within_3")?,
            number(row, "within_4")?,
        ],
        earliest: optional_time(row, "earliest")?,
    })
}

/// Reads a campaign with the sums of its pools.
pub fn totals(row: &dyn Row) -> Result<CampaignTotals, Error> {
    Ok(CampaignTotals {
        campaign: Arc::new(campaign(row)?),
        pools: number(row, "pools")?,
        available: number(row, "available")?,
        held: number(row, "held")?,
        sold: number(row, "sold")?,
        halted: row.flag("halted")?,
    })
}

/// Reads what an account or a key has.
pub fn usage(row: &dyn Row) -> Result<Usage, Error> {
    Ok(Usage { units: number(row, "units")?, open_holds: number(row, "open_holds")? })
}

/// Reads which account's usage a row is.
pub fn usage_key(row: &dyn Row) -> Result<UsageKey, Error> {
    Ok(UsageKey {
        campaign: id(row, "campaign_id", CampaignId::new)?,
        limited: Limited::Account(id(row, "account", Account::new)?),
    })
}

/// Reads which key's usage a row is.
pub fn key_usage_key(row: &dyn Row) -> Result<UsageKey, Error> {
    let hashed = HashedKey(number_id(row, "hashed")?);
    Ok(UsageKey {
        campaign: id(row, "campaign_id", CampaignId::new)?,
        limited: Limited::Key(id(row, "name", LimitName::new)?, hashed),
    })
}

/// Reads what keys that orders carry are hashed with.
pub fn limit_salt(row: &dyn Row) -> Result<[u8; 32], Error> {
    let salt = row.bytes("salt")?.ok_or_else(|| missing("salt"))?;
    salt.try_into().map_err(|_| corrupt("the salt of the keys"))
}

/// Reads where a provider's event was recorded.
pub fn payment(row: &dyn Row) -> Result<PaymentRow, Error> {
    Ok(PaymentRow {
        provider: id(row, "provider", Provider::new)?,
        event_id: id(row, "event_id", EventId::new)?,
        payment_id: id(row, "payment_id", PaymentId::new)?,
        order: OrderId(number_id(row, "order_id")?),
        outcome: word(row, "outcome", PaymentOutcome::parse)?,
    })
}

/// Reads which order a payment is for.
pub fn claim(row: &dyn Row) -> Result<PaymentClaim, Error> {
    Ok(PaymentClaim {
        provider: id(row, "provider", Provider::new)?,
        payment_id: id(row, "payment_id", PaymentId::new)?,
        order: OrderId(number_id(row, "order_id")?),
    })
}

/// Reads an adjustment.
pub fn adjustment(row: &dyn Row) -> Result<Adjust, Error> {
    Ok(Adjust {
        adjustment_id: id(row, "id", AdjustmentId::new)?,
        pool: PoolId(number_id(row, "pool")?),
        delta: number(row, "delta")?,
        kind: word(row, "kind", AdjustmentKind::parse)?,
        bucket: optional_number(row, "bucket")?,
        signed: Signed::new(id(row, "operator", Operator::new)?.as_str(), text(row, "reason")?),
    })
}

/// Reads a transfer.
pub fn transfer(row: &dyn Row) -> Result<Transfer, Error> {
    let end = |pool, bucket| {
        Ok(TransferEnd { pool: PoolId(number_id(row, pool)?), bucket: optional_number(row, bucket)? })
    };
    Ok(Transfer {
        transfer_id: id(row, "id", TransferId::new)?,
        from: end("from_pool", "from_bucket")?,
        to: end("to_pool", "to_bucket")?,
        quantity: number(row, "quantity")?,
        signed: Signed::new(id(row, "operator", Operator::new)?.as_str(), text(row, "reason")?),
    })
}

/// Reads an act of an operator.
pub fn act(row: &dyn Row) -> Result<ActRow, Error> {
    Ok(ActRow {
        id: ActId(number(row, "id")?),
        at: time(row, "at")?,
        actor: row.text("actor_key")?.unwrap_or_default().to_owned(),
        operator: match text(row, "operator")? {
            "" => None,
            _ => Some(id(row, "operator", Operator::new)?),
        },
        action: text(row, "action")?.to_owned(),
        subject: text(row, "subject")?.to_owned(),
        campaign: match row.text("campaign_id")? {
            None => None,
            Some(_) => Some(id(row, "campaign_id", CampaignId::new)?),
        },
        reason: text(row, "reason")?.to_owned(),
        detail: text(row, "detail")?.to_owned(),
        request_id: row.text("request_id")?.map(str::to_owned),
    })
}

/// Reads a case.
pub fn case(row: &dyn Row) -> Result<Case, Error> {
    let mut case = Case::open(
        CaseId(number_id(row, "id")?),
        word(row, "kind", CaseKind::parse)?,
        text(row, "evidence")?.into(),
        time(row, "opened_at")?,
    );
    case.pool = row.id("pool")?.map(PoolId);
    case.order = row.id("order_id")?.map(OrderId);
    if let Some(action) = optional_word(row, "action", CaseAction::parse)? {
        case.resolution = Some(Resolution {
            action,
            operator: id(row, "operator", Operator::new)?,
            reason: text(row, "reason")?.into(),
            at: time(row, "decided_at")?,
        });
    }
    Ok(case)
}

/// Reads a key.
pub fn key(row: &dyn Row) -> Result<KeyRow, Error> {
    let secret = row.bytes("secret_sha256")?.ok_or_else(|| missing("secret_sha256"))?;
    Ok(KeyRow {
        id: KeyId::new(text(row, "id")?).ok_or_else(|| corrupt("a key's id"))?,
        name: text(row, "name")?.to_owned(),
        role: word(row, "role", Role::parse)?,
        scope: row.text("campaigns")?.map_or(Ok(Scope::All), scope_of)?,
        secret_sha256: secret.try_into().map_err(|_| corrupt("the hash of a key"))?,
        created_at: time(row, "created_at")?,
        expires_at: optional_time(row, "expires_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
        created_by: text(row, "created_by")?.into(),
    })
}

/// The campaigns of a scope as stored: a JSON array; none for all.
pub fn write_scope(scope: &Scope) -> Result<Option<String>, Error> {
    let Some(campaigns) = scope.campaigns() else { return Ok(None) };
    let names: Vec<&str> = campaigns.iter().map(CampaignId::as_str).collect();
    serde_json::to_string(&names).map(Some).map_err(|error| Error::Data(error.to_string()))
}

fn scope_of(text: &str) -> Result<Scope, Error> {
    let names: Vec<String> = serde_json::from_str(text).map_err(|_| corrupt("the campaigns of a key"))?;
    let campaigns: Result<BTreeSet<_>, _> = names.iter().map(|name| CampaignId::new(name)).collect();
    Ok(Scope::Only(Arc::new(campaigns.map_err(|_| corrupt("a campaign of a key"))?)))
}
