//! What the server measures of requests, and everything that the node shows, put together.

#[cfg(test)]
pub(crate) mod markdown;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use holdfast_engine::Engine;
use holdfast_metrics::{Counter, Exposed, Exposition, Histogram, Kind, Metrics, Process, Rows};
use holdfast_wire::Code;
use tokio::sync::Semaphore;

use crate::roles::{self, ROUTES};

/// Statuses that are counted one by one; any other would be a surprise, and is counted as such.
const STATUSES: [u16; 19] =
    [200, 201, 202, 204, 207, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 422, 429, 500, 503];

/// One route's requests.
#[derive(Debug)]
struct OfRoute {
    method: &'static str,
    path: &'static str,
    /// One a status, and one for any other.
    statuses: [Counter; STATUSES.len() + 1],
    times: Histogram,
}

impl OfRoute {
    fn new(method: &'static str, path: &'static str) -> Self {
        let statuses = std::array::from_fn(|_| Counter::default());
        Self { method, path, statuses, times: Histogram::of_times() }
    }
}

/// Metrics of requests. Everything is made at the start: to count a request costs a walk over the table of
/// routes and a few atomics.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    routes: Vec<OfRoute>,
    /// Requests that no route fits.
    unrouted: OfRoute,
    problems: Vec<(Code, Counter)>,
}

impl HttpMetrics {
    pub(crate) fn new() -> Self {
        Self {
            routes: ROUTES.iter().map(|route| OfRoute::new(route.method.as_str(), route.path)).collect(),
            unrouted: OfRoute::new("", ""),
            problems: Code::ALL.iter().map(|code| (*code, Counter::default())).collect(),
        }
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, method: &Method, path: &str, status: u16, took: Duration) {
        let route = roles::position(method, path).and_then(|position| self.routes.get(position));
        let route = route.unwrap_or(&self.unrouted);
        let known = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        if let Some(counter) = route.statuses.get(known) {
            counter.inc();
        }
        route.times.observe(took);
    }

    /// Counts the code of a problem.
    pub(crate) fn problem(&self, code: Code) {
        if let Some((_, counter)) = self.problems.iter().find(|(known, _)| *known == code) {
            counter.inc();
        }
    }
}

impl Exposed for HttpMetrics {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let mut requests = Rows::new(Kind::Counter, &["method", "route", "status"]);
        let mut times = Rows::new(Kind::Histogram, &["method", "route"]);
        for route in self.routes.iter().chain([&self.unrouted]) {
            let statuses = STATUSES.iter().map(ToString::to_string).chain(["other".to_owned()]);
            for (status, counter) in statuses.zip(&route.statuses).filter(|(_, counter)| counter.get() > 0) {
                requests.add(&[route.method, route.path, &status], counter.get());
            }
            let seen = route.times.seen();
            if seen.count() > 0 {
                times.add(&[route.method, route.path], seen);
            }
        }
        let mut problems = Rows::new(Kind::Counter, &["code"]);
        for (code, counter) in &self.problems {
            problems.add(&[code.as_str()], counter.get());
        }
        out.add(
            "holdfast_http_requests_total",
            "Requests that were answered, by route and status; without a route: no route fits. Routes and statuses \
             that never were are not shown.",
            &requests,
        )?;
        out.add(
            "holdfast_http_request_seconds",
            "From a request's head to its answer's head, by route.",
            &times,
        )?;
        out.add("holdfast_http_problems_total", "Answers that were problems, by their code.", &problems)
    }
}

/// Leave that is given out a bounded number of times, as semaphores keep it.
pub(crate) struct Permits(pub(crate) Vec<(&'static str, Arc<Semaphore>, usize)>);

impl Exposed for Permits {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let mut used = Rows::new(Kind::Gauge, &["kind"]);
        let mut most = Rows::new(Kind::Gauge, &["kind"]);
        for (kind, semaphore, max) in &self.0 {
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            used.add(&[kind], count(max.saturating_sub(semaphore.available_permits())));
            most.add(&[kind], count(*max));
        }
        out.add("holdfast_entry_permits_in_use", "Requests of a bounded kind that are under way.", &used)?;
        out.add("holdfast_entry_permits_max", "How many of the kind there may be.", &most)
    }
}

/// Everything that a node shows.
pub(crate) fn of_node(engine: &Engine, http: &Arc<HttpMetrics>, permits: Permits) -> Metrics {
    let mut parts = engine.exposed();
    parts.push(Arc::clone(http) as _);
    parts.push(Arc::new(permits));
    parts.push(Arc::new(Process::here()));
    Metrics::new(parts)
}
