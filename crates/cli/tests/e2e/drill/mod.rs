//! The drill as its users meet it: on a server that tells the truth, and on one that does not.

mod liar;
mod private;

use serde_json::Value;

use self::liar::Liar;
use crate::support::{Server, Start, run};

/// A run that is short and small.
const SHORT: [&str; 6] = ["--seconds", "2", "--rate", "60", "--seed", "11"];

/// Runs a scenario; its exit status, its outcome, and what it said beside.
async fn drilled(scenario: &str, target: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let arguments = [&["drill", "run", scenario, "--target", target, "--format", "json"], &SHORT[..], more];
    let output = run(&arguments.concat()).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcomes: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), outcomes[0].clone(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenarios_are_listed_for_programs() {
    let output = run(&["drill", "list", "--format", "json"]).await;
    assert!(output.status.success());
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 20);
    for scenario in listed {
        for text in ["name", "goal", "goal_zh"] {
            assert!(scenario[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {scenario}");
        }
        assert!(scenario["faults"].is_array(), "{scenario}");
        assert!(!scenario["invariants"].as_array().unwrap().is_empty(), "{scenario}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_tells_the_truth_is_clean_and_judged_so_again() {
    let server = Server::start().await;
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).display().to_string();
    let (history, json) = (file("run.jsonl"), file("run.json"));
    let target = server.http.base.clone();
    let more = ["--history", &history, "--json", &json, "--stored-orders", "700"];
    let (status, outcome, said) = drilled("duplicates", &target, &more).await;
    assert_eq!((status, &outcome["ok"]), (Some(0), &Value::Bool(true)), "{said}\n{outcome:#}");
    assert!(said.contains("--seed 11"), "{said}");
    assert_eq!(outcome["parameters"]["stored_orders"], 700);
    for answer in
        ["place 201", "place 200", "alter 422 order_mismatch", "pay 200 applied", "pay 200 duplicate"]
    {
        assert!(outcome["answers"][answer].as_u64().is_some_and(|count| count > 0), "{answer}: {outcome:#}");
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(kept[0]["answers"], outcome["answers"]);
    let again =
        run(&["drill", "check", "--history", &history, "--target", &target, "--format", "json"]).await;
    let judged: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((again.status.code(), &judged["ok"]), (Some(0), &Value::Bool(true)), "{judged:#}");
    assert_eq!(judged["answers"], outcome["answers"]);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_runs_out_of_stock_is_clean() {
    let server = Server::start().await;
    let (status, outcome, said) = drilled("skewed-buckets", &server.http.base, &[]).await;
    assert_eq!((status, &outcome["ok"]), (Some(0), &Value::Bool(true)), "{said}\n{outcome:#}");
    assert!(outcome["answers"]["place 409 sold_out"].as_u64().is_some_and(|count| count > 0), "{outcome:#}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_invents_one_answer_of_a_hundred_is_caught() {
    let server = Server::start().await;
    let liar = Liar::before(&server.http.base).await;
    let (status, outcome, said) = drilled("hot-pool", &liar.address, &[]).await;
    assert!(liar.lies() > 0, "it told the truth");
    assert_eq!((status, &outcome["ok"]), (Some(1), &Value::Bool(false)), "{said}\n{outcome:#}");
    let verdicts = outcome["invariants"].as_array().unwrap();
    let lost = verdicts.iter().find(|verdict| verdict["code"] == "INV7").unwrap();
    let found = lost["breaches"].as_u64().unwrap();
    assert!(found >= liar.lies(), "{found} of {} lies: {outcome:#}", liar.lies());
    // What is wrong is what was told, not what is stored.
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_run_is_said_before_any_load() {
    let server = Server::start().await;
    for (scenario, why) in [("node-kill", "kill-node"), ("cache-wipe", "wipe-cache")] {
        let (status, _, said) = drilled(scenario, &server.http.base, &[]).await;
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(server.http.get("/v1/campaigns").await.body["items"], Value::Array(Vec::new()));
    let (status, _, said) = drilled("hot-pool", "http://127.0.0.1:9", &[]).await;
    assert_eq!(status, Some(2), "{said}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_a_load_are_one_history() {
    let server = Server::start().await;
    let (status, alone, said) = drilled("duplicates", &server.http.base, &[]).await;
    assert_eq!(status, Some(0), "{said}\n{alone:#}");
    let (status, shared, said) = drilled("duplicates", &server.http.base, &["--processes", "3"]).await;
    assert_eq!((status, &shared["ok"]), (Some(0), &Value::Bool(true)), "{said}\n{shared:#}");
    assert_eq!(shared["parameters"]["processes"], 3);
    // The same seed is the same buyers, whoever lets them come.
    for figure in ["due", "sent"] {
        assert_eq!(shared["generator"][figure], alone["generator"][figure]);
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_load_says_what_it_can_offer() {
    let arguments = ["--auth", "off", "--constant-answer"].map(str::to_owned).to_vec();
    let server = Server::start_with(Start { arguments, ..Start::default() }).await;
    let output =
        run(&["drill", "offer", "--target", &server.http.base, "--seconds", "1", "--format", "json"]).await;
    let offered: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{offered}");
    assert!(offered["answered_rps"].as_f64().is_some_and(|rps| rps > 100.0), "{offered}");
    server.finish().await;
}
