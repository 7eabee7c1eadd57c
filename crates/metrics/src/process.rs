//! What the process takes of the machine, as the kernel tells it.

use std::fmt;
use std::fs;
use std::time::Instant;

use crate::exposition::{Exposed, Exposition, Kind, Rows, Words};

/// The process, since when it is measured.
#[derive(Debug)]
pub struct Process {
    started: Instant,
}

impl Process {
    /// This process.
    pub fn here() -> Self {
        Self { started: Instant::now() }
    }
}

/// What `/proc` says now; 0 where it says nothing.
#[derive(Debug, Default)]
struct Usage {
    resident_bytes: u64,
    threads: u64,
    cpu_seconds: f64,
    open_fds: u64,
}

impl Usage {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let open_fds = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self {
            resident_bytes: number("VmRSS").saturating_mul(1_024),
            threads: number("Threads"),
            cpu_seconds: cpu_seconds().unwrap_or(0.0),
            open_fds: u64::try_from(open_fds).unwrap_or(u64::MAX),
        }
    }
}

/// User and system time of all threads.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process stands in brackets and may hold anything.
    let fields: Vec<&str> = stat.get(stat.rfind(')')?..)?.split_whitespace().collect();
    let ticks = fields.get(12)?.parse::<u32>().ok()?.checked_add(fields.get(13)?.parse().ok()?)?;
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(f64::from(ticks) / f64::from(per_second))
}

impl Exposed for Process {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let usage = Usage::now();
        let words = Words(vec![("version", env!("CARGO_PKG_VERSION").to_owned())]);
        out.add("holdfast_build_info", "The version that runs.", &words)?;
        let gauge = |value: u64| {
            let mut rows = Rows::new(Kind::Gauge, &[]);
            rows.add(&[], value);
            rows
        };
        out.add(
            "holdfast_process_resident_memory_bytes",
            "Resident memory of the process.",
            &gauge(usage.resident_bytes),
        )?;
        out.add("holdfast_process_open_fds", "Open file descriptors.", &gauge(usage.open_fds))?;
        out.add("holdfast_process_threads", "Threads.", &gauge(usage.threads))?;
        let mut cpu = Rows::new(Kind::Counter, &[]);
        cpu.add(&[], usage.cpu_seconds);
        out.add("holdfast_process_cpu_seconds_total", "User and system time of the process.", &cpu)?;
        let mut uptime = Rows::new(Kind::Gauge, &[]);
        uptime.add(&[], self.started.elapsed().as_secs_f64());
        out.add("holdfast_process_uptime_seconds", "How long the node runs.", &uptime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_the_process_takes() {
        let usage = Usage::now();
        assert!(usage.resident_bytes > 100_000 && usage.threads > 0 && usage.open_fds > 0, "{usage:?}");
        assert!(cpu_seconds().is_some());
    }
}
