//! Programs that are run to their end, and the user as whom servers run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// Pause between two looks at something that tells nobody when it is so.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for a server to come into a state.
const STATE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest run of a helper program, such as `initdb` or `psql`.
const RUN_MAX: Duration = Duration::from_secs(120);

/// The user as whom servers run if the tests run as root: PostgreSQL refuses to be root.
pub(crate) const SERVER_USER: &str = "postgres";

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command in `folder`, run as the server's user, cut off from our terminal.
pub(crate) fn as_server_user(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // Messages are in English and times in UTC wherever the tests run; nothing of the developer's own server enters.
    for name in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS", "PGSERVICE"]
    {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").current_dir(folder).kill_on_drop(true);
    command
}

/// Gives a folder to the server's user.
pub(crate) async fn give_to_server_user(folder: &Path) -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let mut command = Command::new("chown");
    command.arg(format!("{SERVER_USER}:")).arg(folder);
    output(&mut command).await.with_context(|| {
        format!(
            "as root the tests run servers as the user `{SERVER_USER}` (Debian: apt-get install postgresql)"
        )
    })?;
    Ok(())
}

/// Runs a command to its end; its standard output. A failure carries what the program said.
pub(crate) async fn output(command: &mut Command) -> Result<String> {
    let name = format!("{:?}", command.as_std());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = tokio::time::timeout(RUN_MAX, command.output());
    let output = run.await.with_context(|| format!("{name} does not end"))?.with_context(|| name.clone())?;
    if !output.status.success() {
        bail!(
            "{name}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Looks a program up: in the folder that `variable` names, else in `folders`, else in PATH.
pub(crate) fn find(program: &str, variable: &str, folders: &[PathBuf], package: &str) -> Result<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = folders.to_vec();
    places.extend(std::env::split_paths(&path));
    // Debian keeps servers where an ordinary user's PATH does not look.
    places.extend([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    let places = named.map_or(places, |folder| vec![folder]);
    places.iter().map(|place| place.join(program)).find(|file| file.is_file()).with_context(|| {
        format!(
            "these tests need `{program}` (Debian: apt-get install {package}), or {variable} set to the folder \
             that has it"
        )
    })
}

/// Looks until `is_so` says yes. For states of servers that nothing announces; the wait is bounded.
pub(crate) async fn wait_until<L>(what: &str, is_so: impl Fn() -> L) -> Result<()>
where
    // No async closure: what it returns could not be sent to another thread in every context.
    L: Future<Output = Result<bool>>,
{
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let wait = async {
        while !is_so().await? {
            looks.tick().await;
        }
        Ok(())
    };
    tokio::time::timeout(STATE_WAIT_MAX, wait).await.with_context(|| format!("waited in vain for {what}"))?
}
