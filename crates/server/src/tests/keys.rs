//! Keys, roles and scopes: every cell of the table, over the whole router.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Response};
use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;
use holdfast_engine::Engine;
use holdfast_store::{CreateKey, RevokeKey, Role, Scope};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Answer, ask, config, engine, request};
use crate::keyring::NewKey;
use crate::roles::{self, Access, NOTIFIERS, ROUTES, Reach, Route};
use crate::{Auth, Config, Limits, router};

/// A server with two campaigns, each with a pool and an order.
struct Fixture {
    engine: Engine,
    router: Router,
    admin: String,
    /// By campaign: its pool and its order.
    things: BTreeMap<&'static str, (String, String)>,
}

impl Fixture {
    async fn new() -> Self {
        let engine = engine();
        let config = Config { constant_answer: true, ..config(Auth::Keys, Limits::default()) };
        let router = router(engine.clone(), &config);
        let admin = key(&engine, Role::Admin, Scope::All, None).await;
        let mut this = Self { engine, router, admin: admin.text().to_owned(), things: BTreeMap::new() };
        for campaign in ["mine", "other"] {
            let put = json!({"name": "n", "policy": {"approval_threshold": 500}});
            this.send(Method::PUT, &format!("/v1/campaigns/{campaign}"), &put).await;
            let signed = json!({"reason": "go", "operator": "olga"});
            this.send(Method::POST, &format!("/v1/campaigns/{campaign}/open"), &signed).await;
            let body = json!({"campaign_id": campaign, "sku": "s", "supply": 1_000});
            let pool = this.send(Method::POST, "/v1/pools", &body).await;
            let order = this.send(Method::POST, "/v1/orders", &order(campaign, "first")).await;
            let id = |answer: &Answer| answer.json["id"].as_str().expect("an id").to_owned();
            let adjust = json!({"adjustment_id": format!("wait-{campaign}"), "delta": 600, "kind": "inbound",
                "reason": "r", "operator": "olga"});
            let asked =
                this.send(Method::POST, &format!("/v1/pools/{}/adjustments", id(&pool)), &adjust).await;
            assert_eq!(asked.status, 202, "{}", asked.text);
            this.things.insert(campaign, (id(&pool), id(&order)));
        }
        this
    }

    /// As the administrator.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.send_as(Some(&self.admin), method, path, Some(body)).await
    }

    async fn send_as(&self, key: Option<&str>, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers = vec![];
        headers.extend(body.map(|_| ("content-type", "application/json")));
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        ask(&self.router, request(method, path, &headers, body)).await
    }

    async fn get_as(&self, key: &NewKey, path: &str) -> Answer {
        self.send_as(Some(key.text()), Method::GET, path, None).await
    }

    async fn key(&self, role: Role, scope: Scope) -> NewKey {
        key(&self.engine, role, scope, None).await
    }
}

/// A key that the node has not read yet: it must not wait for its copy to grow old.
pub(super) async fn key(engine: &Engine, role: Role, scope: Scope, expires_at: Option<Timestamp>) -> NewKey {
    let new = NewKey::random().expect("randomness");
    let create = CreateKey {
        id: new.id.clone(),
        name: role.as_str().to_owned(),
        role,
        scope,
        secret_sha256: new.secret_sha256,
        expires_at,
        via: None,
    };
    engine.create_key(create).await.expect("store").expect("made");
    new
}

fn only(campaign: &str) -> Scope {
    let campaign = CampaignId::new(campaign).expect("an id");
    Scope::Only(BTreeSet::from([campaign]).into())
}

fn order(campaign: &str, order_no: &str) -> Value {
    json!({"campaign_id": campaign, "order_no": order_no, "account": "a", "lines": [{"sku": "s", "quantity": 1}]})
}

