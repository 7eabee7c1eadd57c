//! What benchmarks have measured, read from their JSON.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one run with one hot pool, or with even pools, has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The path.
    pub path: String,
    /// Buckets of the pool.
    pub buckets: u32,
    /// Nodes beside each other.
    #[serde(default = "one")]
    pub nodes: u32,
    /// Whether all orders were for one pool.
    #[serde(default = "yes")]
    pub hot: bool,
    /// Orders decided in a second, as fast as answers came.
    pub holds_rps: f64,
    /// Orders taken in a second, where they are decided later.
    #[serde(default)]
    pub accepted_rps: Option<f64>,
    /// How long placing took.
    #[serde(default)]
    pub p99_ms: Option<f64>,
    /// The same with half of that load.
    #[serde(default)]
    pub half_load_p99_ms: Option<f64>,
    /// Bytes of the database's log for one hold.
    #[serde(default)]
    pub log_bytes: Option<f64>,
    /// Orders that were stored before.
    #[serde(default)]
    pub stored_orders: u64,
    /// Whether it came by a schedule that waits for nobody and was carried without waiting, rather than as fast as answers
    /// came.
    #[serde(default)]
    pub carried: bool,
}

/// How much of what was measured as fast as answers came a sale may use at its peak: beyond it waits grow without end at
/// the smallest disturbance.
pub(super) const USABLE: f64 = 0.7;

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

impl Point {
    /// Orders that are answered in a second, held or queued.
    pub fn answered_rps(&self) -> f64 {
        self.accepted_rps.unwrap_or(self.holds_rps)
    }

    /// How much of it a sale may use.
    pub(super) const fn usable(&self) -> f64 {
        if self.carried { 1.0 } else { USABLE }
    }
}

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Figures of paths.
    pub points: Vec<Point>,
    /// Requests that one node answers in a second without doing anything.
    pub entry_rps: Option<f64>,
    /// Holds that the database takes in a second without HTTP.
    pub engine_rps: Option<f64>,
    /// The least number of processors that any of it was measured on.
    pub processors: Option<u64>,
    /// On what.
    pub stores: Vec<String>,
}

impl Measured {
    /// Takes in the JSON of `bench paths`, `bench buckets`, `bench cache` or `drill boundary`.
    pub fn read(&mut self, text: &str) -> Result<()> {
        let report: Value = serde_json::from_str(text).context("it is no JSON")?;
        let before = self.points.len();
        let at = |path: &str| report.pointer(path);
        if let Some(store) = at("/environment/store").and_then(Value::as_str)
            && !self.stores.iter().any(|known| known == store)
        {
            self.stores.push(store.to_owned());
        }
        let processors = at("/environment/processors").and_then(Value::as_u64);
        self.processors = self.processors.into_iter().chain(processors).min();
        for place in ["", "/ceilings"] {
            let figure = |name: &str| at(&format!("{place}/{name}")).and_then(Value::as_f64);
            self.entry_rps = higher(self.entry_rps, figure("constant_http_rps"));
            self.engine_rps = higher(self.engine_rps, figure("engine_holds_rps"));
        }
        for place in ["/paths", "/buckets", "/two_nodes/buckets"] {
            for point in at(place).and_then(Value::as_array).into_iter().flatten() {
                self.points.push(serde_json::from_value(point.clone()).context("figures of a path")?);
            }
        }
        self.points.extend(cached(&report));
        self.points.extend(carried(&report));
        ensure!(
            self.points.len() > before,
            "it has no figures of a path: give the JSON of bench paths, buckets, cache or of drill boundary"
        );
        Ok(())
    }
}

fn higher(known: Option<f64>, other: Option<f64>) -> Option<f64> {
    known.into_iter().chain(other).reduce(f64::max)
}

/// The figures of `bench cache`: what it accepts, and what it lands.
fn cached(report: &Value) -> Option<Point> {
    let figure = |name: &str| report.get(name).and_then(Value::as_f64);
    let (accepted, landed) = (figure("accepted_rps")?, figure("landed_rps")?);
    Some(Point {
        path: "cached".to_owned(),
        buckets: u32::try_from(report.get("buckets")?.as_u64()?).ok()?,
        nodes: 1,
        hot: true,
        holds_rps: landed,
        accepted_rps: Some(accepted),
        p99_ms: figure("accepted_p99_ms"),
        half_load_p99_ms: None,
        log_bytes: None,
        stored_orders: 0,
        carried: false,
    })
}

/// The load that a drill's boundary was found to carry.
fn carried(report: &Value) -> Option<Point> {
    let rps = report.pointer("/boundary/carries_rps")?.as_f64()?;
    let number = |path: &str| u32::try_from(report.pointer(path)?.as_u64()?).ok();
    let path = report.pointer("/runs/0/parameters/path")?.as_str()?;
    // Of several paths together nobody knows which carried how much.
    (!path.contains(',')).then_some(Point {
        path: path.to_owned(),
        buckets: number("/runs/0/parameters/buckets")?,
        nodes: number("/runs/0/environment/nodes")?,
        hot: number("/runs/0/parameters/pools")? == 1,
        holds_rps: rps,
        accepted_rps: None,
        p99_ms: None,
        half_load_p99_ms: None,
        log_bytes: None,
        stored_orders: report.pointer("/runs/0/parameters/stored_orders")?.as_u64()?,
        carried: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_benchmarks_are_read() {
        let mut measured = Measured::default();
        let paths = r#"{"environment":{"processors":2,"store":"PostgreSQL 15"},"ceilings":{"constant_http_rps":60000.0,
            "engine_holds_rps":44000.0},"paths":[{"path":"batched","buckets":1,"nodes":2,"hot":true,"pools":1,
            "stored_orders":0,"holds_rps":13000.0,"p99_ms":10.0,"log_bytes":1077.0,"new_field":1}],"advice":""}"#;
        measured.read(paths).unwrap();
        let cache = r#"{"environment":{"processors":4,"store":"PostgreSQL 15"},"buckets":1,"constant_http_rps":64000.0,
            "accepted_rps":26000.0,"accepted_p99_ms":23.0,"landed_rps":29000.0}"#;
        measured.read(cache).unwrap();
        assert_eq!(measured.points.len(), 2);
        assert_eq!(measured.points.iter().map(Point::answered_rps).collect::<Vec<_>>(), [13_000.0, 26_000.0]);
        assert_eq!((measured.entry_rps, measured.processors), (Some(64_000.0), Some(2)));
        assert_eq!(measured.stores, ["PostgreSQL 15"]);
        let boundary = r#"{"boundary":{"carries_rps":900.0,"stairs":[]},"runs":[{"environment":{"nodes":3},
            "parameters":{"path":"batched","buckets":1,"pools":1,"stored_orders":7}}]}"#;
        measured.read(boundary).unwrap();
        let carried = measured.points.last().unwrap();
        assert_eq!((carried.nodes, carried.holds_rps, carried.usable()), (3, 900.0, 1.0));
        for strange in ["", "{}", "[]", r#"{"paths":[{"path":"batched"}]}"#] {
            assert!(measured.read(strange).is_err(), "{strange}");
        }
    }
}
