//! A closed campaign in a file of its own: with proof of its balance, explicable, and sold from by nobody.

use serde_json::{Value, json};

use super::site::{Site, on_each_site};
use super::success;
use crate::support::{Server, Start, run};

on_each_site! {
    a_closed_campaign_is_archived_with_proof
    what_is_not_at_its_end_is_not_archived
}

async fn archive(database: &str, campaign: &str, file: &std::path::Path) -> std::process::Output {
    let file = file.display().to_string();
    run(&["archive", campaign, "--database", database, "--to", &file, "--format", "json"]).await
}

async fn a_closed_campaign_is_archived_with_proof(site: Site) {
    let http = &site.http;
    let database = site.nodes[0].authority().to_owned();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("spring.archive");
    for campaign in ["spring", "summer"] {
        http.campaign(campaign, json!({"account_limit": 5})).await;
    }
    let (pool, other) = (http.pool("spring", "CUP", 10, 2).await, http.pool("summer", "CUP", 10, 1).await);
    let sold = http.place("spring", "A-1", "CUP", 3).await.text("id");
    assert_eq!(http.told(&success(&sold, "e1", "p1")).await, "applied");
    assert_eq!(http.refund(&sold, "r1", 1, Some(true)).await.status, 201);
    let cancelled = http.place("spring", "A-2", "CUP", 2).await.text("id");
    assert_eq!(http.post(&format!("/v1/orders/{cancelled}/cancel"), &json!({})).await.status, 200);
    http.place("summer", "A-1", "CUP", 1).await;
    let body = json!({"transfer_id": "t-1", "from": {"pool_id": pool}, "to": {"pool_id": other}, "quantity": 4,
                      "reason": "the season ends", "operator": "ann"});
    assert_eq!(http.post("/v1/transfers", &body).await.status, 201);
    http.switch("/v1/campaigns/spring/close").await;
    let written = archive(&database, "spring", &file).await;
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let proof: Value = serde_json::from_slice(&written.stdout).unwrap();
    let balance = &proof["pools"][0];
    let units = ["supply", "available", "held", "sold"].map(|name| balance[name].as_u64().unwrap());
    assert_eq!((proof["pools"].as_array().unwrap().len(), units), (1, [6, 4, 0, 2]), "{proof}");
    let rows = |table: &str| {
        let all = proof["tables"].as_array().unwrap();
        all.iter().find(|of| of["table"] == table).unwrap()["rows"].as_u64().unwrap()
    };
    assert_eq!((rows("campaign"), rows("orders"), rows("payment"), rows("transfer")), (1, 2, 1, 1));
    // The same rows of the authority have the same digests, and nothing is overwritten.
    let second = directory.path().join("again.archive");
    let again: Value = serde_json::from_slice(&archive(&database, "spring", &second).await.stdout).unwrap();
    assert_eq!(again["tables"], proof["tables"]);
    assert_eq!(archive(&database, "spring", &file).await.status.code(), Some(2));
    // It is read as any other database, and tells what the authority tells.
    let url = format!("sqlite:{}", file.display());
    let explain = |database: String| async move {
        let shown = run(&[
            "explain",
            "order",
            "--campaign",
            "spring",
            "--order-no",
            "A-1",
            "--database",
            &database,
            "--format",
            "json",
        ])
        .await;
        serde_json::from_slice::<Value>(&shown.stdout).unwrap()
    };
    assert_eq!(explain(url.clone()).await, explain(database.clone()).await);
    let verified = run(&["verify", "--database", &url, "--format", "json"]).await;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    // Nothing is sold from it, and what was changed in it shows.
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    assert!(Server::start_on(&file, &start).await.is_err());
    let raw = rusqlite::Connection::open(&file).unwrap();
    raw.execute_batch("UPDATE bucket SET sold = sold + 1 WHERE sold > 0").unwrap();
    assert_eq!(run(&["verify", "--database", &url]).await.status.code(), Some(1));
    // The authority keeps everything: the key of an archived order is not new.
    let repeat = http.place("spring", "A-1", "CUP", 3).await;
    assert_eq!((repeat.status, repeat.text("id")), (200, sold));
    site.finish().await;
}

async fn what_is_not_at_its_end_is_not_archived(site: Site) {
    let http = &site.http;
    let database = site.nodes[0].authority().to_owned();
    let directory = tempfile::tempdir().unwrap();
    let refused = async |campaign: &str, says: &str| {
        let output = archive(&database, campaign, &directory.path().join("x.archive")).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    };
    refused("spring", "does not exist").await;
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 10, 1).await;
    refused("spring", "is not closed").await;
    let held = http.place("spring", "A-1", "CUP", 3).await.text("id");
    http.switch("/v1/campaigns/spring/close").await;
    refused("spring", "1 orders that are not at their end").await;
    assert_eq!(http.post(&format!("/v1/orders/{held}/cancel"), &json!({})).await.status, 200);
    let written = archive(&database, "spring", &directory.path().join("x.archive")).await;
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    site.finish().await;
}
