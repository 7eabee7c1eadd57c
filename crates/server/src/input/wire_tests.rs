//! Every request of the wire crate, serialised, is read by the server: the two cannot drift apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::id::{CampaignId, PoolId, Provider, Sku};
use holdfast_core::stock::{Path, Routing};
use holdfast_wire as wire;
use serde::Serialize;

use super::reader::Object;
use super::{assortment, campaigns, cases, orders, payments, pools, read, reconciliations, sinks};

fn accepts<T, R>(request: &T, shape: impl FnOnce(&mut Object<'_, '_>) -> Option<R>) -> R
where
    T: Serialize + serde::de::DeserializeOwned,
{
    let text = serde_json::to_string(request).expect("JSON");
    serde_json::from_str::<T>(&text).expect("the request reads itself back");
    match read(text.as_bytes(), shape) {
        Ok(value) => value,
        Err(problem) => panic!("{text}: {:?}", problem.pointers()),
    }
}

fn money() -> wire::Money {
    wire::Money { amount_minor: 990, currency: "EUR".into() }
}

fn order() -> wire::PlaceOrderRequest {
    wire::PlaceOrderRequest {
        campaign_id: "c".into(),
        order_no: "o".into(),
        account: "a".into(),
        lines: vec![wire::PlaceLine { sku: "s".into(), location: Some("west".into()), quantity: 2 }],
        hold_seconds: Some(60),
        amount_due: Some(money()),
        limit_keys: Some(BTreeMap::from([("device".into(), "d".into())])),
        metadata: Some(serde_json::value::RawValue::from_string(r#"{ "k" : 1.50 }"#.into()).expect("JSON")),
    }
}

#[test]
fn campaigns_are_read() {
    let limits = wire::KeyLimits { units: Some(2), open_holds: None };
    let policy = wire::PolicyRequest {
        hold_seconds: Some(60),
        hold_seconds_max: Some(120),
        payment_extension_seconds: Some(30),
        release_grace_ms: Some(1),
        notice_grace_seconds: Some(1),
        capture: Some("immediate".into()),
        deadline_basis: Some("provider_paid_at".into()),
        late_payment: Some("refund".into()),
        payment_failed: Some("release".into()),
        review_seconds: Some(1),
        review_end: Some("person".into()),
        restock_on_refund: Some(true),
        account_limit: Some(1),
        account_open_holds: Some(1),
        key_limits: Some(BTreeMap::from([("device".into(), limits)])),
        order_rate_per_account: Some(1),
        order_rate: Some(1),
        queue_limit: Some(5),
        queue_wait_ms: Some(1),
        approval_threshold: None,
    };
    let request = wire::PutCampaignRequest {
        name: "n".into(),
        starts_at: Some("2026-01-01T00:00:00".into()),
        ends_at: Some("2026-01-02T00:00:00Z".into()),
        time_zone: Some("Europe/Berlin".into()),
        policy: Some(policy),
    };
    let id = CampaignId::new("c").expect("an id");
    let put = accepts(&request, |body| campaigns::read_campaign(id.clone(), body));
    assert_eq!((put.policy.hold_seconds, put.policy.account_open_holds), (60, Some(1)));
    let least = wire::PutCampaignRequest { name: "n".into(), ..Default::default() };
    accepts(&least, |body| campaigns::read_campaign(id, body));
    let switch = wire::SwitchRequest { reason: "r".into(), operator: "o".into() };
    accepts(&switch, campaigns::read_switch);
    for unsold_to in [None, Some("01937a5e-0000-7000-8000-0000000000ff".to_owned())] {
        let close = wire::CloseRequest { reason: "r".into(), operator: "o".into(), unsold_to };
        accepts(&close, campaigns::read_close);
    }
    let locations =
        wire::PutLocationsRequest { order: vec!["east".into(), "main".into()], split: Some(true) };
    accepts(&locations, assortment::read_locations);
    let component = wire::BundleComponent { sku: "cup".into(), quantity: 2 };
    let bundle = wire::PutBundleRequest { components: vec![component] };
    let set = Sku::new("set").expect("an id");
    accepts(&bundle, |body| assortment::read_bundle(set, body));
}

#[test]
fn pools_are_read() {
    let actor = Arc::from("test");
    let request = wire::OpenPoolRequest {
        campaign_id: "c".into(),
        sku: "s".into(),
        location: Some("west".into()),
        supply: 10,
        buckets: Some(4),
        path: Some(Path::Batched.as_str().into()),
        routing: Some(Routing::Random.as_str().into()),
    };
    assert_eq!(accepts(&request, |body| pools::read_pool(&actor, body)).buckets, 4);
    let least = wire::OpenPoolRequest { location: None, buckets: None, path: None, routing: None, ..request };
    assert_eq!(accepts(&least, |body| pools::read_pool(&actor, body)).location.as_str(), "main");
    let adjust = wire::AdjustPoolRequest {
        adjustment_id: "a".into(),
        delta: -5,
        kind: "adjust".into(),
        reason: "r".into(),
        operator: "o".into(),
        bucket: Some(3),
    };
    assert_eq!(accepts(&adjust, |body| pools::read_adjustment(PoolId(1), body)).bucket, Some(3));
}

#[test]
fn changes_of_pools_are_read() {
    let actor = Arc::from("test");
    let change = wire::ChangePoolRequest {
        path: Some("direct".into()),
        routing: Some("node_affinity".into()),
        buckets: Some(2),
        weights: Some(vec![0, 3]),
        max_concurrency: Some(None),
        cache_fallback: Some("refuse".into()),
        reason: Some("r".into()),
        operator: Some("o".into()),
    };
    let read = accepts(&change, |body| pools::read_change(PoolId(1), &actor, body));
    assert_eq!((read.max_concurrency, read.weights), (Some(None), Some(vec![0, 3])));
    let least = wire::ChangePoolRequest::default();
    assert_eq!(accepts(&least, |body| pools::read_change(PoolId(1), &actor, body)).path, None);
    let sweep = wire::SweepRequest { reason: "r".into(), operator: "o".into(), bucket: Some(1) };
    assert_eq!(accepts(&sweep, |body| pools::read_sweep(PoolId(1), body)).bucket, Some(1));
    let end = |last: u8, bucket| wire::TransferEnd {
        pool_id: format!("01937a5e-0000-7000-8000-00000000000{last}"),
        bucket,
    };
    let transfer = wire::TransferRequest {
        transfer_id: "t".into(),
        from: end(1, None),
        to: end(2, Some(0)),
        quantity: 5,
        reason: "r".into(),
        operator: "o".into(),
    };
    assert_eq!(accepts(&transfer, pools::read_transfer).to.bucket, Some(0));
}

#[test]
fn orders_are_read() {
    let placed = accepts(&order(), orders::read_place);
    assert_eq!(placed.metadata.as_deref(), Some(r#"{ "k" : 1.50 }"#));
    let least = wire::PlaceOrderRequest {
        hold_seconds: None,
        amount_due: None,
        limit_keys: None,
        metadata: None,
        lines: vec![wire::PlaceLine { sku: "s".into(), location: None, quantity: 1 }],
        ..order()
    };
    accepts(&least, orders::read_place);
    let batch = accepts(&wire::PlaceBatchRequest { orders: vec![order(), least] }, orders::read_batch);
    assert!(batch.iter().all(Result::is_ok));
    accepts(&wire::CancelRequest::default(), orders::read_cancel);
    let lines = Some(vec![wire::CancelLine { line: 1, keep: 0 }]);
    accepts(&wire::CancelRequest { reason: Some("r".into()), lines }, orders::read_cancel);
    let attempt = wire::PaymentAttemptRequest { attempt_id: "t".into(), provider: "p".into() };
    accepts(&attempt, orders::read_attempt);
    let refund = wire::RefundRequest {
        refund_id: "r".into(),
        lines: vec![wire::RefundLine { line: 1, quantity: 1 }],
        restock: Some(true),
        reason: "r".into(),
    };
    accepts(&refund, orders::read_refund);
    let cancels = wire::CancelOrdersRequest {
        campaign_id: "c".into(),
        state: Some("queued".into()),
        account: Some("a".into()),
        pool_id: Some("01937a5e-0000-7000-8000-0000000000ff".into()),
        after: Some("01937a5e-0000-7000-8000-0000000000ff".into()),
        limit: Some(500),
        reason: "r".into(),
        operator: "o".into(),
    };
    accepts(&cancels, orders::read_cancellations);
    let resolve = |action: &str| wire::ResolveOrderRequest {
        action: action.into(),
        reason: "r".into(),
        operator: "o".into(),
        until: (action == "extend").then(|| "2026-01-01T00:00:00Z".into()),
        payment_ids: (action == "refunded").then(|| vec!["p".into()]),
        lines: (action == "reduce").then(|| vec![wire::CancelLine { line: 1, keep: 0 }]),
        decision_id: Some("d".into()),
    };
    for action in ["confirm", "release", "extend", "reduce", "refunded"] {
        accepts(&resolve(action), orders::read_decision);
    }
}

#[test]
fn notices_are_read() {
    let provider = || Provider::new("stub").expect("an id");
    let by_id = wire::PaymentNotification {
        event_id: "e".into(),
        payment_id: "p".into(),
        order_id: Some("01937a5e-0000-7000-8000-0000000000ff".into()),
        attempt_id: Some("t".into()),
        outcome: "succeeded".into(),
        paid_at: Some("2026-01-01T00:00:00.000Z".into()),
        amount_minor: Some(990),
        currency: Some("EUR".into()),
        ..Default::default()
    };
    accepts(&by_id, |body| payments::read_notice(provider(), body));
    let by_key = wire::PaymentNotification {
        order_id: None,
        campaign_id: Some("c".into()),
        order_no: Some("o".into()),
        outcome: "failed".into(),
        ..by_id
    };
    accepts(&by_key, |body| payments::read_notice(provider(), body));
}

#[test]
fn cases_are_read() {
    let request = wire::ResolveCaseRequest {
        action: "acknowledge".into(),
        reason: "seen".into(),
        operator: "ann".into(),
    };
    let read = accepts(&request, cases::read_resolve);
    assert_eq!((read.operator.as_str(), &*read.reason), ("ann", "seen"));
}

#[test]
fn reconciliations_are_read() {
    use holdfast_core::reconcile::RunScope;
    for (scope, meant) in [
        (None, RunScope::Full),
        (Some("full".to_owned()), RunScope::Full),
        (Some("incremental".to_owned()), RunScope::Incremental),
    ] {
        let request = wire::ReconcileRequest { scope };
        assert_eq!(accepts(&request, reconciliations::read_reconcile), meant);
    }
}

#[test]
fn sinks_are_read() {
    let request = wire::PutSinkRequest {
        kind: "webhook".into(),
        url: Some("https://shop.example/in".into()),
        from: Some("now".into()),
        types: Some(
            holdfast_core::event::OrderEventKind::ALL.iter().map(|kind| kind.as_str().into()).collect(),
        ),
        batch_max: Some(500),
        timeout_ms: Some(100),
        attempts_max: Some(20),
        retry_seconds: Some(vec![1, 86_400]),
        disable_after_seconds: Some(1),
        secret: Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        ..wire::PutSinkRequest::default()
    };
    let now = holdfast_core::time::Timestamp(7);
    let read = accepts(&request, |body| sinks::read_sink(now, body));
    assert_eq!((read.settings.types.len(), read.from), (10, now));
    for (kind, field) in [("nats", "subject"), ("redis", "stream")] {
        let to = |name| (field == name).then(|| "x".to_owned());
        let (subject, stream) = (to("subject"), to("stream"));
        let request = wire::PutSinkRequest { kind: kind.into(), subject, stream, ..Default::default() };
        assert_eq!(accepts(&request, |body| sinks::read_sink(now, body)).settings.to, "x");
    }
    let (reason, operator) = (Some("r".to_owned()), Some("o".to_owned()));
    let change = wire::ChangeSinkRequest { reason: reason.clone(), operator: operator.clone() };
    assert_eq!(accepts(&change, sinks::read_signed).operator, "o");
    let replay = wire::ReplaySinkRequest { from: "dead_letters".into(), reason, operator };
    assert_eq!(accepts(&replay, sinks::read_replay).1.reason, "r");
    accepts(&wire::AddSecretRequest::default(), sinks::read_secret);
    let ack = wire::AckRequest { consumer: "erp".into(), position: "AQ".into() };
    assert_eq!(&*accepts(&ack, sinks::read_ack).1, "AQ");
}
