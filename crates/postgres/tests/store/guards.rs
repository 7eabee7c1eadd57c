//! What the database itself refuses, whoever asks, and what a node refuses to serve from.

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::Outcome;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_store::{Error, Store};
use holdfast_testkit::{Database, Postgres, PostgresOptions, psql};

use crate::support::{assert_clean, bucket, commit, is_held, node, place, shop, switch, try_node};

async fn refused(url: &str, sql: &str) -> String {
    format!("{:#}", psql(url, sql).await.expect_err(sql))
}

#[tokio::test]
async fn nothing_becomes_negative_and_evidence_stays() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 10, 1).await;
    commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap();
    let url = database.url();
    for column in ["available", "held", "sold"] {
        let why = refused(&url, &format!("UPDATE bucket SET {column} = -1")).await;
        assert!(why.contains(&format!("bucket_{column}_check")), "{why}");
    }
    for sql in ["UPDATE ledger SET reason = 'x'", "DELETE FROM ledger", "TRUNCATE ledger"] {
        assert!(refused(&url, sql).await.contains("ledger is append-only"), "{sql}");
    }
    for sql in ["UPDATE operator_action SET reason = 'x'", "DELETE FROM operator_action"] {
        assert!(refused(&url, sql).await.contains("operator_action is append-only"), "{sql}");
    }
    let doubled = "INSERT INTO ledger SELECT * FROM ledger WHERE seq = 1";
    assert!(refused(&url, doubled).await.contains("ledger_pkey"));
    assert_clean(&*store).await;
}

/// The COMMIT is on its way when the server finds the row changed by somebody else: nothing of the batch stays.
#[tokio::test]
async fn a_row_that_is_not_as_it_was_read_undoes_the_whole_batch() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 10, 1).await;
    // A fault of somebody else: the bucket's number moves whenever an entry is written.
    let fault = "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 UPDATE bucket SET ledger_seq = ledger_seq + 5; RETURN NULL; END $$; \
                 CREATE TRIGGER meddle AFTER INSERT ON ledger FOR EACH STATEMENT EXECUTE FUNCTION meddle()";
    psql(&database.url(), fault).await.unwrap();
    let error = commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap_err();
    assert!(matches!(&error, Error::Data(why) if why.contains("0 rows instead of 1")), "{error}");
    psql(&database.url(), "DROP TRIGGER meddle ON ledger").await.unwrap();
    assert_eq!(database.sql("SELECT count(*) FROM orders").await.unwrap(), "0");
    assert!(is_held(&commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap()[0]));
    assert_clean(&*store).await;
}

/// Data that cannot be stored is an error of its batch, so that the lanes can find the culprit.
#[tokio::test]
async fn text_that_cannot_be_stored_is_the_batchs_error() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 10, 1).await;
    let mut bad = place(2, 2, "bob");
    if let holdfast_core::command::Command::Place(place) = &mut bad {
        std::sync::Arc::make_mut(place).metadata = Some("{\"a\":\"\0\"}".into());
    }
    let error = commit(&*store, bucket(0), vec![place(1, 1, "ann"), bad]).await.unwrap_err();
    assert!(matches!(error, Error::Data(_)), "{error}");
    assert!(is_held(&commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap()[0]));
    assert_clean(&*store).await;
}

/// Whatever isolation the database has as its default, and with settings that a careless operator may leave.
#[tokio::test]
async fn the_defaults_of_the_database_decide_nothing() {
    let database = Database::shared().await.unwrap();
    for isolation in ["serializable", "repeatable read"] {
        let name = database.sql("SELECT current_database()").await.unwrap();
        let set = format!("ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{isolation}'");
        database.sql(&set).await.unwrap();
        let (one, two) = (node(&database.url()).await, node(&database.url()).await);
        if isolation == "serializable" {
            shop(&*one, Policy::default(), 100, 1).await;
        }
        let base = if isolation == "serializable" { 0 } else { 1_000 };
        let run = |store: std::sync::Arc<holdfast_postgres::PostgresStore>, from: u128| async move {
            for number in from..from + 10 {
                // No conflict at all: who waited for the lock sees what the other has written.
                let outcomes = commit(&*store, bucket(0), vec![place(number, number, "ann")]).await.unwrap();
                assert!(is_held(&outcomes[0]), "{outcomes:?}");
            }
        };
        tokio::join!(run(one.clone(), base + 1), run(two, base + 101));
        assert_clean(&*one).await;
    }
}

#[tokio::test]
async fn a_server_that_may_lose_answers_is_refused() {
    let options = PostgresOptions {
        settings: vec!["synchronous_commit = off".to_owned()],
        ..PostgresOptions::default()
    };
    let server = Postgres::start_with(options).await.unwrap();
    let url = server.create_database("shop").await.unwrap();
    let error = try_node(&url).await.err().expect("refused");
    assert!(error.to_string().contains("synchronous_commit is off"), "{error}");
}

