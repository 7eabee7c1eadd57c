//! The authority is away, and the cache goes on.

use serde_json::json;

use super::{CLIENTS, judged, on_own_servers};
use crate::support::{last, outage, place_body};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_waits_for_an_authority_that_is_away() {
    let (postgres, shop) = on_own_servers().await;
    judged(shop, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..2 {
            crowd.hears(150).await;
            postgres.kill().unwrap();
            // The cache goes on without it.
            crowd.hears(150).await;
            postgres.restart().await.unwrap();
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decided_without_an_authority_that_a_pool_falls_back_to() {
    without_both("authority", "authority_unavailable").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_does_not_fall_back_says_so_without_an_authority_too() {
    without_both("refuse", "cache_not_ready").await;
}

/// The authority is away and the cache is lost: whoever buys is told to come again, and both heal.
async fn without_both(fallback: &str, code: &str) {
    let (postgres, shop) = on_own_servers().await;
    let path = format!("/v1/pools/{}", shop.pool);
    let changed =
        shop.http.try_send("PATCH", &path, Some(&json!({"cache_fallback": fallback}))).await.unwrap();
    assert_eq!(changed.status, 200, "{changed:?}");
    judged(shop, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(150).await;
        postgres.kill().unwrap();
        crowd.hears(150).await;
        last(outage()).await;
        crowd.stop().await;
        shop.redis.command(&["FLUSHALL"]).await.unwrap();
        for number in 0..10 {
            let body = place_body("drop", &format!("W-{number}"), "CUP", 1);
            let refused = shop.http.try_send("POST", "/v1/orders", Some(&body)).await.unwrap();
            assert_eq!((refused.status, refused.code()), (503, code), "{refused:?}");
            assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
        }
        postgres.restart().await.unwrap();
        shop.accepts().await;
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(100).await;
        crowd.stop().await;
    })
    .await;
}