/// A request of a route that concerns a campaign, and its body.
fn sample(route: &Route, fixture: &Fixture, campaign: &str, number: usize) -> (String, Option<Value>) {
    let (pool, order_id) = &fixture.things[campaign];
    let id = match route.reach {
        Reach::Campaign => campaign,
        Reach::Pool => pool,
        Reach::Order => order_id,
        Reach::Named if route.path.starts_with("/v1/approvals/") => &format!("adjustment:wait-{campaign}"),
        Reach::Named if route.path.starts_with("/v1/adjustments/") => &format!("wait-{campaign}"),
        Reach::Nothing | Reach::Named | Reach::Everything => "aaaaaaaaaaaaaaaa",
    };
    let named = [("{id}", id), ("{campaign_id}", campaign), ("{code}", "sold_out"), ("{provider}", "plain")];
    let path = named
        .into_iter()
        .fold(route.path.replace("{name}", "erp"), |path, (name, value)| path.replace(name, value));
    let signed = || json!({"reason": "r", "operator": "o"});
    let number = number.to_string();
    let (query, body) = match (route.method.as_str(), route.path) {
        ("GET", "/v1/orders" | "/v1/pools" | "/v1/exports/stock") => {
            (format!("?campaign_id={campaign}"), None)
        }
        ("GET", "/v1/ledger" | "/v1/events") => (format!("?pool_id={pool}"), None),
        ("GET" | "DELETE", _) => (String::new(), None),
        ("PUT", _) => (String::new(), Some(json!({"name": "n"}))),
        ("PATCH", "/v1/pools/{id}") => (String::new(), Some(json!({"routing": "random"}))),
        (_, "/v1/transfers") => {
            let end = |bucket: u32| json!({"pool_id": pool, "bucket": bucket});
            (
                String::new(),
                Some(
                    json!({"transfer_id": number, "from": end(0), "to": end(1), "quantity": 1, "reason": "r", "operator": "o"}),
                ),
            )
        }
        (_, "/v1/pools") => {
            (String::new(), Some(json!({"campaign_id": campaign, "sku": "s", "supply": 1_000})))
        }
        (_, "/v1/pools/{id}/adjustments") => (
            String::new(),
            Some(
                json!({"adjustment_id": number, "delta": 1, "kind": "adjust", "reason": "r", "operator": "o"}),
            ),
        ),
        (_, "/v1/orders" | "/v1/bench/constant") => (String::new(), Some(order(campaign, &number))),
        (_, "/v1/orders/cancellations") => (
            String::new(),
            Some(json!({"campaign_id": campaign, "account": "x", "reason": "r", "operator": "o"})),
        ),
        (_, "/v1/orders/batch") => (String::new(), Some(json!({"orders": [order(campaign, &number)]}))),
        (_, "/v1/orders/{id}/cancel") => (String::new(), Some(json!({}))),
        (_, "/v1/orders/{id}/payment-attempts") => {
            (String::new(), Some(json!({"attempt_id": number, "provider": "p"})))
        }
        (_, "/v1/orders/{id}/refunds") => {
            let line = json!({"line": 1, "quantity": 1});
            (String::new(), Some(json!({"refund_id": number, "reason": "r", "lines": [line]})))
        }
        (_, "/v1/payments/{provider}/notifications") => (
            String::new(),
            Some(json!({"event_id": number, "payment_id": "p", "order_id": order_id, "outcome": "failed"})),
        ),
        (_, "/v1/imports/stock") => (format!("?campaign_id={campaign}"), Some(json!({}))),
        (_, "/v1/keys") => (String::new(), Some(json!({"name": "n", "role": "read"}))),
        (_, "/v1/cases/{id}/resolve") => {
            (String::new(), Some(json!({"action": "acknowledge", "reason": "r", "operator": "o"})))
        }
        (_, _) => (String::new(), Some(signed())),
    };
    (path + &query, body)
}

