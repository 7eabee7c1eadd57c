//! Paths, methods and media types.

use serde_json::{Value, json};

use crate::support::{Answer, Http, Raw, Server, assert_problem, assert_whole_problem, place_body};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn what_is_no_route_is_404() {
    let server = Server::start().await;
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/orders/",
        "/v2/orders",
        "/V1/orders",
        "/v1/Orders",
        "//v1/orders",
        "/v1//orders",
        "/v1/orders/a/b/c",
        "/admin",
        "/v1/../v1/orders",
        "/v1/orders%2Fbatch",
        "/v1/orders%00",
        "/livez/",
        "/.env",
        "/v1/payments",
        "/v1/payments/bank",
        "/%ff",
        "/v1/campaigns/c/explode",
        "/v1/orders;x=1",
        "*",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let body = (method == "POST").then(|| json!({}));
            let answer = Raw::ask(&server.http, method, path, body.as_ref()).await;
            assert_problem(&answer, 404, "not_found", &format!("{method} {path}"));
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Server::start().await;
    let id = "01937a5e-0000-7000-8000-0000000000ff";
    let (order, pool) = (format!("/v1/orders/{id}"), format!("/v1/pools/{id}"));
    let cases = [
        (
            "/v1/orders".to_owned(),
            &["DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"][..],
            "GET, HEAD, POST",
        ),
        ("/v1/orders/batch".to_owned(), &["GET", "PUT", "OPTIONS"], "POST"),
        (order.clone(), &["POST", "DELETE", "PATCH"], "GET, HEAD"),
        (format!("{order}/cancel"), &["GET", "DELETE"], "POST"),
        (format!("{order}/refunds"), &["GET"], "POST"),
        ("/v1/campaigns".to_owned(), &["POST"], "GET, HEAD"),
        ("/v1/campaigns/c".to_owned(), &["POST", "PATCH", "DELETE", "get", "Put"], "GET, HEAD, PUT"),
        ("/v1/campaigns/c/open".to_owned(), &["GET", "PUT"], "POST"),
        ("/v1/pools".to_owned(), &["PUT"], "GET, HEAD, POST"),
        (format!("{pool}/availability"), &["POST"], "GET, HEAD"),
        (format!("{pool}/adjustments"), &["GET"], "POST"),
        ("/v1/ledger".to_owned(), &["POST", "DELETE"], "GET, HEAD"),
        ("/v1/payments/bank/notifications".to_owned(), &["GET", "PUT"], "POST"),
        ("/livez".to_owned(), &["POST"], "GET, HEAD"),
    ];
    for (path, methods, expected) in cases {
        for method in methods {
            let answer = Raw::ask(&server.http, method, &path, None).await;
            let case = format!("{method} {path}");
            assert_problem(&answer, 405, "method_not_allowed", &case);
            let allow = answer.headers["allow"].to_str().unwrap();
            let mut allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
            allowed.sort_unstable();
            assert_eq!(allowed.join(", "), expected, "{case}");
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    for path in ["/livez", "/readyz", "/v1/campaigns", "/v1/campaigns/spring", "/v1/orders", "/v1/ledger"] {
        let head = server.http.send_raw("HEAD", path, &[], Vec::new()).await;
        let get = server.http.get(path).await;
        assert_eq!((head.status, head.raw.len()), (200, 0), "{path}");
        assert_eq!(head.headers["content-type"], get.headers["content-type"], "{path}");
        assert_eq!(head.headers["content-length"], get.headers["content-length"], "{path}");
    }
    for (path, status) in
        [("/nowhere", 404), ("/v1/campaigns/none", 404), ("/v1/orders?x=1", 400), ("/v1/orders/batch", 405)]
    {
        let head = server.http.send_raw("HEAD", path, &[], Vec::new()).await;
        assert_eq!((head.status, head.raw.len()), (status, 0), "{path}");
        assert_eq!(head.headers["content-type"], "application/problem+json", "{path}");
    }
    // An answer to HEAD must not carry bytes that the next answer would begin with.
    let sent = "HEAD /nowhere HTTP/1.1\r\nhost: h\r\n\r\nGET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let said = Raw::exchange(&server.http, sent.as_bytes()).await;
    let (_, second) = said.split_once("\r\n\r\n").unwrap();
    assert!(second.starts_with("HTTP/1.1 200 "), "{said}");
    server.finish().await;
}

#[tokio::test]
async fn who_takes_no_json_gets_none() {
    let server = Server::start().await;
    let http = &server.http;
    let ask =
        async |path: &str, accept: &str| http.send_raw("GET", path, &[("accept", accept)], Vec::new()).await;
    for path in ["/v1/orders", "/v1/campaigns", "/v1/pools", "/v1/ledger", "/livez", "/v1/campaigns/c"] {
        for accept in
            ["text/html", "application/xml", "application/json;q=0", "image/*", "nonsense", "*/*;q=0"]
        {
            assert_problem(&ask(path, accept).await, 406, "not_acceptable", &format!("{path} {accept}"));
        }
        for accept in [
            "*/*",
            "application/json",
            "application/*",
            "text/html, */*;q=0.1",
            "APPLICATION/JSON",
            "application/json; charset=utf-8",
        ] {
            assert_ne!(ask(path, accept).await.status, 406, "{path} {accept}");
        }
    }
    assert_eq!(ask("/v1/ledger", "text/csv").await.headers["content-type"], "text/csv; charset=utf-8");
    assert_problem(&ask("/v1/orders", "text/csv").await, 406, "not_acceptable", "orders as CSV");
    // A write whose answer could not be taken is not done.
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 5, 1).await;
    let body = place_body("spring", "A-1", "CUP", 1).to_string();
    let refused = http.send_raw("POST", "/v1/orders", &[JSON, ("accept", "text/html")], body.into()).await;
    assert_problem(&refused, 406, "not_acceptable", "a place");
    assert_eq!(http.balances(&pool).await, (5, 0, 0));
    server.finish().await;
}

async fn place(http: &Http, headers: &[(&str, &str)], body: &Value) -> Answer {
    http.send_raw("POST", "/v1/orders", headers, body.to_string().into()).await
}

#[tokio::test]
async fn only_plain_json_is_taken() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 5, 1).await;
    let body = place_body("spring", "A-1", "CUP", 1);
    let kind = |value: &'static str| ("content-type", value);
    for headers in [
        &[][..],
        &[kind("text/plain")],
        &[kind("application/x-www-form-urlencoded")],
        &[kind("multipart/form-data; boundary=x")],
        &[kind("application/jsonp")],
        &[kind("application/problem+json")],
        &[kind("json")],
        &[kind("")],
        &[kind("application/json, application/json")],
        &[JSON, JSON],
        &[JSON, kind("text/plain")],
        &[JSON, ("content-encoding", "gzip")],
        &[JSON, ("content-encoding", "deflate, gzip")],
        &[JSON, ("content-encoding", "identity")],
        &[JSON, ("content-encoding", "")],
    ] {
        let answer = place(http, headers, &body).await;
        assert_problem(&answer, 415, "unsupported_media_type", &format!("{headers:?}"));
    }
    assert_eq!(http.balances(&pool).await, (5, 0, 0));
    for (status, value) in [
        (201, "application/json"),
        (200, "Application/JSON"),
        (200, "application/json;charset=utf-8"),
        (200, "application/json ; charset=\"UTF-8\""),
    ] {
        assert_eq!(place(http, &[kind(value)], &body).await.status, status, "{value}");
    }
    server.finish().await;
}

