//! Every way to receivers that a node has, by its options.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::id::CampaignId;
use holdfast_core::ledger::Entry;
use holdfast_core::time::Timestamp;
use holdfast_engine::{OutEvent, Sink, Sinks};
use holdfast_redis::{RedisCache, check_stream};
use holdfast_sink::{Nats, Webhooks, check_subject};
use holdfast_store::{SinkKind, SinkName, SinkRow};

const NO_NATS: &str = "this node has no NATS: start it with --nats";
const NO_REDIS: &str = "this node has no Redis: start it with --redis";

/// The ways.
pub(crate) struct NodeSinks {
    pub(crate) webhooks: Webhooks,
    pub(crate) nats: Option<Nats>,
    pub(crate) redis: Option<Arc<RedisCache>>,
}

#[async_trait]
impl Sinks for NodeSinks {
    async fn check(&self, kind: SinkKind, to: &str) -> Result<(), String> {
        match kind {
            SinkKind::Webhook => self.webhooks.check(to).await,
            SinkKind::Nats if self.nats.is_none() => Err(NO_NATS.into()),
            SinkKind::Nats => check_subject(to),
            SinkKind::Redis if self.redis.is_none() => Err(NO_REDIS.into()),
            SinkKind::Redis => check_stream(to),
            SinkKind::Pull => Ok(()),
        }
    }

    fn open(&self, sink: &SinkRow) -> Result<Arc<dyn Sink>, String> {
        let settings = &sink.settings;
        let timeout = Duration::from_millis(settings.timeout_ms.into());
        match sink.kind {
            SinkKind::Webhook => {
                let secrets = sink.secrets.iter().map(|secret| Arc::clone(&secret.secret)).collect();
                self.webhooks.open(&settings.to, secrets, settings.batch_max > 1, timeout)
            }
            SinkKind::Nats => Ok(self.nats.as_ref().ok_or(NO_NATS)?.open(&settings.to, timeout)),
            SinkKind::Redis => Ok(self.redis.as_ref().ok_or(NO_REDIS)?.sink(&settings.to, timeout)),
            SinkKind::Pull => Err("nothing is sent to a consumer that comes by itself".into()),
        }
    }

    fn event(&self, entry: &Entry, campaign: &CampaignId) -> Option<OutEvent> {
        holdfast_server::order_event(entry, campaign)
    }

    fn test_event(&self, sink: &SinkName, id: u128, now: Timestamp) -> OutEvent {
        holdfast_server::test_event(sink, id, now)
    }
}
