//! The routes that a drill uses.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::stock::{Bought, Order, Parts, Payment, Shop};
use super::{Bug, Double, views};

/// How long a race stays open.
const WIDE: Duration = Duration::from_millis(100);
/// How long a look waits for the end of a queue.
const WAIT: Duration = Duration::from_millis(20);

#[derive(Deserialize, Default)]
struct Asked {
    campaign_id: Option<String>,
    order_no: Option<String>,
    state: Option<String>,
    pool_id: Option<Uuid>,
    limit: Option<usize>,
    cursor: Option<String>,
    after: Option<String>,
}

pub(crate) async fn serve(listener: TcpListener, double: Double) {
    let router = Router::new()
        .route("/v1/campaigns/{id}/warm", post(campaign))
        .route("/v1/campaigns/{id}", put(put_campaign).get(campaign))
        .route("/v1/campaigns/{id}/open", post(|state: State<Double>| switch(state, "open")))
        .route("/v1/campaigns/{id}/close", post(|state: State<Double>| switch(state, "closed")))
        .route("/v1/campaigns/{id}/settlement", get(settlement))
        .route("/v1/pools", post(open_pool).get(pools))
        .route("/v1/pools/{id}", put(pool).patch(pool).get(pool))
        .route("/v1/pools/{id}/cache", get(cache))
        .route("/v1/orders", post(place).get(orders))
        .route("/v1/orders/{id}", get(order))
        .route("/v1/orders/{id}/cancel", post(cancel))
        .route("/v1/payments/drill/notifications", post(notice))
        .route("/v1/ledger", get(ledger))
        .route("/v1/events", get(events))
        .with_state(double);
    axum::serve(listener, router).await.unwrap();
}

