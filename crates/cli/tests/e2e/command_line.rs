//! The commands, as a user types them.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Server, Start, run, wait_until};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

async fn replay(file: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["replay", file, "--preset", "online-retail", "--format", "json"];
    all.extend(arguments);
    let output = run(&all).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_sample_replays_exactly_on_a_private_server() {
    let sample = repository().join("samples/retail-sample.csv");
    let result = replay(sample.to_str().unwrap(), &["--supply-percent", "80"]).await;
    let figures = ["sold_orders", "sold_out_orders", "available_units", "held_units", "sold_units"];
    let figures: Vec<_> = figures.iter().map(|name| result[name].as_u64().unwrap()).collect();
    assert_eq!((figures, &result["law"]), (vec![6, 6, 114, 0, 96], &json!("ok")));
}

/// A day of the real orders. Where `CI` is set a missing day fails; elsewhere it is named as not run.
fn day(name: &str) -> Option<String> {
    let directory = std::env::var_os("HOLDFAST_RETAIL_DIR")
        .map_or_else(|| repository().join("../shared/data/retail"), PathBuf::from);
    let file = directory.join(name);
    if file.exists() {
        return Some(file.to_str().unwrap().to_owned());
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing; set HOLDFAST_RETAIL_DIR", file.display());
    eprintln!("NOT RUN: {} is missing; the README says where the data set is", file.display());
    None
}

const FIGURES: [&str; 14] = [
    "pools",
    "opening_units",
    "orders",
    "sold_orders",
    "sold_out_orders",
    "adjustments_applied",
    "adjustments_refused",
    "adjusted_units",
    "refunds",
    "refunded_units",
    "unmatched_return_units",
    "available_units",
    "held_units",
    "sold_units",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_days_replay_exactly_one_at_a_time() {
    for (name, percent, expected) in [
        ("2010-12-01.csv", "80", [1351, 20928, 136, 38, 98, 0, 1, 0, 0, 0, 183, 17617, 0, 3311]),
        ("2010-12-01.csv", "100", [1351, 27007, 136, 136, 0, 0, 1, 0, 1, 6, 177, 6, 0, 27001]),
        ("2011-12-05.csv", "80", [1774, 34881, 132, 37, 95, 0, 3, 0, 1, 40, 85, 32752, 0, 2129]),
        ("2011-12-05.csv", "100", [1774, 44664, 132, 132, 0, 0, 3, 0, 1, 40, 85, 40, 0, 44624]),
    ] {
        let Some(file) = day(name) else { continue };
        let result = replay(&file, &["--supply-percent", percent, "--concurrency", "1"]).await;
        let figures = FIGURES.map(|name| result[name].as_u64().unwrap());
        assert_eq!((figures, &result["law"]), (expected, &json!("ok")), "{name} at {percent} %");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_day_replayed_concurrently_keeps_the_law() {
    let Some(file) = day("2010-12-01.csv") else { return };
    let server = Server::start().await;
    let result =
        replay(&file, &["--supply-percent", "80", "--concurrency", "64", "--target", &server.http.base])
            .await;
    assert_eq!(result["law"], "ok");
    assert_eq!(result["sold_orders"].as_u64().unwrap() + result["sold_out_orders"].as_u64().unwrap(), 136);
    assert_eq!(result["held_units"], 0);
    server.finish().await;
}

#[tokio::test]
async fn a_stock_file_opens_pools_and_a_bad_one_changes_nothing() {
    let server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stock.csv");
    let import = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let target = server.http.base.clone();
        run(&["import", "stock", file, "--campaign", "spring", "--target", &target, "--format", "json"]).await
    };
    let bad = import("sku,location,quantity\nCUP,main,5\nPOT,main,5.0\n").await;
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(server.http.get("/v1/pools?campaign_id=spring").await.body["items"], json!([]));
    let good = import("\u{feff}SKU,location,quantity\r\n0017,main,5\r\n17,north,7\r\n").await;
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stdout));
    let pools = server.http.get("/v1/pools?campaign_id=spring").await;
    let mut pools: Vec<_> = pools.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["sku"].as_str().unwrap(), p["available"].as_u64().unwrap()))
        .collect();
    // They are opened side by side.
    pools.sort_unstable();
    assert_eq!(pools, [("0017", 5), ("17", 7)]);
    server.finish().await;
}

