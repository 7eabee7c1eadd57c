//! Where a master may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::Value;

use crate::address::Node;
use crate::connect::Connector;
use crate::fault;
use crate::replies::{items, number, text};

/// Who knows where a master is.
#[derive(Debug)]
pub(crate) enum Finder {
    /// It is one of these.
    Hosts(Vec<Node>),
    /// These Sentinels know it by a name.
    Sentinels {
        sentinels: Vec<Node>,
        master: String,
        /// The one that answered last is asked first.
        first: AtomicUsize,
    },
}

impl Finder {
    /// The nodes to try, in their order.
    pub(crate) async fn nodes(&self, connector: &Connector) -> Result<Vec<Node>, Arc<str>> {
        let (sentinels, master, first) = match self {
            Self::Hosts(hosts) => return Ok(hosts.clone()),
            Self::Sentinels { sentinels, master, first } => (sentinels, master, first),
        };
        let begin = first.load(Ordering::Relaxed);
        let mut why: Arc<str> = "no Sentinel is named".into();
        let asked = sentinels.iter().enumerate().cycle().skip(begin).take(sentinels.len());
        for (at, sentinel) in asked {
            match ask(connector, sentinel, master).await {
                Ok(node) => {
                    first.store(at, Ordering::Relaxed);
                    return Ok(vec![node]);
                }
                Err(fault) => why = fault,
            }
        }
        Err(why)
    }
}

async fn ask(connector: &Connector, sentinel: &Node, master: &str) -> Result<Node, Arc<str>> {
    let mut connection = connector.sentinel(sentinel).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    let answer = tokio::time::timeout(connector.timeout, command.query_async::<Value>(&mut connection)).await;
    let answer = answer.map_err(|_| format!("Sentinel {sentinel} does not answer"))?;
    let answer = answer.map_err(|error| fault::of_connecting(&error))?;
    let node = match items(&answer) {
        Some([host, port]) => text(host).zip(number(port)),
        _ => None,
    };
    let (host, port) = node.ok_or_else(|| format!("Sentinel {sentinel} knows no such master"))?;
    Ok(Node { host: host.to_owned(), port })
}