/// The status, and for a batch that of its one order. Events are not waited for.
async fn status_of(
    fixture: &Fixture,
    key: Option<&str>,
    route: &Route,
    sample: (String, Option<Value>),
) -> u16 {
    let (path, body) = sample;
    if !route.path.ends_with("/events") {
        let answer = fixture.send_as(key, route.method.clone(), &path, body.as_ref()).await;
        assert_ne!(answer.json["detail"], "there is no such route", "{path}");
        let alone = answer.json["results"][0]["status"].as_u64();
        return alone.map_or(answer.status, |status| u16::try_from(status).expect("a status"));
    }
    let bearer = key.map(|key| format!("Bearer {key}"));
    let headers: Vec<_> = bearer.as_deref().map(|bearer| ("authorization", bearer)).into_iter().collect();
    let request = request(Method::GET, &path, &headers, Body::empty());
    let response: Response<Body> = fixture.router.clone().oneshot(request).await.expect("an answer");
    response.status().as_u16()
}

/// What the table says of a route, a key and a campaign.
fn expected(route: &Route, role: Role, scope: &Scope, campaign: &str) -> Option<u16> {
    let allowed = match route.access {
        Access::Public => return None,
        Access::Signed => NOTIFIERS,
        Access::Roles(roles) => roles,
    };
    let names_none = matches!(route.path, "/v1/campaigns" | "/v1/audit" | "/v1/approvals");
    let in_scope = match route.reach {
        Reach::Nothing => true,
        Reach::Named if names_none => true,
        Reach::Everything => *scope == Scope::All,
        Reach::Campaign | Reach::Pool | Reach::Order | Reach::Named => {
            scope.allows(&CampaignId::new(campaign).expect("an id"))
        }
    };
    (!allowed.contains(&role) || !in_scope).then_some(403)
}

#[tokio::test]
async fn every_cell_of_the_table_holds() {
    let fixture = Fixture::new().await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        for scope in [Scope::All, only("mine")] {
            keys.push((*role, scope.clone(), fixture.key(*role, scope).await));
        }
    }
    let revoked = fixture.key(Role::Admin, Scope::All).await;
    let revoke = RevokeKey { id: revoked.id.clone(), via: None };
    fixture.engine.revoke_key(revoke).await.expect("store").expect("revoked");
    let expired = key(&fixture.engine, Role::Admin, Scope::All, Some(Timestamp(1))).await;
    let wrong = format!("{}{}", &fixture.admin[..63], if fixture.admin.ends_with('A') { 'B' } else { 'A' });
    // What was made behind the node's back is known after one change through its front.
    fixture.send(Method::POST, "/v1/keys", &json!({"name": "n", "role": "read"})).await;
    let mut number = 0;
    for route in ROUTES {
        for campaign in ["mine", "other"] {
            for (role, scope, key) in &keys {
                number += 1;
                let sample = sample(route, &fixture, campaign, number);
                let cell = format!("{} {} by {role:?} of {scope:?}", route.method, sample.0);
                let status = status_of(&fixture, Some(key.text()), route, sample).await;
                match expected(route, *role, scope, campaign) {
                    Some(refused) => assert_eq!(status, refused, "{cell}"),
                    None => assert!(!matches!(status, 401 | 403 | 405 | 500..), "{cell}: {status}"),
                }
            }
            let strangers = [
                ("no key", None),
                ("revoked", Some(revoked.text())),
                ("expired", Some(expired.text())),
                ("a wrong secret", Some(wrong.as_str())),
                ("no form of a key", Some("hfk_x")),
            ];
            for (who, key) in strangers {
                number += 1;
                let sample = sample(route, &fixture, campaign, number);
                let cell = format!("{} {} by {who}", route.method, sample.0);
                let status = status_of(&fixture, key, route, sample).await;
                let is_public = route.access == Access::Public;
                assert_eq!(status == 401, !is_public, "{cell}: {status}");
            }
        }
    }
}

