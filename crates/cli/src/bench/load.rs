//! A lean load generator: raw HTTP/1.1 over kept connections, on one thread of its own, so that what is
//! measured is the server and not the client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// What the requests of one measurement are.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    /// Host and port of each node; connections are shared out among them.
    pub(crate) addresses: Vec<String>,
    /// The path.
    pub(crate) path: &'static str,
    /// Of which campaign.
    pub(crate) campaign: String,
    /// What is bought; of several SKUs, what they begin with.
    pub(crate) sku: &'static str,
    /// How many SKUs there are.
    pub(crate) skus: u32,
    /// The status that counts.
    pub(crate) status: u16,
    /// One that may come instead, and does not count; none: anything else ends the measurement.
    pub(crate) instead: Option<u16>,
    /// Where the order numbers begin; all of them are random, 128 bits.
    pub(crate) seed: u64,
}

/// When the requests are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// The next one when the last was answered.
    Closed,
    /// So many a second over all connections, whether answered or not: a late one waits, and its wait counts.
    Open(f64),
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Answers a second that count.
    pub(crate) rps: f64,
    /// Latencies in microseconds, sorted.
    latencies: Vec<u64>,
}

impl Measured {
    /// Takes in what was measured after it.
    pub(crate) fn add(&mut self, later: Self) {
        self.rps = later.rps;
        self.latencies.extend(later.latencies);
        self.latencies.sort_unstable();
    }

    /// How many answers.
    #[expect(clippy::cast_precision_loss, reason = "a count of answers, far below 2^52")]
    pub(crate) fn count(&self) -> f64 {
        self.latencies.len() as f64
    }

    /// The mean latency in milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "microseconds, far below 2^52")]
    pub(crate) fn mean_ms(&self) -> f64 {
        self.latencies.iter().sum::<u64>() as f64 / self.count().max(1.0) / 1_000.0
    }

    /// A latency in milliseconds.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        percentile(&self.latencies, percent) / 1_000.0
    }
}

/// A value of a sorted list.
pub(crate) fn percentile(sorted: &[u64], percent: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank in a list that fits in memory"
    )]
    let rank = ((sorted.len() as f64 * percent / 100.0).ceil() as usize).saturating_sub(1);
    #[expect(clippy::cast_precision_loss, reason = "microseconds, far below 2^52")]
    sorted.get(rank).or(sorted.last()).map_or(f64::NAN, |value| *value as f64)
}

/// Sends requests over so many connections for so long. Runs on a thread of its own.
pub(crate) async fn run(
    requests: Requests,
    connections: usize,
    pace: Pace,
    duration: Duration,
) -> Result<Measured> {
    let (answer, measured) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("load".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = runtime
            .map_err(anyhow::Error::from)
            .and_then(|runtime| runtime.block_on(run_here(requests, connections, pace, duration)));
        // Nobody waits any more only if the whole benchmark was given up.
        let _ = answer.send(result);
    })?;
    measured.await.context("the load generator died")?
}

async fn run_here(
    requests: Requests,
    connections: usize,
    pace: Pace,
    duration: Duration,
) -> Result<Measured> {
    let requests = Arc::new(requests);
    // All of them stand before the clock starts: a schedule that runs while connections are made measures those.
    let mut clients = Vec::with_capacity(connections);
    for number in 0..connections {
        clients.push(Client::connect(Arc::clone(&requests), number).await?);
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        tasks.spawn(client.drive(start, schedule(pace, connections, number), duration));
    }
    let (mut latencies, mut instead) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (of_one, not_counted) = done??;
        latencies.extend(of_one);
        instead += not_counted;
    }
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "a count of answers, far below 2^52")]
    let rps = latencies.len().saturating_sub(instead) as f64 / seconds;
    Ok(Measured { rps, latencies })
}

/// First moment and interval of one connection; none: as fast as answers come.
fn schedule(pace: Pace, connections: usize, number: usize) -> Option<(Duration, Duration)> {
    match pace {
        Pace::Closed => None,
        Pace::Open(rps) => {
            #[expect(clippy::cast_precision_loss, reason = "a count of connections")]
            let (connections, number) = (connections as f64, number as f64);
            let interval = Duration::from_secs_f64(connections / rps.max(1.0));
            Some((interval.mul_f64(number / connections), interval))
        }
    }
}

