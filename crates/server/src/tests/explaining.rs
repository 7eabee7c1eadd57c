//! Who is told what of a chain of evidence.

use axum::body::Body;
use axum::http::Method;
use holdfast_store::{Role, Scope};
use serde_json::json;

use super::keys::key;
use super::{ask, config, engine, request};
use crate::{Auth, Limits, router};

#[tokio::test]
async fn whoever_may_not_see_the_trail_is_told_that_there_is_one() {
    let engine = engine();
    let router = router(engine.clone(), &config(Auth::Keys, Limits::default()));
    let operator = key(&engine, Role::Operator, Scope::All, None).await;
    let reader = key(&engine, Role::Read, Scope::All, None).await;
    let buyer = key(&engine, Role::Buyer, Scope::All, None).await;
    let send = async |who: &crate::keyring::NewKey, method: Method, path: &str, body: Option<String>| {
        let bearer = format!("Bearer {}", who.text());
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        ask(&router, request(method, path, &headers, body.map_or_else(Body::empty, Body::from))).await
    };
    let put = json!({"name": "c"}).to_string();
    assert_eq!(send(&operator, Method::PUT, "/v1/campaigns/c", Some(put)).await.status, 201);
    let pool = json!({"campaign_id": "c", "sku": "s", "supply": 5}).to_string();
    let pool = send(&operator, Method::POST, "/v1/pools", Some(pool)).await;
    let path = format!("/v1/pools/{}/explain", pool.json["id"].as_str().expect("an id"));
    let kinds = |answer: &super::Answer| -> Vec<String> {
        let steps = answer.json["timeline"].as_array().expect("a timeline");
        steps.iter().map(|step| step["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    let all = send(&operator, Method::GET, &path, None).await;
    assert_eq!((kinds(&all), &all.json["left_off"]), (vec!["ledger".into(), "act".into()], &json!([])));
    let told = send(&reader, Method::GET, &path, None).await;
    assert_eq!((kinds(&told), &told.json["left_off"]), (vec!["ledger".into()], &json!(["acts"])));
    assert_eq!(send(&buyer, Method::GET, &path, None).await.status, 403);
}
