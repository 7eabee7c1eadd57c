//! The cache as the engine asks it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::cache::{Accepted, EntryId, Epoch};
use holdfast_core::id::{OrderId, OrderNo};
use holdfast_core::stock::BucketKey;
use holdfast_engine::{
    Accept, Answer, Applied, Cache, CacheError, Credit, Delivery, Failpoints, Position, Seed,
};
use redis::Value;
use tokio::time::Instant;

use crate::accepts::Accepts;
use crate::address::Address;
use crate::caller::Caller;
use crate::codec::{self, KnownOrder};
use crate::connect::Connector;
use crate::entries::{self, Entry};
use crate::fault::Fault;
use crate::keys::{GROUP, Keys};
use crate::link::Link;
use crate::replies;
use crate::scripts::Call;
use crate::server::{Examined, Info};
use crate::shards::Masters;

/// Greatest number that a script compares exactly.
pub(crate) const EXACT_MAX: u64 = (1 << 53) - 1;
/// Entries that one script removes.
const SETTLED_AT_ONCE: usize = 500;
/// Steps of one claim: each looks at ten times as many entries as it may take.
const CLAIM_STEPS_MAX: usize = 16;

/// How long and how much.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long an accept or a look-up may take.
    pub accept: Duration,
    /// How long any other call may take.
    pub call: Duration,
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// Most calls under way at one server; more wait within their deadlines.
    pub calls_max: usize,
    /// Most reads that wait at one server.
    pub readers_max: usize,
    /// Points at which a test build dies: `cache.after_accept`, `cache.after_deliver`, `cache.before_settle`,
    /// `cache.after_settle`, `cache.before_seed`, `cache.before_forget`.
    pub failpoints: Failpoints,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            accept: Duration::from_millis(150),
            call: Duration::from_millis(500),
            connect: Duration::from_secs(1),
            calls_max: 1_024,
            readers_max: 64,
            failpoints: Failpoints::default(),
        }
    }
}

/// A cache on Redis or Valkey.
#[derive(Debug)]
pub struct RedisCache {
    instance: String,
    options: Options,
    pub(crate) caller: Arc<Caller>,
    accepts: Arc<Accepts>,
}

impl RedisCache {
    /// A cache at an address. Connections are made when they are needed; the file of roots is read now.
    pub fn new(address: &Address, options: Options) -> std::io::Result<Self> {
        let connector = Connector::new(address.clone(), options.connect, options.calls_max)?;
        let caller = Arc::new(Caller::new(Masters::new(connector, options.calls_max, options.readers_max)));
        let accepts = Accepts::new(Arc::clone(&caller), options.failpoints.clone(), options.calls_max);
        Ok(Self { instance: address.instance.clone(), accepts: Arc::new(accepts), caller, options })
    }

    fn keys(&self, bucket: BucketKey) -> Keys {
        Keys::of(&self.instance, bucket)
    }

    fn soon(&self) -> Instant {
        Instant::now() + self.options.call
    }

    async fn apply(&self, keys: &Keys, call: Call<'_>) -> Result<Applied, CacheError> {
        let answer = self.caller.run(keys, call, None, self.soon()).await?;
        match replies::number(&answer) {
            Some(1) => Ok(Applied::Done),
            Some(0) => Ok(Applied::Elsewhere),
            _ => Err(unreadable()),
        }
    }

    async fn link(&self, keys: &Keys) -> Result<Arc<Link>, Fault> {
        self.caller.masters.of_slot(keys.slot(), self.soon()).await
    }

    /// Deliveries of entries. What does not name its epoch is of the one that the stream is in now.
    async fn deliveries(&self, keys: &Keys, entries: Vec<Entry>) -> Result<Vec<Delivery>, Fault> {
        let mut of_stream = Epoch::default();
        if entries.iter().any(Entry::has_no_epoch) {
            let mut command = redis::cmd("HGET");
            command.arg(keys.cache()).arg("epoch");
            let epoch = self.caller.send(keys, &command, None, self.soon()).await?;
            of_stream = Epoch(replies::number(&epoch).unwrap_or_default());
        }
        Ok(entries.into_iter().map(|entry| entry.into_delivery(of_stream)).collect())
    }

    /// Makes a stream's group again. Whether there is a stream.
    async fn group_again(&self, keys: &Keys) -> Result<bool, CacheError> {
        let call = self.caller.scripts.regroup.call(keys).arg(GROUP);
        let is_there = self.apply(keys, call).await? == Applied::Done;
        if is_there {
            tracing::warn!(stream = keys.stream(), "the consumer group was gone and is made again");
        }
        Ok(is_there)
    }