/// The other test asks whether the table is kept; this one, whether it says what was promised.
#[test]
fn the_table_says_what_the_roles_promise() {
    const BUYING: [(&str, &str); 8] = [
        ("GET", "/v1/orders"),
        ("GET", "/v1/orders/{id}"),
        ("GET", "/v1/orders/{id}/events"),
        ("POST", "/v1/orders"),
        ("POST", "/v1/orders/batch"),
        ("POST", "/v1/orders/{id}/cancel"),
        ("POST", "/v1/orders/{id}/payment-attempts"),
        ("POST", "/v1/bench/constant"),
    ];
    const OPEN: [&str; 5] = ["/livez", "/readyz", "/openapi.json", "/docs", "/problems/{code}"];
    for route in ROUTES {
        let (method, path) = (route.method.as_str(), route.path);
        let is_notice = path.starts_with("/v1/payments/");
        let allowed = match route.access {
            Access::Public => {
                assert!(OPEN.contains(&path), "{path} is open to anybody");
                continue;
            }
            Access::Signed => {
                assert!(is_notice, "{path} is signed");
                NOTIFIERS
            }
            Access::Roles(roles) => roles,
        };
        let changes = matches!(method, "PUT" | "DELETE") || path.ends_with("/secrets");
        let is_of_admins = path.starts_with("/v1/keys") || path.starts_with("/v1/sinks") && changes;
        for role in Role::ALL {
            let promised = match role {
                Role::Buyer => BUYING.contains(&(method, path)),
                Role::Payments => is_notice,
                Role::Read if method == "GET" => !is_of_admins && path != "/v1/audit",
                Role::Read => path == "/v1/events/ack",
                Role::Operator => !is_of_admins && !is_notice,
                Role::Admin => true,
            };
            assert_eq!(allowed.contains(role), promised, "{method} {path} by {role:?}");
        }
    }
}

#[test]
fn every_route_is_in_the_table_and_the_table_has_no_other() {
    let source = include_str!("../router.rs");
    let mut routed = BTreeSet::new();
    for part in source.split(".route(").skip(1) {
        let (path, handlers) = part.trim_start().trim_start_matches('"').split_once('"').expect("a path");
        let handlers = handlers.split([';', '}']).next().expect("handlers");
        for (word, method) in [
            ("get(", Method::GET),
            ("post(", Method::POST),
            ("put(", Method::PUT),
            ("delete(", Method::DELETE),
            ("patch(", Method::PATCH),
        ] {
            let is_call = |at: usize| !handlers[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if handlers.match_indices(word).any(|(at, _)| is_call(at)) {
                routed.insert((path.to_owned(), method.to_string()));
            }
        }
    }
    let table: BTreeSet<_> =
        ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_string())).collect();
    assert_eq!(table.len(), ROUTES.len(), "a route stands twice");
    assert_eq!(routed, table);
}

#[tokio::test]
async fn what_is_not_in_the_table_is_405_with_what_is() {
    let fixture = Fixture::new().await;
    let answer = fixture.send_as(None, Method::PATCH, "/v1/orders", Some(&json!({}))).await;
    assert_eq!((answer.status, answer.code()), (405, "method_not_allowed"));
    assert_eq!(answer.header("allow"), Some("POST,GET,HEAD"));
    assert!(roles::find(&Method::HEAD, "/v1/orders").is_some());
    assert_eq!(fixture.send_as(None, Method::HEAD, "/v1/orders", None).await.status, 401);
    assert_eq!(fixture.send_as(None, Method::HEAD, "/livez", None).await.status, 200);
}

