//! J: stock files as spreadsheets, other systems and hurried people send them.

use serde_json::{Value, json};

use super::process::hang_up_with;
use super::site::Site;
use super::{order, together};
use crate::imports::send;
use crate::support::{Answer, Http};

super::site::on_each_site! {
    every_form_of_a_file_is_the_same_file
    names_that_look_alike_or_like_formulas_stay_apart_on_every_way
    a_row_for_nothing_creates_nothing
    an_old_export_brings_no_sold_unit_back
    a_file_whose_sender_hangs_up_is_applied_whole_or_not_at_all
}

/// Names that a spreadsheet, a database or a person takes for one another, or for something to work out.
const ODD: [&str; 15] =
    ["0017", "17", "1E5", "100000", "00", "0", "+1", "1", "=1+1", "+49", "-5", "@x", "abc", "ABC", "'abc"];

async fn pools(http: &Http, campaign: &str) -> Vec<Value> {
    let pools = http.get(&format!("/v1/pools?campaign_id={campaign}&limit=500")).await;
    pools.body["items"].as_array().expect("pools").clone()
}

fn counts(answer: &Answer) -> [Option<u64>; 4] {
    ["rows", "opened", "adjusted", "unchanged"].map(|name| answer.body[name].as_u64())
}

// 103
async fn every_form_of_a_file_is_the_same_file(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let first = send(http, "campaign_id=c", "sku,location,quantity\n0017,main,5\nA,east,7\n").await;
    assert_eq!((first.status, counts(&first)), (201, [2, 2, 0, 0].map(Some)));
    for same in [
        "\u{feff}sku,location,quantity\n0017,main,5\nA,east,7\n",
        "sku,location,quantity\r\n0017,main,5\r\nA,east,7\r\n",
        "sku,location,quantity\r0017,main,5\rA,east,7\r",
        "sku,location,quantity\n0017,main,5\nA,east,7",
        "SKU,Location,QUANTITY\n0017,main,5\nA,east,7\n",
        "\"sku\",\"location\",\"quantity\"\n\"0017\",\"main\",\"5\"\n\"A\",\"east\",\"7\"\n",
        "\u{feff}\"SKU\",\"Location\",\"Quantity\"\r\n\"0017\",,\"5\"\r\nA,east,7",
        "quantity,sku,location\n7,A,east\n5,0017,\n",
    ] {
        let again = send(http, "campaign_id=c", same).await;
        assert_eq!((again.status, &again.body["replayed"]), (200, &json!(true)), "{same:?}: {again:?}");
        assert_eq!((&again.body["import_id"], counts(&again)), (&first.body["import_id"], counts(&first)));
    }
    for end in [u16::to_le_bytes, u16::to_be_bytes] {
        for mark in ["\u{feff}", ""] {
            let text = format!("{mark}sku,quantity\nB,1\n");
            let bytes: Vec<u8> = text.encode_utf16().flat_map(end).collect();
            let refused = send(http, "campaign_id=c", bytes).await;
            assert_eq!((refused.status, refused.body["errors"][0]["fault"].as_str()), (400, Some("utf16")));
        }
    }
    assert_eq!(pools(http, "c").await.len(), 2);
    server.finish().await;
}

// 104, 106, 116
async fn names_that_look_alike_or_like_formulas_stay_apart_on_every_way(server: Site) {
    let http = &server.http;
    for campaign in ["here", "there"] {
        http.campaign(campaign, json!({})).await;
    }
    // Each name is a SKU at a place, and a place of a SKU; quantities tell them apart.
    let rows: String = ODD
        .iter()
        .zip(1_u64..)
        .map(|(name, n)| format!("\"{name}\",main,{n}\nP,\"{name}\",{}\n", 100 + n))
        .collect();
    let file = format!("sku,location,quantity\n{rows}");
    let opened = send(http, "campaign_id=here", file).await;
    assert_eq!((opened.status, counts(&opened)), (201, [30, 30, 0, 0].map(Some)), "{opened:?}");
    let export = http.get("/v1/exports/stock?campaign_id=here").await.raw;
    let text = String::from_utf8(export.clone()).expect("UTF-8");
    for cell in text.lines().flat_map(|line| line.split(',')) {
        let bare = cell.trim_start_matches('"');
        assert!(!bare.starts_with(['=', '+', '-', '@']), "a spreadsheet works out {cell}");
    }
    let again = send(http, "campaign_id=there", export).await;
    assert_eq!((again.status, counts(&again)), (201, counts(&opened)), "{again:?}");
    let bare = |pool: &Value| [&pool["sku"], &pool["location"], &pool["supply"]].map(Clone::clone);
    let mut here: Vec<_> = pools(http, "here").await.iter().map(bare).collect();
    let mut there: Vec<_> = pools(http, "there").await.iter().map(bare).collect();
    for of in [&mut here, &mut there] {
        of.sort_by_key(|pool| pool[2].as_u64());
    }
    assert_eq!(here, there);
    for (name, n) in ODD.iter().zip(1_u64..) {
        let nth = usize::try_from(n).expect("few") - 1;
        assert_eq!(here[nth], [json!(name), json!("main"), json!(n)]);
        assert_eq!(here[ODD.len() + nth], [json!("P"), json!(name), json!(100 + n)]);
        // Each is sold by its own name, to the last unit and no further.
        let at = |quantity: u64, turn: &str| {
            json!({"campaign_id": "there", "order_no": format!("{turn} {n}"), "account": "ann",
                "lines": [{"sku": name, "quantity": n}, {"sku": "P", "location": name, "quantity": quantity}]})
        };
        assert_eq!(http.order(&at(100 + n, "all")).await.status, 201, "{name}");
        assert_eq!(http.order(&at(1, "more")).await.code(), "sold_out", "{name}");
    }
    server.finish().await;
}

