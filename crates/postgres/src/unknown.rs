//! What became of a COMMIT whose answer was lost. The old connection's transaction may still be running, so the
//! batch's buckets are locked first, which waits for its end; only then is *absent* a fact.

use std::time::{Duration, Instant};

use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::snapshot::{Changes, LockSet, PaymentRow};
use holdfast_store::{Error, rows};
use tokio_postgres::types::Type;

use crate::connection::{Connection, Mode};
use crate::error::{Driver, Fault, of_driver};
use crate::load;
use crate::row::{first, uuid};
use crate::statement::Sql;
use crate::store::Inner;

/// How long it is tried to learn an outcome before it is called unknown.
const DEADLINE: Duration = Duration::from_secs(10);

static ENTRY: Sql = Sql::new(
    "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq = $3",
    &[Type::UUID, Type::INT4, Type::INT8],
);
static PAYMENT: Sql =
    Sql::new("SELECT * FROM payment WHERE provider = $1 AND event_id = $2", &[Type::TEXT, Type::TEXT]);

/// One row that is there if, and only if, the batch was committed: all of it is in one transaction.
pub(crate) enum Evidence {
    /// The first entry in a locked bucket; if somebody else came first, it is another entry.
    Entry(Box<Entry>),
    /// A recorded refusal.
    Order(OrderId),
    /// A notice that changed nothing but is kept.
    Payment(PaymentRow),
    /// Nothing that would be missed: trying again finds what there is.
    Nothing,
}

impl Evidence {
    /// What to look for.
    pub(crate) fn of(changes: &Changes) -> Self {
        // An entry of a new pool has no locked bucket: the pool's own key tells.
        let locked = changes.buckets.iter().filter(|change| change.base_seq.is_some());
        let keys: Vec<_> = locked.map(|change| change.bucket.key).collect();
        if let Some(entry) = changes.entries.iter().find(|entry| keys.contains(&entry.bucket)) {
            return Self::Entry(Box::new(entry.clone()));
        }
        if let Some(new) = changes.orders.iter().find(|change| change.base_version.is_none()) {
            return Self::Order(new.order.id);
        }
        changes.payments.first().map_or(Self::Nothing, |payment| Self::Payment(payment.clone()))
    }

    async fn is_there(&self, connection: &Connection) -> Result<bool, Fault> {
        let fault = |error: tokio_postgres::Error| of_driver(&error);
        match self {
            Self::Entry(entry) => {
                let number = i32::try_from(entry.bucket.number).unwrap_or(i32::MAX);
                let seq = rows::integer(entry.seq).map_err(Fault::Refused)?;
                let found = connection
                    .rows(&ENTRY, &[&uuid(entry.bucket.pool.0), &number, &seq])
                    .await
                    .map_err(fault)?;
                let found = first(&found, rows::entry).map_err(Fault::Refused)?;
                Ok(found.is_some_and(|found| found == **entry))
            }
            Self::Order(id) => load::order_is_there(connection, *id).await.map_err(fault),
            Self::Payment(row) => {
                let (provider, event) = (row.provider.as_str(), row.event_id.as_str());
                let found = connection.rows(&PAYMENT, &[&provider, &event]).await.map_err(fault)?;
                let found = first(&found, rows::payment).map_err(Fault::Refused)?;
                Ok(found.is_some_and(|found| found == *row))
            }
            Self::Nothing => Ok(false),
        }
    }
}

/// Whether the batch was committed. Past the deadline nobody knows.
pub(crate) async fn was_committed(
    inner: &Inner,
    locks: &LockSet,
    evidence: &Evidence,
    why: &str,
) -> Result<bool, Error> {
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        match look(inner, locks, evidence).await {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!(%error, "the outcome of a commit is still unknown"),
        }
        if begun.elapsed() >= DEADLINE {
            return Err(Error::OutcomeUnknown(why.to_owned()));
        }
        tries += 1;
        inner.backoff(tries).await;
    }
}

async fn look(inner: &Inner, locks: &LockSet, evidence: &Evidence) -> Result<bool, Error> {
    // A connection that can be had has committed something of its own: what it sees is safe.
    let connection = inner.pools.writer().await?;
    connection.begin(Mode::Write).await.store()?;
    let found = async {
        load::lock(&connection, locks).await?;
        evidence.is_there(&connection).await
    };
    let found = found.await;
    connection.rollback().await;
    found.map_err(Fault::into_error)
}
