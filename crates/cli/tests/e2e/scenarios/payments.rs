//! G: notices that come twice, too early, too late, for another amount, or say the opposite.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::site::Site;
use super::{count, order, success, together, with};
use crate::support::{Http, place_body, wait_until};

super::site::on_each_site! {
    many_messengers_of_one_payment_confirm_once
    a_notice_that_comes_before_its_order_is_sent_again_and_applied
    an_event_is_bound_to_what_it_said
    only_what_had_to_go_back_is_said_to_have_gone
    a_success_after_everything_is_over_moves_nothing
    only_the_right_amount_in_the_right_currency_sells
    parts_of_an_amount_are_due_back_when_the_review_ends
    a_failed_payment_sells_nothing_and_releases_by_policy_when_none_is_open
    the_success_of_another_attempt_counts
    a_payment_that_never_ends_holds_no_longer_than_hold_and_review
    late_money_takes_again_is_due_back_or_waits_for_a_person_by_policy
    a_late_payment_in_the_grace_goes_to_review_where_policy_says_so
    where_the_provider_s_time_counts_a_slow_notice_is_not_late
    what_is_sold_at_once_takes_one_payment_and_gives_back_the_second
    one_payment_pays_one_order_and_is_looked_at_on_every_other
    two_orders_that_share_a_payment_at_once_are_paid_once
}

fn failed(order_id: &str, event: &str, payment: &str) -> Value {
    with(success(order_id, event, payment), json!({"outcome": "failed"}))
}

fn paid(order_id: &str, event: &str, amount: i64, currency: &str) -> Value {
    let notice = success(order_id, event, &format!("pay-{event}"));
    with(notice, json!({"amount_minor": amount, "currency": currency}))
}

/// Opens a campaign with ten of A; its pool.
async fn shop(http: &Http, policy: Value) -> String {
    http.campaign("c", policy).await;
    http.pool("c", "A", 10, 2).await
}

/// Places an order of one unit with an amount due.
async fn priced(http: &Http, order_no: &str, hold_seconds: u32) -> String {
    let due = json!({"amount_due": {"amount_minor": 1000, "currency": "EUR"}, "hold_seconds": hold_seconds});
    http.accepted(&with(place_body("c", order_no, "A", 1), due)).await
}

/// The ids of the payments that are due back.
fn due_back(order: &Value) -> Vec<&str> {
    let payments = order["refund_due"]["payments"].as_array();
    payments.into_iter().flatten().map(|payment| payment["payment_id"].as_str().unwrap()).collect()
}

