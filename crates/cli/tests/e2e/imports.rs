//! Stock files over HTTP: the right result, or a clear error by line and nothing done.

use serde_json::{Value, json};

use crate::support::{Answer, Http, Server, run};

const CSV: (&str, &str) = ("content-type", "text/csv");

pub(crate) async fn send(http: &Http, query: &str, file: impl Into<Vec<u8>>) -> Answer {
    http.send_raw("POST", &format!("/v1/imports/stock?{query}"), &[CSV], file.into()).await
}

/// Every pool of a campaign: SKU, location, supply.
async fn pools(http: &Http, campaign: &str) -> Vec<(String, String, u64)> {
    let pools = http.get(&format!("/v1/pools?campaign_id={campaign}&limit=500")).await;
    let text = |pool: &Value, name: &str| pool[name].as_str().unwrap().to_owned();
    let mut pools: Vec<_> = pools.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pool| (text(pool, "sku"), text(pool, "location"), pool["supply"].as_u64().unwrap()))
        .collect();
    pools.sort_unstable();
    pools
}

/// Line, column and fault of each error.
fn places(answer: &Answer) -> Vec<(u64, String, String)> {
    let errors = answer.body["errors"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    let text = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().to_owned();
    errors
        .iter()
        .map(|error| (error["line"].as_u64().unwrap(), text(error, "column"), text(error, "fault")))
        .collect()
}

fn at(line: u64, column: &str, fault: &str) -> (u64, String, String) {
    (line, column.to_owned(), fault.to_owned())
}

/// The life of a stock file on any store: judged, applied, repeated, refused, counted, exported, imported elsewhere.
pub(crate) async fn files_are_applied_whole_once_and_by_the_ledger(http: &Http) {
    http.campaign("spring", json!({})).await;
    http.campaign("autumn", json!({})).await;
    let file = "\u{feff}SKU,Location,Quantity\r\n0017,main,5\r\n17,,7\r\n\"=1+1\",east,0\r\n";
    let dry = send(http, "campaign_id=spring&dry_run=true", file).await;
    assert_eq!((dry.status, dry.body["opened"].as_u64()), (200, Some(3)), "{dry:?}");
    assert_eq!(pools(http, "spring").await, []);
    let opened = send(http, "campaign_id=spring", file).await;
    assert_eq!((opened.status, opened.body["units"].as_u64()), (201, Some(12)), "{opened:?}");
    let own = |sku: &str, location: &str, supply| (sku.to_owned(), location.to_owned(), supply);
    let expected = [own("0017", "main", 5), own("17", "main", 7), own("=1+1", "east", 0)];
    assert_eq!(pools(http, "spring").await, expected);
    // The same rows in another form are the same file.
    let again =
        send(http, "campaign_id=spring", "sku,location,quantity\n=1+1,east,0\n17,main,7\n0017,main,5").await;
    assert_eq!((again.status, &again.body["replayed"]), (200, &json!(true)), "{again:?}");
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body["import_id"], opened.body["import_id"]);
    // One row that cannot be applied, and none is.
    let bad = send(http, "campaign_id=spring&mode=inbound", "sku,quantity\n17,1\n017,1\n").await;
    assert_eq!(
        (bad.status, bad.code(), places(&bad)),
        (404, "unknown_sku", vec![at(3, "sku", "unknown_sku")])
    );
    assert_eq!(pools(http, "spring").await, expected);
    for (status, query) in [(201, "import_id=d-1"), (200, "import_id=d-1"), (201, "import_id=d-2")] {
        let query = format!("campaign_id=spring&mode=inbound&operator=olga&reason=van&{query}");
        let inbound = send(http, &query, "sku,quantity\n17,1\n").await;
        assert_eq!((inbound.status, inbound.body["adjusted"].as_u64()), (status, Some(1)), "{inbound:?}");
    }
    let other = send(http, "campaign_id=spring&mode=inbound&import_id=d-1", "sku,quantity\n17,2\n").await;
    assert_eq!((other.status, other.code()), (422, "key_mismatch"), "{other:?}");
    // Counted before two are held: the hold is no difference.
    let when = http.get("/v1/campaigns/spring/settlement").await.text("as_of");
    http.place("spring", "A-1", "17", 2).await;
    let count = format!("sku,quantity,counted_at,basis\n17,8,{when},unsold\n");
    let counted = send(http, "campaign_id=spring&mode=count", count.clone()).await;
    let line = &counted.body["lines"][0];
    assert_eq!((counted.status, &line["outcome"], &line["delta"]), (201, &json!("adjusted"), &json!(-1)));
    let pool = line["pool_id"].as_str().unwrap().to_owned();
    assert_eq!(http.balances(&pool).await, (6, 2, 0));
    let twice = send(http, "campaign_id=spring&mode=count&import_id=c-2", count).await;
    assert_eq!((twice.status, places(&twice)), (409, vec![at(2, "counted_at", "corrected_since")]));
    let ledger = http.get(&format!("/v1/ledger?pool_id={pool}")).await;
    let told: Vec<_> = ledger.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["source"] == "import")
        .map(|entry| (entry["action"].as_str().unwrap(), entry["actor"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("inbound", "olga"), ("inbound", "olga"), ("adjust", "anonymous")]);
    // An export imports again unchanged, here and elsewhere.
    let export = http.get("/v1/exports/stock?campaign_id=spring").await.raw;
    let here = send(http, "campaign_id=spring", export.clone()).await;
    assert_eq!((here.status, here.body["unchanged"].as_u64()), (201, Some(3)), "{here:?}");
    let there = send(http, "campaign_id=autumn", export).await;
    assert_eq!((there.status, there.body["opened"].as_u64()), (201, Some(3)), "{there:?}");
    assert_eq!(pools(http, "autumn").await, pools(http, "spring").await);
    // An old export is noticed where stock was corrected since; what was sold does not come back.
    let stale = send(http, "campaign_id=spring", "sku,quantity\n17,6\n").await;
    assert_eq!((stale.status, places(&stale)), (409, vec![at(2, "quantity", "opened_otherwise")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_file_is_applied_whole_once_and_by_the_ledger() {
    let server = Server::start().await;
    files_are_applied_whole_once_and_by_the_ledger(&server.http).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_another_form_is_refused_by_its_place_and_nothing_is_done() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let utf16: Vec<u8> = "\u{feff}sku,quantity\na,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (file, line, column, fault) in [
        (utf16, 1, "", "utf16"),
        (b"sku;quantity\na;1\n".to_vec(), 1, "", "wrong_delimiter"),
        (b"sep=;\nsku;quantity\na;1\n".to_vec(), 1, "", "wrong_delimiter"),
        (b"sku\tquantity\na\t1\n".to_vec(), 1, "", "wrong_delimiter"),
        (b"sku,quantity\nb,2\na,1\na,1\n".to_vec(), 4, "sku", "duplicate_row"),
        (b"sku,location,quantity\nb,main,2\na,ma".to_vec(), 3, "", "too_few_columns"),
        (b"sku,location,quantity\nb,main,2\na,main,".to_vec(), 3, "quantity", "invalid_quantity"),
        (b"sku,location,quantity\nb,main,2\na,\"main,1\n".to_vec(), 3, "", "too_few_columns"),
        ("sku,quantity\na ,1\n".into(), 2, "sku", "invalid_identifier"),
        ("sku,quantity\na\u{a0},1\n".into(), 2, "sku", "invalid_identifier"),
        ("sku,quantity\n,1\n".into(), 2, "sku", "invalid_identifier"),
        (b"sku,quantity\n\xe9,1\n".to_vec(), 2, "sku", "invalid_identifier"),
        ("sku,quantity,price\na,1,2\n".into(), 1, "price", "unknown_column"),
        ("sku,quantity\n".into(), 2, "", "no_rows"),
        ("".into(), 1, "", "empty_file"),
    ] {
        for query in ["campaign_id=spring", "campaign_id=spring&dry_run=true"] {
            let answer = send(http, query, file.clone()).await;
            assert_eq!(answer.status, 400, "{answer:?}");
            assert_eq!(places(&answer), [at(line, column, fault)], "{}", String::from_utf8_lossy(&file));
        }
    }
    for text in [
        "abc",
        "",
        " ",
        "-",
        "-1",
        "NaN",
        "null",
        "12abc",
        "0x10",
        "\u{661}\u{662}",
        "1 000",
        "1.000",
        "1'000",
        "1e3",
        "10.0",
        "+1",
    ] {
        let answer = send(http, "campaign_id=spring", format!("sku,quantity\nok,1\na,{text}\n")).await;
        assert_eq!(places(&answer), [at(3, "quantity", "invalid_quantity")], "{text}");
        assert_eq!((answer.status, answer.code()), (400, "invalid_quantity"));
        assert_eq!(answer.body["errors"][0]["pointer"], "/lines/3/quantity");
    }
    assert_eq!(pools(http, "spring").await, [], "never partly applied");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_looks_alike_stays_apart_and_the_query_is_read_strictly() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    // Composed and decomposed are two SKUs, as 0017 and 17 are, and case tells.
    let twins = "sku,quantity\ncaf\u{e9},1\ncafe\u{301},2\nabc,3\nABC,4\n\"1,5\",5\n";
    assert_eq!(send(http, "campaign_id=spring", twins).await.body["opened"], 5);
    for (query, status, code) in [
        ("", 400, "invalid_value"),
        ("campaign_id=none", 404, "not_found"),
        ("campaign_id=spring&mode=set", 400, "invalid_value"),
        ("campaign_id=spring&dry_run=1", 400, "invalid_value"),
        ("campaign_id=spring&dryrun=true", 400, "unknown_field"),
        ("campaign_id=spring&import_id=+x", 400, "invalid_identifier"),
    ] {
        let answer = send(http, query, "sku,quantity\na,1\n").await;
        assert_eq!((answer.status, answer.code()), (status, code), "{query}: {answer:?}");
    }
    let json = [("content-type", "application/json")];
    let answer = http.send_raw("POST", "/v1/imports/stock?campaign_id=spring", &json, b"{}".to_vec()).await;
    assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type"));
    server.finish().await;
}

/// Files at the same time, of which two open the same pools: each is whole or not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_race_and_orders_between_them_keep_the_law() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let rows: String = (0..300).map(|n| format!("S{n},10\n")).collect();
    assert_eq!(send(http, "campaign_id=spring", format!("sku,quantity\n{rows}")).await.status, 201);
    let inbound = format!("sku,quantity\n{rows}");
    let files = (0..6).map(|n| {
        let (http, inbound) = (http.clone(), inbound.clone());
        tokio::spawn(async move {
            // The same key twice: only once is it done.
            let query = format!("campaign_id=spring&mode=inbound&import_id=i-{}", n / 2);
            loop {
                let answer = send(&http, &query, inbound.clone()).await;
                if answer.status != 503 {
                    break answer.status;
                }
            }
        })
    });
    let files: Vec<_> = files.collect();
    for n in 0..60 {
        assert_eq!(http.place("spring", &format!("A-{n}"), &format!("S{n}"), 1).await.status, 201);
    }
    let mut statuses = Vec::new();
    for file in files {
        statuses.push(file.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 201, 201, 201]);
    let campaign = http.get("/v1/campaigns/spring").await;
    assert_eq!(campaign.body["totals"]["available"], 300 * 40 - 60, "{campaign:?}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_sends_counts_and_shows_faults_by_line() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("count.csv");
    let import = async |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let own = ["import", "stock", path, "--campaign", "spring", "--target", &http.base];
        run(&[&own[..], more].concat()).await
    };
    let when = http.get("/v1/campaigns/spring/settlement").await.text("as_of");
    let count = format!("sku,quantity,counted_at,basis,shipped\nCUP,9,{when},on_hand,0\n");
    let options = ["--mode", "count", "--operator", "olga", "--reason", "shelf", "--format", "json"];
    let dry = import(&count, &[&options[..], &["--dry-run"]].concat()).await;
    let report: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!((&report["ok"], &report["adjusted"]), (&json!(true), &json!(1)), "{report:#}");
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    assert!(import(&count, &options).await.status.success());
    assert_eq!(http.balances(&pool).await, (9, 0, 0));
    let bad = import("sku,quantity\nCUP,1\nPOT,1\n", &["--mode", "inbound"]).await;
    assert_eq!(bad.status.code(), Some(1));
    let text = String::from_utf8(bad.stdout).unwrap();
    assert!(text.starts_with("line 3, sku: unknown_sku: ") && text.contains("nothing was done"), "{text}");
    server.finish().await;
}
