//! The authority dies, falls silent, throws everybody out, refuses to write.

use super::{Shop, authority, last, outage, rounds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_authority_loses_and_doubles_nothing() {
    let (postgres, url) = authority().await;
    let shop = Shop::open(&url, 3).await;
    for _ in 0..rounds() {
        postgres.kill().unwrap();
        shop.is_away().await;
        postgres.restart().await.unwrap();
        shop.recovers().await;
    }
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_authority_is_waited_for_within_the_deadline() {
    let (postgres, url) = authority().await;
    let shop = Shop::open(&url, 1).await;
    postgres.pause().unwrap();
    last(outage()).await;
    postgres.resume().unwrap();
    shop.recovers().await;
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_are_made_anew() {
    let (postgres, url) = authority().await;
    let shop = Shop::open(&url, 3).await;
    for _ in 0..rounds() * 5 {
        assert!(postgres.cut_connections().await.unwrap() > 0);
        shop.recovers().await;
    }
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_authority_refuses_and_sells_again() {
    let (postgres, url) = authority().await;
    let shop = Shop::open(&url, 1).await;
    postgres.set_read_only(true).await.unwrap();
    shop.is_away().await;
    // Who asks what there is gets an answer, or is told to come again.
    let pools = shop.nodes[0].http.get("/v1/pools?campaign_id=drop").await;
    assert!(matches!(pools.status, 200 | 503), "{pools:?}");
    last(outage() / 2).await;
    postgres.set_read_only(false).await.unwrap();
    shop.recovers().await;
    shop.close().await;
}
