//! D: the end of a hold meets a payment, a restart, a crowd, or nobody at all.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::site::Site;
use super::{order, success, together, with};
use crate::support::{Http, Server, Start, place_body, seconds_between, wait_until};

super::site::on_each_site! {
    a_payment_after_the_unit_is_gone_is_due_back_once_and_listed_once
    between_its_end_and_its_release_a_hold_is_over_and_still_held
    an_expiry_and_a_payment_at_the_same_moment_have_one_outcome
    where_late_money_may_take_again_every_payer_has_the_unit_once
    whatever_shows_an_end_ends_by_itself_and_on_time
    a_begun_payment_extends_once_and_never_past_the_longest_hold
    an_order_can_be_made_less_also_when_nothing_is_left_and_never_more
    the_hold_time_is_the_same_on_every_path
}

fn short() -> Value {
    json!({"hold_seconds": 1, "release_grace_ms": 0})
}

/// Seconds from one time of an answer to another, which is less than a day later.
fn lasts(from: &Value, to: &Value) -> f64 {
    seconds_between(from.as_str().expect("a time"), to.as_str().expect("a time"))
}

fn hold_of(order: &Value) -> f64 {
    lasts(&order["created_at"], &order["hold_expires_at"])
}

// 33, 34
async fn a_payment_after_the_unit_is_gone_is_due_back_once_and_listed_once(server: Site) {
    let http = &server.http;
    http.campaign("c", short()).await;
    let pool = http.pool("c", "A", 1, 1).await;
    let first = http.place("c", "X", "A", 1).await.text("id");
    http.wait_for_state(&first, "released").await;
    let second = http.accepted(&place_body("c", "Y", "A", 1)).await;
    assert_eq!(http.pay(&second, "y").await.text("disposition"), "applied");
    let late = with(success(&first, "x", "pay-x"), json!({"amount_minor": 1000, "currency": "EUR"}));
    for disposition in ["refund_due", "duplicate", "duplicate", "duplicate"] {
        assert_eq!(http.told(&late).await, disposition);
    }
    let seen = http.see(&first).await;
    assert_eq!(seen["state"], "released");
    let due = json!([{"payment_id": "pay-x", "amount_minor": 1000, "currency": "EUR"}]);
    assert_eq!(seen["refund_due"]["payments"], due);
    assert_eq!(http.listed("campaign_id=c&refund_due=true").await, 1);
    assert_eq!(http.actions(&first).await, ["place", "release", "order_event"]);
    assert_eq!(http.balances(&pool).await, (0, 0, 1));
    // No way to charge again: the order takes no attempt, and its number is used.
    assert_eq!(http.attempt(&first, "t").await.code(), "already_released");
    assert_eq!(http.place("c", "X", "A", 1).await.code(), "already_released");
    server.finish().await;
}

// 37
#[tokio::test]
async fn what_is_sold_never_expires_not_even_after_a_restart() {
    let mut server = Server::start().await;
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    server.http.campaign("c", short()).await;
    let pool = server.http.pool("c", "A", 5, 1).await;
    let sold = server.http.place("c", "1", "A", 2).await.text("id");
    assert_eq!(server.http.pay(&sold, "e").await.text("disposition"), "applied");
    for witness in ["before", "after"] {
        // Another hold of the same length ends: the sweeper was there.
        let witness = server.http.place("c", witness, "A", 1).await.text("id");
        server.http.wait_for_state(&witness, "released").await;
        assert_eq!(server.http.see(&sold).await["state"], "sold");
        assert_eq!(server.http.balances(&pool).await, (3, 0, 2));
        server.restart(&start).await;
    }
    assert_eq!(server.http.actions(&sold).await, ["place", "confirm"]);
    server.finish().await;
}