    async fn read(
        &self,
        bucket: BucketKey,
        keys: &Keys,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Entry>, Fault> {
        let mut command = redis::cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(consumer).arg("COUNT").arg(count);
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        // To wait for 0 is to wait for ever.
        if millis > 0 {
            command.arg("BLOCK").arg(millis);
        }
        command.arg("STREAMS").arg(keys.stream()).arg(">");
        let answer = if millis > 0 {
            let link = self.link(keys).await?;
            let live = link.live(self.soon()).await?;
            link.readers.read(&link.connector, &live, &command, wait, self.options.call).await?
        } else {
            self.caller.send(keys, &command, None, self.soon()).await?
        };
        entries::of_read(bucket, &answer).ok_or_else(|| Fault::unfit(UNREADABLE))
    }

    async fn take_over(
        &self,
        bucket: BucketKey,
        keys: &Keys,
        consumer: &str,
        count: usize,
        idle: Duration,
    ) -> Result<Vec<Entry>, Fault> {
        let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let (mut start, mut claimed) = (EntryId::default(), Vec::new());
        for _ in 0..CLAIM_STEPS_MAX {
            let mut command = redis::cmd("XAUTOCLAIM");
            command.arg(keys.stream()).arg(GROUP).arg(consumer).arg(idle).arg(start.to_string());
            command.arg("COUNT").arg(count - claimed.len());
            let answer = self.caller.send(keys, &command, None, self.soon()).await?;
            let (next, entries) =
                entries::of_claim(bucket, &answer).ok_or_else(|| Fault::unfit(UNREADABLE))?;
            claimed.extend(entries);
            start = next;
            if claimed.len() >= count || start == EntryId::default() {
                break;
            }
        }
        Ok(claimed)
    }

    /// What every master says of itself, for whoever looks before the sale.
    pub async fn examine_masters(&self) -> Result<Vec<Examined>, CacheError> {
        let mut examined = Vec::new();
        for link in self.caller.masters.all(self.soon()).await? {
            let live = link.live(Instant::now() + self.options.connect).await?;
            examined.push(self.info_of(&link).await?.examined(live.master.node.to_string()));
        }
        Ok(examined)
    }

    async fn info(&self, bucket: BucketKey) -> Result<(Arc<Link>, Info), Fault> {
        let keys = self.keys(bucket);
        let link = self.link(&keys).await?;
        let info = self.info_of(&link).await?;
        Ok((link, info))
    }

    async fn info_of(&self, link: &Arc<Link>) -> Result<Info, Fault> {
        let answer = link.call(&redis::cmd("INFO"), None, self.soon()).await?;
        let text = replies::text(&answer).ok_or_else(|| Fault::unfit(UNREADABLE))?;
        Ok(Info::read(text))
    }
}

pub(crate) const UNREADABLE: &str = "its answer cannot be read";

pub(crate) fn unreadable() -> CacheError {
    CacheError::Unfit(UNREADABLE.into())
}

/// Refuses numbers that a script could not compare.
fn exact(numbers: &[u64]) -> Result<(), CacheError> {
    let is_exact = numbers.iter().all(|number| *number <= EXACT_MAX);
    is_exact.then_some(()).ok_or_else(|| CacheError::Unfit("a number is out of bounds".into()))
}

#[async_trait]
impl Cache for RedisCache {
    async fn accept(&self, accept: &Accept) -> Result<Answer, CacheError> {
        exact(&[accept.epoch.0, accept.seen, accept.units])?;
        let deadline = Instant::now() + self.options.accept;
        let payload = codec::encode(&accept.place, accept.due_at)
            .map_err(|error| CacheError::Unfit(format!("an order is not for it: {error}").into()))?;
        self.accepts.take(|| self.keys(accept.bucket), accept, payload, deadline).await
    }

    async fn look_up(
        &self,
        bucket: BucketKey,
        epoch: Epoch,
        order_no: &OrderNo,
    ) -> Result<Option<(Accepted, OrderId)>, CacheError> {
        let keys = self.keys(bucket);
        let call = self.caller.scripts.look_up.call(&keys).arg(epoch).arg(order_no);
        let deadline = Instant::now() + self.options.accept;
        let known = self.caller.run(&keys, call, None, deadline).await?;
        if known == Value::Nil {
            return Ok(None);
        }
        let known = replies::text(&known).and_then(KnownOrder::read).ok_or_else(unreadable)?;
        Ok(Some(replies::accepted(bucket, epoch, &known)))
    }

    async fn entry(&self, bucket: BucketKey, entry: EntryId) -> Result<Option<Delivery>, CacheError> {
        let keys = self.keys(bucket);
        let id = entry.to_string();
        let mut command = redis::cmd("XRANGE");
        command.arg(keys.stream()).arg(&id).arg(&id);
        let answer = self.caller.send(&keys, &command, None, self.soon()).await?;
        let entries = entries::all(bucket, &answer).ok_or_else(unreadable)?;
        Ok(self.deliveries(&keys, entries).await?.into_iter().next())
    }

