//! Ports that stay ours: a server that is killed and restarted must find its own again.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};

use crate::scratch;

/// Below the range from which the kernel gives ports to clients, so that no connection takes one of ours.
const FIRST: u16 = 21_000;
const COUNT: u16 = 2_000;

/// A port on 127.0.0.1, reserved among all tests of this machine's user by a lock on a file as long as this lives.
#[derive(Debug)]
pub struct Port {
    /// Its number.
    pub number: u16,
    _lock: File,
}

impl Port {
    /// A free one.
    pub fn reserve() -> Result<Self> {
        let folder = scratch::base()?.join("ports");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        // Processes begin at different places, so that they seldom meet.
        let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
        for step in 0..COUNT {
            let number = FIRST + (start + step) % COUNT;
            let path = folder.join(number.to_string());
            let lock = File::create(&path).with_context(|| path.display().to_string())?;
            let is_ours = lock.try_lock().is_ok();
            if is_ours && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port in {FIRST}..{}", FIRST + COUNT)
    }
}
