//! Payments: what providers told, and which order each payment is for.

use holdfast_core::snapshot::{Changes, Needs, Snapshot};
use holdfast_store::{Error, rows};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::apply::column;
use crate::flight::Flight;
use crate::load::texts;
use crate::row::{all, uuid};
use crate::statement::Sql;

static EVENTS: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2) AS wanted (provider, event_id), LATERAL (SELECT * FROM payment \
     WHERE payment.provider = wanted.provider AND payment.event_id = wanted.event_id LIMIT 1) AS found",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
);
/// Batches of other buckets share no lock with this one. What one of them claims meanwhile is met at the key, and the
/// batch runs again.
static CLAIMS: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2) AS wanted (provider, payment_id), LATERAL (SELECT * FROM payment_claim \
     WHERE payment_claim.provider = wanted.provider AND payment_claim.payment_id = wanted.payment_id LIMIT 1) AS found",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
);
static INSERT_PAYMENTS: Sql = Sql::new(
    "INSERT INTO payment (provider, event_id, payment_id, order_id, outcome) \
     SELECT * FROM UNNEST($1, $2, $3, $4, $5)",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::TEXT_ARRAY],
);
static INSERT_CLAIMS: Sql = Sql::new(
    "INSERT INTO payment_claim (provider, payment_id, order_id) SELECT * FROM UNNEST($1, $2, $3)",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY],
);

/// What batches with notices ask and write.
pub(crate) static HOT: &[&Sql] = &[&EVENTS, &CLAIMS, &INSERT_PAYMENTS, &INSERT_CLAIMS];

/// Asks which events are known, and which orders payments are for; where the answers will stand.
pub(crate) fn ask<'b>(flight: &mut Flight<'b>, needs: &Needs<'b>) -> (Option<usize>, Option<usize>) {
    let (events, payments) = (&needs.events, &needs.payments);
    let known = (!events.is_empty()).then(|| {
        let providers = texts(events.iter().map(|(provider, _)| provider.as_str()));
        flight.add(&EVENTS, vec![providers, texts(events.iter().map(|(_, event)| event.as_str()))])
    });
    let claims = (!payments.is_empty()).then(|| {
        let providers = texts(payments.iter().map(|(provider, _)| provider.as_str()));
        flight.add(&CLAIMS, vec![providers, texts(payments.iter().map(|(_, payment)| payment.as_str()))])
    });
    (known, claims)
}

/// Takes the answers.
pub(crate) fn take(events: &[Row], claims: &[Row], into: &mut Snapshot) -> Result<(), Error> {
    for payment in all(events, rows::payment)? {
        into.events.insert((payment.provider, payment.event_id), payment.order);
    }
    for claim in all(claims, rows::claim)? {
        into.claims.insert((claim.provider, claim.payment_id), claim.order);
    }
    Ok(())
}

/// Writes what is new.
pub(crate) fn add<'f>(flight: &mut Flight<'f>, changes: &'f Changes) {
    let payments = &changes.payments;
    if !payments.is_empty() {
        let params = vec![
            column(payments, |row| row.provider.as_str()),
            column(payments, |row| row.event_id.as_str()),
            column(payments, |row| row.payment_id.as_str()),
            column(payments, |row| uuid(row.order.0)),
            column(payments, |row| row.outcome.as_str()),
        ];
        flight.add(&INSERT_PAYMENTS, params);
    }
    // In the order of their keys: two batches with the same payments wait for each other once.
    let claims = &changes.claims;
    if !claims.is_empty() {
        let orders: Vec<_> = claims.iter().map(|claim| uuid(claim.order.0)).collect();
        let params = vec![
            texts(claims.iter().map(|claim| claim.provider.as_str())),
            texts(claims.iter().map(|claim| claim.payment_id.as_str())),
            Box::new(orders),
        ];
        flight.add(&INSERT_CLAIMS, params);
    }
}
