//! What the store measures of its writer and its readers.

use std::time::Duration;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::id::{CampaignId, Operator};
use holdfast_metrics::Use;
use holdfast_sqlite::{Options, SqliteStore};
use holdfast_store::{PutCampaign, Store, SwitchCampaign};

#[tokio::test]
async fn every_transaction_is_timed() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("test.db"), Options::default()).unwrap();
    let id = CampaignId::new("sale").unwrap();
    let put = PutCampaign {
        id: id.clone(),
        name: "Sale".into(),
        starts_at: None,
        ends_at: None,
        policy: Policy::default(),
        via: None,
    };
    store.put_campaign(put).await.unwrap();
    let operator = Operator::new("olga").unwrap();
    let switch = SwitchCampaign {
        unsold_to: None,
        id: id.clone(),
        switch: Switch::Open,
        operator,
        reason: "go".into(),
        via: None,
    };
    store.switch_campaign(switch).await.unwrap().unwrap();
    store.campaign(id).await.unwrap().unwrap();

    let metrics = store.metrics().clone();
    // The thread is done with the last transaction when it is joined.
    drop(store);
    for (what, times) in [
        ("lock_wait", &metrics.lock_wait),
        ("lock_hold", &metrics.lock_hold),
        ("commit", &metrics.commit),
        ("transaction_batches", &metrics.transaction_batches),
    ] {
        assert_eq!(times.seen().count(), 2, "{what}");
    }
    assert!(metrics.lock_hold.seen().sum() >= metrics.commit.seen().sum(), "the commit is part of the hold");
    assert_eq!(metrics.read.seen().count(), 1);
    assert!(metrics.commit.seen().quantile(0.99) <= Duration::from_secs(10).as_secs_f64());
    for of in [Use::Write, Use::Read] {
        assert_eq!(metrics.connections_executing.of(of).get(), 0, "{of:?}");
        assert_eq!(metrics.connections_waiting.of(of).get(), 0, "{of:?}");
    }
    assert_eq!(metrics.transactions_waiting.get(), 0);
}
