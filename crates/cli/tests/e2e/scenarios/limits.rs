//! Limits of an account: across orders, lines, pools and buckets, and given back in every way.

use std::time::Instant;

use serde_json::{Value, json};

use super::site::Site;
use super::{count, order, together, with};
use crate::support::{Answer, Http, LEARNT_WITHIN};

super::site::on_each_site! {
    a_limit_counts_across_lines_orders_pools_and_buckets
    whatever_gives_units_back_gives_room_again
    three_hundred_attempts_of_one_account_get_the_one_unit_it_may_have
    too_many_open_holds_leave_no_trace_of_the_refused
    a_limit_that_comes_later_counts_what_is_there
    a_late_payment_takes_no_more_than_the_account_may_have
}

/// Places an order of `ann`.
async fn ann(http: &Http, order_no: &str, lines: &[(&str, u32)]) -> Answer {
    http.order(&order("c", order_no, "ann", lines)).await
}

/// Is refused for this reason; another node may give that of a moment ago.
async fn is_refused(http: &Http, order_no: &str, units: u32, code: &str) {
    let begun = Instant::now();
    loop {
        let answer = ann(http, order_no, &[("A", units)]).await;
        assert_eq!(answer.status, 409, "{answer:?}");
        if answer.code() == code {
            return;
        }
        assert!(http.has_several_nodes() && begun.elapsed() < LEARNT_WITHIN, "{code}: {answer:?}");
    }
}

fn shortage(answer: &Answer) -> (&Value, &Value) {
    (&answer.body["errors"][0]["requested"], &answer.body["errors"][0]["available"])
}

// 5
async fn a_limit_counts_across_lines_orders_pools_and_buckets(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_limit": 10})).await;
    let (a, b) = (http.pool("c", "A", 50, 5).await, http.pool("c", "B", 50, 1).await);
    let many_lines = ann(http, "1", &[("A", 1); 20]).await;
    assert_eq!((many_lines.status, many_lines.code()), (409, "account_limit"));
    assert_eq!(shortage(&many_lines), (&json!(20), &json!(10)));
    assert_eq!(ann(http, "2", &[("A", 6), ("B", 5)]).await.code(), "account_limit");
    assert_eq!((http.balances(&a).await, http.balances(&b).await), ((50, 0, 0), (50, 0, 0)));
    assert_eq!(ann(http, "3", &[("A", 3), ("B", 4)]).await.status, 201);
    let over = ann(http, "4", &[("B", 4)]).await;
    assert_eq!(shortage(&over), (&json!(4), &json!(3)));
    assert_eq!(ann(http, "5", &[("A", 3)]).await.status, 201);
    assert_eq!(ann(http, "6", &[("A", 1)]).await.code(), "account_limit");
    // Another account, and the account in another campaign, have limits of their own.
    assert_eq!(http.order(&order("c", "7", "Ann", &[("A", 10)])).await.status, 201);
    http.campaign("d", json!({"account_limit": 10})).await;
    http.pool("d", "A", 10, 1).await;
    assert_eq!(http.order(&order("d", "1", "ann", &[("A", 10)])).await.status, 201);
    server.finish().await;
}

// 69
async fn whatever_gives_units_back_gives_room_again(server: Site) {
    let http = &server.http;
    let policy = json!({"account_limit": 4, "account_open_holds": 1, "release_grace_ms": 0});
    http.campaign("c", policy).await;
    let pool = http.pool("c", "A", 9, 2).await;
    let id = ann(http, "cancelled", &[("A", 4)]).await.text("id");
    is_refused(http, "x", 1, "account_open_holds").await;
    http.cancel(&id).await;
    let short = with(order("c", "expired", "ann", &[("A", 4)]), json!({"hold_seconds": 1}));
    let id = http.accepted(&short).await;
    http.wait_for_state(&id, "released").await;
    let id = http.accepted(&order("c", "reduced", "ann", &[("A", 4)])).await;
    assert_eq!(http.reduce(&id, 1, 1).await.status, 200);
    is_refused(http, "y", 1, "account_open_holds").await;
    assert_eq!(http.pay(&id, "e1").await.text("disposition"), "applied");
    // Sold: no open hold, but its unit counts.
    is_refused(http, "z", 4, "account_limit").await;
    let rest = http.accepted(&order("c", "paid", "ann", &[("A", 3)])).await;
    assert_eq!(http.pay(&rest, "e2").await.text("disposition"), "applied");
    is_refused(http, "full", 1, "account_limit").await;
    // A refund gives room, restocked or not.
    assert_eq!(http.refund(&rest, "r1", 2, Some(true)).await.status, 201);
    assert_eq!(http.refund(&id, "r1", 1, Some(false)).await.status, 201);
    assert_eq!(http.balances(&pool).await, (7, 0, 2));
    http.accepted(&order("c", "last", "ann", &[("A", 3)])).await;
    is_refused(http, "more", 1, "account_open_holds").await;
    assert_eq!(http.balances(&pool).await, (4, 3, 2));
    server.finish().await;
}

