//! A server program that runs in the foreground in a folder of its own: PgBouncer, Redis, NATS.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::command::{as_server_user, give_to_server_user, wait_until};
use crate::folder::Folder;
use crate::port::Port;
use crate::processes;

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) folder: Folder,
    pub(crate) port: Port,
    program: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Daemon {
    /// Reserves a folder and a port; [`Daemon::start`] starts the program.
    pub(crate) async fn new(program: PathBuf) -> Result<Self> {
        let label = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = Folder::new(&label)?;
        give_to_server_user(folder.path()).await?;
        Ok(Self { folder, port: Port::reserve()?, program, child: Mutex::new(None) })
    }

    /// Starts the program and waits until it takes connections.
    pub(crate) async fn start(&self, arguments: &[OsString]) -> Result<()> {
        let log = || File::options().create(true).append(true).open(self.log_file());
        let mut command = as_server_user(&self.program, self.folder.path());
        command.args(arguments).stdin(Stdio::null()).stdout(log()?).stderr(log()?);
        let child = command.spawn().with_context(|| self.program.display().to_string())?;
        *self.child() = Some(child);
        wait_until("the server to take connections", || async {
            let ended = self.child().as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                bail!("{} ended at once: {status}\n{}", self.program.display(), self.log());
            }
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number)).await.is_ok())
        })
        .await
        .with_context(|| self.log())
    }

    /// Asks the program to end, and waits until it has.
    pub(crate) async fn stop(&self) -> Result<()> {
        let child = self.child().take();
        for pid in processes::within(self.folder.path())? {
            processes::signal(pid, Signal::TERM)?;
        }
        if let Some(mut child) = child {
            child.wait().await?;
        }
        Ok(())
    }

    pub(crate) fn kill(&self) -> Result<()> {
        self.folder.kill()
    }

    pub(crate) fn pause(&self) -> Result<()> {
        self.folder.pause()
    }

    pub(crate) fn resume(&self) -> Result<()> {
        self.folder.resume()
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that belongs to the program.
    pub(crate) async fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.file(name);
        fs::write(&path, content).with_context(|| path.display().to_string())?;
        give_to_server_user(&path).await?;
        Ok(path)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a file or folder that may not be there.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}
