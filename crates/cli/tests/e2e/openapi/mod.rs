//! The server does what its own document says: requests made from the document, and every answer held
//! against it.

mod generate;
mod schema;
mod walk;

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Http, Server, Start};
use generate::Generator;
use schema::Document;

/// Requests of each operation.
const REQUESTS: usize = 40;
/// Where the requests come from; another number in this variable makes others.
const SEED: u64 = 0x5eed;
const SEED_VARIABLE: &str = "HOLDFAST_OPENAPI_SEED";

/// An operation of the document.
#[derive(Debug, Clone)]
struct Operation {
    method: String,
    path: String,
    content: Value,
}

impl Operation {
    fn id(&self) -> &str {
        self.content["operationId"].as_str().unwrap()
    }

    fn parameters(&self, place: &str) -> Vec<Value> {
        let all = self.content["parameters"].as_array().into_iter().flatten();
        all.filter(|parameter| parameter["in"] == place).cloned().collect()
    }

    /// Whether an answer may last as long as its order is open.
    fn streams(&self) -> bool {
        self.content["responses"]["200"]["content"].get("text/event-stream").is_some()
    }
}

impl Document {
    async fn of(http: &Http) -> Self {
        let answer = http.get("/openapi.json").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        Self(answer.body)
    }

    fn operations(&self) -> Vec<Operation> {
        let mut found = Vec::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for (method, content) in item.as_object().unwrap() {
                let (path, method) = (path.clone(), method.to_uppercase());
                found.push(Operation { method, path, content: content.clone() });
            }
        }
        found
    }

    fn operation(&self, id: &str) -> Operation {
        let found = self.operations().into_iter().find(|operation| operation.id() == id);
        found.unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// Asserts that an answer is one that the document lists for the operation.
    #[track_caller]
    fn assert_listed(&self, operation: &Operation, answer: &Answer, sent: &str) {
        let case = || {
            format!("{} {sent}: {} {}", operation.id(), answer.status, String::from_utf8_lossy(&answer.raw))
        };
        assert!(answer.status < 500, "{}", case());
        let response = &operation.content["responses"][answer.status.to_string()];
        assert!(response.is_object(), "a status that is not listed: {}", case());
        let response = self.resolve(response);
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            if self.resolve(header)["required"] == true {
                assert!(answer.headers.contains_key(name.as_str()), "no {name}: {}", case());
            }
        }
        let media = answer.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
        let media = media.split(';').next().unwrap();
        let Some(contents) = response["content"].as_object() else {
            assert!(answer.raw.is_empty(), "a body that is not listed: {}", case());
            return;
        };
        let content = contents.get(media).unwrap_or_else(|| panic!("{media} is not listed: {}", case()));
        if media.ends_with("json") {
            let checked = self.check(&content["schema"], &answer.body);
            assert_eq!(checked, Ok(()), "{}", case());
        }
    }
}

/// A request made for an operation.
struct Request {
    path: String,
    body: Option<Value>,
    /// Whether the schemas forbid it.
    is_wrong: bool,
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Generator<'_> {
    fn request(&mut self, operation: &Operation, spoil: bool) -> Request {
        let mut path = operation.path.clone();
        for parameter in operation.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let value = self.valid(&parameter["schema"], &thing(operation, name));
            path = path.replace(&format!("{{{name}}}"), &encoded(&shown(&value)));
        }
        let body = operation.content["requestBody"]["content"]["application/json"]["schema"].clone();
        let mut is_wrong = false;
        let query = operation.parameters("query");
        let spoil_query = spoil && (body.is_null() || self.rng.u8(..5) == 0);
        let mut pairs = Vec::new();
        for parameter in &query {
            let name = parameter["name"].as_str().unwrap();
            // A cursor is opaque, so one can only be found, not made.
            if parameter["required"] == true || (name != "cursor" && self.rng.u8(..3) == 0) {
                let value = self.valid(&parameter["schema"], name);
                pairs.push(format!("{name}={}", encoded(&shown(&value))));
            }
        }
        if spoil_query && operation.path.starts_with("/v1/") {
            is_wrong = true;
            match self.rng.u8(..4) {
                0 if query.iter().any(|parameter| parameter["name"] == "limit") => {
                    pairs.retain(|pair| !pair.starts_with("limit="));
                    pairs.push(["limit=0", "limit=501", "limit=x", "limit=-1"][self.rng.usize(..4)].into());
                }
                1 if !pairs.is_empty() => pairs.push(pairs[0].clone()),
                2 => pairs.push("surplus=%ff".into()),
                _ => pairs.push("surplus=1".into()),
            }
        }
        if !pairs.is_empty() {
            path = format!("{path}?{}", pairs.join("&"));
        }
        let body = (!body.is_null()).then(|| {
            let made = if spoil { self.spoiled(&body, "") } else { self.valid(&body, "") };
            is_wrong |= self.document.check(&body, &made).is_err();
            made
        });
        Request { path, body, is_wrong }
    }
}

