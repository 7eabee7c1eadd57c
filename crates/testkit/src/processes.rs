//! The processes of a server, found by the folder in which they work, and signals to all of them at once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// Longest wait for a process to stand still.
const STILL_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a killed process to be gone.
const DEATH_WAIT_MAX: Duration = Duration::from_secs(10);

/// All living processes whose working folder is `folder` or lies in it.
pub(crate) fn within(folder: &Path) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // The process may have ended since; a zombie has no folder.
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Stops all processes of the folder, such that none runs any more and none is being born.
pub(crate) fn pause(folder: &Path) -> Result<Vec<Pid>> {
    let mut paused = Vec::new();
    loop {
        let found = within(folder)?;
        let fresh: Vec<Pid> = found.into_iter().filter(|pid| !paused.contains(pid)).collect();
        if fresh.is_empty() {
            return Ok(paused);
        }
        for pid in &fresh {
            signal(*pid, Signal::STOP)?;
        }
        for pid in fresh {
            wait_until_still(pid)?;
            paused.push(pid);
        }
    }
}

/// A signal is on its way for a while: a thread on another processor may still answer somebody meanwhile.
fn wait_until_still(pid: Pid) -> Result<()> {
    let begun = Instant::now();
    while !is_still(pid) {
        ensure!(begun.elapsed() < STILL_WAIT_MAX, "process {pid:?} does not stand still");
        std::thread::yield_now();
    }
    Ok(())
}

/// Whether every thread of a process is stopped, or has ended.
fn is_still(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else { return true };
    threads.flatten().all(|thread| {
        // The name of the program stands in brackets and may hold anything; the state is the word behind it.
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
    })
}

/// Lets paused processes run again.
pub(crate) fn resume(folder: &Path) -> Result<()> {
    within(folder)?.into_iter().try_for_each(|pid| signal(pid, Signal::CONT))
}

/// Kills all processes of the folder in one instant, as seen by each of them, and waits until they are gone.
pub(crate) fn kill(folder: &Path) -> Result<()> {
    // Paused first: a parent that sees its child die would begin to recover.
    for pid in pause(folder)? {
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => continue,
            other => other.context("pidfd_open")?,
        };
        signal(pid, Signal::KILL)?;
        let wait = Timespec::try_from(DEATH_WAIT_MAX).context("wait")?;
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&wait)).context("poll")?;
        ensure!(ended == 1, "process {pid:?} does not die");
    }
    Ok(())
}

pub(crate) fn signal(pid: Pid, signal: Signal) -> Result<()> {
    match kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("signal {signal:?} to {pid:?}")),
    }
}
