//! Copies, restores, examinations, and which binaries may run on which schema.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_core::cache::{Epoch, EpochState, Turn, TurnEpoch};
use holdfast_core::command::{Command, OpenPool, Signed};
use holdfast_core::id::{CampaignId, CaseId, Incarnation, Location, PoolId, Sku};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock;
use holdfast_core::time::Timestamp;
use holdfast_sqlite::{
    Check, Contents, Copied, Options, Restore, SqliteStore, audit_file, backup_file, examine_file,
    restore_file,
};
use holdfast_store::{Batch, CaseFilter, Error, NewIncarnation, Page, Store};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(path: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(path, Options { incarnation: 11, ..Options::default() })
}

async fn open_pool(store: &SqliteStore, number: u128) {
    let open = Command::OpenPool(OpenPool {
        id: PoolId(number),
        campaign: CampaignId::new("c").unwrap(),
        sku: Sku::new(&format!("S{number}")).unwrap(),
        location: Location::new("main").unwrap(),
        supply: 10,
        buckets: 2,
        path: stock::Path::Batched,
        routing: stock::Routing::OrderHash,
        signed: Signed::new("op", ""),
    });
    store.commit(Batch { locks: LockSet::default(), commands: Arc::new(vec![open]) }).await.unwrap();
}

/// A backup taken while a cache took stock: restored, it has no cache, and nothing of that epoch lands.
#[tokio::test]
async fn a_restored_authority_has_every_epoch_closed() {
    let (directory, path) = shop().await;
    let store = open(&path).unwrap();
    let key = stock::BucketKey { pool: PoolId(1), number: 0 };
    let turn = Command::TurnEpoch(TurnEpoch {
        bucket: key,
        epoch: Epoch(1),
        turn: Turn::Open { identity: "server".into() },
        signed: Signed::new("op", ""),
    });
    store.commit(Batch { locks: LockSet::bucket(key), commands: Arc::new(vec![turn]) }).await.unwrap();
    let (copy, target) = (directory.path().join("copy.db"), directory.path().join("restored.db"));
    backup_file(&path, &copy, Check::Full, |_, _| {}).unwrap();
    let restored = Restore {
        source: &copy,
        target: &target,
        check: Check::Full,
        now: Timestamp(5),
        begin: |_: &Contents| NewIncarnation {
            incarnation: Incarnation(12),
            case: CaseId(12),
            evidence: "{}".into(),
        },
    };
    restore_file(restored, |_, _| {}).unwrap();
    let was = store.cache_bucket(key).await.unwrap().unwrap();
    let is = open(&target).unwrap().cache_bucket(key).await.unwrap().unwrap();
    assert_eq!((was.state, is.state, is.changed_at), (EpochState::Open, EpochState::Closed, Timestamp(5)));
    assert!(audit_file(&target).unwrap().is_clean());
}

/// A database of two ledger entries in a directory of its own.
async fn shop() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let store = open(&path).unwrap();
    let put = r#"INSERT INTO campaign (id, name, opened, paused, frozen, closed, hold_seconds, hold_seconds_max,
        payment_extension_seconds, release_grace_ms, notice_grace_seconds, capture, deadline_basis, late_payment,
        payment_failed, review_seconds, review_end, restock_on_refund, created_at, updated_at) VALUES ('c', 'c', 1, 0, 0, 0,
        900, 3600, 0, 2000, 60, 'hold', 'received_at', 'retake_else_refund', 'keep', 900, 'release', 0, 1, 1)"#;
    Connection::open(&path).unwrap().execute_batch(put).unwrap();
    open_pool(&store, 1).await;
    drop(store);
    (directory, path)
}

fn copy(from: &Path, to: &Path) -> Result<Copied, Error> {
    backup_file(from, to, Check::Full, |_, _| {})
}

fn bring_back(from: &Path, to: &Path) -> Result<Copied, Error> {
    let begin = |contents: &Contents| NewIncarnation {
        incarnation: Incarnation(contents.incarnation.0 + 1),
        case: CaseId(5),
        evidence: "{}".into(),
    };
    restore_file(
        Restore { source: from, target: to, check: Check::Full, now: Timestamp(9), begin },
        |_, _| {},
    )
}

fn why<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn a_copy_is_whole_and_overwrites_nothing() {
    let (directory, path) = shop().await;
    let store = open(&path).unwrap();
    let target = directory.path().join("copy.db");
    let first = copy(&path, &target).unwrap();
    assert_eq!((first.contents.entries, first.contents.positions, first.contents.buckets), (2, 2, 2));
    assert_eq!(first.contents.incarnation, Incarnation(11));
    assert!(why(copy(&path, &target)).contains("is there already"));
    open_pool(&store, 2).await;
    let second = copy(&path, &directory.path().join("later.db")).unwrap();
    assert_ne!(second.contents.positions_sha256, first.contents.positions_sha256);
    assert!(audit_file(&target).unwrap().is_clean());
    // One file each: nothing of a copy is in a log beside it, and no part is left.
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("shop.db"))
        .collect();
    names.sort();
    assert_eq!(names, ["copy.db", "later.db"]);
}

#[tokio::test]
async fn what_is_damaged_is_not_put_in_place() {
    let (directory, path) = shop().await;
    Connection::open(&path).unwrap().execute_batch("UPDATE bucket SET available = available + 1").unwrap();
    let target = directory.path().join("copy.db");
    assert!(why(copy(&path, &target)).contains("breaks INV"));
    assert!(!target.exists());
    let unchecked = backup_file(&path, &target, Check::None, |_, _| {}).unwrap();
    assert_eq!(unchecked.contents.entries, 2);
    let no_database = directory.path().join("text.db");
    std::fs::write(&no_database, "no database, ".repeat(1_000)).unwrap();
    assert!(copy(&no_database, &directory.path().join("x.db")).is_err());
    assert!(copy(&directory.path().join("missing.db"), &directory.path().join("y.db")).is_err());
}

