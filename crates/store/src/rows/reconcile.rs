//! Rows of reconciliation. What was proved is JSON inside the row.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::id::{Account, CampaignId, DiscrepancyId, HashedKey, LimitName, OrderId, PoolId, RunId};
use holdfast_core::ledger::Covers;
use holdfast_core::limit::Limited;
use holdfast_core::order::State;
use holdfast_core::reconcile::{
    Class, Discrepancy, DiscrepancyState, Disposition, Finding, LedgerSums, LostEvent, PoolFacts, Proof,
    Range, RunScope, RunState, Stands,
};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::stock::{BucketKey, Delta};
use serde::{Deserialize, Serialize};

use super::codec::{bucket, number, number_id, optional_number, optional_time, text, time, word};
use super::detail::{id as text_id, json, parse};
use super::{Row, corrupt};
use crate::error::Error;
use crate::reconcile::{BucketHead, Checkpoint, Run};

/// (available, held, sold)
type DeltaJson = (i64, i64, i64);
/// (pool, number)
type BucketJson = (String, u32);

#[derive(Serialize, Deserialize)]
#[serde(tag = "proof", rename_all = "snake_case")]
enum ProofJson {
    Balance {
        bucket: BucketJson,
        difference: DeltaJson,
    },
    Entries {
        bucket: BucketJson,
        covers: (u64, u64),
        delta: DeltaJson,
        event: Option<EventJson>,
        half_of: Option<String>,
    },
    Alone {
        deltas: Vec<(BucketJson, DeltaJson)>,
        covers: Option<(u64, u64)>,
        order: Option<String>,
    },
    Order {
        order: String,
        seen: u32,
        stands: Option<StandsJson>,
    },
    Usage {
        campaign: String,
        account: Option<String>,
        key: Option<(String, String)>,
        units: i64,
        open_holds: i64,
    },
    Seen,
}

