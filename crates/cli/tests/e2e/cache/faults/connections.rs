//! Connections to the cache that break.

use std::sync::Arc;
use std::time::Duration;

use holdfast_testkit::{FaultProxy, Redis};

use super::{CLIENTS, judged, sale};
use crate::cache::shop::{Sale, Shop};
use crate::support::{extent, last};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_give_nobody_the_answer_of_another() {
    let redis = Arc::new(Redis::start().await.unwrap());
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let url = proxy.through(&redis.url());
    let shop = Shop::open_at(None, Sale { redis_url: Some(url), ..sale() }, redis).await;
    judged(shop, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        // `HOLDFAST_FAULT_CUTS=30 HOLDFAST_FAULT_CUT_MILLIS=2000` is a minute with a cut every two seconds.
        for _ in 0..extent("HOLDFAST_FAULT_CUTS", 20) {
            crowd.hears(40).await;
            last(Duration::from_millis(extent("HOLDFAST_FAULT_CUT_MILLIS", 0))).await;
            proxy.cut().await;
        }
        crowd.stop().await;
        shop.accepts().await;
    })
    .await;
}