fn said(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn refused(status: u16, code: &str, recorded: Option<bool>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/problem+json".parse().unwrap());
    if status == 503 {
        headers.insert("retry-after", "1".parse().unwrap());
    }
    let body = serde_json::to_vec(&views::problem(status, code, recorded)).unwrap();
    (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
}

fn replayed(status: u16, body: Value) -> Response {
    let mut answer = said(status, body);
    answer.headers_mut().insert("idempotent-replayed", "true".parse().unwrap());
    answer
}

async fn put_campaign(
    State(double): State<Double>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let mut shop = double.shop();
    shop.campaign = id;
    shop.hold_seconds = body["policy"]["hold_seconds"].as_i64().unwrap_or(3);
    shop.account_limit = body["policy"]["account_limit"].as_i64();
    said(201, views::campaign(&shop))
}

async fn campaign(State(double): State<Double>) -> Response {
    said(200, views::campaign(&double.shop()))
}

async fn switch(State(double): State<Double>, state: &'static str) -> Response {
    let mut shop = double.shop();
    shop.state = state;
    said(200, views::campaign(&shop))
}

async fn settlement(State(double): State<Double>) -> Response {
    said(200, views::settlement(&double.shop()))
}

async fn open_pool(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    let mut shop = double.shop();
    let supply = body["supply"].as_i64().unwrap();
    let buckets = body["buckets"].as_u64().unwrap_or(1) as usize;
    let at = shop.open_pool(body["sku"].as_str().unwrap(), body["path"].as_str().unwrap(), supply, buckets);
    let view = views::pool(&shop, &shop.pools[at]);
    said(201, view)
}

async fn pool(State(double): State<Double>, Path(id): Path<Uuid>) -> Response {
    let shop = double.shop();
    let pool = shop.pools.iter().find(|pool| pool.id == id).unwrap();
    said(200, views::pool(&shop, pool))
}

async fn pools(State(double): State<Double>) -> Response {
    let shop = double.shop();
    let items: Vec<Value> = shop.pools.iter().map(|pool| views::pool(&shop, pool)).collect();
    said(200, json!({"items": items, "next_cursor": null}))
}

async fn cache(State(double): State<Double>, Path(id): Path<Uuid>) -> Response {
    let shop = double.shop();
    said(200, views::cache(shop.pools.iter().find(|pool| pool.id == id).unwrap()))
}

/// A page of what there is, by numbers.
fn page(items: Vec<Value>, asked: &Asked) -> Response {
    let from: usize = asked.cursor.as_deref().map_or(0, |cursor| cursor.parse().unwrap());
    let to = items.len().min(from + asked.limit.unwrap_or(50));
    let next = (to < items.len()).then(|| to.to_string());
    said(200, json!({"items": items[from.min(to)..to], "next_cursor": next}))
}

async fn orders(State(double): State<Double>, Query(asked): Query<Asked>) -> Response {
    let shop = double.shop();
    assert!(asked.campaign_id.as_ref().is_none_or(|campaign| *campaign == shop.campaign));
    let is_asked = |order: &&Order| {
        asked.state.as_ref().is_none_or(|state| order.state == state)
            && asked.order_no.as_ref().is_none_or(|number| order.number == *number)
    };
    let items: Vec<Value> =
        shop.orders.values().filter(is_asked).map(|order| views::order(&shop, order)).collect();
    page(items, &asked)
}

async fn ledger(State(double): State<Double>, Query(asked): Query<Asked>) -> Response {
    let shop = double.shop();
    let pool = shop.pools.iter().find(|pool| Some(pool.id) == asked.pool_id).unwrap();
    page(views::ledger(pool), &asked)
}

async fn events(State(double): State<Double>, Query(asked): Query<Asked>) -> Response {
    let shop = double.shop();
    let at = shop.pools.iter().position(|pool| Some(pool.id) == asked.pool_id).unwrap();
    let items = if asked.after.is_some() { Vec::new() } else { views::events(&shop, at) };
    said(200, json!({"items": items, "position": "end", "more": false}))
}

async fn place(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    let text = |name: &str| body[name].as_str().unwrap();
    let (sku, quantity) =
        (body["lines"][0]["sku"].as_str().unwrap(), body["lines"][0]["quantity"].as_i64().unwrap());
    let wanted = Order::new(text("order_no"), text("account"), sku, quantity);
    let (bug, offer) = {
        let mut shop = double.shop();
        if let Some(answer) = known(&shop, &wanted) {
            return answer;
        }
        (shop.bug, judged(&mut shop, &wanted))
    };
    let offer = match offer {
        Ok(offer) => offer,
        Err(code) => return refused(409, code, Some(false)),
    };
    let is_race = matches!(bug, Some(Bug::CheckThenAct | Bug::LimitReadThenWritten));
    if is_race {
        tokio::time::sleep(WIDE).await;
    }
    let mut shop = double.shop();
    if let Some(answer) = known(&shop, &wanted) {
        return answer;
    }
    // A shop without this fault decides under the lock under which it writes.
    let offer = match bug {
        Some(Bug::CheckThenAct) => Ok(offer),
        Some(Bug::LimitReadThenWritten) => {
            let pool = place_of(&shop, &wanted);
            shop.offer(pool, quantity).ok_or("sold_out")
        }
        _ => judged(&mut shop, &wanted),
    };
    let offer = match offer {
        Ok(offer) => offer,
        Err(code) => return refused(409, code, Some(false)),
    };
    match shop.take(wanted, offer) {
        Bought::Order(order, false) => {
            said(if order.state == "queued" { 202 } else { 201 }, views::order(&shop, &order))
        }
        Bought::Order(order, true) => replayed(200, views::order(&shop, &order)),
        Bought::Refused(status, code) => refused(status, code, Some(false)),
    }
}

fn place_of(shop: &Shop, wanted: &Order) -> usize {
    shop.pools.iter().position(|pool| pool.sku == wanted.sku).unwrap()
}

/// What is there for an order, if its account may have it.
fn judged(shop: &mut Shop, wanted: &Order) -> Result<Parts, &'static str> {
    if !shop.may_have(&wanted.account, wanted.quantity) {
        return Err("account_limit");
    }
    let pool = place_of(shop, wanted);
    shop.offer(pool, wanted.quantity).ok_or("sold_out")
}

/// The answer to a number that is known.
fn known(shop: &Shop, wanted: &Order) -> Option<Response> {
    let order = shop.known(&wanted.number)?;
    if (order.quantity, &order.sku) != (wanted.quantity, &wanted.sku) {
        return Some(refused(422, "order_mismatch", Some(false)));
    }
    let view = views::order(shop, &order);
    Some(match order.state {
        "queued" => replayed(202, view),
        "released" => {
            let mut body = views::problem(409, "already_released", Some(true));
            body["order"] = view;
            let mut answer = replayed(409, body);
            answer.headers_mut().insert("content-type", "application/problem+json".parse().unwrap());
            answer
        }
        _ => replayed(200, view),
    })
}

async fn order(State(double): State<Double>, Path(id): Path<Uuid>) -> Response {
    for _ in 0..100 {
        {
            let shop = double.shop();
            if let Some(order) = shop.orders.get(&id) {
                return said(200, views::order(&shop, order));
            }
            if shop.waiting(id).is_none() {
                return refused(404, "not_found", Some(false));
            }
        }
        tokio::time::sleep(WAIT).await;
    }
    refused(503, "overloaded", Some(false))
}

fn with_order(status: u16, code: &str, order: Value) -> Response {
    let mut body = views::problem(status, code, Some(true));
    body["order"] = order;
    let mut answer = said(status, body);
    answer.headers_mut().insert("content-type", "application/problem+json".parse().unwrap());
    answer
}

async fn cancel(State(double): State<Double>, Path(id): Path<Uuid>) -> Response {
    let mut shop = double.shop();
    // What waits in the cache is landed first: it is the shop's answer then.
    shop.land();
    let Some(order) = shop.orders.get(&id).cloned() else { return refused(404, "not_found", Some(false)) };
    match order.state {
        "held" => shop.release(order),
        "sold" if shop.bug == Some(Bug::ReleaseAlways) => shop.release(order),
        "sold" => return with_order(409, "already_sold", views::order(&shop, &order)),
        _ => {}
    }
    let view = views::order(&shop, &shop.orders[&id]);
    said(200, view)
}

async fn notice(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    let mut shop = double.shop();
    shop.land();
    let id: Uuid = body["order_id"].as_str().unwrap().parse().unwrap();
    let payment = Payment {
        id: body["payment_id"].as_str().unwrap().to_owned(),
        event: body["event_id"].as_str().unwrap().to_owned(),
        succeeded: body["outcome"] == "succeeded",
        disposition: "",
    };
    let Some(disposition) = shop.notice(id, payment) else { return refused(404, "not_found", Some(false)) };
    let view = views::order(&shop, &shop.orders[&id]);
    said(200, json!({"disposition": disposition, "order": view}))
}