// 80
async fn many_messengers_of_one_payment_confirm_once(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let id = http.place("c", "1", "A", 2).await.text("id");
    let answers = together((0..20).map(|n| {
        // Ten events, each told twice, all of one payment.
        let (http, notice) = (http.clone(), success(&id, &format!("e{}", n / 2), "p"));
        async move { http.told(&notice).await }
    }))
    .await;
    assert_eq!(answers.iter().filter(|disposition| *disposition == "applied").count(), 1);
    assert_eq!(answers.iter().filter(|disposition| *disposition == "duplicate").count(), 19);
    assert_eq!(http.actions(&id).await, ["place", "confirm"]);
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

// 81
async fn a_notice_that_comes_before_its_order_is_sent_again_and_applied(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let early = json!({
        "event_id": "e", "payment_id": "p", "campaign_id": "c", "order_no": "1", "outcome": "succeeded",
    });
    for _ in 0..2 {
        let unknown = http.tell(&early).await;
        assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
    }
    let id = http.place("c", "1", "A", 1).await.text("id");
    assert_eq!(http.told(&early).await, "applied");
    // Named by our id it is the same notice.
    assert_eq!(http.told(&success(&id, "e", "p")).await, "duplicate");
    let nobody = success("01937a5e-0000-7000-8000-0000000000ff", "e2", "p2");
    assert_eq!(http.tell(&nobody).await.status, 404);
    // What was not understood is not held against it either.
    let second = http.place("c", "2", "A", 1).await.text("id");
    assert_eq!(http.told(&success(&second, "e2", "p2")).await, "applied");
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

async fn an_event_is_bound_to_what_it_said(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let id = priced(http, "1", 900).await;
    let other = priced(http, "2", 900).await;
    let first = paid(&id, "e", 1000, "EUR");
    assert_eq!(http.told(&first).await, "applied");
    for (field, value) in [
        ("order_id", json!(other)),
        ("payment_id", json!("p2")),
        ("outcome", json!("failed")),
        ("amount_minor", json!(999)),
        ("currency", json!("USD")),
        ("attempt_id", json!("t")),
        ("paid_at", json!("2026-01-01T00:00:00Z")),
    ] {
        let mut changed = first.clone();
        changed[field] = value;
        let answer = http.tell(&changed).await;
        assert_eq!((answer.status, answer.code()), (422, "key_mismatch"), "{field}");
        assert_eq!(answer.faults(), [("key_mismatch".into(), format!("/{field}"))]);
    }
    // The same event of another provider is another event.
    let card = http.post("/v1/payments/card/notifications", &paid(&other, "e", 1000, "EUR")).await;
    assert_eq!(card.text("disposition"), "applied");
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

async fn only_what_had_to_go_back_is_said_to_have_gone(server: Site) {
    let http = &server.http;
    shop(http, json!({})).await;
    let id = priced(http, "1", 900).await;
    assert_eq!(http.told(&paid(&id, "right", 1000, "EUR")).await, "applied");
    let refunded = async |payments: Value| {
        let mut body = json!({"action": "refunded", "reason": "sent back", "operator": "ann"});
        if !payments.is_null() {
            body["payment_ids"] = payments;
        }
        http.post(&format!("/v1/orders/{id}/resolve"), &body).await
    };
    assert_eq!(refunded(Value::Null).await.code(), "conflict", "nothing is due");
    for event in ["twice", "thrice"] {
        assert_eq!(http.told(&paid(&id, event, 1000, "EUR")).await, "refund_due");
    }
    let known: Vec<_> = http.see(&id).await["payments"].as_array().expect("payments").clone();
    let payment = |at: usize| known[at]["payment_id"].clone();
    let unknown = refunded(json!([payment(1), "typing error"])).await;
    assert_eq!(unknown.faults(), [("invalid_value".into(), "/payment_ids/1".into())], "{unknown:?}");
    assert_eq!(refunded(json!([payment(0)])).await.code(), "conflict", "it pays for the order");
    assert_eq!(due_back(&http.see(&id).await).len(), 2, "nothing was said to have gone back");
    for turn in ["first", "repeated"] {
        let gone = refunded(json!([payment(1)])).await;
        assert_eq!((gone.status, due_back(&gone.body).len()), (200, 1), "{turn}: {gone:?}");
    }
    let rest = refunded(Value::Null).await;
    assert_eq!((rest.status, &rest.body["refund_due"]), (200, &Value::Null), "{rest:?}");
    assert_eq!(refunded(json!([payment(2)])).await.status, 200, "the answer was lost");
    let acts = http.get(&format!("/v1/audit?subject=order%20{id}")).await;
    let told: Vec<_> =
        acts.body["items"].as_array().expect("acts").iter().map(|act| act["detail"].clone()).collect();
    let first = payment(1);
    assert_eq!(
        told,
        [json!("all that was due"), json!(format!("payments {}", first.as_str().expect("an id")))]
    );
    server.finish().await;
}

// 84
async fn a_success_after_everything_is_over_moves_nothing(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let id = http.place("c", "1", "A", 3).await.text("id");
    http.told(&success(&id, "e1", "p1")).await;
    http.refund(&id, "r", 3, Some(true)).await;
    assert_eq!(http.cancel(&id).await.code(), "already_refunded");
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "duplicate");
    assert_eq!(http.told(&success(&id, "e2", "p1")).await, "duplicate");
    assert!(http.see(&id).await["refund_due"].is_null());
    assert_eq!(http.told(&success(&id, "e3", "p2")).await, "refund_due");
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], due_back(&seen)), (&json!("refunded"), vec!["p2"]));
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    server.finish().await;
}

