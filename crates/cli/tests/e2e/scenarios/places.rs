//! Locations and bundles: stock of one order in several pools.

use serde_json::{Value, json};

use super::site::Site;
use super::{count, together, with};
use crate::support::{Answer, Http};

super::site::on_each_site! {
    a_line_without_location_goes_by_the_location_order
    a_rush_over_locations_sells_exactly_what_there_is_on_every_path
    a_bundle_is_counted_once_in_its_parts_and_shown_as_one
    bundles_in_a_rush_take_all_of_their_components_or_nothing
    places_and_bundles_are_judged_strictly
}

/// Shorthands for places and bundles.
impl Http {
    async fn pool_at(&self, sku: &str, location: &str, supply: u64) -> String {
        let body = json!({"campaign_id": "c", "sku": sku, "location": location, "supply": supply});
        let opened = self.post("/v1/pools", &body).await;
        assert_eq!(opened.status, 201, "{opened:?}");
        opened.text("id")
    }

    async fn locations(&self, order: &[&str], split: bool) -> Answer {
        let put = self.put("/v1/campaigns/c/locations", &json!({"order": order, "split": split})).await;
        assert_eq!((put.status, put.body["order"].clone()), (200, json!(order)), "{put:?}");
        put
    }

    async fn bundle(&self, sku: &str, components: &[(&str, u32)]) -> Answer {
        self.put(&format!("/v1/bundles/c/{sku}"), &components_of(components)).await
    }

    async fn available_at(&self, pools: &[&String]) -> Vec<u64> {
        let mut units = Vec::new();
        for pool in pools {
            units.push(self.balances(pool).await.0);
        }
        units
    }
}

fn components_of(components: &[(&str, u32)]) -> Value {
    let component = |(sku, quantity): &(&str, u32)| json!({"sku": sku, "quantity": quantity});
    json!({"components": components.iter().map(component).collect::<Vec<_>>()})
}

fn order(order_no: &str, lines: &[(&str, u32)]) -> Value {
    super::order("c", order_no, "ann", lines)
}

/// Where an order's units are, line by line.
fn allocations(order: &Value) -> Vec<Vec<(String, u64)>> {
    let of_line = |line: &Value| {
        let allocations = line["allocations"].as_array().expect("allocations");
        allocations
            .iter()
            .map(|a| (a["pool_id"].as_str().unwrap().into(), a["quantity"].as_u64().unwrap()))
            .collect()
    };
    order["lines"].as_array().expect("lines").iter().map(of_line).collect()
}

// 63, 64: a split goes by what is available, and only the locations of the campaign's order count.
async fn a_line_without_location_goes_by_the_location_order(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let (west, east, far) = (
        http.pool_at("A", "west", 4).await,
        http.pool_at("A", "east", 6).await,
        http.pool_at("A", "far", 9).await,
    );
    let unknown = http.order(&order("0", &[("A", 1)])).await;
    assert_eq!((unknown.status, unknown.code()), (404, "unknown_sku"), "main has nothing");
    http.locations(&["east", "west"], false).await;
    let first = http.accepted(&order("1", &[("A", 5)])).await;
    let seen = http.see(&first).await;
    assert_eq!(allocations(&seen), [[(east.clone(), 5)]]);
    assert_eq!(seen["lines"][0]["location"], "east");
    let second = http.accepted(&order("2", &[("A", 3)])).await;
    assert_eq!(allocations(&http.see(&second).await), [[(west.clone(), 3)]]);
    // One is left in the east and one in the west: no line of two may be split.
    let short = http.order(&order("3", &[("A", 2)])).await;
    assert_eq!((short.status, short.code()), (409, "sold_out"), "{short:?}");
    assert_eq!(short.body["errors"][0]["available"], 1);
    http.locations(&["east", "west"], true).await;
    let third = http.accepted(&order("4", &[("A", 2)])).await;
    let seen = http.see(&third).await;
    assert_eq!(allocations(&seen).concat().len(), 2);
    assert_eq!(seen["lines"][0]["location"], Value::Null);
    assert_eq!(http.available_at(&[&east, &west, &far]).await, [0, 0, 9]);
    let short = http.order(&order("5", &[("A", 1)])).await;
    assert_eq!((short.status, short.code()), (409, "sold_out"), "far is not in the order");
    // What goes back goes back to where it was taken, and the order of then does not matter.
    http.locations(&["far"], false).await;
    assert_eq!(http.cancel(&third).await.status, 200);
    assert_eq!(http.cancel(&first).await.status, 200);
    assert_eq!(http.available_at(&[&east, &west, &far]).await, [6, 1, 9]);
    let by_far = http.accepted(&order("6", &[("A", 1)])).await;
    assert_eq!(allocations(&http.see(&by_far).await), [[(far.clone(), 1)]]);
    // The same key is the same order, whatever the location order has become; an explicit place goes by itself.
    assert_eq!(http.order(&order("2", &[("A", 3)])).await.status, 200);
    let line = json!([{"sku": "A", "location": "west", "quantity": 1}]);
    let west_only = http.accepted(&with(order("7", &[]), json!({"lines": line}))).await;
    assert_eq!(allocations(&http.see(&west_only).await), [[(west, 1)]]);
    server.finish().await;
}

