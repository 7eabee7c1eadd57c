//! Drills that break what they stand on: deployments of their own, and somebody's by commands.

use serde_json::Value;

use crate::support::{Server, run};

/// Runs a drill; its exit status, its outcomes, and what it said beside.
async fn drilled(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = run(&[&["drill"], arguments, &["--format", "json"]].concat()).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
}

/// Runs a scenario on a kind, briefly: it is clean, has broken what it should, and the rows were judged too.
async fn is_clean(scenario: &str, kind: &str, faults: &[&str]) {
    let short = ["--seconds", "8", "--rate", "60", "--seed", "5"];
    let (status, outcomes, said) =
        drilled(&[&["run", scenario, "--private", kind], &short[..]].concat()).await;
    let outcome = &outcomes[0];
    assert_eq!((status, &outcome["ok"]), (Some(0), &Value::Bool(true)), "{said}\n{outcome:#}");
    assert_eq!(outcome["environment"]["deployment"], kind);
    assert_eq!(outcome["environment"]["private"], true);
    let windows: Vec<&str> = outcome["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|window| window["fault"].as_str().unwrap())
        .collect();
    for fault in faults {
        assert!(windows.contains(fault), "{windows:?}");
    }
    // The rows show it, and nothing else does.
    let usage = outcome["invariants"].as_array().unwrap().iter().find(|verdict| verdict["code"] == "INV11");
    assert_eq!(usage.unwrap()["breaches"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_its_own_are_killed() {
    is_clean("node-kill", "sqlite", &["kill-node"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_of_its_own_fails_over() {
    is_clean("authority-failover", "postgres", &["fail-over-authority"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_of_its_own_goes_back_in_time() {
    is_clean("cache-stale-restore", "sqlite-redis", &["restore-cache"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_its_own_are_cut() {
    is_clean("connection-cut", "postgres-redis", &["cut-authority", "lose-commit-answers", "cut-cache"])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scenario_runs_on_every_kind_that_it_concerns_and_is_one_page() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("drill.html").display().to_string();
    let short = ["--seconds", "3", "--rate", "40", "--report", &page, "--private"];
    let (status, outcomes, said) = drilled(&[&["run", "cache-wipe"], &short[..]].concat()).await;
    assert_eq!(status, Some(0), "{said}\n{outcomes:#}");
    let kinds: Vec<&Value> =
        outcomes.as_array().unwrap().iter().map(|outcome| &outcome["environment"]["deployment"]).collect();
    assert_eq!(kinds, ["sqlite-redis", "postgres-redis"]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("wipe-cache") && page.contains("缓存清空"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_breaks_and_heals_by_commands_and_the_rows_are_judged() {
    let server = Server::start().await;
    let pid = server.pid();
    let (stop, go) = (format!("pause-node=kill -STOP {pid}"), format!("pause-node=kill -CONT {pid}"));
    let database = server.authority().to_owned();
    let words = ["--fault", &stop, "--heal", &go, "--database", &database, "--seconds", "6", "--rate", "40"];
    let target = ["run", "node-pause", "--kind", "sqlite", "--target", &server.http.base];
    let (status, outcomes, said) = drilled(&[&target[..], &words].concat()).await;
    let outcome = &outcomes[0];
    assert_eq!((status, &outcome["ok"]), (Some(0), &Value::Bool(true)), "{said}\n{outcome:#}");
    assert_eq!(outcome["windows"][0]["fault"], "pause-node");
    // A command that fails is no fault: it cannot be run, and what was begun is healed.
    let bad = ["--fault", "pause-node=echo cannot; exit 7", "--heal", &go, "--seconds", "3", "--rate", "20"];
    let (status, _, said) = drilled(&[&target[..], &bad].concat()).await;
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("exit status: 7") && said.contains("cannot"), "{said}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_is_stepped_up_and_what_was_not_reached_is_not_claimed() {
    let server = Server::start().await;
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("boundary.html").display().to_string();
    let row = ["--from", "20", "--to", "40", "--step", "100", "--seconds", "5", "--report", &page];
    let (status, found, said) =
        drilled(&[&["boundary", "--target", &server.http.base], &row[..]].concat()).await;
    assert_eq!(status, Some(0), "{said}\n{found:#}");
    let boundary = &found["boundary"];
    let stairs = boundary["stairs"].as_array().unwrap();
    assert_eq!(found["runs"].as_array().unwrap().len(), stairs.len(), "{boundary:#}");
    assert!(stairs.iter().all(|stair| stair["offered_rps"].as_f64().unwrap() > 10.0), "{boundary:#}");
    // A machine that is busy with other tests may offer less than is asked for: then the row ends there.
    let is_limit = |stair: &Value| stair["is_generator_limit"] == true;
    let ends_at_generator = stairs.last().is_some_and(is_limit);
    assert_eq!(boundary["ends_at_generator"], ends_at_generator, "{boundary:#}");
    assert!(stairs.len() == 2 || ends_at_generator, "{boundary:#}");
    // What it says is what its stairs say.
    let known: Vec<&Value> = stairs.iter().filter(|stair| !is_limit(stair)).collect();
    let rate = |stair: Option<&&Value>| stair.map_or(Value::Null, |stair| stair["offered_rps"].clone());
    let fits = known.iter().take_while(|stair| stair["accumulates"] == false).count();
    assert_eq!(boundary["waits_from_rps"], rate(known.get(fits)), "{boundary:#}");
    assert_eq!(boundary["carries_rps"], rate(known.iter().take(fits).next_back()), "{boundary:#}");
    assert!(std::fs::read_to_string(page).unwrap().contains("boundary-rates"));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_contradicts_itself_is_refused() {
    for (words, why) in [
        (&["run", "node-kill", "--private", "sqlite", "--target", "http://a"][..], "give one of them"),
        (&["run", "cache-wipe", "--private", "sqlite"], "does not concern it"),
        (&["run", "hot-pool", "--private", "mysql"], "mysql"),
        (&["boundary", "--private"], "name one kind"),
        (&["boundary", "--private", "sqlite", "--scenario", "node-kill"], "breaks nothing"),
        (&["boundary", "--private", "sqlite", "--from", "9", "--to", "8"], "more than --to"),
        (&["run", "node-kill", "--target", "http://a", "--fault", "nonsense=true"], "no fault nonsense"),
    ] {
        let (status, _, said) = drilled(words).await;
        assert_eq!(status, Some(2), "{words:?}: {said}");
        assert!(said.contains(why), "{words:?}: {said}");
    }
}
