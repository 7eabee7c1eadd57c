//! Bare statements: what the database alone can do with the rows of a hold, and with one row. It is the yardstick
//! of `holdfast bench`, not a way in: it works on rows of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_store::{BareHold, Error};
use tokio::task::JoinSet;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use crate::address::Address;
use crate::error::Driver;
use crate::row::uuid;
use crate::store::{Options, PostgresStore};
use crate::tls;

const ORDERS: &str = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, home_bucket, \
    lines, hold_seconds, hold_ends_at, due_at, extended, created_at, updated_at) \
    SELECT id, 'bench', order_no, account, 'held', 1, $4, 0, $5, 900, $6, $6, false, $6, $6 \
    FROM UNNEST($1, $2, $3) AS new (id, order_no, account)";
const ENTRIES: &str = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
    delta_held, delta_sold, settled, to_state, order_version, source, actor, reason) \
    SELECT $4, 0, seq, $5, order_id, order_no, 'place', -1, 1, 0, 0, 'held', 1, 'place', 'buyer', '' \
    FROM UNNEST($1, $2, $3) AS new (seq, order_id, order_no)";
const BUCKET: &str = "UPDATE bucket SET available = available - $2, held = held + $2, ledger_seq = $3 WHERE pool = $1 AND number = 0";
const TAKE: &str = "UPDATE bucket SET available = available - 1, held = held + 1 WHERE pool = $1 AND number = 0 AND available >= 1";

/// Rows of its own in the store's tables, written by one connection without any decision.
pub struct BareTables {
    client: Client,
    orders: Statement,
    entries: Statement,
    bucket: Statement,
    pool: u128,
    seq: i64,
}

async fn connect(address: &Address) -> Result<Client, Error> {
    let (client, connection) = address.config.connect(tls::connector(&address.trust)?).await.store()?;
    // It ends with its client; what went wrong the client is told.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

impl BareTables {
    /// Makes the schema if it is not there, and a bucket that has enough; `pool` must be new.
    pub async fn create(address: &Address, pool: u128) -> Result<Self, Error> {
        drop(Box::pin(PostgresStore::open(address, Options::default())).await?);
        let client = connect(address).await?;
        let sql = "INSERT INTO bucket (pool, number, weight, available, held, sold, ledger_seq, last_at) \
                   VALUES ($1, 0, 1, 1000000000, 0, 0, 0, 0)";
        client.execute_typed(sql, &[(&uuid(pool), Type::UUID)]).await.store()?;
        let arrays =
            [Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID, Type::TEXT, Type::INT8];
        let orders = client.prepare_typed(ORDERS, &arrays).await.store()?;
        let arrays = [Type::INT8_ARRAY, Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::UUID, Type::INT8];
        let entries = client.prepare_typed(ENTRIES, &arrays).await.store()?;
        let bucket = client.prepare_typed(BUCKET, &[Type::UUID, Type::INT8, Type::INT8]).await.store()?;
        Ok(Self { client, orders, entries, bucket, pool, seq: 0 })
    }

    /// The server and its version; what a commit promises there.
    pub async fn describe(address: &Address) -> Result<(String, String), Error> {
        let client = connect(address).await?;
        let sql = "SELECT current_setting('server_version'), current_setting('fsync'), \
                   current_setting('synchronous_commit'), current_setting('full_page_writes')";
        let row = client.query_typed_one(sql, &[]).await.store()?;
        let text = |column: usize| row.try_get::<_, String>(column).store();
        let durability = format!(
            "fsync {}, synchronous_commit {}, full_page_writes {}: a flush before every answer",
            text(1)?,
            text(2)?,
            text(3)?
        );
        Ok((format!("PostgreSQL {}", text(0)?), durability))
    }

    /// Writes the holds in one transaction, flushed; how long that took.
    pub async fn insert(&mut self, holds: &[BareHold], now: i64) -> Result<Duration, Error> {
        let start = Instant::now();
        let pool = uuid(self.pool);
        let lines = format!(
            r#"[{{"sku":"CUP","pool":"{:032x}","quantity":1,"allocations":[{{"bucket":0,"quantity":1}}]}}]"#,
            self.pool
        );
        let count = i64::try_from(holds.len()).unwrap_or(i64::MAX);
        let ids: Vec<_> = holds.iter().map(|hold| uuid(hold.id)).collect();
        let numbers: Vec<&str> = holds.iter().map(|hold| hold.order_no.as_str()).collect();
        let accounts: Vec<&str> = holds.iter().map(|hold| hold.account.as_str()).collect();
        let seqs: Vec<i64> = (self.seq + 1..=self.seq + count).collect();
        self.seq += count;
        let transaction = self.client.transaction().await.store()?;
        transaction.execute(&self.orders, &[&ids, &numbers, &accounts, &pool, &lines, &now]).await.store()?;
        transaction.execute(&self.entries, &[&seqs, &ids, &numbers, &pool, &now]).await.store()?;
        transaction.execute(&self.bucket, &[&pool, &count, &self.seq]).await.store()?;
        transaction.commit().await.store()?;
        Ok(start.elapsed())
    }

    /// Conditional updates of the one row a second, each a transaction by itself, over so many connections: what
    /// one row gives where nothing is batched.
    pub async fn one_row_tps(
        &self,
        address: &Address,
        connections: usize,
        duration: Duration,
    ) -> Result<f64, Error> {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = connect(address).await?;
            let take = client.prepare_typed(TAKE, &[Type::UUID]).await.store()?;
            clients.push((client, take));
        }
        let (pool, start) = (Arc::new(uuid(self.pool)), Instant::now());
        let mut takers = JoinSet::new();
        for (client, take) in clients {
            let pool = Arc::clone(&pool);
            takers.spawn(async move {
                let mut taken = 0_u32;
                while start.elapsed() < duration {
                    taken += u32::try_from(client.execute(&take, &[&*pool]).await.store()?).unwrap_or(0);
                }
                Ok::<_, Error>(taken)
            });
        }
        let mut taken = 0.0;
        while let Some(done) = takers.join_next().await {
            taken += f64::from(done.map_err(|_| Error::Unavailable("a taker panicked".into()))??);
        }
        Ok(taken / start.elapsed().as_secs_f64())
    }
}
