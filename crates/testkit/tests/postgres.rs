//! The test kit on a real PostgreSQL.

use holdfast_testkit::{Database, Postgres};

#[tokio::test]
async fn a_killed_server_comes_back_with_what_was_committed() {
    let server = Postgres::start().await.unwrap();
    assert_eq!(
        server.create_database("shop").await.unwrap(),
        format!("postgres://holdfast@127.0.0.1:{}/shop", server.port())
    );
    server.sql("shop", "CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    server.kill().unwrap();
    assert!(server.sql("shop", "SELECT n FROM t").await.is_err());
    server.restart().await.unwrap();
    assert_eq!(server.sql("shop", "SELECT n FROM t").await.unwrap(), "7");
    assert_eq!(server.sql("shop", "SHOW fsync").await.unwrap(), "on");
}

#[tokio::test]
async fn a_paused_server_is_silent_until_it_goes_on() {
    let server = Postgres::start().await.unwrap();
    server.pause().unwrap();
    let answer = server.sql("postgres", "SELECT 7");
    tokio::pin!(answer);
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut answer).await;
    assert!(early.is_err(), "a paused server answered: {early:?}");
    server.resume().unwrap();
    assert_eq!(answer.await.unwrap(), "7");
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
