//! A share of a load in a process of its own: it is told what to do on its standard input, a line each, and says when it
//! is done on its standard output.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{BUYERS_MAX, Load, ORDERS, Pace, Share, Way};
use crate::deployment::Kind;
use crate::history::{Exchange, read_exchanges, write_exchanges};
use crate::sale::Sale;
use crate::scenario::Scenario;

/// What a helper is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// What it is to do when it is told to go.
    Prepare(Box<Errand>),
    /// The load begins now.
    Go,
    /// Nobody new comes.
    Stop,
    /// Nobody asks again.
    End,
    /// Asks what became of those who wait, and writes its history down.
    Close,
}

/// What a helper says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Ready,
    Done(Pace),
    Closed,
}

/// A share of a load, in words that another process understands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Errand {
    pub(crate) scenario: String,
    pub(crate) kind: Option<String>,
    pub(crate) campaign: String,
    pub(crate) seed: u64,
    pub(crate) seconds: u32,
    pub(crate) orders_a_second: f64,
    pub(crate) nodes: Vec<String>,
    pub(crate) ca_pem: Option<Vec<u8>>,
    pub(crate) connections: usize,
    pub(crate) share: Share,
    pub(crate) history: PathBuf,
}

/// Does a share: the other end of [`Helper`]. The key, if one is needed, is not in the orders.
pub async fn help<R, W>(orders: R, mut says: W, key: Option<String>) -> Result<()>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut orders = orders.lines();
    let Some(Order::Prepare(errand)) = next(&mut orders).await? else {
        bail!("a helper was not told what to do")
    };
    let scenario =
        Scenario::named(&errand.scenario).context("a helper was told of a scenario that it does not know")?;
    let kind = errand.kind.as_deref().and_then(Kind::named);
    let pace = (errand.seconds, errand.orders_a_second);
    let sale = Sale::new(scenario, kind, errand.campaign.clone(), errand.seed, pace);
    let way = Way {
        nodes: errand.nodes.clone(),
        key,
        ca_pem: errand.ca_pem.clone(),
        connections: errand.connections,
        buyers_max: BUYERS_MAX,
        place_path: ORDERS,
    };
    say(&mut says, &Said::Ready).await?;
    // Whoever has nobody to work for any more ends.
    let Some(Order::Go) = next(&mut orders).await? else { return Ok(()) };
    let load = Load::new(sale, &way, errand.share)?;
    let pace = {
        let mut run = std::pin::pin!(load.run());
        loop {
            tokio::select! {
                pace = &mut run => break pace?,
                order = next(&mut orders) => match order? {
                    Some(Order::Stop) => load.stop(),
                    Some(Order::End) => load.end(),
                    Some(Order::Prepare(_) | Order::Go | Order::Close) => {}
                    None => return Ok(()),
                },
            }
        }
    };
    say(&mut says, &Said::Done(pace)).await?;
    loop {
        match next(&mut orders).await? {
            Some(Order::Close) => break,
            Some(Order::Prepare(_) | Order::Go | Order::Stop | Order::End) => {}
            None => return Ok(()),
        }
    }
    load.close().await?;
    write_exchanges(&errand.history, &load.into_history())?;
    say(&mut says, &Said::Closed).await
}

async fn next<R: AsyncBufRead + Unpin>(orders: &mut Lines<R>) -> Result<Option<Order>> {
    let Some(line) = orders.next_line().await? else { return Ok(None) };
    Ok(Some(serde_json::from_str(&line).context("a helper was told something that it does not understand")?))
}

async fn say<W: AsyncWrite + Unpin>(to: &mut W, what: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await?;
    Ok(())
}

/// A helper, as whoever leads the drill has it. It ends with it.
pub(crate) struct Helper {
    child: Child,
    orders: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
    history: PathBuf,
}

impl Helper {
    /// Starts one and waits until it is ready.
    pub(crate) async fn start(program: &Path, errand: Errand, key: Option<&str>) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["drill", "share"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        match key {
            Some(key) => command.env("HOLDFAST_KEY", key),
            None => command.env_remove("HOLDFAST_KEY"),
        };
        let mut child = command.spawn().context("a helper cannot be started")?;
        let mut orders = child.stdin.take().context("a helper has no standard input")?;
        let says = BufReader::new(child.stdout.take().context("a helper has no standard output")?).lines();
        let history = errand.history.clone();
        say(&mut orders, &Order::Prepare(Box::new(errand))).await?;
        let mut helper = Self { child, orders, says, history };
        match helper.hear().await? {
            Said::Ready => Ok(helper),
            Said::Done(_) | Said::Closed => bail!("a helper is done before it has begun"),
        }
    }

    /// Lets its load begin.
    pub(crate) async fn go(&mut self) -> Result<()> {
        say(&mut self.orders, &Order::Go).await
    }

    /// Lets nobody new come, and nobody ask again.
    pub(crate) async fn end(&mut self) -> Result<()> {
        say(&mut self.orders, &Order::Stop).await?;
        say(&mut self.orders, &Order::End).await
    }

    /// Waits until its buyers are done.
    pub(crate) async fn done(&mut self) -> Result<Pace> {
        match self.hear().await? {
            Said::Done(pace) => Ok(pace),
            Said::Ready | Said::Closed => bail!("a helper says what nobody asked for"),
        }
    }

    /// Lets it ask for those who wait; everything that it was told.
    pub(crate) async fn close(mut self) -> Result<Vec<Exchange>> {
        say(&mut self.orders, &Order::Close).await?;
        match self.hear().await? {
            Said::Closed => {}
            Said::Ready | Said::Done(_) => bail!("a helper says what nobody asked for"),
        }
        drop(self.orders);
        self.child.wait().await?;
        read_exchanges(&self.history)
    }

    async fn hear(&mut self) -> Result<Said> {
        let line = self.says.next_line().await?.context("a helper has died")?;
        serde_json::from_str(&line).context("a helper says what nobody understands")
    }
}
