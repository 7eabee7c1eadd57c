//! Many at once for a while: clients that leave, and everything that reads and writes side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Http, Raw, Server, Start, place_body, run, wait_until};

/// How long the mixed load lasts. A longer run: `HOLDFAST_PRESSURE_SECONDS=60`.
fn duration() -> Duration {
    let seconds = std::env::var("HOLDFAST_PRESSURE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(8))
}

/// Sends an order and hangs up after so many milliseconds, or when the answer begins.
async fn place_and_leave(http: Http, number: u64) {
    let text = place_body("drop", &format!("o{number}"), "CUP", 1).to_string();
    let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
    let mut raw = Raw::open(&http).await;
    let sent = raw.send(format!("{head}content-length: {}\r\n\r\n{text}", text.len()).as_bytes()).await;
    sent.expect("a loopback connection takes one request");
    raw.hears_within(Duration::from_millis(number % 21)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_5000_clients_that_hang_up_200_normal_calls_are_fine() {
    leave_by_the_thousands(Server::start().await).await;
}

/// 5,000 clients hang up on a server, which then serves 200 others in good time.
pub(crate) async fn leave_by_the_thousands(server: Server) {
    server.http.campaign("drop", json!({})).await;
    let pool = server.http.pool("drop", "CUP", 1_000_000, 4).await;
    let mut leaving = JoinSet::new();
    for number in 0..5_000 {
        if leaving.len() >= 500 {
            leaving.join_next().await.unwrap().unwrap();
        }
        leaving.spawn(place_and_leave(server.http.clone(), number));
    }
    leaving.join_all().await;
    for number in 0..200 {
        // Those who left ask again with the same key, or buy anew: each is answered in good time.
        let begun = Instant::now();
        let again = server.http.place("drop", &format!("o{}", number * 25), "CUP", 1).await;
        assert!(matches!(again.status, 200 | 201), "{again:?}");
        let fresh = server.http.place("drop", &format!("n{number}"), "CUP", 1).await;
        assert_eq!(fresh.status, 201, "{fresh:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
    let (_, held, sold) = server.http.balances(&pool).await;
    assert!((200..=5_200).contains(&held) && sold == 0, "{held} held");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_send_half_a_notice_hold_up_no_sale() {
    let secret = "bank=whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    let arguments = ["--auth", "off", "--payment-secret", secret].map(String::from).to_vec();
    let server = Server::start_with(Start { arguments, ..Start::default() }).await;
    server.http.campaign("drop", json!({})).await;
    server.http.pool("drop", "CUP", 10, 1).await;
    let head = "POST /v1/payments/bank/notifications HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
                content-length: 262144\r\n\r\n{";
    let mut strangers = Vec::new();
    for _ in 0..300 {
        let mut raw = Raw::open(&server.http).await;
        raw.send(head.as_bytes()).await.unwrap();
        strangers.push(raw);
    }
    // As soon as they have filled the room that strangers have, the next one is turned away at once.
    wait_until("a stranger to be turned away", async || {
        let more = server.http.post("/v1/payments/bank/notifications", &json!({})).await;
        ((more.status, more.code()) == (503, "overloaded")).then_some(())
    })
    .await;
    assert_eq!(server.http.place("drop", "A-1", "CUP", 1).await.status, 201);
    drop(strangers);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_nothing_of_its_answer_is_cut_off() {
    let server = Server::start().await;
    let address = server.http.base.strip_prefix("http://").unwrap().parse().unwrap();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2_304).unwrap();
    let mut raw = Raw::of(socket.connect(address).await.unwrap());
    let asked = "GET /openapi.json HTTP/1.1\r\nhost: h\r\n\r\n".repeat(200);
    raw.send(asked.as_bytes()).await.unwrap();
    // Nothing is read meanwhile; what was sent before the cut is small beside what was asked for.
    let cut = tokio::time::Instant::now() + Duration::from_secs(35);
    tokio::time::timeout_at(cut, std::future::pending::<()>()).await.unwrap_err();
    let taken = raw.read_to_close().await;
    assert!(taken.len() < 200 * 50_000, "{} bytes", taken.len());
    server.finish().await;
}

/// One of the writers: places, pays, cancels, refunds, until it is told to stop.
async fn write(http: Http, writer: u64, stop: Arc<AtomicBool>, answers: Arc<AtomicU64>) {
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let placed = http.place("drop", &format!("w{writer}-{number}"), "CUP", 1).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        let id = placed.text("id");
        let next = match number % 3 {
            0 => http.pay(&id, &format!("w{writer}-{number}")).await,
            1 => http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await,
            // Left to the scanner.
            _ => http.get(&format!("/v1/orders/{id}")).await,
        };
        assert_eq!(next.status, 200, "{next:?}");
        answers.fetch_add(2, Ordering::SeqCst);
    }
}

/// Reads everything again and again: lists, ledger, settlement, export.
async fn read(http: Http, stop: Arc<AtomicBool>, answers: Arc<AtomicU64>) {
    while !stop.load(Ordering::SeqCst) {
        for path in [
            "/v1/orders?campaign_id=drop&state=held&limit=500",
            "/v1/ledger?limit=500",
            "/v1/campaigns/drop/settlement",
            "/v1/exports/stock?campaign_id=drop",
            "/v1/pools?campaign_id=drop",
        ] {
            let accept = if path.contains("exports") { "text/csv" } else { "application/json" };
            let answer = http.send_raw("GET", path, &[("accept", accept)], Vec::new()).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Imports stock files one after another.
async fn import(base: String, stop: Arc<AtomicBool>) {
    let directory = tempfile::tempdir().unwrap();
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let file = directory.path().join(format!("{number}.csv"));
        let rows: String = (0..20).map(|row| format!("SKU-{number}-{row},main,5\n")).collect();
        std::fs::write(&file, format!("sku,location,quantity\n{rows}")).unwrap();
        let arguments = ["import", "stock", file.to_str().unwrap(), "--campaign", "drop", "--target", &base];
        let output = run(&arguments).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_scanner_exports_and_imports_never_meet_a_locked_database() {
    let server = Server::start().await;
    let policy = json!({"hold_seconds": 1, "release_grace_ms": 0, "account_limit": 100_000_000});
    server.http.campaign("drop", policy).await;
    server.http.pool("drop", "CUP", 100_000_000, 8).await;
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for writer in 0..64 {
        tasks.spawn(write(server.http.clone(), writer, stop.clone(), answers.clone()));
    }
    tasks.spawn(read(server.http.clone(), stop.clone(), answers.clone()));
    tasks.spawn(import(server.http.base.clone(), stop.clone()));
    let begun = Instant::now();
    // A task that ends before it is told to has met what it must not meet.
    while begun.elapsed() < duration() {
        if let Ok(Some(ended)) = tokio::time::timeout(Duration::from_millis(100), tasks.join_next()).await {
            ended.unwrap();
        }
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert!(answers.load(Ordering::SeqCst) > 500, "{answers:?} answers");
    let mut log = server.database().as_os_str().to_owned();
    log.push("-wal");
    let length = std::fs::metadata(log).unwrap().len();
    assert!(length < 256 << 20, "the log has grown to {length} bytes");
    server.finish().await;
}