// 39
async fn between_its_end_and_its_release_a_hold_is_over_and_still_held(server: Site) {
    let http = &server.http;
    http.campaign(
        "c",
        json!({"hold_seconds": 1, "release_grace_ms": 2500, "late_payment": "refund", "payment_extension_seconds": 60}),
    )
    .await;
    let pool = http.pool("c", "A", 1, 1).await;
    let held = http.place("c", "1", "A", 1).await.text("id");
    let placed = Instant::now();
    wait_until("the end", async || (placed.elapsed() >= Duration::from_secs(1)).then_some(())).await;
    let refused = http.attempt(&held, "t1").await;
    assert_eq!((refused.status, refused.code()), (409, "hold_expired"));
    assert_eq!(http.place("c", "2", "A", 1).await.code(), "sold_out");
    assert_eq!((&http.see(&held).await["state"], http.balances(&pool).await), (&json!("held"), (0, 1, 0)));
    assert_eq!(http.told(&success(&held, "e", "p")).await, "refund_due");
    assert_eq!((&http.see(&held).await["state"], http.balances(&pool).await), (&json!("held"), (0, 1, 0)));
    let released = http.wait_for_state(&held, "released").await;
    assert_eq!((&released["reason"], http.balances(&pool).await), (&json!("expired"), (1, 0, 0)));
    assert_eq!(http.actions(&held).await, ["place", "order_event", "release"]);
    server.finish().await;
}

/// Places an order and pays it around the end of its hold: at once, long after, or `late` after the end,
/// which may be before it.
async fn pay_around_the_end(http: Http, n: usize) -> (String, Value) {
    let id = http.place("c", &n.to_string(), "A", 1).await.text("id");
    let placed = Instant::now();
    match n % 20 {
        0 => {}
        1 => drop(http.wait_for_state(&id, "released").await),
        _ => {
            let offset = u64::try_from(n % 41).unwrap() * 2;
            let after = Duration::from_millis(960 + offset);
            wait_until("the moment", async || (placed.elapsed() >= after).then_some(())).await;
        }
    }
    let told = http.pay(&id, &format!("e{n}")).await;
    assert_eq!(told.status, 200, "{told:?}");
    (id, told.body)
}

// 39, 48
async fn an_expiry_and_a_payment_at_the_same_moment_have_one_outcome(server: Site) {
    let http = &server.http;
    http.campaign("c", with(short(), json!({"late_payment": "refund"}))).await;
    let pool = http.pool("c", "A", 200, 4).await;
    let answers = together((0..200).map(|n| pay_around_the_end(http.clone(), n))).await;
    let mut sold = 0;
    for (id, answer) in answers {
        let applied = answer["disposition"] == "applied";
        assert!(applied || answer["disposition"] == "refund_due", "{answer}");
        let order = http.wait_for_state(&id, if applied { "sold" } else { "released" }).await;
        assert_eq!(order["refund_due"].is_null(), applied, "{order}");
        let actions = http.actions(&id).await;
        let count = |action: &str| actions.iter().filter(|a| *a == action).count();
        let expected = if applied { (1, 0, 0) } else { (0, 1, 1) };
        assert_eq!((count("confirm"), count("release"), count("order_event")), expected, "{actions:?}");
        // One order event a version.
        assert_eq!(order["version"], actions.len());
        sold += u64::from(applied);
    }
    assert!((1..200).contains(&sold), "{sold} sold");
    assert_eq!(http.balances(&pool).await, (200 - sold, 0, sold));
    server.finish().await;
}

// 48
async fn where_late_money_may_take_again_every_payer_has_the_unit_once(server: Site) {
    let http = &server.http;
    http.campaign("c", short()).await;
    let pool = http.pool("c", "A", 100, 1).await;
    let answers = together((0..100).map(|n| pay_around_the_end(http.clone(), n))).await;
    for (id, answer) in answers {
        assert_eq!(answer["order"]["state"], "sold");
        let actions = http.actions(&id).await;
        match (answer["disposition"].as_str().unwrap(), actions.len()) {
            ("applied" | "retaken", 2) => assert_eq!(actions, ["place", "confirm"]),
            ("retaken", 3) => assert_eq!(actions, ["place", "release", "retake"]),
            other => panic!("{other:?}: {actions:?}"),
        }
    }
    assert_eq!(http.balances(&pool).await, (0, 0, 100));
    server.finish().await;
}

