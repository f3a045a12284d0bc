//! What the programs did not count, told with every snapshot.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use aya::Ebpf;
use aya::programs::Program;

use super::program;
use crate::model::{Warning, WarningCode, Warnings};
use crate::source::bpf::object::refused;
use crate::source::bpf::{CountPaths, Refusal};

/// What was not counted, or not told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    /// Events that interrupted the same program; `None` where the kernel does not tell.
    pub(super) interrupted: Option<u64>,
    /// Events of caches that have no slot.
    pub(super) elsewhere: u64,
    /// Allocations whose path could not be inferred, since none was seen before.
    pub(super) unsure: u64,
    /// Caches that found no place.
    pub(super) unplaced: usize,
    /// All of kmalloc and kfree.
    pub(super) kmalloc: bool,
    /// Slabs that come and go, though paths are told.
    pub(super) slabs: bool,
    /// Functions whose calls are counters, and which the kernel has not got.
    pub(super) functions: Vec<&'static str>,
}

impl Missed {
    /// One line for each, with how long was counted.
    pub(super) fn say(
        &self,
        how: CountPaths,
        elapsed: Duration,
        refused: Option<&Refusal>,
        warnings: &mut Warnings,
    ) {
        let mut tell = |code, text| warnings.push(Warning::new(code, text));
        let counted = match how {
            CountPaths::Counts => "counted, their paths are not told".to_owned(),
            CountPaths::Fentry => {
                "counted, and slow paths at the entry of the kernel's functions".to_owned()
            }
            CountPaths::Inferred => format!(
                "counted, fast and slow are inferred ({} allocations were the first of a cache on a CPU and are taken for fast)",
                self.unsure
            ),
        };
        let text = format!(
            "paths by BPF since {:.2} s: allocations and frees are {counted}; \
             those of slabctl itself are left out, frees in bulk and by kfree_rcu are not seen; {} events missed in interrupts, {} of unknown caches",
            elapsed.as_secs_f64(),
            events(self.interrupted),
            self.elsewhere
        );
        tell(WarningCode::Note, text);
        if self.kmalloc {
            let paths = match how {
                CountPaths::Counts | CountPaths::Fentry => "",
                CountPaths::Inferred => ", nor the paths of frees without sheaves",
            };
            let text = format!(
                "paths: where pages are described was not found out, so kmalloc and kfree are not counted{paths}"
            );
            tell(WarningCode::Incomplete, text);
        }
        if self.slabs {
            let text = "paths: slabs that come and go are not told on this kernel, whose slabs do not name their cache at their end";
            tell(WarningCode::Note, text.to_owned());
        }
        if let Some(refusal) = refused {
            let text = format!(
                "paths: the kernel lets no program run at its functions ({refusal}), so slow paths are inferred"
            );
            tell(WarningCode::Note, text);
        }
        if !self.functions.is_empty() {
            let text = format!(
                "paths: what is counted at {} is not known, which this kernel has not got",
                self.functions.join(", ")
            );
            tell(WarningCode::Note, text);
        }
        if self.unplaced > 0 {
            let text = format!(
                "paths: {} caches found no place and are not counted",
                self.unplaced
            );
            tell(WarningCode::Incomplete, text);
        }
    }
}

/// Events that passed since they interrupted the same program on their processor; `None` where
/// the kernel does not tell.
pub(in crate::source::bpf) fn interrupted(
    ebpf: &Ebpf,
    events: &[&str],
) -> Result<Option<u64>, Refusal> {
    let mut sum = Some(0u64);
    for event in events {
        let program = ebpf.program(&program(event));
        let fd = program.map(Program::fd).transpose();
        let Some(fd) = fd.map_err(|error| refused(event, &error))? else {
            continue;
        };
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd()));
        let misses = text.ok().and_then(|text| recursion(&text));
        sum = sum.zip(misses).map(|(sum, n)| sum.saturating_add(n));
    }
    Ok(sum)
}

/// Such a number for people.
pub(in crate::source::bpf) fn events(n: Option<u64>) -> String {
    n.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
}

pub(super) fn recursion(fdinfo: &str) -> Option<u64> {
    let line = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"))?;
    line.trim().parse().ok()
}
