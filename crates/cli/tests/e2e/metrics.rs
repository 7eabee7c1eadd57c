//! What the real server shows of itself, as Prometheus' own tools read it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::support::{Server, wait_until};

fn promtool(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool is needed: Debian's package prometheus");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The value of a series in a scrape.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_is_scraped_as_prometheus_wants_it() {
    let server = Server::start().await;
    server.http.campaign("c", json!({})).await;
    server.http.pool("c", "s", 100, 4).await;
    for number in 0..50 {
        let lines = json!([{"sku": "s", "quantity": 1}]);
        let order =
            json!({"campaign_id": "c", "order_no": format!("{number}"), "account": "ann", "lines": lines});
        assert_eq!(server.http.post("/v1/orders", &order).await.status, 201);
    }
    let text = wait_until("a look at the open holds", async || {
        let answer = server.http.send_raw("GET", "/metrics", &[("accept", "text/plain")], Vec::new()).await;
        let text = String::from_utf8(answer.raw).unwrap();
        let open = value(&text, r#"holdfast_holds_open_orders{ends_within="1h"}"#)?
            + value(&text, r#"holdfast_holds_open_orders{ends_within="15m"}"#)?;
        (open == 50.0).then_some(text)
    })
    .await;
    assert_eq!(value(&text, r#"holdfast_orders_placed_total{state="held"}"#), Some(50.0));
    assert!(value(&text, "holdfast_store_commit_seconds_count").unwrap() >= 3.0, "{text}");
    assert!(value(&text, "holdfast_entry_connections").unwrap() >= 1.0, "{text}");
    assert!(value(&text, "holdfast_expiry_timer_orders").unwrap() >= 50.0, "{text}");
    let checked = promtool(&["check", "metrics"], &text);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}");
    server.finish().await;
}

#[test]
fn alert_rules_do_what_they_say() {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let path = format!("{deploy}/{}", arguments[2]);
        let done = promtool(&[arguments[0], arguments[1], &path], "");
        let said = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