// 110
async fn a_row_for_nothing_creates_nothing(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 5, 1).await;
    let when = http.get("/v1/campaigns/c/settlement").await.text("as_of");
    for (rows, line, column, fault) in [
        ("A,main,1\nB,main,1", 3, "sku", "unknown_sku"),
        ("A,main,1\nA,Main,1", 3, "sku", "unknown_sku"),
        ("A,main,1\n,main,1", 3, "sku", "invalid_identifier"),
        ("A,main,1\nA,main,1,x", 3, "", "too_many_columns"),
        ("A,main,1\nA,main", 3, "", "too_few_columns"),
    ] {
        let plain = format!("sku,location,quantity\n{rows}\n");
        let counted: String = rows.lines().map(|row| format!("{row},{when},unsold\n")).collect();
        let counted = format!("sku,location,quantity,counted_at,basis\n{counted}");
        for (mode, file) in [("inbound", plain), ("count", counted)] {
            let refused = send(http, &format!("campaign_id=c&mode={mode}"), file).await;
            let error = &refused.body["errors"][0];
            let place = (error["line"].as_u64(), error["column"].as_str().unwrap_or_default());
            assert_eq!(
                (place, &error["fault"]),
                ((Some(line), column), &json!(fault)),
                "{mode}: {refused:?}"
            );
        }
    }
    assert_eq!((pools(http, "c").await.len(), http.balances(&pool).await), (1, (5, 0, 0)));
    server.finish().await;
}

// 114
async fn an_old_export_brings_no_sold_unit_back(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let plain = http.pool("c", "A", 10, 2).await;
    let corrected = http.pool("c", "B", 5, 1).await;
    assert_eq!(http.adjust(&corrected, "before", 5).await.status, 201);
    let export = http.get("/v1/exports/stock?campaign_id=c").await.raw;
    for (sku, pool) in [("A", &plain), ("B", &corrected)] {
        let sold = http.place("c", &format!("sold {sku}"), sku, 2).await.text("id");
        http.pay(&sold, &format!("e {sku}")).await;
        assert_eq!(http.place("c", &format!("held {sku}"), sku, 1).await.status, 201);
        assert_eq!(http.adjust(pool, &format!("after {sku}"), 10).await.status, 201);
    }
    // What was opened so is left as it is; what was corrected before and after is told, and nothing is done.
    let refused = send(http, "campaign_id=c", export.clone()).await;
    assert_eq!(
        (refused.status, refused.body["errors"].as_array().map(Vec::len)),
        (409, Some(1)),
        "{refused:?}"
    );
    assert_eq!(refused.body["errors"][0]["fault"], "opened_otherwise");
    let rows: Vec<_> = String::from_utf8(export).expect("UTF-8").lines().map(str::to_owned).collect();
    let unchanged = send(http, "campaign_id=c", [&rows[0], "\n", &rows[1], "\n"].concat()).await;
    assert_eq!((unchanged.status, counts(&unchanged)), (201, [1, 0, 0, 1].map(Some)), "{unchanged:?}");
    for pool in [&plain, &corrected] {
        assert_eq!(http.balances(pool).await, (17, 1, 2));
    }
    server.finish().await;
}

// 146
async fn a_file_whose_sender_hangs_up_is_applied_whole_or_not_at_all(server: Site) {
    const ROWS: u64 = 400;
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let rows: String = (0..ROWS).map(|n| format!("A{n},1\n")).collect();
    let file = format!("sku,quantity\n{rows}");
    assert_eq!(send(http, "campaign_id=c", file.clone()).await.status, 201);
    let files = 6;
    together((0..files).map(|n| {
        let (http, file) = (http.clone(), file.clone());
        async move {
            let path = format!("/v1/imports/stock?campaign_id=c&mode=inbound&import_id=i-{n}");
            // Every second one is torn off in the middle.
            hang_up_with(&http, &path, "text/csv", &file, if n % 2 == 0 { 100 } else { 60 }).await;
        }
    }))
    .await;
    for n in 0..files {
        let query = format!("campaign_id=c&mode=inbound&import_id=i-{n}");
        let again = loop {
            let again = send(http, &query, file.clone()).await;
            // The one file that is read at a time may still be another.
            if again.status != 503 {
                break again;
            }
        };
        let expected: &[u16] = if n % 2 == 0 { &[200, 201] } else { &[201] };
        assert!(expected.contains(&again.status), "{n}: {again:?}");
        assert_eq!(counts(&again), [ROWS, 0, ROWS, 0].map(Some));
    }
    assert_eq!(http.get("/v1/campaigns/c").await.body["totals"]["available"], (1 + files) * ROWS);
    // Whatever came in is sold, and no more.
    http.accepted(&order("c", "1", "ann", &[("A0", 7)])).await;
    assert_eq!(http.place("c", "2", "A0", 1).await.code(), "sold_out");
    server.finish().await;
}
