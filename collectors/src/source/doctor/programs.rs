//! Probes what BPF programs may do in the running kernel, by loading them.

use std::path::Path;

use super::{Finding, State};
use crate::model::Warnings;
use crate::source::Demand;
use crate::source::bpf::{self, Refusal, Snapshots, preflight};

/// Nothing below another root: programs look into the running kernel only.
pub(super) fn all(root: &Path) -> Vec<Finding> {
    if root != Path::new("/") {
        return Vec::new();
    }
    let snapshot = Snapshots::open().and_then(|mut programs| {
        let seen = programs.caches(&Demand::names(), &mut Warnings::default())?;
        Ok(seen.len())
    });
    let mut findings = vec![look(&snapshot)];
    if snapshot.is_ok() {
        findings.push(entry(&bpf::fentry()));
    }
    findings
}

fn look(snapshot: &Result<usize, Refusal>) -> Finding {
    let gives = "objects really in use, free ones parked near CPUs, how full slabs are (--bpf)";
    let finding = |state| Finding::new("BPF programs", state, gives);
    match snapshot {
        Ok(caches) => {
            let untested = if preflight::is_tested() {
                ""
            } else {
                "; not tested on this kind of machine"
            };
            finding(State::Readable).remark(format!("{caches} caches in one pass{untested}"))
        }
        Err(refusal) => finding(state(refusal)).remark(refusal.to_string()),
    }
}

fn entry(allowed: &Result<(), Refusal>) -> Finding {
    let gives = "slow paths of allocations and frees where they are taken";
    let finding = |state| Finding::new("BPF programs at functions", state, gives);
    match allowed {
        Ok(()) => finding(State::Readable),
        Err(refusal) => finding(state(refusal)).remark(format!(
            "{refusal}; what is told of paths is inferred, and labelled so"
        )),
    }
}

fn state(refusal: &Refusal) -> State {
    match refusal {
        Refusal::Capabilities(_) | Refusal::Refused { .. } => State::Denied,
        Refusal::OldKernel(_) | Refusal::NoBtf | Refusal::Architecture => State::Missing,
        Refusal::Confidentiality | Refusal::NotBuilt => State::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_with_what_it_means() {
        let without = look(&Err(Refusal::Capabilities(vec!["CAP_BPF"])));
        assert_eq!(without.state, State::Denied);
        assert!(without.remark.contains("CAP_BPF"), "{}", without.remark);
        let refused = entry(&Err(Refusal::Refused {
            what: "fentry".to_owned(),
            why: "not permitted".to_owned(),
        }));
        assert!(refused.remark.contains("inferred"), "{}", refused.remark);
        assert!(all(Path::new("/nowhere")).is_empty());
    }
}