#[tokio::test]
async fn too_long_bodies_are_refused_however_they_are_framed() {
    let server = Server::start().await;
    let http = &server.http;
    let body = "x".repeat(300 * 1_024);
    let length = body.len();
    for path in ["/v1/orders", "/v1/orders/batch", "/v1/pools", "/v1/payments/bank/notifications"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n");
        for (framing, sent) in [
            ("a length", format!("{head}content-length: {length}\r\n\r\n{body}")),
            (
                "one chunk",
                format!("{head}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
            ),
            (
                "many chunks",
                format!(
                    "{head}transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
                    format!("400\r\n{}\r\n", "x".repeat(1_024)).repeat(300)
                ),
            ),
            ("a length alone", format!("{head}content-length: 99999999999\r\n\r\n")),
            ("expect", format!("{head}expect: 100-continue\r\ncontent-length: 99999999999\r\n\r\n")),
        ] {
            let mut raw = Raw::open(http).await;
            // The server need not read it all.
            let _ = raw.send(sent.as_bytes()).await;
            let said = String::from_utf8_lossy(&raw.read_to_close().await).into_owned();
            let answer = crate::support::answer_of(&said);
            assert_problem(&answer, 413, "too_large", &format!("{path} with {framing}"));
        }
    }
    for length in ["18446744073709551616", "-1", "+5", "5, 6", "0x5", ""] {
        let sent = format!(
            "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        let said = Raw::exchange(http, sent.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 4"), "{length}: {said}");
        assert_whole_problem(&crate::support::answer_of(&said), length);
    }
    server.finish().await;
}
