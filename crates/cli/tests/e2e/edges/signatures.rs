//! Payment notices are taken from whoever has the secret, and from nobody else; and what is secret stays so.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::support::{Answer, Http, Raw, Server, Start, answer_of, assert_problem, assert_whole_problem};

const OLD: &str = "whsec_b2xkLXNlY3JldC1vZi0yNC1ieXRlcw==";
const NEW: &str = "whsec_bmV3LXNlY3JldC1vZi0yNC1ieXRlcw==";
const STRANGE: &str = "whsec_c3RyYW5nZS1zZWNyZXQtb2YtMjQtYg==";

/// A server with a key, and a provider whose secret rotates.
struct Shop {
    server: Server,
    key: String,
    order: String,
    directory: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let secrets = [OLD, NEW].map(|secret| ["--payment-secret".to_owned(), format!("bank={secret}")]);
        let environment = vec![("HOLDFAST_LOG".to_owned(), "trace".to_owned())];
        let log = Some(directory.path().join("log"));
        let server = Server::start_with(Start { arguments: secrets.concat(), environment, log }).await;
        let key = server.printed.iter().find_map(|line| line.strip_prefix("admin key, shown this once: "));
        let key = key.unwrap().to_owned();
        let mut shop = Self { server, key, order: String::new(), directory };
        for (method, path, body) in [
            ("PUT", "/v1/campaigns/spring", json!({"name": "Spring"})),
            ("POST", "/v1/campaigns/spring/open", json!({"operator": "ann", "reason": "go"})),
            ("POST", "/v1/pools", json!({"campaign_id": "spring", "sku": "CUP", "supply": 50})),
        ] {
            let answer = shop.with_key(method, path, &body.to_string()).await;
            assert!(answer.status < 300, "{answer:?}");
        }
        let order = crate::support::place_body("spring", "A-1", "CUP", 2).to_string();
        shop.order = shop.with_key("POST", "/v1/orders", &order).await.text("id");
        shop
    }

    async fn with_key(&self, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        self.server.http.send_raw(method, path, &headers, body.into()).await
    }

    fn notice(&self, event: &str) -> String {
        json!({"event_id": event, "payment_id": "p1", "order_id": self.order, "outcome": "succeeded"})
            .to_string()
    }

    async fn assert_state(&self, state: &str) {
        let order = self.with_key("GET", &format!("/v1/orders/{}", self.order), "").await;
        assert_eq!(order.text("state"), state, "{order:?}");
    }
}

fn now() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the server compares with the true time")]
    let now = SystemTime::now();
    i64::try_from(now.duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn standard(secret: &str, at: &str, body: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    format!("v1,{}", STANDARD.encode(mac(&key, &format!("msg_1.{at}.{body}"))))
}

fn stripe(secret: &str, at: &str, body: &str) -> String {
    let text = mac(secret.as_bytes(), &format!("{at}.{body}"));
    let hex: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex}")
}

async fn send(http: &Http, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = [&[("content-type", "application/json")], headers].concat();
    http.send_raw("POST", "/v1/payments/bank/notifications", &headers, body.into()).await
}

/// The three headers of Standard Webhooks.
fn webhook<'h>(at: &'h str, signature: &'h str) -> Vec<(&'h str, &'h str)> {
    vec![("webhook-id", "msg_1"), ("webhook-timestamp", at), ("webhook-signature", signature)]
}

#[tokio::test]
async fn both_forms_and_both_secrets_are_good_while_they_rotate() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let at = now().to_string();
    let body = shop.notice("e1");
    let mut dispositions = Vec::new();
    for secret in [OLD, NEW] {
        let signature = standard(secret, &at, &body);
        let among = format!("v1a,AAAA v1,!!! {} {signature}", standard(STRANGE, &at, &body));
        for signature in [&signature, &among] {
            let answer = send(http, &webhook(&at, signature), &body).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            dispositions.push(answer.text("disposition"));
        }
        let signature = stripe(secret, &at, &body);
        let among = format!("{signature},v0=00,v1=00");
        for signature in
            [&signature, &among, &signature.to_uppercase().replace("T=", "t=").replace("V1=", "v1=")]
        {
            let answer = send(http, &[("stripe-signature", signature)], &body).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            dispositions.push(answer.text("disposition"));
        }
    }
    assert_eq!(dispositions.iter().filter(|disposition| *disposition == "applied").count(), 1);
    assert_eq!(dispositions.iter().filter(|disposition| *disposition == "duplicate").count(), 9);
    for early in [now() - 290, now() + 290] {
        let at = early.to_string();
        assert_eq!(send(http, &webhook(&at, &standard(NEW, &at, &body)), &body).await.status, 200);
    }
    shop.assert_state("sold").await;
    shop.server.finish().await;
}

