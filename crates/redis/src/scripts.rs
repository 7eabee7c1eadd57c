//! The scripts, each in a file of its own, and how they are called.

use redis::{Cmd, Script};

use crate::keys::Keys;

/// A script and the name by which a server that has it knows it.
#[derive(Debug)]
pub(crate) struct Stored {
    text: &'static str,
    hash: String,
}

impl Stored {
    fn new(text: &'static str) -> Self {
        Self { text, hash: Script::new(text).get_hash().to_owned() }
    }

    /// The call of a script that the server is thought to have.
    pub(crate) fn call(&self, keys: &Keys) -> Call<'_> {
        Call { script: self, arguments: Vec::new(), keys: keys.all.clone() }
    }
}

/// One call of a script, which can be sent with its text, too: a server loses its scripts at every restart.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    script: &'a Stored,
    keys: [String; 4],
    arguments: Vec<Vec<u8>>,
}

impl Call<'_> {
    pub(crate) fn arg(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string().into_bytes());
        self
    }

    /// By the script's name.
    pub(crate) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// With the script's text, which the server then keeps.
    pub(crate) fn with_text(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

/// All scripts.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) accept: Stored,
    pub(crate) look_up: Stored,
    pub(crate) settle: Stored,
    pub(crate) credit: Stored,
    pub(crate) position: Stored,
    pub(crate) drain: Stored,
    pub(crate) seed: Stored,
    pub(crate) open: Stored,
    pub(crate) forget: Stored,
    pub(crate) regroup: Stored,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            accept: Stored::new(include_str!("scripts/accept.lua")),
            look_up: Stored::new(include_str!("scripts/look_up.lua")),
            settle: Stored::new(include_str!("scripts/settle.lua")),
            credit: Stored::new(include_str!("scripts/credit.lua")),
            position: Stored::new(include_str!("scripts/position.lua")),
            drain: Stored::new(include_str!("scripts/drain.lua")),
            seed: Stored::new(include_str!("scripts/seed.lua")),
            open: Stored::new(include_str!("scripts/open.lua")),
            forget: Stored::new(include_str!("scripts/forget.lua")),
            regroup: Stored::new(include_str!("scripts/regroup.lua")),
        }
    }
}
