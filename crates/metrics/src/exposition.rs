//! The exposition: every metric's name, help and numbers, written down in one place a metric, from which both
//! the text that is scraped and the list of metrics in the documentation are made.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use crate::instrument::{By, Counter, Gauge, Histogram, Label, Seen};

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only rises.
    Counter,
    /// It is what it is now.
    Gauge,
    /// A distribution.
    Histogram,
    /// Words.
    Info,
}

impl Kind {
    /// How it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    const fn metric_type(self) -> MetricType {
        match self {
            Self::Counter => MetricType::Counter,
            Self::Gauge => MetricType::Gauge,
            Self::Histogram => MetricType::Histogram,
            Self::Info => MetricType::Info,
        }
    }

    /// What the text format puts behind the name by itself.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

/// Numbers that can be shown.
pub trait Instrument {
    /// What it is.
    fn kind(&self) -> Kind;
    /// Its labels.
    fn labels(&self) -> Vec<&'static str>;
    /// Shows the numbers.
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result;
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, u64>> = None;

impl Instrument for Counter {
    fn kind(&self) -> Kind {
        Kind::Counter
    }

    fn labels(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_counter(&self.get(), NO_EXEMPLAR)
    }
}

impl Instrument for Gauge {
    fn kind(&self) -> Kind {
        Kind::Gauge
    }

    fn labels(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.get())
    }
}

impl Instrument for Seen {
    fn kind(&self) -> Kind {
        Kind::Histogram
    }

    fn labels(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram::<NoLabelSet>(self.sum(), self.count(), &self.steps(), None)
    }
}

impl Instrument for Histogram {
    fn kind(&self) -> Kind {
        Kind::Histogram
    }

    fn labels(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        Instrument::encode(&self.seen(), encoder)
    }
}

impl<L: Label, M: Instrument> Instrument for By<L, M> {
    fn kind(&self) -> Kind {
        self.iter().next().map_or(Kind::Gauge, |(_, instrument)| instrument.kind())
    }

    fn labels(&self) -> Vec<&'static str> {
        vec![L::NAME]
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        for (value, instrument) in self.iter() {
            instrument.encode(&mut encoder.encode_family(&[(L::NAME, value.text())])?)?;
        }
        Ok(())
    }
}

/// Numbers that are put together for one exposition.
#[derive(Debug)]
pub struct Rows<V> {
    kind: Kind,
    labels: &'static [&'static str],
    rows: Vec<(Vec<String>, V)>,
}

impl<V> Rows<V> {
    /// No rows yet.
    pub const fn new(kind: Kind, labels: &'static [&'static str]) -> Self {
        Self { kind, labels, rows: Vec::new() }
    }

    /// One more row, with a value for each label.
    pub fn add(&mut self, labels: &[&str], value: V) {
        self.rows.push((labels.iter().map(|&label| label.to_owned()).collect(), value));
    }
}

/// What a row may show.
pub trait Value {
    /// Shows it.
    fn encode(&self, kind: Kind, encoder: &mut MetricEncoder<'_>) -> fmt::Result;
}

impl Value for f64 {
    fn encode(&self, kind: Kind, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match kind {
            Kind::Counter => encoder.encode_counter(self, NO_EXEMPLAR),
            Kind::Gauge | Kind::Histogram | Kind::Info => encoder.encode_gauge(self),
        }
    }
}

impl Value for u64 {
    fn encode(&self, kind: Kind, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match kind {
            Kind::Counter => encoder.encode_counter(self, NO_EXEMPLAR),
            Kind::Gauge | Kind::Histogram | Kind::Info => encoder.encode_gauge(self),
        }
    }
}

impl Value for Seen {
    fn encode(&self, _: Kind, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        Instrument::encode(self, encoder)
    }
}

impl<V: Value> Instrument for Rows<V> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn labels(&self) -> Vec<&'static str> {
        self.labels.to_vec()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        for (values, value) in &self.rows {
            let labels: Vec<(&str, &str)> =
                self.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
            if labels.is_empty() {
                value.encode(self.kind, encoder)?;
            } else {
                value.encode(self.kind, &mut encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Words about the process.
#[derive(Debug)]
pub struct Words(pub Vec<(&'static str, String)>);

impl Instrument for Words {
    fn kind(&self) -> Kind {
        Kind::Info
    }

    fn labels(&self) -> Vec<&'static str> {
        self.0.iter().map(|(label, _)| *label).collect()
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        let labels: Vec<(&str, &str)> =
            self.0.iter().map(|(label, value)| (*label, value.as_str())).collect();
        encoder.encode_info(&labels)
    }
}

/// A metric, for the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its full name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: Vec<&'static str>,
    /// What it says.
    pub help: &'static str,
}

enum Out<'a> {
    Text(DescriptorEncoder<'a>),
    List(&'a mut Vec<Description>),
}

/// Where metrics are put down.
pub struct Exposition<'a>(Out<'a>);

impl Exposition<'_> {
    /// Puts down one metric: its full name, what it says, its numbers.
    pub fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        instrument: &dyn Instrument,
    ) -> fmt::Result {
        let kind = instrument.kind();
        match &mut self.0 {
            Out::List(list) => list.push(Description { name, kind, labels: instrument.labels(), help }),
            Out::Text(encoder) => {
                let name = name.strip_suffix(kind.suffix()).unwrap_or(name);
                let mut encoder = encoder.encode_descriptor(name, help, None, kind.metric_type())?;
                instrument.encode(&mut encoder)?;
            }
        }
        Ok(())
    }
}

/// A part of the node that shows metrics.
pub trait Exposed: Send + Sync + 'static {
    /// Puts down every metric of the part, always the same ones.
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result;
}

struct Part(Arc<dyn Exposed>);

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Part")
    }
}

impl Collector for Part {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.expose(&mut Exposition(Out::Text(encoder)))
    }
}

/// How the text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    PrometheusText,
}

impl Format {
    /// Every format; the first is the default.
    pub const ALL: [Self; 2] = [Self::OpenMetrics, Self::PrometheusText];

    /// Its media type, without parameters.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text",
            Self::PrometheusText => "text/plain",
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::PrometheusText => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Everything that a node shows.
pub struct Metrics {
    parts: Vec<Arc<dyn Exposed>>,
    registry: Registry,
}

impl Metrics {
    /// Of these parts.
    pub fn new(parts: Vec<Arc<dyn Exposed>>) -> Self {
        let mut registry = Registry::default();
        for part in &parts {
            registry.register_collector(Box::new(Part(Arc::clone(part))));
        }
        Self { parts, registry }
    }

    /// The numbers as they are now.
    pub fn text(&self, format: Format) -> Result<String, fmt::Error> {
        let mut text = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut text, &self.registry)?,
            Format::PrometheusText => prometheus_text::encode(&mut text, &self.registry)?,
        }
        Ok(text)
    }

    /// Every metric.
    pub fn describe(&self) -> Result<Vec<Description>, fmt::Error> {
        let mut list = Vec::new();
        for part in &self.parts {
            part.expose(&mut Exposition(Out::List(&mut list)))?;
        }
        Ok(list)
    }
}
