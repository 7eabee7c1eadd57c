//! What operators do, on PostgreSQL: stock files, work that needs a second person, many cancels, a case, a provider that is asked.

use serde_json::json;

use super::{authority, without_keys};
use crate::ahead::{BACK, FORTH, its_pool_is_frozen, mended_it_sells, two_holds};
use crate::approvals::a_second_person_agrees_before_anything_moves;
use crate::cancellations::a_campaign_is_cancelled_page_by_page;
use crate::import_crash::a_file_is_whole_or_not_there;
use crate::imports::{files_are_applied_whole_once_and_by_the_ledger, send};
use crate::odd_hold::{holds, the_others_are_released};
use crate::status::{
    Bank, a_hold_is_let_go_after_its_provider_was_asked, a_silent_provider_holds_up_nobody_else,
};
use crate::support::Server;

/// Rows of a big file.
const ROWS: usize = 100_000;

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
async fn a_campaign_is_cancelled_in_pages() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    a_campaign_is_cancelled_page_by_page(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hold_that_cannot_be_released_stops_no_other_and_becomes_a_case() {
    let (authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let (pool, odd) = holds(&server.http).await;
    authority.sql("shop", "CREATE TABLE kept AS SELECT id, lines FROM orders").await.unwrap();
    authority.sql("shop", &format!("UPDATE orders SET lines = 'no JSON' WHERE id = '{odd}'")).await.unwrap();
    the_others_are_released(&server.http, &pool, &odd).await;
    let mend = "UPDATE orders SET lines = kept.lines FROM kept WHERE orders.id = kept.id AND orders.lines = 'no JSON'";
    authority.sql("shop", mend).await.unwrap();
    authority.sql("shop", "DROP TABLE kept").await.unwrap();
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_whose_ledger_is_ahead_freezes_its_pool_and_becomes_a_case() {
    let (authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let (pool, older) = two_holds(&server.http).await;
    authority.sql("shop", &format!("{BACK}'{pool}'")).await.unwrap();
    its_pool_is_frozen(&server.http, &pool, &older).await;
    authority.sql("shop", &format!("{FORTH}'{pool}'")).await.unwrap();
    mended_it_sells(&server.http, &pool, &older).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_with_an_open_payment_is_let_go_after_its_provider_was_asked() {
    let (_authority, url) = authority().await;
    let bank = Bank::open().await;
    let server = Server::start_at(&url, &bank.start()).await.expect("it starts");
    a_hold_is_let_go_after_its_provider_was_asked(&server.http, &bank).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_never_answers_holds_up_nobody_else() {
    let (_authority, url) = authority().await;
    let bank = Bank::open().await;
    let server = Server::start_at(&url, &bank.start()).await.expect("it starts");
    a_silent_provider_holds_up_nobody_else(&server.http, &bank).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_under_way_when_the_server_is_killed_is_whole_or_not_there() {
    let (_authority, url) = authority().await;
    a_file_is_whole_or_not_there(Server::start_at(&url, &without_keys()).await.expect("it starts")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_rows_are_one_transaction() {
    let (_authority, url) = authority().await;
    let server = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let rows: String = (0..ROWS).map(|n| format!("SKU-{n:06},main,{}\n", n % 100)).collect();
    let file = format!("sku,location,quantity\n{rows}");
    for (query, what) in [("mode=open", "opened"), ("mode=inbound", "adjusted")] {
        let answer = send(http, &format!("campaign_id=spring&{query}"), file.clone()).await;
        // One in a hundred brings nothing.
        let expected = if what == "opened" { ROWS } else { ROWS / 100 * 99 };
        assert_eq!((answer.status, answer.body[what].as_u64()), (201, u64::try_from(expected).ok()));
    }
    // A last line that is wrong: nothing of the file is done.
    let last = file.rfind("SKU-").expect("rows");
    let bad = format!("{}SKU-X,west,1\n", &file[..last]);
    let answer = send(http, "campaign_id=spring&mode=inbound&import_id=bad", bad).await;
    assert_eq!((answer.status, &answer.body["errors"][0]["line"]), (404, &json!(ROWS + 1)));
    let totals = http.get("/v1/campaigns/spring").await;
    let units: usize = (0..ROWS).map(|n| n % 100).sum();
    assert_eq!(totals.body["totals"]["available"], 2 * units);
    // The books of all of them are read within the time of a read.
    let books = http.get("/v1/campaigns/spring/settlement").await;
    assert_eq!(books.status, 200, "{books:?}");
    let told = books.body["pools"].as_array().expect("pools");
    assert_eq!((&books.body["pool_count"], told.len()), (&json!(ROWS), 10_000));
    assert_eq!((&books.body["opening"], &books.body["inbound"]), (&json!(units), &json!(units)));
    assert!(told.iter().all(|pool| pool["opening"] == pool["inbound"]), "each has its own entries");
    server.finish().await;
}
