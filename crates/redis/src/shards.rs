//! The masters of a cache, and which of them keeps a slot.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::address::{Form, Node};
use crate::connect::Connector;
use crate::fault::{self, Fault};
use crate::finder::Finder;
use crate::link::Link;
use crate::replies::{items, number, text};

/// Least time between two looks at which master keeps which slot.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Most masters of a Cluster.
const MASTERS_MAX: usize = 1_000;

/// Every master that buckets may lie on.
#[derive(Debug)]
pub(crate) enum Masters {
    One(Arc<Link>),
    Cluster(Arc<Cluster>),
}

/// A Redis Cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    connector: Arc<Connector>,
    seeds: Vec<Node>,
    /// What was seen last; none: nothing yet.
    seen: watch::Sender<Option<Arc<Seen>>>,
    is_looking: AtomicBool,
    links: Mutex<HashMap<Node, Arc<Link>>>,
    calls: usize,
    readers: usize,
}

#[derive(Debug)]
struct Seen {
    at: Instant,
    masters: Result<Vec<Range>, Arc<str>>,
    /// Every server of the last view that there was, replicas too: the hosts of the address may all be gone.
    nodes: Vec<Node>,
}

/// Slots that a master keeps, both ends included.
#[derive(Debug, Clone)]
struct Range {
    first: u16,
    last: u16,
    node: Node,
    replicas: Vec<Node>,
}

impl Seen {
    fn masters(&self) -> Result<&[Range], Fault> {
        self.masters.as_deref().map_err(|why| Fault::Unsent(Arc::clone(why)))
    }
}

impl Masters {
    pub(crate) fn new(connector: Connector, calls: usize, readers: usize) -> Self {
        let connector = Arc::new(connector);
        let hosts = connector.address().hosts.clone();
        let finder = match connector.address().form.clone() {
            Form::Single => Finder::Hosts(hosts),
            Form::Sentinel { master } => Finder::Sentinels { sentinels: hosts, master, first: 0.into() },
            Form::Cluster => {
                return Self::Cluster(Arc::new(Cluster {
                    connector,
                    seeds: hosts,
                    seen: watch::Sender::new(None),
                    is_looking: AtomicBool::new(false),
                    links: Mutex::default(),
                    calls,
                    readers,
                }));
            }
        };
        Self::One(Link::new(connector, finder, calls, readers))
    }

    /// The link to the master that keeps a slot, as far as is known.
    pub(crate) async fn of_slot(&self, slot: u16, deadline: Instant) -> Result<Arc<Link>, Fault> {
        match self {
            Self::One(link) => Ok(Arc::clone(link)),
            Self::Cluster(cluster) => cluster.of_slot(slot, deadline).await,
        }
    }

    /// The links to all masters, as far as is known.
    pub(crate) async fn all(&self, deadline: Instant) -> Result<Vec<Arc<Link>>, Fault> {
        match self {
            Self::One(link) => Ok(vec![Arc::clone(link)]),
            Self::Cluster(cluster) => cluster.all(deadline).await,
        }
    }

    /// Looks again which master keeps which slot, after one said or seemed not to. Whether there is a new view.
    pub(crate) async fn look_again(&self, deadline: Instant) -> bool {
        match self {
            Self::One(_) => false,
            Self::Cluster(cluster) => cluster.look(deadline).await.is_some(),
        }
    }
}

impl Cluster {
    async fn of_slot(self: &Arc<Self>, slot: u16, deadline: Instant) -> Result<Arc<Link>, Fault> {
        let seen = self.view(deadline).await?;
        let masters = seen.masters()?;
        let range = masters.iter().find(|range| (range.first..=range.last).contains(&slot));
        let Some(range) = range else {
            self.begin_to_look();
            return Err(Fault::unsent("no master keeps the slot"));
        };
        Ok(self.link_to(&range.node, masters))
    }

    async fn all(self: &Arc<Self>, deadline: Instant) -> Result<Vec<Arc<Link>>, Fault> {
        let seen = self.view(deadline).await?;
        let masters = seen.masters()?;
        let nodes: HashSet<&Node> = masters.iter().map(|range| &range.node).collect();
        Ok(nodes.into_iter().map(|node| self.link_to(node, masters)).collect())
    }