#[tokio::test]
async fn a_stripe_form_that_is_not_signed_well_is_401_and_does_nothing() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let at = &now().to_string();
    let body = &shop.notice("e1");
    let good = &standard(OLD, at, body);
    let form = &stripe(OLD, at, body);
    let (old, young, plus) = (&(now() - 310).to_string(), &(now() + 310).to_string(), &format!("+{at}"));
    let long = &"A".repeat(5_000);
    let cases: Vec<(&str, Vec<(&str, String)>)> = vec![
        ("none", vec![]),
        ("the secret itself", vec![("stripe-signature", OLD.into())]),
        ("only a signature", vec![("webhook-signature", good.clone())]),
        ("no id", vec![("webhook-timestamp", at.clone()), ("webhook-signature", good.clone())]),
        ("no time", vec![("webhook-id", "msg_1".into()), ("webhook-signature", good.clone())]),
        ("no v1", vec![("stripe-signature", format!("t={at}"))]),
        ("no t", vec![("stripe-signature", form.split_once(',').unwrap().1.into())]),
        ("two times", vec![("stripe-signature", format!("t=1,{form}"))]),
        ("odd hex", vec![("stripe-signature", form[..form.len() - 1].into())]),
        ("no hex", vec![("stripe-signature", format!("t={at},v1=zz"))]),
        ("half a signature", vec![("stripe-signature", form[..form.len() - 2].into())]),
        ("an empty one", vec![("stripe-signature", String::new())]),
        ("a stranger's", vec![("stripe-signature", stripe(STRANGE, at, body))]),
        ("of another body", vec![("stripe-signature", stripe(OLD, at, "{}"))]),
        ("of another time", vec![("stripe-signature", form.replace(at.as_str(), &(now() - 1).to_string()))]),
        ("an old one", vec![("stripe-signature", stripe(OLD, old, body))]),
        ("one of the future", vec![("stripe-signature", stripe(OLD, young, body))]),
        ("a time with a sign", vec![("stripe-signature", stripe(OLD, plus, body))]),
        ("twice", vec![("stripe-signature", form.clone()), ("stripe-signature", form.clone())]),
        ("not ASCII", vec![("stripe-signature", format!("t={at},v1=é"))]),
        ("very long", vec![("stripe-signature", format!("t={at},v1={long}"))]),
        ("in the body's place", vec![("authorization", format!("Bearer {}", shop.key))]),
    ];
    for (what, headers) in cases {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_problem(&send(http, &headers, body).await, 401, "unauthenticated", what);
    }
    shop.assert_state("held").await;
    shop.server.finish().await;
}

#[tokio::test]
async fn a_webhook_that_is_not_signed_well_is_401_and_does_nothing() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let at = &now().to_string();
    let body = &shop.notice("e1");
    let (good, form) = (&standard(OLD, at, body), &stripe(OLD, at, body));
    let (old, young, plus) = (&(now() - 310).to_string(), &(now() + 310).to_string(), &format!("+{at}"));
    let long = &"A".repeat(5_000);
    for (what, at, signature) in [
        ("a stranger's", at, &standard(STRANGE, at, body)),
        ("of another body", at, &standard(OLD, at, "{}")),
        ("an old one", old, &standard(OLD, old, body)),
        ("one of the future", young, &standard(OLD, young, body)),
        ("a time with a sign", plus, &standard(OLD, plus, body)),
        ("another time", young, good),
        ("no version", at, &good[3..].to_owned()),
        ("another version", at, &good.replace("v1,", "v2,")),
        ("no base64", at, &"v1,%%%".to_owned()),
        ("nothing", at, &"v1,".to_owned()),
        ("empty", at, &String::new()),
        ("odd base64", at, &good[..good.len() - 2].to_owned()),
        ("not ASCII", at, &format!("{good}é")),
        ("very long", at, &format!("{good} {long}")),
        ("a time beyond numbers", &"9".repeat(30), good),
        ("a time that is none", &"yesterday".to_owned(), good),
    ] {
        assert_problem(&send(http, &webhook(at, signature), body).await, 401, "unauthenticated", what);
    }
    let twice = [webhook(at, good), webhook(at, good)].concat();
    assert_problem(&send(http, &twice, body).await, 401, "unauthenticated", "all twice");
    // A good signature in the other form does not help one that is wrong.
    let both = [webhook(at, "v1,AAAA"), vec![("stripe-signature", form.as_str())]].concat();
    assert_problem(&send(http, &both, body).await, 401, "unauthenticated", "one wrong, one right");
    let changed = body.replace("succeeded", "failed");
    assert_problem(&send(http, &webhook(at, good), &changed).await, 401, "unauthenticated", "a changed body");
    let spaced = format!("{body} ");
    assert_problem(&send(http, &webhook(at, good), &spaced).await, 401, "unauthenticated", "one byte more");
    shop.assert_state("held").await;
    // Signed well, judged like any other body.
    let bad = "{\"event_id\":";
    let answer = send(http, &webhook(at, &standard(OLD, at, bad)), bad).await;
    assert_problem(&answer, 400, "malformed_json", "half a body, signed");
    shop.server.finish().await;
}

