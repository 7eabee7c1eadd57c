//! A server dies while a node stands between two steps.

use std::sync::Arc;
use std::time::Duration;

use super::nodes::POINTS;
use super::{CLIENTS, judged, on_own_servers};
use crate::cache::shop::{Buyers, Shop};
use crate::support::{Server, wait_until};

/// How long a node may take to answer before it is looked at whether it stands still.
const ANSWER: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_that_dies_between_two_steps_loses_nobody() {
    let (_postgres, shop) = on_own_servers().await;
    let redis = Arc::clone(&shop.redis);
    judged(shop, async |shop, buyers| {
        at_each_point(shop, buyers, async || {
            redis.kill().unwrap();
            redis.restart().await.unwrap();
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_dies_between_two_steps_loses_nobody() {
    let (postgres, shop) = on_own_servers().await;
    judged(shop, async |shop, buyers| {
        at_each_point(shop, buyers, async || {
            postgres.kill().unwrap();
            postgres.restart().await.unwrap();
        })
        .await;
    })
    .await;
}

/// Nodes stop where they are told to, the server dies and comes back, and they go on from there.
async fn at_each_point(shop: &mut Shop, buyers: &Arc<Buyers>, mut dies: impl AsyncFnMut()) {
    let plain = shop.start.clone();
    for (point, hits) in POINTS {
        let doomed = shop.doomed(point, format!("stop:{hits}"));
        shop.restart(doomed).await;
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.may_hear(400);
        if point == "cache.before_seed" {
            shop.redis.command(&["FLUSHALL"]).await.unwrap();
        }
        wait_until("a node to stand still", async || shop.nodes.iter().any(Server::is_paused).then_some(()))
            .await;
        dies().await;
        // The other node may come to the point later, and while it is asked.
        wait_until("everybody to go on", async || {
            shop.nodes.iter().filter(|node| node.is_paused()).for_each(Server::resume);
            let caches = tokio::time::timeout(ANSWER, shop.caches()).await.ok()??;
            caches.iter().all(|cache| cache["accepts"] == true).then_some(())
        })
        .await;
        crowd.stop().await;
        shop.restart(plain.clone()).await;
        shop.accepts().await;
    }
}
