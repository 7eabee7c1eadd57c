//! Headers that are echoed, ignored or too much.

use serde_json::json;

use crate::support::{Raw, Server, answer_of, assert_problem, assert_whole_problem, place_body};

/// Sends a GET with header bytes as they are; the head of the answer.
async fn id_of(server: &Server, headers: &[u8]) -> String {
    let mut sent = b"GET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\n".to_vec();
    sent.extend_from_slice(headers);
    sent.extend_from_slice(b"\r\n");
    let answer = answer_of(&Raw::exchange(&server.http, &sent).await);
    assert_eq!(answer.status, 200, "{answer:?}");
    let ids: Vec<_> = answer.headers.get_all("x-request-id").iter().collect();
    assert_eq!(ids.len(), 1);
    ids[0].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_id_comes_back_if_it_can_stand_in_a_log() {
    let server = Server::start().await;
    let longest = "x".repeat(128);
    for good in ["a", "abc-1", "a/b~c!\"#$%&'()*+,;:<=>?@[]^_`{|}", longest.as_str()] {
        let sent = format!("x-request-id: {good}\r\n");
        assert_eq!(id_of(&server, sent.as_bytes()).await, good);
        assert_eq!(
            id_of(&server, sent.to_uppercase().replace(&good.to_uppercase(), good).as_bytes()).await,
            good
        );
    }
    let long = format!("x-request-id: {longest}y\r\n");
    for bad in [
        &b""[..],
        b"x-request-id:\r\n",
        b"x-request-id:   \r\n",
        b"x-request-id: a b\r\n",
        b"x-request-id: a\tb\r\n",
        b"x-request-id: \xff\xfe\r\n",
        "x-request-id: é\r\n".as_bytes(),
        long.as_bytes(),
    ] {
        let made = id_of(&server, bad).await;
        let case = String::from_utf8_lossy(bad);
        assert!(made.len() == 36 && made.is_ascii() && !case.contains(&made), "{case}: {made}");
    }
    // Also on a problem, in both places.
    let answer = server.http.send_raw("GET", "/nowhere", &[("x-request-id", "mine")], Vec::new()).await;
    assert_whole_problem(&answer, "a problem");
    assert_eq!(answer.body["request_id"], "mine");
    server.finish().await;
}

#[tokio::test]
async fn idempotency_keys_of_headers_are_ignored() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 50, 1).await;
    let long = "k".repeat(10_000);
    let odd: [&[(&str, &str)]; 8] = [
        &[],
        &[("idempotency-key", "one")],
        &[("Idempotency-Key", "two")],
        &[("idempotency-key", "one"), ("idempotency-key", "two")],
        &[("idempotency-key", "")],
        &[("idempotency-key", "   ")],
        &[("idempotency-key", "é\u{ff}")],
        &[("idempotency-key", &long)],
    ];
    let place = async |order_no: &str, headers: &[(&str, &str)]| {
        let body = place_body("spring", order_no, "CUP", 1).to_string();
        let headers = [&[("content-type", "application/json")], headers].concat();
        http.send_raw("POST", "/v1/orders", &headers, body.into()).await
    };
    // The same number is the same order under every key; another number is another under the same key.
    let first = place("A-0", &[]).await;
    for (n, headers) in odd.iter().enumerate() {
        let again = place("A-0", headers).await;
        assert_eq!((again.status, again.text("id")), (200, first.text("id")), "{headers:?}");
        let other = place(&format!("B-{n}"), &[("idempotency-key", "one")]).await;
        assert_eq!(other.status, 201, "{other:?}");
        assert_eq!(place(&format!("C-{n}"), headers).await.status, 201, "{headers:?}");
    }
    let held = 1 + 2 * odd.len() as u64;
    assert_eq!(http.balances(&pool).await, (50 - held, held, 0));
    server.finish().await;
}

#[tokio::test]
async fn headers_without_end_are_refused_and_do_no_harm() {
    let server = Server::start().await;
    for (what, headers) in [
        ("one of 100 kB", format!("x-long: {}\r\n", "x".repeat(100 * 1_024))),
        ("one of 1 MB", format!("x-long: {}\r\n", "x".repeat(1_024 * 1_024))),
        ("200", "x-many: 1\r\n".repeat(200)),
        ("50,000", "x-many: 1\r\n".repeat(50_000)),
        ("a name of 100 kB", format!("{}: 1\r\n", "x".repeat(100 * 1_024))),
    ] {
        let sent = format!("GET /v1/orders HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\r\n");
        let said = Raw::exchange(&server.http, sent.as_bytes()).await;
        assert_problem(&answer_of(&said), 413, "too_large", what);
        assert_eq!(server.http.get("/livez").await.status, 200, "{what}");
    }
    let path = format!("/v1/orders?account={}", "x".repeat(60 * 1_024));
    let said = Raw::ask(&server.http, "GET", &path, None).await;
    assert_whole_problem(&said, "a path of 60 kB");
    assert!((400..500).contains(&said.status), "{said:?}");
    server.finish().await;
}

#[tokio::test]
async fn what_is_no_http_is_a_problem_too() {
    let server = Server::start().await;
    for bad in [
        "hello\r\n\r\n",
        "GET /livez\r\n\r\n",
        "GET /livez HTTP/3.0\r\nhost: h\r\n\r\n",
        "GET /li vez HTTP/1.1\r\nhost: h\r\n\r\n",
        "GET /livez HTTP/1.1\r\nhost: h\r\nbad header\r\n\r\n",
        "GET /livez HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n",
        "GET /livez HTTP/1.1\r\nhost: h\r\nx : a\r\n\r\n",
        "GET /livez HTTP/1.1\r\nhost: h\r\n folded: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}",
        "GET /\u{e9} HTTP/1.1\r\nhost: h\r\n\r\n",
    ] {
        let mut raw = Raw::open(&server.http).await;
        raw.send(bad.as_bytes()).await.unwrap();
        raw.end().await;
        let said = String::from_utf8_lossy(&raw.read_to_close().await).into_owned();
        assert!(!said.contains(" 200 ") && !said.contains("HTTP/1.1 5"), "{bad:?}: {said}");
        if said.starts_with("HTTP/1.1 ") {
            assert_whole_problem(&answer_of(&said), bad);
        }
    }
    assert_eq!(server.http.get("/livez").await.status, 200);
    server.finish().await;
}