/// One connection.
struct Client {
    stream: TcpStream,
    requests: Arc<Requests>,
    random: fastrand::Rng,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(requests: Arc<Requests>, number: usize) -> Result<Self> {
        let address = requests.addresses.get(number % requests.addresses.len().max(1));
        let stream = TcpStream::connect(address.context("no server")?).await;
        let stream = stream.context("the server does not listen")?;
        stream.set_nodelay(true)?;
        let seed = requests.seed.wrapping_add(u64::try_from(number)?.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Ok(Self {
            stream,
            requests,
            random: fastrand::Rng::with_seed(seed),
            buffer: vec![0; ANSWER_BYTES_MAX],
        })
    }

    async fn drive(
        mut self,
        start: Instant,
        schedule: Option<(Duration, Duration)>,
        duration: Duration,
    ) -> Result<(Vec<u64>, usize)> {
        let (mut latencies, mut instead) = (Vec::new(), 0);
        let mut due = schedule.map(|(first, _)| start + first);
        while start.elapsed() < duration {
            let mut begun = Instant::now();
            if let Some(due) = due {
                if due >= start + duration {
                    break;
                }
                if begun < due {
                    // The connection was free in time: what the timer is late by is not the server's.
                    tokio::time::sleep_until(due.into()).await;
                    begun = Instant::now();
                } else {
                    // It was not: the wait counts, though nobody could send.
                    begun = due;
                }
            }
            instead += usize::from(!self.exchange().await?);
            latencies.push(u64::try_from(begun.elapsed().as_micros())?);
            due = due.zip(schedule).map(|(due, (_, interval))| due + interval);
        }
        Ok((latencies, instead))
    }

    /// What this order buys: of many SKUs each as often as another.
    fn sku(&self, number: u128) -> Cow<'static, str> {
        match number.checked_rem(u128::from(self.requests.skus)) {
            Some(which) if self.requests.skus > 1 => Cow::Owned(format!("{}-{which}", self.requests.sku)),
            Some(_) | None => Cow::Borrowed(self.requests.sku),
        }
    }

    /// Sends one request; whether its answer counts.
    async fn exchange(&mut self) -> Result<bool> {
        let number = self.random.u128(..);
        let body = format!(
            r#"{{"campaign_id":"{}","order_no":"{number:032x}","account":"account-{:06x}","lines":[{{"sku":"{}","quantity":1}}]}}"#,
            self.requests.campaign,
            number >> 104,
            self.sku(number)
        );
        let request = format!(
            "POST {} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.requests.path,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        let status = self.read_answer().await?;
        let counts = status == self.requests.status;
        if !counts && Some(status) != self.requests.instead {
            bail!("{} answered {status} instead of {}", self.requests.path, self.requests.status);
        }
        Ok(counts)
    }

    /// Reads one answer whole; its status.
    async fn read_answer(&mut self) -> Result<u16> {
        let mut length = 0;
        loop {
            let free = self.buffer.get_mut(length..).unwrap_or_default();
            let read = self.stream.read(free).await?;
            if read == 0 {
                bail!("the server closed the connection");
            }
            length += read;
            let text = self.buffer.get(..length).unwrap_or_default();
            let Some(head) = text.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let headers = std::str::from_utf8(text.get(..head).unwrap_or_default())?;
            let body: usize = headers
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .context("an answer without its length")?
                .parse()?;
            if length >= head + 4 + body {
                return headers.get(9..12).unwrap_or_default().parse().context("a status");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 50.0), 50.0);
        assert_eq!(percentile(&sorted, 99.0), 99.0);
        assert_eq!(percentile(&sorted, 100.0), 100.0);
        assert!(percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn an_open_schedule_spreads_its_connections() {
        let (first, interval) = schedule(Pace::Open(100.0), 10, 3).unwrap();
        assert_eq!((first, interval), (Duration::from_millis(30), Duration::from_millis(100)));
        assert!(schedule(Pace::Closed, 10, 3).is_none());
    }
}
