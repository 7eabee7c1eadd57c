//! What the node measures of itself.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::Policy;
use holdfast_core::command::How;
use holdfast_core::invariant::Invariant;
use holdfast_core::stock::BucketKey;
use holdfast_engine::Config;
use holdfast_metrics::{Class, Failure, Format, Metrics, Overload};
use holdfast_store::model::Fault;
use tokio::sync::Notify;

use crate::support::{Sale, order, request, settle};

#[tokio::test]
async fn a_balance_that_moved_past_the_ledger_is_a_breach_that_is_shown() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 10, 1).await;
    let placed = sale.place(request("1", "ann", &[("A", 1)])).await.unwrap();
    let breaches = sale.engine.metrics().breaches.of(Invariant::LedgerIsBalance);
    assert_eq!(breaches.get(), 0);
    sale.store.set_available(BucketKey { pool, number: 0 }, 7);
    // The repeat locks the bucket and writes nothing: what it sees has no entry.
    let again = sale.place(request("1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again).1, How::Repeated);
    assert_eq!(order(&placed).0.id, order(&again).0.id);
    assert_eq!(breaches.get(), 1);
    let text = Metrics::new(sale.engine.exposed()).text(Format::PrometheusText).unwrap();
    assert!(text.contains("holdfast_invariant_breaches_total{invariant=\"INV3\"} 1\n"), "{text}");
}

#[tokio::test]
async fn a_read_of_the_shelf_notices_a_breach_too() {
    let sale =
        Sale::open(Policy::default(), Config { shelf_age_max: Duration::ZERO, ..Config::default() }).await;
    let pool = sale.pool("A", 10, 1).await;
    sale.place(request("1", "ann", &[("A", 1)])).await.unwrap();
    sale.store.set_available(BucketKey { pool, number: 0 }, 7);
    sale.clock.advance_millis(1);
    sale.engine.availability(pool).await.unwrap();
    assert_eq!(sale.engine.metrics().breaches.of(Invariant::LedgerIsBalance).get(), 1);
}

#[tokio::test]
async fn what_fails_and_what_is_cut_in_two_is_counted() {
    let sale = Sale::open(Policy::default(), Config { retries_max: 1, ..Config::default() }).await;
    sale.pool("A", 10, 1).await;
    let conflict = || Fault::Before(holdfast_store::Error::Conflict("on request".into()));
    sale.fail_after(0, conflict());
    sale.fail_after(1, conflict());
    sale.place(request("1", "ann", &[("A", 1)])).await.unwrap_err();
    let metrics = sale.engine.metrics();
    assert_eq!(metrics.retries.get(), 1);
    assert_eq!(metrics.failed.of(Failure::Conflict).get(), 1);

    // Two orders in one batch, of which one cannot be stored.
    let hold = Arc::new(Notify::new());
    let bad = request("bad", "ann", &[("A", 1)]);
    sale.fail_after(0, Fault::Wait(Arc::clone(&hold)));
    sale.fail_after(1, Fault::Unstorable(bad.key.clone()));
    let run = |request| {
        let engine = sale.engine.clone();
        tokio::spawn(async move { engine.place(request).await })
    };
    let first = run(request("2", "ann", &[("A", 1)]));
    settle().await;
    let (second, third) = (run(bad), run(request("3", "ann", &[("A", 1)])));
    settle().await;
    assert_eq!(waiting(&sale), 2.0);
    hold.notify_one();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap_err();
    third.await.unwrap().unwrap();
    assert_eq!(metrics.bisections.get(), 1);
    assert_eq!(metrics.failed.of(Failure::Data).get(), 1);
    assert_eq!(metrics.lane_wait.of(Class::Placing).seen().count(), 4);
}

/// A number as the exposition says it.
fn shown(sale: &Sale, series: &str) -> f64 {
    let text = Metrics::new(sale.engine.exposed()).text(Format::PrometheusText).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {series}")).parse().unwrap()
}

/// Commands that wait in lanes.
fn waiting(sale: &Sale) -> f64 {
    shown(sale, "holdfast_lane_depth_commands{class=\"placing\"}")
}

#[tokio::test]
async fn who_is_turned_away_is_counted_by_the_bound() {
    let config = Config { lane_depth_max: 1, ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    sale.pool("A", 10, 1).await;
    let hold = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(Arc::clone(&hold)));
    let run = |order_no: &str| {
        let (engine, request) = (sale.engine.clone(), request(order_no, "ann", &[("A", 1)]));
        tokio::spawn(async move { engine.place(request).await })
    };
    let first = run("1");
    settle().await;
    let second = run("2");
    settle().await;
    assert_eq!(waiting(&sale), 1.0);
    sale.place(request("3", "ann", &[("A", 1)])).await.unwrap_err();
    assert_eq!(sale.engine.metrics().overloads.of(Overload::LaneDepth).get(), 1);
    assert_eq!(sale.engine.metrics().failed.of(Failure::Overloaded).get(), 1);
    hold.notify_one();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sample_is_kept_each_second() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 10, 1).await;
    sale.engine.start_workers();
    let mut samples = Vec::new();
    for second in 0..100 {
        sale.place(request(&format!("{second}"), "ann", &[("A", 1)])).await.unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
        samples = sale.engine.samples();
        if samples.len() >= 3 {
            break;
        }
    }
    assert!(samples.len() >= 3, "{samples:?}");
    assert!(samples.iter().map(|sample| sample.counts.placed).sum::<u64>() >= 2, "{samples:?}");
    assert!(samples.iter().all(|sample| sample.lane_depth == [0, 0] && sample.lanes == 0));
    assert!(samples.iter().any(|sample| sample.placing.count > 0 && sample.batch_commands == 1.0));
}

#[tokio::test]
async fn a_queue_shows_its_depth_its_age_and_who_was_landed() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.queued_pool("A", 2, 1).await;
    for order_no in ["1", "2", "3"] {
        sale.place(request(order_no, "ann", &[("A", 1)])).await.unwrap();
    }
    sale.clock.advance_millis(1_500);
    assert_eq!(shown(&sale, "holdfast_queue_depth_orders"), 3.0);
    assert_eq!(shown(&sale, "holdfast_queue_oldest_age_seconds"), 1.5);
    assert_eq!(shown(&sale, "holdfast_orders_placed_total{state=\"queued\"}"), 3.0);
    sale.engine.land_queued().await;
    assert_eq!(shown(&sale, "holdfast_queue_depth_orders"), 0.0);
    assert_eq!(shown(&sale, "holdfast_queue_landed_orders_total{state=\"held\"}"), 2.0);
    assert_eq!(shown(&sale, "holdfast_queue_landed_orders_total{state=\"failed\"}"), 1.0);
    assert_eq!(shown(&sale, "holdfast_queue_wait_seconds_sum"), 4.5);
}