#[tokio::test]
async fn monstrous_signature_headers_are_4xx() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let body = shop.notice("e1");
    let request = |headers: &[u8]| {
        let head = "POST /v1/payments/bank/notifications HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/json\r\n";
        let length = format!("content-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), headers, length.as_bytes(), body.as_bytes()].concat()
    };
    let of_size = |name: &str, size: usize| format!("{name}: {}\r\n", "a".repeat(size)).into_bytes();
    for (what, headers) in [
        ("bytes that are no text", b"stripe-signature: t=1,v1=\xff\xfe\r\n".to_vec()),
        ("a tab", b"stripe-signature: \tt=1\t,\tv1=00\r\n".to_vec()),
        ("100 kB", of_size("stripe-signature", 100 * 1_024)),
        ("1 MB", of_size("webhook-signature", 1_024 * 1_024)),
        ("1 MB of the other", of_size("stripe-signature", 1_024 * 1_024)),
        ("1,000 signatures", format!("stripe-signature: t={}{}\r\n", now(), ",v1=00".repeat(1_000)).into()),
    ] {
        let said = Raw::exchange(http, &request(&headers)).await;
        let answer = answer_of(&said);
        assert!(answer.status == 401 || answer.status == 413, "{what}: {said}");
        assert_whole_problem(&answer, what);
    }
    shop.assert_state("held").await;
    shop.server.finish().await;
}

#[tokio::test]
async fn without_a_secret_a_notice_needs_the_key() {
    let shop = Shop::open().await;
    let body = shop.notice("e1");
    let path = "/v1/payments/other/notifications";
    let at = now().to_string();
    let signature = stripe(OLD, &at, &body);
    let headers = [("content-type", "application/json"), ("stripe-signature", signature.as_str())];
    let signed = shop.server.http.send_raw("POST", path, &headers, body.clone().into()).await;
    assert_problem(&signed, 401, "unauthenticated", "another provider's signature");
    shop.assert_state("held").await;
    assert_eq!(shop.with_key("POST", path, &body).await.text("disposition"), "applied");
    shop.server.finish().await;
}

#[tokio::test]
async fn secrets_and_keys_are_never_in_the_log() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let at = now().to_string();
    let body = shop.notice("e1");
    let signature = standard(NEW, &at, &body);
    assert_eq!(send(http, &webhook(&at, &signature), &body).await.status, 200);
    let form = stripe(STRANGE, &at, &body);
    assert_eq!(send(http, &[("stripe-signature", &form)], &body).await.status, 401);
    assert_eq!(send(http, &[("stripe-signature", OLD)], OLD).await.status, 401);
    let path = format!("/v1/orders?account={}", shop.key);
    assert_eq!(shop.with_key("GET", &path, "").await.status, 200);
    let wrong = format!("Bearer {}x", shop.key);
    for authorization in [wrong.as_str(), &shop.key, &format!("Basic {}", shop.key)] {
        let answer =
            http.send_raw("GET", "/v1/orders", &[("authorization", authorization)], Vec::new()).await;
        assert_problem(&answer, 401, "unauthenticated", "a wrong key");
        assert!(!answer.body.to_string().contains(&shop.key));
    }
    let Shop { server, key, directory, .. } = shop;
    server.finish().await;
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(!log.is_empty(), "everything is logged");
    let hidden = [OLD, NEW].map(|secret| secret.strip_prefix("whsec_").unwrap());
    for secret in [key.as_str(), hidden[0], hidden[1], signature.strip_prefix("v1,").unwrap()] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}
