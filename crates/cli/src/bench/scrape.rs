//! What a server under load says of itself: its `/metrics`, before and after.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One scrape: every series with its value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Asks a server.
    pub(crate) async fn take(address: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address.trim_start_matches("http://")).await?;
        let request =
            "GET /metrics HTTP/1.1\r\nhost: bench\r\naccept: text/plain\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        if !head.starts_with("HTTP/1.1 200 ") {
            bail!("/metrics answered {}", head.lines().next().unwrap_or_default());
        }
        Self::read(body)
    }

    fn read(text: &str) -> Result<Self> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let parsed = samples.map(|line| {
            let (series, value) = line.rsplit_once(' ').context("a sample without a value")?;
            Ok((series.to_owned(), value.parse().context("a sample without a number")?))
        });
        parsed.collect::<Result<_>>().map(Self)
    }

    fn value(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(0.0)
    }

    /// What a histogram has recorded since an earlier scrape. `labels` are written as the server does.
    pub(crate) fn times(&self, earlier: &Self, name: &str, labels: &str) -> Times {
        let since = |series: &str| self.value(series) - earlier.value(series);
        let plain = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let begin = if labels.is_empty() { "{".to_owned() } else { format!("{{{labels},") };
        let begin = format!("{name}_bucket{begin}le=\"");
        let steps = self.0.range(begin.clone()..).take_while(|(series, _)| series.starts_with(&begin));
        let mut steps: Vec<(f64, f64)> = steps
            .filter_map(|(series, _)| {
                let bound = series.strip_prefix(&begin)?.strip_suffix("\"}")?;
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                Some((bound, since(series)))
            })
            .collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        Times {
            count: since(&format!("{name}_count{plain}")),
            sum: since(&format!("{name}_sum{plain}")),
            steps,
        }
    }
}

/// What a histogram has recorded between two scrapes.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    pub(crate) count: f64,
    pub(crate) sum: f64,
    /// Upper bounds, with how many values lie below each.
    steps: Vec<(f64, f64)>,
}

impl Times {
    /// The mean; 0 of nothing.
    pub(crate) fn mean(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }

    /// A quantile, as even within its step as nobody knows better; 0 of nothing.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = self.count * share;
        let mut below = (0.0, 0.0);
        for step in &self.steps {
            if step.1 >= rank && rank > 0.0 {
                if step.0.is_infinite() {
                    return below.0;
                }
                let within = (rank - below.1) / (step.1 - below.1).max(1.0);
                return below.0 + (step.0 - below.0) * within;
            }
            below = *step;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_scrapes_tell_what_was_between() {
        let before = Scrape::read("w_sum{class=\"placing\"} 1\nw_count{class=\"placing\"} 2\n").unwrap();
        let after = "# TYPE w histogram\nw_sum{class=\"placing\"} 5\nw_count{class=\"placing\"} 12\n\
                     w_bucket{class=\"placing\",le=\"0.5\"} 9\nw_bucket{class=\"placing\",le=\"10.0\"} 10\n\
                     w_bucket{class=\"placing\",le=\"+Inf\"} 10\nw_bucket{class=\"settling\",le=\"0.5\"} 99\n";
        let times = Scrape::read(after).unwrap().times(&before, "w", "class=\"placing\"");
        assert_eq!((times.count, times.mean()), (10.0, 0.4));
        assert_eq!(times.quantile(0.9), 0.5);
        assert!((times.quantile(0.99) - 9.05).abs() < 0.01, "{}", times.quantile(0.99));
        assert_eq!(Scrape::default().times(&before, "none", "").quantile(0.5), 0.0);
    }
}
