//! The ledger proves itself, now and as of any time.

use holdfast_testkit::psql;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::site::{Site, on_each_site};
use super::success;
use crate::support::run;

on_each_site! {
    balances_are_rebuilt_as_of_a_time
    a_ledger_that_was_sealed_stays_as_it_was
}

async fn verdict(database: &str, as_of: &str) -> Value {
    let output = run(&["verify", "--database", database, "--as-of", as_of, "--format", "json"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn figures(verdict: &Value) -> [u64; 4] {
    let pool = &verdict["pools"][0];
    ["supply", "available", "held", "sold"].map(|name| pool[name].as_u64().expect("units"))
}

async fn balances_are_rebuilt_as_of_a_time(site: Site) {
    let http = &site.http;
    let database = site.nodes[0].authority().to_owned();
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 2).await;
    let id = http.place("spring", "A-1", "CUP", 3).await.text("id");
    let held = http.get(&format!("/v1/orders/{id}")).await.text("updated_at");
    // Another millisecond has come when the next entry shows it.
    let mut number = 0;
    let later = loop {
        number += 1;
        http.adjust(&pool, &format!("j{number}"), 1).await;
        let entries = http.get(&format!("/v1/ledger?pool_id={pool}&limit=500")).await;
        let entries = entries.body["items"].as_array().unwrap().clone();
        let last = entries
            .iter()
            .filter(|e| e["action"] == "adjust")
            .map(|e| e["at"].as_str().unwrap().to_owned())
            .max()
            .unwrap();
        if last > held {
            break last;
        }
    };
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "applied");
    let then = verdict(&database, &held).await;
    assert_eq!(then["as_of"], held);
    assert_eq!(then["ok"], true);
    let [supply, available, in_hold, sold] = figures(&then);
    assert_eq!((supply - available, in_hold, sold), (3, 3, 0), "{then}");
    let of = |verdict: &Value, code: &str| {
        let all = verdict["invariants"].as_array().unwrap().clone();
        all.into_iter().find(|invariant| invariant["code"] == code).unwrap()["breaches"].clone()
    };
    assert_eq!(
        (of(&then, "INV2"), of(&then, "INV4")),
        (json!(0), Value::Null),
        "rows say how things stand now"
    );
    let after = verdict(&database, &later).await;
    assert!(figures(&after)[0] > supply);
    let text = run(&["verify", "--database", &database, "--as-of", &held]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(&format!("as of {held}:")) && text.contains("only as of now"), "{text}");
    assert_eq!(verdict(&database, "2001-01-01T00:00:00Z").await["ledger_entries"], 0);
    site.finish().await;
}

/// The verdict on a database and its chain, and whether all is well.
async fn chained(database: &str, file: &str) -> (Value, bool) {
    let output = run(&["verify", "--database", database, "--chain", file, "--format", "json"]).await;
    let verdict: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (verdict, output.status.success())
}

/// What somebody does who may do anything in the database, and knows what protects the ledger there.
async fn rewritten(database: &str, sql: &str) {
    match database.strip_prefix("sqlite:") {
        Some(file) => {
            let db = Connection::open(file).unwrap();
            db.execute_batch(&format!("DROP TRIGGER IF EXISTS ledger_is_never_changed; {sql}")).unwrap();
        }
        None => {
            let free = "DROP TRIGGER IF EXISTS ledger_is_never_changed ON ledger";
            psql(database, free).await.unwrap();
            psql(database, sql).await.unwrap();
        }
    }
}

async fn a_ledger_that_was_sealed_stays_as_it_was(site: Site) {
    let http = &site.http;
    let database = site.nodes[0].authority().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seal").display().to_string();
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 10, 2).await;
    let id = http.place("spring", "A-1", "CUP", 3).await.text("id");
    let (first, ok) = chained(&database, &file).await;
    assert!(ok, "{first}");
    assert_eq!(
        (&first["chain"]["unchanged"], &first["chain"]["sealed"]),
        (&json!(0), &first["ledger_entries"])
    );
    assert_eq!(http.told(&success(&id, "e1", "p1")).await, "applied");
    let (later, ok) = chained(&database, &file).await;
    assert!(ok, "what is appended changes nothing: {later}");
    assert_eq!(
        (&later["chain"]["unchanged"], &later["chain"]["sealed"]),
        (&first["ledger_entries"], &later["ledger_entries"])
    );
    // Every sum stays as it is: only the chain shows it.
    rewritten(&database, "UPDATE ledger SET actor = 'somebody else' WHERE order_id IS NOT NULL").await;
    let sealed = std::fs::read(&file).unwrap();
    let (broken, ok) = chained(&database, &file).await;
    assert!(!ok, "{broken}");
    assert_eq!(broken["breaches"], json!([]), "no invariant shows it");
    assert_eq!(broken["chain"]["broken"], 1, "{broken}");
    assert_eq!(std::fs::read(&file).unwrap(), sealed, "what was sealed stays");
    let text = run(&["verify", "--database", &database, "--chain", &file]).await;
    assert_eq!(text.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&text.stdout).contains("BROKEN"), "{text:?}");
    std::fs::write(&file, "{}").unwrap();
    let strange = run(&["verify", "--database", &database, "--chain", &file]).await;
    assert_eq!(strange.status.code(), Some(2), "{strange:?}");
    site.finish().await;
}
