//! The cache path while things break, under load. Afterwards nobody is left waiting, every unit is on the shelf or
//! somebody's, cache and authority agree, and the cache sells again, without a person.

mod authority;
mod connections;
mod nodes;
mod points;
mod servers;

use std::sync::Arc;

use holdfast_testkit::{Postgres, Redis};

use super::shop::{Authority, Buyers, Sale, Shop};

/// Buyers at the same time.
const CLIENTS: usize = 16;

/// Two nodes on a PostgreSQL that is the test's own, so that it may die.
async fn on_own_servers() -> (Postgres, Shop) {
    let postgres = Postgres::start().await.unwrap();
    let url = postgres.create_database("shop").await.unwrap();
    let redis = Arc::new(Redis::start().await.unwrap());
    let shop = Shop::open_at(Some(&url), sale(), redis).await;
    (postgres, shop)
}

/// Lets things happen while people buy, then judges.
async fn through(authority: Authority, sale: Sale, happen: impl AsyncFnOnce(&mut Shop, &Arc<Buyers>)) {
    judged(Shop::open(authority, sale).await, happen).await;
}

async fn judged(mut shop: Shop, happen: impl AsyncFnOnce(&mut Shop, &Arc<Buyers>)) {
    let (available, held, sold) = shop.http.balances(&shop.pool).await;
    let supply = available + held + sold;
    let buyers = Arc::new(Buyers::default());
    happen(&mut shop, &buyers).await;
    shop.rests().await;
    let ends = buyers.judge(&shop).await;
    let held = ends.get("held").copied().unwrap_or(0);
    assert!(held > 0, "{ends:?}");
    for end in ends.keys() {
        let known = ["held", "admission_lost", "failed: sold_out", "refused: sold_out"];
        assert!(known.contains(&end.as_str()), "{ends:?}");
    }
    let (available, all_held, sold) = shop.http.balances(&shop.pool).await;
    // A buyer who gave up without an answer may have an order.
    assert!(
        all_held >= held && available + all_held + sold == supply,
        "{ends:?} {available} {all_held} {sold}"
    );
    // What is left is sold through the cache, all of it.
    let last = Arc::new(Buyers::from(1_000_000));
    last.buy_all(&shop.http, CLIENTS, available + 20).await;
    shop.rests().await;
    assert_eq!(last.judge(&shop).await.get("held").copied().unwrap_or(0), available);
    assert_eq!(shop.http.balances(&shop.pool).await, (0, supply, 0));
    shop.finish().await;
}

fn sale() -> Sale {
    Sale { supply: 3_000, buckets: 2, ..Sale::default() }
}
