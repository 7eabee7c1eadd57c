//! NATS JetStream and Redis Streams: what was told arrives, also where the broker goes and comes back.

use futures_util::StreamExt;
use holdfast_testkit::{Nats, Redis, RedisOptions};
use serde_json::{Value, json};

use super::{allowing, assert_complete, numbered};
use crate::support::{Server, wait_until};

async fn shop_with(option: &str, url: &str) -> Server {
    let mut start = allowing();
    start.arguments.extend([option.to_owned(), url.to_owned()]);
    let server = Server::start_with(start).await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 1_000, 2).await;
    server
}

/// Everything that a stream of NATS holds, in its order.
async fn in_nats(url: &str, stream: &str, count: usize) -> Vec<Value> {
    wait_until("the events in NATS", async || {
        let client = async_nats::connect(url).await.ok()?;
        let context = async_nats::jetstream::new(client);
        let mut stream = context.get_stream(stream).await.ok()?;
        let held = usize::try_from(stream.info().await.ok()?.state.messages).unwrap();
        if held < count {
            return None;
        }
        let config = async_nats::jetstream::consumer::pull::OrderedConfig::default();
        let consumer = stream.create_consumer(config).await.ok()?;
        let messages = consumer.messages().await.ok()?.take(held).collect::<Vec<_>>().await;
        Some(
            messages
                .into_iter()
                .map(|message| serde_json::from_slice(&message.unwrap().payload).unwrap())
                .collect(),
        )
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_gets_everything_also_after_a_restart() {
    let nats = Nats::start().await.unwrap();
    let server = shop_with("--nats", &nats.url()).await;
    let http = &server.http;
    let settings = json!({"kind": "nats", "subject": "shop.orders", "batch_max": 50, "retry_seconds": [1], "timeout_ms": 1000});
    let made = http.put("/v1/sinks/bus", &settings).await;
    assert_eq!((made.status, &made.body["secret"]), (201, &Value::Null), "{made:?}");
    http.sell(numbered("A", 30), true).await;
    in_nats(&nats.url(), "shop_orders", 60).await;
    nats.kill().unwrap();
    http.sell(numbered("B", 30), true).await;
    http.sink_shows("bus", "a failing sink", |sink| sink["state"] == "failing").await;
    nats.restart().await.unwrap();
    let events = in_nats(&nats.url(), "shop_orders", 120).await;
    assert_complete(&http.ledger_events().await, &events);
    let sink = http.sink_shows("bus", "no backlog", |sink| sink["backlog"]["entries"] == 0).await;
    assert_eq!((&sink["state"], &sink["parked"]), (&json!("active"), &json!(0)));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_gets_everything_also_after_a_restart() {
    let redis = Redis::start_with(RedisOptions { is_durable: true }).await.unwrap();
    let server = shop_with("--redis", &redis.url()).await;
    let http = &server.http;
    let settings = json!({"kind": "redis", "stream": "shop:orders", "batch_max": 50, "retry_seconds": [1], "timeout_ms": 1000});
    assert_eq!(http.put("/v1/sinks/stream", &settings).await.status, 201);
    let refused = json!({"kind": "redis", "stream": "{hf:1:0}:stream"});
    crate::support::assert_invalid(
        &http.put("/v1/sinks/own", &refused).await,
        "invalid_value",
        "/stream",
        "/stream",
    );
    http.sell(numbered("A", 30), true).await;
    let behind = |sink: &Value| sink["backlog"]["entries"] == 0;
    http.sink_shows("stream", "no backlog", behind).await;
    redis.kill().unwrap();
    http.sell(numbered("B", 30), true).await;
    http.sink_shows("stream", "a failing sink", |sink| sink["state"] == "failing").await;
    redis.restart().await.unwrap();
    let sink = http.sink_shows("stream", "no backlog", behind).await;
    assert_eq!(sink["parked"], 0);
    let entries = redis.command(&["XRANGE", "shop:orders", "-", "+"]).await.unwrap();
    let events: Vec<Value> =
        entries.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect();
    assert_complete(&http.ledger_events().await, &events);
    server.finish().await;
}
