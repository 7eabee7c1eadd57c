//! Backup and restore of the embedded server, with the time that they take and what they lose.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Http, Server, Start, run, wait_until};

const CLIENTS: usize = 8;

fn start() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Runs a command that prints JSON and must succeed.
async fn told(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--format", "json"]].concat()).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Places and pays until it is told to stop; what was answered with `sold` is written down.
async fn buy(http: Http, client: usize, stop: Arc<AtomicBool>, sold: Arc<Mutex<Vec<String>>>) {
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let order_no = format!("c{client}-{number}");
        let placed = http.place("drop", &order_no, "CUP", 1).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        let paid = http.pay(&placed.text("id"), &order_no).await;
        assert_eq!(paid.text("disposition"), "applied");
        sold.lock().unwrap().push(order_no);
    }
}

async fn state_of(http: &Http, order_no: &str) -> Value {
    let found = http.get(&format!("/v1/orders?campaign_id=drop&order_no={order_no}")).await;
    found.body["items"][0]["state"].clone()
}

async fn open_cases(http: &Http) -> Vec<Value> {
    let cases = http.get("/v1/cases?state=open").await;
    assert_eq!((cases.status, &cases.body["next_cursor"]), (200, &Value::Null));
    cases.body["items"].as_array().unwrap().clone()
}

