//! Orders that are almost right: whatever is done to a good one, the answer is a good one or a problem.

use serde_json::{Value, json};

use crate::support::{Answer, Server, assert_whole_problem};

const CASES: u64 = 500;

/// A small generator of its own, so that a seed means the same for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// Any JSON text, mostly short.
    fn text(&mut self) -> String {
        const TEXTS: [&str; 44] = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "2",
            "-1",
            "-0",
            "1.0",
            "1e2",
            "1e400",
            "1000000",
            "1000001",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "\"\"",
            "\"CUP\"",
            "\"MUG\"",
            "\"spring\"",
            "\"A-1\"",
            "\" x\"",
            "\"x\\u0000\"",
            "\"\\ud800\"",
            "\"\\ud83d\\ude00\"",
            "\"é\"",
            "\"1\"",
            "\"2026-01-01\"",
            "[]",
            "[[]]",
            "[null]",
            "[1,2]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,\"a\":2}",
            "{\"sku\":\"CUP\",\"quantity\":1}",
            "[{\"sku\":\"CUP\",\"quantity\":1}]",
            "{\"amount_minor\":5,\"currency\":\"EUR\"}",
            "{\"u\":\"\\u0000\"}",
            "nul",
            "\"",
            "{",
            "\u{feff}1",
            "\"\n\"",
        ];
        match self.below(40) {
            0 => format!("\"{}\"", "é".repeat(self.below(300))),
            1 => format!("{}1{}", "[".repeat(60), "]".repeat(60)),
            2 => format!("[{}]", vec!["1"; self.below(1_500)].join(",")),
            _ => (*self.pick(&TEXTS)).to_owned(),
        }
    }
}

/// A JSON value whose objects may repeat keys, and whose leaves may be any text.
#[derive(Clone)]
enum Node {
    Leaf(String),
    List(Vec<Node>),
    Fields(Vec<(String, Node)>),
}

impl Node {
    fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Object(fields) => {
                Self::Fields(fields.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Self::Leaf(value.to_string())
            }
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::write).collect::<Vec<_>>().join(","))
            }
            Self::Fields(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{}:{}", json!(name), value.write()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Changes something, here or further down.
    fn mutate(&mut self, random: &mut Random) {
        match self {
            Self::Fields(fields) if !fields.is_empty() => {
                let at = random.below(fields.len());
                match random.below(8) {
                    0 => drop(fields.remove(at)),
                    1 => fields.push(fields[at].clone()),
                    2 => fields[at].1 = Self::Leaf(random.text()),
                    3 => {
                        fields[at].0 =
                            (*random.pick(&["", "Sku", "nonsense", "quantity", "metadata", "lines"])).into()
                    }
                    4 => fields.swap(0, at),
                    5 => fields.push(("extra".into(), Self::Leaf(random.text()))),
                    _ => fields[at].1.mutate(random),
                }
            }
            Self::List(items) if !items.is_empty() => {
                let at = random.below(items.len());
                match random.below(5) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    2 => items[at] = Self::Leaf(random.text()),
                    _ => items[at].mutate(random),
                }
            }
            Self::Leaf(_) | Self::List(_) | Self::Fields(_) => *self = Self::Leaf(random.text()),
        }
    }
}

fn good(order_no: &str) -> Value {
    json!({
        "campaign_id": "spring", "order_no": order_no, "account": "ann",
        "lines": [
            {"sku": "CUP", "quantity": 1, "location": "main"},
            {"sku": "MUG", "quantity": 2},
        ],
        "hold_seconds": 600, "amount_due": {"amount_minor": 100, "currency": "EUR"}, "limit_keys": {},
        "metadata": {"a": [1, {"b": null}]},
    })
}

fn assert_sensible(answer: &Answer, body: &str) {
    match answer.status {
        200 | 201 => {
            assert_eq!(answer.body["state"], "held", "{body}");
            assert!(answer.body["id"].is_string(), "{body}");
        }
        400..500 => assert_whole_problem(answer, body),
        status => panic!("{status} for {body}: {answer:?}"),
    }
}

#[tokio::test]
async fn whatever_is_done_to_an_order_it_is_taken_or_refused() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    for sku in ["CUP", "MUG"] {
        http.pool("spring", sku, 2_000_000, 2).await;
    }
    let sent = [("content-type", "application/json")];
    let (mut taken, mut refused) = (0, 0);
    for case in 0..CASES {
        let mut random = Random(case);
        let mut order = Node::of(&good(&format!("A-{case}")));
        for _ in 0..=random.below(3) {
            order.mutate(&mut random);
        }
        let body = order.write();
        let answer = http.send_raw("POST", "/v1/orders", &sent, body.clone().into()).await;
        assert_sensible(&answer, &body);
        if answer.status < 300 {
            taken += 1;
            // What was taken is taken again, by the same key.
            let again = http.send_raw("POST", "/v1/orders", &sent, body.clone().into()).await;
            assert_eq!((again.status, again.text("id")), (200, answer.text("id")), "{body}");
        } else {
            refused += 1;
        }
        // The same in a batch spoils at most the batch.
        let neighbour = good(&format!("B-{case}"));
        let batch = format!("{{\"orders\":[{body},{neighbour}]}}");
        let answer = http.send_raw("POST", "/v1/orders/batch", &sent, batch.clone().into()).await;
        if answer.status == 207 {
            let results = answer.body["results"].as_array().unwrap();
            assert_eq!((results.len(), &results[1]["status"]), (2, &json!(201)), "{batch}");
            let status = results[0]["status"].as_u64().unwrap();
            assert!(status == 200 || status == 201 || (400..500).contains(&status), "{batch}: {answer:?}");
        } else {
            assert_sensible(&answer, &batch);
        }
    }
    assert!(taken > 50 && refused > 50, "{taken} taken, {refused} refused: the generator is lopsided");
    server.finish().await;
}

#[tokio::test]
async fn whatever_is_done_to_its_bytes_an_order_is_taken_or_refused() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    for sku in ["CUP", "MUG"] {
        http.pool("spring", sku, 2_000_000, 1).await;
    }
    let sent = [("content-type", "application/json")];
    for case in 0..CASES {
        let mut random = Random(case ^ 0xbeef);
        let mut bytes = good(&format!("A-{case}")).to_string().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, *random.pick(b"\0\"\\{}[]:,0-.e\xff\xc3 \n")),
                2 => bytes[at] ^= 1 << random.below(8),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let body = String::from_utf8_lossy(&bytes).into_owned();
        assert_sensible(&http.send_raw("POST", "/v1/orders", &sent, bytes).await, &body);
    }
    server.finish().await;
}
