//! What a machine does to a program: a disk that is full, flushes that are late, a clock that jumps.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io::ErrorKind;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_testkit::{Disk, Postgres, PostgresOptions, Shim};

#[tokio::test]
async fn a_full_disk_takes_nothing_until_it_is_cleared() {
    let disk = Disk::mount(64 << 20).unwrap();
    let write = |name: &str| std::fs::write(disk.path().join(name), vec![7; 1 << 20]);
    write("before").unwrap();
    disk.fill().unwrap();
    assert_eq!(write("during").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(std::fs::read(disk.path().join("before")).unwrap().len(), 1 << 20);
    disk.clear().unwrap();
    write("after").unwrap();
    let path = disk.path().to_path_buf();
    drop(disk);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_full_disk_stops_a_postgresql_and_an_empty_one_revives_it() {
    let disk = Disk::mount(1 << 30).unwrap();
    let options = PostgresOptions { disk: Some(disk.path().to_path_buf()), ..PostgresOptions::default() };
    let server = Postgres::start_with(options).await.unwrap();
    server.create_database("shop").await.unwrap();
    disk.fill().unwrap();
    let much = "CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 100000)";
    server.sql("shop", much).await.unwrap_err();
    disk.clear().unwrap();
    server.revive().await.unwrap();
    server.sql("shop", much).await.unwrap();
    assert_eq!(server.sql("shop", "SELECT count(*) FROM t").await.unwrap(), "100000");
}

#[tokio::test]
async fn a_program_is_told_another_time_while_it_runs() {
    let shim = Shim::build().await.unwrap();
    let seconds = || {
        let output = Command::new("date").arg("+%s").envs(shim.environment()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let now = seconds();
    shim.step_clock(3_600).unwrap();
    assert!((3_600..3_660).contains(&(seconds() - now)));
    shim.step_clock(-3_600).unwrap();
    assert!((-3_600..-3_540).contains(&(seconds() - now)));
    // Of a server that runs, too: each of its processes reads the same.
    shim.step_clock(0).unwrap();
    let environment = shim.environment();
    let server = Postgres::start_with(PostgresOptions { environment, ..PostgresOptions::default() });
    let server = server.await.unwrap();
    shim.step_clock(86_400).unwrap();
    let ahead = server.sql("postgres", "SELECT extract(epoch FROM clock_timestamp())::bigint").await.unwrap();
    assert!((86_400..86_460).contains(&(ahead.parse::<i64>().unwrap() - now)), "{ahead}");
}

#[tokio::test]
async fn flushes_are_as_late_as_they_are_told() {
    let shim = Shim::build().await.unwrap();
    let environment = shim.environment();
    let options = PostgresOptions { environment, ..PostgresOptions::default() };
    let server = Postgres::start_with(options).await.unwrap();
    server.create_database("shop").await.unwrap();
    let write = async |sql: &str| {
        let begun = Instant::now();
        server.sql("shop", sql).await.unwrap();
        begun.elapsed()
    };
    write("CREATE TABLE t (n INT)").await;
    shim.delay_flushes(Duration::from_millis(500)).unwrap();
    assert!(write("INSERT INTO t VALUES (1)").await >= Duration::from_millis(500));
    shim.delay_flushes(Duration::ZERO).unwrap();
    assert!(write("INSERT INTO t VALUES (2)").await < Duration::from_millis(500));
}
