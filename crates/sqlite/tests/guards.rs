//! What the database itself forbids, and how it is opened.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;

use holdfast_sqlite::{Options, SqliteStore, audit_file};
use holdfast_store::{Batch, Error, PutCampaign, Store};
use rusqlite::Connection;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Command, OpenPool, Outcome, Place, PlaceLine, Signed};
use holdfast_core::id::*;
use holdfast_core::invariant::Invariant;
use holdfast_core::limit::LimitKeys;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{self, BucketKey};
use holdfast_store::SwitchCampaign;

fn open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, Options::default())
}

/// A sale with one pool of 10 units, of which one order holds 3.
async fn sell(store: &SqliteStore) {
    let campaign = CampaignId::new("c").unwrap();
    let put = PutCampaign {
        id: campaign.clone(),
        name: "c".into(),
        starts_at: None,
        ends_at: None,
        policy: Policy { account_limit: Some(5), ..Policy::default() },
        via: None,
    };
    store.put_campaign(put).await.unwrap();
    let operator = Operator::new("op").unwrap();
    let open = SwitchCampaign {
        unsold_to: None,
        id: campaign.clone(),
        switch: Switch::Open,
        operator,
        reason: "go".into(),
        via: None,
    };
    store.switch_campaign(open).await.unwrap().unwrap();
    let (sku, location) = (Sku::new("A").unwrap(), Location::new("main").unwrap());
    let signed = Signed::new("op", "");
    let open = Command::OpenPool(OpenPool {
        id: PoolId(1),
        campaign: campaign.clone(),
        sku: sku.clone(),
        location: location.clone(),
        supply: 10,
        buckets: 1,
        path: stock::Path::Batched,
        routing: stock::Routing::OrderHash,
        signed,
    });
    let place = Command::Place(Arc::new(Place {
        id: OrderId(2),
        key: OrderKey { campaign, order_no: OrderNo::new("o").unwrap() },
        account: Account::new("ann").unwrap(),
        lines: vec![PlaceLine { sku, location: Some(location), made_of: None, pool: PoolId(1), quantity: 3 }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: None,
    }));
    for (locks, command) in
        [(LockSet::default(), open), (LockSet::bucket(BucketKey { pool: PoolId(1), number: 0 }), place)]
    {
        let outcomes =
            store.commit(Batch { locks, commands: Arc::new(vec![command]) }).await.unwrap().outcomes;
        assert!(matches!(outcomes[0], Outcome::Pool { .. } | Outcome::Order { .. }), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_second_server_is_refused_and_a_reader_beside_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    let store = open(&path).unwrap();
    sell(&store).await;
    assert!(matches!(open(&path), Err(Error::Unavailable(why)) if why.contains("another server")));
    assert!(audit_file(&path).unwrap().is_clean());
    drop(store);
    // The lock goes with the process's handle, not with a file that a crash leaves behind.
    assert!(directory.path().join("one.db.lock").exists());
    open(&path).unwrap();
}

#[tokio::test]
async fn another_name_of_the_file_does_not_open_it_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("real.db");
    let store = open(&path).unwrap();
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(open(&link), Err(Error::Unavailable(why)) if why.contains("another server")));
    drop(store);
    std::fs::hard_link(&path, directory.path().join("hard.db")).unwrap();
    assert!(matches!(open(&path), Err(Error::Unavailable(why)) if why.contains("2 names")));
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_a_clean_stop_leaves_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("torn.db");
    let store = open(&path).unwrap();
    sell(&store).await;
    drop(store);
    let log = directory.path().join("torn.db-wal");
    assert!(
        !log.exists() || std::fs::metadata(&log).unwrap().len() == 0,
        "the log is copied at a clean stop"
    );
    let mut bytes = std::fs::read(&path).unwrap();
    // A page in the middle is torn; the header is whole.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8_192].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    assert!(
        matches!(open(&path), Err(Error::Corrupt(why)) if why.contains("holdfast restore") || why.contains("malformed"))
    );
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("newer.db");
    drop(open(&path).unwrap());
    let db = Connection::open(&path).unwrap();
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                 SELECT 999, 'from_the_future', applied_on, checksum FROM refinery_schema_history LIMIT 1";
    db.execute(newer, []).unwrap();
    assert!(matches!(open(&path), Err(Error::Unavailable(why)) if why.contains("schema")));
}

