//! The load on small servers of this test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::arrivals::Arrivals;
use super::{Load, ORDERS, Share, Way};
use crate::history::{Answered, Exchange};
use crate::sale::Sale;
use crate::scenario::Scenario;

const ORDER: &str = r#"{"id":"019ad0c4-7a5e-7000-8000-000000000001","state":"held","version":1}"#;

/// What a server does with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Answers, and keeps the connection.
    Answers,
    /// Answers, and closes the connection without a word.
    Closes,
    /// Closes it in the middle of the answer.
    CutsShort,
    /// Closes it when the request is there, as one that dies does.
    Dies,
}

/// A server that answers as long as somebody gives it leave.
struct Server {
    address: String,
    connections: Arc<AtomicU32>,
    requests: Arc<AtomicU32>,
    leave: Arc<Semaphore>,
}

impl Server {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (requests, leave) = (Arc::<AtomicU32>::default(), Arc::new(Semaphore::new(0)));
        let connections = Arc::<AtomicU32>::default();
        let (made, counted, given) = (Arc::clone(&connections), Arc::clone(&requests), Arc::clone(&leave));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                made.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, manner, Arc::clone(&counted), Arc::clone(&given)));
            }
        });
        Self { address, connections, requests, leave }
    }
}

async fn serve(
    mut stream: TcpStream,
    manner: Manner,
    requests: Arc<AtomicU32>,
    leave: Arc<Semaphore>,
) -> Option<()> {
    loop {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"}") {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        requests.fetch_add(1, Ordering::SeqCst);
        if manner == Manner::Dies {
            return None;
        }
        leave.acquire().await.ok()?.forget();
        let answer = format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{ORDER}", ORDER.len());
        let length = if manner == Manner::CutsShort { answer.len() - 10 } else { answer.len() };
        stream.write_all(&answer.as_bytes()[..length]).await.ok()?;
        if manner != Manner::Answers {
            return None;
        }
    }
}

fn load(address: &str, connections: usize) -> Load {
    let sale = Sale::new(&Scenario::PLACING, None, "c".to_owned(), 9, (1, 40.0));
    let nodes = vec![address.to_owned()];
    let way = Way {
        nodes,
        key: Some("k".to_owned()),
        ca_pem: None,
        connections,
        buyers_max: 1_000,
        place_path: ORDERS,
    };
    Load::new(sale, &way, Share::WHOLE).unwrap()
}

async fn driven(server: &Server, connections: usize) -> Vec<Exchange> {
    server.leave.add_permits(1_000);
    let load = load(&server.address, connections);
    let pace = load.run().await.unwrap();
    let history = load.into_history();
    assert_eq!((pace.sent, pace.due), (u64::try_from(history.len()).unwrap(), pace.sent));
    // Nobody waits for an answer that cannot come any more.
    assert!(history.iter().all(|exchange| exchange.ended_ns - exchange.sent_ns < 10_000_000_000));
    history
}

fn schedule() -> Vec<u64> {
    let sale = Sale::new(&Scenario::PLACING, None, "c".to_owned(), 9, (1, 40.0));
    Arrivals::new(&sale).map(|(_, due_ns)| due_ns).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_makes_nobody_come_later() {
    let server = Server::start(Manner::Answers).await;
    let load = load(&server.address, 2);
    let leave = Arc::clone(&server.leave);
    // Nobody is answered while anybody comes: when the last one is there, the first has waited for all of the time.
    let last = *schedule().last().unwrap();
    let at_last = load.market.instant(last);
    let (pace, ()) = tokio::join!(load.run(), async {
        tokio::time::sleep_until(at_last.into()).await;
        leave.add_permits(1_000);
    });
    pace.unwrap();
    assert!(server.requests.load(Ordering::SeqCst) >= 2);
    let mut history = load.into_history();
    history.sort_by_key(|exchange| exchange.due_ns);
    assert_eq!(history.iter().map(|exchange| exchange.due_ns).collect::<Vec<_>>(), schedule());
    let first = history.first().unwrap();
    assert!(first.ended_ns - first.due_ns >= last - first.due_ns, "{first:?}");
    // Who found no connection free was late, and that is in its latency, not in its schedule.
    assert!(history.iter().filter(|exchange| exchange.sent_ns > last).count() > history.len() / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_kept() {
    let server = Server::start(Manner::Answers).await;
    let history = driven(&server, 3).await;
    assert!(
        history.len() > 20 && history.iter().all(|exchange| matches!(exchange.answered, Answered::Order(_)))
    );
    assert!(server.connections.load(Ordering::SeqCst) <= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_closed_is_made_again_and_each_request_is_sent_once() {
    let server = Server::start(Manner::Closes).await;
    let history = driven(&server, 4).await;
    let lost = history.iter().filter(|exchange| !matches!(exchange.answered, Answered::Order(_))).count();
    // One that is closed in the moment of sending may have been read: that is lost, and not sent again.
    assert!(lost * 10 <= history.len(), "{lost} of {}", history.len());
    let requests = usize::try_from(server.requests.load(Ordering::SeqCst)).unwrap();
    assert!((history.len() - lost..=history.len()).contains(&requests), "{requests} for {}", history.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_short_is_lost() {
    for manner in [Manner::CutsShort, Manner::Dies] {
        let server = Server::start(manner).await;
        let history = driven(&server, 4).await;
        assert!(history.iter().all(|exchange| exchange.answered == Answered::Lost { never_sent: false }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_left_is_told_apart_from_what_is_lost() {
    // A port that was free a moment ago.
    let address = Server::start(Manner::Answers).await.address;
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let nobody = address.rsplit_once(':').unwrap().0.to_owned() + &format!(":{port}");
    let load = load(&nobody, 4);
    load.run().await.unwrap();
    let history = load.into_history();
    assert!(!history.is_empty());
    assert!(history.iter().all(|exchange| exchange.answered == Answered::Lost { never_sent: true }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shares_together_are_the_whole() {
    let server = Server::start(Manner::Answers).await;
    server.leave.add_permits(1_000);
    let mut due = Vec::new();
    for number in 0..3 {
        let sale = Sale::new(&Scenario::PLACING, None, "c".to_owned(), 9, (1, 40.0));
        let nodes = vec![server.address.clone()];
        let way =
            Way { nodes, key: None, ca_pem: None, connections: 4, buyers_max: 1_000, place_path: ORDERS };
        let load = Load::new(sale, &way, Share { number, of: 3 }).unwrap();
        load.run().await.unwrap();
        due.extend(load.into_history().into_iter().map(|exchange| exchange.due_ns));
    }
    due.sort_unstable();
    assert_eq!(due, schedule());
}

#[test]
fn what_is_no_address_is_refused() {
    for address in ["nonsense", "ftp://a", "/v1", "http://"] {
        let sale = Sale::new(&Scenario::PLACING, None, "c".to_owned(), 9, (1, 40.0));
        let nodes = vec![address.to_owned()];
        let way =
            Way { nodes, key: None, ca_pem: None, connections: 4, buyers_max: 1_000, place_path: ORDERS };
        assert!(Load::new(sale, &way, Share::WHOLE).is_err(), "{address}");
    }
}
