//! A disk that can be full.

use std::ffi::CString;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{StatVfs, statvfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

use crate::folder::Folder;

/// How often it is tried to make the disk as small as what is on it, while somebody writes.
const TRIES_MAX: u32 = 100;

/// A file system in memory of a size that can change. Only root may have one. It is gone when it is dropped, or when
/// this process has died.
#[derive(Debug)]
pub struct Disk {
    folder: Folder,
    bytes: u64,
}

impl Disk {
    /// An empty one that everybody may write to.
    pub fn mount(bytes: u64) -> Result<Self> {
        let folder = Folder::new("disk")?;
        let size = CString::new(format!("size={bytes},mode=1777"))?;
        mount("tmpfs", folder.path(), "tmpfs", MountFlags::empty(), &*size)
            .map_err(|error| anyhow!("a file system can be mounted by root only: {error}"))?;
        Ok(Self { folder, bytes })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no free space. What is there stays and can be written over.
    pub fn fill(&self) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let StatVfs { f_blocks, f_bfree, f_frsize, .. } = statvfs(self.path())?;
            match self.resize((f_blocks - f_bfree) * f_frsize) {
                // It has grown since.
                Err(Errno::INVAL) => {}
                other => return other.context("the disk cannot be filled"),
            }
        }
        Err(anyhow!("the disk grows faster than it can be filled"))
    }

    /// Has its free space again.
    pub fn clear(&self) -> Result<()> {
        self.resize(self.bytes).context("the disk cannot be cleared")
    }

    fn resize(&self, bytes: u64) -> Result<(), Errno> {
        // A size of 0 is none at all: unlimited.
        let size = CString::new(format!("size={}", bytes.max(1))).map_err(|_| Errno::INVAL)?;
        mount_remount(self.path(), MountFlags::empty(), &*size)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever still has files on it keeps them until it has closed them.
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}