const CROWD: usize = 5_000;
/// How long after the last end the last unit of the crowd may be held.
const FREE_WITHIN: Duration = Duration::from_secs(10);
/// How long a buyer may wait for an answer meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Places so many holds that all end in the second after `end`.
async fn place_crowd(http: &Http, start: Instant, end: Duration) {
    for batch in 0..CROWD / 500 {
        let left = end.saturating_sub(start.elapsed()).as_secs() + 1;
        let orders: Vec<_> = (0..500)
            .map(|n| {
                let body = order("c", &format!("crowd-{batch}-{n}"), "crowd", &[("A", 1)]);
                with(body, json!({"hold_seconds": left}))
            })
            .collect();
        let answer = http.post("/v1/orders/batch", &json!({"orders": orders})).await;
        let results = answer.body["results"].as_array().expect("results");
        assert!(results.iter().all(|result| result["status"] == 201));
    }
}

// 40
#[tokio::test]
async fn a_crowd_of_holds_that_end_together_is_freed_in_time_while_others_buy() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("c", json!({"release_grace_ms": 0})).await;
    let pool = http.pool("c", "A", 50_000, 1).await;
    let (start, end) = (Instant::now(), Duration::from_secs(8));
    place_crowd(http, start, end).await;
    assert!(start.elapsed() < end, "the machine is too slow: placing took {:?}", start.elapsed());
    let all_free_by = end + Duration::from_secs(1) + FREE_WITHIN;
    let buyers = together((0..2).map(|buyer| {
        let http = http.clone();
        async move {
            let mut bought = 0_u64;
            while http.listed("campaign_id=c&account=crowd&state=held").await > 0 {
                assert!(start.elapsed() < all_free_by, "still held after {:?}", start.elapsed());
                for _ in 0..20 {
                    let asked = Instant::now();
                    let body = order("c", &format!("buyer-{buyer}-{bought}"), "buyer", &[("A", 1)]);
                    http.accepted(&body).await;
                    assert!(asked.elapsed() < ANSWER_WITHIN, "{:?}", asked.elapsed());
                    bought += 1;
                }
            }
            bought
        }
    }))
    .await;
    let bought: u64 = buyers.iter().sum();
    assert_eq!(http.balances(&pool).await, (50_000 - bought, bought, 0));
    server.finish().await;
}

// 42, 43
async fn whatever_shows_an_end_ends_by_itself_and_on_time(server: Site) {
    let http = &server.http;
    http.campaign("c", with(short(), json!({"review_seconds": 1}))).await;
    let pool = http.pool("c", "A", 9, 1).await;
    let held = http.place("c", "held", "A", 1).await;
    let (id, end) = (held.text("id"), &held.body["hold_expires_at"]);
    // A payment that was begun and never told of: first in review, then over.
    let begun = http.place("c", "begun", "A", 1).await.text("id");
    assert_eq!(http.attempt(&begun, "t").await.status, 201);
    assert_eq!(http.wait_for_state(&id, "released").await["reason"], "expired");
    let entries = http.get(&format!("/v1/ledger?order_id={id}")).await;
    let late = lasts(end, &entries.body["items"][1]["at"]);
    assert!(late < 2.0, "freed {late} s after its end");
    assert_eq!(http.wait_for_state(&begun, "released").await["reason"], "review_ended");
    assert_eq!(http.actions(&begun).await, ["place", "order_event", "order_event", "release"]);
    assert_eq!(http.balances(&pool).await, (9, 0, 0));
    server.finish().await;
}

