//! The client against a server that answers from a script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_wire::{Code, PlaceLine, PlaceOrderRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Client, Error, LedgerQuery, PageQuery, RetryPolicy};

const ORDER: &str = r#"{"id":"o1","order_no":"n1","campaign_id":"c","account":"a","state":"held",
    "reason":null,"version":1,"lines":[],"hold_expires_at":null,"amount_due":null,"refund_due":null,
    "payments":[],"created_at":"t","updated_at":"t","metadata":null,"a_field_of_tomorrow":1}"#;

/// What the script does with one request.
#[derive(Clone)]
enum Say {
    /// Answers with a status, more headers, a body.
    Answer(u16, &'static str, String),
    /// Reads the request and hangs up.
    HangUp,
}

fn problem(code: Code) -> Say {
    let retryable = code.status() == 503 || code.status() == 429;
    let body = format!(
        r#"{{"type":"/problems/{code}","title":"t","status":{},"code":"{code}","detail":"d","request_id":"r",
        "recorded":null,"retryable":{retryable}}}"#,
        code.status()
    );
    Say::Answer(code.status(), "content-type: application/problem+json\r\n", body)
}

fn json(status: u16, body: &str) -> Say {
    Say::Answer(status, "content-type: application/json\r\n", body.into())
}

/// A server that follows the script and keeps what it was sent.
struct Script {
    client: Client,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Script {
    async fn start(says: Vec<Say>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            for say in says {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                kept.lock().unwrap().push(request);
                let Say::Answer(status, headers, body) = say else { continue };
                let head =
                    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}", body.len());
                stream.write_all(format!("{head}\r\n{headers}\r\n{body}").as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        });
        let retry = RetryPolicy {
            attempts_max: 3,
            backoff: Duration::from_millis(1),
            backoff_max: Duration::from_millis(2),
            attempt_timeout: Duration::from_secs(5),
        };
        Self { client: Client::with_retry(&address, Some("k1".into()), retry).unwrap(), seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// Reads one request: its head, and its body by its declared length.
async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

fn order() -> PlaceOrderRequest {
    PlaceOrderRequest {
        campaign_id: "c".into(),
        order_no: "n1".into(),
        account: "a".into(),
        lines: vec![PlaceLine { sku: "s".into(), location: None, quantity: 1 }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: None,
        metadata: None,
    }
}

#[tokio::test]
async fn a_lost_or_busy_attempt_is_repeated_as_it_was() {
    let replayed = "content-type: application/json\r\nidempotent-replayed: true\r\n";
    let script =
        Script::start(vec![Say::HangUp, problem(Code::Overloaded), Say::Answer(200, replayed, ORDER.into())])
            .await;
    let answer = script.client.place_order(&order()).await.unwrap();
    assert_eq!((answer.status, answer.replayed, answer.value.id.as_str()), (200, true, "o1"));
    let seen = script.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| *request == seen[0]), "the same bytes each time");
    assert!(seen[0].starts_with("POST /v1/orders HTTP/1.1\r\n"), "{}", seen[0]);
    assert!(seen[0].contains("authorization: Bearer k1\r\n"), "{}", seen[0]);
    assert!(
        seen[0].contains(concat!("user-agent: holdfast-rust/", env!("CARGO_PKG_VERSION"))),
        "{}",
        seen[0]
    );
    assert!(seen[0].ends_with(
        r#"{"campaign_id":"c","order_no":"n1","account":"a","lines":[{"sku":"s","quantity":1}]}"#
    ));
}

#[tokio::test]
async fn whoever_prefers_a_queue_says_so_on_every_try() {
    let script = Script::start(vec![Say::HangUp, json(202, ORDER)]).await;
    assert_eq!(script.client.place_order_queued(&order()).await.unwrap().status, 202);
    assert!(script.seen().iter().all(|request| request.contains("prefer: respond-async\r\n")));
    let plain = Script::start(vec![json(201, ORDER)]).await;
    plain.client.place_order(&order()).await.unwrap();
    assert!(!plain.seen()[0].contains("prefer"), "{}", plain.seen()[0]);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let script = Script::start(vec![problem(Code::SoldOut)]).await;
    let error = script.client.place_order(&order()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::SoldOut));
    assert!(!error.outcome_is_unknown());
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test]
async fn an_unknown_outcome_is_looked_up_and_asked_again() {
    let page = format!(r#"{{"items":[{ORDER}],"next_cursor":null}}"#);
    let mut says = vec![Say::HangUp, Say::HangUp, Say::HangUp];
    says.extend([json(200, &page), json(200, ORDER)]);
    let script = Script::start(says).await;
    let answer = script.client.place_order(&order()).await.unwrap();
    assert_eq!(answer.value.state, "held");
    let seen = script.seen();
    assert!(seen[3].starts_with("GET /v1/orders?campaign_id=c&order_no=n1 "), "{}", seen[3]);
    assert_eq!(seen[4], seen[0]);
}

#[tokio::test]
async fn a_later_busy_answer_does_not_hide_that_the_outcome_is_unknown() {
    let says = vec![Say::HangUp, problem(Code::Overloaded), problem(Code::Overloaded)];
    let script = Script::start(says).await;
    let refund = holdfast_wire::RefundRequest {
        refund_id: "r".into(),
        lines: vec![],
        restock: None,
        reason: "x".into(),
    };
    let error = script.client.refund_order("o1", &refund).await.unwrap_err();
    assert!(matches!(error, Error::Transport { maybe_done: true, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_has_done_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let client = Client::with_retry(&address, None, retry).unwrap();
    let error = client.place_order(&order()).await.unwrap_err();
    assert!(matches!(error, Error::Transport { maybe_done: false, .. }), "{error:?}");
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let says = vec![
        json(200, r#"{"items":[],"next_cursor":"a b&c"}"#),
        json(200, r#"{"items":[],"next_cursor":null}"#),
    ];
    let script = Script::start(says).await;
    let query = LedgerQuery { pool_id: None, order_id: Some("o/1".into()) };
    assert!(script.client.every_ledger_entry(&query).await.unwrap().is_empty());
    let seen = script.seen();
    assert!(seen[0].starts_with("GET /v1/ledger?order_id=o%2F1&limit=500 "), "{}", seen[0]);
    assert!(seen[1].starts_with("GET /v1/ledger?order_id=o%2F1&cursor=a+b%26c&limit=500 "), "{}", seen[1]);
}

#[tokio::test]
async fn a_list_that_does_not_move_on_is_refused() {
    let says = vec![json(200, r#"{"items":[],"next_cursor":"x"}"#); 2];
    let script = Script::start(says).await;
    let error = script.client.every_ledger_entry(&LedgerQuery::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unexpected(_)), "{error:?}");
}

#[tokio::test]
async fn ids_stand_in_addresses_as_they_are() {
    let script = Script::start(vec![problem(Code::NotFound)]).await;
    assert_eq!(script.client.campaign("a/b c%?#ü").await.unwrap_err().code(), Some(Code::NotFound));
    assert!(
        script.seen()[0].starts_with("GET /v1/campaigns/a%2Fb%20c%25%3F%23%C3%BC "),
        "{}",
        script.seen()[0]
    );
    for id in [".", "..", ""] {
        assert!(matches!(script.client.campaign(id).await, Err(Error::Configuration(_))), "{id:?}");
    }
}

#[tokio::test]
async fn what_is_no_answer_of_holdfast_is_unexpected() {
    let says = vec![
        Say::Answer(404, "content-type: text/html\r\n", "<h1>".into()),
        Say::Answer(302, "location: /elsewhere\r\n", String::new()),
        json(200, "{}"),
    ];
    let script = Script::start(says).await;
    for _ in 0..3 {
        let error = script.client.orders(&crate::OrdersQuery::default(), &PageQuery::default()).await;
        assert!(matches!(error, Err(Error::Unexpected(_))), "{error:?}");
    }
}

#[test]
fn targets_are_checked() {
    for good in [
        "http://127.0.0.1:8080",
        "http://localhost/",
        "http://[::1]:1",
        "http://proxy/holdfast/",
        "https://a",
    ] {
        assert!(Client::new(good, None).is_ok(), "{good}");
    }
    for bad in ["", "localhost:8080", "ftp://a", "http://a/?x", "http://u:p@a", "http://a#b"] {
        assert!(matches!(Client::new(bad, None), Err(Error::Configuration(_))), "{bad}");
    }
    assert!(matches!(Client::new("http://a", Some("a\nb".into())), Err(Error::Configuration(_))));
}

fn events(parts: &[(&str, &str)]) -> Say {
    let event = |(id, state): &(&str, &str)| {
        let order = ORDER.replace("held", state).replace('\n', " ");
        format!("event: order\nid: {id}\ndata: {order}\n\n")
    };
    let body: String = parts.iter().map(event).collect();
    Say::Answer(200, "content-type: text/event-stream\r\n", format!("retry: 9\n\n{body}: alive\n\n"))
}

#[tokio::test]
async fn events_go_on_where_the_last_connection_stood() {
    let script = Script::start(vec![
        Say::HangUp,
        events(&[("p/0/2", "held")]),
        problem(Code::Overloaded),
        events(&[("p/0/3", "in_review"), ("p/0/4", "sold")]),
    ])
    .await;
    let mut events = script.client.order_events("o1");
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push((event.position.unwrap(), event.order.state.into_owned()));
    }
    let expected = [("p/0/2", "held"), ("p/0/3", "in_review"), ("p/0/4", "sold")];
    assert_eq!(seen, expected.map(|(position, state)| (position.to_owned(), state.to_owned())));
    assert_eq!((events.position(), script.seen().len()), (Some("p/0/4"), 4));
    let seen = script.seen();
    assert!(seen[0].starts_with("GET /v1/orders/o1/events HTTP/1.1\r\n"), "{}", seen[0]);
    assert!(seen.iter().all(|request| request.contains("accept: text/event-stream\r\n")));
    assert!(!seen[1].contains("last-event-id"), "{}", seen[1]);
    assert!(seen[3].contains("last-event-id: p/0/2\r\n"), "{}", seen[3]);
}

#[tokio::test]
async fn what_was_the_last_event_is_not_waited_for_and_failures_in_a_row_are_bounded() {
    let script = Script::start(vec![Say::Answer(204, "", String::new())]).await;
    let mut events = script.client.order_events_after("o1", Some("p/0/4".into()));
    assert!(events.next().await.unwrap().is_none());
    assert!(script.seen()[0].contains("last-event-id: p/0/4\r\n"));
    let script = Script::start(vec![Say::HangUp, events_that_end(), Say::HangUp]).await;
    let mut events = script.client.order_events("o1");
    assert!(matches!(events.next().await, Err(Error::Transport { .. })));
    assert!(events.next().await.unwrap().is_none(), "it has given up");
    let script = Script::start(vec![problem(Code::NotFound)]).await;
    let error = script.client.order_events("o1").next().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::NotFound));
}

fn events_that_end() -> Say {
    Say::Answer(200, "content-type: text/event-stream\r\n", "retry: 9\n\n".into())
}

#[tokio::test]
async fn a_wait_goes_on_while_the_order_is_queued() {
    let queued = ORDER.replace("held", "queued");
    let script = Script::start(vec![json(200, &queued), json(200, &queued), json(200, ORDER)]).await;
    let order = script.client.wait_for_order("o1", Duration::from_secs(60)).await.unwrap();
    assert_eq!((order.state.as_ref(), script.seen().len()), ("held", 3));
    assert!(script.seen()[0].starts_with("GET /v1/orders/o1?wait=30s HTTP/1.1\r\n"));
    let script = Script::start(vec![json(200, &queued)]).await;
    let order = script.client.wait_for_order("o1", Duration::ZERO).await.unwrap();
    assert_eq!(order.state, "queued", "as it stands at the deadline");
    let script = Script::start(vec![events(&[("p/0/2", "held"), ("p/0/3", "released")])]).await;
    let order = script.client.wait_for_end("o1", Duration::from_secs(60)).await.unwrap();
    assert_eq!(order.state, "released");
}

#[tokio::test]
async fn an_export_comes_in_pieces_and_never_cut_off_unseen() {
    let csv = "sku,location,quantity\r\na,main,1\r\n";
    let answer = Say::Answer(200, "content-type: text/csv\r\n", csv.into());
    let script = Script::start(vec![problem(Code::Overloaded), answer]).await;
    let mut download = script.client.export_stock("c/1").await.unwrap();
    let mut file = Vec::new();
    while let Some(piece) = download.next().await.unwrap() {
        file.extend(piece);
    }
    assert_eq!(file, csv.as_bytes());
    assert!(script.seen()[1].starts_with("GET /v1/exports/stock?campaign_id=c%2F1 HTTP/1.1\r\n"));
    let cut = "content-type: text/csv\r\ntransfer-encoding: chunked\r\n";
    let script = Script::start(vec![Say::Answer(200, cut, "3\r\na,b\r\n".into())]).await;
    let mut download = script.client.export_stock("c").await.unwrap();
    let pieces = [download.next().await.is_ok(), download.next().await.is_ok()];
    assert_eq!(pieces, [true, false], "the last chunk is missing");
}
