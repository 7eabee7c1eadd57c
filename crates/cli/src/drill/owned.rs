//! Somebody's own deployment: only its owner can break it, by commands that the owner names.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use holdfast_drill::{Deployment, Fault, InvariantVerdict, Kind};
use tokio::process::Command;

use super::private::kinds;
use super::target::Targets;
use crate::database::Url;
use crate::serve::Hidden;
use crate::verify;

/// How long a command may run.
const COMMAND_MAX: Duration = Duration::from_secs(120);
/// How much of what it said is shown when it fails: the end of it.
const SHOWN_BYTES: u64 = 4_096;

/// How somebody's own deployment is reached, judged and broken
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Owned {
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// What that deployment is made of; without it every path is sold on, and every fault of the scenario wanted
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    kind: Option<Kind>,
    /// The authority of that deployment, so that its rows are judged too, as `verify` does; it is only read
    #[arg(long, value_name = "URL")]
    database: Option<Hidden>,
    /// How its owner lets a fault begin: the command is run here, by `sh -c`. Once for each fault
    #[arg(long = "fault", value_name = "NAME=COMMAND", value_parser = command)]
    faults: Vec<(Fault, String)>,
    /// How its owner ends the fault again; a fault without it heals by itself
    #[arg(long = "heal", value_name = "NAME=COMMAND", value_parser = command)]
    heals: Vec<(Fault, String)>,
}

/// Reads `NAME=COMMAND`.
fn command(text: &str) -> Result<(Fault, String), String> {
    let (name, command) = text
        .split_once('=')
        .filter(|(_, command)| !command.trim().is_empty())
        .ok_or("write it as NAME=COMMAND, such as kill-node='ssh shop-1 systemctl kill -s KILL holdfast'")?;
    Ok((fault(name)?, command.to_owned()))
}

/// The fault with a name.
pub(crate) fn fault(name: &str) -> Result<Fault, String> {
    Fault::named(name).ok_or_else(|| {
        format!("there is no fault {name}; there are {}", Fault::ALL.map(Fault::name).join(", "))
    })
}

impl Owned {
    /// The deployment. What is named twice, or healed and never broken, is an error.
    pub(crate) fn deployment(self) -> Result<OwnedDeployment> {
        let begins = each_once("--fault", self.faults)?;
        let ends = each_once("--heal", self.heals)?;
        if let Some(fault) = ends.keys().find(|fault| !begins.contains_key(fault)) {
            bail!("--heal {}: no --fault lets it begin", fault.name());
        }
        let database = self.database.map(|Hidden(url)| url);
        // What is wrong with it is known before any load.
        database.as_deref().map(Url::parse).transpose()?;
        let (targets, key) = (self.targets.nodes()?, self.targets.key());
        Ok(OwnedDeployment { kind: self.kind, targets, key, database, begins, ends })
    }
}

fn each_once(option: &str, commands: Vec<(Fault, String)>) -> Result<BTreeMap<Fault, String>> {
    let mut once = BTreeMap::new();
    for (fault, command) in commands {
        if once.insert(fault, command).is_some() {
            bail!("{option} {} is given twice", fault.name());
        }
    }
    Ok(once)
}

/// A deployment that others run.
pub(crate) struct OwnedDeployment {
    kind: Option<Kind>,
    targets: Vec<String>,
    key: Option<String>,
    database: Option<String>,
    begins: BTreeMap<Fault, String>,
    ends: BTreeMap<Fault, String>,
}

#[async_trait]
impl Deployment for OwnedDeployment {
    fn kind(&self) -> Option<Kind> {
        self.kind
    }

    fn nodes(&self) -> Vec<String> {
        self.targets.clone()
    }

    fn key(&self) -> Option<String> {
        self.key.clone()
    }

    fn can(&self, fault: Fault) -> Result<(), String> {
        if self.begins.contains_key(&fault) {
            return Ok(());
        }
        let name = fault.name();
        Err(format!("only its owner can let {name} begin: name how with --fault {name}=COMMAND"))
    }

    async fn begin(&self, fault: Fault) -> Result<()> {
        let command = self.begins.get(&fault).with_context(|| format!("no command for {}", fault.name()))?;
        run(fault, "begin", command).await
    }