/// Sales stand still until somebody acknowledges the case; all else goes on. Then it sells again.
async fn refuses_until_acknowledged(http: &Http, found_by: &str) -> Value {
    assert_eq!(http.get("/readyz").await.status, 200);
    let refused = http.place("drop", "after", "CUP", 1).await;
    assert_eq!((refused.status, refused.code()), (409, "frozen"), "{refused:?}");
    assert_eq!(refused.body["recorded"], false);
    assert!(refused.text("detail").contains("incarnation"), "{refused:?}");
    assert_eq!(http.get("/v1/campaigns/drop").await.text("state"), "frozen");
    let cases = open_cases(http).await;
    assert_eq!(cases.len(), 1, "{cases:?}");
    let case = cases[0].clone();
    assert_eq!((&case["kind"], &case["suggested"]), (&json!("incarnation"), &json!("acknowledge")));
    assert_eq!(
        (&case["pool_id"], &case["order_id"], &case["resolution"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(case["evidence"]["found_by"], found_by);

    let path = format!("/v1/cases/{}/resolve", case["id"].as_str().unwrap());
    let wrong = http.post(&path, &json!({"action": "ignore", "reason": "r", "operator": "ann"})).await;
    assert_eq!((wrong.status, wrong.code()), (400, "invalid_value"));
    let body = json!({"action": "acknowledge", "reason": "compared with the provider", "operator": "ann"});
    let mut known = None;
    for _ in 0..2 {
        let resolved = http.post(&path, &body).await;
        assert_eq!((resolved.status, resolved.text("state")), (200, "resolved".into()), "{resolved:?}");
        assert_eq!(resolved.body["resolution"]["operator"], "ann");
        assert_eq!(known.get_or_insert(resolved.body.clone()), &resolved.body, "a repeat changes nothing");
    }
    let unknown = http.post(&path.replace("/v1/cases/0", "/v1/cases/f"), &body).await;
    assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
    assert!(open_cases(http).await.is_empty());
    assert_eq!(http.get("/v1/campaigns/drop").await.text("state"), "open");
    assert_eq!(http.place("drop", "after", "CUP", 1).await.status, 201);
    case
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_restored_elsewhere_and_sells_when_the_loss_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let [database, copy, new] = ["shop.db", "copy.db", "new.db"].map(|name| directory.path().join(name));
    let server = Server::start_on(&database, &start()).await.unwrap();
    let http = server.http.clone();
    http.campaign("drop", json!({})).await;
    http.pool("drop", "CUP", 1_000_000, 4).await;
    let held = http.place("drop", "held", "CUP", 2).await.text("id");

    let (stop, sold) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(buy(http.clone(), client, Arc::clone(&stop), Arc::clone(&sold))))
        .collect();
    let count = || sold.lock().unwrap().len();
    wait_until("a first rush", async || (count() >= 200).then_some(())).await;
    let before = sold.lock().unwrap().clone();
    let made = told(&["backup", copy.to_str().unwrap(), "--database", &url(&database)]).await;
    let during = count() - before.len();
    wait_until("more sales", async || (count() >= before.len() + during + 50).then_some(())).await;
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    let all = count();
    server.finish().await;

    assert_eq!((&made["verified"], &made["buckets"]), (&json!(true), &json!(4)));
    assert!(made["orders"].as_u64().unwrap() > before.len() as u64, "{made}");
    let again = run(&["backup", copy.to_str().unwrap(), "--database", &url(&database)]).await;
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten");
    let verdict = told(&["verify", "--database", &url(&copy)]).await;
    assert_eq!((&verdict["ok"], &verdict["ledger_entries"]), (&json!(true), &made["ledger_entries"]));

    let state = format!("{}.state", database.display());
    let restore = ["restore", copy.to_str().unwrap(), "--database", &url(&new), "--state-file", &state];
    let restored = told(&restore).await;
    assert_eq!(run(&restore).await.status.code(), Some(2), "nothing is overwritten");
    assert_eq!(restored["previous_incarnation"], made["incarnation"]);
    assert_ne!(restored["incarnation"], made["incarnation"]);
    assert_eq!(restored["positions_sha256"], made["positions_sha256"]);
    let missing = restored["entries_missing_at_least"].as_u64().unwrap();
    assert!(missing >= 100, "50 orders more, each placed and paid: {restored}");
    println!(
        "backup under load of {CLIENTS} clients: {} ms for {} bytes, {during} orders were sold meanwhile; restore {} ms; \
         lost: {missing} ledger entries of {all} orders",
        made["duration_ms"], made["bytes"], restored["duration_ms"]
    );

    let server = Server::start_on(&new, &start()).await.unwrap();
    let http = &server.http;
    for order_no in &before {
        assert_eq!(state_of(http, order_no).await, "sold", "{order_no} was answered before the backup began");
    }
    assert_eq!(http.pay(&held, "held").await.text("disposition"), "applied", "payments go on");
    let case = refuses_until_acknowledged(http, "restore").await;
    assert_eq!(case["evidence"]["entries_missing_at_least"], missing);
    server.finish().await;
}

/// Copies a database by hand, with its log, as nobody should.
fn put(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let [from, to] = [from, to].map(|path| format!("{}{suffix}", path.display()));
        let _ = std::fs::remove_file(&to);
        if suffix != "-shm" && Path::new(&from).exists() {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

#[tokio::test]
async fn a_file_that_is_put_back_by_hand_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let (database, raw) = (directory.path().join("shop.db"), directory.path().join("raw.db"));
    let server = Server::start_on(&database, &start()).await.unwrap();
    server.http.campaign("drop", json!({})).await;
    server.http.pool("drop", "CUP", 10, 1).await;
    assert_eq!(server.http.place("drop", "early", "CUP", 1).await.status, 201);
    server.finish().await;
    put(&database, &raw);

    let server = Server::start_on(&database, &start()).await.unwrap();
    assert!(open_cases(&server.http).await.is_empty(), "a restart is no restore");
    for number in 0..3 {
        assert_eq!(server.http.place("drop", &format!("lost-{number}"), "CUP", 1).await.status, 201);
    }
    server.finish().await;
    put(&raw, &database);

    let server = Server::start_on(&database, &start()).await.unwrap();
    let case = refuses_until_acknowledged(&server.http, "state_file").await;
    assert_eq!(case["evidence"]["entries_missing_at_least"], 3);
    server.finish().await;

    let server = Server::start_on(&database, &start()).await.unwrap();
    assert!(open_cases(&server.http).await.is_empty(), "what was acknowledged is not raised again");
    assert_eq!(server.http.place("drop", "late", "CUP", 1).await.status, 201);
    server.finish().await;
    // The same file once more: it knows nothing of the incarnation that was begun meanwhile.
    put(&raw, &database);
    let server = Server::start_on(&database, &start()).await.unwrap();
    refuses_until_acknowledged(&server.http, "state_file").await;
    server.finish().await;
}

#[tokio::test]
async fn a_state_file_that_cannot_be_read_is_no_reason_to_guess() {
    let directory = tempfile::tempdir().unwrap();
    let (database, state) = (directory.path().join("shop.db"), directory.path().join("elsewhere.state"));
    let mut start = start();
    start.arguments.extend(["--state-file".into(), state.display().to_string()]);
    Server::start_on(&database, &start).await.unwrap().finish().await;
    std::fs::write(&state, "{").unwrap();
    let refused = Server::start_on(&database, &start).await.err().unwrap();
    assert_eq!(refused.code(), Some(2));
}
