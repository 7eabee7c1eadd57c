//! The test kit on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use holdfast_testkit::{Database, PgBouncer, PoolMode, Postgres, psql};

/// A server with database `shop`, in which table `t` holds 7.
async fn shop() -> Postgres {
    let server = Postgres::start().await.unwrap();
    let url = server.create_database("shop").await.unwrap();
    assert_eq!(url, format!("postgres://holdfast@127.0.0.1:{}/shop", server.port()));
    psql(&url, "CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    server
}

async fn read(server: &Postgres) -> String {
    psql(&server.url("shop"), "SELECT n FROM t ORDER BY n").await.unwrap()
}

#[tokio::test]
async fn a_killed_server_comes_back_with_what_was_committed() {
    let server = shop().await;
    server.kill().unwrap();
    assert!(psql(&server.url("shop"), "SELECT 1").await.is_err());
    server.restart().await.unwrap();
    assert_eq!(read(&server).await, "7");
    assert_eq!(server.sql("shop", "SHOW fsync").await.unwrap(), "on");
    assert!(server.log().contains("automatic recovery in progress"), "{}", server.log());
}

#[tokio::test]
async fn a_stopped_server_comes_back_without_recovery() {
    let server = shop().await;
    server.stop().await.unwrap();
    server.restart().await.unwrap();
    assert_eq!(read(&server).await, "7");
    assert!(!server.log().contains("automatic recovery in progress"), "{}", server.log());
}

#[tokio::test]
async fn a_paused_server_is_silent_until_it_goes_on() {
    let server = shop().await;
    server.pause().unwrap();
    let answer = read(&server);
    tokio::pin!(answer);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut answer).await;
    assert!(early.is_err(), "a paused server answered: {early:?}");
    server.resume().unwrap();
    assert_eq!(answer.await, "7");
}

#[tokio::test]
async fn connections_are_cut_and_taken_again() {
    let server = shop().await;
    let url = server.url("shop");
    let (long, cut) = tokio::join!(psql(&url, "SELECT pg_sleep(60)"), async {
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(60)'";
        while server.sql("postgres", &format!("{sleeping} AND pid <> pg_backend_pid()")).await.unwrap() == "0"
        {
        }
        server.cut_connections().await.unwrap()
    });
    assert_eq!(cut, 1);
    assert!(long.unwrap_err().to_string().contains("terminating connection"));
    assert_eq!(read(&server).await, "7");
}

#[tokio::test]
async fn a_read_only_server_refuses_writes_until_it_takes_them_again() {
    let server = shop().await;
    let write = async || psql(&server.url("shop"), "INSERT INTO t VALUES (8)").await;
    server.set_read_only(true).await.unwrap();
    assert!(write().await.unwrap_err().to_string().contains("read-only transaction"));
    assert_eq!(read(&server).await, "7");
    server.set_read_only(false).await.unwrap();
    write().await.unwrap();
    assert_eq!(read(&server).await, "7\n8");
}

#[tokio::test]
async fn a_promoted_standby_has_all_that_was_committed() {
    let primary = shop().await;
    let standby = primary.synchronous_standby().await.unwrap();
    psql(&primary.url("shop"), "INSERT INTO t VALUES (8)").await.unwrap();
    primary.kill().unwrap();
    let write = async || psql(&standby.url("shop"), "INSERT INTO t VALUES (9)").await;
    assert!(write().await.unwrap_err().to_string().contains("read-only transaction"));
    standby.promote().await.unwrap();
    write().await.unwrap();
    assert_eq!(read(&standby).await, "7\n8\n9");
}

#[tokio::test]
async fn a_pooler_gives_each_transaction_any_connection() {
    let server = shop().await;
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).await.unwrap();
    assert_eq!(psql(&pooler.url("shop"), "SELECT n FROM t").await.unwrap(), "7");
    pooler.kill().unwrap();
    assert!(psql(&pooler.url("shop"), "SELECT n FROM t").await.is_err());
    pooler.restart().await.unwrap();
    assert_eq!(psql(&pooler.url("shop"), "SELECT n FROM t").await.unwrap(), "7");
}

#[tokio::test]
async fn tests_share_a_server_and_have_databases_of_their_own() {
    let (one, two) = tokio::try_join!(Database::shared(), Database::shared()).unwrap();
    assert_eq!(one.url().rsplit_once('/').unwrap().0, two.url().rsplit_once('/').unwrap().0);
    assert_ne!(one.url(), two.url());
    one.sql("CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    assert!(two.sql("SELECT n FROM t").await.unwrap_err().to_string().contains("does not exist"));
    let name = one.url().rsplit_once('/').unwrap().1.to_owned();
    drop(one);
    let left = two.sql(&format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'")).await.unwrap();
    assert_eq!(left, "0");
}