    async fn end(&self, fault: Fault) -> Result<()> {
        match self.ends.get(&fault) {
            Some(command) => run(fault, "end", command).await,
            None => Ok(()),
        }
    }

    async fn verify(&self) -> Result<Option<Vec<InvariantVerdict>>> {
        match &self.database {
            Some(url) => verify::verdicts(url).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Runs a command of the owner's to its end. What it leaves running in the background is the owner's.
async fn run(fault: Fault, moment: &str, command: &str) -> Result<()> {
    // A file and no pipe: who holds a pipe open keeps the drill waiting.
    let said = tempfile::tempfile()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("HOLDFAST_DRILL_FAULT", fault.name());
    shell.env("HOLDFAST_DRILL_MOMENT", moment);
    shell.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?).kill_on_drop(true);
    let mut child = shell.spawn().context("sh")?;
    let what = || format!("the command for {moment} of {}", fault.name());
    match tokio::time::timeout(COMMAND_MAX, child.wait()).await {
        Ok(status) => match status? {
            status if status.success() => Ok(()),
            status => bail!("{} failed, {status}{}", what(), end_of(said)?),
        },
        Err(_) => bail!("{} did not end within {COMMAND_MAX:?}{}", what(), end_of(said)?),
    }
}

/// The end of what a command said.
fn end_of(mut said: std::fs::File) -> Result<String> {
    let length = said.metadata()?.len();
    said.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
    let mut text = Vec::new();
    said.take(SHOWN_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    Ok(if text.is_empty() { "; it said nothing".to_owned() } else { format!("; it said\n{text}") })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        owned: Owned,
    }

    fn deployment(words: &[&str]) -> Result<OwnedDeployment> {
        let line =
            [&["drill", "--target", "http://a/", "--target", "http://b", "--target", "http://a"], words];
        Line::try_parse_from(line.concat())?.owned.deployment()
    }

    #[tokio::test]
    async fn its_owner_says_how_it_breaks_and_heals() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("said").display().to_string();
        let begin = format!("kill-node=echo \"$HOLDFAST_DRILL_FAULT $HOLDFAST_DRILL_MOMENT=x\" >> '{path}'");
        let end = format!("kill-node=echo healed >> '{path}'");
        let of = deployment(&["--fault", &begin, "--heal", &end, "--fault", "cut-cache=true"]).unwrap();
        assert_eq!(of.nodes(), ["http://a", "http://b"]);
        of.can(Fault::KillNode).unwrap();
        assert!(of.can(Fault::WipeCache).unwrap_err().contains("--fault wipe-cache=COMMAND"));
        of.begin(Fault::KillNode).await.unwrap();
        of.end(Fault::KillNode).await.unwrap();
        of.begin(Fault::CutCache).await.unwrap();
        of.end(Fault::CutCache).await.unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "kill-node begin=x\nhealed\n");
        assert_eq!(of.verify().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_command_that_fails_is_shown_with_what_it_said() {
        let long = "slow-disk=yes | head -c 9000; echo cannot do it; exit 3";
        let of = deployment(&["--fault", long, "--fault", "kill-node=sleep 60 & exit 1"]).unwrap();
        let why = of.begin(Fault::SlowDisk).await.unwrap_err().to_string();
        assert!(why.contains("exit status: 3") && why.ends_with("cannot do it"), "{why}");
        assert!(why.len() < 5_000);
        // It leaves something in the background, which holds nobody up.
        let why = of.begin(Fault::KillNode).await.unwrap_err().to_string();
        assert!(why.contains("exit status: 1") && why.ends_with("it said nothing"), "{why}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_any_load() {
        for words in [
            ["--fault", "nonsense=true", "--fault", "kill-node=true"],
            ["--fault", "kill-node", "--fault", "cut-cache=true"],
            ["--fault", "kill-node= ", "--fault", "cut-cache=true"],
            ["--fault", "kill-node=true", "--fault", "kill-node=false"],
            ["--fault", "kill-node=true", "--heal", "cut-cache=true"],
            ["--fault", "kill-node=true", "--database", "mysql://shop:hush@db"],
        ] {
            let why = format!("{:#}", deployment(&words).err().unwrap_or_else(|| panic!("{words:?}")));
            assert!(!why.contains("hush"), "{why}");
        }
    }
}
