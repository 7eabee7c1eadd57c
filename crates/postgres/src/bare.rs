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
const DIRECT_BUCKET: &str = "UPDATE bucket SET available = available - 1, held = held + 1, ledger_seq = ledger_seq + 1 \
    WHERE pool = $1 AND number = $2 AND available >= 1 RETURNING ledger_seq";
const DIRECT_ORDER: &str = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, \
    home_bucket, lines, hold_seconds, hold_ends_at, due_at, extended, created_at, updated_at) \
    VALUES ($1, 'bench', $2, $3, 'held', 1, $4, $5, '[]', 900, 1, 1, false, 1, 1)";
const DIRECT_ENTRY: &str = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
    delta_held, delta_sold, settled, to_state, order_version, source, actor, reason) \
    VALUES ($1, $2, $3, 1, $4, $5, 'place', -1, 1, 0, 0, 'held', 1, 'place', 'buyer', '')";
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

pub(crate) async fn connect(address: &Address) -> Result<Client, Error> {
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
        rate(takers, start).await
    }

    /// Holds a second, each a transaction by itself as an application would write it (begin, take from the row, the
    /// order, the entry, commit), over so many connections that take from so many rows in turn.
    pub async fn direct_tps(
        &self,
        address: &Address,
        connections: usize,
        rows: i32,
        holds: Vec<BareHold>,
        duration: Duration,
    ) -> Result<f64, Error> {
        let sql = "INSERT INTO bucket (pool, number, weight, available, held, sold, ledger_seq, last_at) \
                   SELECT $1, number, 1, 1000000000, 0, 0, 1000000000, 0 FROM generate_series(1, $2) AS number \
                   ON CONFLICT DO NOTHING";
        let types = [(&uuid(self.pool) as _, Type::UUID), (&rows as _, Type::INT4)];
        self.client.execute_typed(sql, &types).await.store()?;
        let shares = holds.len().div_ceil(connections.max(1));
        let mut direct = Vec::new();
        for (number, share) in (0_i32..).zip(holds.chunks(shares.max(1))) {
            let bucket = 1 + number % rows.max(1);
            direct.push((Direct::connect(address, self.pool, bucket).await?, share.to_vec()));
        }
        let (start, mut takers) = (Instant::now(), JoinSet::new());
        for (mut direct, holds) in direct {
            takers.spawn(async move {
                let mut taken = 0_u32;
                for hold in holds {
                    if start.elapsed() >= duration {
                        break;
                    }
                    direct.hold(&hold).await.store()?;
                    taken += 1;
                }
                Ok(taken)
            });
        }
        rate(takers, start).await
    }

    /// How many bytes the server has ever written to its log.
    pub async fn log_bytes(address: &Address) -> Result<i64, Error> {
        let sql = "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)";
        connect(address).await?.query_typed_one(sql, &[]).await.store()?.try_get(0).store()
    }
}

/// Waits for all; how many a second they did.
async fn rate(mut takers: JoinSet<Result<u32, Error>>, start: Instant) -> Result<f64, Error> {
    let mut taken = 0.0;
    while let Some(done) = takers.join_next().await {
        taken += f64::from(done.map_err(|_| Error::Unavailable("a taker panicked".into()))??);
    }
    Ok(taken / start.elapsed().as_secs_f64())
}

/// A connection that holds one unit a transaction.
struct Direct {
    client: Client,
    bucket: Statement,
    order: Statement,
    entry: Statement,
    pool: u128,
    number: i32,
}

impl Direct {
    async fn connect(address: &Address, pool: u128, number: i32) -> Result<Self, Error> {
        let client = connect(address).await?;
        let bucket = client.prepare_typed(DIRECT_BUCKET, &[Type::UUID, Type::INT4]).await.store()?;
        let types = [Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::INT4];
        let order = client.prepare_typed(DIRECT_ORDER, &types).await.store()?;
        let types = [Type::UUID, Type::INT4, Type::INT8, Type::UUID, Type::TEXT];
        let entry = client.prepare_typed(DIRECT_ENTRY, &types).await.store()?;
        Ok(Self { client, bucket, order, entry, pool, number })
    }

    async fn hold(&mut self, hold: &BareHold) -> Result<(), tokio_postgres::Error> {
        let (pool, id) = (uuid(self.pool), uuid(hold.id));
        let transaction = self.client.transaction().await?;
        let seq: i64 = transaction.query_one(&self.bucket, &[&pool, &self.number]).await?.try_get(0)?;
        let order: [crate::connection::Param<'_>; 5] =
            [&id, &hold.order_no, &hold.account, &pool, &self.number];
        transaction.execute(&self.order, &order).await?;
        transaction.execute(&self.entry, &[&pool, &self.number, &seq, &id, &hold.order_no]).await?;
        transaction.commit().await
    }
}
