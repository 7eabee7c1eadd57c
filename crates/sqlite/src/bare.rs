//! Bare inserts: what the database alone can do with the rows of a hold. It is the yardstick of
//! `holdfast bench`, not a way in: it works on a database of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_store::{BareHold, Error};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::{migrate, store};

/// Tables like the store's, written by one thread without any decision.
pub struct BareTables {
    db: Connection,
    seq: i64,
}

const POOL: [u8; 16] = [7; 16];
const ORDER: &str = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, home_bucket, \
    lines, hold_seconds, hold_ends_at, due_at, extended, created_at, updated_at) \
    VALUES (?1, 'bench', ?2, ?3, 'held', 1, ?4, 0, ?5, 900, ?6, ?6, 0, ?6, ?6)";
const ENTRY: &str = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
    delta_held, delta_sold, to_state, order_version, source, actor, reason) \
    VALUES (?1, 0, ?2, ?3, ?4, ?5, 'place', -1, 1, 0, 'held', 1, 'place', 'buyer', '')";
const BUCKET: &str =
    "UPDATE bucket SET available = available - ?2, held = held + ?2, ledger_seq = ?3 WHERE pool = ?1";
const LINES: &str = r#"[{"sku":"CUP","pool":"07070707070707070707070707070707","quantity":1,"allocations":[{"bucket":0,"quantity":1}]}]"#;

impl BareTables {
    /// Makes the tables in a new file, with the store's own settings.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let mut db = store::connect(path, 4_000)?;
        migrate::run(&mut db)?;
        db.execute(
            "INSERT INTO bucket (pool, number, weight, available, held, sold, ledger_seq, last_at) \
             VALUES (?1, 0, 1, 1000000000, 0, 0, 0, 0)",
            params![POOL],
        )
        .store()?;
        Ok(Self { db, seq: 0 })
    }

    /// Takes one unit, flushed, if there is one: one statement that is a transaction by itself.
    pub fn take_one(&mut self) -> Result<(), Error> {
        let sql =
            "UPDATE bucket SET available = available - 1, held = held + 1 WHERE pool = ?1 AND available >= 1";
        if self.db.prepare_cached(sql).store()?.execute(params![POOL]).store()? != 1 {
            return Err(Error::Corrupt("the bare row has nothing left".into()));
        }
        Ok(())
    }

    /// Writes the holds in one transaction, flushed; how long that took.
    pub fn insert(&mut self, holds: &[BareHold], now: i64) -> Result<Duration, Error> {
        let start = Instant::now();
        self.db.execute_batch("BEGIN IMMEDIATE").store()?;
        for hold in holds {
            self.seq += 1;
            let mut order = self.db.prepare_cached(ORDER).store()?;
            order.execute(params![bytes(hold.id), hold.order_no, hold.account, POOL, LINES, now]).store()?;
            let mut entry = self.db.prepare_cached(ENTRY).store()?;
            entry.execute(params![POOL, self.seq, now, bytes(hold.id), hold.order_no]).store()?;
        }
        let count = i64::try_from(holds.len()).unwrap_or(i64::MAX);
        self.db.prepare_cached(BUCKET).store()?.execute(params![POOL, count, self.seq]).store()?;
        self.db.execute_batch("COMMIT").store()?;
        Ok(start.elapsed())
    }
}