/// A newer schema is used only if it says that it may be.
#[tokio::test]
async fn an_old_binary_runs_on_a_newer_schema_that_allows_it() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 10, 1).await;
    let known = database.sql("SELECT max(version) FROM refinery_schema_history").await.unwrap();
    // While the old binary runs: what it has prepared must still work.
    let newer = "ALTER TABLE orders ADD COLUMN gift TEXT; ALTER TABLE bucket ADD COLUMN colour TEXT; \
                 INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                 VALUES (900, 'gifts', '2026-01-01T00:00:00Z', '1')";
    psql(&database.url(), newer).await.unwrap();
    for number in 1..4 {
        assert!(is_held(&commit(&*store, bucket(0), vec![place(number, number, "ann")]).await.unwrap()[0]));
    }
    let error = try_node(&database.url()).await.err().expect("no rule");
    assert!(error.to_string().contains("start a newer holdfast"), "{error}");
    let rule = format!("INSERT INTO schema_rule (version, compatible_from) VALUES (900, {known})");
    psql(&database.url(), &rule).await.unwrap();
    let again = node(&database.url()).await;
    assert!(is_held(&commit(&*again, bucket(0), vec![place(9, 9, "ann")]).await.unwrap()[0]));
    assert_clean(&*again).await;
}

#[tokio::test]
async fn payments_of_before_there_were_claims_are_for_the_orders_that_they_paid_first() {
    let database = Database::shared().await.unwrap();
    drop(node(&database.url()).await);
    let order = |number: u32| format!("'00000000-0000-0000-0000-{number:012}'");
    let before = format!(
        // What came later goes too: it is made again after it.
        "DROP TABLE sink, sink_round, sink_position, dead_letter, reconciliation, discrepancy, reconcile_checkpoint; \
         ALTER TABLE ledger DROP COLUMN covers_first, DROP COLUMN covers_last; DELETE FROM schema_rule WHERE version > 12; \
         DROP TABLE payment_claim; CREATE INDEX payment_success ON payment (payment_id); \
         DELETE FROM refinery_schema_history WHERE version >= 12; \
         INSERT INTO payment (provider, event_id, payment_id, order_id, outcome) VALUES \
         ('acme', 'e1', 'p1', {}, 'succeeded'), ('acme', 'e2', 'p1', {}, 'succeeded'), \
         ('acme', 'e3', 'p2', {}, 'failed'), ('other', 'e1', 'p1', {}, 'succeeded')",
        order(2),
        order(1),
        order(3),
        order(4)
    );
    psql(&database.url(), &before).await.unwrap();
    drop(node(&database.url()).await);
    let sql =
        "SELECT provider, payment_id, right(CAST(order_id AS TEXT), 1) FROM payment_claim ORDER BY provider";
    assert_eq!(database.sql(sql).await.unwrap(), "acme|p1|1\nother|p1|4");
}

/// What is written to is found through its key, however small the table was when the statement was planned.
#[tokio::test]
async fn bucket_rows_stay_in_their_page() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 1_000, 1).await;
    for number in 0..200 {
        commit(&*store, bucket(0), vec![place(number + 1, number, "ann")]).await.unwrap();
    }
    drop(store);
    // Counters are sent when a session ends.
    let mut updates = String::new();
    for _ in 0..100 {
        let sql = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'bucket'";
        updates = database.sql(sql).await.unwrap();
        if updates.starts_with("200|") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (all, hot) = updates.split_once('|').unwrap();
    let (all, hot): (u32, u32) = (all.parse().unwrap(), hot.parse().unwrap());
    assert!(all >= 200 && hot * 100 >= all * 99, "{hot} of {all} updates stayed in their page");
}

#[tokio::test]
async fn a_switch_waits_for_whoever_stands_on_the_old_one() {
    let database = Database::shared().await.unwrap();
    let store = node(&database.url()).await;
    shop(&*store, Policy::default(), 10, 2).await;
    // A batch of another node that has read the switches and holds its lock.
    let hold = "BEGIN; SELECT 1 FROM bucket WHERE number = 1 FOR UPDATE; SELECT pg_sleep(1); \
                CREATE TABLE ended (); COMMIT";
    let url = database.url();
    let other = tokio::spawn(async move { psql(&url, hold).await });
    let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
                   WHERE c.relname = 'bucket' AND l.mode = 'RowShareLock'";
    while database.sql(waiting).await.unwrap() == "0" {
        tokio::task::yield_now().await;
    }
    switch(&*store, Switch::Pause).await;
    let ended = "SELECT count(*) FROM pg_class WHERE relname = 'ended'";
    assert_eq!(database.sql(ended).await.unwrap(), "1", "it answered before the other batch had ended");
    other.await.unwrap().unwrap();
    let outcome =
        commit(&*store, LockSet::pool(holdfast_core::id::PoolId(1)), vec![place(1, 1, "ann")]).await;
    assert_eq!(outcome.unwrap(), [Outcome::refused(Refusal::CampaignPaused)]);
    assert!(store.is_shared());
}
