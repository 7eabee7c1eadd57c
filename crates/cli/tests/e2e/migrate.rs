//! From the embedded store to PostgreSQL: every row, and never two authorities.

use holdfast_testkit::Database;
use serde_json::{Value, json};

use crate::support::{Server, Start, run};

fn without_keys() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
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