    /// The view that there is, or the next one if it could not be had.
    async fn view(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Seen>, Fault> {
        let seen = self.seen.borrow().clone();
        match seen {
            Some(seen) if seen.masters.is_ok() => Ok(seen),
            _ => {
                let seen = self.look(deadline).await;
                seen.ok_or(Fault::unsent("the Cluster's slots are still being asked for"))
            }
        }
    }

    fn link_to(&self, node: &Node, masters: &[Range]) -> Arc<Link> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|node, _| masters.iter().any(|range| range.node == *node));
        let link = links.entry(node.clone()).or_insert_with(|| {
            let finder = Finder::Hosts(vec![node.clone()]);
            Link::new(Arc::clone(&self.connector), finder, self.calls, self.readers)
        });
        Arc::clone(link)
    }

    /// The next view, or the present one if it was taken just now; none: it does not come in time.
    async fn look(self: &Arc<Self>, deadline: Instant) -> Option<Arc<Seen>> {
        let mut views = self.seen.subscribe();
        let present = views.borrow_and_update().clone();
        if let Some(seen) = present
            && seen.at.elapsed() < LOOK_PAUSE
        {
            return Some(seen);
        }
        self.begin_to_look();
        timeout_at(deadline, views.changed()).await.ok()?.ok()?;
        views.borrow().clone()
    }

    /// Begins a look by itself, unless one is under way: no caller's deadline ends it.
    fn begin_to_look(self: &Arc<Self>) {
        if !self.is_looking.swap(true, Ordering::AcqRel) {
            let looking = Looking(Arc::clone(self));
            tokio::spawn(async move {
                let before =
                    looking.0.seen.borrow().as_ref().map(|seen| seen.nodes.clone()).unwrap_or_default();
                let masters = looking.0.ask_any(&before).await;
                let of_range = |range: &Range| [vec![range.node.clone()], range.replicas.clone()].concat();
                let nodes =
                    masters.as_ref().map_or(before, |ranges| ranges.iter().flat_map(of_range).collect());
                looking.0.seen.send_replace(Some(Arc::new(Seen { at: Instant::now(), masters, nodes })));
            });
        }
    }

    /// Asks the servers that were there before, then the hosts of the address, until one answers.
    async fn ask_any(&self, before: &[Node]) -> Result<Vec<Range>, Arc<str>> {
        let mut why: Arc<str> = "no host is named".into();
        for node in before.iter().chain(&self.seeds) {
            match self.ask(node).await {
                Ok(ranges) => return Ok(ranges),
                Err(fault) => why = fault,
            }
        }
        Err(why)
    }

    async fn ask(&self, node: &Node) -> Result<Vec<Range>, Arc<str>> {
        let mut connection = self.connector.any(node).await?;
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let answer =
            tokio::time::timeout(self.connector.timeout, command.query_async::<Value>(&mut connection)).await;
        let answer = answer.map_err(|_| format!("{node} does not answer"))?;
        let answer = answer.map_err(|error| fault::of_connecting(&error))?;
        let ranges = items(&answer).and_then(|ranges| {
            ranges.iter().take(MASTERS_MAX).map(|range| read_range(range, node)).collect::<Option<Vec<_>>>()
        });
        match ranges {
            Some(ranges) if !ranges.is_empty() => Ok(ranges),
            _ => Err(format!("{node} is no part of a working Cluster").into()),
        }
    }
}

/// `[first, last, [host, port, …], replicas…]`; an empty host is the one that was asked.
fn read_range(value: &Value, asked: &Node) -> Option<Range> {
    let [first, last, master, replicas @ ..] = items(value)? else { return None };
    let node = |value: &Value| {
        let [host, port, ..] = items(value)? else { return None };
        let host = text(host).filter(|host| !host.is_empty()).unwrap_or(&asked.host);
        Some(Node { host: host.to_owned(), port: number(port)? })
    };
    let replicas = replicas.iter().filter_map(node).collect();
    Some(Range { first: number(first)?, last: number(last)?, node: node(master)?, replicas })
}

/// A look under way. However it ends, another can begin.
struct Looking(Arc<Cluster>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_looking.store(false, Ordering::Release);
    }
}