/// What a parameter of the path names.
fn thing(operation: &Operation, name: &str) -> String {
    let of = |prefix: &str| operation.path.starts_with(prefix);
    match name {
        "id" if operation.streams() => "ended_order_id",
        "id" if of("/v1/orders") => "order_id",
        "id" if of("/v1/pools") => "pool_id",
        "id" if of("/v1/campaigns") => "campaign_id",
        "id" if of("/v1/keys") => "key_id",
        "sku" if of("/v1/bundles") => "bundle_sku",
        "id" if of("/v1/reconciliations") => "reconciliation_id",
        "id" if of("/v1/approvals") => "approval_id",
        "id" if of("/v1/adjustments") => "waiting_adjustment_id",
        // Its secrets are its own.
        "name" if operation.path.contains("/secrets") => "hook_name",
        "id" if of("/v1/sinks") => "secret_id",
        "name" if operation.id() == "test_sink" => "hook_name",
        "name" if of("/v1/sinks") => "sink_name",
        "code" => "code",
        name => name,
    }
    .to_owned()
}

/// Objects that exist, in several states.
async fn furnish(http: &Http) -> generate::Known {
    let mut known: generate::Known = BTreeMap::new();
    let mut know = |name: &'static str, value: Value| known.entry(name).or_default().push(value);
    for (campaign, policy) in
        [("c", json!({})), ("limited", json!({"account_limit": 3, "capture": "immediate"}))]
    {
        http.campaign(campaign, policy).await;
        know("campaign_id", json!(campaign));
        for (sku, supply) in [("s", 100_000), ("rare", 2)] {
            know("pool_id", json!(http.pool(campaign, sku, supply, 2).await));
            know("sku", json!(sku));
        }
        let made_of = json!({"components": [{"sku": "s", "quantity": 2}]});
        assert_eq!(http.put(&format!("/v1/bundles/{campaign}/set"), &made_of).await.status, 201);
    }
    // Many: what is decided at random on one leaves others as they are.
    for index in 0..32 {
        let order_no = format!("o-{index}");
        let id = http.place("c", &order_no, "s", 3).await.text("id");
        know("order_no", json!(order_no));
        know("account", json!(format!("account-o-{index}")));
        know("order_id", json!(id));
        if index % 2 == 1 {
            assert_eq!(http.pay(&id, &format!("e-{index}")).await.status, 200);
            know("ended_order_id", json!(id));
        }
        if index % 4 == 2 {
            assert_eq!(http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await.status, 200);
            know("ended_order_id", json!(id));
        }
    }
    let key = http.post("/v1/keys", &json!({"name": "known", "role": "read"})).await;
    assert_eq!(key.status, 201, "{key:?}");
    know("key_id", key.body["id"].clone());
    http.campaign("asking", json!({"approval_threshold": 1})).await;
    let pool = http.pool("asking", "s", 100, 1).await;
    for index in 0..40 {
        let id = format!("w-{index}");
        let adjust = json!({"adjustment_id": id, "delta": 2, "kind": "inbound", "reason": "r", "operator": "who asks"});
        let asked = http.post(&format!("/v1/pools/{pool}/adjustments"), &adjust).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        know("approval_id", json!(format!("adjustment:{id}")));
        know("waiting_adjustment_id", json!(id));
    }
    let run = http.post("/v1/reconciliations", &json!({})).await;
    know("reconciliation_id", run.body["id"].clone());
    let hook = json!({"kind": "webhook", "url": "http://127.0.0.1:9/"});
    assert_eq!(http.put("/v1/sinks/hook", &hook).await.status, 201);
    let hook = http.post("/v1/sinks/hook/secrets", &json!({})).await;
    for secret in hook.body["secrets"].as_array().unwrap() {
        know("secret_id", secret["id"].clone());
    }
    know("hook_name", json!("hook"));
    for index in 0..8 {
        let name = format!("feed-{index}");
        let page = http.get(&format!("/v1/events?consumer={name}&limit=1")).await;
        know("position", page.body["position"].clone());
        know("consumer", json!(name));
        know("sink_name", json!(name));
    }
    know("bundle_sku", json!("set"));
    know("location", json!("main"));
    know("line", json!(1));
    know("quantity", json!(1));
    know("code", json!("sold_out"));
    know("provider", json!("bank"));
    known
}