#[derive(Serialize, Deserialize)]
struct EventJson {
    order: String,
    version: Option<u32>,
    from: Option<String>,
    to: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StandsJson {
    state: String,
    version: u32,
    units: Vec<(BucketJson, u64)>,
}

fn hex(id: u128) -> String {
    format!("{id:032x}")
}

fn unhex(text: &str) -> Result<u128, Error> {
    u128::from_str_radix(text, 16).map_err(|_| corrupt(format_args!("not an id: {text:?}")))
}

fn write_bucket(bucket: BucketKey) -> BucketJson {
    (hex(bucket.pool.0), bucket.number)
}

fn read_bucket((pool, number): BucketJson) -> Result<BucketKey, Error> {
    Ok(BucketKey { pool: PoolId(unhex(&pool)?), number })
}

const fn write_delta(delta: Delta) -> DeltaJson {
    (delta.available, delta.held, delta.sold)
}

const fn read_delta((available, held, sold): DeltaJson) -> Delta {
    Delta { available, held, sold }
}

fn read_state(text: Option<&str>) -> Result<Option<State>, Error> {
    text.map(|text| State::parse(text).ok_or_else(|| corrupt(format_args!("no state: {text:?}")))).transpose()
}

/// What was proved, as stored.
pub fn write_proof(proof: &Proof) -> Result<String, Error> {
    let covers = |covers: &Covers| (covers.first, covers.last);
    json(&match proof {
        Proof::Balance { bucket, difference } => {
            ProofJson::Balance { bucket: write_bucket(*bucket), difference: write_delta(*difference) }
        }
        Proof::Entries { bucket, covers: covered, delta, event, half_of } => ProofJson::Entries {
            half_of: half_of.as_deref().map(str::to_owned),
            bucket: write_bucket(*bucket),
            covers: covers(covered),
            delta: write_delta(*delta),
            event: event.map(|event| EventJson {
                order: hex(event.order.0),
                version: event.version,
                from: event.from.map(|state| state.as_str().to_owned()),
                to: event.to.map(|state| state.as_str().to_owned()),
            }),
        },
        Proof::Alone { deltas, covers: covered, order } => ProofJson::Alone {
            deltas: deltas.iter().map(|(b, delta)| (write_bucket(*b), write_delta(*delta))).collect(),
            covers: covered.as_ref().map(covers),
            order: order.map(|order| hex(order.0)),
        },
        Proof::Order { order, seen, stands } => ProofJson::Order {
            order: hex(order.0),
            seen: *seen,
            stands: stands.as_ref().map(|stands| StandsJson {
                state: stands.state.as_str().to_owned(),
                version: stands.version,
                units: stands.units.iter().map(|(b, units)| (write_bucket(*b), *units)).collect(),
            }),
        },
        Proof::Usage { key, units, open_holds } => {
            let (account, limit_key) = match &key.limited {
                Limited::Account(account) => (Some(account.to_string()), None),
                Limited::Key(name, hashed) => (None, Some((name.to_string(), hex(hashed.0)))),
            };
            let campaign = key.campaign.to_string();
            ProofJson::Usage { campaign, account, key: limit_key, units: *units, open_holds: *open_holds }
        }
        Proof::Seen => ProofJson::Seen,
    })
}

fn read_proof(text: &str) -> Result<Proof, Error> {
    let covers = |(first, last): (u64, u64)| Covers { first, last };
    Ok(match parse(text)? {
        ProofJson::Balance { bucket, difference } => {
            Proof::Balance { bucket: read_bucket(bucket)?, difference: read_delta(difference) }
        }
        ProofJson::Entries { bucket, covers: covered, delta, event, half_of } => Proof::Entries {
            half_of: half_of.map(Arc::from),
            bucket: read_bucket(bucket)?,
            covers: covers(covered),
            delta: read_delta(delta),
            event: event.map(read_event).transpose()?,
        },
        ProofJson::Alone { deltas, covers: covered, order } => Proof::Alone {
            deltas: deltas
                .into_iter()
                .map(|(b, delta)| Ok((read_bucket(b)?, read_delta(delta))))
                .collect::<Result<_, Error>>()?,
            covers: covered.map(covers),
            order: order.map(|order| unhex(&order).map(OrderId)).transpose()?,
        },
        ProofJson::Order { order, seen, stands } => Proof::Order {
            order: OrderId(unhex(&order)?),
            seen,
            stands: stands.map(read_stands).transpose()?,
        },
        ProofJson::Usage { campaign, account, key, units, open_holds } => {
            let limited = match (account, key) {
                (Some(account), _) => Limited::Account(text_id(&account, Account::new)?),
                (None, Some((name, hashed))) => {
                    Limited::Key(text_id(&name, LimitName::new)?, HashedKey(unhex(&hashed)?))
                }
                (None, None) => return Err(corrupt("a usage of nobody")),
            };
            let key = UsageKey { campaign: text_id(&campaign, CampaignId::new)?, limited };
            Proof::Usage { key, units, open_holds }
        }
        ProofJson::Seen => Proof::Seen,
    })
}

fn read_event(event: EventJson) -> Result<LostEvent, Error> {
    Ok(LostEvent {
        order: OrderId(unhex(&event.order)?),
        version: event.version,
        from: read_state(event.from.as_deref())?,
        to: read_state(event.to.as_deref())?,
    })
}

fn read_stands(stands: StandsJson) -> Result<Stands, Error> {
    let state = read_state(Some(&stands.state))?.ok_or_else(|| corrupt("a state"))?;
    let units = stands.units.into_iter().map(|(b, units)| Ok((read_bucket(b)?, units)));
    Ok(Stands { state, version: stands.version, units: units.collect::<Result<_, Error>>()? })
}

/// What a run found, as stored.
pub fn write_found(found: &BTreeMap<Class, u64>) -> Result<String, Error> {
    json(&found.iter().map(|(class, count)| (class.as_str(), *count)).collect::<BTreeMap<_, _>>())
}

/// Reads a run.
pub fn run(row: &dyn Row) -> Result<Run, Error> {
    let found: BTreeMap<String, u64> = parse(text(row, "found")?)?;
    let class = |(word, count): (String, u64)| {
        Class::parse(&word)
            .map(|class| (class, count))
            .ok_or_else(|| corrupt(format_args!("no class: {word:?}")))
    };
    Ok(Run {
        id: RunId(number_id(row, "id")?),
        scope: word(row, "scope", RunScope::parse)?,
        state: word(row, "state", RunState::parse)?,
        asked_by: text(row, "asked_by")?.into(),
        started_at: time(row, "started_at")?,
        finished_at: optional_time(row, "finished_at")?,
        buckets_read: number(row, "buckets_read")?,
        entries_read: number(row, "entries_read")?,
        orders_read: number(row, "orders_read")?,
        found: found.into_iter().map(class).collect::<Result<_, Error>>()?,
        failure: row.text("failure")?.map(Arc::from),
        attempts: number(row, "attempts")?,
    })
}

/// Reads a difference.
pub fn discrepancy(row: &dyn Row) -> Result<Discrepancy, Error> {
    let pool = row.id("pool")?.map(PoolId);
    let place: Option<u32> = optional_number(row, "bucket")?;
    Ok(Discrepancy {
        id: DiscrepancyId(number_id(row, "id")?),
        found: Finding {
            class: word(row, "class", Class::parse)?,
            pool,
            bucket: pool.zip(place).map(|(pool, number)| BucketKey { pool, number }),
            order: row.id("order_id")?.map(OrderId),
            position: number(row, "position")?,
            proof: read_proof(text(row, "proof")?)?,
            expected: text(row, "expected")?.into(),
            actual: text(row, "actual")?.into(),
            evidence: text(row, "evidence")?.into(),
        },
        first_seen_at: time(row, "first_seen_at")?,
        last_seen_at: time(row, "last_seen_at")?,
        cycles: number(row, "cycles")?,
        disposition: word(row, "disposition", Disposition::parse)?,
        state: word(row, "state", DiscrepancyState::parse)?,
    })
}

/// Reads the sums of entries.
pub fn sums(row: &dyn Row) -> Result<LedgerSums, Error> {
    Ok(LedgerSums {
        to: number(row, "to_seq")?,
        entries: number(row, "entries")?,
        delta: Delta {
            available: number(row, "available_sum")?,
            held: number(row, "held_sum")?,
            sold: number(row, "sold_sum")?,
        },
        unowned: (number(row, "unowned_held")?, number(row, "unowned_sold")?),
        moves: number(row, "moves")?,
        supplies: number(row, "supplies")?,
        covering: number(row, "covering")?,
    })
}

/// Reads a bucket with the end of its ledger and what was proved of it.
pub fn bucket_head(row: &dyn Row) -> Result<BucketHead, Error> {
    let row_of = bucket(row)?;
    let proved = match row.integer("to_seq")? {
        None => None,
        Some(_) => Some(Checkpoint { bucket: row_of.key, sums: sums(row)? }),
    };
    Ok(BucketHead {
        row: row_of,
        last_seq: optional_number(row, "last_seq")?.unwrap_or(0),
        frozen: row.flag("frozen")?,
        proved,
    })
}

/// Reads a range of numbers.
pub fn range(row: &dyn Row) -> Result<Range, Error> {
    Ok(Covers { first: number(row, "first_seq")?, last: number(row, "last_seq")? })
}

/// Reads a pool that has other buckets than it says.
pub fn odd_pool(row: &dyn Row) -> Result<PoolFacts, Error> {
    Ok(PoolFacts {
        pool: PoolId(number_id(row, "id")?),
        buckets: number(row, "buckets")?,
        rows: number(row, "bucket_rows")?,
    })
}