#[tokio::test]
async fn a_restored_database_is_another_incarnation_with_a_case() {
    let (directory, path) = shop().await;
    let (kept, target) = (directory.path().join("copy.db"), directory.path().join("new.db"));
    copy(&path, &kept).unwrap();
    let restored = bring_back(&kept, &target).unwrap();
    assert_eq!(restored.contents.incarnation, Incarnation(11));
    assert!(why(bring_back(&kept, &target)).contains("is there already"));
    let store = open(&target).unwrap();
    let authority = store.authority().await.unwrap();
    assert_eq!((authority.incarnation, authority.past), (Incarnation(12), vec![Incarnation(11)]));
    let (cases, _) = store.cases(CaseFilter::default(), Page { after: None, limit: 5 }).await.unwrap();
    assert_eq!(cases.len(), 1);
    assert!(cases[0].halts());
    assert_eq!(examine_file(&target).unwrap().halting_cases, [CaseId(5)]);
    assert!(audit_file(&target).unwrap().is_clean());
}

#[tokio::test]
async fn nothing_is_restored_under_a_server_or_beside_a_stale_log() {
    let (directory, path) = shop().await;
    let kept = directory.path().join("copy.db");
    copy(&path, &kept).unwrap();
    let store = open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(why(bring_back(&kept, &path)).contains("another server has this database open"));
    drop(store);
    let target = directory.path().join("new.db");
    std::fs::write(directory.path().join("new.db-wal"), "a log of something else").unwrap();
    assert!(why(bring_back(&kept, &target)).contains("new.db-wal: is there already"));
    assert!(!target.exists());
}

/// Makes the schema look as if a later version had migrated it.
fn pretend_newer(path: &Path, compatible_from: i32) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         VALUES (900, 'later', '2030-01-01T00:00:00Z', '1');
         INSERT INTO schema_rule (version, compatible_from) VALUES (900, {compatible_from});"
    ))
    .unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused_unless_it_says_that_this_binary_may_run() {
    let (_directory, path) = shop().await;
    let known = examine_file(&path).unwrap().schema.known;
    assert_eq!(examine_file(&path).unwrap().schema.version, Some(known));
    pretend_newer(&path, known);
    let store = open(&path).unwrap();
    open_pool(&store, 2).await;
    drop(store);
    assert!(audit_file(&path).unwrap().is_clean());
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("UPDATE schema_rule SET compatible_from = {} WHERE version = 900", known + 1))
        .unwrap();
    let refused = why(open(&path).map(|_| ()));
    assert!(refused.contains(&format!("version 900, this holdfast knows {known}")), "{refused}");
    assert!(refused.contains("start a newer holdfast"), "{refused}");
    // A rule of another version promises nothing; without one a newer schema is refused, as ever.
    for silent in [
        "UPDATE schema_rule SET version = 899, compatible_from = 1 WHERE version = 900",
        "DROP TABLE schema_rule",
    ] {
        db.execute_batch(silent).unwrap();
        assert!(why(open(&path).map(|_| ())).contains("does not say which others"), "{silent}");
    }
    assert!(!examine_file(&path).unwrap().schema.is_usable());
}

#[tokio::test]
async fn a_schema_of_another_history_is_refused_whatever_it_says() {
    let (_directory, path) = shop().await;
    pretend_newer(&path, 1);
    let db = Connection::open(&path).unwrap();
    db.execute_batch("UPDATE refinery_schema_history SET checksum = '7' WHERE version = 1").unwrap();
    assert!(why(open(&path).map(|_| ())).contains("does not fit"));
}

#[tokio::test]
async fn an_examination_sees_a_server_and_changes_nothing() {
    let (_directory, path) = shop().await;
    assert!(!examine_file(&path).unwrap().served);
    let store = open(&path).unwrap();
    let examined = examine_file(&path).unwrap();
    assert!(examined.served && examined.complaints.is_empty() && examined.halting_cases.is_empty());
    assert_eq!((examined.journal_mode.as_str(), examined.synchronous), ("wal", 2));
    drop(store);
}

#[tokio::test]
async fn payments_of_before_there_were_claims_are_for_the_orders_that_they_paid_first() {
    let (_directory, path) = shop().await;
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        // What came later goes too: it is made again after it.
        "DROP TABLE sink; DROP TABLE sink_round; DROP TABLE sink_position; DROP TABLE dead_letter;
         DROP TABLE reconciliation; DROP TABLE discrepancy; DROP TABLE reconcile_checkpoint;
         ALTER TABLE ledger DROP COLUMN covers_first; ALTER TABLE ledger DROP COLUMN covers_last;
         DELETE FROM schema_rule WHERE version > 12;
         DROP TABLE payment_claim; CREATE INDEX payment_success ON payment (payment_id);
         DELETE FROM refinery_schema_history WHERE version >= 12;
         INSERT INTO payment (provider, event_id, payment_id, order_id, outcome) VALUES
         ('acme', 'e1', 'p1', x'02', 'succeeded'), ('acme', 'e2', 'p1', x'01', 'succeeded'),
         ('acme', 'e3', 'p2', x'03', 'failed'), ('other', 'e1', 'p1', x'04', 'succeeded');",
    )
    .unwrap();
    drop(open(&path).unwrap());
    let sql = "SELECT provider || payment_id || hex(order_id) FROM payment_claim ORDER BY provider";
    let mut claims = db.prepare(sql).unwrap();
    let claims: Vec<String> = claims.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(claims, ["acmep101", "otherp104"]);
}