// 85
async fn only_the_right_amount_in_the_right_currency_sells(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let wrong = [(999, "EUR"), (1000, "USD"), (10, "EUR"), (1200, "EUR"), (0, "EUR"), (100_000, "EUR")];
    for (n, (amount, currency)) in wrong.into_iter().enumerate() {
        let id = priced(http, &n.to_string(), 900).await;
        assert_eq!(http.told(&paid(&id, &format!("w{n}"), amount, currency)).await, "review");
        let seen = http.see(&id).await;
        assert_eq!((&seen["state"], &seen["reason"]), (&json!("in_review"), &json!("payment_doubtful")));
        for answer in [http.cancel(&id).await, http.reduce(&id, 1, 0).await, http.attempt(&id, "t").await] {
            assert_eq!((answer.status, answer.code()), (409, "in_review"));
        }
        assert_eq!(http.told(&paid(&id, &format!("r{n}"), 1000, "EUR")).await, "applied");
        // The wrong one is still to be seen.
        let seen = http.see(&id).await;
        assert_eq!((&seen["state"], &seen["payments"][0]["disposition"]), (&json!("sold"), &json!("review")));
    }
    let id = priced(http, "none", 900).await;
    assert_eq!(http.told(&success(&id, "none", "none")).await, "review");
    let negative = http.tell(&paid(&id, "minus", -10, "EUR")).await;
    assert_eq!(negative.faults(), [("invalid_value".into(), "/amount_minor".into())]);
    assert_eq!(http.balances(&pool).await, (3, 1, 6));
    server.finish().await;
}

// 85
async fn parts_of_an_amount_are_due_back_when_the_review_ends(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"review_seconds": 1})).await;
    let id = priced(http, "1", 900).await;
    for (event, amount) in [("a", 400), ("b", 600)] {
        assert_eq!(http.told(&paid(&id, event, amount, "EUR")).await, "review");
    }
    let released = http.wait_for_state(&id, "released").await;
    assert_eq!(released["reason"], "review_ended");
    let due = released["refund_due"]["payments"].clone();
    let part = |id: &str, amount: i64| json!({"payment_id": id, "amount_minor": amount, "currency": "EUR"});
    assert_eq!(due, json!([part("pay-a", 400), part("pay-b", 600)]));
    assert_eq!(http.listed("campaign_id=c&refund_due=true").await, 1);
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    server.finish().await;
}

// 87
async fn a_failed_payment_sells_nothing_and_releases_by_policy_when_none_is_open(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"payment_failed": "keep"})).await;
    let id = http.place("c", "1", "A", 1).await.text("id");
    assert_eq!(http.told(&failed(&id, "f1", "p1")).await, "applied");
    assert_eq!(http.see(&id).await["state"], "held");
    assert_eq!(http.actions(&id).await, ["place", "order_event"]);
    // The same payment may still succeed; what says the opposite after it is only recorded.
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "applied");
    assert_eq!(http.told(&failed(&id, "f2", "p1")).await, "ignored");
    assert_eq!(http.see(&id).await["state"], "sold");
    let put = json!({"name": "c", "policy": {"payment_failed": "release"}});
    assert_eq!(http.put("/v1/campaigns/c", &put).await.status, 200);
    let id = http.place("c", "2", "A", 2).await.text("id");
    for attempt in ["t1", "t2"] {
        assert_eq!(http.attempt(&id, attempt).await.status, 201);
    }
    let of = |event: &str, attempt: &str| with(failed(&id, event, attempt), json!({"attempt_id": attempt}));
    assert_eq!(http.told(&of("f3", "t1")).await, "applied");
    assert_eq!(http.see(&id).await["state"], "held");
    assert_eq!(http.told(&of("f4", "t2")).await, "applied");
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], &seen["reason"]), (&json!("released"), &json!("payment_failed")));
    assert_eq!(http.told(&of("f5", "t2")).await, "ignored");
    assert_eq!(http.balances(&pool).await, (9, 0, 1));
    server.finish().await;
}

async fn the_success_of_another_attempt_counts(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"payment_failed": "release"})).await;
    let id = http.place("c", "1", "A", 1).await.text("id");
    for attempt in ["t1", "t2"] {
        http.attempt(&id, attempt).await;
    }
    // Failed without a name, while two are open: whose it is is not known.
    assert_eq!(http.told(&failed(&id, "f1", "p1")).await, "applied");
    assert_eq!(http.see(&id).await["state"], "held");
    let second = with(success(&id, "e1", "p2"), json!({"attempt_id": "t2"}));
    assert_eq!(http.told(&second).await, "applied");
    let first = with(failed(&id, "f2", "p1"), json!({"attempt_id": "t1"}));
    assert_eq!(http.told(&first).await, "ignored");
    let twice = with(success(&id, "e2", "p1"), json!({"attempt_id": "t1"}));
    assert_eq!(http.told(&twice).await, "refund_due");
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], due_back(&seen)), (&json!("sold"), vec!["p1"]));
    assert_eq!(http.balances(&pool).await, (9, 0, 1));
    server.finish().await;
}

