//! The primary dies and its synchronous standby takes over.

use super::{Shop, authority};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_has_every_answer() {
    let (primary, _) = authority().await;
    let standby = primary.synchronous_standby().await.unwrap();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let url = format!("postgres://holdfast@{hosts}/shop?target_session_attrs=read-write");
    let shop = Shop::open(&url, 2).await;
    primary.kill().unwrap();
    shop.is_away().await;
    standby.promote().await.unwrap();
    shop.recovers().await;
    shop.close().await;
}
