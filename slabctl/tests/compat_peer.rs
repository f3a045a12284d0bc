//! The drop-in `slabinfo` beside the kernel's own tool, on the running kernel.
//!
//! Runs only where SLABINFO_PEER names a slabinfo built from the kernel's
//! tools/mm; says so otherwise. Caches in use change between two runs, so a
//! cache counts when the tool prints the same line before and after ours.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

/// Says on the real standard error, past the test's capture, why nothing ran.
fn skipped(why: &str) {
    let _ = writeln!(io::stderr(), "skipped: {why}");
}

fn run(program: &Path, options: &str) -> Option<String> {
    let output = Command::new(program).arg(options).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The columns that must agree, by name: all but the lists of slabs and what
/// is derived from them.
fn columns(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let kept = [1, 2, 3, 5, 6, 9].map(|i| cells.get(i).copied().unwrap_or_default());
        (cells.first().copied().unwrap_or_default(), kept.to_vec())
    });
    rows.collect()
}

/// Caches that agree, and those that do not, among the idle ones.
fn compare(peer: &Path, ours: &Path, options: &str) -> Option<(usize, Vec<String>)> {
    let before = run(peer, options)?;
    let mine = run(ours, options)?;
    let after = run(peer, options)?;
    let (before, mine, after) = (columns(&before), columns(&mine), columns(&after));
    let idle = before
        .iter()
        .filter(|(name, row)| after.get(*name) == Some(*row));
    let mut same = 0;
    let mut differ = Vec::new();
    for (name, row) in idle {
        match mine.get(name) {
            Some(found) if found == row => same += 1,
            found => differ.push(format!("{name}: tool {row:?}, ours {found:?}")),
        }
    }
    Some((same, differ))
}

#[test]
fn idle_caches_have_the_figures_of_the_kernels_own_tool() {
    let Some(peer) = std::env::var_os("SLABINFO_PEER").filter(|p| Path::new(p).is_file()) else {
        return skipped("SLABINFO_PEER names no slabinfo of the kernel's tools/mm");
    };
    if std::fs::read("/sys/kernel/slab/kmalloc-64/slabs").is_err() {
        return skipped("the attributes in /sys/kernel/slab cannot be read (root only)");
    }
    let dir = tempfile::tempdir().unwrap();
    let ours = dir.path().join("slabinfo");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_slabctl"), &ours).unwrap();
    for options in ["-Bz", "-BzL", "-z"] {
        let mut last = None;
        // A cache that changes and changes back in between looks idle: try again.
        let agreed = (0..20).any(|_| {
            last = compare(Path::new(&OsString::from(&peer)), &ours, options);
            last.as_ref()
                .is_some_and(|(same, differ)| *same > 100 && differ.is_empty())
        });
        assert!(agreed, "{options}: {last:#?}");
    }
}