// 88
async fn a_payment_that_never_ends_holds_no_longer_than_hold_and_review(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"review_seconds": 1, "release_grace_ms": 0})).await;
    let id = priced(http, "1", 1).await;
    http.attempt(&id, "t").await;
    let pending = with(success(&id, "e", "p"), json!({"outcome": "pending"}));
    assert_eq!(http.tell(&pending).await.faults(), [("invalid_value".into(), "/outcome".into())]);
    let review = http.wait_for_state(&id, "in_review").await;
    assert_eq!(review["reason"], "payment_unknown");
    let [from, until] = ["updated_at", "review_ends_at"].map(|name| review[name].as_str().unwrap());
    // Whole seconds later.
    assert!(
        until > from && until.split_once('.').unwrap().1 == from.split_once('.').unwrap().1,
        "{review:#}"
    );
    assert_eq!(http.balances(&pool).await, (9, 1, 0));
    let released = http.wait_for_state(&id, "released").await;
    assert_eq!((&released["reason"], &released["refund_due"]), (&json!("review_ended"), &json!(null)));
    assert_eq!(released["review_ends_at"], json!(null));
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    // Who is told of in the review has paid.
    let id = priced(http, "2", 1).await;
    http.attempt(&id, "t").await;
    http.wait_for_state(&id, "in_review").await;
    assert_eq!(http.told(&paid(&id, "e2", 1000, "EUR")).await, "applied");
    assert_eq!(http.balances(&pool).await, (9, 0, 1));
    server.finish().await;
}

async fn late_money_takes_again_is_due_back_or_waits_for_a_person_by_policy(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({})).await;
    let policy = |late: &str| json!({"name": "c", "policy": {"hold_seconds": 1, "release_grace_ms": 0, "late_payment": late}});
    for (late, disposition, state) in [
        ("retake_else_refund", "retaken", "sold"),
        ("refund", "refund_due", "released"),
        ("review", "review", "released"),
    ] {
        assert_eq!(http.put("/v1/campaigns/c", &policy(late)).await.status, 200);
        let id = http.place("c", late, "A", 2).await.text("id");
        http.wait_for_state(&id, "released").await;
        assert_eq!(http.told(&success(&id, late, late)).await, disposition);
        let seen = http.see(&id).await;
        assert_eq!((&seen["state"], due_back(&seen).len()), (&json!(state), usize::from(late == "refund")));
        assert_eq!(http.told(&success(&id, late, late)).await, "duplicate");
    }
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    // Frozen stock is not taken: a person decides.
    http.put("/v1/campaigns/c", &policy("retake_else_refund")).await;
    let id = http.place("c", "frozen", "A", 1).await.text("id");
    http.wait_for_state(&id, "released").await;
    http.switch(&format!("/v1/pools/{pool}/freeze")).await;
    assert_eq!(http.told(&success(&id, "frozen", "frozen")).await, "review");
    http.switch(&format!("/v1/pools/{pool}/unfreeze")).await;
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

async fn a_late_payment_in_the_grace_goes_to_review_where_policy_says_so(server: Site) {
    let http = &server.http;
    let policy = json!({"hold_seconds": 1, "release_grace_ms": 60_000, "late_payment": "review"});
    let pool = shop(http, policy).await;
    let id = http.place("c", "1", "A", 1).await.text("id");
    let placed = Instant::now();
    wait_until("the end", async || (placed.elapsed() >= Duration::from_secs(1)).then_some(())).await;
    assert_eq!(http.told(&success(&id, "e", "p")).await, "review");
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], &seen["reason"]), (&json!("in_review"), &json!("payment_late")));
    assert_eq!(http.balances(&pool).await, (9, 1, 0));
    server.finish().await;
}

