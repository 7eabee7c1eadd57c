//! Folders in which servers live, and the guard that clears them away when their owner has died.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::processes;

/// Waits for the death of process `$1`, then kills every process that works in folder `$2`, and removes
/// the folder with what is mounted in it.
/// Servers are looked for more than once, because a dying one may just be starting another process.
const GUARD: &str = r#"
trap '' INT TERM HUP
tail --pid="$1" -s 0.2 -f /dev/null
quiet=0
while [ "$quiet" -lt 2 ]; do
    quiet=$((quiet + 1))
    for process in /proc/[0-9]*; do
        case "$(readlink "$process/cwd")" in
            "$2"/*) kill -KILL "${process#/proc/}" && quiet=0 ;;
        esac
    done
done
grep -o " $2/[^ ]*" /proc/mounts | while read -r mounted; do umount -l "$mounted"; done
rm -rf "$2"
"#;

static GUARDED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The folder of everything that this user's tests leave between runs: locks of ports, folders of runs.
pub(crate) fn base() -> Result<PathBuf> {
    let base = std::env::temp_dir().join(format!("holdfast-testkit-{}", rustix::process::getuid().as_raw()));
    // The server's user, who may be another, has to pass through.
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&base)
        .with_context(|| base.display().to_string())?;
    Ok(base)
}

/// A new folder that belongs to this process and dies with it.
pub(crate) fn of_process(label: &str) -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    let folder = guarded(&format!("process-{pid}"), pid)?;
    let name = format!("{label}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = folder.join(name);
    DirBuilder::new().mode(0o755).create(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// The folder of this test run. Under nextest, where each test is a process, it is the runner's and dies with the
/// runner; otherwise the run is this process.
pub(crate) fn of_run() -> Result<PathBuf> {
    static RUN: LazyLock<(String, u32)> = LazyLock::new(|| match std::env::var("NEXTEST_RUN_ID") {
        Ok(run) => (run, parent_id()),
        Err(_) => (std::process::id().to_string(), std::process::id()),
    });
    let (run, owner) = &*RUN;
    guarded(&format!("run-{run}"), *owner)
}

/// A folder under [`base`] with a guard; whoever makes the folder starts its guard.
fn guarded(name: &str, owner: u32) -> Result<PathBuf> {
    let folder = base()?.join(name);
    let mut guarded = GUARDED.lock().unwrap_or_else(PoisonError::into_inner);
    if guarded.contains(&folder) {
        return Ok(folder);
    }
    if owner == std::process::id() && folder.exists() {
        // Our number was another's, whose guard was kept from its work, by a power cut for instance.
        processes::kill(&folder)?;
        remove(&folder)?;
    }
    match DirBuilder::new().mode(0o755).create(&folder) {
        Ok(()) => start_guard(owner, &folder)?,
        // Another process of the run was first.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| folder.display().to_string()),
    }
    guarded.push(folder.clone());
    Ok(folder)
}

fn start_guard(owner: u32, folder: &Path) -> Result<()> {
    // Its own group: what interrupts or kills the test's group must not end the guard.
    Command::new("sh")
        .args(["-c", GUARD, "holdfast-testkit-guard", &owner.to_string()])
        .arg(folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start the guard of the test servers (sh)")?;
    Ok(())
}

/// Removes a folder whose servers have ended.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    ensure!(folder.starts_with(base()?), "{} is not a folder of the test servers", folder.display());
    fs::remove_dir_all(folder).with_context(|| folder.display().to_string())
}
