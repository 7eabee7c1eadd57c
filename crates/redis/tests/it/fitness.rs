//! Servers that may not be relied on.

use holdfast_engine::{Cache, CacheError};

use crate::support::{BUCKET, Rig, key};

async fn why_unfit(rig: &Rig) -> String {
    match rig.node.cache.examine(BUCKET).await {
        Err(CacheError::Unfit(why)) => why.to_string(),
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_server_that_may_evict_is_unfit() {
    let rig = Rig::open(5).await;
    assert_eq!(rig.node.cache.examine(BUCKET).await, Ok(()));
    let set = async |name: &str, value: &str| {
        rig.server.command(&["CONFIG", "SET", name, value]).await.unwrap();
    };
    set("maxmemory", "1gb").await;
    assert_eq!(rig.node.cache.examine(BUCKET).await, Ok(()));
    set("maxmemory-policy", "allkeys-lru").await;
    assert!(why_unfit(&rig).await.contains("allkeys-lru"));
    set("maxmemory", "0").await;
    assert_eq!(rig.node.cache.examine(BUCKET).await, Ok(()), "without a limit nothing is evicted");
}

#[tokio::test]
async fn a_full_server_refuses_whole_and_what_frees_it_goes_on() {
    let rig = Rig::open(5).await;
    let accepted = rig.node.take(1).await;
    rig.server.command(&["CONFIG", "SET", "maxmemory", "1"]).await.unwrap();
    assert!(why_unfit(&rig).await.contains("memory"));
    let answer = rig.node.accept(&rig.node.order(2)).await;
    assert!(matches!(answer, Err(CacheError::Unavailable(_))), "{answer:?}");
    // Nothing of it is there, and what takes nothing is served: deliver, settle, position, credit, drain.
    assert_eq!(rig.node.position().await.accepted, 1);
    assert_eq!(rig.node.deliver_orders(9).await.len(), 1);
    rig.node.settle(&[accepted.entry]).await;
    rig.node.credit(10, 11, -1).await;
    rig.node.assert_law(5, -1).await;
    rig.server.command(&["CONFIG", "SET", "maxmemory", "0"]).await.unwrap();
    assert_eq!(rig.node.take(2).await.number, 2);
}

#[tokio::test]
async fn a_guard_that_wants_replicas_holds_for_scripts_too() {
    let rig = Rig::open(5).await;
    rig.server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]).await.unwrap();
    let answer = rig.node.accept(&rig.node.order(1)).await;
    assert!(matches!(&answer, Err(CacheError::Unavailable(why)) if why.contains("NOREPLICAS")), "{answer:?}");
    rig.server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]).await.unwrap();
    rig.node.take(1).await;
    rig.node.assert_law(5, 0).await;
}

#[tokio::test]
async fn a_server_whose_snapshots_fail_is_unfit() {
    let rig = Rig::open(5).await;
    rig.server.break_snapshots().unwrap();
    rig.server.command(&["BGSAVE"]).await.unwrap();
    let status = async || rig.server.command(&["INFO", "persistence"]).await.unwrap();
    crate::support::until("the failure", status, |info| info.contains("rdb_last_bgsave_status:err")).await;
    assert!(why_unfit(&rig).await.contains("rdb_last_bgsave_status"));
}

#[tokio::test]
async fn an_account_counter_that_is_no_number_is_unfit_and_nothing_is_written() {
    let rig = Rig::open(5).await;
    rig.server.command(&["HSET", &key("accounts"), "a", "x"]).await.unwrap();
    let limited = holdfast_engine::Accept { account_limit: Some(3), ..rig.node.order_of(1, 1, "a") };
    let answer = rig.node.accept(&limited).await;
    assert!(matches!(answer, Err(CacheError::Unfit(_))), "{answer:?}");
    rig.node.assert_law(5, 0).await;
    assert_eq!(rig.node.position().await.accepted, 0);
}
