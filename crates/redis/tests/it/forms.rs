//! Sentinel and Cluster.

use holdfast_core::stock::BucketKey;
use holdfast_engine::{Answer, Cache};
use holdfast_testkit::{Redis, RedisCluster, Sentinel};

use crate::support::{BUCKET, Node, patient, until};

#[tokio::test]
async fn a_sentinel_leads_to_the_master_and_after_a_failover_to_another_one() {
    let master = Redis::start().await.unwrap();
    let _replica = master.replica().await.unwrap();
    let sentinel = Sentinel::watch(&master).await.unwrap();
    let mut node = Node::open(&sentinel.url(), patient(), 100).await;
    node.take(1).await;
    master.kill().unwrap();
    let answer = until("a failover", async || node.accept(&node.order(2)).await, Result::is_ok).await;
    assert_eq!(answer, Ok(Answer::WentBack), "another server answers");
    node.rebuild(99).await;
    assert_eq!(node.take(2).await.epoch, node.epoch);
}

#[tokio::test]
async fn buckets_spread_over_a_cluster_and_each_has_its_own_servers_identity() {
    let cluster = RedisCluster::start().await.unwrap();
    let url = cluster.url().unwrap();
    let mut nodes = Vec::new();
    for number in 0..8 {
        let bucket = BucketKey { number, ..BUCKET };
        let cache = std::sync::Arc::new(crate::support::cache_at(&url, patient()));
        let identity = cache.identity(bucket).await.unwrap();
        let node = Node { cache, bucket, epoch: holdfast_core::cache::Epoch(1), identity };
        node.begin(10).await;
        node.take(1).await;
        let landings = node.deliver_orders(9).await;
        node.settle(&[landings[0].accepted.entry]).await;
        node.assert_law(10, 0).await;
        nodes.push(node);
    }
    let identities: std::collections::BTreeSet<_> = nodes.iter().map(|node| node.identity.clone()).collect();
    assert_eq!(identities.len(), 3);
}
