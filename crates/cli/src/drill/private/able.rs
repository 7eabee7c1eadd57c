//! Which faults a private deployment can have: by what it is made of, and by what this machine has.

use std::collections::BTreeSet;

use holdfast_drill::{Fault, Kind};
use holdfast_testkit::{Disk, Shim};

/// A disk on which it is tried whether this machine gives one.
const PROBE_BYTES: u64 = 1 << 20;

/// What a fault needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A library of the drill's own before a program's, which a C compiler makes.
    Shim,
    /// A disk of the drill's own, which only root may mount.
    Disk,
}

const fn need(fault: Fault) -> Option<Need> {
    match fault {
        Fault::StepClock | Fault::SlowDisk => Some(Need::Shim),
        Fault::FillDisk => Some(Need::Disk),
        Fault::KillNode
        | Fault::PauseNode
        | Fault::PauseWorker
        | Fault::KillAuthority
        | Fault::PauseAuthority
        | Fault::FailOverAuthority
        | Fault::CutAuthority
        | Fault::LoseCommitAnswers
        | Fault::CutCache
        | Fault::PauseCache
        | Fault::WipeCache
        | Fault::RestoreCache
        | Fault::FailOverCache
        | Fault::RepeatDeliveries => None,
    }
}

/// Whether a deployment of a kind can have a fault on any machine; if not, why.
pub(crate) fn by_kind(kind: Kind, fault: Fault) -> Result<(), String> {
    if fault.is_of(kind) {
        return Ok(());
    }
    let why = match fault {
        Fault::KillAuthority => {
            "the authority of the embedded store is in the node, for which there is kill-node"
        }
        Fault::PauseAuthority => {
            "the authority of the embedded store is in the node, for which there is pause-node"
        }
        Fault::PauseWorker => "its one node sells and lands, and pause-node stops both",
        Fault::FailOverAuthority => "the embedded store has no standby",
        Fault::CutAuthority | Fault::LoseCommitAnswers => {
            "nothing lies between a node and its embedded store"
        }
        Fault::CutCache
        | Fault::PauseCache
        | Fault::WipeCache
        | Fault::RestoreCache
        | Fault::FailOverCache
        | Fault::RepeatDeliveries => "it has no cache",
        Fault::KillNode | Fault::PauseNode | Fault::StepClock | Fault::SlowDisk | Fault::FillDisk => {
            "it has nothing that could break so"
        }
    };
    Err(format!("{} cannot have {}: {why}", kind.name(), fault.name()))
}

/// Whether a deployment of a kind can have all of these faults on this machine; if not, why. Nothing is started: what
/// a machine may lack is tried.
pub(crate) async fn able(kind: Kind, faults: &BTreeSet<Fault>) -> Result<(), String> {
    for fault in faults {
        by_kind(kind, *fault)?;
    }
    let needs: BTreeSet<Need> = faults.iter().copied().filter_map(need).collect();
    for of in needs {
        let tried = match of {
            Need::Shim => Shim::build().await.map(drop),
            Need::Disk => Disk::mount(PROBE_BYTES).map(drop),
        };
        let names: Vec<&str> =
            faults.iter().filter(|fault| need(**fault) == Some(of)).map(|fault| fault.name()).collect();
        tried.map_err(|why| format!("this machine cannot have {}: {why:#}", names.join(", ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_faults_that_its_parts_can_have() {
        let count = |kind| Fault::ALL.into_iter().filter(|fault| by_kind(kind, *fault).is_ok()).count();
        assert_eq!(Kind::ALL.map(count), [5, 11, 11, Fault::ALL.len()]);
    }

    #[test]
    fn a_refusal_names_the_fault_and_the_reason() {
        let why = by_kind(Kind::Sqlite, Fault::WipeCache).unwrap_err();
        assert_eq!(why, "sqlite cannot have wipe-cache: it has no cache");
    }
}
