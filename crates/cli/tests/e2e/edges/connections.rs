//! Framing, pipelining, and clients that hang up.

use std::time::Duration;

use serde_json::json;

use crate::support::{Raw, Server, answer_of, assert_whole_problem, place_body};

fn count(said: &str) -> usize {
    said.matches("HTTP/1.1 ").count()
}

#[tokio::test]
async fn what_could_smuggle_a_request_ends_its_connection() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let inner = place_body("spring", "SMUGGLED", "CUP", 1).to_string();
    let json = "content-type: application/json\r\n";
    let smuggled = format!(
        "POST /v1/orders HTTP/1.1\r\nhost: h\r\n{json}content-length: {}\r\n\r\n{inner}",
        inner.len()
    );
    let body = place_body("none", "A-1", "CUP", 1).to_string();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (what, framing, body) in [
        (
            "a length and chunks",
            format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", body.len()),
            &chunk,
        ),
        (
            "chunks and a length",
            format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", chunk.len()),
            &chunk,
        ),
        ("chunks and no length", "transfer-encoding: chunked\r\ncontent-length: 0\r\n".into(), &chunk),
        ("two lengths", format!("content-length: {}\r\ncontent-length: 0\r\n", body.len()), &body),
        ("a list of lengths", format!("content-length: {}, 0\r\n", body.len()), &body),
        ("chunks that are not last", "transfer-encoding: chunked, gzip\r\n".into(), &chunk),
        ("chunks that are none", "transfer-encoding: xchunked\r\n".into(), &chunk),
        ("chunks twice", "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n".into(), &chunk),
        ("a space before the colon", format!("content-length : {}\r\n", body.len()), &body),
        ("a negative length", "content-length: -1\r\n".into(), &body),
        ("a length with a sign", format!("content-length: +{}\r\n", body.len()), &body),
    ] {
        let sent = format!("POST /v1/orders HTTP/1.1\r\nhost: h\r\n{json}{framing}\r\n{body}{smuggled}");
        let said = Raw::exchange(http, sent.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 4"), "{what}: {said}");
        assert_eq!(count(&said), 1, "nothing after it is answered: {what}: {said}");
        assert_whole_problem(&answer_of(&said), what);
    }
    assert_eq!(http.get("/v1/orders").await.body["items"], json!([]));
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    server.finish().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 100, 1).await;
    let mut sent = String::new();
    for n in 0..20 {
        let body = place_body("spring", &format!("A-{n}"), "CUP", 1).to_string();
        let json = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        sent +=
            &format!("POST /v1/orders HTTP/1.1\r\nhost: h\r\nx-request-id: place-{n}\r\n{json}\r\n{body}");
        // A refusal in between does not put the answers out of step.
        sent += &format!(
            "POST /v1/orders HTTP/1.1\r\nhost: h\r\nx-request-id: bad-{n}\r\n{json}\r\n{}",
            "?".repeat(body.len())
        );
        sent += &format!("GET /nowhere HTTP/1.1\r\nhost: h\r\nx-request-id: none-{n}\r\n\r\n");
    }
    sent += "GET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx-request-id: last\r\n\r\n";
    let said = Raw::exchange(http, sent.as_bytes()).await;
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let statuses: Vec<&str> =
        said.match_indices("HTTP/1.1 ").filter_map(|(at, _)| said.get(at + 9..at + 12)).collect();
    let ids: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("x-request-id: ")).collect();
    let expected = (0..20).flat_map(|n| {
        [("201", format!("place-{n}")), ("400", format!("bad-{n}")), ("404", format!("none-{n}"))]
    });
    let expected: Vec<_> = expected.chain([("200", "last".to_owned())]).collect();
    assert_eq!(statuses, expected.iter().map(|(status, _)| *status).collect::<Vec<_>>());
    assert_eq!(ids, expected.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>());
    assert_eq!(http.balances(&pool).await, (80, 20, 0));
    server.finish().await;
}

#[tokio::test]
async fn who_hangs_up_finds_the_order_fully_done_or_not_at_all() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 1_000, 3).await;
    let body = |n: u32| {
        let mut body = place_body("spring", &format!("A-{n}"), "CUP", 1);
        body["lines"] = json!([{"sku": "CUP", "quantity": 1}, {"sku": "CUP", "quantity": 2}]);
        body
    };
    for n in 0..100 {
        let text = body(n).to_string();
        let head = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
        let mut raw = Raw::open(http).await;
        raw.send(format!("{head}content-length: {}\r\n\r\n{text}", text.len()).as_bytes()).await.unwrap();
        // Gone after 0 to 5 ms, or when the answer begins.
        raw.hears_within(Duration::from_micros(u64::from(n) * 50)).await;
    }
    let mut done = 0;
    for n in 0..100 {
        let again = http.post("/v1/orders", &body(n)).await;
        assert!(again.status == 200 || again.status == 201, "{n}: {again:?}");
        assert_eq!(
            (again.text("state").as_str(), again.body["lines"].as_array().unwrap().len()),
            ("held", 2)
        );
        done += u32::from(again.status == 200);
    }
    assert_eq!(http.balances(&pool).await, (700, 300, 0), "{done} were done before they were asked again");
    server.finish().await;
}

#[tokio::test]
async fn who_hangs_up_on_a_notice_or_a_campaign_finds_it_whole() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 1_000, 1).await;
    for n in 0..20_u64 {
        let id = http.place("spring", &format!("A-{n}"), "CUP", 1).await.text("id");
        let notice = json!({"event_id": format!("e{n}"), "payment_id": format!("p{n}"), "order_id": id, "outcome": "succeeded"});
        let put = json!({"name": "n", "policy": {"hold_seconds": 60}});
        for (method, path, body) in [
            ("POST", "/v1/payments/bank/notifications".to_owned(), notice.to_string()),
            ("PUT", format!("/v1/campaigns/c{n}"), put.to_string()),
        ] {
            let mut raw = Raw::open(http).await;
            let head = format!("{method} {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n");
            raw.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
            raw.hears_within(Duration::from_micros(n * 100)).await;
        }
        let again = http.post("/v1/payments/bank/notifications", &notice).await;
        let disposition = again.text("disposition");
        assert!(disposition == "applied" || disposition == "duplicate", "{again:?}");
        assert_eq!(again.body["order"]["state"], "sold");
        let again = http.put(&format!("/v1/campaigns/c{n}"), &put).await;
        assert!(again.status == 200 || again.status == 201, "{again:?}");
    }
    assert_eq!(http.balances(&pool).await, (980, 0, 20));
    server.finish().await;
}
