//! A bucket's row is put back to what it was an entry ago: its pool is frozen and one case tells why, others go on.

use serde_json::{Value, json};

use crate::support::{Http, Server};

/// What puts the row back, and forth again.
pub(crate) const BACK: &str =
    "UPDATE bucket SET ledger_seq = ledger_seq - 1, available = available + 1, held = held - 1 WHERE pool = ";
pub(crate) const FORTH: &str =
    "UPDATE bucket SET ledger_seq = ledger_seq + 1, available = available - 1, held = held + 1 WHERE pool = ";

/// Two holds in a pool, and a pool beside it; the first, and the older of its orders.
pub(crate) async fn two_holds(http: &Http) -> (String, String) {
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    http.pool("spring", "MUG", 10, 1).await;
    let older = http.place("spring", "A-1", "CUP", 1).await.text("id");
    assert_eq!(http.place("spring", "A-2", "CUP", 1).await.status, 201);
    (pool, older)
}

async fn cases(http: &Http) -> Vec<Value> {
    http.get("/v1/cases?kind=ledger_ahead").await.body["items"].as_array().unwrap().clone()
}

/// No hold is made there and none fails; nobody else notices.
pub(crate) async fn its_pool_is_frozen(http: &Http, pool: &str, older: &str) {
    for number in 0..3 {
        let refused = http.place("spring", &format!("B-{number}"), "CUP", 1).await;
        assert_eq!((refused.status, refused.code()), (409, "frozen"), "{refused:?}");
    }
    assert_eq!(http.place("spring", "C-1", "MUG", 1).await.status, 201);
    assert_eq!(http.get(&format!("/v1/pools/{pool}")).await.body["frozen"], true);
    // Nothing at all can be written in that bucket: the provider tells it again.
    let paid = http.pay(older, "e1").await;
    assert_eq!((paid.status, paid.code()), (503, "authority_unavailable"), "{paid:?}");
    let cases = cases(http).await;
    assert_eq!(cases.len(), 1, "{cases:#?}");
    assert_eq!((&cases[0]["pool_id"], &cases[0]["state"]), (&json!(pool), &json!("open")));
    let evidence = &cases[0]["evidence"];
    let numbers =
        ["bucket", "ledger_seq", "last_entry", "available", "held"].map(|name| evidence[name].as_u64());
    assert_eq!(numbers, [0, 2, 3, 9, 1].map(Some), "{evidence:#}");
    let first = &evidence["first_beyond"];
    assert_eq!(
        (&first["seq"], &first["action"], &first["business_no"]),
        (&json!(3), &json!("place"), &json!("A-2"))
    );
}

/// Whoever mends the row takes the freeze off.
pub(crate) async fn mended_it_sells(http: &Http, pool: &str, older: &str) {
    let signed = json!({"operator": "ann", "reason": "the row is what it was"});
    assert_eq!(http.post(&format!("/v1/pools/{pool}/unfreeze"), &signed).await.status, 200);
    assert_eq!(http.place("spring", "D-1", "CUP", 1).await.status, 201);
    assert_eq!(http.pay(older, "e1").await.text("disposition"), "applied");
    assert_eq!(http.balances(pool).await, (7, 2, 1));
    assert_eq!(cases(http).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_whose_ledger_is_ahead_freezes_its_pool_and_becomes_a_case() {
    let server = Server::start().await;
    let (pool, older) = two_holds(&server.http).await;
    let database = rusqlite::Connection::open(server.database()).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let bucket = format!("x'{}'", pool.replace('-', ""));
    assert_eq!(database.execute(&format!("{BACK}{bucket}"), []).unwrap(), 1);
    its_pool_is_frozen(&server.http, &pool, &older).await;
    assert_eq!(database.execute(&format!("{FORTH}{bucket}"), []).unwrap(), 1);
    drop(database);
    mended_it_sells(&server.http, &pool, &older).await;
    server.finish().await;
}
