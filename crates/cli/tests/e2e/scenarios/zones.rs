//! M: holds and windows wherever the server, its database or its shop believes to be.

use holdfast_server::time_text;
use holdfast_store::{Clock, SystemClock};
use holdfast_testkit::Database;
use serde_json::json;

use crate::imports::send;
use crate::support::{Http, Server, Start, seconds_between};

/// A server that is told by its environment that it is elsewhere.
fn elsewhere() -> Start {
    let environment = [("TZ", "Pacific/Kiritimati"), ("PGTZ", "America/St_Johns"), ("LC_ALL", "de_DE.UTF-8")];
    Start {
        arguments: vec!["--auth".into(), "off".into()],
        environment: environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        log: None,
    }
}

// 142
async fn time_is_the_same(http: &Http) {
    let put = json!({"name": "c", "starts_at": "2026-01-01T00:30:00+14:00", "ends_at": "2099-12-31T23:30:00-03:30",
        "policy": {"release_grace_ms": 0}});
    let campaign = http.put("/v1/campaigns/c", &put).await;
    assert_eq!(campaign.body["starts_at"], "2025-12-31T10:30:00.000Z", "{campaign:?}");
    assert_eq!(campaign.body["ends_at"], "2100-01-01T03:00:00.000Z");
    http.post("/v1/campaigns/c/open", &json!({"operator": "ann", "reason": "test"})).await;
    let pool = http.pool("c", "A", 9, 1).await;
    for (seconds, order_no) in [(60_u32, "long"), (1, "short")] {
        let before = time_text(SystemClock.now());
        let body = json!({"campaign_id": "c", "order_no": order_no, "account": "ann", "hold_seconds": seconds,
            "lines": [{"sku": "A", "quantity": 1}]});
        let placed = http.post("/v1/orders", &body).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        let (created, end) = (placed.text("created_at"), placed.text("hold_expires_at"));
        // The database's clock is this machine's.
        assert!(before <= created && created <= time_text(SystemClock.now()), "{placed:?}");
        assert!((seconds_between(&created, &end) - f64::from(seconds)).abs() < 0.01, "{placed:?}");
    }
    let short = http.get("/v1/orders?campaign_id=c&order_no=short").await.body["items"][0].clone();
    http.wait_for_state(short["id"].as_str().expect("an id"), "released").await;
    assert_eq!(http.balances(&pool).await, (8, 1, 0));
    // A count says its offset; the same moment in another one is the same.
    let there = time_text(SystemClock.now().plus_seconds(14 * 3_600)).replace('Z', "+14:00");
    let counted = format!("sku,quantity,counted_at,basis\nA,9,{there},unsold\n");
    let counted = send(http, "campaign_id=c&mode=count", counted).await;
    assert_eq!((counted.status, &counted.body["unchanged"]), (201, &json!(1)), "{counted:?}");
    let naked = send(
        http,
        "campaign_id=c&mode=count",
        "sku,quantity,counted_at,basis\nA,9,2026-01-01T00:00:00,unsold\n",
    )
    .await;
    assert_eq!((naked.status, &naked.body["errors"][0]["column"]), (400, &json!("counted_at")), "{naked:?}");
}

#[tokio::test]
async fn a_server_in_another_time_zone_holds_as_long() {
    let server = Server::start_with(elsewhere()).await;
    time_is_the_same(&server.http).await;
    server.finish().await;
}

#[tokio::test]
async fn a_database_in_another_time_zone_holds_as_long() {
    let authority = Database::shared().await.unwrap();
    let name = authority.url().rsplit('/').next().unwrap().to_owned();
    for setting in
        ["timezone = 'America/St_Johns'", "datestyle = 'German, DMY'", "intervalstyle = 'sql_standard'"]
    {
        authority.sql(&format!("ALTER DATABASE \"{name}\" SET {setting}")).await.unwrap();
    }
    let server = Server::start_at(&authority.url(), &elsewhere()).await.expect("it starts");
    time_is_the_same(&server.http).await;
    server.finish().await;
}
