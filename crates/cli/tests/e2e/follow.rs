//! Orders followed over a real connection, and stock that leaves and comes back as a file.

use std::time::{Duration, Instant};

use holdfast_client::Client;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::support::{Raw, Server, run};

#[tokio::test]
async fn a_client_follows_an_order_to_its_end() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    http.pool("spring", "CUP", 10, 2).await;
    let client = Client::new(&http.base, None).unwrap();
    let paid = http.place("spring", "A-1", "CUP", 1).await.text("id");
    let mut events = client.order_events(&paid);
    let first = events.next().await.unwrap().unwrap();
    assert_eq!((first.order.state.as_ref(), first.order.version), ("held", 1));
    http.pay(&paid, "e1").await;
    let second = events.next().await.unwrap().unwrap();
    assert_eq!((second.order.state.as_ref(), second.order.version), ("sold", 2));
    assert!(events.next().await.unwrap().is_none());
    // The positions are those of the ledger.
    let entries = http.get(&format!("/v1/ledger?order_id={paid}")).await.body["items"].clone();
    let position = |entry: &serde_json::Value| {
        format!("{}/{}/{}", entry["pool_id"].as_str().unwrap(), entry["bucket"], entry["seq"])
    };
    let positions = [first.position.unwrap(), second.position.clone().unwrap()];
    assert_eq!(positions, [position(&entries[0]), position(&entries[1])]);
    let mut again = client.order_events_after(&paid, second.position);
    assert!(again.next().await.unwrap().is_none(), "nothing newer, and nothing to come");
    // An unpaid hold: the server's own timer ends it.
    let unpaid = http.place("spring", "A-2", "CUP", 1).await.text("id");
    let ended = client.wait_for_end(&unpaid, Duration::from_secs(20)).await.unwrap();
    assert_eq!((ended.state.as_ref(), ended.reason.as_deref()), ("released", Some("expired")));
    let held = http.place("spring", "A-3", "CUP", 1).await.text("id");
    assert_eq!(client.wait_for_order(&held, Duration::from_secs(20)).await.unwrap().state, "held");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_events_do_not_hold_up_the_end() {
    let mut server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 10, 1).await;
    let id = server.http.place("spring", "A-1", "CUP", 1).await.text("id");
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut reader = Raw::open(&server.http).await;
        let asked = format!("GET /v1/orders/{id}/events HTTP/1.1\r\nhost: h\r\n\r\n");
        reader.send(asked.as_bytes()).await.unwrap();
        reader.read_until("\"held\"").await;
        readers.push(reader);
    }
    let asked = Instant::now();
    server.ask_to_stop();
    assert!(server.wait().await.success());
    // Far below the drain's own deadline.
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    for mut reader in readers {
        let rest = reader.read_to_close().await;
        assert!(rest.ends_with(b"0\r\n\r\n"), "whole: {}", String::from_utf8_lossy(&rest));
    }
    server.verify().await;
}

#[tokio::test]
async fn stock_leaves_as_a_file_and_comes_back_the_same() {
    let server = Server::start().await;
    let http = &server.http;
    for campaign in ["spring", "autumn"] {
        http.campaign(campaign, json!({})).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let skus = ["=1+1", "+49", "-5", "@x", "0017", "17", "1E5", "'=1", "'a", "a,\"b\""];
    for (quantity, sku) in skus.iter().enumerate() {
        let pool = json!({"campaign_id": "spring", "sku": sku, "location": "=east", "supply": quantity});
        assert_eq!(http.post("/v1/pools", &pool).await.status, 201);
    }
    let target = http.base.clone();
    let export = async |campaign: &str, file: &str| {
        let done =
            run(&["export", "stock", "--campaign", campaign, "--output", file, "--target", &target]).await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::read_to_string(file).unwrap()
    };
    let import = async |campaign: &str, file: &str| {
        let done =
            run(&["import", "stock", file, "--campaign", campaign, "--target", &target, "--format", "json"])
                .await;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    let written = export("spring", &path("a.csv")).await;
    let formula = |cell: &str| cell.trim_start_matches('"').starts_with(['=', '+', '-', '@']);
    assert!(!written.lines().flat_map(|line| line.split(',')).any(formula), "{written}");
    // The same file changes nothing here, and makes the same there.
    assert_eq!(import("spring", &path("a.csv")).await["unchanged"], skus.len());
    assert_eq!(import("autumn", &path("a.csv")).await["opened"], skus.len());
    let again = export("autumn", &path("b.csv")).await;
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&again), sorted(&written));
    let pools = http.get("/v1/pools?campaign_id=autumn&limit=500").await;
    let mut read: Vec<_> =
        pools.body["items"].as_array().unwrap().iter().map(|pool| pool["sku"].as_str().unwrap()).collect();
    read.sort_unstable();
    let mut expected = skus.to_vec();
    expected.sort_unstable();
    assert_eq!(read, expected);
    // Without a campaign there is no file, and the old one stays.
    let missing = path("c.csv");
    let none =
        run(&["export", "stock", "--campaign", "none", "--output", &missing, "--target", &target]).await;
    assert_eq!(none.status.code(), Some(2));
    assert!(!std::path::Path::new(&missing).exists());
    server.finish().await;
}

/// How much the write-ahead log may have grown: the server copies it into the database far before.
const WAL_BYTES_MAX: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_reading_an_export_holds_no_snapshot() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 1_000, 1).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stock.csv");
    // Long rows, four bytes a character: the export is larger than what the system keeps of a connection.
    let long = "\u{1f3ab}".repeat(120);
    let rows: String = (0..8_000).map(|n| format!("{long}{n:05},{long},1\n")).collect();
    std::fs::write(&file, format!("sku,location,quantity\n{rows}")).unwrap();
    let arguments =
        ["import", "stock", file.to_str().unwrap(), "--campaign", "spring", "--target", &http.base];
    assert!(run(&arguments).await.status.success());
    // A connection that takes little and is not read.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let stream = socket.connect(http.base.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap();
    let asked = "GET /v1/exports/stock?campaign_id=spring HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let mut stalled = Raw::of(stream);
    stalled.send(asked.as_bytes()).await.unwrap();
    stalled.read_until("sku,location,quantity").await;
    for n in 0..50 {
        assert_eq!(http.place("spring", &format!("A-{n}"), "CUP", 1).await.status, 201);
    }
    http.pool("spring", "LATE", 7, 1).await;
    // Nobody reads an old snapshot: the whole log can be copied and cut off.
    let database = rusqlite::Connection::open(server.database()).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    let busy: i64 = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    let log = server.database().with_extension("db-wal");
    let length = std::fs::metadata(&log).map_or(0, |file| file.len());
    assert_eq!(busy, 0, "a reader holds the log");
    assert!(length < WAL_BYTES_MAX, "{length}");
    drop(database);
    // And it still gets everything when it goes on. That the late pool is there shows that it was stalled.
    let rest = String::from_utf8_lossy(&stalled.read_to_close().await).into_owned();
    assert!(rest.contains(&format!("{long}07999,")) && rest.ends_with("0\r\n\r\n"), "whole");
    assert!(rest.contains("LATE,main,7"), "the last page was read before: nothing was stalled");
    server.finish().await;
}
