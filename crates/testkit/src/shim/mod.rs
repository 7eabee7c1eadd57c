//! A clock that jumps and flushes that are late, for programs that are started with it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command::{find, output};
use crate::folder::Folder;

/// What is loaded before a program's own libraries.
const SOURCE: &str = include_str!("shim.c");
/// Environment variable that names the folder of the C compiler.
const BIN_VARIABLE: &str = "HOLDFAST_TEST_CC_BIN";
/// Names the file that it reads.
const VARIABLE: &str = "TESTKIT_SHIM";
/// Where what it reads stands in the file.
const CLOCK_AT: u64 = 0;
const FLUSH_AT: u64 = 8;

/// What the programs that are started with its environment are told of the time, and how late their flushes are. It
/// changes while they run. Their steady clocks are the machine's.
#[derive(Debug)]
pub struct Shim {
    folder: Folder,
    said: File,
}

impl Shim {
    /// One that does nothing yet. It is compiled here, by the machine's C compiler.
    pub async fn build() -> Result<Self> {
        let folder = Folder::new("shim")?;
        let source = folder.path().join("shim.c");
        fs::write(&source, SOURCE).with_context(|| source.display().to_string())?;
        let mut compiler = Command::new(find("cc", BIN_VARIABLE, &[], "gcc libc6-dev")?);
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join("shim.so")).arg(&source);
        output(&mut compiler).await.context("the C compiler")?;
        let path = folder.path().join("said");
        let said = File::create(&path).with_context(|| path.display().to_string())?;
        said.write_all_at(&[0; 16], CLOCK_AT)?;
        // Servers run as another user.
        for name in ["said", "shim.so"] {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { folder, said })
    }

    /// What a program has to be started with.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![("LD_PRELOAD".to_owned(), path("shim.so")), (VARIABLE.to_owned(), path("said"))]
    }

    /// Sets the wall clock that many seconds forward, or back if less than 0; 0 is the machine's.
    pub fn step_clock(&self, seconds: i64) -> Result<()> {
        self.said.write_all_at(&seconds.to_ne_bytes(), CLOCK_AT).context("the shim's file")
    }

    /// Makes every flush that much later.
    pub fn delay_flushes(&self, delay: Duration) -> Result<()> {
        let micros = i64::try_from(delay.as_micros()).context("a delay")?;
        self.said.write_all_at(&micros.to_ne_bytes(), FLUSH_AT).context("the shim's file")
    }
}
