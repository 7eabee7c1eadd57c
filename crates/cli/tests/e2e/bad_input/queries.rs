//! Queries: filters, pages and their cursors.

use serde_json::json;

use super::Shop;
use crate::support::{Raw, Server, assert_invalid, assert_problem};

const LISTS: [&str; 4] = ["campaigns", "pools", "orders", "ledger"];

#[tokio::test]
async fn pages_and_unknown_parameters_are_judged_on_every_list() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    for list in LISTS {
        for (query, pointer, code) in [
            ("limit=0", "/query/limit", "invalid_value"),
            ("limit=501", "/query/limit", "invalid_value"),
            ("limit=abc", "/query/limit", "invalid_value"),
            ("limit=-1", "/query/limit", "invalid_value"),
            ("limit=", "/query/limit", "invalid_value"),
            ("limit=1.0", "/query/limit", "invalid_value"),
            ("limit=1e1", "/query/limit", "invalid_value"),
            ("limit=%2B5", "/query/limit", "invalid_value"),
            ("limit=%D9%A1", "/query/limit", "invalid_value"),
            ("limit=99999999999999999999", "/query/limit", "invalid_value"),
            ("limit=5&limit=5", "/query/limit", "duplicate_field"),
            ("cursor=garbage", "/query/cursor", "invalid_value"),
            ("cursor=", "/query/cursor", "invalid_value"),
            ("cursor=AAAA", "/query/cursor", "invalid_value"),
            ("cursor=%00", "/query/cursor", "invalid_value"),
            ("cursor=%ff", "/query/cursor", "invalid_value"),
            ("nonsense=1", "/query/nonsense", "unknown_field"),
            ("Limit=1", "/query/Limit", "unknown_field"),
            ("a%2Fb=1", "/query/a~1b", "unknown_field"),
            ("offset", "/query/offset", "unknown_field"),
            ("limit=%4", "/query/limit", "invalid_value"),
            ("limit=%zz", "/query/limit", "invalid_value"),
        ] {
            let path = format!("/v1/{list}?{query}");
            assert_invalid(&Raw::ask(http, "GET", &path, None).await, code, pointer, &path);
        }
        let long = format!("/v1/{list}?cursor={}", "A".repeat(20_000));
        assert_invalid(&Raw::ask(http, "GET", &long, None).await, "invalid_value", "/query/cursor", list);
        assert_eq!(http.get(&format!("/v1/{list}?limit=500")).await.status, 200);
        assert_eq!(http.get(&format!("/v1/{list}?")).await.status, 200);
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn filters_are_judged_like_fields() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let uuid = "01937a5e-0000-7000-8000-0000000000ff";
    for (list, names) in [
        ("orders", &["campaign_id", "order_no", "account"][..]),
        ("pools", &["campaign_id", "sku", "location"]),
    ] {
        for name in names {
            for value in ["", "%20a", "a+", "%C2%A0", "%00", "a%0Ab", &"x".repeat(129)] {
                let path = format!("/v1/{list}?{name}={value}");
                let pointer = format!("/query/{name}");
                assert_invalid(
                    &Raw::ask(http, "GET", &path, None).await,
                    "invalid_identifier",
                    &pointer,
                    &path,
                );
            }
        }
    }
    let wrong = [
        ("orders?pool_id=17", "pool_id", "invalid_identifier"),
        ("orders?pool_id=", "pool_id", "invalid_identifier"),
        ("orders?state=Held", "state", "invalid_value"),
        ("orders?state=", "state", "invalid_value"),
        ("orders?refund_due=1", "refund_due", "invalid_value"),
        ("orders?refund_due=TRUE", "refund_due", "invalid_value"),
        ("ledger?pool_id=..", "pool_id", "invalid_identifier"),
        ("ledger?order_id=%00", "order_id", "invalid_identifier"),
        ("ledger?order_id=01937a5e00007000800000000000 0ff", "order_id", "invalid_identifier"),
        ("ledger?campaign_id=spring", "campaign_id", "unknown_field"),
        ("campaigns?state=open", "state", "unknown_field"),
        ("pools?order_no=1", "order_no", "unknown_field"),
        ("campaigns/spring?x=1", "x", "unknown_field"),
    ];
    for (path, name, code) in wrong {
        let path = format!("/v1/{}", path.replace(' ', "%20"));
        assert_invalid(&Raw::ask(http, "GET", &path, None).await, code, &format!("/query/{name}"), &path);
    }
    let order = format!("/v1/orders/{}", shop.sold);
    for wait in ["31", "31s", "-1", "1m", "s", "", "1.5s"] {
        let path = format!("{order}?wait={wait}");
        assert_invalid(&http.get(&path).await, "invalid_value", "/query/wait", &path);
    }
    for path in [
        format!("{order}?x=1"),
        format!("/v1/pools/{}?x=1", shop.pool),
        format!("/v1/pools/{}/availability?x=1", shop.pool),
    ] {
        assert_invalid(&http.get(&path).await, "unknown_field", "/query/x", &path);
    }
    for list in ["orders?pool_id=", "ledger?pool_id=", "ledger?order_id="] {
        let answer = http.get(&format!("/v1/{list}{uuid}")).await;
        assert_eq!((answer.status, &answer.body["items"]), (200, &json!([])), "{list}");
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_write_takes_no_parameters() {
    let shop = Shop::open().await;
    for route in super::ROUTES {
        let (method, path, body) = shop.good(route);
        let path = format!("{path}?dry_run=true");
        let answer = Raw::ask(&shop.server.http, method, &path, Some(&body)).await;
        assert_invalid(&answer, "unknown_field", "/query/dry_run", &path);
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_cursor_is_good_only_for_its_own_list_and_filters() {
    let server = Server::start().await;
    let http = &server.http;
    for campaign in ["a", "b", "c"] {
        http.campaign(campaign, json!({})).await;
        let pool = http.pool(campaign, "CUP", 5, 2).await;
        for n in 0..3 {
            assert_eq!(http.place(campaign, &format!("A-{n}"), "CUP", 1).await.status, 201, "{pool}");
        }
    }
    let queries = [
        "campaigns?",
        "pools?",
        "pools?sku=CUP",
        "orders?",
        "orders?campaign_id=a",
        "orders?state=held",
        "ledger?",
    ];
    let mut cursors = Vec::new();
    for query in queries {
        let page = http.get(&format!("/v1/{query}&limit=1")).await;
        assert_eq!(page.status, 200, "{query}: {page:?}");
        cursors.push(page.text("next_cursor"));
    }
    for (of, cursor) in queries.iter().zip(&cursors) {
        for query in queries {
            let path = format!("/v1/{query}&limit=1&cursor={cursor}");
            let answer = http.get(&path).await;
            if query == *of {
                assert_eq!(answer.status, 200, "{path}");
            } else {
                assert_invalid(&answer, "invalid_value", "/query/cursor", &path);
            }
        }
        let (_, short) = cursor.split_at(1);
        let changed = format!("/v1/{of}&cursor={short}");
        assert_problem(&http.get(&changed).await, 400, "invalid_value", &changed);
    }
    // The whole list, one by one, is the whole list.
    let all = http.get("/v1/orders?limit=500").await;
    let (mut seen, mut path) = (Vec::new(), "/v1/orders?limit=2".to_owned());
    while !path.is_empty() {
        let page = http.get(&path).await;
        seen.extend(page.body["items"].as_array().unwrap().clone());
        let next = page.body["next_cursor"].as_str();
        path = next.map(|cursor| format!("/v1/orders?limit=2&cursor={cursor}")).unwrap_or_default();
    }
    assert_eq!(all.body["items"], json!(seen));
    server.finish().await;
}