async fn three_hundred_attempts_of_one_account_get_the_one_unit_it_may_have(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_limit": 1})).await;
    let pools = [http.pool("c", "A", 500, 4).await, http.pool("c", "B", 500, 1).await];
    // Between them 99 others, each of whom gets its own.
    let answers = together((0..399).map(|n| {
        let lines = [(if n % 2 == 0 { "A" } else { "B" }, 1)];
        let account = if n % 4 == 3 { format!("other-{n}") } else { "ann".to_owned() };
        let (http, body) = (http.clone(), order("c", &n.to_string(), &account, &lines));
        async move { (account, http.order(&body).await) }
    }))
    .await;
    let (others, answers): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(account, _)| account != "ann");
    let [others, answers] =
        [others, answers].map(|all| all.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>());
    assert_eq!((count(&others, 201), others.len()), (99, 99));
    assert_eq!((count(&answers, 201), count(&answers, 409)), (1, 299));
    for refused in answers.iter().filter(|answer| answer.status == 409) {
        assert_eq!(refused.code(), "account_limit");
    }
    let mut held = 0;
    for pool in &pools {
        held += http.balances(pool).await.1;
    }
    assert_eq!(held, 1 + 99);
    // What a flood may write is bounded: ten recorded refusals an account and minute; the run may
    // fall into two minutes.
    let recorded = answers.iter().filter(|answer| answer.body["recorded"] == true).count();
    assert!(recorded <= 20 * server.nodes.len(), "{recorded} recorded");
    assert_eq!(http.listed("campaign_id=c&state=failed").await, recorded);
    server.finish().await;
}

async fn too_many_open_holds_leave_no_trace_of_the_refused(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_open_holds": 2})).await;
    let pool = http.pool("c", "A", 100, 4).await;
    let place = |n: usize| {
        let (http, body) = (http.clone(), order("c", &n.to_string(), "ann", &[("A", 1)]));
        async move { (n, http.order(&body).await) }
    };
    let answers = together((0..60).map(place)).await;
    let held: Vec<_> = answers.iter().filter(|(_, answer)| answer.status == 201).collect();
    assert_eq!(held.len(), 2);
    for (n, refused) in answers.iter().filter(|(_, answer)| answer.status != 201) {
        assert_eq!((refused.code(), &refused.body["recorded"]), ("account_open_holds", &json!(false)));
        assert_eq!(http.listed(&format!("campaign_id=c&order_no={n}")).await, 0);
    }
    assert_eq!(http.balances(&pool).await, (98, 2, 0));
    // The same number may be tried again, and passes as soon as there is room.
    let (again, _) = answers.iter().find(|(_, answer)| answer.status != 201).unwrap();
    assert_eq!(place(*again).await.1.code(), "account_open_holds");
    assert_eq!(http.pay(&held[0].1.text("id"), "e1").await.text("disposition"), "applied");
    http.accepted(&order("c", &again.to_string(), "ann", &[("A", 1)])).await;
    server.finish().await;
}

async fn a_limit_that_comes_later_counts_what_is_there(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    http.pool("c", "A", 20, 2).await;
    let held = ann(http, "1", &[("A", 2)]).await.text("id");
    let sold = ann(http, "2", &[("A", 1)]).await.text("id");
    http.pay(&sold, "e1").await;
    let put = json!({"name": "c", "policy": {"account_limit": 3}});
    http.switch("/v1/campaigns/c/pause").await;
    assert_eq!(http.put("/v1/campaigns/c", &put).await.status, 200);
    http.switch("/v1/campaigns/c/resume").await;
    assert_eq!(ann(http, "3", &[("A", 1)]).await.code(), "account_limit");
    http.cancel(&held).await;
    assert_eq!(ann(http, "4", &[("A", 2)]).await.status, 201);
    assert_eq!(ann(http, "5", &[("A", 1)]).await.code(), "account_limit");
    server.finish().await;
}

async fn a_late_payment_takes_no_more_than_the_account_may_have(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"hold_seconds": 1, "release_grace_ms": 0, "account_limit": 2})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    let late = ann(http, "1", &[("A", 2)]).await.text("id");
    http.wait_for_state(&late, "released").await;
    let second = ann(http, "2", &[("A", 1)]).await.text("id");
    assert_eq!(http.pay(&second, "e2").await.text("disposition"), "applied");
    assert_eq!(http.pay(&late, "e1").await.text("disposition"), "refund_due");
    assert_eq!(http.balances(&pool).await, (9, 0, 1));
    server.finish().await;
}
