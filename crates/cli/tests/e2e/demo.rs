//! The demo, smaller than life.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{Http, binary, run};

const SMALL: [&str; 6] = ["--attempts", "1500", "--buyers", "300", "--units", "60"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_demo_keeps_every_invariant_and_ends() {
    let output = run(&[&["demo", "--exit", "--format", "json"], &SMALL[..]].concat()).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert!(output.status.success() && result["ok"] == true, "{result:#}\n{said}");
    let count = |name: &str| result[name].as_u64().unwrap_or_else(|| panic!("{name}: {result:#}"));
    let answers = ["held", "repeated", "sold_out", "account_limit", "unanswered"];
    assert_eq!((count("attempts"), answers.map(count).iter().sum::<u64>()), (1_500, 1_500));
    for name in ["held", "repeated", "sold_out", "hang_ups", "expired", "orders_held"] {
        assert!(count(name) > 0, "{name}: {result:#}");
    }
    assert_eq!(count("orders_held"), count("sold_orders") + count("released_orders"));
    let stock = &result["stock"];
    assert_eq!((&stock["opening"], &stock["held"]), (&60.into(), &0.into()));
    assert_eq!(stock["available"].as_u64().unwrap() + stock["sold"].as_u64().unwrap(), 60);
    let late = result["paid_late"].as_object().unwrap();
    assert!(
        late.keys().all(|how| ["retaken", "refund_due", "duplicate"].contains(&how.as_str())),
        "{late:?}"
    );
    let judged = result["invariants"].as_array().unwrap();
    assert!(judged.len() >= 8 && judged.iter().all(|invariant| invariant["breaches"] == 0), "{judged:?}");
    assert!(said.contains("attempts answered"), "progress where there is no terminal: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_stays_up_until_it_is_interrupted() {
    let mut child = binary()
        .args(
            [&["demo", "--format", "json"], &["--attempts", "200", "--buyers", "50", "--units", "20"][..]]
                .concat(),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        text.push_str(&line);
        if line == "}" {
            break;
        }
    }
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["ok"], true, "{result:#}");
    let http = Http::new(result["url"].as_str().unwrap());
    let campaign = result["campaign_id"].as_str().unwrap();
    let settlement = http.get(&format!("/v1/campaigns/{campaign}/settlement")).await;
    assert_eq!((settlement.status, &settlement.body["opening"]), (200, &20.into()));
    let verified = run(&["verify", "--database", result["database"].as_str().unwrap()]).await;
    assert!(verified.status.success());
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert!(child.wait().await.unwrap().success());
    let file = result["database"].as_str().unwrap().strip_prefix("sqlite:").unwrap();
    assert!(!std::path::Path::new(file).exists(), "the temporary database is gone");
}

#[tokio::test]
async fn the_demo_is_not_open_to_the_network() {
    let output = run(&["demo", "--exit", "--listen", "0.0.0.0:0"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("loopback"));
}
