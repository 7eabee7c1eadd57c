//! Sentinel and Cluster.

use holdfast_core::stock::BucketKey;
use holdfast_engine::{Answer, Cache};
use holdfast_testkit::{Redis, RedisCluster, Sentinel};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::support::{BUCKET, Node, cache_at, key, patient, until};

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

#[tokio::test]
async fn a_replica_that_takes_over_a_part_of_a_cluster_is_another_server_and_the_other_parts_go_on() {
    let mut cluster = RedisCluster::start().await.unwrap();
    let url = cluster.url().unwrap();
    let mut home = None;
    for (place, master) in cluster.masters.iter().enumerate() {
        // Whoever does not keep the key says who does, which is an error.
        if master.command(&["EXISTS", &key("cache")]).await.is_ok() {
            home = Some(place);
        }
    }
    let home = home.unwrap();
    let replica = cluster.replica_of(home).await.unwrap();
    let mut node = Node::open(&url, patient(), 100).await;
    node.take(1).await;
    cluster.masters[home].kill().unwrap();
    cluster.take_over(&replica).await.unwrap();
    let answer = until("the takeover", async || node.accept(&node.order(2)).await, Result::is_ok).await;
    assert_eq!(answer, Ok(Answer::WentBack), "another server answers");
    node.rebuild(99).await;
    assert_eq!(node.take(2).await.epoch, node.epoch);
    for number in 1..8 {
        let bucket = BucketKey { number, ..BUCKET };
        let cache = std::sync::Arc::clone(&node.cache);
        let identity = cache.identity(bucket).await.unwrap();
        let other = Node { cache, bucket, epoch: holdfast_core::cache::Epoch(1), identity };
        other.begin(10).await;
        other.take(1).await;
    }
}

#[tokio::test]
async fn a_server_must_prove_its_name_where_tls_is_asked_for() {
    let certificate = |name: &str| {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    };
    let (own, secret) = certificate("127.0.0.1");
    let server = Redis::start_with_tls(&own, &secret).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url_with = |roots: &str, label: &str| {
        let file = folder.path().join(label);
        std::fs::write(&file, roots).unwrap();
        format!("{}?tls_roots={}", server.tls_url().unwrap(), file.display().to_string().replace('/', "%2F"))
    };
    let node = Node::open(&url_with(&own, "own"), patient(), 5).await;
    node.take(1).await;
    assert_eq!(node.deliver(9).await.len(), 1, "reads that wait have connections of their own");
    node.assert_law(5, 0).await;
    let (other, _) = certificate("127.0.0.1");
    for url in [
        url_with(&other, "other"),
        server.tls_url().unwrap(),
        url_with(&own, "own").replace("127.0.0.1", "localhost"),
        server.tls_url().unwrap().replace("rediss", "redis"),
    ] {
        let refused = cache_at(&url, patient()).identity(BUCKET).await;
        assert!(refused.is_err(), "{url}: {refused:?}");
    }
}
