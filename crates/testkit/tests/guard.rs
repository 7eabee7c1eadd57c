//! Nothing outlives a test, however it ends.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::process::Stdio;
use std::time::Duration;

use holdfast_testkit::Redis;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// Set in the run of this test that is to be killed.
const TO_BE_KILLED: &str = "HOLDFAST_TESTKIT_TO_BE_KILLED";

#[tokio::test]
async fn the_server_of_a_killed_test_ends() {
    if std::env::var_os(TO_BE_KILLED).is_some() {
        let server = Redis::start().await.unwrap();
        println!("\nport {}", server.port());
        std::future::pending::<()>().await;
    }
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_server_of_a_killed_test_ends", "--nocapture"])
        .env(TO_BE_KILLED, "1")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let folder = std::env::temp_dir()
        .join(format!("holdfast-testkit-{}", rustix::process::getuid().as_raw()))
        .join(format!("process-{}", test.id().unwrap()));
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let port: u16 = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(port) = line.strip_prefix("port ") {
            break port.parse().unwrap();
        }
    };
    assert!(folder.exists());
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    test.kill().await.unwrap();
    let is_gone = async {
        // The end of the connection is the end of the server; the folder goes last.
        while tokio::io::AsyncReadExt::read(&mut connection, &mut [0; 64])
            .await
            .is_ok_and(|length| length > 0)
        {}
        while folder.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_gone).await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}