async fn a_rush_over_locations_sells_exactly_what_there_is_on_every_path(server: Site) {
    let http = &server.http;
    for (campaign, path, split) in
        [("direct", "direct", true), ("batched", "batched", false), ("queued", "queued", true)]
    {
        http.campaign(campaign, json!({})).await;
        let mut pools = Vec::new();
        for (location, buckets) in [("one", 1), ("two", 3), ("three", 2)] {
            let body = json!({"campaign_id": campaign, "sku": "A", "location": location, "supply": 20,
                "buckets": buckets, "path": path, "routing": "round_robin"});
            pools.push(http.post("/v1/pools", &body).await.text("id"));
        }
        let body = json!({"order": ["one", "two", "three"], "split": split});
        assert_eq!(http.put(&format!("/v1/campaigns/{campaign}/locations"), &body).await.status, 200);
        let answers = together((0..80_u32).map(|n| {
            let (http, body) = (http.clone(), super::order(campaign, &n.to_string(), "ann", &[("A", 1)]));
            async move { http.order(&body).await }
        }))
        .await;
        let mut states = Vec::new();
        for answer in &answers {
            if answer.status == 202 {
                let ended = format!("/v1/orders/{}?wait=20s", answer.text("id"));
                states.push(http.get(&ended).await.text("state"));
            } else {
                states.push(if answer.status == 201 { "held".into() } else { answer.code().to_owned() });
            }
        }
        let held = states.iter().filter(|state| *state == "held").count();
        assert_eq!((held, states.len() - held), (60, 20), "{campaign}: {states:?}");
        for pool in &pools {
            assert_eq!(http.balances(pool).await, (0, 20, 0), "{campaign}");
        }
    }
    server.finish().await;
}

// 68
async fn a_bundle_is_counted_once_in_its_parts_and_shown_as_one(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let (a, b) = (http.pool("c", "A", 20, 2).await, http.pool("c", "B", 10, 1).await);
    let made = http.bundle("P", &[("A", 2), ("B", 1)]).await;
    assert_eq!((made.status, made.body["available"].clone()), (201, json!(10)), "{made:?}");
    let again = http.bundle("P", &[("A", 2), ("B", 1)]).await;
    assert_eq!(again.status, 200);
    let three = http.accepted(&order("1", &[("P", 3)])).await;
    let seen = http.see(&three).await;
    assert_eq!(
        (seen["lines"][0]["sku"].clone(), seen["lines"][0]["quantity"].clone()),
        (json!("P"), json!(3))
    );
    assert_eq!(
        seen["lines"][0]["components"],
        json!([{"sku": "A", "quantity": 2}, {"sku": "B", "quantity": 1}])
    );
    assert_eq!(http.available_at(&[&a, &b]).await, [14, 7]);
    let mixed = http.accepted(&order("2", &[("P", 1), ("A", 1)])).await;
    assert_eq!(http.available_at(&[&a, &b]).await, [11, 6]);
    let shown = http.get("/v1/bundles/c/P").await;
    assert_eq!(shown.body["available"], 5, "the least of the parts: {shown:?}");
    let short = http.order(&order("3", &[("P", 6)])).await;
    assert_eq!((short.status, short.code()), (409, "sold_out"));
    assert_eq!(
        (&short.body["errors"][0]["requested"], &short.body["errors"][0]["available"]),
        (&json!(6), &json!(5))
    );
    // A change of the bundle concerns only what is placed from now on.
    assert_eq!(http.bundle("P", &[("A", 1)]).await.status, 200);
    assert_eq!(http.order(&order("1", &[("P", 3)])).await.status, 200);
    assert_eq!(http.reduce(&three, 1, 2).await.status, 200);
    assert_eq!(http.available_at(&[&a, &b]).await, [13, 7]);
    assert_eq!(http.pay(&three, "e1").await.status, 200);
    assert_eq!(http.refund(&three, "r1", 1, Some(true)).await.status, 201);
    assert_eq!((http.balances(&a).await, http.balances(&b).await), ((15, 3, 2), (8, 1, 1)));
    let too_much = http.refund(&three, "r2", 2, Some(true)).await;
    assert_eq!((too_much.status, too_much.code()), (409, "refund_exceeds_sold"));
    assert_eq!(http.refund(&three, "r3", 1, None).await.status, 201);
    assert_eq!((http.balances(&a).await, http.balances(&b).await), ((15, 3, 2), (8, 1, 1)));
    assert_eq!(http.cancel(&mixed).await.status, 200);
    http.accepted(&order("4", &[("P", 1)])).await;
    assert_eq!(http.available_at(&[&a, &b]).await, [17, 9]);
    let books = http.get("/v1/campaigns/c/settlement").await.body;
    assert_eq!((&books["refunded_restocked"], &books["refunded_kept"]), (&json!(3), &json!(3)), "{books}");
    server.finish().await;
}

