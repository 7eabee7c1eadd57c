//! Stock files, and work that needs a second person, on PostgreSQL.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{authority, without_keys};
use crate::approvals::a_second_person_agrees_before_anything_moves;
use crate::imports::{files_are_applied_whole_once_and_by_the_ledger, send};
use crate::support::Server;

/// Rows of a big file.
const ROWS: usize = 100_000;
/// How long one may take.
const IMPORT_MAX: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_file_is_applied_whole_once_and_by_the_ledger() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    files_are_applied_whole_once_and_by_the_ledger(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_above_the_threshold_waits_for_a_second_person() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    a_second_person_agrees_before_anything_moves(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_rows_are_one_transaction_and_take_seconds() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let rows: String = (0..ROWS).map(|n| format!("SKU-{n:06},main,{}\n", n % 100)).collect();
    let file = format!("sku,location,quantity\n{rows}");
    for (query, what) in [("mode=open", "opened"), ("mode=inbound", "adjusted")] {
        let begun = Instant::now();
        let answer = send(http, &format!("campaign_id=spring&{query}"), file.clone()).await;
        let took = begun.elapsed();
        println!("{ROWS} rows, {query}: {took:?}");
        // One in a hundred brings nothing.
        let expected = if what == "opened" { ROWS } else { ROWS / 100 * 99 };
        assert_eq!((answer.status, answer.body[what].as_u64()), (201, u64::try_from(expected).ok()));
        assert!(took < IMPORT_MAX, "{took:?}");
    }
    // A last line that is wrong: nothing of the file is done.
    let last = file.rfind("SKU-").expect("rows");
    let bad = format!("{}SKU-X,west,1\n", &file[..last]);
    let answer = send(http, "campaign_id=spring&mode=inbound&import_id=bad", bad).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["line"]), (404, &json!(ROWS + 1)));
    let totals = http.get("/v1/campaigns/spring").await;
    let units: usize = (0..ROWS).map(|n| n % 100).sum();
    assert_eq!(totals.body["totals"]["available"], 2 * units);
    server.finish().await;
}
