//! A disk that is full: clean answers, nothing torn, and recovery when space returns.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{Server, Start, place_body, wait_until};

/// A small file system in memory, gone when the test is.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .status()
            .expect("mount");
        assert!(status.success(), "this test mounts a tmpfs and must run as root");
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_answered_503_and_everything_recovers() {
    let disk = SmallDisk::mount("24m");
    let database = disk.path().join("test.db");
    let ballast = disk.path().join("ballast");
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let server = Server::start_on(&database, &start).await.unwrap();
    let http = server.http.clone();
    http.campaign("drop", json!({})).await;
    let pool = http.pool("drop", "CUP", 1_000_000, 1).await;
    assert_eq!(http.place("drop", "before", "CUP", 1).await.status, 201);
    // Whatever is left on the disk is taken away.
    fill(&ballast);
    let mut held = 1;
    let mut number = 0;
    let refused = wait_until("a full disk", async || {
        number += 1;
        let mut body = place_body("drop", &format!("o{number}"), "CUP", 1);
        body["metadata"] = json!({"note": "x".repeat(8_000)});
        let answer = http.post("/v1/orders", &body).await;
        held += u64::from(answer.status == 201);
        (answer.status != 201).then_some(answer)
    })
    .await;
    assert_eq!((refused.status, refused.code()), (503, "storage_full"), "{refused:?}");
    assert_eq!(refused.body["recorded"], false);
    assert!(refused.headers.contains_key("retry-after"));
    // Reads go on, and a repeat of a known key is answered.
    assert_eq!(http.balances(&pool).await, (1_000_000 - held, held, 0));
    assert_eq!(
        http.get("/v1/orders?campaign_id=drop&order_no=before").await.body["items"][0]["state"],
        "held"
    );
    std::fs::remove_file(&ballast).unwrap();
    wait_until("space", async || {
        let again = http.place("drop", &format!("o{number}"), "CUP", 1).await;
        (again.status == 201).then_some(())
    })
    .await;
    assert_eq!(http.balances(&pool).await, (1_000_000 - held - 1, held + 1, 0));
    server.finish().await;
}

/// Writes until nothing more fits.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [64 * 1024, 4 * 1024, 512] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
