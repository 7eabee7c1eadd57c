//! Tickets: who holds one hears the truth on any node, also after a restart and after the cache is gone.

use std::sync::Arc;

use serde_json::json;

use super::shop::{Authority, Buyers, Sale, Shop, Told, decided, on_each_authority};

on_each_authority! {
    a_repeat_finds_the_order_where_it_is
    a_ticket_finds_an_order_that_waits
    a_lost_admission_is_told_and_the_number_is_free_again
    a_queued_order_is_cancelled_after_it_has_landed
    other_content_for_a_queued_number_is_a_mismatch
}

async fn shop_of_five(authority: Authority) -> Shop {
    Shop::open(authority, Sale { supply: 5, ..Sale::default() }).await
}

/// A shop that lands one order a second, and orders of which most wait.
async fn waiting(authority: Authority) -> (Shop, Vec<Told>) {
    let sale = Sale { supply: 100, landing_rate: Some(1), ..Sale::default() };
    let shop = Shop::open(authority, sale).await;
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 8, 40).await;
    let told = buyers.told();
    assert!(told.iter().all(|told| told.first.status == 202), "{told:?}");
    (shop, told)
}

async fn a_repeat_finds_the_order_where_it_is(authority: Authority) {
    let shop = shop_of_five(authority).await;
    let first = shop.http.place("drop", "R-1", "CUP", 1).await;
    assert_eq!((first.status, first.text("state").as_str()), (202, "queued"), "{first:?}");
    assert!(first.body["queue"]["position"].as_u64().is_some_and(|position| position >= 1), "{first:?}");
    assert!(first.body["lines"][0]["allocations"].as_array().unwrap().is_empty(), "{first:?}");
    let location = first.headers["location"].to_str().unwrap().to_owned();
    assert!(location.ends_with(&format!("?ticket={}", first.text("ticket"))), "{location}");
    let landed = shop.http.get(&format!("{location}&wait=20s")).await;
    assert_eq!((landed.status, landed.text("state").as_str()), (200, "held"), "{landed:?}");
    assert_eq!(landed.text("id"), first.text("id"));
    // The number again, on each node: the same order, and nothing is taken twice.
    for _ in 0..4 {
        let again = shop.http.place("drop", "R-1", "CUP", 1).await;
        let again = if again.status == 202 { decided(&shop.http, &again).await } else { again };
        assert_eq!((again.status, again.text("id")), (200, first.text("id")), "{again:?}");
    }
    shop.rests().await;
    assert_eq!(shop.http.balances(&shop.pool).await, (4, 1, 0));
    shop.finish().await;
}

async fn a_ticket_finds_an_order_that_waits(authority: Authority) {
    let (mut shop, told) = waiting(authority).await;
    let start = shop.unpaced();
    shop.restart(start).await;
    for told in &told {
        let end = decided(&shop.http, &told.first).await;
        assert_eq!((end.status, end.text("state").as_str()), (200, "held"), "{end:?}");
        assert_eq!(end.text("id"), told.first.text("id"));
    }
    let first = &told[0].first;
    for (id, ticket) in
        [("00000000-0000-7000-8000-000000000000", first.text("ticket")), (&first.text("id"), "x".into())]
    {
        let path = format!("/v1/orders/{id}?ticket={ticket}");
        let found = shop.http.get(&path).await;
        // A ticket is of one order; an order that has landed needs none.
        assert_eq!(found.status, if id == first.text("id") { 200 } else { 404 }, "{found:?}");
    }
    shop.rests().await;
    shop.finish().await;
}

async fn a_lost_admission_is_told_and_the_number_is_free_again(authority: Authority) {
    let (mut shop, told) = waiting(authority).await;
    shop.redis.command(&["FLUSHALL"]).await.unwrap();
    let mut lost = Vec::new();
    for told in &told {
        let end = decided(&shop.http, &told.first).await;
        if end.status == 200 {
            assert_eq!(end.text("state"), "held", "{end:?}");
        } else {
            assert_eq!((end.status, end.code()), (409, "admission_lost"), "{end:?}");
            lost.push(told);
        }
    }
    assert!(lost.len() >= told.len() / 2, "{} of {} were lost", lost.len(), told.len());
    let start = shop.unpaced();
    shop.restart(start).await;
    shop.accepts().await;
    for told in lost {
        // For ever, for this ticket; and the number may be used again.
        let again = shop.http.place("drop", &told.order_no, "CUP", 1).await;
        assert_eq!(again.status, 202, "{again:?}");
        assert_eq!(decided(&shop.http, &again).await.text("state"), "held");
        let before = decided(&shop.http, &told.first).await;
        assert_eq!((before.status, before.code()), (409, "admission_lost"), "{before:?}");
    }
    shop.rests().await;
    assert_eq!(shop.http.balances(&shop.pool).await, (60, 40, 0));
    shop.finish().await;
}

async fn a_queued_order_is_cancelled_after_it_has_landed(authority: Authority) {
    let shop = shop_of_five(authority).await;
    let first = shop.nodes[0].http.place("drop", "C-1", "CUP", 1).await;
    assert_eq!(first.status, 202, "{first:?}");
    let cancelled =
        shop.nodes[0].http.post(&format!("/v1/orders/{}/cancel", first.text("id")), &json!({})).await;
    assert_eq!((cancelled.status, cancelled.text("state").as_str()), (200, "released"), "{cancelled:?}");
    shop.rests().await;
    assert_eq!(shop.http.balances(&shop.pool).await, (5, 0, 0));
    shop.finish().await;
}

async fn other_content_for_a_queued_number_is_a_mismatch(authority: Authority) {
    let shop = shop_of_five(authority).await;
    let first = shop.http.place("drop", "D-1", "CUP", 1).await;
    assert_eq!(first.status, 202, "{first:?}");
    for _ in 0..4 {
        let other = shop.http.place("drop", "D-1", "CUP", 2).await;
        assert_eq!((other.status, other.code()), (422, "order_mismatch"), "{other:?}");
    }
    assert_eq!(decided(&shop.http, &first).await.text("state"), "held");
    shop.rests().await;
    assert_eq!(shop.http.balances(&shop.pool).await, (4, 1, 0));
    shop.finish().await;
}
