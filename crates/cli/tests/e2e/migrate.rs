//! From the embedded store to PostgreSQL: every row, and never two authorities.

use std::sync::Arc;

use holdfast_core::cache::{Epoch, Turn, TurnEpoch};
use holdfast_core::command::{Command, How, Outcome, Signed};
use holdfast_core::snapshot::LockSet;
use holdfast_sqlite::{Options, SqliteStore};
use holdfast_store::{Batch, Page, PoolFilter, Store};
use holdfast_testkit::Database;
use serde_json::{Value, json};

use crate::support::{Server, Start, run};

fn without_keys() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

/// Opens the epoch of a bucket's cache, as a node with a cache does.
async fn open_epoch(file: &std::path::Path) {
    let store = SqliteStore::open(file, Options::default()).unwrap();
    let (pools, _) = store.pools(PoolFilter::default(), Page { after: None, limit: 1 }).await.unwrap();
    let bucket = pools[0].buckets[0].key;
    let turn = Turn::Open { identity: "server".into() };
    let signed = Signed::new("cache", "");
    let command = Command::TurnEpoch(TurnEpoch { bucket, epoch: Epoch(1), turn, signed });
    let batch = Batch { locks: LockSet::bucket(bucket), commands: Arc::new(vec![command]) };
    let outcomes = store.commit(batch).await.unwrap().outcomes;
    assert!(matches!(outcomes[0], Outcome::Epoch { how: How::Created, .. }), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_moves_with_every_row() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.db");
    let old = Server::start_on(&file, &without_keys()).await.unwrap();
    old.http.campaign("drop", json!({"account_limit": 5, "restock_on_refund": true})).await;
    let pool = old.http.pool("drop", "CUP", 20, 3).await;
    let mut ids = Vec::new();
    for number in 0..8 {
        let mut body = crate::support::place_body("drop", &format!("o{number}"), "CUP", 2);
        body["metadata"] = json!({"note": "tab\there, \\ backslash, é, 日本\nnew line"});
        let placed = old.http.post("/v1/orders", &body).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        ids.push(placed.text("id"));
    }
    assert_eq!(old.http.pay(&ids[0], "paid").await.body["disposition"], "applied");
    let refund = json!({"refund_id": "r1", "lines": [{"line": 1, "quantity": 1}], "reason": "broken"});
    assert_eq!(old.http.post(&format!("/v1/orders/{}/refunds", ids[0]), &refund).await.status, 201);
    assert_eq!(old.http.post(&format!("/v1/orders/{}/cancel", ids[1]), &json!({})).await.status, 200);
    old.finish().await;
    open_epoch(&file).await;
    let old = Server::start_on(&file, &without_keys()).await.unwrap();
    let orders = old.http.get("/v1/orders?campaign_id=drop").await.body;
    let ledger = old.http.get(&format!("/v1/ledger?pool_id={pool}&limit=500")).await.body;
    let audit = old.http.get("/v1/audit").await.body;

    let authority = Database::shared().await.unwrap();
    let (from, to) = (format!("sqlite:{}", file.display()), authority.url());
    let arguments = ["migrate", "--from", &from, "--to", &to, "--format", "json"];
    let refused = run(&arguments).await;
    assert_eq!(refused.status.code(), Some(2), "a server has it open");
    old.finish().await;

    let moved = run(&arguments).await;
    let told: Value = serde_json::from_slice(&moved.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&moved.stderr)));
    assert!(moved.status.success() && told["ok"] == true, "{told:#}");
    let rows = |table: &str| {
        let tables = told["tables"].as_array().unwrap().iter();
        tables.filter(|moved| moved["table"] == table).map(|moved| moved["rows"].clone()).next().unwrap()
    };
    assert_eq!((rows("orders"), rows("bucket"), rows("payment")), (json!(8), json!(3), json!(1)));

    let epochs = authority.sql("SELECT epoch, state FROM cache_bucket").await.unwrap();
    assert_eq!(epochs, "1|closed", "no cache moves with it");

    let new = Server::start_at(&to, &without_keys()).await.unwrap();
    assert_eq!(new.http.get("/v1/orders?campaign_id=drop").await.body, orders);
    assert_eq!(new.http.get(&format!("/v1/ledger?pool_id={pool}&limit=500")).await.body, ledger);
    assert_eq!(new.http.get("/v1/audit").await.body, audit);
    // It sells on, also to keys and accounts that it has only heard of.
    assert_eq!(new.http.place("drop", "o2", "CUP", 2).await.text("id"), ids[2]);
    assert_eq!(new.http.place("drop", "o9", "CUP", 1).await.status, 201);
    new.finish().await;

    // The old one sells nothing any more; a second move finds the target taken.
    let left = Server::start_on(&file, &without_keys()).await.unwrap();
    assert_eq!(left.http.place("drop", "o9", "CUP", 1).await.code(), "frozen");
    left.finish().await;
    let again = run(&arguments).await;
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("not empty"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_moved_is_said_and_changes_nothing() {
    let authority = Database::shared().await.unwrap();
    let to = authority.url();
    let directory = tempfile::tempdir().unwrap();
    let missing = format!("sqlite:{}", directory.path().join("none.db").display());
    for (from, to) in
        [(missing.as_str(), to.as_str()), (to.as_str(), missing.as_str()), ("nonsense", to.as_str())]
    {
        let refused = run(&["migrate", "--from", from, "--to", to]).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "a file that is not there is not made"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundles_and_locations_move_with_what_was_sold_by_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.db");
    let old = Server::start_on(&file, &without_keys()).await.unwrap();
    old.http.campaign("drop", json!({"account_limit": 50})).await;
    for (sku, location, supply) in
        [("CUP", "east", 5), ("CUP", "west", 9), ("POT", "east", 4), ("POT", "west", 6)]
    {
        let body = json!({"campaign_id": "drop", "sku": sku, "location": location, "supply": supply});
        assert_eq!(old.http.post("/v1/pools", &body).await.status, 201);
    }
    let order = json!({"order": ["east", "west"], "split": true});
    assert_eq!(old.http.put("/v1/campaigns/drop/locations", &order).await.status, 200);
    let made_of = json!({"components": [{"sku": "CUP", "quantity": 2}, {"sku": "POT", "quantity": 1}]});
    assert_eq!(old.http.put("/v1/bundles/drop/SET", &made_of).await.status, 201);
    let mut ids = Vec::new();
    for number in 0..3 {
        let placed = old.http.place("drop", &format!("o{number}"), "SET", 2).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        ids.push(placed.text("id"));
    }
    assert_eq!(old.http.pay(&ids[1], "paid").await.body["disposition"], "applied");
    let refund =
        json!({"refund_id": "r", "lines": [{"line": 1, "quantity": 1}], "restock": true, "reason": "broken"});
    assert_eq!(old.http.post(&format!("/v1/orders/{}/refunds", ids[1]), &refund).await.status, 201);
    let shown = async |server: &Server| {
        let mut shown = Vec::new();
        for path in [
            "/v1/campaigns/drop",
            "/v1/campaigns/drop/locations",
            "/v1/campaigns/drop/settlement",
            "/v1/orders?campaign_id=drop",
            "/v1/pools?campaign_id=drop",
        ] {
            let mut answer = server.http.get(path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            // When it was read.
            answer.body.as_object_mut().unwrap().remove("as_of");
            shown.push(answer.body);
        }
        shown
    };
    let before = shown(&old).await;
    assert_eq!(before[0]["assortment"]["bundles"][0]["components"], made_of["components"]);
    let (from, authority) = (format!("sqlite:{}", file.display()), Database::shared().await.unwrap());
    let to = authority.url();
    old.finish().await;
    let moved = run(&["migrate", "--from", &from, "--to", &to]).await;
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));

    let new = Server::start_at(&to, &without_keys()).await.unwrap();
    assert_eq!(shown(&new).await, before);
    // Twelve cups and six pots went, two cups and a pot came back: two sets are left, and no third.
    assert_eq!(new.http.place("drop", "o0", "SET", 2).await.text("id"), ids[0]);
    assert_eq!(new.http.place("drop", "o3", "SET", 3).await.code(), "sold_out");
    assert_eq!(new.http.place("drop", "o4", "SET", 2).await.status, 201);
    assert_eq!(new.http.post(&format!("/v1/orders/{}/cancel", ids[0]), &json!({})).await.status, 200);
    assert_eq!(new.http.place("drop", "o5", "SET", 2).await.status, 201);
    new.finish().await;
    let verified = run(&["verify", "--database", &to]).await;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
