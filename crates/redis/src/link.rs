//! The connection to one master, made when it is needed, given up at the first doubt, made anew with a growing pause.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::connect::{Connector, Master};
use crate::fault::{self, Fault};
use crate::finder::Finder;
use crate::readers::Readers;

/// Pause after the first connection that could not be made, and the longest. What is waited is half of it or more,
/// by chance, so that nodes do not come all at once.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One master, wherever it is.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connector: Arc<Connector>,
    finder: Finder,
    state: watch::Sender<State>,
    /// Calls that may be under way.
    places: Semaphore,
    pub(crate) readers: Readers,
}

/// A connection that calls may use, as far as is known.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) master: Master,
    /// The attempt that made it.
    attempt: u64,
}

#[derive(Debug)]
enum State {
    Down { attempt: u64, failures: u32, not_before: Instant, why: Arc<str> },
    Connecting { attempt: u64 },
    Up(Arc<Live>),
}

impl Link {
    pub(crate) fn new(connector: Arc<Connector>, finder: Finder, calls: usize, readers: usize) -> Arc<Self> {
        let why = "not connected yet".into();
        let down = State::Down { attempt: 0, failures: 0, not_before: Instant::now(), why };
        Arc::new(Self {
            connector,
            finder,
            state: watch::Sender::new(down),
            places: Semaphore::new(calls),
            readers: Readers::new(readers),
        })
    }

    /// Sends a call once and waits for its answer. With `on`, only to the server of that identity.
    pub(crate) async fn call(
        self: &Arc<Self>,
        command: &Cmd,
        on: Option<&str>,
        deadline: Instant,
    ) -> Result<Value, Fault> {
        let place = timeout_at(deadline, self.places.acquire()).await;
        let _place = place.ok().and_then(Result::ok).ok_or(Fault::unsent("too many calls are under way"))?;
        let live = self.live(deadline).await?;
        if on.is_some_and(|on| on != &*live.master.identity) {
            return Err(Fault::OtherServer);
        }
        let mut connection = live.master.connection.clone();
        let answer = match timeout_at(deadline, command.query_async::<Value>(&mut connection)).await {
            Ok(answer) => answer.map_err(|error| fault::of_call(&error)),
            Err(_) => Err(Fault::Lost("no answer in time".into())),
        };
        if let Err(fault) = &answer
            && fault.ends_the_connection()
        {
            self.retire(live.attempt, &fault.to_string());
        }
        answer
    }

    /// The connection; waits for one that is being made.
    pub(crate) async fn live(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Live>, Fault> {
        if let State::Up(live) = &*self.state.borrow() {
            return Ok(Arc::clone(live));
        }
        let mut states = self.state.subscribe();
        self.connect_if_due();
        loop {
            match &*states.borrow_and_update() {
                State::Up(live) => return Ok(Arc::clone(live)),
                State::Down { why, .. } => return Err(Fault::Unsent(Arc::clone(why))),
                State::Connecting { .. } => {}
            }
            // The sender is ours: it does not end.
            if !matches!(timeout_at(deadline, states.changed()).await, Ok(Ok(()))) {
                return Err(Fault::unsent("a connection is still being made"));
            }
        }
    }

    /// Stops using a connection. Calls that wait on it go on waiting; nobody else is sent there.
    pub(crate) fn retire(&self, attempt: u64, why: &str) {
        self.state.send_if_modified(|state| match state {
            State::Up(live) if live.attempt == attempt => {
                tracing::warn!(server = %live.master.node, why, "the connection to the cache is given up");
                *state = State::Down { attempt, failures: 0, not_before: Instant::now(), why: why.into() };
                true
            }
            State::Up(_) | State::Down { .. } | State::Connecting { .. } => false,
        });
    }

    /// Stops using a connection that turned out to lead to another server than it did.
    pub(crate) fn retire_live(&self, live: &Live, why: &str) {
        self.retire(live.attempt, why);
    }

    /// Begins an attempt, if none is under way and the pause after the last is over. It goes on by itself: no
    /// caller's deadline ends it.
    fn connect_if_due(self: &Arc<Self>) {
        let mut begun = None;
        self.state.send_if_modified(|state| match state {
            State::Down { attempt, failures, not_before, .. } if *not_before <= Instant::now() => {
                let (attempt, failures) = (*attempt + 1, *failures);
                *state = State::Connecting { attempt };
                begun = Some(Attempt { link: Arc::clone(self), number: attempt, failures });
                true
            }
            State::Down { .. } | State::Connecting { .. } | State::Up(_) => false,
        });
        if let Some(attempt) = begun {
            tokio::spawn(attempt.run());
        }
    }

    async fn find(self: &Arc<Self>, attempt: u64) -> Result<Master, Arc<str>> {
        let mut why: Arc<str> = "no host is named".into();
        for node in self.finder.nodes(&self.connector).await? {
            let link: Weak<Self> = Arc::downgrade(self);
            let when_ended = move || {
                if let Some(link) = link.upgrade() {
                    link.retire(attempt, "the server ended it");
                }
            };
            match self.connector.master(&node, when_ended).await {
                Ok(master) => return Ok(master),
                Err(fault) => why = fault,
            }
        }
        Err(why)
    }
}

/// An attempt to connect. However it ends, the link leaves the state of connecting.
struct Attempt {
    link: Arc<Link>,
    number: u64,
    failures: u32,
}

impl Attempt {
    async fn run(self) {
        match self.link.find(self.number).await {
            Ok(master) => {
                tracing::info!(server = %master.node, identity = &*master.identity, "connected to the cache");
                let live = Live { master, attempt: self.number };
                self.link.state.send_replace(State::Up(Arc::new(live)));
            }
            Err(why) => self.fail(why),
        }
    }

    fn fail(&self, why: Arc<str>) {
        if self.failures == 0 {
            tracing::warn!(why = &*why, "the cache cannot be reached");
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        let not_before = Instant::now() + pause / 2 + pause.mul_f64(fastrand::f64() / 2.0);
        let failures = self.failures.saturating_add(1);
        self.link.state.send_replace(State::Down { attempt: self.number, failures, not_before, why });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let is_open =
            matches!(&*self.link.state.borrow(), State::Connecting { attempt } if *attempt == self.number);
        if is_open {
            self.fail("the attempt to connect was given up".into());
        }
    }
}
