//! A campaign on the cached path is closed: whom a cache let in is served first, and then what is left leaves.

use std::sync::Arc;

use serde_json::json;

use super::shop::{Authority, Buyers, Sale, Shop, on_each_authority};
use crate::support::wait_until;

on_each_authority! {
    who_waits_in_a_cache_is_served_before_unsold_stock_leaves
    a_crowd_that_buys_while_its_campaign_is_closed_hears_the_truth
    what_a_keeper_died_over_is_forgotten
}

impl Shop {
    /// A pool of another campaign, for what is not sold.
    async fn pool_for_the_rest(&self) -> String {
        self.http.campaign("rest", json!({})).await;
        self.http.pool("rest", "LEFT", 0, 1).await
    }

    async fn close(&self, unsold_to: &str) {
        let body = json!({"operator": "test", "reason": "over", "unsold_to": unsold_to});
        let closed = self.http.post("/v1/campaigns/drop/close", &body).await;
        assert_eq!((closed.status, closed.text("unsold_to").as_str()), (200, unsold_to), "{closed:?}");
    }

    /// Waits until the pool has nothing more to give. Nothing may leave while somebody waits in a cache.
    async fn gives_all_to(&self, rest: &str) {
        wait_until("unsold stock to leave", async || {
            let (moved, ..) = self.http.balances(rest).await;
            let caches = self.caches().await?;
            let waiting: u64 = caches.iter().filter_map(|cache| cache["backlog"].as_u64()).sum();
            assert!(waiting == 0 || moved == 0, "{moved} units have left before {waiting} orders");
            let (available, ..) = self.http.balances(&self.pool).await;
            (available == 0 && caches.iter().all(|cache| cache["state"] == "closed")).then_some(())
        })
        .await;
    }
}

async fn who_waits_in_a_cache_is_served_before_unsold_stock_leaves(authority: Authority) {
    let sale = Sale { supply: 100, buckets: 2, landing_rate: Some(10), ..Sale::default() };
    let mut shop = Shop::open(authority, sale).await;
    let rest = shop.pool_for_the_rest().await;
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 8, 60).await;
    shop.close(&rest).await;
    assert_eq!(shop.http.balances(&rest).await, (0, 0, 0), "most of them wait");
    // Who closed it dies, and so does who lands: what is to be done is told by the rows.
    let start = shop.start.clone();
    shop.restart(start).await;
    shop.gives_all_to(&rest).await;
    assert_eq!(buyers.judge(&shop).await, [("held".to_owned(), 60)].into());
    assert_eq!(
        (shop.http.balances(&shop.pool).await, shop.http.balances(&rest).await),
        ((0, 60, 0), (40, 0, 0))
    );
    let late = shop.http.place("drop", "L-1", "CUP", 1).await;
    assert_eq!((late.status, late.code()), (409, "campaign_closed"), "{late:?}");
    // What comes back later follows.
    let id = buyers.told()[0].first.text("id");
    assert_eq!(shop.http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await.status, 200);
    shop.gives_all_to(&rest).await;
    assert_eq!(shop.http.balances(&rest).await, (41, 0, 0));
    shop.finish().await;
}

async fn a_crowd_that_buys_while_its_campaign_is_closed_hears_the_truth(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 3_000, buckets: 2, ..Sale::default() }).await;
    let rest = shop.pool_for_the_rest().await;
    let buyers = Arc::new(Buyers::default());
    let crowd = buyers.begin(&shop.http, 16);
    crowd.hears(200).await;
    shop.close(&rest).await;
    crowd.hears(100).await;
    crowd.stop().await;
    shop.gives_all_to(&rest).await;
    let ends = buyers.judge(&shop).await;
    let held = ends.get("held").copied().unwrap_or(0);
    assert!(ends.keys().all(|end| end == "held" || end == "refused: campaign_closed"), "{ends:?}");
    assert!(held > 0 && ends.len() == 2, "{ends:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, held, 0));
    assert_eq!(shop.http.balances(&rest).await, (3_000 - held, 0, 0));
    shop.finish().await;
}

async fn what_a_keeper_died_over_is_forgotten(authority: Authority) {
    let sale = Sale { supply: 5, ..Sale::default() };
    let mut shop = Shop::open(authority, sale).await;
    let (plain, doomed) = (shop.start.clone(), shop.doomed("cache.before_forget", 1));
    shop.restart(doomed).await;
    shop.accepts().await;
    let body = json!({"operator": "test", "reason": "over"});
    assert_eq!(shop.http.post("/v1/campaigns/drop/close", &body).await.status, 200);
    shop.loses_a_node().await;
    shop.restart(plain).await;
    wait_until("nothing of it to be left in the cache", async || {
        let keys = shop.redis.command(&["KEYS", &format!("*{}*", shop.pool)]).await.unwrap();
        keys.is_empty().then_some(())
    })
    .await;
    shop.finish().await;
}
