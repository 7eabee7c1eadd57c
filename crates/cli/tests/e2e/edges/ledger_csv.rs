//! The ledger as CSV, as a spreadsheet would open it.

use serde_json::json;

use crate::support::{Server, place_body};

/// Splits CSV after RFC 4180, without a library that would forgive.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => cell.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            ('\r', false) => {}
            (c, _) => cell.push(c),
        }
    }
    assert!(cell.is_empty() && row.is_empty() && !quoted, "the last line ends");
    rows
}

#[tokio::test]
async fn formulas_are_neutralised_and_numbers_are_not() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "=SKU", 100, 1).await;
    let texts = [
        "=1+1",
        "+49",
        "-5",
        "@x",
        "=HYPERLINK(\"http://x\",\"a\")",
        "a,b",
        "a\"b",
        "\"",
        "<b>",
        "'",
        "plain",
        "0017",
        "a;b",
    ];
    for (n, text) in texts.iter().enumerate() {
        let order = http.post("/v1/orders", &place_body("spring", text, "=SKU", 2)).await;
        assert_eq!(order.status, 201, "{order:?}");
        let cancel = json!({"reason": text});
        let cancelled = http.post(&format!("/v1/orders/{}/cancel", order.text("id")), &cancel).await;
        assert_eq!(cancelled.status, 200);
        let adjust = json!({"adjustment_id": format!("{text}{n}"), "delta": -1, "kind": "adjust", "reason": text, "operator": text});
        assert_eq!(http.post(&format!("/v1/pools/{pool}/adjustments"), &adjust).await.status, 201);
    }
    let path = format!("/v1/ledger?limit=500&pool_id={pool}");
    let csv = http.send_raw("GET", &path, &[("accept", "text/csv")], Vec::new()).await;
    assert_eq!(
        (csv.status, &csv.headers["content-type"]),
        (200, &"text/csv; charset=utf-8".parse().unwrap())
    );
    assert!(csv.headers["vary"].to_str().unwrap().eq_ignore_ascii_case("accept"));
    let rows = cells(std::str::from_utf8(&csv.raw).unwrap());
    let entries = http.get(&path).await;
    let entries = entries.body["items"].as_array().unwrap();
    let (columns, rows) = rows.split_first().unwrap();
    assert_eq!((rows.len(), entries.len()), (1 + 3 * texts.len(), 1 + 3 * texts.len()));
    for (row, entry) in rows.iter().zip(entries) {
        assert_eq!(row.len(), columns.len());
        for (cell, column) in row.iter().zip(columns) {
            let shown = match &entry[column.as_str()] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) if text.starts_with(['=', '+', '-', '@']) => {
                    format!("'{text}")
                }
                serde_json::Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            assert_eq!(cell, &shown, "{column} of {entry}");
            assert!(!cell.starts_with(['=', '+', '@']), "{column}: {cell}");
            assert!(!cell.starts_with('-') || column.starts_with("delta_"), "{column}: {cell}");
        }
    }
    for text in &texts[..4] {
        assert!(rows.iter().any(|row| row.contains(&format!("'{text}"))), "{text}");
    }
    server.finish().await;
}

#[tokio::test]
async fn csv_has_pages_like_json() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    http.pool("spring", "CUP", 100, 5).await;
    let (mut rows, mut path) = (Vec::new(), "/v1/ledger?limit=2".to_owned());
    loop {
        let page = http.send_raw("GET", &path, &[("accept", "text/csv")], Vec::new()).await;
        let mut read = cells(std::str::from_utf8(&page.raw).unwrap());
        assert_eq!(read.remove(0)[0], "pool_id", "each page says its columns");
        rows.extend(read);
        let Some(cursor) = page.headers.get("x-next-cursor") else { break };
        path = format!("/v1/ledger?limit=2&cursor={}", cursor.to_str().unwrap());
    }
    let buckets: Vec<_> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(buckets, ["0", "1", "2", "3", "4"]);
    server.finish().await;
}