#[tokio::test]
async fn an_order_is_explained_from_the_server_and_from_the_file_alike() {
    let server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 5, 1).await;
    let id = server.http.place("spring", "A-1", "CUP", 2).await.text("id");
    server.http.pay(&id, "e1").await;
    let database = format!("sqlite:{}", server.database().display());
    let by_file = run(&["explain", "order", &id, "--database", &database, "--format", "json"]).await;
    let key =
        ["--campaign", "spring", "--order-no", "A-1", "--target", &server.http.base, "--format", "json"];
    let by_server = run(&[&["explain", "order"], &key[..]].concat()).await;
    let chain: Value = serde_json::from_slice(&by_file.stdout).unwrap();
    assert_eq!(chain, serde_json::from_slice::<Value>(&by_server.stdout).unwrap());
    assert_eq!(chain["order"]["state"], "sold");
    let actions: Vec<_> = chain["ledger"].as_array().unwrap().iter().map(|e| e["action"].clone()).collect();
    assert_eq!(actions, ["place", "confirm"]);
    let text = run(&["explain", "order", &id, "--database", &database]).await;
    assert!(String::from_utf8_lossy(&text.stdout).contains("held → sold"));
    server.finish().await;
}

#[tokio::test]
async fn what_cannot_run_says_so_with_exit_2() {
    let server = Server::start().await;
    let database = format!("sqlite:{}", server.database().display());
    for (arguments, says) in [
        (vec!["serve", "--auth", "off", "--listen", "0.0.0.0:0"], "loopback"),
        (vec!["serve", "--listen", "127.0.0.1:0", "--database", &database], "another server"),
        (vec!["serve", "--listen", "127.0.0.1:0", "--database", "postgres://127.0.0.1:1/x"], "unavailable"),
        (vec!["verify", "--database", "sqlite:/nowhere/at/all.db"], "nowhere"),
        (
            vec!["import", "stock", "/nowhere.csv", "--campaign", "c", "--target", "http://127.0.0.1:1"],
            "nowhere",
        ),
    ] {
        let output = run(&arguments).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    server.finish().await;
}

#[tokio::test]
async fn a_breach_is_exit_1_and_named() {
    let server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    let pool = server.http.pool("spring", "CUP", 5, 1).await;
    let database = server.database().to_owned();
    let edited = rusqlite::Connection::open(&database).unwrap();
    edited.execute("UPDATE bucket SET available = 6", []).unwrap();
    let output =
        run(&["verify", "--database", &format!("sqlite:{}", database.display()), "--format", "json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["pools"][0]["pool_id"], pool.as_str());
    let codes: Vec<_> = verdict["breaches"].as_array().unwrap().iter().map(|b| b["code"].clone()).collect();
    assert!(codes.contains(&json!("INV2")) && codes.contains(&json!("INV3")), "{verdict}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_what_was_accepted_and_exits_0() {
    let mut server =
        Server::start_with(Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() })
            .await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 100_000, 2).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8 {
        let http = server.http.clone();
        clients.spawn(async move {
            let mut held = Vec::new();
            for n in 0.. {
                let body = crate::support::place_body("spring", &format!("o{client}-{n}"), "CUP", 1);
                match http.try_send("POST", "/v1/orders", Some(&body)).await {
                    Some(answer) if answer.status == 201 => held.push(answer.text("id")),
                    Some(answer) => {
                        assert_eq!((answer.status, answer.code()), (503, "shutting_down"), "{answer:?}");
                        assert!(answer.headers.contains_key("retry-after"));
                        return held;
                    }
                    None => return held,
                }
            }
            held
        });
    }
    wait_until("orders", async || {
        let campaign = server.http.get("/v1/campaigns/spring").await;
        (campaign.body["totals"]["held"].as_u64().unwrap() > 50).then_some(())
    })
    .await;
    server.ask_to_stop();
    let held: usize = clients.join_all().await.iter().map(Vec::len).sum();
    assert!(server.wait().await.success());
    let verdict = server.verify().await;
    assert_eq!(verdict["orders"]["held"].as_u64().unwrap(), u64::try_from(held).unwrap());
}
