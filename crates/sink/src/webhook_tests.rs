//! Webhooks against receivers that behave badly.

use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::stock::BucketKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn event(seq: u64) -> Arc<OutEvent> {
    Arc::new(OutEvent {
        id: format!("e/{seq}"),
        kind: "dev.holdfast.order.held.v1".into(),
        word: "held",
        bucket: BucketKey { pool: PoolId(1), number: 0 },
        seq,
        order: Some(OrderId(1)),
        at: Timestamp(0),
        body: format!("{{\"seq\":{seq}}}").into_bytes(),
    })
}

fn webhooks(private: PrivateAddresses) -> Webhooks {
    Webhooks::new(private, Arc::new(|| Timestamp(1_614_265_330_000_000))).unwrap()
}

/// A receiver that takes one request a connection and answers with `answers`, one after the other. What it got.
async fn receiver(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in?token=t", listener.local_addr().unwrap());
    let got = tokio::spawn(async move {
        let mut got = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            loop {
                let count = stream.read(&mut piece).await.unwrap();
                bytes.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
                    got.push(text);
                    break;
                }
            }
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        got
    });
    (url, got)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

fn open(url: &str, is_batched: bool) -> Arc<dyn Sink> {
    let timeout = Duration::from_millis(500);
    webhooks(PrivateAddresses::Allow).open(url, vec![SECRET.into()], is_batched, timeout).unwrap()
}

async fn failure_of(answer: String) -> Failure {
    let (url, _got) = receiver(vec![answer]).await;
    open(&url, false).deliver(&[event(1)]).await.failure.unwrap()
}

#[tokio::test]
async fn an_event_is_sent_signed_and_the_same_every_time() {
    let good = answer("200 OK", "", "");
    let (url, got) = receiver(vec![answer("500 No", "", ""), good.clone(), good.clone()]).await;
    let sink = open(&url, false);
    assert_eq!(sink.deliver(&[event(1)]).await.taken, 0);
    assert_eq!(sink.deliver(&[event(1), event(2)]).await, Delivered::all(2));
    let got = got.await.unwrap();
    assert_eq!(got[0], got[1], "the same id and the same bytes");
    assert!(got[0].starts_with("POST /in?token=t HTTP/1.1\r\n"), "{}", got[0]);
    for line in
        ["content-type: application/cloudevents+json", "webhook-id: e/1", "webhook-timestamp: 1614265330"]
    {
        assert!(got[0].contains(&format!("\r\n{line}\r\n")), "{line}: {}", got[0]);
    }
    let signed = signatures(std::iter::once(SECRET), "e/1", 1_614_265_330, br#"{"seq":1}"#);
    assert!(got[0].contains(&format!("\r\nwebhook-signature: {signed}\r\n")), "{}", got[0]);
    assert!(got[2].ends_with("\r\n\r\n{\"seq\":2}"), "{}", got[2]);
}

#[tokio::test]
async fn a_batch_is_an_array_with_an_id_of_its_own() {
    let (url, got) = receiver(vec![answer("204 None", "", ""), answer("204 None", "", "")]).await;
    let sink = open(&url, true);
    assert_eq!(sink.deliver(&[event(1), event(2)]).await, Delivered::all(2));
    assert_eq!(sink.deliver(&[event(3)]).await, Delivered::all(1));
    let got = got.await.unwrap();
    assert!(got[0].contains("\r\nwebhook-id: e/1+e/2\r\n"), "{}", got[0]);
    assert!(got[0].contains("\r\ncontent-type: application/cloudevents-batch+json\r\n"), "{}", got[0]);
    assert!(got[0].ends_with("[{\"seq\":1},{\"seq\":2}]"), "{}", got[0]);
    assert!(got[1].ends_with("\r\n\r\n[{\"seq\":3}]"), "{}", got[1]);
}

#[tokio::test]
async fn what_an_answer_says_of_whom() {
    for (status, blame) in [
        ("400 Bad", Blame::Events),
        ("409 No", Blame::Events),
        ("422 No", Blame::Events),
        ("500 No", Blame::Events),
        ("503 No", Blame::Events),
        ("401 No", Blame::Receiver),
        ("404 No", Blame::Receiver),
        ("429 No", Blame::Receiver),
        ("302 Found", Blame::Receiver),
    ] {
        let failure = failure_of(answer(status, "", "what is wrong\r\n\u{1}")).await;
        assert_eq!((failure.blame, failure.gone, failure.retry_after), (blame, false, None), "{status}");
        assert!(failure.why.contains("what is wrong") && !failure.why.contains('\n'), "{}", failure.why);
    }
    assert!(failure_of(answer("410 Gone", "", "")).await.gone);
    let later = failure_of(answer("503 Later", "retry-after: 77\r\n", "")).await;
    assert_eq!((later.blame, later.retry_after), (Blame::Receiver, Some(Duration::from_secs(77))));
    let dates = "date: Mon, 30 Nov 2026 12:00:00 GMT\r\nretry-after: Mon, 30 Nov 2026 12:01:30 GMT\r\n";
    let later = failure_of(answer("429 Later", dates, "")).await;
    assert_eq!(later.retry_after, Some(Duration::from_secs(90)));
    let odd = failure_of(answer("503 Later", "retry-after: soon\r\n", "")).await;
    assert_eq!((odd.blame, odd.retry_after), (Blame::Events, None));
}

/// A redirect leads nowhere, wherever it points to.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (inner, got) = receiver(vec![answer("200 OK", "", "")]).await;
    let failure = failure_of(answer("302 Found", &format!("location: {inner}\r\n"), "")).await;
    assert!(failure.why.contains("redirects are not followed"), "{}", failure.why);
    assert!(!got.is_finished());
    got.abort();
}

#[tokio::test]
async fn a_receiver_that_hangs_or_drips_is_left_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let failure = open(&url, false).deliver(&[event(1)]).await.failure.unwrap();
    assert_eq!(failure.blame, Blame::Events, "{}", failure.why);
    drop(listener);
    // A yes counts, however slow the rest of the answer is and however much there is of it.
    let endless = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n{}", "x".repeat(100_000));
    let (url, _got) = receiver(vec![endless]).await;
    assert_eq!(open(&url, false).deliver(&[event(1)]).await, Delivered::all(1));
}

#[tokio::test]
async fn nobody_there_is_the_receivers_fault_and_tells_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in?token=hidden", listener.local_addr().unwrap());
    drop(listener);
    let failure = open(&url, false).deliver(&[event(1)]).await.failure.unwrap();
    assert_eq!(failure.blame, Blame::Receiver);
    assert!(!failure.why.contains("hidden") && !failure.why.contains("whsec"), "{}", failure.why);
}

/// The name led elsewhere when the sink was saved: it is judged by where it leads when it is sent to.
#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused_when_it_is_sent_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refusing = webhooks(PrivateAddresses::Refuse);
    let webhook = Webhook {
        http: refusing.http,
        url: format!("http://localhost:{port}/").parse().unwrap(),
        secrets: Vec::new(),
        is_batched: false,
        timeout: Duration::from_secs(5),
        now: refusing.now,
    };
    let failure = webhook.deliver(&[event(1)]).await.failure.unwrap();
    assert!(failure.why.contains("no public address"), "{}", failure.why);
    assert!(
        webhooks(PrivateAddresses::Refuse).open("http://127.0.0.1/", Vec::new(), false, CONNECT).is_err()
    );
}