/// Sends a request in the form that its operation takes.
async fn send(http: &Http, operation: &Operation, request: &Request) -> Option<Answer> {
    if operation.content["requestBody"]["content"].get("text/csv").is_some() {
        let (csv, file) = ([("content-type", "text/csv")], b"sku,quantity\nFILE,1\n".to_vec());
        return Some(http.send_raw(&operation.method, &request.path, &csv, file).await);
    }
    http.try_send(&operation.method, &request.path, request.body.as_ref()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_listed_in_the_document() {
    let arguments = ["--auth", "off", "--sink-private-addresses", "allow"].map(String::from).to_vec();
    let server = Server::start_with(Start { arguments, ..Start::default() }).await;
    let http = &server.http;
    let document = Document::of(http).await;
    let known = furnish(http).await;
    let seed = std::env::var(SEED_VARIABLE).map_or(SEED, |text| text.parse().unwrap());
    let mut generator = Generator { document: &document, rng: Rng::with_seed(seed), known };
    let mut statuses: BTreeMap<String, BTreeMap<u16, usize>> = BTreeMap::new();
    // What ends things comes last, so that the others find them alive; a sweep finds frozen pools no good.
    let ends = [
        "sweep_pool",
        "retire_pool",
        "cancel_order",
        "refund_order",
        "close_campaign",
        "import_stock",
        "cancel_orders",
        "list_approvals",
        "get_approval",
        "approve",
        "reject",
        "approve_adjustment",
        "reject_adjustment",
        "delete_sink",
    ];
    let last = |id: &str| ends.iter().position(|end| *end == id);
    let mut operations = document.operations();
    operations.sort_by_key(|operation| last(operation.id()));
    for operation in &operations {
        // What belongs to one of its actions and to no other seldom comes together by chance.
        let requests = if operation.id() == "resolve_order" { 5 * REQUESTS } else { REQUESTS };
        for index in 0..requests {
            let request = generator.request(operation, index % 5 >= 3);
            let answer = send(http, operation, &request).await;
            let answer = answer.unwrap_or_else(|| panic!("no answer: {} {}", operation.method, request.path));
            let sent = format!("{} {:?}", request.path, request.body.map(|body| body.to_string()));
            document.assert_listed(operation, &answer, &sent);
            // In a batch each order is judged on its own.
            if request.is_wrong && operation.id() != "place_batch" {
                assert!(answer.status >= 400, "taken: {} {sent}: {answer:?}", operation.id());
            }
            *statuses.entry(operation.id().to_owned()).or_default().entry(answer.status).or_default() += 1;
        }
    }
    // A case cannot be opened from outside.
    statuses.remove("resolve_case");
    statuses.retain(|_, statuses| !statuses.keys().any(|status| *status < 300));
    assert!(statuses.is_empty(), "no request of these was good: {statuses:?}");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_refuses_other_media_types() {
    let server = Server::start().await;
    let document = Document::of(&server.http).await;
    for operation in document.operations() {
        let path = operation.path.replace("{code}", "sold_out");
        let path = path.replace("{id}", "01937a5e-0000-7000-8000-0000000000ff").replace("{name}", "erp");
        let strange = [("accept", "image/png"), ("content-type", "application/json")];
        let answer = server.http.send_raw(&operation.method, &path, &strange, b"{}".to_vec()).await;
        assert_eq!((answer.status, answer.code()), (406, "not_acceptable"), "{path}");
        document.assert_listed(&operation, &answer, "Accept: image/png");
        let packed = [("content-encoding", "gzip"), ("content-type", "application/json")];
        let answer = server.http.send_raw(&operation.method, &path, &packed, b"{}".to_vec()).await;
        assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type"), "{path}");
        document.assert_listed(&operation, &answer, "Content-Encoding: gzip");
    }
    server.finish().await;
}

/// The fields of an object, sorted, for a walk's own asserts.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect()
}