#[tokio::test]
async fn lists_show_a_scoped_key_its_own_campaigns_only() {
    let fixture = Fixture::new().await;
    let reader = fixture.key(Role::Operator, only("mine")).await;
    fixture.send(Method::POST, "/v1/keys", &json!({"name": "n", "role": "read"})).await;
    let (pool, order) = &fixture.things["other"];
    for (path, field) in [
        ("/v1/campaigns", "id"),
        ("/v1/pools", "campaign_id"),
        ("/v1/orders", "campaign_id"),
        ("/v1/audit", "campaign_id"),
    ] {
        let all = fixture.send_as(Some(&fixture.admin), Method::GET, path, None).await;
        let shown = fixture.get_as(&reader, path).await;
        let campaigns = |answer: &Answer| {
            let items = answer.json["items"].as_array().expect("items");
            items.iter().map(|item| item[field].as_str().unwrap_or("-").to_owned()).collect::<BTreeSet<_>>()
        };
        assert!(campaigns(&all).contains("other"), "{path}");
        assert_eq!(campaigns(&shown), BTreeSet::from(["mine".to_owned()]), "{path}");
    }
    let ledger = fixture.get_as(&reader, "/v1/ledger").await;
    let entries = ledger.json["items"].as_array().expect("items");
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry["pool_id"] != pool.as_str()));
    for path in [
        format!("/v1/orders?pool_id={pool}"),
        "/v1/orders?campaign_id=other&order_no=first".to_owned(),
        format!("/v1/ledger?order_id={order}"),
        format!("/v1/ledger?pool_id={pool}"),
        "/v1/pools?campaign_id=other".to_owned(),
    ] {
        let answer = fixture.get_as(&reader, &path).await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{path}");
    }
    // The name that a notice uses for its order makes no difference.
    let payer = fixture.key(Role::Payments, only("mine")).await;
    fixture.send(Method::POST, "/v1/keys", &json!({"name": "n", "role": "read"})).await;
    for (campaign, status) in [("mine", 200), ("other", 403)] {
        let notice = json!({"event_id": campaign, "payment_id": "p", "campaign_id": campaign,
            "order_no": "first", "outcome": "failed"});
        let path = "/v1/payments/plain/notifications";
        let answer = fixture.send_as(Some(payer.text()), Method::POST, path, Some(&notice)).await;
        assert_eq!(answer.status, status, "{campaign}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_key_is_shown_once_and_opens_until_it_is_revoked() {
    let fixture = Fixture::new().await;
    let ask =
        json!({"name": "shop", "role": "buyer", "campaigns": ["mine"], "expires_at": "2999-01-01T00:00:00Z"});
    let made = fixture.send(Method::POST, "/v1/keys", &ask).await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")), "{}", made.text);
    let view: holdfast_wire::CreatedKeyView = serde_json::from_str(&made.text).expect("a key");
    assert!(!format!("{view:?}").contains(&view.key), "not for logs");
    assert_eq!((view.view.role.as_ref(), view.view.state.as_ref()), ("buyer", "live"));
    let (id, key) = (view.view.id, view.key);
    assert_eq!(key.get(4..20), Some(id.as_str()));
    let place = async |order_no: &str| {
        fixture.send_as(Some(&key), Method::POST, "/v1/orders", Some(&order("mine", order_no))).await
    };
    assert_eq!(place("k-1").await.status, 201, "known at once");
    let list = fixture.send_as(Some(&fixture.admin), Method::GET, "/v1/keys?limit=1", None).await;
    let next = list.json["next_cursor"].as_str().expect("more").to_owned();
    let rest =
        fixture.send_as(Some(&fixture.admin), Method::GET, &format!("/v1/keys?cursor={next}"), None).await;
    let both = list.text + &rest.text;
    assert!(both.contains(&id) && !both.contains(&key[21..]) && !both.contains("sha256"), "{both}");
    let path = format!("/v1/keys/{id}");
    for _ in 0..2 {
        let revoked = fixture.send_as(Some(&fixture.admin), Method::DELETE, &path, None).await;
        assert_eq!((revoked.status, &revoked.json["state"]), (200, &json!("revoked")), "{}", revoked.text);
        assert_eq!(place("k-2").await.status, 401, "forgotten at once");
    }
    let admin_id = &fixture.admin[4..20];
    let last =
        fixture.send_as(Some(&fixture.admin), Method::DELETE, &format!("/v1/keys/{admin_id}"), None).await;
    assert_eq!((last.status, last.code()), (409, "conflict"), "{}", last.text);
    let unknown =
        fixture.send_as(Some(&fixture.admin), Method::DELETE, "/v1/keys/aaaaaaaaaaaaaaaa", None).await;
    assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
    let odd = fixture.send_as(Some(&fixture.admin), Method::DELETE, "/v1/keys/A", None).await;
    assert_eq!(odd.status, 404);
}

#[tokio::test]
async fn what_another_node_revokes_opens_nothing_after_a_second() {
    let fixture = Fixture::new().await;
    let reader = fixture.key(Role::Read, Scope::All).await;
    fixture.send(Method::POST, "/v1/keys", &json!({"name": "n", "role": "read"})).await;
    assert_eq!(fixture.get_as(&reader, "/v1/pools").await.status, 200);
    // Not through this node's front: it must find out by itself.
    let revoke = RevokeKey { id: reader.id.clone(), via: None };
    fixture.engine.revoke_key(revoke).await.expect("store").expect("revoked");
    let revoked_at = Instant::now();
    let mut look = tokio::time::interval(Duration::from_millis(10));
    loop {
        look.tick().await;
        let asked_after = revoked_at.elapsed();
        if fixture.get_as(&reader, "/v1/pools").await.status == 401 {
            break;
        }
        assert!(asked_after < Duration::from_secs(1), "still open after {asked_after:?}");
    }
}

#[tokio::test]
async fn the_trail_says_who_did_what_through_which_key_and_request() {
    let fixture = Fixture::new().await;
    let made = fixture.send(Method::POST, "/v1/keys", &json!({"name": "Olga", "role": "operator"})).await;
    let key = made.json["key"].as_str().expect("a key");
    let (id, bearer) = (made.json["id"].as_str().expect("an id"), format!("Bearer {key}"));
    let headers =
        [("content-type", "application/json"), ("authorization", &*bearer), ("x-request-id", "r-77")];
    let body = json!({"reason": "too hot", "operator": "olga@night"}).to_string();
    let paused =
        ask(&fixture.router, request(Method::POST, "/v1/campaigns/mine/pause", &headers, body)).await;
    assert_eq!(paused.status, 200);
    let (pool, _) = &fixture.things["mine"];
    let adjust =
        json!({"adjustment_id": "a", "delta": -3, "kind": "adjust", "reason": "count", "operator": "olga"});
    let path = format!("/v1/pools/{pool}/adjustments");
    for status in [201, 200] {
        assert_eq!(fixture.send_as(Some(key), Method::POST, &path, Some(&adjust)).await.status, status);
    }
    let trail = fixture.send_as(Some(key), Method::GET, "/v1/audit?limit=3", None).await;
    let acts: holdfast_wire::Page<holdfast_wire::ActView> = serde_json::from_str(&trail.text).expect("acts");
    let words: Vec<_> = acts.items.iter().map(|act| (act.action.as_ref(), act.subject.clone())).collect();
    let expected = [
        ("adjust", format!("pool {pool}")),
        ("pause", "campaign mine".to_owned()),
        ("create_key", format!("key {id}")),
    ];
    assert_eq!(words, expected);
    let pause = &acts.items[1];
    assert_eq!(
        (pause.actor.clone(), pause.request_id.as_deref()),
        (format!("Olga (hfk_{id})"), Some("r-77"))
    );
    assert_eq!((pause.operator.as_deref(), pause.reason.as_str()), (Some("olga@night"), "too hot"));
    assert_eq!(
        (pause.campaign_id.as_deref(), acts.items[0].detail.as_str()),
        (Some("mine"), "-3, adjustment a")
    );
    let of_campaign = fixture.send_as(Some(key), Method::GET, "/v1/audit?subject=campaign+mine", None).await;
    let words: Vec<_> = of_campaign.json["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|act| act["action"].clone())
        .collect();
    assert_eq!(words, ["pause", "open", "put_campaign"]);
    let next = acts.next_cursor.expect("more");
    let rest = fixture.send_as(Some(key), Method::GET, &format!("/v1/audit?cursor={next}"), None).await;
    assert_eq!(rest.json["items"][0]["action"], "ask_approval");
}