async fn where_the_provider_s_time_counts_a_slow_notice_is_not_late(server: Site) {
    let http = &server.http;
    let policy = json!({"hold_seconds": 1, "deadline_basis": "provider_paid_at", "late_payment": "refund"});
    let pool = shop(http, policy).await;
    let place = async |no: &str| http.place("c", no, "A", 1).await.body;
    let orders = [place("1").await, place("2").await, place("3").await, place("4").await];
    let placed = Instant::now();
    wait_until("the end", async || (placed.elapsed() >= Duration::from_secs(1)).then_some(())).await;
    for (order, (paid_at, disposition)) in orders.iter().zip([
        (orders[0]["created_at"].clone(), "applied"),
        (json!(null), "refund_due"),
        (json!("2099-01-01T00:00:00Z"), "review"),
        (json!("2000-01-01T00:00:00Z"), "review"),
    ]) {
        let id = order["id"].as_str().unwrap();
        let notice = with(success(id, id, id), json!({"paid_at": paid_at}));
        assert_eq!(http.told(&notice).await, disposition, "{notice}");
    }
    assert_eq!(http.balances(&pool).await, (6, 3, 1));
    server.finish().await;
}

async fn what_is_sold_at_once_takes_one_payment_and_gives_back_the_second(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"capture": "immediate"})).await;
    let placed = http.place("c", "1", "A", 2).await;
    assert_eq!((placed.status, placed.text("state")), (201, "sold".into()));
    assert_eq!(placed.body["hold_expires_at"], json!(null));
    let id = placed.text("id");
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "applied");
    assert_eq!(http.told(&success(&id, "e2", "p1")).await, "duplicate");
    assert_eq!(http.told(&success(&id, "e3", "p2")).await, "refund_due");
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], due_back(&seen)), (&json!("sold"), vec!["p2"]));
    assert_eq!(http.cancel(&id).await.code(), "already_sold");
    assert_eq!(http.actions(&id).await, ["place", "order_event", "order_event"]);
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

async fn one_payment_pays_one_order_and_is_looked_at_on_every_other(server: Site) {
    let http = &server.http;
    let pool = shop(http, json!({"hold_seconds": 900, "release_grace_ms": 0})).await;
    let place = async |no: &str| http.accepted(&order("c", no, "ann", &[("A", 1)])).await;
    let owner = place("owner").await;
    assert_eq!(http.told(&success(&owner, "e0", "shared")).await, "applied");
    let held = place("held").await;
    let released = place("released").await;
    http.cancel(&released).await;
    let sold = place("sold").await;
    http.pay(&sold, "sold").await;
    let refunded = place("refunded").await;
    http.pay(&refunded, "refunded").await;
    http.refund(&refunded, "r", 1, Some(true)).await;
    let before = http.balances(&pool).await;
    for (id, state) in
        [(&held, "in_review"), (&released, "released"), (&sold, "sold"), (&refunded, "refunded")]
    {
        assert_eq!(http.told(&success(id, &format!("e-{state}"), "shared")).await, "review", "{state}");
        let seen = http.see(id).await;
        // To pay it back would take the money of the order that it paid.
        assert_eq!((&seen["state"], due_back(&seen)), (&json!(state), vec![]), "{seen}");
    }
    assert_eq!(http.balances(&pool).await, before);
    assert_eq!(http.see(&owner).await["state"], "sold");
    server.finish().await;
}

async fn two_orders_that_share_a_payment_at_once_are_paid_once(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 80, 2).await;
    for round in 0..40 {
        let mut ids = Vec::new();
        for n in 0..2 {
            ids.push(http.place("c", &format!("{round}-{n}"), "A", 1).await.text("id"));
        }
        let answers = together(ids.into_iter().map(|id| {
            let (http, notice) = (http.clone(), success(&id, &format!("e-{id}"), &format!("p{round}")));
            async move { http.tell(&notice).await }
        }))
        .await;
        assert_eq!(count(&answers, 200), 2);
        let mut told: Vec<_> = answers.iter().map(|answer| answer.text("disposition")).collect();
        told.sort_unstable();
        assert_eq!(told, ["applied", "review"]);
    }
    assert_eq!(http.balances(&pool).await, (0, 40, 40));
    server.finish().await;
}
