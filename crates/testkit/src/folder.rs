//! A folder in which the processes of one server live: they are found by it, and go with it.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{processes, scratch};

/// A folder whose processes are signalled all at once. Dropping it kills them and removes it; if this process dies
/// before, its guard does so.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty one. What is started with it, or a folder in it, as its working folder belongs to it.
    pub fn new(label: &str) -> Result<Self> {
        scratch::of_process(label).map(Self)
    }

    /// One that is there.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Kills all its processes in one instant, as seen by each of them, and waits until they are gone.
    pub fn kill(&self) -> Result<()> {
        processes::kill(&self.0)
    }

    /// Freezes all its processes: what they hold stays held, and nothing answers.
    pub fn pause(&self) -> Result<()> {
        processes::pause(&self.0).map(drop)
    }

    /// Lets frozen processes go on.
    pub fn resume(&self) -> Result<()> {
        processes::resume(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be cleared away now is left to the guard.
        if self.kill().is_ok() {
            let _ = scratch::remove(&self.0);
        }
    }
}