// 44
async fn a_begun_payment_extends_once_and_never_past_the_longest_hold(server: Site) {
    let http = &server.http;
    let policy = json!({"hold_seconds": 2, "payment_extension_seconds": 30, "hold_seconds_max": 20, "release_grace_ms": 0});
    http.campaign("c", policy).await;
    http.pool("c", "A", 9, 1).await;
    let id = http.place("c", "1", "A", 1).await.text("id");
    for (attempt, status) in [("t1", 201), ("t1", 200), ("t2", 201)] {
        let begun = http.attempt(&id, attempt).await;
        assert_eq!(begun.status, status);
        assert!((hold_of(&begun.body) - 20.0).abs() < 0.01, "{begun:?}");
    }
    // Where the longest hold leaves room, the second attempt adds nothing either.
    http.campaign("d", json!({"hold_seconds": 10, "payment_extension_seconds": 5})).await;
    http.pool("d", "A", 1, 1).await;
    let roomy = http.place("d", "1", "A", 1).await.text("id");
    for attempt in ["t1", "t2"] {
        let begun = http.attempt(&roomy, attempt).await;
        assert!((hold_of(&begun.body) - 15.0).abs() < 0.01, "{begun:?}");
    }
    let other = json!({"attempt_id": "t1", "provider": "card"});
    let other = http.post(&format!("/v1/orders/{id}/payment-attempts"), &other).await;
    assert_eq!((other.status, other.code()), (422, "key_mismatch"));
    assert_eq!(other.faults(), [("key_mismatch".into(), "/provider".into())]);
    // Its first end passes: another order of the same age is gone, this one can still be paid.
    let witness = http.place("c", "2", "A", 1).await.text("id");
    http.wait_for_state(&witness, "released").await;
    assert_eq!(http.attempt(&witness, "t1").await.code(), "already_released");
    assert_eq!(http.told(&success(&id, "e", "p")).await, "applied");
    server.finish().await;
}

// 46
async fn an_order_can_be_made_less_also_when_nothing_is_left_and_never_more(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    let id = http.place("c", "1", "A", 10).await.text("id");
    for keep in [10, 9, 9] {
        let reduced = http.reduce(&id, 1, keep).await;
        assert_eq!((reduced.status, &reduced.body["lines"][0]["quantity"]), (200, &json!(keep)));
    }
    assert_eq!(http.balances(&pool).await, (1, 9, 0));
    for (keep, status) in [(10, 409), (11, 409), (-1, 400)] {
        assert_eq!(http.reduce(&id, 1, keep).await.status, status);
    }
    assert_eq!(http.reduce(&id, 2, 1).await.faults(), [("invalid_value".into(), "/lines/0/line".into())]);
    assert_eq!(http.balances(&pool).await, (1, 9, 0));
    assert_eq!(http.actions(&id).await, ["place", "reduce"]);
    server.finish().await;
}

// 49
async fn the_hold_time_is_the_same_on_every_path(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"hold_seconds": 900})).await;
    http.pool("c", "A", 100, 3).await;
    http.pool("c", "B", 100, 1).await;
    let put = json!({"name": "c", "policy": {"hold_seconds": 77, "hold_seconds_max": 600}});
    assert_eq!(http.put("/v1/campaigns/c", &put).await.status, 200);
    let single = http.place("c", "1", "A", 1).await.body;
    let batch = json!({"orders": [place_body("c", "2", "A", 1)]});
    let batch = http.post("/v1/orders/batch", &batch).await.body["results"][0]["order"].clone();
    let wide = http.order(&order("c", "3", "ann", &[("A", 1); 60])).await.body;
    let mixed = http.order(&order("c", "4", "ann", &[("A", 1), ("B", 1)])).await.body;
    let null = http.order(&with(place_body("c", "5", "A", 1), json!({"hold_seconds": null}))).await.body;
    for order in [single, batch, wide, mixed, null] {
        assert!((hold_of(&order) - 77.0).abs() < 0.01, "{order}");
    }
    for bad in [json!(0), json!(-1), json!(1e9), json!("5"), json!(601), json!(1.5)] {
        let answer = http.order(&with(place_body("c", "6", "A", 1), json!({"hold_seconds": bad}))).await;
        assert_eq!(answer.faults(), [("invalid_value".into(), "/hold_seconds".into())], "{bad}");
    }
    let longest = with(place_body("c", "6", "A", 1), json!({"hold_seconds": 600}));
    assert_eq!(http.order(&longest).await.status, 201);
    server.finish().await;
}