async fn bundles_in_a_rush_take_all_of_their_components_or_nothing(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"account_limit": 3})).await;
    let (a, b) = (http.pool("c", "A", 30, 3).await, http.pool("c", "B", 12, 2).await);
    http.bundle("P", &[("A", 2), ("B", 1)]).await;
    // A bundle is as many units as it is made of: three of three are used.
    let limited = http.order(&super::order("c", "x", "account-x", &[("P", 1), ("A", 1)])).await;
    assert_eq!((limited.status, limited.code()), (409, "account_limit"), "{limited:?}");
    let answers = together((0..20_u32).map(|n| {
        let body = super::order("c", &n.to_string(), &format!("account-{n}"), &[("P", 1)]);
        let http = http.clone();
        async move { http.order(&body).await }
    }))
    .await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (12, 8));
    assert_eq!((http.balances(&a).await, http.balances(&b).await), ((6, 24, 0), (0, 12, 0)));
    server.finish().await;
}

async fn places_and_bundles_are_judged_strictly(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    http.pool("c", "A", 1, 1).await;
    let locations = "/v1/campaigns/c/locations";
    for (path, body, code, pointer) in [
        (locations, json!({"order": []}), "invalid_value", "/order"),
        (locations, json!({"order": ["x", "x"]}), "invalid_value", "/order/1"),
        (locations, json!({"order": ["x "]}), "invalid_identifier", "/order/0"),
        (locations, json!({"order": ["x"], "split": 1}), "invalid_value", "/split"),
        ("/v1/bundles/c/P", json!({"components": []}), "invalid_value", "/components"),
        ("/v1/bundles/c/P", components_of(&[("A", 0)]), "invalid_quantity", "/components/0/quantity"),
        ("/v1/bundles/c/P", components_of(&[("A", 1), ("A", 1)]), "invalid_value", "/components/1/sku"),
        ("/v1/bundles/c/P", components_of(&[("P", 1)]), "invalid_value", "/components/0/sku"),
        ("/v1/bundles/c/P%20", components_of(&[("A", 1)]), "invalid_identifier", "/path/sku"),
    ] {
        let refused = http.put(path, &body).await;
        assert_eq!((refused.status, refused.faults()), (400, vec![(code.into(), pointer.into())]), "{body}");
    }
    for path in ["/v1/campaigns/none/locations", "/v1/bundles/none/P", "/v1/bundles/c/P"] {
        assert_eq!(http.get(path).await.status, 404, "{path}");
    }
    let unknown = http.put("/v1/bundles/none/P", &components_of(&[("A", 1)])).await;
    assert_eq!((unknown.status, unknown.code()), (404, "not_found"));
    let hidden = http.bundle("A", &[("B", 1)]).await;
    assert_eq!((hidden.status, hidden.code()), (409, "conflict"));
    assert_eq!(http.bundle("P", &[("A", 1), ("B", 1)]).await.status, 201);
    let body = json!({"campaign_id": "c", "sku": "P", "supply": 1});
    assert_eq!(http.post("/v1/pools", &body).await.code(), "conflict");
    // A component without stock: the bundle is not sold.
    let unknown = http.order(&order("1", &[("P", 1)])).await;
    assert_eq!((unknown.status, unknown.code()), (404, "unknown_sku"));
    assert_eq!(http.get("/v1/bundles/c/P").await.body["available"], 0);
    http.pool("c", "B", 1, 1).await;
    http.accepted(&order("1", &[("P", 1)])).await;
    server.finish().await;
}
