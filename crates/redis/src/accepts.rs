//! Accepts of one bucket that come while a call is under way are sent together in the next one, as a lane gathers a
//! batch: both sides share what a call costs. There is no timer; who comes alone is sent at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_core::cache::Epoch;
use holdfast_core::command::Place;
use holdfast_core::stock::BucketKey;
use holdfast_engine::{Accept, Answer, CacheError, Failpoints};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::cache::{EXACT_MAX, unreadable};
use crate::caller::Caller;
use crate::codec::KnownOrder;
use crate::fault::Fault;
use crate::keys::Keys;
use crate::replies;

/// Orders of one call: the server does nothing else meanwhile.
const ORDERS_MAX: usize = 64;

type Answered = Result<Answer, CacheError>;

/// An order that waits for its call.
#[derive(Debug)]
struct Ask {
    epoch: Epoch,
    identity: Arc<str>,
    seen: u64,
    place: Arc<Place>,
    units: u64,
    account_limit: Option<u64>,
    backlog_max: u64,
    payload: String,
    deadline: Instant,
    answer: oneshot::Sender<Answered>,
}

/// Accepts that wait, by their buckets. A bucket is here as long as somebody sends for it.
#[derive(Debug)]
pub(crate) struct Accepts {
    caller: Arc<Caller>,
    failpoints: Failpoints,
    waiting_max: usize,
    waiting: Mutex<HashMap<BucketKey, VecDeque<Ask>>>,
}

impl Accepts {
    /// Of each bucket so many may wait.
    pub(crate) fn new(caller: Arc<Caller>, failpoints: Failpoints, waiting_max: usize) -> Self {
        Self { caller, failpoints, waiting_max, waiting: Mutex::default() }
    }

    /// Takes an order's units, if the cache has them, by its deadline. Whoever stops waiting does not stop the call.
    pub(crate) async fn take(
        self: &Arc<Self>,
        keys: impl FnOnce() -> Keys,
        accept: &Accept,
        payload: String,
        deadline: Instant,
    ) -> Answered {
        let (answer, answered) = oneshot::channel();
        let ask = Ask {
            epoch: accept.epoch,
            identity: Arc::clone(&accept.identity),
            seen: accept.seen,
            place: Arc::clone(&accept.place),
            units: accept.units,
            account_limit: accept.account_limit,
            backlog_max: accept.backlog_max,
            payload,
            deadline,
            answer,
        };
        if self.enter(accept.bucket, ask)? {
            let sender = Sender { accepts: Arc::clone(self), bucket: accept.bucket, has_ended: false };
            tokio::spawn(sender.run(keys()));
        }
        answered.await.unwrap_or_else(|_| Err(CacheError::Unknown("its call was given up".into())))
    }

    /// Whether it is the first, for whom nobody sends yet.
    fn enter(&self, bucket: BucketKey, ask: Ask) -> Result<bool, CacheError> {
        let mut waiting = self.waiting();
        let asks = waiting.get_mut(&bucket);
        if asks.as_ref().is_some_and(|asks| asks.len() >= self.waiting_max) {
            return Err(CacheError::Unavailable("too many calls wait".into()));
        }
        let is_first = asks.is_none();
        waiting.entry(bucket).or_default().push_back(ask);
        Ok(is_first)
    }

    /// The next that go together: of one epoch, for one server. None are left: nobody sends for the bucket now.
    fn next(&self, bucket: BucketKey) -> Option<Vec<Ask>> {
        let mut waiting = self.waiting();
        let asks = waiting.get_mut(&bucket)?;
        let mut batch: Vec<Ask> = asks.pop_front().into_iter().collect();
        while batch.len() < ORDERS_MAX
            && let Some(first) = batch.first()
            && let Some(ask) =
                asks.pop_front_if(|ask| ask.epoch == first.epoch && ask.identity == first.identity)
        {
            batch.push(ask);
        }
        if batch.is_empty() {
            waiting.remove(&bucket);
            return None;
        }
        Some(batch)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<BucketKey, VecDeque<Ask>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call, and its answer to each.
    async fn send(&self, bucket: BucketKey, keys: &Keys, asks: Vec<Ask>) {
        let now = Instant::now();
        let (asks, late): (Vec<_>, Vec<_>) = asks.into_iter().partition(|ask| ask.deadline > now);
        for ask in late {
            tell(ask, Err(CacheError::Unavailable("its call was not sent in time".into())));
        }
        let Some(first) = asks.first() else { return };
        let answers = match self.call(keys, first, &asks).await {
            Err(Fault::OtherServer) => vec![Ok(Answer::WentBack); asks.len()],
            Err(fault) => vec![Err(CacheError::from(fault)); asks.len()],
            Ok(value) => {
                self.failpoints.hit("cache.after_accept");
                let units = asks.iter().map(|ask| ask.units);
                match replies::answers(&value, bucket, first.epoch, units) {
                    Some(answers) if answers.len() == asks.len() => answers.into_iter().map(Ok).collect(),
                    Some(_) | None => vec![Err(unreadable()); asks.len()],
                }
            }
        };
        for (ask, answer) in asks.into_iter().zip(answers) {
            tell(ask, answer);
        }
    }

    /// They came in this order, so the first has the least time.
    async fn call(&self, keys: &Keys, first: &Ask, asks: &[Ask]) -> Result<redis::Value, Fault> {
        let seen = asks.iter().map(|ask| ask.seen).max().unwrap_or_default();
        let call = self.caller.scripts.accept.call(keys).arg(first.epoch).arg(seen);
        let call = asks.iter().fold(call, |call, ask| {
            let limit = ask.account_limit.map_or_else(String::new, |limit| limit.min(EXACT_MAX).to_string());
            call.arg(&ask.place.key.order_no)
                .arg(ask.units)
                .arg(ask.backlog_max.min(EXACT_MAX))
                .arg(&ask.place.account)
                .arg(limit)
                .arg(KnownOrder::tail(ask.place.id))
                .arg(&ask.payload)
        });
        self.caller.run(keys, call, Some(&first.identity), first.deadline).await
    }
}

fn tell(ask: Ask, answer: Answered) {
    // Whoever asked may be gone; what was accepted lands all the same.
    let _ = ask.answer.send(answer);
}

/// Sends for one bucket, call after call, until nobody waits.
struct Sender {
    accepts: Arc<Accepts>,
    bucket: BucketKey,
    has_ended: bool,
}

impl Sender {
    async fn run(mut self, keys: Keys) {
        while let Some(asks) = self.accepts.next(self.bucket) {
            self.accepts.send(self.bucket, &keys, asks).await;
        }
        self.has_ended = true;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // It was given up in the middle: whoever waits learns that the answer is unknown, and the next begins anew.
        if !self.has_ended {
            self.accepts.waiting().remove(&self.bucket);
        }
    }
}