    async fn deliver(
        &self,
        bucket: BucketKey,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, CacheError> {
        let keys = self.keys(bucket);
        if count == 0 {
            return Ok(Vec::new());
        }
        let entries = match self.read(bucket, &keys, consumer, count, wait).await {
            Err(Fault::NoGroup) if self.group_again(&keys).await? => {
                self.read(bucket, &keys, consumer, count, Duration::ZERO).await?
            }
            Err(Fault::NoGroup | Fault::NoStream) => Vec::new(),
            entries => entries?,
        };
        if !entries.is_empty() {
            self.options.failpoints.hit("cache.after_deliver");
        }
        Ok(self.deliveries(&keys, entries).await?)
    }

    async fn claim(
        &self,
        bucket: BucketKey,
        consumer: &str,
        count: usize,
        idle: Duration,
    ) -> Result<Vec<Delivery>, CacheError> {
        let keys = self.keys(bucket);
        if count == 0 {
            return Ok(Vec::new());
        }
        let entries = match self.take_over(bucket, &keys, consumer, count, idle).await {
            // A new group has given nothing to anybody.
            Err(Fault::NoGroup) => {
                self.group_again(&keys).await?;
                Vec::new()
            }
            entries => entries?,
        };
        Ok(self.deliveries(&keys, entries).await?)
    }

    async fn settle(&self, bucket: BucketKey, settled: &[EntryId]) -> Result<(), CacheError> {
        let keys = self.keys(bucket);
        self.options.failpoints.hit("cache.before_settle");
        for entries in settled.chunks(SETTLED_AT_ONCE) {
            let call = self.caller.scripts.settle.call(&keys).arg(GROUP);
            let call = entries.iter().fold(call, |call, entry| call.arg(entry));
            self.caller.run(&keys, call, None, self.soon()).await?;
        }
        self.options.failpoints.hit("cache.after_settle");
        Ok(())
    }

    async fn credit(&self, credit: Credit) -> Result<Applied, CacheError> {
        exact(&[credit.units.unsigned_abs()])?;
        let keys = self.keys(credit.bucket);
        let call = self.caller.scripts.credit.call(&keys).arg(credit.epoch);
        self.apply(&keys, call.arg(credit.from).arg(credit.to).arg(credit.units)).await
    }

    async fn position(&self, bucket: BucketKey) -> Result<Option<Position>, CacheError> {
        let keys = self.keys(bucket);
        let call = self.caller.scripts.position.call(&keys).arg(GROUP);
        let position = self.caller.run(&keys, call, None, self.soon()).await?;
        if position == Value::Nil {
            return Ok(None);
        }
        replies::position(&position).map(Some).ok_or_else(unreadable)
    }

    async fn drain(&self, bucket: BucketKey, epoch: Epoch) -> Result<Applied, CacheError> {
        let keys = self.keys(bucket);
        self.apply(&keys, self.caller.scripts.drain.call(&keys).arg(epoch)).await
    }

    async fn seed(&self, seed: Seed) -> Result<Applied, CacheError> {
        exact(&[seed.epoch.0, seed.base_available])?;
        self.options.failpoints.hit("cache.before_seed");
        let keys = self.keys(seed.bucket);
        let call = self.caller.scripts.seed.call(&keys).arg(seed.epoch);
        self.apply(&keys, call.arg(seed.base_seq).arg(seed.base_available).arg(GROUP)).await
    }

    async fn open(&self, bucket: BucketKey, epoch: Epoch) -> Result<Applied, CacheError> {
        let keys = self.keys(bucket);
        self.apply(&keys, self.caller.scripts.open.call(&keys).arg(epoch)).await
    }

    async fn forget(&self, bucket: BucketKey, epoch: Epoch) -> Result<(), CacheError> {
        exact(&[epoch.0])?;
        self.options.failpoints.hit("cache.before_forget");
        let keys = self.keys(bucket);
        let call = self.caller.scripts.forget.call(&keys).arg(epoch);
        self.caller.run(&keys, call, None, self.soon()).await?;
        Ok(())
    }

    async fn identity(&self, bucket: BucketKey) -> Result<Arc<str>, CacheError> {
        let (link, info) = self.info(bucket).await?;
        // A master that was made a replica and a master again has kept its connections, but not what it knew.
        let identity = info.identity().filter(|_| info.is_master());
        let live = link.live(self.soon()).await?;
        if identity.as_ref() != Some(&live.master.identity) {
            link.retire_live(&live, "it is another server now");
            return Err(CacheError::Unavailable("the server became another one".into()));
        }
        Ok(Arc::clone(&live.master.identity))
    }

    async fn examine(&self, bucket: BucketKey) -> Result<(), CacheError> {
        let (_, info) = self.info(bucket).await?;
        match info.examined(String::new()).fault() {
            None => Ok(()),
            Some(why) => Err(CacheError::Unfit(why.into())),
        }
    }
}