#[tokio::test]
async fn the_database_forbids_what_no_code_may_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guards.db");
    let store = open(&path).unwrap();
    sell(&store).await;
    drop(store);
    let db = Connection::open(&path).unwrap();
    for (sql, why) in [
        ("UPDATE bucket SET available = -1", "CHECK constraint failed"),
        ("UPDATE bucket SET held = held - 4", "CHECK constraint failed"),
        ("UPDATE bucket SET sold = 'many'", "cannot store TEXT"),
        ("UPDATE ledger SET delta_held = 0", "append-only"),
        ("DELETE FROM ledger", "append-only"),
        ("INSERT INTO ledger SELECT * FROM ledger", "UNIQUE constraint failed"),
        ("UPDATE orders SET state = 'lost'", "CHECK constraint failed"),
        (
            "INSERT INTO orders SELECT randomblob(16), campaign_id, order_no, account, state, reason, version, \
             home_pool, home_bucket, lines, hold_seconds, hold_seconds_sent, hold_ends_at, due_at, extended, \
             amount_minor, currency, refund_due_since, detail, metadata, created_at, updated_at, limit_keys FROM orders",
            "UNIQUE constraint failed",
        ),
        (
            "INSERT INTO pool (id, campaign_id, sku, location, buckets, opening_supply, frozen) \
             SELECT randomblob(16), campaign_id, sku, location, buckets, opening_supply, frozen FROM pool",
            "UNIQUE constraint failed",
        ),
    ] {
        let error = db.execute(sql, []).expect_err(sql).to_string();
        assert!(error.contains(why), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_balance_edited_by_hand_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edited.db");
    let store = open(&path).unwrap();
    sell(&store).await;
    drop(store);
    for (edit, undo, found) in [
        (
            "UPDATE bucket SET available = available + 1",
            "UPDATE bucket SET available = available - 1",
            vec![Invariant::Conservation, Invariant::LedgerIsBalance],
        ),
        (
            "UPDATE account_usage SET units = 1",
            "UPDATE account_usage SET units = 3",
            vec![Invariant::UsageIsOrders],
        ),
        (
            "UPDATE orders SET state = 'sold'",
            "UPDATE orders SET state = 'held'",
            vec![Invariant::AllocationsAreBalance, Invariant::FinalIsFinal, Invariant::UsageIsOrders],
        ),
    ] {
        let db = Connection::open(&path).unwrap();
        assert_eq!(db.execute(edit, []).unwrap(), 1);
        let report = audit_file(&path).unwrap();
        assert_eq!(report.counts.keys().copied().collect::<Vec<_>>(), found, "{edit}: {:?}", report.breaches);
        assert_eq!(db.execute(undo, []).unwrap(), 1);
        assert!(audit_file(&path).unwrap().is_clean(), "{undo}");
    }
}

#[tokio::test]
async fn every_commit_is_flushed_before_its_answer() {
    // The test runs itself under a tracer, which counts the flushes that the writer asks the system for.
    if std::env::var_os("HOLDFAST_TRACED").is_some() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory.path().join("traced.db")).unwrap();
        sell(&store).await;
        for n in 0..20_u32 {
            let put = PutCampaign {
                id: CampaignId::new(&format!("c{n}")).unwrap(),
                name: "c".into(),
                starts_at: None,
                ends_at: None,
                policy: Policy::default(),
                via: None,
            };
            store.put_campaign(put).await.unwrap();
        }
        return;
    }
    let trace = tempfile::NamedTempFile::new().unwrap();
    let status = Process::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(trace.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "every_commit_is_flushed_before_its_answer"])
        .env("HOLDFAST_TRACED", "1")
        .stdout(std::process::Stdio::null())
        .status()
        .expect("strace is needed: apt-get install strace");
    assert!(status.success());
    let flushes =
        std::fs::read_to_string(trace.path()).unwrap().lines().filter(|l| l.contains("sync(")).count();
    // 4 commits of the sale and 20 campaigns, each with a flush of its own; opening has some more.
    assert!(flushes >= 24, "only {flushes} flushes");
}
